//! The live shell: the engine on a real cluster.
//!
//! Data goes one way round: a watch a kind -> the feed, which turns objects into events -> the inbox ->
//! the engine's thread -> effects -> the performer, which carries them out and reports what became of them to the
//! inbox. Beside it: controllers that make PodGroups and keep the states of queues, the election of a leader, and pages
//! with metrics and health.
//!
//! Absent on purpose: any scheduling decision, and any copy of the cluster beside the engine's. What the shell keeps of
//! an object is what it needs to write to it.

pub mod client;
mod configuration;
mod controllers;
mod directory;
mod exchange;
mod extenders;
mod feed;
mod health;
mod http;
mod inbox;
mod lanes;
pub mod leader;
pub mod metrics;
mod pauses;
mod perform;
mod protobuf;
mod queues;
pub mod run;
mod scheduler;
mod thin_pod;
mod usage;
mod watch;

pub use client::{Access, ContentType};
pub use controllers::{Controller, Selection};
pub use feed::Scope;
pub use http::{SetLevel, filter_of};
pub use leader::Election;
pub use metrics::Metrics;
pub use run::{Addresses, Descheduling, RunError, Settings, run};
