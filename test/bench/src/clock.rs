//! Time that this thread has run. Others use the machine too, and what they take is not ours.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A moment.
#[derive(Clone, Copy)]
pub(crate) struct Moment(Timespec);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(clock_gettime(ClockId::ThreadCPUTime))
    }

    /// Seconds that this thread has run since then.
    pub(crate) fn elapsed(self) -> f64 {
        let now = Self::now().0;
        Duration::try_from(now - self.0).unwrap_or_default().as_secs_f64()
    }
}

/// The least of some runs, at least one: nothing makes a run faster than it is.
pub(crate) fn least(runs: u32, run: impl Fn() -> f64) -> f64 {
    (0..runs.max(1)).map(|_| run()).fold(f64::INFINITY, f64::min)
}
