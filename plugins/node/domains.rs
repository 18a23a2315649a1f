//! Counts by topology domain: the value of a node label.

use std::collections::BTreeMap;

use krafla_framework::Room;
use krafla_model::{ClusterState, Name, NodeId, TaskId, TaskStatus};

/// How many pods there are, and how many of them terminate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    staying: i64,
    leaving: i64,
}

impl Count {
    /// How many there are now, or once what terminates is gone.
    pub(crate) fn when(self, when: Room) -> i64 {
        match when {
            Room::Now => self.staying + self.leaving,
            Room::AfterRelease => self.staying,
        }
    }

    /// One pod more, or less, in this status.
    pub(crate) fn shift(&mut self, status: TaskStatus, by: i64) {
        match status {
            TaskStatus::Releasing => self.leaving += by,
            _ => self.staying += by,
        }
    }
}

/// Counts by label key and value. What has come to nothing is taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domains(BTreeMap<Name, BTreeMap<Name, Count>>);

impl Domains {
    /// One pod more, or less, on a node, in the node's domain of this key. A node without the label is in none.
    pub(crate) fn shift(&mut self, cluster: &ClusterState, node: NodeId, key: &Name, status: TaskStatus, by: i64) {
        let Some(value) = cluster.node(node).spec.labels.get(key) else { return };
        let values = self.0.entry(key.clone()).or_default();
        let count = values.entry(value.clone()).or_default();
        count.shift(status, by);
        if *count == Count::default() {
            values.remove(value);
        }
        if values.is_empty() {
            self.0.remove(key);
        }
    }

    /// The count of a domain.
    pub(crate) fn at(&self, key: &Name, value: &Name, when: Room) -> i64 {
        self.0.get(key).and_then(|values| values.get(value)).map_or(0, |count| count.when(when))
    }

    /// Whether nothing was counted.
    pub(crate) fn is_empty(&self, when: Room) -> bool {
        self.0.values().flat_map(BTreeMap::values).all(|count| count.when(when) == 0)
    }

    /// The keys of the domains in which something was counted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Name> {
        self.0.keys()
    }
}

/// Tasks that hold a node, all nodes in tie order.
pub(crate) fn placed(cluster: &ClusterState) -> impl Iterator<Item = (NodeId, TaskId)> {
    cluster.nodes().iter().flat_map(move |&node| holding(cluster, node).map(move |task| (node, task)))
}

/// Tasks that hold a node.
pub(crate) fn holding(cluster: &ClusterState, node: NodeId) -> impl Iterator<Item = TaskId> {
    let tasks = cluster.node(node).books().tasks.iter().copied();
    tasks.filter(|task| cluster.task(*task).status().holds_node())
}

/// Tasks that were promised room on a node.
pub(crate) fn promised(cluster: &ClusterState, node: NodeId) -> impl Iterator<Item = TaskId> {
    let books = cluster.node(node).books();
    let tasks = if books.pipelined.is_zero() { &[] } else { books.tasks.as_slice() };
    tasks.iter().copied().filter(|task| cluster.task(*task).status() == TaskStatus::Pipelined)
}
