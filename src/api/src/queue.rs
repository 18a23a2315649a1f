//! Queues.
//!
//! A queue with an amount that cannot be read stays as it was: a limit that is ignored lets too much in. Limits in node
//! groups are the exception, since they have their own place for the reason why they cannot be read.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::queue::{HierarchyLevel, NodeGroupAffinity, QueueState, ROOT_QUEUE};
use krafla_model::{Amounts, Name, Problem, QueueSpec};
use serde_json::Value;

use crate::converter::Converter;
use crate::crds::{GroupLists, Queue, QueueAffinity, QueueFields};
use crate::duration::shown;
use crate::keys;
use crate::quantities::{self, ResourceList};
use crate::report::{Report, annotation};

/// The largest weight that Volcano's schema allows.
const MAX_WEIGHT: u32 = 65_535;

impl Converter {
    /// Reads a queue.
    pub fn queue(&mut self, queue: &Queue) -> (Option<QueueSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("queue", &queue.metadata);
        let read = self.read_queue(queue, &mut report);
        (read, report.into_problems())
    }

    fn read_queue(&mut self, queue: &Queue, report: &mut Report<'_>) -> Option<QueueSpec> {
        let identity = self.identity(&queue.metadata, report)?;
        let nothing = QueueFields::default();
        let fields = queue.spec.as_ref().unwrap_or(&nothing);
        let guarantee = fields.guarantee.as_ref().and_then(|guarantee| guarantee.resource.as_ref());
        // All three are read before any is refused, so that all of their problems are told at once.
        let capability = self.queue_amounts("spec.capability", fields.capability.as_ref(), report);
        let deserved = self.queue_amounts("spec.deserved", fields.deserved.as_ref(), report);
        let guarantee = self.queue_amounts("spec.guarantee.resource", guarantee, report);
        let limits = annotation(&queue.metadata, keys::NODE_GROUP_LIMITS).map(|text| self.node_group_limits(text));
        let (node_group_limits, node_group_limits_error) = match limits.transpose() {
            Ok(limits) => (limits.unwrap_or_default(), None),
            Err(why) => (Vec::new(), Some(format!("{}: {why}", keys::NODE_GROUP_LIMITS))),
        };
        Some(QueueSpec {
            name: identity.name,
            created: identity.created,
            weight: weight(fields.weight, report),
            parent: self.names.intern(fields.parent.as_deref().unwrap_or_default()),
            priority: priority(fields.priority, report),
            reclaimable: fields.reclaimable.unwrap_or(true),
            state: state(queue.status.as_ref().and_then(|status| status.state.as_deref()), report),
            capability: capability?,
            deserved: deserved?,
            guarantee: guarantee?,
            node_groups: fields.affinity.as_ref().map(|affinity| self.node_groups(affinity)),
            node_group_limits,
            node_group_limits_error,
            hierarchy: self.hierarchy(&queue.metadata, report),
        })
    }

    fn queue_amounts(&mut self, field: &str, list: Option<&ResourceList>, report: &mut Report<'_>) -> Option<Amounts> {
        let Some(list) = list else { return Some(Amounts::default()) };
        for name in list.keys().filter(|name| !quantities::is_of_nodes(name)) {
            let name = shown(name);
            report.say(format_args!("{field} names `{name}`, which no node offers; it is ignored"));
        }
        let known = list.iter().filter(|(name, _)| quantities::is_of_nodes(name));
        let known: ResourceList = known.map(|(name, amount)| (name.clone(), amount.clone())).collect();
        let (amounts, complete) = quantities::reported(
            Some(&known),
            format_args!("{field}"),
            "the queue stays as it was",
            &mut self.names,
            report,
        );
        complete.then_some(amounts)
    }

    fn node_groups(&mut self, affinity: &QueueAffinity) -> NodeGroupAffinity {
        let mut read = |list: Option<&Vec<String>>| list.into_iter().flatten().map(|g| self.names.intern(g)).collect();
        let nothing = GroupLists::default();
        let seeks = affinity.node_group_affinity.as_ref().unwrap_or(&nothing);
        let avoids = affinity.node_group_anti_affinity.as_ref().unwrap_or(&nothing);
        NodeGroupAffinity {
            required: read(seeks.required_during_scheduling_ignored_during_execution.as_ref()),
            preferred: read(seeks.preferred_during_scheduling_ignored_during_execution.as_ref()),
            anti_required: read(avoids.required_during_scheduling_ignored_during_execution.as_ref()),
            anti_preferred: read(avoids.preferred_during_scheduling_ignored_during_execution.as_ref()),
        }
    }

    /// Reads `root/eng/dev` with `100/50/50`. A path that cannot be read counts as none; a weight that is missing or no
    /// number counts as 1.
    fn hierarchy(&mut self, meta: &ObjectMeta, report: &mut Report<'_>) -> Vec<HierarchyLevel> {
        let path = annotation(meta, keys::HIERARCHY).unwrap_or_default();
        let weights = annotation(meta, keys::HIERARCHY_WEIGHTS).unwrap_or_default();
        if path.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = path.split('/').collect();
        if names[0] != ROOT_QUEUE || names.iter().any(|name| name.is_empty()) {
            let path = shown(path);
            report.say(format_args!(
                "{} is `{path}`, no path from `{ROOT_QUEUE}` of names between slashes; it is ignored",
                keys::HIERARCHY
            ));
            return Vec::new();
        }
        let given: Vec<&str> = weights.split('/').filter(|_| !weights.is_empty()).collect();
        if given.len() != names.len() {
            report.say(format_args!(
                "{} has {} weights for the {} levels of {}; those that are missing count as 1",
                keys::HIERARCHY_WEIGHTS,
                given.len(),
                names.len(),
                keys::HIERARCHY
            ));
        }
        let mut levels = Vec::with_capacity(names.len());
        for (i, name) in names.into_iter().enumerate() {
            let weight = given.get(i).map_or(1.0, |text| hierarchy_weight(text, report));
            levels.push(HierarchyLevel { name: self.names.intern(name), weight: weight.into() });
        }
        levels
    }

    /// Reads `{"group": {"cpu": "3"}}`.
    fn node_group_limits(&mut self, text: &str) -> Result<Vec<(Name, Amounts)>, String> {
        let groups: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(text)
            .map_err(|error| format!("not JSON of the form {{\"group\": {{\"cpu\": \"3\"}}}}: {error}"))?;
        let mut limits = Vec::new();
        for (group, list) in groups {
            let mut amounts = Amounts::default();
            for (resource, value) in list {
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                amounts
                    .set(&self.names.intern(&resource), &text)
                    .map_err(|error| format!("`{}` of group `{}`: {error}", shown(&resource), shown(&group)))?;
            }
            limits.push((self.names.intern(&group), amounts));
        }
        Ok(limits)
    }
}

fn weight(given: Option<i64>, report: &mut Report<'_>) -> u32 {
    match given.map(u32::try_from) {
        None => 1,
        Some(Ok(weight @ 1..=MAX_WEIGHT)) => weight,
        _ => {
            let given = given.unwrap_or_default();
            report.say(format_args!("spec.weight is {given}, not in 1 to {MAX_WEIGHT}; it counts as 1"));
            1
        }
    }
}

fn hierarchy_weight(text: &str, report: &mut Report<'_>) -> f64 {
    text.trim().parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 1.0).unwrap_or_else(|| {
        let text = shown(text);
        report.say(format_args!("{} has `{text}`, no number from 1 on; it counts as 1", keys::HIERARCHY_WEIGHTS));
        1.0
    })
}

fn priority(given: Option<i64>, report: &mut Report<'_>) -> i32 {
    let given = given.unwrap_or(0);
    i32::try_from(given).unwrap_or_else(|_| {
        report.say(format_args!("spec.priority is {given}, out of range; it counts as 0"));
        0
    })
}

fn state(text: Option<&str>, report: &mut Report<'_>) -> QueueState {
    match text {
        None | Some("" | "Open") => QueueState::Open,
        Some("Closing") => QueueState::Closing,
        Some("Closed") => QueueState::Closed,
        Some("Unknown") => QueueState::Unknown,
        Some(other) => {
            let other = shown(other);
            report.say(format_args!("status.state is `{other}`; states are Open, Closing, Closed and Unknown"));
            QueueState::Unknown
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(queue: Value) -> (Option<QueueSpec>, Vec<String>) {
        let queue: Queue = serde_json::from_value(queue).expect("a queue");
        let (queue, problems) = Converter::new().queue(&queue);
        (queue, problems.into_iter().map(|problem| format!("{}: {}", problem.object, problem.message)).collect())
    }

    #[test]
    fn a_queue_with_everything() {
        let (queue, problems) = read(json!({
            "metadata": {"name": "q", "annotations": {"volcano.sh/nodegroup-resource-limits": "{\"g\": {\"cpu\": \"3\", \"pods\": 4}}"}},
            "spec": {
                "weight": 4, "parent": "p", "priority": 2, "reclaimable": false, "capability": {"cpu": "4", "nvidia.com/gpu": 0},
                "deserved": {"cpu": 2}, "guarantee": {"resource": {"cpu": "1"}},
                "affinity": {
                    "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["a", "b"]},
                    "nodeGroupAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["c"]},
                },
            },
            "status": {"state": "Closing", "allocated": {"cpu": "1"}},
        }));
        assert_eq!(problems, [""; 0]);
        let queue = queue.expect("a queue");
        assert_eq!((queue.weight, queue.parent.as_str(), queue.priority, queue.reclaimable), (4, "p", 2, false));
        assert_eq!(queue.state, QueueState::Closing);
        assert_eq!(queue.capability, Amounts::default().with("cpu", 4_000).with("nvidia.com/gpu", 0));
        assert_eq!(queue.guarantee, Amounts::default().with("cpu", 1_000));
        let groups = queue.node_groups.expect("groups");
        assert_eq!((groups.required.len(), groups.anti_preferred.len(), groups.preferred.len()), (2, 1, 0));
        assert_eq!(queue.node_group_limits, [("g".into(), Amounts::default().with("cpu", 3_000).with("pods", 4))]);
    }

    #[test]
    fn an_empty_queue_is_open_reclaimable_and_of_weight_one() {
        let (queue, problems) = read(json!({"metadata": {"name": "q"}}));
        assert_eq!((queue, problems), (Some(QueueSpec { name: "q".into(), ..QueueSpec::default() }), vec![]));
    }

    #[test]
    fn a_queue_without_a_state_is_open() {
        for status in [json!(null), json!({}), json!({"state": null}), json!({"state": ""}), json!({"allocated": {}})] {
            let (queue, problems) = read(json!({"metadata": {"name": "q"}, "status": status}));
            assert_eq!((queue.map(|queue| queue.state), problems), (Some(QueueState::Open), vec![]), "{status}");
        }
    }

    #[test]
    fn each_unreadable_field_is_reported_with_what_follows() {
        for (spec, kept, part) in [
            (json!({"capability": {"cpu": "x"}}), false, "spec.capability.cpu is `x`"),
            (json!({"deserved": {"cpu": "x"}}), false, "the queue stays as it was"),
            (json!({"guarantee": {"resource": {"cpu": "x"}}}), false, "spec.guarantee.resource.cpu"),
            (json!({"capability": {"gpu": 4}}), true, "names `gpu`, which no node offers"),
            (json!({"weight": 0}), true, "spec.weight is 0"),
            (json!({"weight": -3}), true, "it counts as 1"),
            (json!({"priority": 1_i64 << 40}), true, "out of range"),
        ] {
            let (queue, problems) = read(json!({"metadata": {"name": "q"}, "spec": spec}));
            assert_eq!(queue.is_some(), kept, "{part}");
            assert!(problems.len() == 1 && problems[0].contains(part), "{part}: {problems:?}");
        }
        let (queue, _) = read(json!({"metadata": {"name": "q"}, "status": {"state": "Ajar"}}));
        assert_eq!(queue.map(|queue| queue.state), Some(QueueState::Unknown));
        for limits in ["{", "[]", "{\"g\": {\"cpu\": \"x\"}}"] {
            let annotations = json!({"volcano.sh/nodegroup-resource-limits": limits});
            let (queue, _) = read(json!({"metadata": {"name": "q", "annotations": annotations}}));
            assert!(queue.expect("a queue").node_group_limits_error.is_some(), "{limits}");
        }
    }

    #[test]
    fn a_place_in_the_hierarchy() {
        for (path, weights, want, part) in [
            ("root/eng/dev", "100/50/2.5", "root 100, eng 50, dev 2.5", ""),
            ("root", "1", "root 1", ""),
            ("", "", "", ""),
            ("root/eng/dev", "100/50", "root 100, eng 50, dev 1", "has 2 weights for the 3 levels"),
            ("root/eng", "", "root 1, eng 1", "has 0 weights for the 2 levels"),
            ("root/eng", "1/2/3", "root 1, eng 2", "has 3 weights for the 2 levels"),
            ("root/eng", "100/x", "root 100, eng 1", "has `x`, no number from 1 on"),
            ("root/eng", "100/0.5", "root 100, eng 1", "has `0.5`"),
            ("root/eng", "100/inf", "root 100, eng 1", "has `inf`"),
            ("root//dev", "1/1/1", "", "is `root//dev`, no path from `root`"),
            ("eng/dev", "1/1", "", "it is ignored"),
        ] {
            let annotations = json!({"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights});
            let (queue, problems) = read(json!({"metadata": {"name": "q", "annotations": annotations}}));
            let levels = queue.expect("a queue").hierarchy;
            let levels: Vec<String> = levels.iter().map(|level| format!("{} {}", level.name, level.weight)).collect();
            assert_eq!(levels.join(", "), want, "{path} {weights}");
            assert_eq!(problems.len(), usize::from(!part.is_empty()), "{problems:?}");
            assert!(problems.iter().all(|problem| problem.contains(part)), "{problems:?}");
        }
    }
}
