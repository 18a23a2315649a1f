//! What the engine and a descheduler say to each other. Which strategies there are is the descheduler's own affair; it
//! comes with the registry, like actions and plugins.

use krafla_model::Name;
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::effect::PodRef;

/// How a descheduler runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeschedulerSettings {
    /// Name of the policy file, for messages.
    pub file: String,
    /// Its content.
    pub text: String,
    /// From the end of one round to the next, in milliseconds; 0: only when it is told to.
    pub interval_ms: i64,
    /// Whether plugins that are configured and enabled nowhere are enabled.
    pub auto_enable: bool,
    /// Whether nobody is evicted, and what would be done is only said.
    pub dry_run: bool,
    /// What it knows of where pods will go.
    pub planning: Planning,
    /// How long what was moved is left in peace, in milliseconds.
    pub cool_down_ms: i64,
    /// How long room is kept for a pod that takes the place of another, in milliseconds.
    pub keep_ms: i64,
    /// Whether evictions may be taken on by somebody who moves the pod in their own time (EvictionsInBackground).
    #[serde(default)]
    pub in_background: bool,
}

/// Annotation of a pod whose eviction may be taken on by somebody else.
pub const REQUEST_EVICT_ONLY: &str = "descheduler.alpha.kubernetes.io/request-evict-only";
/// Annotation of a pod that somebody else is moving.
pub const EVICTION_IN_PROGRESS: &str = "descheduler.alpha.kubernetes.io/eviction-in-progress";
/// What a refusal says with which somebody takes an eviction on.
pub const TAKEN_ON: &str = "Eviction triggered evacuation";
/// How long that is believed of a pod without the annotation [`EVICTION_IN_PROGRESS`], in milliseconds.
pub const BELIEVED_MS: i64 = 600_000;

impl Default for DeschedulerSettings {
    fn default() -> Self {
        Self {
            file: String::new(),
            text: String::new(),
            interval_ms: 0,
            auto_enable: false,
            dry_run: false,
            planning: Planning::Kept,
            cool_down_ms: 1_800_000,
            keep_ms: 300_000,
            in_background: false,
        }
    }
}

/// What a descheduler knows of where pods will go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Planning {
    /// Nothing: pods are evicted, and come back wherever that may be.
    Off,
    /// Where the scheduler would place them now. That it does so is not certain.
    Foreseen,
    /// Where the scheduler will place them: it is the same program, and keeps the room for them.
    #[default]
    Kept,
}

/// A descheduler, made.
pub struct BuiltDescheduler {
    /// What it does in one round.
    pub action: Box<dyn Action>,
    /// What is odd about its policy, rendered with its place.
    pub warnings: Vec<String>,
    /// Where it takes the use of nodes and pods from.
    pub usage: UsageSource,
}

/// Makes a descheduler, or says what is wrong with its policy, rendered with its place.
pub type BuildDescheduler = fn(&DeschedulerSettings) -> Result<BuiltDescheduler, Vec<String>>;

/// Where the use of nodes and pods comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageSource {
    /// Whether the metrics server is asked.
    pub metrics_server: bool,
    /// What Prometheus is asked.
    pub prometheus: Option<PrometheusSource>,
}

/// What Prometheus is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrometheusSource {
    /// Its address.
    pub url: String,
    /// The query; its answer has a label `instance` with the node's name, and values from 0 to 1.
    pub query: String,
    /// Namespace and name of the secret with the token; `None`: the token of the service account.
    pub token: Option<(String, String)>,
}

/// What became of one pod in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descheduled {
    /// The pod.
    pub pod: PodRef,
    /// Its node.
    pub node: Name,
    /// The profile of the policy.
    pub profile: String,
    /// The strategy that wanted it to go.
    pub strategy: &'static str,
    /// Why.
    pub why: String,
    /// Where the pod that takes its place is to go, as far as is known.
    pub destination: Option<Name>,
    /// Whether it goes, or what keeps it.
    pub result: DescheduleResult,
}

/// Whether a pod goes, or what keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescheduleResult {
    /// It is evicted.
    Evicted,
    /// It would be evicted, but for the dry run.
    DryRun,
    /// It stays; a word or two that are the same for all such pods.
    Refused(&'static str),
}

impl DescheduleResult {
    /// As metrics have it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Evicted => "success",
            Self::DryRun => "dry run",
            Self::Refused(why) => why,
        }
    }
}
