//! `LowNodeUtilization`: pods go from busy nodes, so that the scheduler places them on idle ones.
//!
//! A node is idle if it is at or below its threshold in everything that the policy names, busy if it is over its target in
//! any of it. Nothing happens unless there are both. With a plan, a pod goes only where the node that takes it stays at or
//! below its target, so that the sum of what is too much falls with each move.

use krafla_framework::conf::plugin_args::{PluginArgs, read as read_args};
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{UsageSource, Value};
use krafla_model::usage::WHOLE_PPM;
use krafla_model::{ClusterState, Name, NodeId};

use super::utilization::{Thresholds, excluded_namespaces, in_order, looked_at, percent};
use crate::args::{optional, thresholds};
use crate::limits::Reached;
use crate::load::{Loads, SAMPLE, Source};
use crate::memory::Again;
use crate::policy::Strategy;
use crate::round::{Answer, Better, Request, Round};

/// Its arguments.
pub(crate) struct LowNodeUtilization {
    low: Thresholds,
    high: Thresholds,
    deviations: bool,
    n_nodes: i64,
    source: Source,
    excluded: Vec<Name>,
    most_per_node: Option<i64>,
}

pub(crate) fn read(args: &Value) -> Result<LowNodeUtilization, Vec<ArgumentProblem>> {
    let fields = [
        "thresholds",
        "targetThresholds",
        "useDeviationThresholds",
        "numberOfNodes",
        "metricsUtilization",
        "evictableNamespaces",
        "evictionLimits",
    ];
    read_args(args, &fields, |args| {
        let (low, high) = (thresholds(args, fields[0]), thresholds(args, fields[1]));
        let deviations = args.bool(fields[2], false);
        let source = source(args);
        for (key, given) in [(fields[0], &low), (fields[1], &high)] {
            if given.is_empty() && args.get(key).is_none() {
                args.problem(key, format!("it is missing; write for example `{key}: {{cpu: 20}}`"));
            }
        }
        if !low.keys().eq(high.keys()) {
            args.problem(fields[1], "it has to name the same resources as `thresholds`");
        }
        for (resource, low) in &low {
            if !deviations && high.get(resource).is_some_and(|high| low > high) {
                let message =
                    format!("for `{resource}` it is below `thresholds`; a node would be idle and busy at once");
                args.problem(fields[1], message);
            }
        }
        check_resources(args, &source, &low);
        let most_per_node = args.map(fields[6], &["node"]).and_then(|mut limits| optional(&mut limits, "node", 1));
        LowNodeUtilization {
            low,
            high,
            deviations,
            n_nodes: optional(args, fields[3], 0).unwrap_or(0),
            source,
            excluded: excluded_namespaces(args),
            most_per_node,
        }
    })
}

fn source(args: &mut PluginArgs<'_, '_>) -> Source {
    let Some(mut own) = args.map("metricsUtilization", &["metricsServer", "source", "prometheus"]) else {
        return Source::Requests;
    };
    let old = own.bool("metricsServer", false);
    let named = own.one_of("source", &[("KubernetesMetrics", 1), ("Prometheus", 2)], 0);
    let query = own.map("prometheus", &["query"]).and_then(|mut one| one.text("query").map(str::to_owned));
    match (old, named, query) {
        (true, 1 | 2, _) => {
            own.problem("metricsServer", "it is an old way to say `source: KubernetesMetrics`; keep `source`");
            Source::MetricsServer
        }
        (true, _, _) | (_, 1, None) => Source::MetricsServer,
        (_, 1, Some(_)) => {
            own.problem("prometheus", "it belongs to `source: Prometheus`; take it out");
            Source::MetricsServer
        }
        (_, 2, query) => {
            if query.as_ref().is_none_or(String::is_empty) {
                own.problem("prometheus", "it needs a query; write `prometheus: {query: …}`");
            }
            Source::Prometheus { query: query.unwrap_or_default() }
        }
        (_, _, _) => {
            own.problem("source", "it is missing; sources are: KubernetesMetrics, Prometheus");
            Source::Requests
        }
    }
}

fn check_resources(args: &mut PluginArgs<'_, '_>, source: &Source, low: &Thresholds) {
    match source {
        Source::Requests => {}
        Source::MetricsServer => {
            for resource in low.keys().filter(|name| !["cpu", "memory", "pods"].contains(&&***name)) {
                let message = format!("the metrics server does not measure `{resource}`; it has cpu, memory and pods");
                args.problem("thresholds", message);
            }
        }
        Source::Prometheus { .. } => {
            if low.len() != 1 || !low.contains_key(SAMPLE) {
                args.problem("thresholds", format!("with Prometheus it has one key; write `{SAMPLE}: 20`"));
            }
        }
    }
}

/// Which nodes are idle and which are busy.
struct Classes {
    /// By dimension, in millionths; `None` where the policy names none.
    low: Vec<Option<i64>>,
    high: Vec<Option<i64>>,
    idle: Vec<NodeId>,
    busy: Vec<NodeId>,
}

impl LowNodeUtilization {
    fn classify(&self, cluster: &ClusterState, loads: &Loads, nodes: &[NodeId]) -> Classes {
        let n = i64::try_from(nodes.len()).unwrap_or(1).max(1);
        let of = |thresholds: &Thresholds, sign: i64| -> Vec<Option<i64>> {
            let one = |(i, dimension): (usize, &crate::load::Dimension)| {
                let own = *thresholds.get(&dimension.name)?;
                if !self.deviations {
                    return Some(own);
                }
                let sum: i64 = nodes.iter().map(|node| loads.of(*node).share(i)).sum();
                Some((sum / n + sign * own).clamp(0, WHOLE_PPM))
            };
            loads.dimensions.iter().enumerate().map(one).collect()
        };
        let (low, high) = (of(&self.low, -1), of(&self.high, 1));
        let mut classes = Classes { low, high, idle: Vec::new(), busy: Vec::new() };
        for &node in nodes {
            let load = loads.of(node);
            let mut named = classes.low.iter().enumerate().filter_map(|(i, low)| Some((i, (*low)?)));
            if classes.is_over(loads, node) {
                classes.busy.push(node);
            } else if named.all(|(i, low)| !load.is_over(i, low)) && !cluster.node(node).spec.unschedulable {
                classes.idle.push(node);
            }
        }
        // The busiest first; of equal ones the first in tie order.
        let sum = |node: &NodeId| -> i64 {
            let load = loads.of(*node);
            (0..load.used.len()).map(|i| load.share(i)).sum()
        };
        classes.busy.sort_by_key(|node| (-sum(node), cluster.node_rank(*node)));
        classes
    }
}

impl Classes {
    /// Whether a node is over its target.
    fn is_over(&self, loads: &Loads, node: NodeId) -> bool {
        self.high.iter().enumerate().any(|(i, high)| high.is_some_and(|high| loads.of(node).is_over(i, high)))
    }

    /// By how much a node with these amounts more would be over its targets, in millionths, summed.
    fn excess(&self, loads: &Loads, node: NodeId, more: &[i64], sign: i64) -> i64 {
        let mut load = loads.of(node).clone();
        let more: Vec<i64> = more.iter().map(|amount| amount * sign).collect();
        load.add(&more);
        let over = |(i, high): (usize, &Option<i64>)| high.map_or(0, |high| (load.share(i) - high).max(0));
        self.high.iter().enumerate().map(over).sum()
    }

    /// The fullest dimension of a node that counts: its name and its share.
    fn fullest(&self, loads: &Loads, node: NodeId) -> (usize, i64) {
        let named = self.high.iter().enumerate().filter_map(|(i, high)| Some((i, loads.of(node).share(i) - (*high)?)));
        let (i, _) = named.max_by_key(|(_, over)| *over).unwrap_or((0, 0));
        (i, loads.of(node).share(i))
    }

    /// What idle nodes can still take, by dimension.
    fn budget(&self, loads: &Loads) -> Vec<i64> {
        let mut budget = vec![0_i64; loads.dimensions.len()];
        for &node in &self.idle {
            let load = loads.of(node);
            for (i, sum) in budget.iter_mut().enumerate() {
                let room = load.part(i, self.high[i].unwrap_or(WHOLE_PPM)) - load.used[i];
                *sum = sum.saturating_add(room);
            }
        }
        budget
    }

    /// Whether nothing is left of a dimension that any idle node has.
    fn is_spent(&self, loads: &Loads, budget: &[i64]) -> bool {
        let exists = |i: usize| self.idle.iter().any(|node| loads.of(*node).capacity[i] > 0);
        budget.iter().enumerate().any(|(i, left)| *left <= 0 && exists(i))
    }
}

impl Strategy for LowNodeUtilization {
    fn needs(&self, usage: &mut UsageSource) {
        self.source.needs(usage);
    }

    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        let nodes = round.nodes().to_vec();
        let mut loads = Loads::measure(round.cluster(), &self.source, looked_at(&self.low, &self.source), &nodes)?;
        let classes = self.classify(round.cluster(), &loads, &nodes);
        {
            let now = round.cluster().now();
            let shares: std::collections::BTreeMap<Name, i64> = nodes
                .iter()
                .map(|node| (round.cluster().node(*node).name().clone(), classes.fullest(&loads, *node).1))
                .collect();
            round.memory().judge(now, |name| shares.get(name).copied());
        }
        let n_idle = classes.idle.len();
        let enough = i64::try_from(n_idle).unwrap_or(i64::MAX) > self.n_nodes;
        if n_idle == 0 || !enough || n_idle == nodes.len() || classes.busy.is_empty() {
            return Ok(());
        }
        let mut budget = classes.budget(&loads);
        for node in classes.busy.clone() {
            if !self.relieve(round, &mut loads, &classes, &mut budget, node) {
                break;
            }
        }
        Ok(())
    }
}

impl LowNodeUtilization {
    /// Evicts pods of one node until it is no longer busy. Answers whether there is any use in going on.
    fn relieve(
        &self,
        round: &mut Round<'_, '_, '_>,
        loads: &mut Loads,
        classes: &Classes,
        budget: &mut [i64],
        node: NodeId,
    ) -> bool {
        let mut n_gone = 0;
        for task in in_order(round, loads, node, &self.excluded, true) {
            if !classes.is_over(loads, node) {
                return true;
            }
            if classes.is_spent(loads, budget) {
                return false;
            }
            if self.most_per_node.is_some_and(|most| n_gone >= most) {
                return true;
            }
            if !classes.idle.iter().any(|idle| round.tolerates(task, *idle)) {
                continue;
            }
            let known = loads.of_pod(round.cluster(), task);
            let uses = loads.estimate(round.cluster(), task, node);
            let (fullest, share) = classes.fullest(loads, node);
            let target = classes.high[fullest].unwrap_or(WHOLE_PPM);
            let why = format!(
                "{} of {} is used on the node, and {} is the target",
                percent(share),
                loads.dimensions[fullest].name,
                percent(target)
            );
            let before = classes.excess(loads, node, &uses, 0);
            let relieved = classes.excess(loads, node, &uses, -1);
            let accept = |_: &ClusterState, other: NodeId| {
                let gains = classes.excess(loads, other, &uses, 1) - classes.excess(loads, other, &uses, 0);
                gains == 0 && relieved < before
            };
            let better = Some(Better { accept: &accept, again: Again::NotSoon, load: Some(share) });
            match round.evict(&Request { task, why, better }) {
                Answer::Goes(to) => {
                    n_gone += 1;
                    let Some(uses) = known else {
                        // Nobody knows how much that was; the next measurement tells.
                        loads.shift(&uses, node, to);
                        if self.most_per_node.is_none() {
                            return true;
                        }
                        continue;
                    };
                    loads.shift(&uses, node, to);
                    budget.iter_mut().zip(&uses).for_each(|(left, less)| *left = left.saturating_sub(*less));
                }
                Answer::Limit(Reached::Total) => return false,
                Answer::Limit(Reached::Node) => return true,
                Answer::Stays | Answer::Limit(Reached::Namespace) => {}
            }
        }
        true
    }
}
