//! One binary for all of them: linking is what tests cost.

mod defragment;
mod drift;
mod engine;
mod evictions;
mod fast_search;
mod framework;
mod journal;
mod random_runs;
mod scenarios;
mod search;
mod traces;
mod vain;
mod votes;
