//! What pods prefer of each other, summed by topology domain.

use std::collections::BTreeMap;

use krafla_framework::{CycleState, PreScore};
use krafla_model::pod_affinity::PodTerm;
use krafla_model::{ClusterState, Name, NodeId, PodShape, ShapeId, TaskId};

use super::super::domains::placed;
use super::{InterPodAffinity, meets};

/// Sums of weights by label key and value.
struct Liked(BTreeMap<Name, BTreeMap<Name, i64>>);

impl InterPodAffinity {
    /// Whether the task may prefer some nodes for the sake of pods that are there, or they for its sake.
    pub(super) fn has_preferences(&self, cluster: &ClusterState, task: TaskId) -> bool {
        let others = !self.ignore_preferred_terms_of_existing_pods && cluster.affine().next().is_some();
        prefers(&cluster.shape_of(task).spec) || others
    }

    /// Sums what the task prefers of pods that are there, and what they prefer of it. Cost: all pods if the task
    /// prefers anything, else those that have affinity terms.
    pub(super) fn count_preferences(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreScore {
        if !self.has_preferences(cluster, task) {
            return PreScore::Skip;
        }
        let spec = &*cluster.shape_of(task).spec;
        let mut between: BTreeMap<ShapeId, Vec<(&Name, i64)>> = BTreeMap::new();
        let mut liked = Liked(BTreeMap::new());
        let mut add = |node: NodeId, other: TaskId| {
            let shape = cluster.task(other).shape;
            let weights =
                between.entry(shape).or_insert_with(|| self.between(cluster, spec, &cluster.shape(shape).spec));
            for (key, weight) in weights {
                if let Some(value) = cluster.node(node).spec.labels.get(key) {
                    *liked.0.entry((*key).clone()).or_default().entry(value.clone()).or_default() += *weight;
                }
            }
        };
        if prefers(spec) {
            placed(cluster).for_each(|(node, other)| add(node, other));
        } else {
            let with_node = |other: TaskId| Some((cluster.task(other).node()?, other));
            let holds = |&(_, other): &(NodeId, TaskId)| cluster.task(other).status().holds_node();
            cluster.affine().filter_map(with_node).filter(holds).for_each(|(node, other)| add(node, other));
        }
        if liked.0.is_empty() {
            return PreScore::Skip;
        }
        state.put(liked);
        PreScore::Score
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
    let Some(Liked(liked)) = state.get() else { return 0.0 };
    let labels = &cluster.node(node).spec.labels;
    liked.iter().filter_map(|(key, values)| values.get(labels.get(key)?)).sum::<i64>() as f64
}

/// From the smallest sum to the largest, 0 to 100, in whole numbers; all 0 if they are equal.
pub(super) fn normalize(scores: &mut [f64]) {
    let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for score in scores {
        *score = if most > least { (100.0 * ((*score - least) / (most - least))).trunc() } else { 0.0 };
    }
}
