//! Objects that are read and that others define: Kubernetes' PodGroup and Volcano's Job.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{TopologyFields, fields};

/// Kubernetes' own PodGroup, `scheduling.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct KubernetesGroup {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: Option<KubernetesGroupFields>,
}

/// Volcano's Job, `batch.volcano.sh/v1alpha1`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolcanoJob {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: Option<VolcanoJobFields>,
}

fields! {
    /// `spec` of Kubernetes' PodGroup.
    KubernetesGroupFields {
        /// How its pods are placed.
        scheduling_policy: KubernetesPolicyFields,
        /// Its PriorityClass.
        priority_class_name: String,
    }

    /// `schedulingPolicy` of Kubernetes' PodGroup: a gang, or each pod for itself.
    KubernetesPolicyFields {
        /// All or nothing.
        gang: KubernetesGangFields,
    }

    /// `gang` of a `schedulingPolicy`.
    KubernetesGangFields {
        /// Pods needed to start.
        min_count: i64,
    }

    /// `spec` of a Volcano Job.
    VolcanoJobFields {
        /// Pods needed to start; the sum over its tasks if missing.
        min_available: i64,
        /// Its queue; `default` if empty.
        queue: String,
        /// The scheduler of pods that name none.
        scheduler_name: String,
        /// The PriorityClass of the PodGroup, and of pods that name none.
        priority_class_name: String,
        /// Its constraint on the network.
        network_topology: TopologyFields,
        /// Its roles.
        tasks: Vec<VolcanoTaskFields>,
    }

    /// One task of a Volcano Job: a role with a number of equal pods.
    VolcanoTaskFields {
        /// Its name; `default<i>` if empty.
        name: String,
        /// How many pods; 1 if missing.
        replicas: i64,
        /// How many of them the job needs to start; all if missing.
        min_available: i64,
        /// The pods.
        template: PodTemplateSpec,
        /// Its partitions, each a sub-group.
        partition_policy: PartitionFields,
    }

    /// `partitionPolicy` of a task.
    PartitionFields {
        /// Pods of a partition.
        partition_size: i64,
        /// Partitions that the job needs to start; 0 if missing.
        min_partitions: i64,
        /// The constraint that each partition keeps.
        network_topology: TopologyFields,
    }
}
