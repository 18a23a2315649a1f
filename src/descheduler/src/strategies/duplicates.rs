//! `RemoveDuplicates`: pods of one owner that share a node although others have room.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::read as read_args;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::pod_details::Owner;
use krafla_model::{ClusterState, Name, NodeId, ShapeId, TaskId};

use crate::args::{Choice, names};
use crate::evictor::details;
use crate::limits::Reached;
use crate::memory::Again;
use crate::policy::Strategy;
use crate::round::{Answer, Better, Request, Round};

/// Its arguments.
pub(crate) struct Duplicates {
    choice: Choice,
    not_of: Vec<Name>,
}

/// What makes pods duplicates: namespace, owners, images.
type Kind = (Name, Vec<Owner>, Vec<Name>);

pub(crate) fn read(args: &Value) -> Result<Duplicates, Vec<ArgumentProblem>> {
    read_args(args, &["namespaces", "excludeOwnerKinds"], |args| Duplicates {
        not_of: names(args, "excludeOwnerKinds"),
        choice: Choice::read(args),
    })
}

impl Duplicates {
    fn kind_of(&self, cluster: &ClusterState, task: TaskId) -> Option<Kind> {
        let details = details(cluster, task);
        let excluded = details.owners.iter().any(|owner| self.not_of.contains(&owner.kind));
        if details.owners.is_empty() || excluded || !self.choice.takes(cluster, task) {
            return None;
        }
        Some((cluster.namespace_of(task).clone(), details.owners.clone(), details.images.clone()))
    }

    /// Nodes on which at least one of these pods could run by its selectors and tolerations.
    fn targets(round: &Round<'_, '_, '_>, pods: &[TaskId]) -> usize {
        let cluster = round.cluster();
        let mut shapes: BTreeMap<ShapeId, TaskId> = BTreeMap::new();
        for &task in pods {
            shapes.entry(cluster.task(task).shape).or_insert(task);
        }
        let suits = |node: &&NodeId| {
            let spec = &cluster.node(**node).spec;
            shapes.values().any(|&task| {
                let shape = &cluster.shape_of(task).spec;
                let selected = shape.node_selector.iter().all(|(key, value)| spec.labels.get(key) == Some(value));
                let terms = shape.required_affinity.as_ref();
                let wanted = terms.is_none_or(|terms| terms.iter().any(|term| term.matches(&spec.name, &spec.labels)));
                selected && wanted && !spec.unschedulable && round.tolerates(task, **node)
            })
        };
        round.nodes().iter().filter(suits).count()
    }
}

impl Strategy for Duplicates {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        // By kind and node in tie order, the pods there; the first seen is the original.
        let mut by_kind: BTreeMap<Kind, Vec<(NodeId, Vec<TaskId>)>> = BTreeMap::new();
        for node in round.nodes().to_vec() {
            for task in round.pods_on(node) {
                if !round.is_evictable(task) {
                    continue;
                }
                let Some(kind) = self.kind_of(round.cluster(), task) else { continue };
                let nodes = by_kind.entry(kind).or_default();
                match nodes.last_mut() {
                    Some((last, pods)) if *last == node => pods.push(task),
                    _ => nodes.push((node, vec![task])),
                }
            }
        }
        let mut full: BTreeSet<NodeId> = BTreeSet::new();
        for (_, nodes) in by_kind {
            let duplicates: Vec<TaskId> = nodes.iter().flat_map(|(_, pods)| pods.iter().skip(1).copied()).collect();
            if duplicates.is_empty() {
                continue;
            }
            let targets = Self::targets(round, &duplicates);
            if targets < 2 {
                continue;
            }
            let total: usize = nodes.iter().map(|(_, pods)| pods.len()).sum();
            let most = total.div_ceil(targets);
            let mut counts: BTreeMap<NodeId, usize> = nodes.iter().map(|(node, pods)| (*node, pods.len())).collect();
            for (node, pods) in nodes {
                for &task in pods.iter().skip(most) {
                    if full.contains(&node) {
                        break;
                    }
                    let here = counts[&node];
                    let why = format!("{here} pods of its owner are on the node, {most} on each would do");
                    let accept = |_: &ClusterState, other: NodeId| counts.get(&other).copied().unwrap_or(0) + 1 < here;
                    let better = Some(Better { accept: &accept, again: Again::Allowed, load: None });
                    match round.evict(&Request { task, why, better }) {
                        Answer::Goes(to) => {
                            *counts.entry(node).or_default() -= 1;
                            if let Some(to) = to {
                                *counts.entry(to).or_default() += 1;
                            }
                        }
                        Answer::Limit(Reached::Total) => return Ok(()),
                        Answer::Limit(Reached::Node) => drop(full.insert(node)),
                        Answer::Stays | Answer::Limit(Reached::Namespace) => {}
                    }
                }
            }
        }
        Ok(())
    }
}
