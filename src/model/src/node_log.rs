//! Which nodes have changed, newest last: who keeps something about each node follows them without looking at all.
//!
//! The log is bounded. A reader that fell behind is told so, and starts anew.

use std::collections::VecDeque;

use crate::ids::NodeId;
use crate::state::ClusterState;

/// How many changes are kept: 1 MiB of them.
const MOST: usize = 1 << 16;

/// Changed nodes, each with the state's version after the change.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLog {
    entries: VecDeque<(u64, NodeId)>,
    /// The version of the newest change that is no longer kept.
    forgotten: u64,
}

impl NodeLog {
    /// Notes a change. Those of one node in a row are one.
    pub(crate) fn note(&mut self, version: u64, node: NodeId) {
        if let Some(last) = self.entries.back_mut().filter(|(_, last)| *last == node) {
            last.0 = version;
            return;
        }
        if self.entries.len() >= MOST
            && let Some((version, _)) = self.entries.pop_front()
        {
            self.forgotten = version;
        }
        self.entries.push_back((version, node));
    }

    /// Nodes that have changed since the state had the version `seen`, newest first, perhaps several times; `None` if
    /// that is no longer known. Cost: linear in the changes.
    fn since(&self, seen: u64) -> Option<impl Iterator<Item = NodeId>> {
        let newer = self.entries.iter().rev().take_while(move |(version, _)| *version > seen);
        (seen >= self.forgotten).then(|| newer.map(|(_, node)| *node))
    }
}

impl ClusterState {
    /// Nodes of which something has changed since the state had the version `seen`: the node, or what is on it. Newest
    /// first, perhaps several times; `None` if that is no longer known. Nodes that came or went since then are told by
    /// [`Self::nodes_version`].
    pub fn changed_nodes(&self, seen: u64) -> Option<impl Iterator<Item = NodeId>> {
        self.node_log.since(seen)
    }

    /// As [`Self::changed_nodes`], of the nodes themselves: labels, taints, images, what they have.
    pub fn changed_specs(&self, seen: u64) -> Option<impl Iterator<Item = NodeId>> {
        self.spec_log.since(seen)
    }

    /// Moves when nodes come or go, when their order changes, and when they are asked for other resources than before.
    pub fn nodes_version(&self) -> u64 {
        self.nodes_version
    }

    /// Moves when any node itself changes, and with [`Self::nodes_version`].
    pub fn specs_version(&self) -> u64 {
        self.specs_version
    }

    /// What is on a node has changed.
    pub(crate) fn touch_node(&mut self, id: NodeId) {
        self.version += 1;
        if let Some(node) = self.nodes.get_mut(id) {
            node.version = self.version;
            self.node_log.note(self.version, id);
        }
    }

    /// A node itself has changed.
    pub(crate) fn touch_spec(&mut self, id: NodeId) {
        self.touch_node(id);
        self.spec_log.note(self.version, id);
        self.specs_version = self.version;
    }

    /// Everything that is known of single nodes is to be asked anew.
    pub(crate) fn touch_all_nodes(&mut self) {
        self.version += 1;
        self.nodes_version = self.version;
        self.specs_version = self.version;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    #[test]
    fn a_reader_is_told_what_is_newer_or_that_it_fell_behind() {
        let node = NodeId::from_index;
        let mut log = NodeLog::default();
        let since = |log: &NodeLog, seen| log.since(seen).map(Iterator::collect::<Vec<_>>);
        log.note(3, node(1));
        log.note(5, node(2));
        assert_eq!(since(&log, 0), Some(vec![node(2), node(1)]));
        assert_eq!(since(&log, 3), Some(vec![node(2)]));
        log.note(7, node(2));
        assert_eq!(since(&log, 5), Some(vec![node(2)]), "it changed once more");
        assert_eq!(since(&log, 7), Some(vec![]));
        for i in 0..MOST {
            log.note(8 + i as u64, node(i % 2 + 3));
        }
        assert_eq!(since(&log, 5), None);
        assert_eq!(since(&log, 7).map(|nodes| nodes.len()), Some(MOST));
    }
}
