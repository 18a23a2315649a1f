//! Orders that are total by construction: keys from plugins, then age, then name.
//!
//! Volcano's comparators answer «which of two first»; all of them compare a key. Here a plugin gives the key, so that an
//! order cannot contradict itself, and a key can be kept in a queue and renewed when it moves.

use std::cmp::Reverse;

use krafla_model::{JobId, Name, QueueId, TaskId, Time};
use ordered_float::OrderedFloat;
use smallvec::SmallVec;

/// Keys of one object, most significant first; smaller comes first. Each plugin pushes a fixed number of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(SmallVec<[OrderedFloat<f64>; 6]>);

impl Rank {
    /// Smaller first.
    pub fn ascending(&mut self, key: impl Into<f64>) {
        self.0.push(OrderedFloat(key.into()));
    }

    /// Larger first.
    pub fn descending(&mut self, key: impl Into<f64>) {
        self.0.push(OrderedFloat(-key.into()));
    }

    /// Those that satisfy a condition first.
    pub fn first_if(&mut self, condition: bool) {
        self.0.push(OrderedFloat(if condition { 0.0 } else { 1.0 }));
    }

    /// The keys.
    pub fn keys(&self) -> &[OrderedFloat<f64>] {
        &self.0
    }
}

/// Place of a job among the jobs of its queue. Ties of the plugins go to the older job, then by namespace and name.
pub type JobRank = (Rank, Time, Name, Name, JobId);

/// Place of a queue. Ties go to the older queue, then by name.
pub type QueueRank = (Rank, Time, Name, QueueId);

/// Place of a task among the tasks of its job; see [`Task::default_order`](krafla_model::Task::default_order).
pub type TaskRank = (Rank, u32, Time, Name, TaskId);

/// A priority queue whose smallest rank is popped first and whose ranks can be renewed.
#[derive(Debug)]
pub struct RankedQueue<I: std::hash::Hash + Eq, R: Ord> {
    heap: priority_queue::PriorityQueue<I, Reverse<R>, std::hash::BuildHasherDefault<std::hash::DefaultHasher>>,
}

impl<I: std::hash::Hash + Eq, R: Ord> Default for RankedQueue<I, R> {
    fn default() -> Self {
        Self { heap: priority_queue::PriorityQueue::with_default_hasher() }
    }
}

impl<I: std::hash::Hash + Eq, R: Ord> RankedQueue<I, R> {
    /// Adds an item, or renews its rank. Ranks are total, so the order of pushes cannot be seen.
    pub fn push(&mut self, item: I, rank: R) {
        self.heap.push(item, Reverse(rank));
    }

    /// Takes the first item.
    pub fn pop(&mut self) -> Option<I> {
        self.heap.pop().map(|(item, _)| item)
    }

    /// Takes an item out, wherever it stands. Answers whether it was there.
    pub fn remove(&mut self, item: &I) -> bool {
        self.heap.remove(item).is_some()
    }

    /// Renews the rank of an item that is in the queue.
    pub fn renew(&mut self, item: &I, rank: R) {
        self.heap.change_priority(item, Reverse(rank));
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Items that `pick` accepts, in no order that may be relied on; for renewing and counting.
    pub fn items(&self) -> impl Iterator<Item = &I> {
        self.heap.iter().map(|(item, _)| item)
    }
}
