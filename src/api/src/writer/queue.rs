//! Queues.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::queue::{HierarchyLevel, NodeGroupAffinity};
use krafla_model::{Name, QueueSpec};

use super::{amounts, annotations, list, some_amounts, text, time};
use crate::crds::{GroupLists, GuaranteeField, Queue, QueueAffinity, QueueFields, QueueStatusFields};
use crate::keys;

/// Stands for limits that could not be read; it cannot be read either, so that the queue stays as closed as it was.
const UNREADABLE: &str = "unreadable";

/// Writes a queue.
pub fn queue(queue: &QueueSpec) -> Queue {
    let limits = match (&queue.node_group_limits_error, queue.node_group_limits.is_empty()) {
        (Some(_), _) => Some(UNREADABLE.to_owned()),
        (None, true) => None,
        (None, false) => Some(node_group_limits(queue)),
    };
    let guarantee = some_amounts(&queue.guarantee);
    Queue {
        metadata: ObjectMeta {
            name: text(&queue.name),
            creation_timestamp: time(queue.created),
            annotations: annotations([
                (keys::NODE_GROUP_LIMITS, limits),
                (keys::HIERARCHY, levels(queue, |level| level.name.to_string())),
                (keys::HIERARCHY_WEIGHTS, levels(queue, |level| level.weight.to_string())),
            ]),
            ..ObjectMeta::default()
        },
        spec: Some(QueueFields {
            weight: Some(i64::from(queue.weight)),
            capability: some_amounts(&queue.capability),
            deserved: some_amounts(&queue.deserved),
            guarantee: guarantee.map(|list| GuaranteeField { resource: Some(list) }),
            reclaimable: Some(queue.reclaimable),
            parent: text(&queue.parent),
            priority: (queue.priority != 0).then(|| i64::from(queue.priority)),
            affinity: queue.node_groups.as_ref().map(affinity),
            ..QueueFields::default()
        }),
        status: Some(QueueStatusFields {
            state: Some(queue.state.as_str().to_owned()),
            ..QueueStatusFields::default()
        }),
    }
}

/// One part of each level of the place in the hierarchy, between slashes.
fn levels(queue: &QueueSpec, part: impl Fn(&HierarchyLevel) -> String) -> Option<String> {
    let parts: Vec<String> = queue.hierarchy.iter().map(part).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// `{"group": {"cpu": "3"}}`.
fn node_group_limits(queue: &QueueSpec) -> String {
    let of_groups: BTreeMap<String, _> =
        queue.node_group_limits.iter().map(|(group, limits)| (group.to_string(), amounts(limits))).collect();
    serde_json::to_value(of_groups).unwrap_or_default().to_string()
}

fn affinity(groups: &NodeGroupAffinity) -> QueueAffinity {
    let names = |names: &[Name]| list(names.iter().map(ToString::to_string).collect());
    let lists = |required: &[Name], preferred: &[Name]| GroupLists {
        required_during_scheduling_ignored_during_execution: names(required),
        preferred_during_scheduling_ignored_during_execution: names(preferred),
    };
    QueueAffinity {
        node_group_affinity: Some(lists(&groups.required, &groups.preferred)),
        node_group_anti_affinity: Some(lists(&groups.anti_required, &groups.anti_preferred)),
    }
}
