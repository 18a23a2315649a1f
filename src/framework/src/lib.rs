//! How decisions are made: sessions and statements, the two levels of plugins and how their answers combine, the node
//! search, the configuration, and reasons.
//!
//! Absent on purpose: any particular plugin or action (they depend on this crate), Kubernetes types, I/O and clocks.

pub mod action;
pub mod conf;
pub mod descheduling;
pub mod effect;
pub mod phase;
pub mod plugin_set;
pub mod rank;
pub mod reason;
pub mod reasons;
pub mod registry;
pub mod scheduling;
pub mod session;
pub mod session_plugin;
pub mod share;

pub use action::Action;
pub use conf::arguments::{Arguments, Value};
pub use conf::catalogue::{ActionInfo, ArgumentInfo, ArgumentKind, Catalogue, PluginInfo};
pub use conf::policy::{PluginEntry, Policy};
pub use conf::switches::Point;
pub use descheduling::{
    BELIEVED_MS, BuildDescheduler, BuiltDescheduler, DescheduleResult, Descheduled, DeschedulerSettings,
    EVICTION_IN_PROGRESS, Planning, PrometheusSource, REQUEST_EVICT_ONLY, TAKEN_ON, UsageSource,
};
pub use effect::{Cause, Decision, Effect, EvictionCertificate, PodRef, ShareMove, Subject};
pub use plugin_set::PluginSet;
pub use rank::{Rank, RankedQueue};
pub use reason::{Reason, Shortage};
pub use reasons::Reasons;
pub use registry::{ActionBuilder, PluginBuilder, Registry};
pub use scheduling::binding::{BindingPlugin, Later, ObjectApi, ObjectRef};
pub use scheduling::cycle_state::CycleState;
pub use scheduling::extender::{ExtenderCalls, NodeVictims};
pub use scheduling::plugin::{NodePlugin, Permit, PreFilter, PreScore, QueuedAt, Scope};
pub use scheduling::point::ExtensionPoint;
pub use scheduling::post_filter::{FailedAttempt, PostFilter};
pub use scheduling::profile::{Profile, ProfileEntry};
pub use scheduling::queue::{QueueTimes, Refused, SchedulingQueue};
pub use scheduling::search::{Found, NodeColumns, Room, SearchLimits, Searcher};
pub use scheduling::verdict::{Refusals, Verdict, Why};
pub use scheduling::waiting::{GroupNote, WaitingPod, WaitingPods};
pub use scheduling::{plugin as node_plugin, search, verdict};
pub use session::{Outcome, Session, Statement};
pub use session_plugin::{
    Comparison, Domain, EvictedFor, EvictionKind, Freeable, JobCondition, Purpose, SessionPlugin, Unwanted,
    VictimVotes, Victims, Vote,
};
pub use share::{Dues, RelativeShare};
