//! The Scheduling Framework: what kube-scheduler's plugins are asked, and when.
//!
//! `point` names the extension points, `plugin` is the trait with a hook for each, `profile` is the configured set of
//! plugins, `queue` says which pod is next, `search` finds a node, `post_filter` what may be done if there is none,
//! `waiting` keeps the pods that Permit holds back, `binding` is what a shell runs on the way to the bind, and `extender`
//! has a say from outside.

pub mod binding;
pub mod cycle_state;
pub mod extender;
pub mod plugin;
pub mod point;
pub mod post_filter;
pub mod profile;
pub mod queue;
pub mod search;
pub mod verdict;
pub mod waiting;
