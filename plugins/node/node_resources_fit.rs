//! `NodeResourcesFit`: how full a node would be. Whether the pod fits at all is asked by the search itself, for every
//! profile.
//!
//! Reckoned as kube-scheduler does: in whole numbers, on requests in which a container without CPU or memory counts as
//! 100 milli-CPU and 200 MiB.

use krafla_framework::conf::plugin_args::{PluginArgs, read};
use krafla_framework::conf::selectors::is_label_key;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{CycleState, NodeColumns, NodePlugin, Scope, Value};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::{ClusterState, Name, NodeId, Resources, TaskId};
use smallvec::SmallVec;

use super::hints;
use crate::listed::{Listed, columns, is_natural_or_asked, listed};

/// What makes a node good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Emptiness.
    LeastAllocated,
    /// Fullness.
    MostAllocated,
    /// A function of utilisation: points of (percent, score of 0 to 10), percent strictly increasing.
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

/// What the strategies look at if nothing is said.
const NATURAL: &[(&str, i64)] = &[("cpu", 1), ("memory", 1)];
const NO_SHAPE: &str = "the strategy needs a `shape`; write at least one `- {utilization: …, score: …}`";

/// See the module.
pub struct NodeResourcesFit {
    name: &'static str,
    strategy: Strategy,
    resources: Vec<(Name, i64)>,
}

impl NodeResourcesFit {
    /// Scores by `strategy` over these resources with their weights.
    pub fn new(strategy: Strategy, resources: &[(&str, i64)]) -> Self {
        let resources = resources.iter().map(|(name, weight)| (Name::from(*name), *weight)).collect();
        Self { name: "NodeResourcesFit", strategy, resources }
    }

    /// From `NodeResourcesFitArgs`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["ignoredResources", "ignoredResourceGroups", "scoringStrategy"], |args| {
            for (path, name) in args.texts("ignoredResources") {
                if !is_label_key(name) {
                    args.problem_at(path, format!("`{name}` is not the name of a resource; write for example `a.b/c`"));
                }
            }
            for (path, group) in args.texts("ignoredResourceGroups") {
                if group.is_empty() || group.contains('/') {
                    let message = format!("`{group}` is not a group; write what stands before the `/` of a resource");
                    args.problem_at(path, message);
                }
            }
            match args.map("scoringStrategy", &["type", "resources", "requestedToCapacityRatio"]) {
                Some(mut strategy) => Self::of_strategy(&mut strategy),
                None => Self::new(Strategy::LeastAllocated, NATURAL),
            }
        })
    }

    fn of_strategy(args: &mut PluginArgs<'_, '_>) -> Self {
        let words = [("LeastAllocated", 0), ("MostAllocated", 1), ("RequestedToCapacityRatio", 2)];
        if args.get("type").is_none() {
            args.problem("type", "a strategy needs a `type`; write for example `type: LeastAllocated`");
        }
        let strategy = match args.one_of("type", &words, 0) {
            0 => Strategy::LeastAllocated,
            1 => Strategy::MostAllocated,
            _ => {
                let shape = args.map("requestedToCapacityRatio", &["shape"]).map(|mut args| args.shape("shape"));
                Strategy::RequestedToCapacityRatio(shape.unwrap_or_default())
            }
        };
        if strategy == Strategy::RequestedToCapacityRatio(Vec::new()) {
            args.problem("requestedToCapacityRatio", NO_SHAPE);
        }
        Self::over(strategy, &args.weighted_resources("resources", 1..=100, NATURAL))
    }

    fn over(strategy: Strategy, resources: &[(String, i64)]) -> Self {
        let resources: Vec<_> = resources.iter().map(|(name, weight)| (name.as_str(), *weight)).collect();
        Self::new(strategy, &resources)
    }

    /// The score that older versions had as a plugin of its own, from its `args`.
    pub fn legacy(name: &'static str, args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        let fields: &[&str] = if name == "RequestedToCapacityRatio" { &["shape", "resources"] } else { &["resources"] };
        read(args, fields, |args| {
            let strategy = match name {
                "NodeResourcesLeastAllocated" => Strategy::LeastAllocated,
                "NodeResourcesMostAllocated" => Strategy::MostAllocated,
                _ => Strategy::RequestedToCapacityRatio(args.shape("shape")),
            };
            if strategy == Strategy::RequestedToCapacityRatio(Vec::new()) {
                args.problem("shape", NO_SHAPE);
            }
            Self { name, ..Self::over(strategy, &args.weighted_resources("resources", 1..=100, NATURAL)) }
        })
    }

    /// Score of one resource, 0 to 100.
    fn rate(&self, requested: i64, capacity: i64) -> i64 {
        match &self.strategy {
            Strategy::LeastAllocated => percent_free(requested, capacity),
            Strategy::MostAllocated => percent(requested.min(capacity), capacity),
            Strategy::RequestedToCapacityRatio(shape) => {
                interpolate(shape, if requested > capacity { 100 } else { percent(requested, capacity) })
            }
        }
    }
}

impl NodePlugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        self.name
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    /// Who was promised room and now has it elsewhere leaves what was promised.
    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const POD: ActionType = ActionType::ADD.and(ActionType::DELETE).and(ActionType::UPDATE_POD_SCALE_DOWN);
        const NODE: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_ALLOCATABLE);
        Some(&[(EventResource::Pod, POD), (EventResource::Node, NODE)])
    }

    fn may_help(&self, event: &ClusterEvent) -> bool {
        let fills = event.action.has_any(ActionType::ADD);
        !matches!(&event.about, About::Pod { nominated: false, .. } if fills)
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        match &event.about {
            About::Pod { .. } => hints::is_own(task, event) || hints::holder(event).is_some(),
            About::Node { node, .. } => cluster.get_node(*node).is_some_and(|node| {
                let asked = cluster.asked_of_nodes(cluster.shape_of(task));
                asked.first_over(&Resources::default(), &node.allocatable).is_none()
            }),
            _ => true,
        }
    }

    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let node = cluster.node(node);
        let listed = self.listed(cluster, task);
        self.rate_all(
            listed.iter().map(|one| (one, node.allocatable.get(one.id), node.books().scored_used.get(one.id))),
        )
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
        let at = |place: u32| {
            let all = columns.iter();
            all.map(move |(one, column)| (*one, column.allocatable[place as usize], column.scored_used[place as usize]))
        };
        match self.strategy {
            // The default; its loop is worth one of its own.
            Strategy::LeastAllocated => {
                scores.extend(places.iter().map(|&place| mean(at(place), percent_free, false)));
            }
            _ => scores.extend(places.iter().map(|&place| self.rate_all(at(place)))),
        }
    }
}

impl NodeResourcesFit {
    fn listed(&self, cluster: &ClusterState, task: TaskId) -> SmallVec<[Listed; 4]> {
        listed(&self.resources, cluster, &cluster.shape_of(task).scored_request, is_natural_or_asked)
    }

    /// The score from each resource with its capacity and what is used of it.
    fn rate_all<'l>(&self, resources: impl Iterator<Item = (&'l Listed, i64, i64)>) -> f64 {
        let by_shape = matches!(self.strategy, Strategy::RequestedToCapacityRatio(_));
        mean(resources, |requested, capacity| self.rate(requested, capacity), by_shape)
    }
}

/// The weighted mean of the rates of each resource with its capacity and what is used of it. `by_shape`: a rate of 0 is left
/// out, and the mean rounded rather than cut.
#[allow(clippy::cast_precision_loss, reason = "sums of at most 100 times a weight")]
fn mean<'l>(
    resources: impl Iterator<Item = (&'l Listed, i64, i64)>,
    rate: impl Fn(i64, i64) -> i64,
    by_shape: bool,
) -> f64 {
    let (mut sum, mut weights) = (0_i64, 0_i64);
    for (one, capacity, used) in resources {
        if capacity == 0 {
            continue;
        }
        let rate = rate(used.saturating_add(one.asked), capacity);
        if by_shape && rate == 0 {
            continue;
        }
        sum += rate * one.weight;
        weights += one.weight;
    }
    match weights {
        0 => 0.0,
        _ if by_shape => (sum as f64 / weights as f64).round(),
        _ => quotient(sum, weights) as f64,
    }
}

/// How much of a resource is left, in percent.
fn percent_free(requested: i64, capacity: i64) -> i64 {
    if requested > capacity { 0 } else { percent(capacity - requested, capacity) }
}

/// A part of a whole that is not 0, in percent, rounded down.
pub(super) fn percent(part: i64, whole: i64) -> i64 {
    match part.checked_mul(100) {
        Some(hundredfold) => quotient(hundredfold, whole),
        None => i64::try_from(i128::from(part) * 100 / i128::from(whole)).unwrap_or(i64::MAX),
    }
}

/// `part / whole`, cut. Dividing floats is several times as quick, and exact once cut: the quotient of two whole numbers
/// below 2^53 is at least `1 / whole` away from the next whole number, which is more than it is rounded by.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "both are below 2^53")]
fn quotient(part: i64, whole: i64) -> i64 {
    const EXACT: std::ops::Range<i64> = 0..1 << 53;
    if EXACT.contains(&part) && EXACT.contains(&whole) && whole != 0 {
        return (part as f64 / whole as f64) as i64;
    }
    part / whole
}

/// The broken line through `shape`, its scores times ten, flat outside.
pub(super) fn interpolate(shape: &[(i64, i64)], utilisation: i64) -> i64 {
    let Some(&(last_at, last)) = shape.last() else { return 0 };
    let mut before = shape[0];
    if utilisation <= before.0 {
        return before.1 * 10;
    }
    for &(at, score) in &shape[1..] {
        if utilisation < at {
            let (from, to) = (before.1 * 10, score * 10);
            return from + (to - from) * (utilisation - before.0) / (at - before.0);
        }
        before = (at, score);
    }
    debug_assert!(utilisation >= last_at);
    last * 10
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, prop_oneof, proptest};

    use super::*;

    proptest! {
        #[test]
        fn a_quotient_by_floats_is_the_whole_one(
            whole in prop_oneof![1_i64..200, 1_i64..1 << 53, (1_i64 << 53) - 9..(1 << 53) + 9],
            times in 0_i64..200,
            more in -2_i64..3,
            part in 0_i64..1 << 60,
        ) {
            for part in [part, whole.saturating_mul(times).saturating_add(more).max(0)] {
                prop_assert_eq!(quotient(part, whole), part / whole);
            }
        }
    }

    #[test]
    fn each_strategy_rates_as_kubernetes_does() {
        let shape = Strategy::RequestedToCapacityRatio(vec![(0, 0), (50, 8), (100, 10)]);
        for (strategy, requested, capacity, want) in [
            (Strategy::LeastAllocated, 1_000, 4_000, 75),
            (Strategy::LeastAllocated, 5_000, 4_000, 0),
            (Strategy::LeastAllocated, 1, 3, 66),
            (Strategy::MostAllocated, 1_000, 4_000, 25),
            (Strategy::MostAllocated, 5_000, 4_000, 100),
            (shape.clone(), 25, 100, 40),
            (shape.clone(), 75, 100, 90),
            (shape, 200, 100, 100),
        ] {
            let fit = NodeResourcesFit::new(strategy, &[("cpu", 1)]);
            assert_eq!(fit.rate(requested, capacity), want, "{:?} {requested}/{capacity}", fit.strategy);
        }
    }
}
