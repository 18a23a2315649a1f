//! The loop: what happened goes in, what is to be done comes out.
//!
//! `Engine::step(now, inputs) -> effects` is a function of what it was given: no clock, no thread, no I/O. The live
//! cluster, the simulator and the replayer are shells about it.

pub mod configuration;
mod descheduling;
mod effects;
pub mod engine;
mod explain;
pub mod input;
mod parked;
pub mod recording;

pub use configuration::{Configuration, ConfigurationHealth};
pub use engine::{CycleReport, Engine, Options, Step};
pub use input::{Input, Outcome};
