//! What happens in a cluster, as the state is told.

use serde::{Deserialize, Serialize};

use crate::budget::BudgetSpec;
use crate::dra::{DeviceClassSpec, ResourceClaimSpec, ResourceSliceSpec};
use crate::elastic_quota::ElasticQuotaSpec;
use crate::job::PodGroupSpec;
use crate::name::Name;
use crate::node::NodeSpec;
use crate::pod::PodSpec;
use crate::pod_affinity::{NamespaceSpec, Workload, WorkloadSpec};
use crate::priority::PriorityClassSpec;
use crate::queue::QueueSpec;
use crate::resources::Amounts;
use crate::storage::{StorageKey, StorageObject};
use crate::usage::{NodeUsageSpec, PodUsageSpec};

/// One change of the cluster. Every event carries the whole object, so that a repeated one does no harm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A node is new or has changed.
    Node(NodeSpec),
    /// A node is gone.
    NodeGone(Name),
    /// A pod is new or has changed.
    Pod(PodSpec),
    /// The pod with this UID is gone.
    PodGone(Name),
    /// A PodGroup is new or has changed.
    PodGroup(PodGroupSpec),
    /// A PodGroup is gone.
    PodGroupGone {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// A queue is new or has changed.
    Queue(QueueSpec),
    /// A queue is gone.
    QueueGone(Name),
    /// A PriorityClass is new or has changed.
    PriorityClass(PriorityClassSpec),
    /// A PriorityClass is gone.
    PriorityClassGone(Name),
    /// A ResourceQuota is new, or its spec or use has changed.
    Quota(QuotaSpec),
    /// A ResourceQuota is gone.
    QuotaGone {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// A namespace is new, or its labels have changed.
    Namespace(NamespaceSpec),
    /// A namespace is gone.
    NamespaceGone(Name),
    /// A workload or service is new, or its selector has changed.
    Workload(WorkloadSpec),
    /// A workload or service is gone.
    WorkloadGone {
        /// Its namespace.
        namespace: Name,
        /// Its kind and name.
        workload: Workload,
    },
    /// A claim, a volume or another object of storage is new or has changed.
    Storage(StorageObject),
    /// An object of storage is gone.
    StorageGone(StorageKey),
    /// An ElasticQuota is new or has changed.
    ElasticQuota(ElasticQuotaSpec),
    /// An ElasticQuota is gone.
    ElasticQuotaGone {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// A PodDisruptionBudget is new, or its spec or status has changed.
    Budget(BudgetSpec),
    /// A PodDisruptionBudget is gone.
    BudgetGone {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// A ResourceClaim is new or has changed.
    ResourceClaim(Box<ResourceClaimSpec>),
    /// A ResourceClaim is gone.
    ResourceClaimGone {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// A ResourceSlice is new or has changed.
    ResourceSlice(ResourceSliceSpec),
    /// A ResourceSlice is gone.
    ResourceSliceGone(Name),
    /// A DeviceClass is new or has changed.
    DeviceClass(DeviceClassSpec),
    /// A DeviceClass is gone.
    DeviceClassGone(Name),
    /// The use of a node was measured.
    NodeUsage(NodeUsageSpec),
    /// The use of pods was measured: of all that are measured at all.
    PodUsage(Vec<PodUsageSpec>),
}

/// A ResourceQuota with its current use, as the edge reports it. Keys stay as written: `requests.cpu` is not `cpu`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaSpec {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its limits.
    pub hard: Amounts,
    /// What counts against them now.
    pub used: Amounts,
}

/// Something about an object that cannot be as it is. The rest of the cluster is not touched by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The object: `kind namespace/name`.
    pub object: String,
    /// What is wrong and what to do.
    pub message: String,
}
