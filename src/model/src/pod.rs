//! A pod as it arrives from the edge: what scheduling needs of it, and nothing else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dra::{ClaimSource, PodClaim};
use crate::labels::{Labels, NodeSelectorTerm};
use crate::name::Name;
use crate::pod_affinity::{PodTerms, SpreadConstraint, Workload};
use crate::pod_details::PodDetails;
use crate::resources::Amounts;
use crate::storage::PodVolumes;
use crate::taints::Toleration;
use crate::time::Time;

/// Volcano's scheduling gate of a pod that waits for room in its queue, and the annotation by which it asks for that.
pub const QUEUE_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

/// What a pod asks for: its scheduling signature. Pods of one template share one value, and two pods with equal shapes
/// are interchangeable for every node-level plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PodShape {
    /// Its namespace: affinity terms and quotas depend on it.
    pub namespace: Name,
    /// `spec.schedulerName`: the profile that places it.
    pub scheduler_name: Name,
    /// Its labels.
    pub labels: Labels,
    /// Those of its annotations that plugins read.
    pub annotations: Labels,
    /// Its request: containers, init containers and overhead, without the pod slot.
    pub request: Amounts,
    /// Its CPU and memory as resource scores see them, in milli-CPU and bytes, where each container that names none counts
    /// as some. `None`: its request, and 100 milli-CPU or 200 MiB in place of nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scored_request: Option<(i64, i64)>,
    /// The role within its job (Volcano's task spec), empty if none.
    pub role: Name,
    /// `nodeSelector`: all must match.
    pub node_selector: Labels,
    /// Required node affinity: one term must match. `None`: no requirement.
    pub required_affinity: Option<Vec<NodeSelectorTerm>>,
    /// Preferred node affinity with weights of 1 to 100.
    pub preferred_affinity: Vec<(i32, NodeSelectorTerm)>,
    /// Its tolerations.
    pub tolerations: Vec<Toleration>,
    /// Its affinity to other pods.
    pub pod_affinity: PodTerms,
    /// Its anti-affinity to other pods.
    pub pod_anti_affinity: PodTerms,
    /// How it is to be spread; empty if it says nothing itself.
    pub spread: Vec<SpreadConstraint>,
    /// Its controller, if that is of a kind that default spread constraints look at and the pod says nothing itself.
    pub workload: Option<Workload>,
    /// Ports it takes on the node's own addresses.
    pub host_ports: Vec<HostPort>,
    /// Its claims of devices, as its template has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimSource>,
    /// Images of its containers and init containers, each with a tag.
    pub images: Vec<Name>,
    /// Features of the kubelet that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<Name>,
    /// A share of one GPU device in thousandths, 1 to 999; 0 if it asks for whole devices or none. The same amount is
    /// part of `request`.
    pub gpu_share_milli: u16,
    /// Whether it may be evicted for others (`volcano.sh/preemptable`; absent means yes).
    pub protected: bool,
    /// Whether the scheduler takes its queue's gate off it ([`QUEUE_GATE`]) once the queue has room for it.
    pub asks_its_queue: bool,
    /// Whether it may not evict others (`preemptionPolicy: Never`).
    pub never_preempts: bool,
    /// Its PriorityClass, empty if none: some are protected by name.
    pub priority_class: Name,
    /// How long after it was given its node it is not evicted, in milliseconds (`volcano.sh/cooldown-time`); 0 if none.
    pub cooldown_ms: i64,
    /// Whether it may run on nodes that are revocable at some hours (`volcano.sh/revocable-zone`).
    pub revocable: bool,
    /// Whether a controller owns it, and makes another one when it is gone.
    pub controlled: bool,
    /// Its volumes that bind it to places. Pods with claims of their own are not alike.
    #[serde(skip_serializing_if = "PodVolumes::is_empty")]
    pub volumes: PodVolumes,
}

impl PodShape {
    /// Whether where it may run depends on where other pods are, by its own word.
    pub fn looks_at_other_pods(&self) -> bool {
        !(self.pod_affinity.required.is_empty()
            && self.pod_anti_affinity.required.is_empty()
            && self.spread.iter().all(|one| !one.must_hold))
    }
}

/// A port on a node's own address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPort {
    /// The address; empty means all.
    pub ip: Name,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Name,
    /// 1 to 65535.
    pub port: u16,
}

impl HostPort {
    /// Whether both cannot be had on one node.
    pub fn conflicts(&self, other: &Self) -> bool {
        let any = |ip: &Name| ip.is_empty() || ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || any(&self.ip) || any(&other.ip))
    }
}

/// The phase that a pod's owner, the kubelet, reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not started, placed or not.
    #[default]
    Pending,
    /// Started.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// The node does not answer.
    Unknown,
}

/// A pod as the edge reports it. An event carries the whole of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PodSpec {
    /// Its identity; a name that comes back is another pod.
    pub uid: Name,
    /// Its name, unique in its namespace at one time.
    pub name: Name,
    /// The PodGroup that it belongs to, in its own namespace.
    pub group: Option<Name>,
    /// What it asks for.
    pub shape: Arc<PodShape>,
    /// When it was made.
    pub created: Time,
    /// Its priority: `spec.priority`, or Volcano's task priority; 1 when neither is given, as in Volcano.
    pub priority: i32,
    /// Scheduling gates that it still carries.
    pub gates: Vec<Name>,
    /// The node that it is bound to.
    pub node: Option<Name>,
    /// The node nominated for it.
    pub nominated: Option<Name>,
    /// Its reported phase.
    pub phase: PodPhase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When it began to run.
    #[serde(default)]
    pub started: Option<Time>,
    /// For how long those ran whose work it goes on with, in milliseconds; `None` if nobody says.
    #[serde(default)]
    pub attained_ms: Option<i64>,
    /// What only a descheduler asks; `None` where nobody reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Arc<PodDetails>>,
    /// Its claims of devices. One that turned out not to be needed is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<PodClaim>,
    /// When it was given its node (`PodScheduled` turned true).
    #[serde(default)]
    pub scheduled_at: Option<Time>,
}

impl PodSpec {
    /// Its namespace.
    pub fn namespace(&self) -> &Name {
        &self.shape.namespace
    }
}
