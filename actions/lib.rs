//! The actions: a file each.
//!
//! Whoever adds one touches its own file and one line of [`all`].

pub mod allocate;
pub mod backfill;
pub mod enqueue;
mod eviction;
pub mod gangpreempt;
pub mod gangreclaim;
mod placement;
pub mod preempt;
mod promises;
pub mod reclaim;
pub mod schedule_one;

use krafla_framework::{ActionBuilder, ArgumentInfo, ArgumentKind};

/// Shared by the actions that search nodes.
const ERROR_CACHE: ArgumentInfo = ArgumentInfo::new(
    "predicateErrorCacheEnable",
    ArgumentKind::Bool,
    "true",
    "accepted; equal tasks that found no node are never searched for twice while nothing has changed",
);

/// Every action of this crate, in the order in which help texts list them.
pub fn all() -> Vec<ActionBuilder> {
    vec![
        ActionBuilder { info: enqueue::INFO, build: enqueue::build },
        ActionBuilder { info: allocate::INFO, build: allocate::build },
        ActionBuilder { info: backfill::INFO, build: backfill::build },
        ActionBuilder { info: preempt::INFO, build: preempt::build },
        ActionBuilder { info: reclaim::INFO, build: reclaim::build },
        ActionBuilder { info: gangpreempt::INFO, build: gangpreempt::build },
        ActionBuilder { info: gangreclaim::INFO, build: gangreclaim::build },
        ActionBuilder { info: schedule_one::INFO, build: schedule_one::build },
    ]
}
