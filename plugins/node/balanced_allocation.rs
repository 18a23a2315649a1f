//! `NodeResourcesBalancedAllocation`: nodes whose resources the pod would bring nearer to even use.
//!
//! With `s` = 100 times (1 - standard deviation of the used fractions), cut to a whole number, the score is
//! `50 + (50 + s with the pod - s without it) / 2`: 75 for a pod that changes nothing.

use krafla_framework::conf::plugin_args::read;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{CycleState, NodePlugin, PreScore, Scope, Value};
use krafla_model::resources::ratio;
use krafla_model::{ClusterState, Name, Node, NodeId, Resources, TaskId};
use smallvec::SmallVec;

/// See the module.
pub struct NodeResourcesBalancedAllocation {
    resources: Vec<Name>,
}

impl NodeResourcesBalancedAllocation {
    /// Balances these resources.
    pub fn new(resources: &[&str]) -> Self {
        Self { resources: resources.iter().map(|name| Name::from(*name)).collect() }
    }

    /// From `NodeResourcesBalancedAllocationArgs`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["resources"], |args| {
            let resources = args.weighted_resources("resources", 1..=1, &[("cpu", 1), ("memory", 1)]);
            Self { resources: resources.iter().map(|(name, _)| Name::from(name.as_str())).collect() }
        })
    }

    fn evenness(&self, cluster: &ClusterState, node: &Node, request: &Resources, with_pod: bool) -> i64 {
        let fractions: SmallVec<[f64; 4]> = self
            .resources
            .iter()
            .filter_map(|name| cluster.names().find(name))
            .filter(|id| node.allocatable.get(*id) > 0)
            // What the pod does not ask for is left out, unless it is CPU or memory.
            .filter(|id| {
                matches!(*id, krafla_model::ResourceId::CPU | krafla_model::ResourceId::MEMORY) || request.get(*id) > 0
            })
            .map(|id| {
                let used = node.books().used.get(id) + if with_pod { request.get(id) } else { 0 };
                ratio(used, node.allocatable.get(id)).into_inner().min(1.0)
            })
            .collect();
        percent_even(&fractions)
    }
}

impl NodePlugin for NodeResourcesBalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    fn pre_score(&self, cluster: &ClusterState, task: TaskId, _: &[NodeId], _: &mut CycleState) -> PreScore {
        let request = &cluster.shape_of(task).request;
        let listed = self.resources.iter().filter_map(|name| cluster.names().find(name));
        PreScore::when(listed.into_iter().any(|id| request.get(id) > 0))
    }

    #[allow(clippy::cast_precision_loss, reason = "0 to 100")]
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let request = &cluster.shape_of(task).request;
        let node = cluster.node(node);
        let with = self.evenness(cluster, node, request, true);
        let without = self.evenness(cluster, node, request, false);
        (50 + (50 + with - without) / 2) as f64
    }
}

/// 100 times (1 - standard deviation), cut.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "0 to 100, and a short list")]
fn percent_even(fractions: &[f64]) -> i64 {
    let deviation = match fractions {
        [] | [_] => 0.0,
        [a, b] => (a - b).abs() / 2.0,
        more => {
            let n = more.len() as f64;
            let mean = more.iter().sum::<f64>() / n;
            (more.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / n).sqrt()
        }
    };
    ((1.0 - deviation) * 100.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenness_is_one_less_the_deviation() {
        for (fractions, want) in
            [(vec![], 100), (vec![0.3], 100), (vec![0.5, 0.5], 100), (vec![1.0, 0.0], 50), (vec![0.6, 0.2, 0.4], 83)]
        {
            assert_eq!(percent_even(&fractions), want, "{fractions:?}");
        }
    }
}
