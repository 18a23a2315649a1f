//! The PodGroup of the coscheduling plugin, in kubernetes-sigs/scheduler-plugins.

use schemars::JsonSchema;

use super::schema::{amounts, int32, time};
use super::{fields, object};
use crate::quantities::ResourceList;

object! {
    /// Pods that are scheduled together, as the coscheduling plugin has them.
    CoschedulingGroup: "scheduling.x-k8s.io" "v1alpha1" "PodGroup" "podgroups" NamespaceResourceScope {
        /// What is wanted.
        spec: CoschedulingFields,
        /// What is.
        status: CoschedulingStatusFields,
    }
}

fields! {
    /// What is wanted.
    #[derive(JsonSchema)]
    CoschedulingFields {
        /// Pods needed to start: fewer are not placed at all.
        #[schemars(range(min = 1), transform = int32)]
        min_member: i64,
        /// What its minimum needs.
        #[schemars(schema_with = "amounts")]
        min_resources: ResourceList,
        /// How long its pods may wait for each other with their nodes held. A session places them at once, so that none
        /// waits.
        #[schemars(transform = int32)]
        schedule_timeout_seconds: i64,
    }

    /// What is.
    #[derive(JsonSchema)]
    CoschedulingStatusFields {
        /// How far it has come: `Pending`, `PreScheduling`, `Scheduling`, `Scheduled`, `Running`, `Unknown`, `Finished`
        /// or `Failed`.
        phase: String,
        /// The owners of its pods.
        occupied_by: String,
        /// Its pods that run.
        #[schemars(transform = int32)]
        running: i64,
        /// Its pods that ended well.
        #[schemars(transform = int32)]
        succeeded: i64,
        /// Its pods that failed.
        #[schemars(transform = int32)]
        failed: i64,
        /// When the first of its pods was placed.
        #[schemars(schema_with = "time")]
        schedule_start_time: String,
    }
}
