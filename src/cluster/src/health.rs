//! Whether the process is alive and ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use krafla_model::Time;

/// A step that takes longer than this is stuck, in milliseconds. The budget is some hundred milliseconds.
const STUCK_MS: i64 = 120_000;

/// How the engine's thread is doing.
#[derive(Clone, Default)]
pub(crate) struct Health(Arc<State>);

#[derive(Default)]
struct State {
    /// When the step that runs began, in milliseconds since 1970; 0 between steps.
    working_since: AtomicI64,
    known: AtomicBool,
    ended: AtomicBool,
}

impl Health {
    pub(crate) fn working_since(&self, at: Option<Time>) {
        self.0.working_since.store(at.map_or(0, |at| at.0), Ordering::Relaxed);
    }

    /// The cluster is known.
    pub(crate) fn set_known(&self) {
        self.0.known.store(true, Ordering::Release);
    }

    /// The engine's thread has ended.
    pub(crate) fn set_ended(&self) {
        self.0.ended.store(true, Ordering::Release);
    }

    /// Whether the engine works; else why not.
    pub(crate) fn alive(&self) -> Result<(), String> {
        if self.0.ended.load(Ordering::Acquire) {
            return Err("the scheduling thread has ended".to_owned());
        }
        let since = self.0.working_since.load(Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let working = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(since);
        if since > 0 && working > STUCK_MS {
            return Err(format!("one session has been running for {} s", working / 1_000));
        }
        Ok(())
    }

    /// Whether the cluster is known, so that this process can lead; else why not.
    pub(crate) fn ready(&self) -> Result<(), String> {
        self.alive()?;
        if !self.0.known.load(Ordering::Acquire) {
            return Err("the first lists have not come in yet".to_owned());
        }
        Ok(())
    }
}
