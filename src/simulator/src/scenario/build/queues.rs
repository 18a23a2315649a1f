//! What do a queue and a priority class of the file come to?

use krafla_model::Event;
use krafla_model::priority::PriorityClassSpec;
use serde_json::json;

use super::super::format::{PriorityClassEntry, QueueEntry};
use super::objects::{VOLCANO, one_of, set};
use super::{Both, Builder};

impl Builder {
    /// A queue, or a change of one that exists.
    pub(super) fn queue(&mut self, change: &QueueEntry) -> Result<Both, String> {
        if change.name.is_empty() {
            return Err("a queue needs a `name`".to_owned());
        }
        let old = self.queues.get(&change.name).cloned().unwrap_or_default();
        let merged = QueueEntry {
            name: change.name.clone(),
            weight: change.weight.or(old.weight),
            parent: change.parent.clone().or(old.parent),
            reclaimable: change.reclaimable.or(old.reclaimable),
            priority: change.priority.or(old.priority),
            state: change.state.clone().or(old.state),
            deserved: change.deserved.clone().or(old.deserved),
            capability: change.capability.clone().or(old.capability),
            guarantee: change.guarantee.clone().or(old.guarantee),
            affinity: change.affinity.clone().or(old.affinity),
            annotations: change.annotations.clone().or(old.annotations),
        };
        let mut spec = json!({
            "weight": merged.weight.unwrap_or(1),
            "reclaimable": merged.reclaimable.unwrap_or(merged.name != "root"),
        });
        set(&mut spec, "parent", merged.parent.as_ref().map(|parent| json!(parent)));
        set(&mut spec, "priority", merged.priority.map(|priority| json!(priority)));
        set(&mut spec, "deserved", merged.deserved.as_ref().map(|list| json!(list)));
        set(&mut spec, "capability", merged.capability.as_ref().map(|list| json!(list)));
        set(&mut spec, "guarantee", merged.guarantee.as_ref().map(|list| json!({ "resource": list })));
        set(&mut spec, "affinity", merged.affinity.clone());
        let manifest = json!({
            "apiVersion": VOLCANO,
            "kind": "Queue",
            "metadata": { "name": merged.name, "annotations": merged.annotations.clone().unwrap_or_default() },
            "spec": spec,
            "status": { "state": merged.state.clone().unwrap_or_else(|| "Open".to_owned()) },
        });
        let queue = krafla_api::json::queue(manifest.clone())?;
        let (spec, problems) = self.converter.queue(&queue);
        let spec = spec.ok_or_else(|| one_of(&problems))?;
        self.notes.extend(problems.iter().map(|problem| format!("{}: {}", problem.object, problem.message)));
        self.queues.insert(change.name.clone(), merged);
        Ok(Both::object(Event::Queue(spec), manifest))
    }
}

pub(super) fn priority_class(name: &str, entry: &PriorityClassEntry) -> PriorityClassSpec {
    match entry {
        PriorityClassEntry::Value(value) => {
            PriorityClassSpec { name: name.into(), value: *value, global_default: false, preempts: true }
        }
        PriorityClassEntry::Full(full) => PriorityClassSpec {
            name: name.into(),
            value: full.value,
            global_default: full.global_default,
            preempts: full.preemption_policy.as_deref() != Some("Never"),
        },
    }
}
