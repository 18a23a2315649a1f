//! `NodeResourcesBalancedAllocation`: nodes whose resources the pod would bring nearer to even use.
//!
//! With `s` = 100 times (1 - standard deviation of the used fractions), cut to a whole number, the score is
//! `50 + (50 + s with the pod - s without it) / 2`: 75 for a pod that changes nothing.

use krafla_framework::conf::plugin_args::read;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::search::ResourceColumn;
use krafla_framework::{CycleState, NodeColumns, NodePlugin, PreScore, Scope, Value};
use krafla_model::resources::ratio;
use krafla_model::{ClusterState, Name, NodeId, TaskId};
use smallvec::SmallVec;

use crate::listed::{Listed, columns, is_natural_or_asked, listed};

/// See the module.
pub struct NodeResourcesBalancedAllocation {
    /// Each with weight 1.
    resources: Vec<(Name, i64)>,
}

impl NodeResourcesBalancedAllocation {
    /// Balances these resources.
    pub fn new(resources: &[&str]) -> Self {
        Self { resources: resources.iter().map(|name| (Name::from(*name), 1)).collect() }
    }

    /// From `NodeResourcesBalancedAllocationArgs`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["resources"], |args| {
            let resources = args.weighted_resources("resources", 1..=1, &[("cpu", 1), ("memory", 1)]);
            Self { resources: resources.into_iter().map(|(name, weight)| (Name::from(name), weight)).collect() }
        })
    }

    fn listed(&self, cluster: &ClusterState, task: TaskId) -> SmallVec<[Listed; 4]> {
        listed(&self.resources, cluster, &cluster.shape_of(task).request, is_natural_or_asked)
    }
}

/// The score from what is asked of each resource, its capacity, and what is used of it.
#[allow(clippy::cast_precision_loss, reason = "0 to 100")]
fn gain(resources: impl Iterator<Item = (i64, i64, i64)>) -> f64 {
    let (mut with, mut without): (SmallVec<[f64; 4]>, SmallVec<[f64; 4]>) = Default::default();
    for (asked, capacity, used) in resources.filter(|(_, capacity, _)| *capacity > 0) {
        with.push(ratio(used + asked, capacity).into_inner().min(1.0));
        without.push(ratio(used, capacity).into_inner().min(1.0));
    }
    (50 + (50 + percent_even(&with) - percent_even(&without)) / 2) as f64
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
        let listed = self.resources.iter().filter_map(|(name, _)| cluster.names().find(name));
        PreScore::when(listed.into_iter().any(|id| request.get(id) > 0))
    }

    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let node = cluster.node(node);
        let listed = self.listed(cluster, task);
        gain(listed.iter().map(|one| (one.asked, node.allocatable.get(one.id), node.books().used.get(one.id))))
    }

    fn score_nodes(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &NodeColumns,
        places: &[u32],
        _: &CycleState,
        scores: &mut Vec<f64>,
    ) {
        let listed = self.listed(cluster, task);
        let columns = columns(&listed, nodes);
        let one = |(listed, column): &(&Listed, &ResourceColumn), at: usize| {
            (listed.asked, column.allocatable[at], column.used[at])
        };
        match columns.as_slice() {
            [a, b] => scores.extend(places.iter().map(|&place| {
                let (a, b) = (one(a, place as usize), one(b, place as usize));
                if a.1 > 0 && b.1 > 0 { gain_of_two(a, b) } else { gain([a, b].into_iter()) }
            })),
            all => {
                scores.extend(places.iter().map(|&place| gain(all.iter().map(|column| one(column, place as usize)))))
            }
        }
    }
}

/// The same of two resources that the node has, which is the common case.
#[allow(clippy::cast_precision_loss, reason = "0 to 100")]
fn gain_of_two(a: (i64, i64, i64), b: (i64, i64, i64)) -> f64 {
    let fraction = |used: i64, capacity: i64| ratio(used, capacity).into_inner().min(1.0);
    let with = percent_of_two(fraction(a.2 + a.0, a.1), fraction(b.2 + b.0, b.1));
    let without = percent_of_two(fraction(a.2, a.1), fraction(b.2, b.1));
    (50 + (50 + with - without) / 2) as f64
}

/// 100 times (1 - standard deviation), cut.
#[allow(clippy::cast_possible_truncation, reason = "0 to 100")]
fn percent_of_two(a: f64, b: f64) -> i64 {
    ((1.0 - (a - b).abs() / 2.0) * 100.0) as i64
}

/// 100 times (1 - standard deviation), cut.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "0 to 100, and a short list")]
fn percent_even(fractions: &[f64]) -> i64 {
    let deviation = match fractions {
        [] | [_] => 0.0,
        [a, b] => return percent_of_two(*a, *b),
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
