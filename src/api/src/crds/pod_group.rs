//! Volcano's PodGroup.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;

use super::schema::{DNS_NAME, Rule, amounts, atomic, count, counts, int32, label_selector, time};
use super::{fields, object};
use crate::quantities::ResourceList;

object! {
    /// Pods that are scheduled together.
    PodGroup: "scheduling.volcano.sh" "v1beta1" "PodGroup" "podgroups" NamespaceResourceScope {
        /// What is wanted.
        spec: PodGroupFields,
        /// What is.
        status: PodGroupStatusFields,
    }
}

fields! {
    /// What is wanted.
    #[derive(JsonSchema)]
    PodGroupFields {
        /// Pods needed to start: fewer are not placed at all.
        #[schemars(transform = count)]
        min_member: i64,
        /// Pods needed of each role, by the value of their `volcano.sh/task-spec`. Disregarded if the sum is above minMember.
        #[schemars(schema_with = "counts")]
        min_task_member: BTreeMap<String, i64>,
        /// The queue that it waits in.
        #[schemars(length(max = 253), regex(pattern = DNS_NAME), extend("default" = "default"))]
        queue: String,
        /// The PriorityClass that its place in the queue follows from.
        #[schemars(length(max = 253))]
        priority_class_name: String,
        /// What its minimum needs. It is admitted when its queue and the cluster have that much to give; without, at
        /// once.
        #[schemars(schema_with = "amounts")]
        min_resources: ResourceList,
        /// How near to each other in the network its pods have to be.
        network_topology: TopologyFields,
        /// Groups among its pods, each with a minimum and a constraint on the network of its own.
        sub_group_policy: Vec<SubGroupFields>,
    }

    /// How near to each other in the network pods have to be.
    #[derive(JsonSchema)]
    #[schemars(transform = Rule::new(
        "!(has(self.highestTierAllowed) && has(self.highestTierName) && self.highestTierName != '')",
        "set highestTierAllowed or highestTierName, not both",
    ))]
    TopologyFields {
        /// `hard`: pods wait rather than being placed too far apart. `soft`: near if it can be.
        #[schemars(extend("enum" = ["hard", "soft"], "default" = "hard"))]
        mode: String,
        /// The highest tier of HyperNodes that the pods may be spread over.
        #[schemars(range(min = 0))]
        highest_tier_allowed: i64,
        /// The same by the tier's name.
        #[schemars(length(max = 253))]
        highest_tier_name: String,
    }

    /// A way to divide the pods of a PodGroup into groups.
    #[derive(JsonSchema)]
    SubGroupFields {
        /// Its name.
        #[schemars(length(max = 253))]
        name: String,
        /// How near to each other in the network the pods of each group have to be.
        network_topology: TopologyFields,
        /// Pods that a group needs to start.
        #[schemars(range(min = 1), transform = int32, extend("default" = 1))]
        sub_group_size: i64,
        /// Groups that the PodGroup needs to start.
        #[schemars(transform = count, extend("default" = 0))]
        min_sub_groups: i64,
        /// The pods that it is about; all if missing.
        #[schemars(schema_with = "label_selector")]
        label_selector: LabelSelector,
        /// Labels whose values tell the groups apart.
        #[schemars(transform = atomic)]
        match_label_keys: Vec<String>,
    }

    /// What is.
    #[derive(JsonSchema)]
    PodGroupStatusFields {
        /// How far it has come.
        #[schemars(extend("enum" = ["Pending", "Running", "Unknown", "Inqueue", "Completed"]))]
        phase: String,
        /// What the scheduler found out about it.
        conditions: Vec<GroupConditionFields>,
        /// Its pods that run.
        #[schemars(transform = count)]
        running: i64,
        /// Its pods that ended well.
        #[schemars(transform = count)]
        succeeded: i64,
        /// Its pods that failed.
        #[schemars(transform = count)]
        failed: i64,
    }

    /// What was found out about a PodGroup.
    #[derive(JsonSchema)]
    GroupConditionFields {
        /// What it is about: `Unschedulable` or `Scheduled`.
        r#type: String,
        /// `True`, `False` or `Unknown`.
        status: String,
        /// The session that found it.
        #[serde(rename = "transitionID")]
        transition_id: String,
        /// Since when.
        #[schemars(schema_with = "time")]
        last_transition_time: String,
        /// Why, in a word.
        reason: String,
        /// Why, for people.
        message: String,
    }
}
