//! Where pods are that a task must be near, or away from, by topology domain. What pods of one shape say of another is
//! worked out once a shape.

use std::collections::BTreeMap;

use krafla_framework::Room;
use krafla_model::{ClusterState, Name, NodeId, PodShape, ShapeId, TaskId, TaskStatus};
use smallvec::SmallVec;

use super::super::domains::{Count, Domains, Follower, place};
use super::{InterPodAffinity, meets};

/// What PreFilter counted.
#[derive(Default)]
pub(super) struct Counted {
    follower: Follower,
    /// For each of the task's affinity terms, pods that match all of them.
    wanted: Vec<Domains<Count>>,
    /// For each of its anti-affinity terms, pods that match it.
    unwanted: Vec<Domains<Count>>,
    /// By label key, pods that must be away from it.
    repelling: Vec<Domains<Count>>,
}

/// What required terms say between a task and another pod.
struct Said {
    /// The other matches every affinity term.
    wanted: bool,
    /// Which anti-affinity terms it matches, by place.
    unwanted: SmallVec<[usize; 2]>,
    /// Keys of its own anti-affinity terms that the task matches.
    repels: SmallVec<[Name; 1]>,
}

impl Said {
    fn of(cluster: &ClusterState, spec: &PodShape, other: &PodShape) -> Self {
        let (towards, away) = (&spec.pod_affinity.required, &spec.pod_anti_affinity.required);
        let repels = other.pod_anti_affinity.required.iter().filter(|term| meets(cluster, term, spec));
        Self {
            wanted: !towards.is_empty() && towards.iter().all(|term| meets(cluster, term, other)),
            unwanted: (0..away.len()).filter(|&i| meets(cluster, &away[i], other)).collect(),
            repels: repels.map(|term| term.topology_key.clone()).collect(),
        }
    }
}

impl InterPodAffinity {
    /// Brings the counts up to date. Cost: the pods on nodes that have changed; the first time all pods if the task has
    /// terms itself, else those that have anti-affinity terms.
    pub(super) fn follow(&self, counted: &mut Counted, cluster: &ClusterState, task: TaskId) {
        let spec = &*cluster.shape_of(task).spec;
        let mut said: BTreeMap<ShapeId, Said> = BTreeMap::new();
        let places = match counted.follower.changed(cluster) {
            Some(places) => places,
            None => {
                let n = cluster.nodes().len();
                let domains = |term: &krafla_model::pod_affinity::PodTerm| Domains::new(term.topology_key.clone(), n);
                counted.wanted = spec.pod_affinity.required.iter().map(domains).collect();
                counted.unwanted = spec.pod_anti_affinity.required.iter().map(domains).collect();
                counted.repelling = Vec::new();
                if counted.wanted.is_empty() && counted.unwanted.is_empty() {
                    let mut on: Vec<NodeId> = cluster.repelling().filter_map(|one| cluster.task(one).node()).collect();
                    on.sort_unstable();
                    on.dedup();
                    on.into_iter().map(|node| place(cluster, node)).collect()
                } else {
                    (0..n).collect()
                }
            }
        };
        for place in places {
            self.count_on(counted, cluster, spec, place, &mut said);
        }
    }

    /// Counts the pods on one node.
    fn count_on(
        &self,
        counted: &mut Counted,
        cluster: &ClusterState,
        spec: &PodShape,
        place: usize,
        said: &mut BTreeMap<ShapeId, Said>,
    ) {
        let node = cluster.node(cluster.nodes()[place]);
        let mut wanted = Count::default();
        let mut unwanted: SmallVec<[Count; 2]> = SmallVec::from_elem(Count::default(), counted.unwanted.len());
        let mut repelling: SmallVec<[Count; 2]> = SmallVec::from_elem(Count::default(), counted.repelling.len());
        for &other in &node.books().tasks {
            let (status, shape) = (cluster.task(other).status(), cluster.task(other).shape);
            let holds = status.holds_node();
            let is_promised = status == TaskStatus::Pipelined && self.promises_reach_domains;
            if !holds && !is_promised {
                continue;
            }
            let said = said.entry(shape).or_insert_with(|| Said::of(cluster, spec, &cluster.shape(shape).spec));
            if said.wanted && holds {
                wanted.shift(status, 1);
            }
            for &i in &said.unwanted {
                unwanted[i].shift(status, 1);
            }
            for key in &said.repels {
                let i = counted.repelling_by(cluster, key);
                repelling.resize(counted.repelling.len(), Count::default());
                repelling[i].shift(status, 1);
            }
        }
        let Counted { wanted: all_wanted, unwanted: all_unwanted, repelling: all_repelling, .. } = counted;
        for domains in all_wanted {
            domains.set(place, node.spec.labels.get(&domains.key), wanted);
        }
        for (domains, here) in all_unwanted.iter_mut().chain(all_repelling).zip(unwanted.iter().chain(&repelling)) {
            domains.set(place, node.spec.labels.get(&domains.key), *here);
        }
    }

    /// One pod more, or less, on a node.
    pub(super) fn shift(
        &self,
        counted: &mut Counted,
        cluster: &ClusterState,
        task: TaskId,
        other: TaskId,
        node: NodeId,
        by: i64,
    ) {
        let (status, at) = (cluster.task(other).status(), place(cluster, node));
        let said = Said::of(cluster, &cluster.shape_of(task).spec, &cluster.shape_of(other).spec);
        if said.wanted {
            counted.wanted.iter_mut().for_each(|domains| domains.shift(at, |count| count.shift(status, by)));
        }
        for &i in &said.unwanted {
            counted.unwanted[i].shift(at, |count| count.shift(status, by));
        }
        if status == TaskStatus::Pipelined && !self.promises_reach_domains {
            return;
        }
        for key in &said.repels {
            let i = counted.repelling_by(cluster, key);
            counted.repelling[i].shift(at, |count| count.shift(status, by));
        }
    }
}

impl Counted {
    /// The place of the pods that repel by a key. Cost: all nodes, for a key that nobody has repelled by so far.
    fn repelling_by(&mut self, cluster: &ClusterState, key: &Name) -> usize {
        if let Some(i) = self.repelling.iter().position(|domains| domains.key == *key) {
            return i;
        }
        let mut domains = Domains::new(key.clone(), cluster.nodes().len());
        for (place, &node) in cluster.nodes().iter().enumerate() {
            domains.set(place, cluster.node(node).spec.labels.get(key), Count::default());
        }
        self.repelling.push(domains);
        self.repelling.len() - 1
    }

    /// Whether no pod must be away from the task.
    pub(super) fn nobody_repels(&self) -> bool {
        self.repelling.iter().all(|domains| domains.total() == Count::default())
    }

    /// Whether a node's domains have whom the task must be near. The first pod of a group that wants to be near its own
    /// kind may go anywhere where there are such domains.
    pub(super) fn is_near(&self, cluster: &ClusterState, spec: &PodShape, place: usize, when: Room) -> bool {
        let mut near = true;
        for domains in &self.wanted {
            match domains.at(place) {
                None => return false,
                Some(count) => near &= count.when(when) > 0,
            }
        }
        let nobody = || self.wanted.iter().all(|domains| domains.total().when(when) == 0);
        near || (nobody() && spec.pod_affinity.required.iter().all(|term| meets(cluster, term, spec)))
    }

    /// Whether one of a node's domains has a pod that the task must be away from.
    pub(super) fn is_crowded(&self, place: usize, when: Room) -> bool {
        self.unwanted.iter().any(|domains| domains.at(place).is_some_and(|count| count.when(when) > 0))
    }

    /// Whether one of a node's domains has a pod that must be away from the task.
    pub(super) fn is_repelled(&self, place: usize, when: Room) -> bool {
        self.repelling.iter().any(|domains| domains.at(place).is_some_and(|count| count.when(when) > 0))
    }
}
