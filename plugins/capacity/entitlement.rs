//! What each queue is due and may hold: from its own fields and those of the queues above it.

use std::collections::BTreeMap;

use krafla_model::queue::ROOT_QUEUE;
use krafla_model::{ClusterState, Limits, QueueId, Resources};

use super::tree::Tree;
use crate::queue_limits::capability;

/// What one queue is entitled to, fixed for a session.
#[derive(Default)]
pub(super) struct Entitlement {
    /// What others may not take back, and what share is reckoned by: `deserved`, at least the guarantee.
    pub(super) due: Resources,
    /// What is kept for it: the children's sum for the root.
    pub(super) guarantee: Resources,
    /// What its tasks may hold (Volcano's `realCapability`): what the queue above may hold, less the guarantees of the
    /// queues beside it, and its own capability.
    pub(super) ceiling: Limits,
    /// The same for what it may be promised at the door. In a tree the cluster does not limit that: a job that is larger
    /// than the cluster is let in, so that its pods are there for an autoscaler to see.
    pub(super) door: Limits,
}

/// Of every queue. Cost: linear in queues times depth.
pub(super) fn entitlements(cluster: &ClusterState, tree: &Tree) -> BTreeMap<QueueId, Entitlement> {
    let mut all: BTreeMap<QueueId, Entitlement> = BTreeMap::new();
    let (mut kept, mut due_below) = (BTreeMap::<Option<QueueId>, Resources>::new(), Resources::default());
    let mut root = None;
    for (id, queue) in cluster.queues() {
        if tree.is_hierarchy() && queue.spec.name == ROOT_QUEUE {
            root = Some(id);
            continue;
        }
        let due = queue.deserved.max(&queue.guarantee);
        let parent = tree.parent(cluster, id);
        if !tree.is_broken(id) {
            kept.entry(parent).or_default().add(&queue.guarantee);
            if parent.is_some_and(|parent| cluster.queue(parent).spec.name == ROOT_QUEUE) {
                due_below.add(&due);
            }
        }
        all.insert(id, Entitlement { due, guarantee: queue.guarantee.clone(), ..Entitlement::default() });
    }
    if let Some(id) = root {
        // What the root has of its own does not count, as in Volcano: it is there for the queues below it.
        let guarantee = kept.get(&Some(id)).cloned().unwrap_or_default();
        kept.insert(None, guarantee.clone());
        all.insert(id, Entitlement { due: due_below, guarantee, ..Entitlement::default() });
    }

    let cluster_has = Limits::of_stock(&cluster.totals().allocatable, cluster.names());
    let anything = if tree.is_hierarchy() { Limits::default() } else { cluster_has.clone() };
    let mut from_the_top: Vec<QueueId> = all.keys().copied().collect();
    from_the_top.sort_by_key(|id| tree.path(cluster, *id).len());
    for id in from_the_top {
        let parent = tree.parent(cluster, id);
        let own = all.get(&id).map(|own| own.guarantee.clone()).unwrap_or_default();
        let kept = kept.get(&parent).unwrap_or(&own);
        let (above, above_door) =
            parent.and_then(|parent| all.get(&parent)).map_or((&cluster_has, &anything), |up| (&up.ceiling, &up.door));
        let queue = cluster.queue(id);
        let [ceiling, door] = [above, above_door].map(|above| without_kept(above, kept, &own).min(&capability(queue)));
        let Some(entitlement) = all.get_mut(&id) else { continue };
        if !tree.is_hierarchy() {
            entitlement.due = ceiling.clip(&queue.deserved).max(&queue.guarantee);
        }
        entitlement.ceiling = ceiling;
        entitlement.door = door;
    }
    all
}

/// `above` less what is `kept` for others than the queue whose guarantee is `own`; never more than `above`, and never
/// negative, whatever the guarantees add up to.
fn without_kept(above: &Limits, kept: &Resources, own: &Resources) -> Limits {
    let mut rest = Limits::default();
    for (id, amount) in above.iter() {
        let free = amount.saturating_sub(kept.get(id)).max(0);
        rest.set(id, free.saturating_add(own.get(id)).min(amount));
    }
    rest
}
