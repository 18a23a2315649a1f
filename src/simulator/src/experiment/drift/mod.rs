//! A day on a cluster whose load drifts and whose nodes come and go, with a descheduler that goes by measured use: load
//! changes in the first half of the day and is constant in the second. Once with the scheduler's plan for each move, and
//! once without it, as the descheduler of Kubernetes has it.

mod day;
mod load;
mod table;

use std::sync::atomic::{AtomicI64, Ordering};

use krafla_framework::{Planning, Registry};
use serde::Serialize;

pub use day::Day;
pub use table::table;

pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// Between two rounds.
pub(crate) const ROUND: i64 = 5 * MINUTE;
/// What was moved stays for so long; and no template should take the same way twice in it.
pub(crate) const COOL_DOWN: i64 = 30 * MINUTE;
/// Once load is constant, what is too full is relieved for so many hours; after that nothing moves any more.
const SETTLES_WITHIN_HOURS: usize = 2;

/// What is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Options {
    /// Nodes of 32 cores, each with ten pods on average that ask for 62 % of it.
    pub nodes: u32,
    /// Length of the day. At least [`LEAST_HOURS`].
    pub hours: u32,
    /// Of load, and of which nodes go.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { nodes: 500, hours: 24, seed: 0 }
    }
}

/// Shorter days have no quiet hours at their end that could be looked at.
pub const LEAST_HOURS: u32 = 6;
/// Fewer nodes have none that is full and none that is idle.
pub const LEAST_NODES: u32 = 10;

impl Options {
    /// The hour from which on load is constant.
    pub fn quiet_from(&self) -> usize {
        (self.hours / 2) as usize
    }
}

/// Both days, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was played.
    #[serde(flatten)]
    pub options: Options,
    /// The hour from which on load is constant.
    pub quiet_from: usize,
    /// Each move has a better place that the scheduler has found and keeps.
    pub planned: Day,
    /// Pods are evicted, and come back wherever that may be.
    pub unplanned: Day,
}

impl Report {
    /// What should hold of the day with a plan, and does not. Empty is the only good answer.
    pub fn broken(&self) -> Vec<String> {
        let (day, quiet) = (&self.planned, self.quiet_from);
        let mut broken = Vec::new();
        let mut law = |holds: bool, says: String| {
            if !holds {
                broken.push(says);
            }
        };
        law(day.moves.iter().any(|moves| *moves > 0), "load drifts, and nothing was moved".to_owned());
        law(day.ping_pongs == 0, format!("{} moves between the same two nodes within the cool-down", day.ping_pongs));
        law(day.returned == 0, format!("{} pods came back to the node they had left", day.returned));
        law(day.overspent == 0, format!("{} disruption budgets were overspent", day.overspent));
        for (hour, moves) in day.moves.iter().enumerate().skip(quiet + SETTLES_WITHIN_HOURS) {
            law(*moves == 0, format!("{moves} moves in hour {}, long after load had become constant", hour + 1));
        }
        let rounds_an_hour = usize::try_from(HOUR / ROUND).unwrap_or(1);
        let quiet_rounds = &day.hottest_permille[(quiet * rounds_an_hour).min(day.hottest_permille.len())..];
        for pair in quiet_rounds.windows(2) {
            law(pair[1] <= pair[0], format!("the fullest node got fuller: from {} to {} permille", pair[0], pair[1]));
        }
        broken
    }
}

/// Plays both days, each on a thread of its own; `registry` makes the plugins. `tell` hears how many virtual hours of how
/// many are over.
pub fn run(options: Options, registry: fn() -> Registry, tell: impl Fn(i64, i64) + Sync) -> Report {
    let (done, all) = (AtomicI64::new(0), 2 * i64::from(options.hours));
    let tell_hour = || tell(done.fetch_add(1, Ordering::Relaxed) + 1, all);
    let play = |planning| day::play(&options, planning, registry, &tell_hour);
    let (planned, unplanned) = std::thread::scope(|scope| {
        let other = scope.spawn(|| play(Planning::Off));
        let planned = play(Planning::Kept);
        (planned, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    Report { options, quiet_from: options.quiet_from(), planned, unplanned }
}
