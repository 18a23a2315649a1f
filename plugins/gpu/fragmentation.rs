//! Fragmentation of GPUs: how much of what is idle the usual pods cannot use (Weng et al., ATC '23).
//!
//! For one node and one usual pod: all that is idle, if the pod does not fit or needs no GPU; else the rests of devices
//! that are smaller than its share. The measure of the node is the mean over the usual pods, by how frequent they are.
//! Unit: thousandths of a device.

use std::collections::BTreeMap;

use krafla_model::ids::Id as _;
use krafla_model::{ClusterState, NodeId, PodShape};

use super::{Ask, Left};
use crate::node::node_affinity::required_matches;

/// Pods that are looked at, in percent of all, the most frequent first.
const COVERED_PERCENT: u64 = 95;

/// A usual pod.
#[derive(Clone, Debug, PartialEq)]
struct Usual {
    ask: Ask,
    /// Part of all usual pods.
    frequency: f64,
    /// Where it says on which nodes it may run: nodes by slot.
    nodes: Option<Vec<bool>>,
}

/// The usual pods of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsualPods(Vec<Usual>);

impl UsualPods {
    /// The shapes of the pods that there are, without those that are rare. Cost: shapes, and nodes for each shape that
    /// selects some.
    pub fn of(cluster: &ClusterState) -> Self {
        // Memory does not count: what asks for as much CPU and GPU, of the same nodes, is one.
        let mut kinds: BTreeMap<_, Kind<'_>> = BTreeMap::new();
        for shape in cluster.shapes() {
            let (ask, spec) = (Ask::of(shape), &*shape.spec);
            let kind = kinds.entry((ask, &spec.node_selector, &spec.required_affinity));
            kind.or_insert(Kind { ask, spec, pods: 0 }).pods += u64::from(shape.users());
        }
        let mut kinds: Vec<Kind<'_>> = kinds.into_values().collect();
        // Of equally frequent ones the smaller key stays first.
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.pods));
        let all: u64 = kinds.iter().map(|kind| kind.pods).sum();
        let mut covered = 0;
        let taken = kinds.into_iter().take_while(|kind| {
            let more = covered * 100 < all * COVERED_PERCENT;
            covered += kind.pods;
            more
        });
        let taken: Vec<Kind<'_>> = taken.collect();
        let sum: u64 = taken.iter().map(|kind| kind.pods).sum();
        #[allow(clippy::cast_precision_loss, reason = "numbers of pods")]
        let usual = |Kind { ask, spec, pods }: Kind<'_>| Usual {
            ask,
            frequency: pods as f64 / sum as f64,
            nodes: (!spec.node_selector.is_empty() || spec.required_affinity.is_some())
                .then(|| accepted(cluster, spec)),
        };
        Self(taken.into_iter().map(usual).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What of a node's idle GPUs the usual pods cannot use on average, in thousandths of a device.
    /// Cost: usual pods times devices.
    #[allow(clippy::cast_precision_loss, reason = "at most 255,000")]
    pub fn lost_on(&self, node: NodeId, left: &Left) -> f64 {
        let idle = left.gpu_milli();
        if idle == 0 {
            return 0.0;
        }
        let mut lost = 0.0;
        for usual in &self.0 {
            lost += usual.frequency * usual.cannot_use(node, left, idle) as f64;
        }
        lost
    }
}

impl Usual {
    fn cannot_use(&self, node: NodeId, left: &Left, idle: i64) -> i64 {
        let Ask { cpu_milli, devices, gpu_milli } = self.ask;
        let may = self.nodes.as_ref().is_none_or(|nodes| nodes.get(node.index()).copied().unwrap_or(false));
        if devices == 0 || cpu_milli > left.cpu_milli || !may {
            return idle;
        }
        let (mut serving, mut rests) = (0, 0);
        for &one in &left.devices {
            if one >= gpu_milli {
                serving += 1;
            } else {
                rests += i64::from(one);
            }
        }
        if serving < usize::from(devices) { idle } else { rests }
    }
}

/// Pods that ask for as much of the same nodes.
struct Kind<'a> {
    ask: Ask,
    /// Of one of them.
    spec: &'a PodShape,
    pods: u64,
}

/// Which nodes a pod may run on by its selector and affinity: by slot.
fn accepted(cluster: &ClusterState, spec: &PodShape) -> Vec<bool> {
    let mut nodes = Vec::new();
    for &id in cluster.nodes() {
        if nodes.len() <= id.index() {
            nodes.resize(id.index() + 1, false);
        }
        nodes[id.index()] = required_matches(spec, &cluster.node(id).spec);
    }
    nodes
}

#[cfg(test)]
mod tests {
    use krafla_testkit::Scene;

    use super::*;

    /// Half of the pods ask for a GPU and 4 cores, half for two; a rare one for eight.
    fn cluster() -> ClusterState {
        Scene::new()
            .node("n", "64c8g")
            .job("one", |job| (0..10).fold(job, |job, _| job.pending(1, "4c1g")))
            .job("two", |job| (0..10).fold(job, |job, _| job.pending(1, "4c2g")))
            .job("eight", |job| job.pending(1, "4c8g"))
            .build()
    }

    #[test]
    fn what_usual_pods_cannot_use_is_lost() {
        let cluster = cluster();
        let (usual, node) = (UsualPods::of(&cluster), cluster.nodes()[0]);
        assert_eq!(usual.len(), 2, "a pod in twenty-one is no usual one");
        for (cpu_milli, devices, lost) in [
            (8_000, &[1000, 1000][..], 0.0),
            // The rest of 500 for those that need one; all of it for those that need two.
            (8_000, &[500, 1000], (500.0 + 1_500.0) / 2.0),
            (3_999, &[500, 1000], 1_500.0),
            (8_000, &[500, 0], 500.0),
            (8_000, &[0, 0], 0.0),
        ] {
            let left = Left { cpu_milli, devices: devices.iter().copied().collect() };
            assert!((usual.lost_on(node, &left) - lost).abs() < 1e-9, "{left:?}");
        }
    }

    #[test]
    fn pods_that_may_not_run_on_a_node_can_use_nothing_of_it() {
        let cluster = Scene::new()
            .node("a", "8c2g")
            .node("b", "8c2g")
            .job("p", |job| job.selects("kubernetes.io/hostname", "a").pending(4, "1c1g"))
            .build();
        let usual = UsualPods::of(&cluster);
        let lost = |name| {
            usual.lost_on(
                cluster.find_node(name).expect("a node"),
                &Left::of(cluster.node(cluster.find_node(name).expect("a node"))),
            )
        };
        assert_eq!((lost("a"), lost("b")), (0.0, 2_000.0));
    }
}
