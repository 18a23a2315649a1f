//! Volcano's Queue.

use schemars::JsonSchema;

use super::schema::{DNS_NAME, Rule, amounts, count, has, int32, limits};
use super::{fields, object};
use crate::quantities::ResourceList;

object! {
    /// A queue: a part of the cluster that PodGroups wait for.
    #[schemars(transform = not_its_own_parent())]
    #[schemars(transform = root_keeps("capability"))]
    #[schemars(transform = root_keeps("deserved"))]
    #[schemars(transform = root_keeps("guarantee"))]
    Queue: "scheduling.volcano.sh" "v1beta1" "Queue" "queues" ClusterResourceScope {
        /// What is wanted.
        spec: QueueFields,
        /// What is.
        status: QueueStatusFields,
    }
}

fields! {
    /// What is wanted.
    #[derive(JsonSchema)]
    #[schemars(transform = Rule::at_most("deserved", "capability"))]
    #[schemars(transform = Rule::at_most("guarantee.resource", "deserved"))]
    #[schemars(transform = Rule::at_most("guarantee.resource", "capability"))]
    QueueFields {
        /// Its part of what is shared by weight.
        #[schemars(range(min = 1, max = 65_535), transform = int32, extend("default" = 1))]
        weight: i64,
        /// What it may use at most. A resource that is left out has no limit.
        #[schemars(schema_with = "limits")]
        capability: ResourceList,
        /// What it is due. Others may use it meanwhile, and give it back when it is wanted.
        #[schemars(schema_with = "limits")]
        deserved: ResourceList,
        /// What is kept for it.
        guarantee: GuaranteeField,
        /// Whether others may take back what it uses beyond its due; yes if missing.
        reclaimable: bool,
        /// The queue that it is a part of; `root` if missing.
        #[schemars(length(max = 253), regex(pattern = DNS_NAME))]
        parent: String,
        /// Its place in the order of queues: higher is served first, and gives back last.
        #[schemars(transform = count)]
        priority: i64,
        /// Which groups of nodes it may and would use.
        affinity: QueueAffinity,
        /// How its jobs are taken: `fifo` waits for the first, `traverse` goes on with the next.
        #[schemars(extend("enum" = ["fifo", "traverse"], "default" = "traverse"))]
        dequeue_strategy: String,
        /// A word for people and tools.
        #[schemars(length(max = 253))]
        r#type: String,
        /// Clusters that its jobs may be sent to.
        extend_clusters: Vec<ClusterFields>,
    }

    /// What is kept for a queue.
    #[derive(JsonSchema)]
    GuaranteeField {
        /// The amounts.
        #[schemars(schema_with = "limits")]
        resource: ResourceList,
    }

    /// Which groups of nodes a queue may and would use.
    #[derive(JsonSchema)]
    QueueAffinity {
        /// Groups that it seeks.
        node_group_affinity: GroupLists,
        /// Groups that it avoids.
        node_group_anti_affinity: GroupLists,
    }

    /// Lists of node groups.
    #[derive(JsonSchema)]
    GroupLists {
        /// Without exception.
        required_during_scheduling_ignored_during_execution: Vec<String>,
        /// If it can be helped.
        preferred_during_scheduling_ignored_during_execution: Vec<String>,
    }

    /// A cluster that jobs may be sent to.
    #[derive(JsonSchema)]
    ClusterFields {
        /// Its name.
        name: String,
        /// Its part of the jobs.
        #[schemars(transform = int32)]
        weight: i64,
        /// What it has.
        #[schemars(schema_with = "amounts")]
        capacity: ResourceList,
    }

    /// What is.
    #[derive(JsonSchema)]
    QueueStatusFields {
        /// Whether it takes jobs: `Open`, also if missing; `Closing` and `Closed` take no new ones.
        #[schemars(extend("enum" = ["Open", "Closed", "Closing", "Unknown"]))]
        state: String,
        /// What its pods hold.
        #[schemars(schema_with = "amounts")]
        allocated: ResourceList,
        /// PodGroups in it that are `Unknown`.
        #[schemars(transform = count)]
        unknown: i64,
        /// PodGroups in it that are `Pending`.
        #[schemars(transform = count)]
        pending: i64,
        /// PodGroups in it that are `Running`.
        #[schemars(transform = count)]
        running: i64,
        /// PodGroups in it that are `Inqueue`.
        #[schemars(transform = count)]
        inqueue: i64,
        /// PodGroups in it that are `Completed`.
        #[schemars(transform = count)]
        completed: i64,
        /// What is locked for it.
        reservation: ReservationFields,
    }

    /// What is locked for a queue.
    #[derive(JsonSchema)]
    ReservationFields {
        /// The locked nodes.
        nodes: Vec<String>,
        /// What is idle on them.
        #[schemars(schema_with = "amounts")]
        resource: ResourceList,
    }
}

/// That a queue does not name itself as its parent. One that did before there was this rule may go on, for its status
/// to be written; the root queue may, as in Volcano.
fn not_its_own_parent() -> Rule {
    Rule::new(
        format!(
            "!({}) ||\nself.spec.parent != self.metadata.name || self.metadata.name == 'root' ||\n\
             oldSelf.optMap(old, {} && old.spec.parent == self.spec.parent).orValue(false)",
            has("self", "spec.parent"),
            has("old", "spec.parent"),
        ),
        "a queue cannot be its own parent; name another queue, or leave parent out",
    )
    .at(".spec.parent")
    .also_of_new()
}

/// That the root queue, which stands for the whole cluster, keeps amounts of its spec as they are.
fn root_keeps(field: &str) -> Rule {
    let path = format!("spec.{field}");
    let (now, before) = (has("self", &path), has("oldSelf", &path));
    Rule::new(
        format!(
            "self.metadata.name != 'root' ||\n({now}\n  ? {before} && self.{path} == oldSelf.{path}\n  : !({before}))"
        ),
        format!("the root queue is the whole cluster, so its {field} cannot be changed; set it at a queue below root"),
    )
    .at(format!(".{path}"))
}
