//! Counts by topology domain: the value of a node label. They are kept from one pod to the next of its shape, and follow
//! the nodes: only what changed is counted again.

use std::ops::{AddAssign, SubAssign};

use krafla_framework::Room;
use krafla_model::ids::Lookup;
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

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.staying += other.staying;
        self.leaving += other.leaving;
    }
}

impl SubAssign for Count {
    fn sub_assign(&mut self, other: Self) {
        self.staying -= other.staying;
        self.leaving -= other.leaving;
    }
}

/// What holds for no domain.
const NONE: u32 = u32::MAX;

/// Sums over the nodes of each domain of one label key.
#[derive(Clone, Debug)]
pub(crate) struct Domains<T> {
    /// The key.
    pub(crate) key: Name,
    numbers: Lookup<Name, u32>,
    sums: Vec<T>,
    total: T,
    /// By place of the node in tie order: its domain, and what it adds.
    of_nodes: Vec<(u32, T)>,
}

impl<T: AddAssign + SubAssign + Copy + Default + PartialEq> Domains<T> {
    /// Of so many nodes, which add nothing yet.
    pub(crate) fn new(key: Name, nodes: usize) -> Self {
        let of_nodes = vec![(NONE, T::default()); nodes];
        Self { key, numbers: Lookup::default(), sums: Vec::new(), total: T::default(), of_nodes }
    }

    /// From now on a node is in the domain of this value, and adds this. A node without a value is in none, and adds
    /// nothing.
    pub(crate) fn set(&mut self, place: usize, value: Option<&Name>, adds: T) {
        let (domain, before) = self.of_nodes[place];
        if let Some(sum) = self.sums.get_mut(domain as usize) {
            *sum -= before;
            self.total -= before;
        }
        self.of_nodes[place] = match value {
            None => (NONE, T::default()),
            Some(value) => {
                let domain = self.number(value);
                self.sums[domain as usize] += adds;
                self.total += adds;
                (domain, adds)
            }
        };
    }

    /// Something more, or less, in the domain of a node.
    pub(crate) fn shift(&mut self, place: usize, by: impl FnOnce(&mut T)) {
        let (domain, adds) = &mut self.of_nodes[place];
        let Some(sum) = self.sums.get_mut(*domain as usize) else { return };
        *sum -= *adds;
        self.total -= *adds;
        by(adds);
        *sum += *adds;
        self.total += *adds;
    }

    fn number(&mut self, value: &Name) -> u32 {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = u32::try_from(self.sums.len()).unwrap_or(NONE);
        self.numbers.insert(value.clone(), number);
        self.sums.push(T::default());
        number
    }

    /// The sum over the domain of a node; `None` if it is in none.
    pub(crate) fn at(&self, place: usize) -> Option<T> {
        self.sums.get(self.of_nodes[place].0 as usize).copied()
    }

    /// What a node adds.
    pub(crate) fn adds(&self, place: usize) -> T {
        self.of_nodes[place].1
    }

    /// The number of a node's domain, below [`Self::n_numbers`]; `None` if it is in none.
    pub(crate) fn domain(&self, place: usize) -> Option<usize> {
        Some(self.of_nodes[place].0).filter(|domain| *domain != NONE).map(|domain| domain as usize)
    }

    /// How many domains there have been.
    pub(crate) fn n_numbers(&self) -> usize {
        self.sums.len()
    }

    /// The sums of all domains there have been, by number.
    pub(crate) fn sums(&self) -> &[T] {
        &self.sums
    }

    /// The sum over all domains.
    pub(crate) fn total(&self) -> T {
        self.total
    }
}

/// The version of the cluster for which something about each node holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Follower {
    seen: u64,
    nodes_version: u64,
    namespaces_version: u64,
}

impl Follower {
    /// Places of the nodes that have changed since the last call; `None` if all are to be looked at anew: the first time,
    /// and when nodes came or went, or namespaces changed, which pods' terms look at.
    pub(crate) fn changed(&mut self, cluster: &ClusterState) -> Option<Vec<usize>> {
        let (seen, known) = (self.seen, self.nodes_version == cluster.nodes_version());
        let known = known && self.namespaces_version == cluster.namespaces_version() && seen > 0;
        *self = Self {
            seen: cluster.version(),
            nodes_version: cluster.nodes_version(),
            namespaces_version: cluster.namespaces_version(),
        };
        let changed = cluster.changed_nodes(seen).filter(|_| known)?;
        let mut places: Vec<usize> = changed.map(|node| cluster.node_rank(node) as usize).collect();
        places.sort_unstable();
        places.dedup();
        Some(places)
    }
}

/// The place of a node in tie order.
pub(crate) fn place(cluster: &ClusterState, node: NodeId) -> usize {
    cluster.node_rank(node) as usize
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_follow_what_single_nodes_add() {
        let (a, b): (Name, Name) = ("a".into(), "b".into());
        let mut domains: Domains<i64> = Domains::new("zone".into(), 3);
        domains.set(0, Some(&a), 2);
        domains.set(1, Some(&a), 3);
        domains.set(2, None, 7);
        assert_eq!((domains.at(0), domains.at(2), domains.total()), (Some(5), None, 5));
        domains.set(1, Some(&b), 4);
        domains.shift(0, |adds| *adds += 1);
        assert_eq!((domains.at(0), domains.at(1), domains.total()), (Some(3), Some(4), 7));
        assert_eq!((domains.domain(1), domains.domain(2), domains.sums()), (Some(1), None, &[3, 4][..]));
    }
}
