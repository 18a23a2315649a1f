//! What a change means for a pod that waits: for the plugins' `helps`. In doubt it helps.

use krafla_model::cluster_event::{About, ClusterEvent};
use krafla_model::{ClusterState, NodeSpec, PodShape, TaskId};

/// Whether it is the waiting pod itself that has changed.
pub(super) fn is_own(task: TaskId, event: &ClusterEvent) -> bool {
    matches!(event.about, About::Pod { task: Some(changed), .. } if changed == task)
}

/// The pod of a change that held room on a node, or was promised some; `None` for one that held nothing.
pub(super) fn holder(event: &ClusterEvent) -> Option<&PodShape> {
    match &event.about {
        About::Pod { shape, node, nominated, .. } if node.is_some() || *nominated => Some(shape),
        _ => None,
    }
}

/// Whether a node suits by this measure that is new, or did not suit before it changed.
pub(super) fn suits_now(cluster: &ClusterState, event: &ClusterEvent, suits: impl Fn(&NodeSpec) -> bool) -> bool {
    match &event.about {
        About::Node { node, before } => cluster
            .get_node(*node)
            .is_some_and(|node| suits(&node.spec) && before.as_ref().is_none_or(|before| !suits(before))),
        _ => false,
    }
}
