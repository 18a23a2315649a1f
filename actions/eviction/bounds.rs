//! What making room takes on each node at the very least, kept from one job to the next of its queue while an action runs.
//! Plugins are not asked: whoever they let go is one of those who could go for the action's sake. Only nodes that have
//! changed are looked at again, so that a thousand jobs that make room cost what changes, and not all nodes each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use krafla_framework::Session;
use krafla_model::{ByNode, NodeId, QueueId, ShapeId, TaskId};
use smallvec::SmallVec;

use super::Beneficiary;
use super::shares::queue_of;
use super::victims::{Cost, QueueRanks, Standing, could_be_asked, run_ms, standing};

/// A node by what it takes there, of equals by tie order.
pub(super) type Place = (Cost, u32, NodeId);

/// See the module.
#[derive(Default)]
pub(crate) struct Bounds {
    /// Of all nodes; `None` where there is no hope.
    known: BTreeMap<(QueueId, ShapeId), ByNode<Option<Least>>>,
    /// Whether nothing is known, so that all nodes are asked.
    blind: bool,
}

/// What it takes on one node at the very least. The places of queues among those to take from move between two jobs, and
/// are not among it.
struct Least {
    /// How many have to go.
    n: usize,
    /// Of so many that weigh least, the one that weighs most; `None` if perhaps nobody need go.
    worst: Option<Standing>,
    /// The queues of those that weigh as much.
    queues: SmallVec<[QueueId; 2]>,
    /// For how long so many of those have run that weigh no more.
    lost: i64,
}

impl Bounds {
    /// One that knows nothing: what is right, for tests to compare with.
    pub(crate) fn blind() -> Self {
        Self { blind: true, ..Self::default() }
    }

    /// Whether they are of use for these tasks: of two of one shape the second would be asked for where the first has
    /// changed things, and there all nodes are asked once for both.
    pub(super) fn suit(&self, session: &Session<'_>, tasks: &VecDeque<TaskId>) -> bool {
        let mut shapes = BTreeSet::new();
        !self.blind && tasks.iter().all(|task| shapes.insert(session.cluster().task(*task).shape))
    }

    /// Nodes where there is hope, by what it takes at the very least, and the others. Cost: a few steps for each node, and
    /// the tasks on those that have changed.
    pub(super) fn of(
        &mut self,
        session: &Session<'_>,
        who: &Beneficiary<'_>,
        ranks: &QueueRanks,
        task: TaskId,
    ) -> (BinaryHeap<Reverse<Place>>, Vec<NodeId>) {
        let cluster = session.cluster();
        let known = self.known.entry((who.queue, cluster.task(task).shape)).or_default();
        known.follow(cluster, |node| Least::of(session, who, task, node));
        let (mut hopeful, mut others) = (Vec::with_capacity(known.values().len()), Vec::new());
        for ((rank, node), least) in (0..).zip(cluster.nodes()).zip(known.values()) {
            match least {
                Some(least) => hopeful.push(Reverse((least.cost(ranks), rank, *node))),
                None => others.push(*node),
            }
        }
        (hopeful.into(), others)
    }
}

impl Least {
    /// Any set that makes room frees what is lacking, so it has at least as many as are needed of the largest; the one of
    /// them that weighs most then weighs at least what the last of as many of the lightest does, and if they are no more
    /// than that, none of them weighs more. Cost: the tasks on the node.
    fn of(session: &Session<'_>, who: &Beneficiary<'_>, task: TaskId, node: NodeId) -> Option<Self> {
        let cluster = session.cluster();
        let tasks = cluster.node(node).books().tasks.iter().copied();
        let could_go: SmallVec<[TaskId; 16]> =
            tasks.filter(|victim| could_be_asked(cluster, who, task, *victim)).collect();
        if could_go.is_empty() {
            return None;
        }
        let (free, shape) = (cluster.node(node).future_idle(), cluster.shape_of(task));
        let of_nodes = cluster.asked_of_nodes(shape);
        let mut n = 0;
        for (resource, asked) in shape.request.iter() {
            let lacking = asked - free.get(resource);
            if lacking <= 0 {
                continue;
            }
            let frees = |victim: &TaskId| cluster.shape_of(*victim).request.get(resource);
            if could_go.iter().map(frees).sum::<i64>() < lacking {
                return None;
            }
            if of_nodes.get(resource) == 0 {
                continue;
            }
            let most = could_go.iter().map(frees).max().unwrap_or(0).max(1);
            n = n.max(usize::try_from((lacking - 1) / most + 1).unwrap_or(usize::MAX));
        }
        if n == 0 {
            return Some(Self { n, worst: None, queues: SmallVec::new(), lost: 0 });
        }
        let mut weighed: Vec<(Standing, i64, Option<QueueId>)> = could_go
            .iter()
            .map(|victim| (standing(session, who, *victim), run_ms(cluster, *victim), queue_of(cluster, *victim)))
            .collect();
        weighed.sort_unstable();
        let worst = weighed[n.min(weighed.len()) - 1].0.clone();
        weighed.truncate(weighed.partition_point(|(standing, ..)| *standing <= worst));
        let mut queues: SmallVec<[QueueId; 2]> =
            weighed.iter().filter(|(standing, ..)| *standing == worst).filter_map(|(.., queue)| *queue).collect();
        queues.sort_unstable();
        queues.dedup();
        let mut runs: SmallVec<[i64; 16]> = weighed.iter().map(|(_, run, _)| *run).collect();
        runs.sort_unstable();
        let lost = runs.iter().take(n).fold(0, |sum: i64, run| sum.saturating_add(*run));
        Some(Self { n, worst: Some(worst), queues, lost })
    }

    fn cost(&self, ranks: &QueueRanks) -> Cost {
        let lightest = || self.queues.iter().map(|queue| ranks.rank(Some(*queue))).min().unwrap_or_default();
        Cost::at_least(self.worst.clone().map(|worst| (worst, lightest())), self.n, self.lost)
    }
}
