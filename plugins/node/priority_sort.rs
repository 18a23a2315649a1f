//! `PrioritySort`: who is more important goes first, then who has waited longer.

use krafla_framework::{NodePlugin, QueuedAt, Rank};
use krafla_model::{ClusterState, TaskId};

/// See the module.
pub struct PrioritySort;

impl NodePlugin for PrioritySort {
    fn name(&self) -> &'static str {
        "PrioritySort"
    }

    /// The queue breaks ties by when a pod entered it.
    fn queue_sort(&self, cluster: &ClusterState, task: TaskId, _: QueuedAt, rank: &mut Rank) {
        rank.descending(cluster.task(task).priority);
    }
}
