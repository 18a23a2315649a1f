//! `TaintToleration`: a node's taints keep pods off that do not tolerate them, or make it less liked.

use krafla_framework::node_plugin::default_normalize;
use krafla_framework::{CycleState, NodePlugin, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{ActionType, ClusterEvent, EventResource};
use krafla_model::taints::{Effect, Taint, tolerated};
use krafla_model::{ClusterState, NodeId, NodeSpec, PodShape, TaskId};

use super::hints;

/// See the module.
pub struct TaintToleration;

impl NodePlugin for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        match tolerates(&cluster.shape_of(task).spec, &cluster.node(node).spec) {
            true => Verdict::Fits,
            false => Verdict::Unresolvable(Why::Says("node(s) had untolerated taint(s)")),
        }
    }

    /// Soft taints that are not tolerated. The fewer the better.
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let tolerations = &cluster.shape_of(task).spec.tolerations;
        let taints = cluster.node(node).spec.taints.iter();
        let minded = taints.filter(|t| t.effect == Effect::PreferNoSchedule && !tolerated(tolerations, t)).count();
        f64::from(u32::try_from(minded).unwrap_or(u32::MAX))
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn normalizes_by_extremes(&self) -> bool {
        true
    }

    fn normalize(&self, _: &ClusterState, _: &[NodeId], _: &CycleState, scores: &mut [f64]) {
        default_normalize(scores, true);
    }
    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const NODE: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_TAINT);
        Some(&[(EventResource::Node, NODE), (EventResource::Pod, ActionType::UPDATE_POD_TOLERATION)])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        let spec = &cluster.shape_of(task).spec;
        hints::is_own(task, event) || hints::suits_now(cluster, event, |node| tolerates(spec, node))
    }
}

/// Whether nothing on the node keeps pods like this off.
fn tolerates(spec: &PodShape, node: &NodeSpec) -> bool {
    let keeps_off = |taint: &Taint| taint.effect != Effect::PreferNoSchedule && !tolerated(&spec.tolerations, taint);
    !node.taints.iter().any(keeps_off)
}
