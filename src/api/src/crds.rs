//! Custom resources that are read: Volcano's PodGroup, Queue and Job, coscheduling's and Kubernetes' PodGroup.
//!
//! Only the fields that are used stand here; all others are ignored, and every field may be missing or null. Numbers
//! are wider than in the schemas, so that one out of range is reported by name and not lost with its object.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

use crate::quantities::ResourceList;

/// Declares structs of optional fields with the names that the API uses.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name { $(
            $(#[$field_doc])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<$type>,
        )* }
    )* };
}

/// Declares an object: metadata, and parts of optional fields.
macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            /// Its metadata.
            pub metadata: ObjectMeta,
            $(
                $(#[$field_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )*
        }
    )* };
}

objects! {
    /// Volcano's PodGroup, `scheduling.volcano.sh/v1beta1`.
    PodGroup {
        /// What is wanted.
        spec: PodGroupFields,
        /// What is.
        status: PhaseField,
    }

    /// Coscheduling's PodGroup, `scheduling.x-k8s.io/v1alpha1`.
    CoschedulingGroup {
        /// What is wanted.
        spec: CoschedulingFields,
        /// What is.
        status: PhaseField,
    }

    /// Kubernetes' own PodGroup, `scheduling.k8s.io`.
    KubernetesGroup {
        /// What is wanted.
        spec: KubernetesGroupFields,
    }

    /// Volcano's Queue, `scheduling.volcano.sh/v1beta1`.
    Queue {
        /// What is wanted.
        spec: QueueFields,
        /// What is.
        status: QueueStatusFields,
    }

    /// Volcano's Job, `batch.volcano.sh/v1alpha1`.
    VolcanoJob {
        /// What is wanted.
        spec: VolcanoJobFields,
    }
}

fields! {
    /// `spec` of a PodGroup.
    PodGroupFields {
        /// Pods needed to start.
        min_member: i64,
        /// Pods needed of each role.
        min_task_member: BTreeMap<String, i64>,
        /// Its queue; `default` if empty.
        queue: String,
        /// Its PriorityClass.
        priority_class_name: String,
        /// What its minimum needs, for admission.
        min_resources: ResourceList,
        /// Its constraint on the network.
        network_topology: TopologyFields,
        /// Its sub-groups.
        sub_group_policy: Vec<SubGroupFields>,
    }

    /// `status` of a PodGroup.
    PhaseField {
        /// Its phase.
        phase: String,
    }

    /// `networkTopology`.
    TopologyFields {
        /// `hard` (also if missing) or `soft`.
        mode: String,
        /// The highest tier that the pods may span.
        highest_tier_allowed: i64,
        /// The same by name.
        highest_tier_name: String,
    }

    /// One `subGroupPolicy`.
    SubGroupFields {
        /// Its name.
        name: String,
        /// The constraint that each sub-group keeps.
        network_topology: TopologyFields,
        /// Pods that a sub-group needs to start; 1 if missing.
        sub_group_size: i64,
        /// Sub-groups that the job needs to start; 0 if missing.
        min_sub_groups: i64,
        /// Which pods it takes; all if missing.
        label_selector: LabelSelector,
        /// Labels whose values tell the sub-groups apart.
        match_label_keys: Vec<String>,
    }

    /// `spec` of coscheduling's PodGroup.
    CoschedulingFields {
        /// Pods needed to start.
        min_member: i64,
        /// What its minimum needs.
        min_resources: ResourceList,
        /// How long its pods may wait for each other at Permit. A session places them at once, so nothing waits.
        schedule_timeout_seconds: i64,
    }

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

    /// `spec` of a Queue.
    QueueFields {
        /// Its part of what is shared by weight; 1 if missing.
        weight: i64,
        /// What it may use at most.
        capability: ResourceList,
        /// What it is due.
        deserved: ResourceList,
        /// What is kept for it.
        guarantee: GuaranteeField,
        /// Whether others may take back what it uses beyond its due; yes if missing.
        reclaimable: bool,
        /// Its parent; `root` if empty.
        parent: String,
        /// Order among queues.
        priority: i64,
        /// Which node groups it may and would use.
        affinity: QueueAffinity,
    }

    /// `guarantee` of a Queue.
    GuaranteeField {
        /// The amounts.
        resource: ResourceList,
    }

    /// `affinity` of a Queue.
    QueueAffinity {
        /// Groups that it seeks.
        node_group_affinity: GroupLists,
        /// Groups that it avoids.
        node_group_anti_affinity: GroupLists,
    }

    /// Lists of node groups.
    GroupLists {
        /// Without exception.
        required_during_scheduling_ignored_during_execution: Vec<String>,
        /// If it can be helped.
        preferred_during_scheduling_ignored_during_execution: Vec<String>,
    }

    /// `status` of a Queue.
    QueueStatusFields {
        /// `Open`, `Closed`, `Closing` or `Unknown`.
        state: String,
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

/// Says in one place which API group and version an object of ours has.
pub(crate) mod groups {
    /// Group of PodGroups and Queues.
    pub(crate) const VOLCANO: &str = "scheduling.volcano.sh/";
    /// Group of coscheduling's PodGroups.
    pub(crate) const COSCHEDULING: &str = "scheduling.x-k8s.io/";
    /// Group of Kubernetes' PodGroups.
    pub(crate) const KUBERNETES: &str = "scheduling.k8s.io/";
    /// Group of Volcano's Jobs.
    pub(crate) const VOLCANO_BATCH: &str = "batch.volcano.sh/";
}
