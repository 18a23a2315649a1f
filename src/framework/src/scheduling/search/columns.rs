//! What nodes have and hold, by resource rather than by node: what is reckoned for many nodes runs down a column.

use krafla_model::{ClusterState, NodeId, ResourceId};

/// One resource on all nodes, by place in tie order.
#[derive(Clone, Debug, Default)]
pub struct ResourceColumn {
    /// What pods may use of it.
    pub allocatable: Vec<i64>,
    /// What is held.
    pub used: Vec<i64>,
    /// What is held as resource scores see it.
    pub scored_used: Vec<i64>,
}

/// Columns of all nodes, by place in tie order.
#[derive(Clone, Debug, Default)]
pub struct NodeColumns {
    ids: Vec<NodeId>,
    resources: Vec<ResourceColumn>,
    /// Nothing terminates there, nothing is promised, and no devices are modelled: what is not used is free.
    plain: Vec<bool>,
    /// The state's versions that they hold for.
    seen: u64,
    nodes_version: u64,
}

impl NodeColumns {
    /// The node at a place.
    pub fn id(&self, place: u32) -> NodeId {
        self.ids[place as usize]
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The column of a resource; `None` if no node has it or holds any.
    pub fn resource(&self, id: ResourceId) -> Option<&ResourceColumn> {
        self.resources.get(id.index())
    }

    /// Whether what is not used on a node is free.
    pub(super) fn is_plain(&self, place: u32) -> bool {
        self.plain[place as usize]
    }

    /// Whether a request goes beside what is used on a node.
    pub(super) fn fits(&self, place: u32, asked: &[(ResourceId, i64)]) -> bool {
        asked.iter().all(|(id, asked)| {
            let Some(column) = self.resource(*id) else { return *asked <= 0 };
            column.used[place as usize].saturating_add(*asked) <= column.allocatable[place as usize]
        })
    }

    /// Brings them up to date. Cost: the nodes that have changed, times the resources in use.
    pub(super) fn follow(&mut self, cluster: &ClusterState) {
        if self.nodes_version == cluster.nodes_version() && self.seen == cluster.version() && !self.is_empty() {
            return;
        }
        let width = cluster.names().ids().count();
        let changed = cluster.changed_nodes(self.seen).filter(|_| self.nodes_version == cluster.nodes_version());
        match changed.filter(|_| self.resources.len() == width) {
            Some(changed) => {
                for id in changed {
                    self.read(cluster, cluster.node_rank(id) as usize);
                }
            }
            None => {
                self.ids = cluster.nodes().to_vec();
                let n = self.ids.len();
                let column = || vec![0; n];
                let empty = || ResourceColumn { allocatable: column(), used: column(), scored_used: column() };
                self.resources = (0..width).map(|_| empty()).collect();
                self.plain = vec![false; n];
                for place in 0..n {
                    self.read(cluster, place);
                }
            }
        }
        self.nodes_version = cluster.nodes_version();
        self.seen = cluster.version();
    }

    fn read(&mut self, cluster: &ClusterState, place: usize) {
        let node = cluster.node(self.ids[place]);
        let books = node.books();
        for (id, column) in cluster.names().ids().zip(&mut self.resources) {
            column.allocatable[place] = node.allocatable.get(id);
            column.used[place] = books.used.get(id);
            column.scored_used[place] = books.scored_used.get(id);
        }
        self.plain[place] = books.releasing.is_zero() && books.pipelined.is_zero() && books.devices.is_empty();
    }
}
