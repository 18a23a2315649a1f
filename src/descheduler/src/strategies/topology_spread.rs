//! `RemovePodsViolatingTopologySpreadConstraint`: pods that are spread more unevenly over domains than their constraints
//! allow.
//!
//! For each constraint: while the fullest domain exceeds an emptier one by more than the skew, as many pods as even the two
//! out go from the one to the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::read as read_args;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::labels::{Labels, NodeSelectorTerm};
use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::taints::Toleration;
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use crate::args::Choice;
use crate::limits::Reached;
use crate::memory::Again;
use crate::policy::Strategy;
use crate::round::{Answer, Better, Request, Round};

/// Its arguments.
pub(crate) struct TopologySpread {
    choice: Choice,
    hard: bool,
    soft: bool,
    node_fit: bool,
}

pub(crate) fn read(args: &Value) -> Result<TopologySpread, Vec<ArgumentProblem>> {
    read_args(args, &["constraints", "topologyBalanceNodeFit", "namespaces", "labelSelector"], |args| {
        let (mut hard, mut soft) = (args.get("constraints").is_none(), false);
        for (path, kind) in args.texts("constraints") {
            match kind {
                "DoNotSchedule" => hard = true,
                "ScheduleAnyway" => soft = true,
                _ => args.problem_at(path, format!("there is no `{kind}`; they are: DoNotSchedule, ScheduleAnyway")),
            }
        }
        TopologySpread { hard, soft, node_fit: args.bool("topologyBalanceNodeFit", true), choice: Choice::read(args) }
    })
}

/// A constraint with what of the pod decides which nodes count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    namespace: Name,
    constraint: SpreadConstraint,
    selector: Labels,
    affinity: Option<Vec<NodeSelectorTerm>>,
    tolerations: Vec<Toleration>,
}

/// A domain and its pods, those to go first at the end.
struct Domain {
    value: Name,
    pods: Vec<(TaskId, NodeId)>,
    /// With pods that are to come, and without those that are to go.
    size: usize,
}

impl Rule {
    fn counts(&self, cluster: &ClusterState, node: NodeId) -> Option<Name> {
        let spec = &cluster.node(node).spec;
        let value = spec.labels.get(&self.constraint.topology_key)?;
        let selected = !self.constraint.honors_affinity
            || (self.selector.iter().all(|(key, value)| spec.labels.get(key) == Some(value))
                && self
                    .affinity
                    .as_ref()
                    .is_none_or(|terms| terms.iter().any(|term| term.matches(&spec.name, &spec.labels))));
        let keeps_off =
            |taint: &&krafla_model::taints::Taint| taint.effect != krafla_model::taints::Effect::PreferNoSchedule;
        let mut taints = spec.taints.iter().filter(keeps_off);
        let tolerated = !self.constraint.honors_taints
            || taints.all(|taint| krafla_model::taints::tolerated(&self.tolerations, taint));
        (selected && tolerated).then(|| value.clone())
    }
}

impl TopologySpread {
    /// The rules of all pods, each once.
    fn rules(&self, round: &Round<'_, '_, '_>) -> BTreeSet<Rule> {
        let cluster = round.cluster();
        let mut rules = BTreeSet::new();
        for &node in round.nodes() {
            for task in round.pods_on(node) {
                let shape = &cluster.shape_of(task).spec;
                for constraint in &shape.spread {
                    let counts = if constraint.must_hold { self.hard } else { self.soft };
                    if counts && self.choice.takes(cluster, task) {
                        rules.insert(Rule {
                            namespace: shape.namespace.clone(),
                            constraint: constraint.clone(),
                            selector: shape.node_selector.clone(),
                            affinity: shape.required_affinity.clone(),
                            tolerations: shape.tolerations.clone(),
                        });
                    }
                }
            }
        }
        rules
    }

    /// The domains of a rule with their pods, the smallest first.
    fn domains(rule: &Rule, round: &Round<'_, '_, '_>) -> Vec<Domain> {
        let cluster = round.cluster();
        let mut by_value: BTreeMap<Name, Vec<(TaskId, NodeId)>> = BTreeMap::new();
        for &node in round.nodes() {
            let Some(value) = rule.counts(cluster, node) else { continue };
            let pods = by_value.entry(value).or_default();
            for task in round.pods_on(node) {
                let shape = &cluster.shape_of(task).spec;
                let selector = rule.constraint.selector.as_ref();
                if shape.namespace == rule.namespace && selector.is_some_and(|one| one.matches(&shape.labels)) {
                    pods.push((task, node));
                }
            }
        }
        let mut domains: Vec<Domain> =
            by_value.into_iter().map(|(value, pods)| Domain { value, size: pods.len(), pods }).collect();
        domains.sort_by(|a, b| (a.size, &a.value).cmp(&(b.size, &b.value)));
        domains
    }

    /// Pods that are to leave their domains, in order.
    fn choose(rule: &Rule, domains: &mut [Domain], round: &Round<'_, '_, '_>) -> Vec<(TaskId, NodeId)> {
        let total: usize = domains.iter().map(|domain| domain.size).sum();
        let n = domains.len();
        let max_skew = rule.constraint.max_skew as usize;
        for domain in domains.iter_mut() {
            sort(round, &mut domain.pods);
        }
        let (mut i, mut j) = (0, n - 1);
        let mut chosen = Vec::new();
        while i < j {
            // Sizes beside the average total / n, without fractions.
            let (small, large) = (domains[i].size, domains[j].size);
            if large * n <= total {
                j -= 1;
                continue;
            }
            let skew = large.saturating_sub(small);
            if skew <= max_skew {
                i += 1;
                continue;
            }
            let above = (large * n - total).div_ceil(n);
            let below = total.saturating_sub(small * n).div_ceil(n);
            let move_n = above.min(below).min((skew - max_skew).div_ceil(2));
            if move_n == 0 {
                i += 1;
                continue;
            }
            domains[i].size += move_n;
            domains[j].size -= move_n;
            let from = domains[j].pods.len().saturating_sub(move_n);
            chosen.extend(domains[j].pods.split_off(from).into_iter().rev());
        }
        chosen
    }
}

/// Those first that should stay: who may not go, who is bound to nodes, then who has the higher priority.
fn sort(round: &Round<'_, '_, '_>, pods: &mut [(TaskId, NodeId)]) {
    let cluster = round.cluster();
    pods.sort_by_key(|(task, _)| {
        let shape = &cluster.shape_of(*task).spec;
        let is_bound = !shape.node_selector.is_empty() || shape.required_affinity.is_some();
        (round.is_evictable(*task), !is_bound, Reverse(cluster.task(*task).priority), *task)
    });
}

impl Strategy for TopologySpread {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        let mut full: BTreeSet<NodeId> = BTreeSet::new();
        for rule in self.rules(round) {
            let mut domains = Self::domains(&rule, round);
            let (Some(first), Some(last)) = (domains.first(), domains.last()) else { continue };
            if last.size - first.size <= rule.constraint.max_skew as usize {
                continue;
            }
            let (smallest, largest, key) = (first.size, last.size, &rule.constraint.topology_key);
            let why = format!(
                "{largest} pods are in one domain of {key} and {smallest} in another, which is more than the skew of {}",
                rule.constraint.max_skew
            );
            let total: usize = domains.iter().map(|domain| domain.size).sum();
            let n = domains.len();
            let mut sizes: BTreeMap<Name, usize> =
                domains.iter().map(|domain| (domain.value.clone(), domain.size)).collect();
            for (task, node) in Self::choose(&rule, &mut domains, round) {
                if full.contains(&node) || !round.is_evictable(task) {
                    continue;
                }
                let Some(own) = rule.counts(round.cluster(), node) else { continue };
                if self.node_fit {
                    let below: Vec<NodeId> = round.nodes().to_vec();
                    let is_below = |other: &NodeId| {
                        let value = rule.counts(round.cluster(), *other);
                        *other != node && value.is_some_and(|value| sizes[&value] * n < total)
                    };
                    let below: Vec<NodeId> = below.into_iter().filter(is_below).collect();
                    if !below.into_iter().any(|other| round.fits_on(task, other)) {
                        continue;
                    }
                }
                let here = sizes[&own];
                let accept = |cluster: &ClusterState, other: NodeId| {
                    rule.counts(cluster, other).is_some_and(|value| value != own && sizes[&value] + 1 < here)
                };
                let better = Some(Better { accept: &accept, again: Again::Allowed, load: None });
                match round.evict(&Request { task, why: why.clone(), better }) {
                    Answer::Goes(to) => {
                        *sizes.entry(own).or_default() -= 1;
                        if let Some(value) = to.and_then(|to| rule.counts(round.cluster(), to)) {
                            *sizes.entry(value).or_default() += 1;
                        }
                    }
                    Answer::Limit(Reached::Total) => return Ok(()),
                    Answer::Limit(Reached::Node) => drop(full.insert(node)),
                    Answer::Stays | Answer::Limit(Reached::Namespace) => {}
                }
            }
        }
        Ok(())
    }
}
