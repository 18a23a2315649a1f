//! What making room takes on each node at the very least, kept for pods that ask for the same at the same priority. Only
//! nodes that have changed are looked at again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use krafla_model::{ByNode, ClusterState, NodeId, ResourceId, TaskId};
use smallvec::SmallVec;

use super::disruption::{Disruption, Least};

/// Nodes times kinds of pods that are kept at most; each is 40 bytes.
const MOST: usize = 1 << 20;

/// What decides who may go, and how many have to: the priority, and what is asked for.
type Kind = (i32, SmallVec<[(ResourceId, i64); 4]>);

/// See the module.
#[derive(Default)]
pub(super) struct Bounds {
    kinds: BTreeMap<Kind, Kept>,
    n_uses: u64,
}

/// Of all nodes, by place in tie order.
#[derive(Default)]
pub(super) struct Kept {
    of: ByNode<Least>,
    last_used: u64,
}

impl Bounds {
    /// Those for pods like `task`. `candidates` says who may go for it on a node, by nothing but the two priorities. Cost:
    /// the nodes that have changed since a pod like it was last asked for.
    pub(super) fn of(
        &mut self,
        cluster: &ClusterState,
        task: TaskId,
        candidates: impl Fn(NodeId) -> Vec<TaskId>,
    ) -> &Kept {
        let asked = cluster.asked_of_nodes(cluster.shape_of(task));
        let kind: Kind = (cluster.task(task).priority, asked.iter().collect());
        if !self.kinds.contains_key(&kind) {
            self.make_room(cluster.nodes().len());
        }
        self.n_uses += 1;
        let kept = self.kinds.entry(kind).or_default();
        kept.last_used = self.n_uses;
        kept.of.follow(cluster, |node| Least::of(cluster, task, node, &candidates(node)));
        kept
    }

    /// Forgets those that were not used for longest, if one more would be too many.
    fn make_room(&mut self, nodes: usize) {
        while self.kinds.len() >= (MOST / nodes.max(1)).max(1) {
            let oldest = self.kinds.iter().min_by_key(|(_, kept)| kept.last_used).map(|(kind, _)| kind.clone());
            let Some(oldest) = oldest else { return };
            self.kinds.remove(&oldest);
        }
    }
}

impl Kept {
    /// Of some nodes, which are in tie order, the first of those where the least is taken: its place among them, and that.
    pub(super) fn first(&self, cluster: &ClusterState, nodes: &[NodeId]) -> Option<(Disruption, usize)> {
        self.all(cluster, nodes).min()
    }

    /// Those of some nodes but the one at `tried` that could be better than `best`, the best first.
    pub(super) fn others(
        &self,
        cluster: &ClusterState,
        nodes: &[NodeId],
        tried: usize,
        best: Option<(Disruption, usize)>,
    ) -> BinaryHeap<Reverse<(Disruption, usize)>> {
        let could_be_better = |one: &(Disruption, usize)| one.1 != tried && best.is_none_or(|best| *one < best);
        self.all(cluster, nodes).filter(could_be_better).map(Reverse).collect()
    }

    fn all(&self, cluster: &ClusterState, nodes: &[NodeId]) -> impl Iterator<Item = (Disruption, usize)> {
        let now = cluster.now();
        let least = move |node: &NodeId| self.of.values()[cluster.node_rank(*node) as usize].disruption(now);
        nodes.iter().enumerate().filter_map(move |(i, node)| Some((least(node)?, i)))
    }
}
