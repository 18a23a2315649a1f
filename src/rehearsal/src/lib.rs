//! Rehearsals: scenarios played in real time on a cluster of real parts, with Krafla's scheduler or with another.
//!
//! What happens comes from the file as objects of the API, and is done at its time. What is asked is asked of what
//! watches show ([`krafla_simulator::scenario::Stage`]), by the same code that asks the simulated world. An expectation
//! is given some seconds to come true, since nothing real takes no time; while one is waited for, nothing else happens,
//! so that the order of the file holds however slow the cluster is.
//!
//! Absent on purpose: faults of calls and watches, and the latency of binds. They need an API server that fails when it
//! is told to, which is what the simulator has.

mod admission;
mod eyes;
mod ground;
mod hands;
mod invariants;
mod krafla;
mod names;
mod player;
mod seen;
mod sweep;

pub use ground::{Ground, GroundError, Guest};
pub use player::{Outcome, Rules, play};
