//! Constraints that rank nodes: the fewer pods a node's domains have, the better.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use super::{HOSTNAME, count_on, is_included, value};

/// What PreScore counted.
pub(super) struct Counted {
    constraints: Vec<SpreadConstraint>,
    /// For each constraint the pods by domain, of the domains in which nodes are to be scored. Those of single nodes
    /// are counted when the node is scored.
    domains: Vec<BTreeMap<Name, i64>>,
    /// `ln(domains + 2)`: with more domains a difference of one pod means more.
    weights: Vec<f64>,
    /// Nodes that lack a key; they score 0.
    ignored: BTreeSet<NodeId>,
}

impl Counted {
    /// Counts for the nodes to be scored. Cost: all pods.
    #[allow(clippy::cast_precision_loss, reason = "numbers of domains")]
    pub(super) fn of(
        cluster: &ClusterState,
        task: TaskId,
        nodes: &[NodeId],
        constraints: Vec<SpreadConstraint>,
        needs_all_keys: bool,
    ) -> Self {
        let spec = &*cluster.shape_of(task).spec;
        let empty = Name::default();
        let lacks_a_key = |node: NodeId| {
            needs_all_keys && constraints.iter().any(|one| value(cluster, node, &one.topology_key).is_none())
        };
        let ignored: BTreeSet<NodeId> = nodes.iter().copied().filter(|node| lacks_a_key(*node)).collect();
        let mut domains: Vec<BTreeMap<Name, i64>> = vec![BTreeMap::new(); constraints.len()];
        let scored = || nodes.iter().filter(|node| !ignored.contains(*node));
        for (constraint, domains) in constraints.iter().zip(&mut domains) {
            if constraint.topology_key != HOSTNAME {
                let value = |node: &NodeId| value(cluster, *node, &constraint.topology_key).unwrap_or(&empty).clone();
                domains.extend(scored().map(|node| (value(node), 0)));
            }
        }
        let size = |(constraint, domains): (&SpreadConstraint, &BTreeMap<Name, i64>)| {
            if constraint.topology_key == HOSTNAME { nodes.len() - ignored.len() } else { domains.len() }
        };
        let weights = constraints.iter().zip(&domains).map(|all| ((size(all) + 2) as f64).ln()).collect();
        for &node in cluster.nodes() {
            if lacks_a_key(node) {
                continue;
            }
            for (constraint, domains) in constraints.iter().zip(&mut domains) {
                let value = value(cluster, node, &constraint.topology_key).unwrap_or(&empty);
                let Some(count) = domains.get_mut(value) else { continue };
                if is_included(constraint, cluster, spec, node) {
                    *count += count_on(constraint, &spec.namespace, cluster, node);
                }
            }
        }
        Self { constraints, domains, weights, ignored }
    }

    /// The sum over the constraints of pods in the node's domain, weighted, and of the skew that is allowed less one.
    #[allow(clippy::cast_precision_loss, reason = "numbers of pods")]
    pub(super) fn of_node(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> f64 {
        if self.ignored.contains(&node) {
            return 0.0;
        }
        let namespace = &cluster.shape_of(task).spec.namespace;
        let mut sum = 0.0;
        for ((constraint, domains), weight) in self.constraints.iter().zip(&self.domains).zip(&self.weights) {
            let Some(value) = value(cluster, node, &constraint.topology_key) else { continue };
            let count = if constraint.topology_key == HOSTNAME {
                count_on(constraint, namespace, cluster, node)
            } else {
                domains.get(value).copied().unwrap_or(0)
            };
            sum += count as f64 * weight + f64::from(constraint.max_skew - 1);
        }
        sum.round()
    }

    /// `100 * (most + least - score) / most` in whole numbers; 100 where all are 0; 0 for ignored nodes.
    pub(super) fn normalize(&self, nodes: &[NodeId], scores: &mut [f64]) {
        let scored = || nodes.iter().zip(scores.iter()).filter(|(node, _)| !self.ignored.contains(node));
        let least = scored().map(|(_, score)| *score).fold(f64::INFINITY, f64::min);
        let most = scored().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
        for (node, score) in nodes.iter().zip(scores) {
            *score = if self.ignored.contains(node) {
                0.0
            } else if most == 0.0 {
                100.0
            } else {
                (100.0 * (most + least - *score) / most).trunc()
            };
        }
    }
}
