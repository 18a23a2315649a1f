//! The actions: a file each.
//!
//! Whoever adds one touches its own file and one line of [`all`].

pub mod allocate;
pub mod backfill;
mod beyond;
pub mod consolidate;
pub mod defragment;
pub mod enqueue;
mod eviction;
pub mod gangpreempt;
pub mod gangreclaim;
mod gates;
mod hopeless;
mod placement;
pub mod preempt;
mod promises;
pub mod reclaim;
pub mod schedule_one;
pub mod shuffle;

use krafla_framework::{ActionBuilder, ArgumentInfo, ArgumentKind, Arguments, VictimVotes};

/// Shared by the actions that search nodes.
const ERROR_CACHE: ArgumentInfo = ArgumentInfo::new(
    "predicateErrorCacheEnable",
    ArgumentKind::Bool,
    "true",
    "accepted; equal tasks that found no node are never searched for twice while nothing has changed",
);

/// Shared by the actions that evict for somebody.
const COMPAT: ArgumentInfo = ArgumentInfo::new(
    "compat",
    ArgumentKind::OneOf(&["krafla", "volcano"]),
    "krafla",
    "how plugins' answers on victims combine: `volcano` lets an empty one hand over to the next tier",
);

/// How plugins' answers on victims combine.
fn victim_votes(arguments: &Arguments) -> VictimVotes {
    match arguments.text(COMPAT.key, COMPAT.default) {
        "volcano" => VictimVotes::Volcano,
        _ => VictimVotes::Veto,
    }
}

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
        ActionBuilder { info: consolidate::INFO, build: consolidate::build },
        ActionBuilder { info: defragment::INFO, build: defragment::build },
        ActionBuilder { info: shuffle::INFO, build: shuffle::build },
        ActionBuilder { info: schedule_one::INFO, build: schedule_one::build },
    ]
}
