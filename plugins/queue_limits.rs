//! How queue limits are read. Shared by the plugins that divide the cluster: `proportion` and `capacity`.

use krafla_model::{ClusterState, Limit, Limits, Queue, ResourceId, Resources, TaskId};

/// A queue's capability as it counts: Volcano takes 0 CPU or 0 memory for no limit at all.
pub fn capability(queue: &Queue) -> Limits {
    let mut capability = queue.capability.clone();
    for id in [ResourceId::CPU, ResourceId::MEMORY] {
        if capability.get(id) == Limit::To(0) {
            capability.clear(id);
        }
    }
    capability
}

/// What a queue keeps for tasks that it has let through its gate and that have no node yet, but for this one.
pub fn kept_for_others(cluster: &ClusterState, let_through: &Resources, task: TaskId) -> Resources {
    match cluster.task(task).keeps_room_in_its_queue() {
        true => let_through.minus_clamped(&cluster.shape_of(task).request),
        false => let_through.clone(),
    }
}

/// Pod slots are shared, but no queue is held to its part of them (Volcano leaves `pods` out of these comparisons).
pub fn without_pods(amounts: &Resources) -> Resources {
    amounts.clone().with(ResourceId::PODS, 0)
}
