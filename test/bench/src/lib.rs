//! What benchmarks in memory and on a real API server have in common.

pub mod budget;
pub mod memory;
pub mod workloads;
