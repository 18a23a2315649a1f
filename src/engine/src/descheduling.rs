//! The descheduler as the engine has it: an action with a time of its own.

use krafla_framework::{BuiltDescheduler, DeschedulerSettings, Registry, UsageSource};
use krafla_model::Time;

/// How long the first round waits for the use of nodes to be known, at most.
const FIRST_READING_MS: i64 = 10_000;

/// A descheduler in force.
pub(crate) struct Descheduling {
    pub(crate) settings: DeschedulerSettings,
    pub(crate) built: BuiltDescheduler,
    /// When the next round is due; [`Time::NEVER`] if only when told.
    pub(crate) next: Time,
}

impl Descheduling {
    /// Makes one; with an interval its first round is due at once. `Err` says what is wrong with its policy.
    pub(crate) fn make(settings: DeschedulerSettings, registry: &Registry, now: Time) -> Result<Self, Vec<String>> {
        let Some(build) = registry.descheduler else {
            return Err(vec!["this build has no descheduler".to_owned()]);
        };
        let built = build(&settings)?;
        // What has to be measured is not known at once.
        let patience =
            if built.usage == UsageSource::default() { 0 } else { settings.interval_ms.min(FIRST_READING_MS) };
        let next = if settings.interval_ms > 0 { now + patience } else { Time::NEVER };
        Ok(Self { settings, built, next })
    }

    /// A round is over.
    pub(crate) fn round_done(&mut self, now: Time) {
        self.next = if self.settings.interval_ms > 0 { now + self.settings.interval_ms } else { Time::NEVER };
    }

    /// Where it takes the use of nodes and pods from.
    pub(crate) fn usage(&self) -> &UsageSource {
        &self.built.usage
    }
}
