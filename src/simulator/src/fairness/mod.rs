//! Does each queue get what it is due, and if not, for how long and why?
//!
//! All shares are dominant shares of the cluster, pod slots left out. At each moment at which a queue has pods that wait,
//! its *gap* is what it lacks of its due, as far as it asks for it: min(due, asked for) - held, at least 0. Asked for is
//! what it holds and all that its pending pods request, those of jobs at the door included; gated pods are not.
//!
//! Pods and gangs come whole, so a gap below the size of one job is no injustice. A queue is *short* while its gap exceeds
//! the largest of its waiting jobs that its due could hold at all: the members that the job still needs to start, or one
//! pod. A job larger than that excuses nothing. And who has just asked has to be given the time in which others are
//! evicted, terminate and make way: a stretch of shortness counts only if it lasts longer than the settling time, and then
//! from its beginning.

mod gap;
mod over_time;

use std::collections::BTreeMap;

use krafla_model::{Name, Time};
use serde::Serialize;

use crate::world::World;
pub(crate) use gap::share;
use gap::{Moment, moments};
use over_time::OverTime;
pub use over_time::{Means, Trend};

/// From a request to when it must be met: a cycle that evicts, one that places, and the second after which a controller
/// makes a pod again, with some to spare; the grace period comes on top. In milliseconds.
const SETTLING_MS: i64 = 10_000;
/// Below this a gap is rounding.
const NOTHING: f64 = 1e-9;

/// How a queue fared against its due.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueFairness {
    /// How long pods of it waited while it was due something.
    pub waited_ms: i64,
    /// The mean gap over that time.
    pub mean_gap: f64,
    /// The largest gap, and when it was there first.
    pub largest_gap: f64,
    /// When it was there first.
    pub largest_gap_at_ms: i64,
    /// How long it was short, stretches that settled left out.
    pub short_ms: i64,
    /// How many such stretches there were.
    pub short_stretches: u32,
    /// How long some waiting job would have fitted into the gap, momentary gaps included: what a queue order that passes
    /// over large jobs, or one more eviction, could have used.
    pub usable_ms: i64,
    /// The longest stretch of shortness that did not settle.
    pub longest: Option<Stretch>,
    /// Why the gap was there: parts of gap times time by the code of the reason for which the pods waited, largest first.
    pub reasons: Vec<(String, f64)>,
    /// Pods of it that were evicted by the scheduler.
    pub evictions: u64,
}

impl QueueFairness {
    /// Whether the queue had what it is due whenever it asked for it, but for what comes whole and what had to settle.
    pub fn holds(&self) -> bool {
        self.short_stretches == 0
    }
}

/// A stretch of time in which a queue was short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// From when.
    pub from_ms: i64,
    /// For how long.
    pub length_ms: i64,
    /// The largest gap in it.
    pub largest_gap: f64,
    /// The job that had waited longest at its end, and its reason.
    pub job: String,
    /// The code of the reason.
    pub code: String,
    /// The reason in words.
    pub text: String,
}

/// Follows a world and keeps account.
pub(crate) struct Fairness {
    settling_ms: i64,
    queues: BTreeMap<Name, Account>,
    over_time: OverTime,
}

/// What is known of one queue.
#[derive(Default)]
struct Account {
    sums: QueueFairness,
    gap_time: f64,
    by_reason: BTreeMap<&'static str, f64>,
    open: Option<Stretch>,
}

impl Fairness {
    /// Begins. Pods that terminate take `grace_ms`.
    pub(crate) fn new(grace_ms: i64) -> Self {
        Self { settling_ms: SETTLING_MS + grace_ms, queues: BTreeMap::new(), over_time: OverTime::default() }
    }

    /// Time passes; the state between the two moments is the present one.
    ///
    /// Cost: the queues; and the waiting jobs of those that have a gap.
    pub(crate) fn passes(&mut self, world: &World, from: Time, to: Time) {
        for moment in moments(world) {
            self.over_time.add(&moment, from.0, to.0);
            self.queues.entry(moment.queue.clone()).or_default().passes(&moment, from.0, to.0, self.settling_ms);
        }
    }

    /// A pod of a queue was evicted.
    pub(crate) fn evicted(&mut self, queue: &Name) {
        self.queues.entry(queue.clone()).or_default().sums.evictions += 1;
    }

    /// Ends: what became of these queues, and how they fared over time. `None` for those that no plugin said to be due
    /// anything.
    pub(crate) fn finish(mut self, queues: &[Name]) -> (Vec<Option<QueueFairness>>, Option<Trend>) {
        let settling_ms = self.settling_ms;
        let accounts = queues.iter().map(|name| Some(self.queues.remove(name)?.close(settling_ms))).collect();
        (accounts, self.over_time.finish(queues))
    }
}

impl Account {
    fn passes(&mut self, moment: &Moment, from_ms: i64, to_ms: i64, settling_ms: i64) {
        if !moment.waits || moment.gap <= NOTHING {
            self.end_stretch(settling_ms);
        }
        if !moment.waits {
            return;
        }
        let sums = &mut self.sums;
        sums.waited_ms += to_ms - from_ms;
        if moment.gap <= NOTHING {
            return;
        }
        let weight = moment.gap * millis(to_ms - from_ms);
        self.gap_time += weight;
        if moment.gap > sums.largest_gap + NOTHING {
            (sums.largest_gap, sums.largest_gap_at_ms) = (moment.gap, from_ms);
        }
        for (code, part) in &moment.reasons {
            *self.by_reason.entry(code).or_default() += weight * part;
        }
        if moment.is_usable {
            sums.usable_ms += to_ms - from_ms;
        }
        if moment.is_short {
            let stretch = self.open.get_or_insert_with(|| Stretch {
                from_ms,
                length_ms: 0,
                largest_gap: 0.0,
                job: String::new(),
                code: String::new(),
                text: String::new(),
            });
            stretch.length_ms = to_ms - stretch.from_ms;
            stretch.largest_gap = stretch.largest_gap.max(moment.gap);
            if let Some((job, code, text)) = &moment.oldest {
                stretch.job.clone_from(job);
                stretch.code.clone_from(code);
                stretch.text.clone_from(text);
            }
        } else {
            self.end_stretch(settling_ms);
        }
    }

    fn end_stretch(&mut self, settling_ms: i64) {
        let Some(stretch) = self.open.take().filter(|stretch| stretch.length_ms > settling_ms) else { return };
        self.sums.short_ms += stretch.length_ms;
        self.sums.short_stretches += 1;
        if self.sums.longest.as_ref().is_none_or(|longest| stretch.length_ms > longest.length_ms) {
            self.sums.longest = Some(stretch);
        }
    }

    fn close(mut self, settling_ms: i64) -> QueueFairness {
        self.end_stretch(settling_ms);
        let whole = self.gap_time;
        let mut sums = self.sums;
        if sums.waited_ms > 0 {
            sums.mean_gap = whole / millis(sums.waited_ms);
        }
        let mut reasons: Vec<(String, f64)> =
            self.by_reason.into_iter().map(|(code, part)| (code.to_owned(), part / whole)).collect();
        reasons.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        sums.reasons = reasons;
        sums
    }
}

#[allow(clippy::cast_precision_loss, reason = "a span of time for a mean")]
pub(crate) fn millis(ms: i64) -> f64 {
    ms as f64
}

#[cfg(test)]
mod tests;
