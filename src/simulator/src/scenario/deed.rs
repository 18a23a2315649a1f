//! What happens in a scenario, as objects of the API: for whoever plays it on a cluster. What the simulator takes is a
//! [`Happening`](crate::world::Happening); both are made of one entry of the file.

use serde_json::Value;

use crate::world::{Fault, Pace};

/// Something that is done to a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// An object is made, or takes the place of the one with its name.
    Put(Value),
    /// A job: pods are made, and their PodGroup, if they have one of their own.
    Submit {
        /// The PodGroup.
        group: Option<Value>,
        /// The pods.
        pods: Vec<Value>,
        /// Whether a pod that is lost before it ends is made again.
        recreate: bool,
    },
    /// Something is deleted; a job with its pods.
    Delete(Target),
    /// Somebody who is no scheduler evicts a pod.
    Evict(Target),
    /// The scheduling gates of a pod, or of the pods of a job, are taken off.
    Ungate(Target),
    /// The pods of a job are replaced by those of a new revision.
    Rollout(Target, Pace),
    /// The configuration file gets this content.
    Configure(String),
    /// Something goes wrong.
    Fault(Fault),
}

/// An object that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it is.
    pub kind: TargetKind,
    /// Its namespace; `None`: any.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// What a scenario can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A job: a PodGroup and its pods.
    Job,
    /// A pod.
    Pod,
    /// A node.
    Node,
    /// A queue.
    Queue,
}

impl TargetKind {
    /// What people call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Pod => "pod",
            Self::Node => "node",
            Self::Queue => "queue",
        }
    }
}
