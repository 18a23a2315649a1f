//! Scenarios: a scheduling story with its expected end, in one file. This is the test language for people who write a
//! `scheduler.conf`, and for this project itself.

mod build;
mod deed;
mod expect;
mod format;
mod simulated;
mod stage;
mod story;
mod wanted;

use std::fmt;

use build::Wrong;
pub use deed::{Deed, Target, TargetKind};
pub use expect::{Checked, Expected, When};
use krafla_engine::CycleReport;
use krafla_framework::Registry;
use krafla_model::Time;
pub use stage::{About, Holder, JobFacts, PodFacts, Stage};
pub use story::{Plan, Story};

use crate::invariants;
use crate::world::{Observer, World};

/// How long a run goes on after the last event when the file says nothing, in milliseconds.
pub const AFTER_LAST_EVENT_MS: i64 = 60_000;
/// Misses that are listed for one scenario; the others are counted.
const MOST_MISSES: usize = 20;

/// How a scenario went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Its name.
    pub name: String,
    /// Expectations that were checked, and how often.
    pub checks: u64,
    /// Cycles that ran.
    pub cycles: u64,
    /// When each eviction was decided.
    pub evictions: Vec<Time>,
    /// Everything that was not as it should be, in words; empty if all held.
    pub misses: Vec<String>,
    /// What could not be done as written, in words.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Whether all held.
    pub fn passed(&self) -> bool {
        self.misses.is_empty()
    }
}

/// A file that could not be read as a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Runs the scenario in `text`. `file` is its name in messages, and the place that `configFile` is relative to.
///
/// It runs twice: that both runs decide the same is invariant I5.
pub fn run(text: &str, file: &str, registry: fn() -> Registry) -> Result<Verdict, Unreadable> {
    let story = Story::read(text, file, registry)?;
    let (mut verdict, first) = run_once(&story, registry)?;
    let (_, second) = run_once(&story, registry)?;
    if first != second {
        verdict.misses.push("I5: two runs of this file decided differently".to_owned());
    }
    Ok(verdict)
}

fn run_once(story: &Story, registry: fn() -> Registry) -> Result<(Verdict, Vec<String>), Unreadable> {
    let built = story.plan()?;
    let wanted = story.expectations();
    let mut world = World::new(built.setup, registry);
    let until = built.until;
    let last = built.last_event;
    for (at, happening) in built.happenings {
        world.plan(at, happening);
    }
    let standing = wanted.iter().filter_map(|expected| match expected.when() {
        When::Always(from) => Some(Standing { from, expected, unseen: Some(String::new()) }),
        _ => None,
    });
    let mut watch = Watch { always: standing.collect(), ..Watch::default() };
    watch.verdict.name = story.name().to_owned();
    watch.verdict.notes = built.notes;
    for expected in wanted {
        if let When::At(at) = expected.when() {
            world.run_until(at, &mut watch);
            watch.check(&world, expected);
        }
    }
    let end = until.unwrap_or(world.now().max(last) + AFTER_LAST_EVENT_MS);
    world.run_until(end, &mut watch);
    for expected in wanted.iter().filter(|expected| expected.when() == When::End) {
        watch.check(&world, expected);
    }
    for standing in std::mem::take(&mut watch.always) {
        if let Some(missing) = standing.unseen {
            let why = if missing.is_empty() {
                "no cycle ran after its time".to_owned()
            } else {
                format!("{missing}, and never was")
            };
            watch.miss(format!("{}: {why}", standing.expected));
        }
    }
    if world.engine().panics() > 0 {
        watch.verdict.misses.push(format!("{} sessions panicked", world.engine().panics()));
    }
    if let Some(wrong) = watch.unreadable {
        return Err(story.wrong(&wrong));
    }
    let Watch { mut verdict, decisions, more, .. } = watch;
    if more > 0 {
        verdict.misses.push(format!("... and {more} more"));
    }
    verdict.cycles = world.cycles();
    verdict.notes.extend(world.problems().iter().map(|problem| format!("{}: {}", problem.object, problem.message)));
    Ok((verdict, decisions))
}

#[derive(Default)]
struct Watch<'a> {
    always: Vec<Standing<'a>>,
    verdict: Verdict,
    decisions: Vec<String>,
    more: usize,
    unreadable: Option<Wrong>,
}

/// An expectation that holds after every cycle. Until the object that it is about comes, there is nothing to check.
#[derive(Clone)]
struct Standing<'a> {
    from: Time,
    expected: &'a Expected,
    /// That the object is not there, as long as it never was.
    unseen: Option<String>,
}

impl Watch<'_> {
    fn check(&mut self, world: &World, expected: &Expected) {
        self.verdict.checks += 1;
        match expected.check(world) {
            Ok(Checked::Misses(misses)) => self.missed(world, expected, misses),
            Ok(Checked::Missing(missing)) => self.missed(world, expected, vec![missing]),
            Err(why) => self.cannot_be_checked(expected, &why),
        }
    }

    fn check_standing(&mut self, world: &World, standing: &mut Standing<'_>) {
        match standing.expected.check(world) {
            Ok(Checked::Missing(missing)) if standing.unseen.is_some() => standing.unseen = Some(missing),
            Ok(Checked::Missing(_)) => {}
            Ok(Checked::Misses(misses)) => {
                self.verdict.checks += 1;
                standing.unseen = None;
                self.missed(world, standing.expected, misses);
            }
            Err(why) => self.cannot_be_checked(standing.expected, &why),
        }
    }

    fn missed(&mut self, world: &World, expected: &Expected, misses: Vec<String>) {
        for miss in misses {
            self.miss(format!("at {}, {expected}: {miss}", world.now()));
        }
    }

    fn cannot_be_checked(&mut self, expected: &Expected, why: &str) {
        self.unreadable.get_or_insert_with(|| expected.wrong(why));
    }

    fn miss(&mut self, text: String) {
        if self.verdict.misses.len() < MOST_MISSES {
            self.verdict.misses.push(text);
        } else {
            self.more += 1;
        }
    }
}

impl Observer for Watch<'_> {
    fn cycle(&mut self, world: &World, report: &CycleReport) {
        for broken in invariants::broken(world, report) {
            self.miss(format!("at {}, {broken}", world.now()));
        }
        let mut always = std::mem::take(&mut self.always);
        for standing in always.iter_mut().filter(|standing| standing.from <= world.now()) {
            self.check_standing(world, standing);
        }
        self.always = always;
        let cluster = world.engine().cluster();
        for decision in &report.decisions {
            self.decisions.push(match decision {
                krafla_framework::Decision::Bind(task) => {
                    let node = cluster.task(*task).node().map(|node| cluster.node(node).name().to_string());
                    format!("{} bind {} {}", world.now(), cluster.task_label(*task), node.unwrap_or_default())
                }
                krafla_framework::Decision::Evict(task, _) => {
                    self.verdict.evictions.push(world.now());
                    format!("{} evict {}", world.now(), cluster.task_label(*task))
                }
                krafla_framework::Decision::OpenGate(task) => {
                    format!("{} open gate {}", world.now(), cluster.task_label(*task))
                }
                krafla_framework::Decision::Deallocate { namespace, name, .. } => {
                    format!("{} deallocate {namespace}/{name}", world.now())
                }
            });
        }
    }
}
