//! How good a node is for the volumes that it would give: by the part of its storage that they take.
//!
//! Reckoned as kube-scheduler 1.37 does, where the gate StorageCapacityScoring is on. Where volumes that are there are
//! taken, it is their sizes that count; otherwise the storage that new ones would be made of.

use std::collections::BTreeMap;

use krafla_model::storage::ClaimChoice;
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use super::super::node_resources_fit::{interpolate, percent};
use super::fit::{Space, space};

/// Bytes of a class: asked for, and there.
type Use = (i64, i64);

/// Score of a node, 0 to 100; 0 if it gives no volume, or nothing is known of its storage.
pub(super) fn score(
    cluster: &ClusterState,
    task: TaskId,
    node: NodeId,
    choices: &[ClaimChoice],
    shape: &[(i64, i64)],
) -> i64 {
    let mut classes = taken(cluster, task, choices);
    if classes.is_empty() {
        classes = made(cluster, task, node, choices);
    }
    let rate = |(asked, there): &Use| {
        interpolate(shape, if *there == 0 || asked > there { 100 } else { percent(*asked, *there) })
    };
    let n = i64::try_from(classes.len()).unwrap_or(i64::MAX);
    let sum: i64 = classes.values().map(rate).sum();
    // Rounded to the nearest.
    if n == 0 { 0 } else { (2 * sum + n) / (2 * n) }
}

/// Volumes that are taken as they are, by class.
fn taken<'a>(cluster: &'a ClusterState, task: TaskId, choices: &[ClaimChoice]) -> BTreeMap<&'a Name, Use> {
    let mut classes: BTreeMap<&Name, Use> = BTreeMap::new();
    let (storage, namespace) = (cluster.storage(), cluster.namespace_of(task));
    for choice in choices {
        let ClaimChoice::Volume { claim, volume } = choice else { continue };
        if let (Some(claim), Some(volume)) = (storage.claim(namespace, claim), storage.volume(volume)) {
            let class = classes.entry(&volume.class).or_default();
            class.0 = class.0.saturating_add(claim.request.unwrap_or(0));
            class.1 = class.1.saturating_add(volume.capacity);
        }
    }
    classes
}

/// Volumes that would be made, by class. They share the storage of their class.
fn made<'a>(cluster: &'a ClusterState, task: TaskId, node: NodeId, choices: &[ClaimChoice]) -> BTreeMap<&'a Name, Use> {
    let mut classes: BTreeMap<&Name, Use> = BTreeMap::new();
    let (storage, namespace) = (cluster.storage(), cluster.namespace_of(task));
    for choice in choices {
        let ClaimChoice::Provision { claim } = choice else { continue };
        let Some(claim) = storage.claim(namespace, claim) else { continue };
        let Some(class) = storage.class(&claim.class) else { continue };
        if let Space::Of(capacity) = space(cluster, claim, class, &cluster.node(node).spec.labels) {
            let class = classes.entry(&class.name).or_default();
            *class = (class.0.saturating_add(claim.request.unwrap_or(0)), capacity);
        }
    }
    classes
}
