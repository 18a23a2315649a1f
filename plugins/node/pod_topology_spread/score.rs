//! Constraints that rank nodes: the fewer pods a node's domains have, the better.

use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use super::super::domains::{Domains, Follower, place};
use super::{HOSTNAME, count_on, is_included, value};

/// What PreScore counted.
#[derive(Default)]
pub(super) struct Counted {
    follower: Follower,
    needs_all_keys: bool,
    constraints: Vec<Counts>,
    /// By place, whether a node lacks a key; it scores 0.
    lacks_a_key: Vec<bool>,
}

/// The counts of one constraint.
struct Counts {
    constraint: SpreadConstraint,
    /// Pods by domain; where domains are single nodes, pods on each node.
    domains: Domains<i64>,
    /// `ln(domains + 2)`, of those in which nodes are to be scored: with more domains a difference of one pod means more.
    weight: f64,
}

impl Counted {
    /// Brings the counts up to date, for the nodes to be scored. Cost: the pods on nodes that have changed, the first time
    /// all; and the nodes to be scored.
    pub(super) fn follow(
        &mut self,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &[NodeId],
        constraints: Vec<SpreadConstraint>,
        needs_all_keys: bool,
    ) {
        let n = cluster.nodes().len();
        let same = self.constraints.iter().map(|counts| &counts.constraint).eq(&constraints);
        if !same || self.needs_all_keys != needs_all_keys {
            self.follower = Follower::default();
            self.needs_all_keys = needs_all_keys;
        }
        match self.follower.changed(cluster) {
            Some(places) => places.into_iter().for_each(|place| self.count_on(cluster, task, place)),
            None => {
                let counts = |constraint: SpreadConstraint| {
                    let domains = Domains::new(constraint.topology_key.clone(), n);
                    Counts { constraint, domains, weight: 0.0 }
                };
                self.constraints = constraints.into_iter().map(counts).collect();
                self.lacks_a_key = vec![false; n];
                (0..n).for_each(|place| self.count_on(cluster, task, place));
            }
        }
        self.weigh(cluster, nodes);
    }

    /// Counts the pods on one node.
    fn count_on(&mut self, cluster: &ClusterState, task: TaskId, place: usize) {
        let spec = &*cluster.shape_of(task).spec;
        let (node, empty) = (cluster.nodes()[place], Name::default());
        let has = |counts: &Counts| value(cluster, node, &counts.constraint.topology_key).is_some();
        let lacks_a_key = self.needs_all_keys && !self.constraints.iter().all(has);
        self.lacks_a_key[place] = lacks_a_key;
        for Counts { constraint, domains, .. } in &mut self.constraints {
            // A node is scored by what is on it whether or not the constraint includes it.
            let counts = constraint.topology_key == HOSTNAME || is_included(constraint, cluster, spec, node);
            let pods = if counts && !lacks_a_key { count_on(constraint, &spec.namespace, cluster, node) } else { 0 };
            domains.set(place, Some(value(cluster, node, &constraint.topology_key).unwrap_or(&empty)), pods);
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "numbers of domains")]
    fn weigh(&mut self, cluster: &ClusterState, nodes: &[NodeId]) {
        let scored = || nodes.iter().map(|node| place(cluster, *node)).filter(|place| !self.lacks_a_key[*place]);
        for counts in &mut self.constraints {
            let size = if counts.constraint.topology_key == HOSTNAME {
                scored().count()
            } else {
                let mut seen = vec![false; counts.domains.n_numbers()];
                let mut is_new = |domain: &usize| !std::mem::replace(&mut seen[*domain], true);
                scored().filter_map(|place| counts.domains.domain(place)).filter(|domain| is_new(domain)).count()
            };
            counts.weight = ((size + 2) as f64).ln();
        }
    }

    /// The sum over the constraints of pods in the node's domain, weighted, and of the skew that is allowed less one.
    #[allow(clippy::cast_precision_loss, reason = "numbers of pods")]
    pub(super) fn of_node(&self, cluster: &ClusterState, node: NodeId) -> f64 {
        let place = place(cluster, node);
        if self.lacks_a_key[place] {
            return 0.0;
        }
        let mut sum = 0.0;
        for Counts { constraint, domains, weight } in &self.constraints {
            if !self.needs_all_keys && value(cluster, node, &constraint.topology_key).is_none() {
                continue;
            }
            let count = match constraint.topology_key == HOSTNAME {
                true => domains.adds(place),
                false => domains.at(place).unwrap_or(0),
            };
            sum += count as f64 * weight + f64::from(constraint.max_skew - 1);
        }
        sum.round()
    }

    /// `100 * (most + least - score) / most` in whole numbers; 100 where all are 0; 0 for ignored nodes.
    pub(super) fn normalize(&self, cluster: &ClusterState, nodes: &[NodeId], scores: &mut [f64]) {
        let is_ignored = |node: &NodeId| self.lacks_a_key[place(cluster, *node)];
        let scored = || nodes.iter().zip(scores.iter()).filter(|(node, _)| !is_ignored(node));
        let least = scored().map(|(_, score)| *score).fold(f64::INFINITY, f64::min);
        let most = scored().map(|(_, score)| *score).fold(f64::NEG_INFINITY, f64::max);
        for (node, score) in nodes.iter().zip(scores) {
            *score = if is_ignored(node) {
                0.0
            } else if most == 0.0 {
                100.0
            } else {
                (100.0 * (most + least - *score) / most).trunc()
            };
        }
    }
}
