//! The descheduler: which running pods should be somewhere else, and where.
//!
//! A `round` walks through the profiles of a policy: first every strategy at `deschedule`, then every one at
//! `balance`. A strategy is a function of the cluster as it is (`strategies/`, a file each) that asks the `Round` to
//! evict pods, in order. The round asks in turn whether the pod may go (`evictor.rs`, budgets, plugins of the scheduler),
//! whether a limit is reached (`limits.rs`), and where the pod that replaces it would go (`plan.rs`). All of it is tried in
//! one statement, so what was evicted counts for what comes after, and a dry run is the same without the end.
//!
//! Absent on purpose: evicting (the engine's effects say it, and the shell does it), measuring (the state has what was
//! measured), clocks and threads.

mod action;
mod args;
mod background;
#[cfg(test)]
mod background_tests;
mod evictor;
#[cfg(test)]
mod evictor_tests;
mod limits;
mod load;
mod memory;
mod plan;
#[cfg(test)]
mod plan_tests;
mod policy;
mod round;
mod strategies;
#[cfg(test)]
mod testing;

pub use action::build;
pub use policy::strategies as known_strategies;
