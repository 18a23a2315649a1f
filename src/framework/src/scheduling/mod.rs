//! The Scheduling Framework: what kube-scheduler's plugins are asked, and when.
//!
//! `point` names the extension points, `plugin` is the trait with a hook for each, `profile` is the configured set of
//! plugins, `search` finds a node with it, `waiting` keeps the pods that Permit holds back.

pub mod cycle_state;
pub mod plugin;
pub mod point;
pub mod profile;
pub mod search;
pub mod verdict;
pub mod waiting;
