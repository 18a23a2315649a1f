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
        Some(Scope::Task)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
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
        let now = in_use(cluster, task, Room::Now);
        let in_use = InUse { now, later: now && in_use(cluster, task, Room::AfterRelease) };
        if !volumes.disks.iter().any(|disk| disk.is_exclusive()) && !in_use.now {
            return PreFilter::Skip;
        }
        state.put(in_use);
        PreFilter::All
    }

    /// After a release the disks and claims of pods that terminate are free. Those that a pod was promised never are.
    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, state: &CycleState) -> Verdict {
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
        if state.get::<InUse>().is_some_and(|in_use| in_use.when(when)) {
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

/// Whether another pod has one of the pod's claims that only one pod may have: now, and once what terminates is gone.
struct InUse {
    now: bool,
    later: bool,
}

impl InUse {
    fn when(&self, when: Room) -> bool {
        if when == Room::Now { self.now } else { self.later }
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

#[cfg(test)]
mod tests {
    use krafla_model::storage::{ClaimSpec, Disk, StorageObject};
    use krafla_model::{PodSpec, TaskStatus};
    use krafla_testkit::{JobScene, Scene, task_named};

    use super::super::volume_scenes::{Stored, bound, claim, named, uses, volume};
    use super::*;
    use crate::testing::{objections_one_by_one, run, run_one_by_one};

    fn with_disk(disk: Disk) -> impl Fn(JobScene) -> JobScene {
        move |job| job.shape(|shape| shape.volumes.disks.push(disk.clone()))
    }

    #[test]
    fn a_disk_is_on_one_node_once() {
        let disk = |read_only| Disk::GcePersistentDisk { name: "d".into(), read_only };
        let scene = |own: bool| {
            let (one, other) = (with_disk(disk(true)), with_disk(disk(own)));
            Scene::new()
                .node("n", "4c")
                .job("a", |job| one(job).running(1, "1c", "n"))
                .job("p", |job| other(job).pending(1, "1c"))
        };
        assert_eq!(objections_one_by_one(&scene(false), "p-0"), [("node(s) had no available disk".to_owned(), 1)]);
        assert_eq!(run_one_by_one(&scene(true)).binds, ["p-0 -> n"]);
        assert_eq!(run_one_by_one(&scene(false).node("m", "4c")).binds, ["p-0 -> m"]);
    }

    /// A claim for one pod, which `a-0` on node `n` has.
    fn exclusive(priority: i32) -> Scene {
        let claim = ClaimSpec { access_modes: AccessModes::READ_WRITE_ONCE_POD, ..claim("c", "", 1) };
        Scene::new()
            .node("m", "4c")
            .node("n", "4c")
            .has(StorageObject::Claim(bound(claim, "v")))
            .has(StorageObject::Volume(named(volume("v", "", 1, ""), "c")))
            .job("a", |job| job.shape(uses(&["c"])).running(1, "1c", "n"))
            .job("p", |job| {
                job.shape(uses(&["c"])).pending(1, "1c").each(move |pod: &mut PodSpec| pod.priority = priority)
            })
    }

    #[test]
    fn a_claim_for_one_pod_has_one_pod() {
        let why = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";
        assert_eq!(objections_one_by_one(&exclusive(1), "p-0"), [(why.to_owned(), 2)]);
        assert_eq!(run(&exclusive(1), "allocate", &["predicates"]).binds, [""; 0], "in a session too");
    }

    #[test]
    fn whoever_is_more_important_takes_it() {
        let outcome = run_one_by_one(&exclusive(100));
        assert_eq!(outcome.evictions, ["a-0"]);
        let waits = outcome.cluster.task(task_named(&outcome.cluster, "p-0"));
        assert_eq!((waits.status(), waits.nominated.as_deref()), (TaskStatus::Pending, Some("n")));
    }
}
