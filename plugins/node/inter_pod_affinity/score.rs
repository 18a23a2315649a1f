//! What pods prefer of each other, summed by topology domain.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{CycleState, PreScore};
use krafla_model::pod_affinity::PodTerm;
use krafla_model::{ClusterState, Name, NodeId, PodShape, ShapeId, TaskId};

use super::super::domains::{Domains, Follower, holding, place};
use super::{InterPodAffinity, meets};

/// Sums of weights, by label key.
#[derive(Default)]
struct Liked {
    follower: Follower,
    sums: Vec<Domains<i64>>,
}

impl Liked {
    /// The place of the sums of a key. Cost: all nodes, for a key that nobody has named so far.
    fn by(&mut self, cluster: &ClusterState, key: &Name) -> usize {
        if let Some(i) = self.sums.iter().position(|domains| domains.key == *key) {
            return i;
        }
        let mut domains = Domains::new(key.clone(), cluster.nodes().len());
        for (place, &node) in cluster.nodes().iter().enumerate() {
            domains.set(place, cluster.node(node).spec.labels.get(key), 0);
        }
        self.sums.push(domains);
        self.sums.len() - 1
    }
}

impl InterPodAffinity {
    /// Whether the task may prefer some nodes for the sake of pods that are there, or they for its sake.
    pub(super) fn has_preferences(&self, cluster: &ClusterState, task: TaskId) -> bool {
        let others = !self.ignore_preferred_terms_of_existing_pods && cluster.affine().next().is_some();
        prefers(&cluster.shape_of(task).spec) || others
    }

    /// Sums what the task prefers of pods that are there, and what they prefer of it.
    pub(super) fn count_preferences(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreScore {
        if !self.has_preferences(cluster, task) {
            return PreScore::Skip;
        }
        let mut liked: Liked = state.take_kept().unwrap_or_default();
        self.follow_preferences(&mut liked, cluster, task);
        let nobody = liked.sums.is_empty();
        state.put_kept(liked);
        PreScore::when(!nobody)
    }

    /// Brings the sums up to date. Cost: the pods on nodes that have changed; the first time all pods if the task prefers
    /// anything, else those that have affinity terms.
    fn follow_preferences(&self, liked: &mut Liked, cluster: &ClusterState, task: TaskId) {
        let spec = &*cluster.shape_of(task).spec;
        let places = match liked.follower.changed(cluster) {
            Some(places) => places,
            None => {
                liked.sums = Vec::new();
                if prefers(spec) {
                    (0..cluster.nodes().len()).collect()
                } else {
                    let on: BTreeSet<NodeId> =
                        cluster.affine().filter_map(|other| cluster.task(other).node()).collect();
                    on.into_iter().map(|node| place(cluster, node)).collect()
                }
            }
        };
        let mut between: BTreeMap<ShapeId, Vec<(&Name, i64)>> = BTreeMap::new();
        for place in places {
            let node = cluster.nodes()[place];
            let mut here: Vec<i64> = vec![0; liked.sums.len()];
            for other in holding(cluster, node) {
                let shape = cluster.task(other).shape;
                let weights =
                    between.entry(shape).or_insert_with(|| self.between(cluster, spec, &cluster.shape(shape).spec));
                for (key, weight) in weights {
                    let i = liked.by(cluster, key);
                    here.resize(liked.sums.len(), 0);
                    here[i] += *weight;
                }
            }
            for (domains, here) in liked.sums.iter_mut().zip(here) {
                domains.set(place, cluster.node(node).spec.labels.get(&domains.key), here);
            }
        }
    }

    /// What a pod that is there adds to its domains, for a new pod: label keys with weights.
    fn between<'t>(&self, cluster: &ClusterState, new: &'t PodShape, there: &'t PodShape) -> Vec<(&'t Name, i64)> {
        let mut weights = Vec::new();
        let mut add = |terms: &'t [(i32, PodTerm)], of: &PodShape, sign: i64| {
            let meant = terms.iter().filter(|(_, term)| meets(cluster, term, of));
            weights.extend(meant.map(|(weight, term)| (&term.topology_key, sign * i64::from(*weight))));
        };
        add(&new.pod_affinity.preferred, there, 1);
        add(&new.pod_anti_affinity.preferred, there, -1);
        add(&there.pod_affinity.preferred, new, 1);
        add(&there.pod_anti_affinity.preferred, new, -1);
        if self.hard_pod_affinity_weight > 0 {
            let satisfied = there.pod_affinity.required.iter().filter(|term| meets(cluster, term, new));
            weights.extend(satisfied.map(|term| (&term.topology_key, i64::from(self.hard_pod_affinity_weight))));
        }
        weights
    }
}

/// Whether a pod prefers to be near others, or away from them.
fn prefers(spec: &PodShape) -> bool {
    !spec.pod_affinity.preferred.is_empty() || !spec.pod_anti_affinity.preferred.is_empty()
}

/// The sum over a node's domains.
#[allow(clippy::cast_precision_loss, reason = "sums of weights up to 100 over at most some million pods")]
pub(super) fn of_node(cluster: &ClusterState, node: NodeId, state: &CycleState) -> f64 {
    let Some(liked) = state.get::<Liked>() else { return 0.0 };
    let place = place(cluster, node);
    liked.sums.iter().filter_map(|domains| domains.at(place)).sum::<i64>() as f64
}

/// From the smallest sum to the largest, 0 to 100, in whole numbers; all 0 if they are equal.
pub(super) fn normalize(scores: &mut [f64]) {
    let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for score in scores {
        *score = if most > least { (100.0 * ((*score - least) / (most - least))).trunc() } else { 0.0 };
    }
}
