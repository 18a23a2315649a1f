//! The `krafla` program as people use it: what it prints, where, and with which exit code.

mod check;
mod crds;
mod experiments;
mod help;
mod programs;
mod replay;
mod scenario;
mod settings;
mod simulate;
mod simulate_input;
