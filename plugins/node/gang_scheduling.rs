//! `GangScheduling`: Kubernetes' own gangs. A pod enters the queue when its group is there and has as many pods as it
//! needs; it waits at Permit, with its node, until as many are together, and then all go at once.
//!
//! Pods are tried one by one: Kubernetes 1.36 tries a whole group in one cycle, behind an alpha gate.

use krafla_framework::{NodePlugin, Permit, WaitingPods, Why};
use krafla_model::cluster_event::{ActionType, EventResource};
use krafla_model::{ClusterState, NodeId, TaskId};

/// How long a pod waits for the others at Permit, in milliseconds.
const WAIT_MS: i64 = 5 * 60 * 1_000;

/// See the module.
pub struct GangScheduling;

impl GangScheduling {
    /// The plugin's name.
    pub const NAME: &'static str = "GangScheduling";
}

impl NodePlugin for GangScheduling {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn pre_enqueue(&self, cluster: &ClusterState, task: TaskId) -> Result<(), Why> {
        let pod = cluster.task(task);
        let Some(name) = &pod.group else { return Ok(()) };
        let Some(id) = pod.job else { return Err(Why::Told(format!("waiting for the PodGroup {name}").into())) };
        let group = cluster.job(id);
        let (min, pods) = (group.min_available(), group.n_valid());
        if min > 1 && pods < min {
            let why = format!("waiting for minCount pods of PodGroup {name}: {pods} of {min} are there");
            return Err(Why::Told(why.into()));
        }
        Ok(())
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const EVENTS: [(EventResource, ActionType); 2] = [
            (EventResource::Pod, ActionType::ADD),
            (EventResource::PodGroup, ActionType::ADD.and(ActionType::UPDATE)),
        ];
        Some(&EVENTS)
    }

    fn permit(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) -> Permit {
        let Some(id) = cluster.task(task).job else { return Permit::Approve };
        let group = cluster.job(id);
        let together = group.counts().sum(|status| status.is_allocated());
        if together < group.min_available() {
            let siblings = group.tasks().filter(|sibling| *sibling != task);
            siblings.for_each(|sibling| waiting.activate(sibling));
            return Permit::Wait { timeout_ms: WAIT_MS };
        }
        for member in group.tasks() {
            if let Some(pod) = waiting.get_mut(&cluster.task(member).uid) {
                pod.allow(Self::NAME);
            }
        }
        Permit::Approve
    }
}
