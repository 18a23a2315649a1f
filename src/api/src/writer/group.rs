//! PodGroups, in Volcano's form.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use krafla_model::PodGroupSpec;
use krafla_model::budget::Aim;
use krafla_model::subgroup::{NetworkTopology, SubGroupPolicy, TopologyMode};

use super::{amounts, annotations, label_requirement, list, share, text, time};
use crate::crds::{PodGroup, PodGroupFields, PodGroupStatusFields, SubGroupFields, TopologyFields};
use crate::keys;

/// Writes a PodGroup.
pub fn pod_group(group: &PodGroupSpec) -> PodGroup {
    let roles = group.min_task_member.iter().map(|(role, min)| (role.to_string(), i64::from(*min)));
    let (min_available, max_unavailable) = match group.stays {
        Some(Aim::MinAvailable(least)) => (Some(share(least)), None),
        Some(Aim::MaxUnavailable(most)) => (None, Some(share(most))),
        None => (None, None),
    };
    PodGroup {
        metadata: ObjectMeta {
            name: text(&group.name),
            namespace: text(&group.namespace),
            uid: text(&group.uid),
            creation_timestamp: time(group.created),
            annotations: annotations([
                (keys::SLA_WAITING_TIME, group.sla_waiting_ms.map(|ms| format!("{ms}ms"))),
                (keys::WEIGHT, (group.weight != 1).then(|| group.weight.to_string())),
                (keys::ESTIMATE, group.estimate_ms.map(|ms| format!("{ms}ms"))),
                (keys::PREEMPTABLE, group.preemptable.map(|may| may.to_string())),
                (keys::JDB_MIN_AVAILABLE, min_available),
                (keys::JDB_MAX_UNAVAILABLE, max_unavailable),
            ]),
            ..ObjectMeta::default()
        },
        spec: Some(PodGroupFields {
            min_member: Some(i64::from(group.min_member)),
            min_task_member: (!group.min_task_member.is_empty()).then(|| roles.collect()),
            queue: text(&group.queue),
            priority_class_name: text(&group.priority_class),
            min_resources: group.min_resources.as_ref().map(amounts),
            network_topology: group.topology.as_ref().map(topology),
            sub_group_policy: list(group.sub_groups.iter().map(sub_group).collect()),
        }),
        status: Some(PodGroupStatusFields {
            phase: Some(group.phase.as_str().to_owned()),
            ..PodGroupStatusFields::default()
        }),
    }
}

fn topology(topology: &NetworkTopology) -> TopologyFields {
    let mode = match topology.mode {
        TopologyMode::Hard => "hard",
        TopologyMode::Soft => "soft",
    };
    TopologyFields {
        mode: Some(mode.to_owned()),
        highest_tier_allowed: topology.highest_tier.map(i64::from),
        highest_tier_name: topology.highest_tier_name.as_ref().and_then(text),
    }
}

fn sub_group(policy: &SubGroupPolicy) -> SubGroupFields {
    let selector = policy.selector.as_ref().map(|selector| LabelSelector {
        match_expressions: list(selector.0.iter().map(label_requirement).collect()),
        match_labels: None,
    });
    SubGroupFields {
        name: text(&policy.name),
        network_topology: policy.topology.as_ref().map(topology),
        sub_group_size: Some(i64::from(policy.size)),
        min_sub_groups: Some(i64::from(policy.min_sub_groups)),
        label_selector: selector,
        match_label_keys: list(policy.match_label_keys.iter().map(ToString::to_string).collect()),
    }
}
