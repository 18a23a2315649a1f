//! `NodeUnschedulable`: a cordoned node takes nothing, unless the pod tolerates that.

use krafla_framework::{CycleState, NodePlugin, Room, Scope, Verdict, Why};
use krafla_model::taints::Effect;
use krafla_model::{ClusterState, NodeId, TaskId};

/// See the module.
pub struct NodeUnschedulable;

impl NodePlugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        if !cluster.node(node).spec.unschedulable {
            return Verdict::Fits;
        }
        let tolerations = &cluster.shape_of(task).spec.tolerations;
        let tolerated =
            tolerations.iter().any(|t| t.tolerates("node.kubernetes.io/unschedulable", "", Effect::NoSchedule));
        if tolerated { Verdict::Fits } else { Verdict::Unresolvable(Why::Says("node(s) were unschedulable")) }
    }
}
