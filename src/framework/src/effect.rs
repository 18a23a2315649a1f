//! What a session decided, for a shell to carry out.

use std::fmt;
use std::sync::Arc;

use krafla_model::storage::ClaimChoice;
use krafla_model::{Amounts, ClusterState, JobPhase, Name, TaskId};
use serde::{Deserialize, Serialize};

use crate::share::RelativeShare;

/// A pod, by identity and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodRef {
    /// Its identity.
    pub uid: Name,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl PodRef {
    /// The pod of a task.
    pub fn of(cluster: &ClusterState, task: TaskId) -> Self {
        let pod = cluster.task(task);
        Self { uid: pod.uid.clone(), namespace: cluster.namespace_of(task).clone(), name: pod.name.clone() }
    }
}

impl fmt::Display for PodRef {
    /// `namespace/name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Why a pod is evicted, and for whom. Nobody who is evicted for others could be spared: with any one of the evictions of
/// one decision undone, its beneficiaries would not fit where they are to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvictionCertificate {
    /// The action that decided it.
    pub action: String,
    /// The job that gets the room, `namespace/name`; empty if there is a cause instead.
    pub beneficiary: String,
    /// Its pods that will run, all of one decision, each with its node.
    pub placements: Arc<[(PodRef, Name)]>,
    /// The node where the room is made.
    pub node: Name,
    /// For a pod that is moved: the node where room is kept for the one that takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Name>,
    /// Why it goes although nobody gets its room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// How long it may take to end, in seconds, if that is not for the pod to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<u32>,
    /// Whether an empty answer of the plugins of one tier handed the victims over to the next, as in Volcano.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub volcano_votes: bool,
    /// What the decision does to the shares of the queues: of the one that gains, and of the victim's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareMove>,
}

/// Why a pod should not be where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The plugin that says so.
    pub plugin: String,
    /// Why, with the numbers.
    pub why: String,
}

/// How a queue's share moves with a decision: its own, or, where branches of queues are compared, that of its branch where
/// it parts from the other's, of the resource in which the two come closest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareMove {
    /// The queue.
    pub queue: Name,
    /// Its share before.
    pub before: RelativeShare,
    /// Its share afterwards.
    pub after: RelativeShare,
}

/// What one plugin chose for the claims of a pod, to be written before the bind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimsToBind {
    /// The plugin.
    pub plugin: Name,
    /// How long it may take until all of them are bound, in milliseconds.
    pub timeout_ms: u64,
    /// The choices, each for one claim in the pod's namespace.
    pub choices: Vec<ClaimChoice>,
}

/// One effect. Effects on one object are carried out in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Bind a pod to a node.
    Bind {
        /// The pod.
        pod: PodRef,
        /// The node.
        node: Name,
        /// Plugins that take part on the way, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        plugins: Vec<Name>,
        /// What plugins chose for the pod's claims, to be written on the way.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        claims: Vec<ClaimsToBind>,
    },
    /// Evict a pod.
    Evict {
        /// The pod.
        pod: PodRef,
        /// Why.
        certificate: EvictionCertificate,
        /// Whether it is deleted, as kube-scheduler does, so that disruption budgets are only a preference.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        delete: bool,
    },
    /// Take the gate of its queue off a pod, which has no other.
    OpenGate {
        /// The pod.
        pod: PodRef,
    },
    /// Take the devices of a claim back that nobody uses.
    Deallocate {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// Its identity.
        uid: Name,
    },
    /// Write a PodGroup's phase and counts.
    JobStatus {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// Its phase.
        phase: JobPhase,
        /// Pods that run.
        running: u32,
        /// Pods that ended well.
        succeeded: u32,
        /// Pods that ended badly.
        failed: u32,
    },
    /// Write a PodGroup's condition.
    JobCondition {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// `Unschedulable` or `Scheduled`.
        kind: String,
        /// The stable reason.
        reason: String,
        /// The sentence.
        message: String,
    },
    /// Write why a pod waits, as its condition `PodScheduled`, which is then `False`.
    PodCondition {
        /// The pod.
        pod: PodRef,
        /// `Unschedulable`, or `SchedulerError` for a refused bind.
        reason: String,
        /// The sentence.
        message: String,
    },
    /// Write which node a pod will get once what terminates there is gone; none any more, if `None`.
    Nominate {
        /// The pod.
        pod: PodRef,
        /// The node.
        node: Option<Name>,
    },
    /// Write what a queue and those below it hold.
    QueueStatus {
        /// Its name.
        name: Name,
        /// What their placed pods hold.
        allocated: Amounts,
    },
    /// Emit an event.
    Event {
        /// What it is about.
        about: Subject,
        /// `true` for a Warning.
        warning: bool,
        /// The stable reason.
        reason: String,
        /// The sentence.
        message: String,
    },
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Subject {
    /// A pod.
    Pod(PodRef),
    /// A PodGroup.
    Job {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// The scheduler itself.
    Scheduler,
}

/// Evictions of one session, by what they are for: a certificate, and who goes; in the order of the decisions. Those of
/// one cause are together.
pub fn by_beneficiary(decisions: &[Decision]) -> Vec<(&EvictionCertificate, Vec<TaskId>)> {
    let mut groups: Vec<(&EvictionCertificate, Vec<TaskId>)> = Vec::new();
    for decision in decisions {
        let Decision::Evict(victim, certificate) = decision else { continue };
        let same = |(known, _): &&mut (&EvictionCertificate, Vec<TaskId>)| {
            (&known.beneficiary, &known.placements, &known.cause)
                == (&certificate.beneficiary, &certificate.placements, &certificate.cause)
        };
        match groups.iter_mut().find(same) {
            Some((_, victims)) => victims.push(*victim),
            None => groups.push((certificate, vec![*victim])),
        }
    }
    groups
}

/// A decision in terms of the model, as a statement commits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This task is to be bound where the state says it is.
    Bind(TaskId),
    /// This task is to be evicted.
    Evict(TaskId, EvictionCertificate),
    /// This task is to lose the gate of its queue, which has let it through.
    OpenGate(TaskId),
    /// This claim of devices, which nobody uses, is to lose them.
    Deallocate {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// Its identity.
        uid: Name,
    },
}
