//! Something about each node that follows what happens to it.

use crate::{ClusterState, NodeId};

/// A value for each node, in tie order.
pub struct ByNode<T> {
    values: Vec<T>,
    nodes_version: u64,
    /// The state's version when they were last brought up to date; `None` before that.
    seen: Option<u64>,
}

impl<T> Default for ByNode<T> {
    fn default() -> Self {
        Self { values: Vec::new(), nodes_version: 0, seen: None }
    }
}

impl<T> ByNode<T> {
    /// Looks again at the nodes that have changed since the last time; at all of them when nodes came or went, or when it
    /// is no longer known which have changed.
    pub fn follow(&mut self, cluster: &ClusterState, look: impl Fn(NodeId) -> T) {
        let same = self.nodes_version == cluster.nodes_version();
        match self.seen.filter(|_| same).and_then(|seen| cluster.changed_nodes(seen)) {
            Some(changed) => {
                let mut changed: Vec<NodeId> = changed.collect();
                changed.sort_unstable();
                changed.dedup();
                for node in changed {
                    self.values[cluster.node_rank(node) as usize] = look(node);
                }
            }
            None => self.values = cluster.nodes().iter().map(|node| look(*node)).collect(),
        }
        self.nodes_version = cluster.nodes_version();
        self.seen = Some(cluster.version());
    }

    /// By place in tie order.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}
