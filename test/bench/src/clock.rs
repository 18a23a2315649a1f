//! Time that this thread has run. Others use the machine too, and what they take is not ours.

use std::time::{Duration, Instant};

/// A moment.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    ran: Option<Duration>,
    at: Instant,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { ran: time_run(), at: Instant::now() }
    }

    /// Seconds that this thread has run since then; seconds on the wall where the system does not say.
    pub(crate) fn elapsed(self) -> f64 {
        let ran = time_run().zip(self.ran).map(|(now, then)| now.saturating_sub(then));
        ran.unwrap_or_else(|| self.at.elapsed()).as_secs_f64()
    }
}

fn time_run() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// The least of some runs, at least one: nothing makes a run faster than it is.
pub(crate) fn least(runs: u32, run: impl Fn() -> f64) -> f64 {
    (0..runs.max(1)).map(|_| run()).fold(f64::INFINITY, f64::min)
}
