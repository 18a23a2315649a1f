//! Configuration: from the text of Volcano's `scheduler.conf`, or of a KubeSchedulerConfiguration, to a
//! [`policy::Policy`].
//!
//! The way through: [`compile::compile`] takes the text, `tree` reads the YAML with positions, `wrapping` looks into a
//! Kubernetes ConfigMap, `actions` and `tiers` read the sections, `check` holds arguments against the
//! [`catalogue::Catalogue`], `combinations` looks at the whole, and [`problem::Problem`] says what is wrong and where.
//! [`kube`] reads a KubeSchedulerConfiguration with the same tools, [`descheduler`] a DeschedulerPolicy; plugins read their
//! `args` with [`plugin_args`].
//!
//! Absent on purpose: reading files, watching them, and the list of plugins and actions, which the caller hands in.
//!
//! Volcano ignores what it does not understand. Here it is an error with its place and the nearest valid name: a
//! misspelt weight that is silently 1 costs its owner weeks.

mod actions;
pub mod arguments;
pub mod catalogue;
mod check;
mod combinations;
pub mod compile;
pub mod descheduler;
mod elsewhere;
pub mod kube;
pub mod metrics;
mod names;
pub mod plugin_args;
pub mod policy;
mod print;
pub mod problem;
mod reader;
pub mod selectors;
pub mod switches;
mod tiers;
mod tree;
pub mod window;
mod wrapping;

#[cfg(test)]
mod tests;
