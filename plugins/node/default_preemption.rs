//! `DefaultPreemption`: a pod that fits nowhere may take the room of less important ones.

use krafla_framework::{FailedAttempt, NodePlugin, PostFilter};
use krafla_model::cluster_event::{ActionType, EventResource};
use krafla_model::{ClusterState, TaskId};

use super::preemption::{VictimRule, preempt};

/// See the module.
pub struct DefaultPreemption;

impl NodePlugin for DefaultPreemption {
    fn name(&self) -> &'static str {
        "DefaultPreemption"
    }

    fn post_filter(&self, attempt: &mut FailedAttempt<'_>) -> PostFilter {
        preempt(attempt, &LessImportant)
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        Some(&[(EventResource::Pod, ActionType::DELETE)])
    }
}

/// Whoever has a lower priority.
struct LessImportant;

impl VictimRule for LessImportant {
    fn may_go(&self, cluster: &ClusterState, task: TaskId, victim: TaskId) -> bool {
        cluster.task(victim).priority < cluster.task(task).priority
    }

    fn goes_by_priority(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "default_preemption_tests.rs"]
mod tests;
