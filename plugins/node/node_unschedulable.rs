//! `NodeUnschedulable`: a cordoned node takes nothing, unless the pod tolerates that.

use krafla_framework::{CycleState, NodePlugin, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{ActionType, ClusterEvent, EventResource};
use krafla_model::taints::Effect;
use krafla_model::{ClusterState, NodeId, NodeSpec, PodShape, TaskId};

use super::hints;

/// See the module.
pub struct NodeUnschedulable;

impl NodePlugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        match takes(&cluster.shape_of(task).spec, &cluster.node(node).spec) {
            true => Verdict::Fits,
            false => Verdict::Unresolvable(Why::Says("node(s) were unschedulable")),
        }
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const NODE: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_TAINT);
        Some(&[(EventResource::Node, NODE), (EventResource::Pod, ActionType::UPDATE_POD_TOLERATION)])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        let spec = &cluster.shape_of(task).spec;
        hints::is_own(task, event) || hints::suits_now(cluster, event, |node| takes(spec, node))
    }
}

/// Whether a node takes new pods, or one like this all the same.
fn takes(spec: &PodShape, node: &NodeSpec) -> bool {
    let tolerated =
        || spec.tolerations.iter().any(|t| t.tolerates("node.kubernetes.io/unschedulable", "", Effect::NoSchedule));
    !node.unschedulable || tolerated()
}
