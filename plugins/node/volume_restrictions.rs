//! `VolumeRestrictions`: a disk that is written is on one node once, and a claim for one pod has one pod.

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::storage::{AccessModes, ClaimSpec};
use krafla_model::{ClusterState, NodeId, TaskId, TaskStatus};

use super::volume_claims::{concerns, not_found};

/// See the module.
pub struct VolumeRestrictions;

impl NodePlugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        "VolumeRestrictions"
    }

    /// Who else uses a claim may be anywhere.
    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, _: &mut CycleState) -> PreFilter {
        let volumes = &cluster.shape_of(task).spec.volumes;
        if volumes.is_empty() {
            return PreFilter::Skip;
        }
        let namespace = cluster.namespace_of(task);
        for claim in volumes.claims.iter().filter(|claim| !claim.ephemeral) {
            if cluster.storage().claim(namespace, &claim.name).is_none() {
                return PreFilter::Reject(not_found("persistentvolumeclaim", &claim.name));
            }
        }
        if volumes.disks.iter().any(|disk| disk.is_exclusive()) || in_use(cluster, task, Room::Now) {
            return PreFilter::All;
        }
        PreFilter::Skip
    }

    /// After a release the disks and claims of pods that terminate are free. Those that a pod was promised never are.
    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, _: &CycleState) -> Verdict {
        let wanted = &cluster.shape_of(task).spec.volumes.disks;
        let mut others = cluster.node(node).books().tasks.iter().filter(|other| counts(cluster, task, **other, when));
        let conflict = !wanted.is_empty()
            && others.any(|other| {
                let theirs = &cluster.shape_of(*other).spec.volumes.disks;
                theirs.iter().any(|disk| wanted.iter().any(|own| own.conflicts(disk)))
            });
        if conflict {
            return Verdict::Unschedulable(Why::Says("node(s) had no available disk"));
        }
        if in_use(cluster, task, when) {
            return Verdict::Unschedulable(Why::Says(
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
            ));
        }
        Verdict::Fits
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        Some(&[
            (EventResource::Pod, ActionType::DELETE),
            (EventResource::Node, ActionType::ADD),
            (EventResource::PersistentVolumeClaim, ActionType::ADD),
        ])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        let own = &cluster.shape_of(task).spec;
        match &event.about {
            About::Pod { shape, .. } => {
                let same_claim = own.namespace == shape.namespace
                    && shape.volumes.claims.iter().any(|claim| own.volumes.claims.contains(claim));
                let same_disk =
                    shape.volumes.disks.iter().any(|disk| own.volumes.disks.iter().any(|own| own.conflicts(disk)));
                same_claim || same_disk
            }
            _ => concerns(cluster, task, event),
        }
    }
}

/// Whether `other` is in the way of `task` then.
fn counts(cluster: &ClusterState, task: TaskId, other: TaskId, when: Room) -> bool {
    other != task && (when == Room::Now || cluster.task(other).status() != TaskStatus::Releasing)
}

/// Whether another pod has one of the task's claims that only one pod may have.
fn in_use(cluster: &ClusterState, task: TaskId, when: Room) -> bool {
    let spec = &cluster.shape_of(task).spec;
    let for_one_pod = |claim: &ClaimSpec| claim.access_modes.has_all(AccessModes::READ_WRITE_ONCE_POD);
    let named = spec.volumes.claims.iter().filter(|claim| !claim.ephemeral);
    let claims = named.filter_map(|claim| cluster.storage().claim(&spec.namespace, &claim.name));
    claims
        .filter(|claim| for_one_pod(claim))
        .any(|claim| cluster.users_of(&claim.namespace, &claim.name).any(|other| counts(cluster, task, other, when)))
}
