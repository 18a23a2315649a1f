//! `TaintToleration`: a node's taints keep pods off that do not tolerate them, or make it less liked.

use krafla_framework::node_plugin::default_normalize;
use krafla_framework::{CycleState, NodePlugin, Room, Scope, Verdict, Why};
use krafla_model::taints::{Effect, tolerated};
use krafla_model::{ClusterState, NodeId, TaskId};

/// See the module.
pub struct TaintToleration;

impl NodePlugin for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        let taints = &cluster.node(node).spec.taints;
        if taints.is_empty() {
            return Verdict::Fits;
        }
        let tolerations = &cluster.shape_of(task).spec.tolerations;
        let keeps_off = taints.iter().any(|t| t.effect != Effect::PreferNoSchedule && !tolerated(tolerations, t));
        if keeps_off { Verdict::Unresolvable(Why::Says("node(s) had untolerated taint(s)")) } else { Verdict::Fits }
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

    fn normalize(&self, _: &ClusterState, _: &[NodeId], _: &CycleState, scores: &mut [f64]) {
        default_normalize(scores, true);
    }
}
