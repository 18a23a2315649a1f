//! `HighNodeUtilization`: the emptiest nodes are emptied, so that they can be taken away.
//!
//! With a plan, pods go only to nodes that are not to be emptied themselves and are at least as full as the one they leave.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::read as read_args;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::usage::WHOLE_PPM;
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use super::utilization::{Thresholds, excluded_namespaces, in_order, looked_at, percent};
use crate::args::{optional, thresholds};
use crate::limits::Reached;
use crate::load::{Loads, Source};
use crate::memory::Again;
use crate::policy::Strategy;
use crate::round::{Answer, Better, Request, Round};

/// Its arguments.
pub(crate) struct HighNodeUtilization {
    thresholds: Thresholds,
    n_nodes: i64,
    excluded: Vec<Name>,
    only_named: bool,
}

pub(crate) fn read(args: &Value) -> Result<HighNodeUtilization, Vec<ArgumentProblem>> {
    read_args(args, &["thresholds", "numberOfNodes", "evictionModes", "evictableNamespaces"], |args| {
        let thresholds = thresholds(args, "thresholds");
        if thresholds.is_empty() && args.get("thresholds").is_none() {
            args.problem("thresholds", "it is missing; write for example `thresholds: {cpu: 20}`");
        }
        let mut only_named = false;
        for (path, mode) in args.texts("evictionModes") {
            match mode {
                "OnlyThresholdingResources" => only_named = true,
                _ => args.problem_at(path, format!("there is no mode `{mode}`; modes are: OnlyThresholdingResources")),
            }
        }
        HighNodeUtilization {
            thresholds,
            n_nodes: optional(args, "numberOfNodes", 0).unwrap_or(0),
            excluded: excluded_namespaces(args),
            only_named,
        }
    })
}

impl HighNodeUtilization {
    fn is_under(&self, loads: &Loads, node: NodeId) -> bool {
        let mut named = loads.dimensions.iter().enumerate();
        named.all(|(i, dimension)| {
            self.thresholds.get(&dimension.name).is_none_or(|most| !loads.of(node).is_over(i, *most))
        })
    }

    fn asks_for_named(&self, cluster: &ClusterState, task: TaskId) -> bool {
        let request = &cluster.shape_of(task).request;
        self.thresholds.keys().any(|name| cluster.names().find(name).is_some_and(|id| request.get(id) > 0))
    }
}

impl Strategy for HighNodeUtilization {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        let nodes = round.nodes().to_vec();
        let source = Source::Requests;
        let mut loads = Loads::measure(round.cluster(), &source, looked_at(&self.thresholds, &source), &nodes)?;
        let cluster = round.cluster();
        let (mut sources, targets): (Vec<NodeId>, Vec<NodeId>) =
            nodes.iter().copied().partition(|node| self.is_under(&loads, *node));
        let targets: Vec<NodeId> = targets.into_iter().filter(|node| !cluster.node(*node).spec.unschedulable).collect();
        let n_sources = i64::try_from(sources.len()).unwrap_or(i64::MAX);
        if sources.is_empty() || n_sources <= self.n_nodes || sources.len() == nodes.len() || targets.is_empty() {
            return Ok(());
        }
        let sum = |loads: &Loads, node: NodeId| -> i64 {
            let load = loads.of(node);
            (0..load.used.len()).map(|i| load.share(i)).sum()
        };
        sources.sort_by_key(|node| (sum(&loads, *node), cluster.node_rank(*node)));
        let mut budget = vec![0_i64; loads.dimensions.len()];
        for node in &targets {
            let load = loads.of(*node);
            for (i, left) in budget.iter_mut().enumerate() {
                *left = left.saturating_add(load.capacity[i] - load.used[i]);
            }
        }
        let exists: Vec<bool> =
            (0..budget.len()).map(|i| targets.iter().any(|node| loads.of(*node).capacity[i] > 0)).collect();
        for node in sources {
            for task in in_order(round, &loads, node, &self.excluded, true) {
                if budget.iter().zip(&exists).any(|(left, exists)| *exists && *left <= 0) {
                    return Ok(());
                }
                if self.only_named && !self.asks_for_named(round.cluster(), task) {
                    continue;
                }
                if !targets.iter().any(|target| round.tolerates(task, *target)) {
                    continue;
                }
                let Some(uses) = loads.of_pod(round.cluster(), task) else { continue };
                let own = sum(&loads, node);
                let share = (0..uses.len()).map(|i| loads.of(node).share(i)).max().unwrap_or(0).min(WHOLE_PPM);
                let why = format!("the node is nearly empty: at most {} of anything is used", percent(share));
                let accept = |_: &ClusterState, other: NodeId| targets.contains(&other) && sum(&loads, other) >= own;
                let better = Some(Better { accept: &accept, again: Again::NotSoon, load: None });
                match round.evict(&Request { task, why, better }) {
                    Answer::Goes(to) => {
                        loads.shift(&uses, node, to);
                        budget.iter_mut().zip(&uses).for_each(|(left, less)| *left = left.saturating_sub(*less));
                    }
                    Answer::Limit(Reached::Total) => return Ok(()),
                    Answer::Limit(Reached::Node) => break,
                    Answer::Stays | Answer::Limit(Reached::Namespace) => {}
                }
            }
        }
        Ok(())
    }
}
