//! Evictions that somebody else takes on and carries out in their own time: a virtual machine that is moved while it runs. The
//! pod says so by an annotation; the API server refuses its eviction with words that are agreed upon, and the pod is on its
//! way until it is gone, as long as an annotation says so, or for ten minutes after those words.

use krafla_framework::{EVICTION_IN_PROGRESS, REQUEST_EVICT_ONLY};
use krafla_model::{ClusterState, NodeId, TaskId};

/// Whether a pod is one that is only asked to go.
pub(crate) fn is_only_asked(cluster: &ClusterState, task: TaskId) -> bool {
    cluster.shape_of(task).spec.annotations.get(REQUEST_EVICT_ONLY).is_some()
}

/// Whether a pod is being moved by somebody else.
pub(crate) fn is_on_its_way(cluster: &ClusterState, task: TaskId) -> bool {
    let says_so = || cluster.shape_of(task).spec.annotations.get(EVICTION_IN_PROGRESS).is_some();
    is_only_asked(cluster, task) && (cluster.now() < cluster.task(task).evacuates_until || says_so())
}

/// Everybody who is, with their nodes; by id.
pub(crate) fn on_their_way(cluster: &ClusterState) -> impl Iterator<Item = (TaskId, NodeId)> + '_ {
    let runs = cluster.tasks().filter(|(_, task)| task.status().holds_node());
    runs.filter(|(id, _)| is_on_its_way(cluster, *id)).filter_map(|(id, task)| Some((id, task.node()?)))
}
