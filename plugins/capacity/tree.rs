//! The queues as this plugin sees them: a tree, or, without `enableHierarchy`, each on its own.
//!
//! A queue with a wrong parent has no place in the tree. It refuses its own jobs and those of the queues below it; the
//! others are not affected.

use std::collections::BTreeMap;

use krafla_framework::Reason;
use krafla_model::job::Held;
use krafla_model::queue::ROOT_QUEUE;
use krafla_model::{ClusterState, QueueId, Resources};

#[derive(Default)]
pub(super) struct Tree {
    hierarchy: bool,
    /// Queues without a place in the tree, and why.
    broken: BTreeMap<QueueId, Reason>,
    /// Queues directly below each, by name.
    children: BTreeMap<QueueId, Vec<QueueId>>,
    /// Queues below the root on the longest path.
    depth: usize,
}

impl Tree {
    /// Cost: linear in queues times depth.
    pub(super) fn of(cluster: &ClusterState, hierarchy: bool) -> Self {
        let mut tree = Self { hierarchy, ..Self::default() };
        for (id, queue) in cluster.queues() {
            if let [.., parent, _] = queue.path() {
                tree.children.entry(*parent).or_default().push(id);
            }
            if let Some(reason) = fault(cluster, id).filter(|_| hierarchy) {
                tree.broken.insert(id, reason);
            }
        }
        tree.depth = cluster.queues().map(|(id, _)| tree.below_root(cluster, id).len()).max().unwrap_or(0);
        tree
    }

    pub(super) fn is_hierarchy(&self) -> bool {
        self.hierarchy
    }

    /// Whether a queue has no place in the tree.
    pub(super) fn is_broken(&self, id: QueueId) -> bool {
        self.broken.contains_key(&id)
    }

    /// Why a queue starts no jobs of its own for where it stands, if it does not.
    pub(super) fn refusal(&self, cluster: &ClusterState, id: QueueId) -> Option<Reason> {
        if !self.hierarchy {
            return None;
        }
        if let Some(reason) = self.broken.get(&id) {
            return Some(reason.clone());
        }
        let below = self.children.get(&id)?;
        let name = |id: QueueId| cluster.queue(id).spec.name.clone();
        Some(Reason::QueueNotLeaf { queue: name(id), below: below.len(), first: name(*below.first()?) })
    }

    /// A queue's ancestors and itself, from the top.
    pub(super) fn path<'a>(&self, cluster: &'a ClusterState, id: QueueId) -> &'a [QueueId] {
        let path = cluster.queue(id).path();
        if self.hierarchy { path } else { &path[path.len().saturating_sub(1)..] }
    }

    /// The path without the root of the tree, which is the same for all.
    pub(super) fn below_root<'a>(&self, cluster: &'a ClusterState, id: QueueId) -> &'a [QueueId] {
        match self.path(cluster, id) {
            [root, below @ ..] if self.hierarchy && cluster.queue(*root).spec.name == ROOT_QUEUE => below,
            path => path,
        }
    }

    /// The queue directly above; `None` at the top.
    pub(super) fn parent(&self, cluster: &ClusterState, id: QueueId) -> Option<QueueId> {
        self.path(cluster, id).iter().rev().nth(1).copied()
    }

    /// Ancestors from the parent up to `levels` above the queue, without the root.
    pub(super) fn ancestors<'a>(
        &self,
        cluster: &'a ClusterState,
        id: QueueId,
        levels: usize,
    ) -> impl Iterator<Item = QueueId> + use<'a> {
        self.below_root(cluster, id).iter().rev().skip(1).take(levels).copied()
    }

    /// How many queues are above both, counted from the top; one of the two may be above the other.
    pub(super) fn shared(&self, cluster: &ClusterState, one: QueueId, two: QueueId) -> usize {
        let (one, two) = (self.path(cluster, one), self.path(cluster, two));
        one.iter().zip(two).take_while(|(a, b)| a == b).count()
    }

    /// Queues below the root on the longest path.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// A part of what counts as held by a queue: in a tree all that is held below it too.
    pub(super) fn held(&self, cluster: &ClusterState, id: QueueId, part: impl Fn(&Held) -> Resources) -> Resources {
        let mut held = part(cluster.queue(id).held());
        if !self.hierarchy {
            for child in self.children.get(&id).into_iter().flatten() {
                held.sub(&part(cluster.queue(*child).held()));
            }
        }
        held
    }
}

/// What is wrong on the way from a queue to the root. A root that nobody has made is as good as one without limits.
fn fault(cluster: &ClusterState, id: QueueId) -> Option<Reason> {
    let mut walked = vec![id];
    let mut at = id;
    loop {
        let spec = &cluster.queue(at).spec;
        if spec.name == ROOT_QUEUE || spec.parent.is_empty() {
            return None;
        }
        let Some(parent) = cluster.find_queue(&spec.parent) else {
            let (queue, parent) = (spec.name.clone(), spec.parent.clone());
            let missing = Reason::QueueParentNotFound { queue, parent, queues: cluster.queues().count() };
            return (spec.parent != ROOT_QUEUE).then_some(missing);
        };
        if let Some(first) = walked.iter().position(|known| *known == parent) {
            let (queue, parent) = (spec.name.clone(), spec.parent.clone());
            return Some(Reason::QueueCycle { queue, parent, length: walked.len() - first });
        }
        walked.push(parent);
        at = parent;
    }
}
