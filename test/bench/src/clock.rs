//! Time that this thread has run. Others use the machine too, and what they take is not ours.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krafla_engine::{Engine, Input, Step};
use krafla_model::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Set where instructions are counted: there are no clocks under valgrind, which hides the page that they are read from.
static STANDS_STILL: AtomicBool = AtomicBool::new(false);

/// From now on no time passes.
pub(crate) fn stand_still() {
    STANDS_STILL.store(true, Ordering::Relaxed);
}

/// A moment; none while no time passes.
#[derive(Clone, Copy)]
struct Moment(Option<Timespec>);

impl Moment {
    fn now() -> Self {
        Self((!STANDS_STILL.load(Ordering::Relaxed)).then(|| clock_gettime(ClockId::ThreadCPUTime)))
    }

    /// Seconds that this thread has run since then.
    fn elapsed(self) -> f64 {
        let (Some(then), Some(now)) = (self.0, Self::now().0) else { return 0.0 };
        Duration::try_from(now - then).unwrap_or_default().as_secs_f64()
    }
}

/// The least of some runs, at least one: nothing makes a run faster than it is.
pub(crate) fn least(runs: u32, run: impl Fn() -> f64) -> f64 {
    (0..runs.max(1)).map(|_| run()).fold(f64::INFINITY, f64::min)
}

/// A step of an engine that counts: what it brought, and its seconds. Instructions are counted while this runs, and it is
/// found by its name, so it must stay a function.
#[inline(never)]
pub(crate) fn timed_step(engine: &mut Engine, now: Time, inputs: Vec<Input>) -> (Step, f64) {
    let began = Moment::now();
    let step = engine.step(now, inputs);
    (step, began.elapsed())
}
