//! `SchedulingGates`: a pod that carries gates does not enter the queue.

use krafla_framework::{NodePlugin, Why};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::{ClusterState, TaskId};

/// See the module.
pub struct SchedulingGates;

impl NodePlugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn pre_enqueue(&self, cluster: &ClusterState, task: TaskId) -> Result<(), Why> {
        match cluster.task(task).gates {
            0 => Ok(()),
            gates => Err(Why::Told(format!("waiting for {gates} scheduling gates").as_str().into())),
        }
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        Some(&[(EventResource::Pod, ActionType::UPDATE_POD_GATES_ELIMINATED)])
    }

    fn helps(&self, _: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        matches!(event.about, About::Pod { task: Some(other), .. } if other == task)
    }
}
