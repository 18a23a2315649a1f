//! What comes into the world: jobs with the lives that their pods will have.

use std::sync::Arc;

use krafla_model::dra::PodClaim;
use krafla_model::storage::ClaimSpec;
use krafla_model::{Name, PodDetails, PodGroupSpec, PodShape};

/// Who makes a pod again that was evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controller {
    /// Nobody.
    #[default]
    None,
    /// A controller, one second later, under the same name.
    Recreate,
}

/// What a pod's life will be once it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// How long it runs, in milliseconds; `None`: for ever.
    pub runtime_ms: Option<i64>,
    /// How long its owner says that it will run.
    pub estimate_ms: Option<i64>,
    /// From eviction to its end; `None`: the world's default.
    pub grace_ms: Option<i64>,
    /// Who makes it again.
    pub controller: Controller,
}

/// One pod of a submission.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// Its name.
    pub name: Name,
    /// What it asks for.
    pub shape: Arc<PodShape>,
    /// Its priority; `None`: that of its PriorityClass, as admission fills it in.
    pub priority: Option<i32>,
    /// Its scheduling gates.
    pub gates: Vec<Name>,
    /// The node that it was made for, by a manifest.
    pub node: Option<Name>,
    /// Whether it is for a scheduler of ours; others are only seen once they have a node.
    pub ours: bool,
    /// What its life will be.
    pub life: Life,
    /// For how long those ran in whose place it is made, in milliseconds.
    pub attained_ms: Option<i64>,
    /// What a descheduler asks about it.
    pub details: Option<Arc<PodDetails>>,
    /// How long it takes to get where they were, in milliseconds.
    pub restart_ms: i64,
    /// Its claims of devices.
    pub device_claims: Vec<PodClaim>,
    /// Claims that are made with it, if they are not there.
    pub claims: Vec<ClaimSpec>,
}

impl Submitted {
    /// A pod that begins at the beginning.
    pub fn new(name: Name, shape: Arc<PodShape>, life: Life) -> Self {
        Self {
            name,
            shape,
            priority: None,
            gates: Vec::new(),
            node: None,
            ours: true,
            life,
            attained_ms: None,
            details: None,
            restart_ms: 0,
            device_claims: Vec::new(),
            claims: Vec::new(),
        }
    }
}

/// A job: a PodGroup and its pods.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The PodGroup.
    pub group: PodGroupSpec,
    /// Whether the PodGroup is made; if not, the pods name one that does not exist.
    pub announced: bool,
    /// Whether pods for a PodGroup that exists already join it; otherwise a second one of the name is a mistake.
    pub joins: bool,
    /// Whether the PodGroup was made by a controller for pods without one, and goes with the last of them.
    pub goes_with_pods: bool,
    /// Its pods.
    pub pods: Vec<Submitted>,
    /// What kind of application it is, for reports; empty if unknown.
    pub kind: String,
}
