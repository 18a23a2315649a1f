//! How decisions are made: sessions and statements, the two levels of plugins and how their answers combine, the node
//! search, the configuration, and reasons.
//!
//! Absent on purpose: any particular plugin or action (they depend on this crate), Kubernetes types, I/O and clocks.

pub mod action;
pub mod conf;
pub mod effect;
pub mod node_plugin;
pub mod phase;
pub mod plugin_set;
pub mod rank;
pub mod reason;
pub mod reasons;
pub mod registry;
pub mod search;
pub mod session;
pub mod session_plugin;
pub mod share;
pub mod verdict;

pub use action::Action;
pub use conf::arguments::{Arguments, Value};
pub use conf::catalogue::{ActionInfo, ArgumentInfo, ArgumentKind, Catalogue, PluginInfo};
pub use conf::policy::{PluginEntry, Policy};
pub use conf::switches::Point;
pub use effect::{Cause, Decision, Effect, EvictionCertificate, PodRef, ShareMove, Subject};
pub use node_plugin::{CycleState, NodePlugin, PreFilter, Profile, ProfileEntry, Scope};
pub use plugin_set::PluginSet;
pub use rank::{Rank, RankedQueue};
pub use reason::{Reason, Shortage};
pub use reasons::Reasons;
pub use registry::{ActionBuilder, PluginBuilder, Registry};
pub use search::{Found, Room, SearchLimits, Searcher};
pub use session::{Outcome, Session, Statement};
pub use session_plugin::{
    Comparison, Domain, EvictedFor, EvictionKind, Freeable, JobCondition, Purpose, SessionPlugin, Unwanted,
    VictimVotes, Victims, Vote,
};
pub use share::{Dues, RelativeShare};
pub use verdict::{Refusals, Verdict, Why};
