//! `NodeVolumeLimits`: a node attaches no more volumes of a driver than its CSINode says.
//!
//! What is attached to a node is one of its books (`krafla_model::storage::AttachedVolumes`). Cost of a question: the pod's
//! volumes, and the drivers of the node.

use std::collections::BTreeMap;

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::storage::{AttachedVolumes, CsiNodeSpec, Disk, ToAttach, VolumeId};
use krafla_model::{ClusterState, Name, NodeId, TaskId, TaskStatus};

use super::volume_claims::{claims, concerns};

/// See the module.
pub struct NodeVolumeLimits;

/// A volume that the pod needs.
struct Wanted {
    volume: VolumeId,
    /// Only on nodes that say which drivers they have.
    taken_over: bool,
    /// Whether pods with volumes of its driver are kept from nodes that lack it.
    driver_is_needed: bool,
}

/// The volumes of a pod, in order, each once; or why they are not known.
struct Volumes(Result<Vec<Wanted>, Why>);

impl NodePlugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Task)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let volumes = &cluster.shape_of(task).spec.volumes;
        let counted = !volumes.claims.is_empty() || volumes.disks.iter().any(|disk| disk.in_tree().is_some());
        if !counted {
            return PreFilter::Skip;
        }
        state.put(Volumes(wanted(cluster, task)));
        PreFilter::All
    }

    /// Volumes of pods that terminate count until they are detached, which their VolumeAttachments say; as in
    /// kube-scheduler.
    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, state: &CycleState) -> Verdict {
        let wanted = match state.get() {
            None => return Verdict::Fits,
            Some(Volumes(Err(why))) => return Verdict::Unresolvable(why.clone()),
            Some(Volumes(Ok(wanted))) => wanted,
        };
        let host = cluster.node(node);
        let drivers = cluster.storage().csi_node(host.name());
        let here = || wanted.iter().filter(|one| !one.taken_over || drivers.is_some());
        if let Some(missing) = here().find(|one| one.driver_is_needed && !has(drivers, &one.volume.0)) {
            let told = format!("{} CSI driver is not installed on the node", missing.volume.0);
            return Verdict::Unschedulable(Why::Told(told.into()));
        }
        let attached = Attached::of(cluster, task, node, when);
        let limits = drivers.map(|node| node.drivers.as_slice()).unwrap_or_default();
        let over = |(driver, limit): &(Name, Option<i64>)| {
            let Some(limit) = limit else { return false };
            let (mut more, mut own_alone) = (0, 0);
            for one in here().filter(|one| one.volume.0 == *driver) {
                let (others, own) = attached.holders(&one.volume);
                more += i64::from(others == 0);
                own_alone += i64::from(others == 0 && own > 0);
            }
            more > 0 && attached.of_driver(driver) - own_alone + more > *limit
        };
        if limits.iter().any(over) {
            return Verdict::Unschedulable(Why::Says("node(s) exceed max volume count"));
        }
        Verdict::Fits
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const CHANGED: ActionType = ActionType::ADD.and(ActionType::UPDATE);
        Some(&[
            (EventResource::CsiNode, CHANGED),
            (EventResource::Pod, ActionType::DELETE),
            (EventResource::PersistentVolumeClaim, ActionType::ADD),
            (EventResource::VolumeAttachment, ActionType::DELETE),
        ])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        match &event.about {
            About::Pod { shape, node, nominated, .. } => {
                let counted = |disk: &krafla_model::storage::Disk| disk.in_tree().is_some();
                (node.is_some() || *nominated)
                    && (!shape.volumes.claims.is_empty() || shape.volumes.disks.iter().any(counted))
            }
            _ => concerns(cluster, task, event),
        }
    }
}

/// Volumes of a pod.
fn wanted(cluster: &ClusterState, task: TaskId) -> Result<Vec<Wanted>, Why> {
    let storage = cluster.storage();
    let mut volumes: BTreeMap<VolumeId, bool> = BTreeMap::new();
    let mut add = |one: ToAttach| {
        let taken_over = volumes.entry(one.volume).or_insert(one.taken_over);
        *taken_over &= one.taken_over;
    };
    for claim in claims(cluster, task) {
        if let Some(one) = storage.to_attach(claim?) {
            add(one);
        }
    }
    cluster.shape_of(task).spec.volumes.disks.iter().filter_map(Disk::to_attach).for_each(add);
    let wanted = volumes.into_iter().map(|(volume, taken_over)| {
        let driver_is_needed = storage.driver(&volume.0).is_some_and(|driver| driver.needed_on_node);
        Wanted { volume, taken_over, driver_is_needed }
    });
    Ok(wanted.collect())
}

/// Whether a node has a driver.
fn has(node: Option<&CsiNodeSpec>, driver: &Name) -> bool {
    node.is_some_and(|node| node.drivers.iter().any(|(name, _)| name == driver))
}

/// What is attached to a node then, and what of it by the pod itself.
struct Attached<'a> {
    all: &'a AttachedVolumes,
    without_leaving: bool,
    /// Whether the pod is there, and counts then.
    own: bool,
}

impl<'a> Attached<'a> {
    fn of(cluster: &'a ClusterState, task: TaskId, node: NodeId, when: Room) -> Self {
        let books = cluster.node(node).books();
        let without_leaving = when == Room::AfterRelease;
        let leaves = cluster.task(task).status() == TaskStatus::Releasing;
        let own = books.tasks.binary_search(&task).is_ok() && !(without_leaving && leaves);
        Self { all: &books.attached, without_leaving, own }
    }

    /// Others that have a volume, and whether the pod does.
    fn holders(&self, volume: &VolumeId) -> (u32, u32) {
        let all = self.all.holders(volume, self.without_leaving);
        let own = u32::from(self.own);
        (all.saturating_sub(own), own.min(all))
    }

    fn of_driver(&self, driver: &Name) -> i64 {
        i64::from(self.all.of_driver(driver, self.without_leaving))
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::storage::{AttachmentSpec, CsiDriverSpec, Disk, StorageObject};
    use krafla_testkit::Scene;

    use super::super::volume_scenes::{Stored, bound, claim, limited, named, of_driver, uses, volume, waiting_class};
    use crate::testing::{objections_one_by_one, run, run_one_by_one};

    /// Claims of these names with volumes of the driver `d`.
    fn claims(scene: Scene, names: &[&str]) -> Scene {
        names.iter().fold(scene, |scene, name| {
            let own = format!("v-{name}");
            let volume = of_driver(named(volume(&own, "", 1, ""), name), "d");
            scene.has(StorageObject::Claim(bound(claim(name, "", 1), &own))).has(StorageObject::Volume(volume))
        })
    }

    /// A node that attaches `limit` volumes of the driver `d` and has one; and a pod with two claims.
    fn scene(limit: i64, own: &[&str]) -> Scene {
        claims(Scene::new().node("n", "4c"), &["a", "b", "c"])
            .has(limited("n", "d", limit))
            .job("r", |job| job.shape(uses(&["a"])).running(1, "1c", "n"))
            .job("p", |job| job.shape(uses(own)).pending(1, "1c"))
    }

    const OVER: &str = "node(s) exceed max volume count";

    #[test]
    fn a_node_attaches_no_more_volumes_than_it_can() {
        assert_eq!(run_one_by_one(&scene(3, &["b", "c"])).binds, ["p-0 -> n"]);
        assert_eq!(objections_one_by_one(&scene(2, &["b", "c"]), "p-0"), [(OVER.to_owned(), 1)]);
        assert_eq!(run_one_by_one(&scene(2, &["a", "b"])).binds, ["p-0 -> n"], "one volume of two pods counts once");
        assert_eq!(run(&scene(2, &["b", "c"]), "allocate", &["predicates"]).binds, [""; 0]);
        let off = "predicates predicate.NodeVolumeLimitsEnable=false";
        assert_eq!(run(&scene(2, &["b", "c"]), "allocate", &[off]).binds, ["p-0 -> n"]);
    }

    #[test]
    fn what_is_attached_counts_without_its_pod() {
        let attached = |volume: &str| {
            let (attacher, node) = ("d".into(), "n".into());
            StorageObject::Attachment(AttachmentSpec { name: volume.into(), attacher, node, volume: volume.into() })
        };
        let left_over = claims(scene(3, &["b", "c"]), &["z"]);
        assert_eq!(objections_one_by_one(&left_over.clone().has(attached("v-z")), "p-0"), [(OVER.to_owned(), 1)]);
        assert_eq!(run_one_by_one(&left_over.has(attached("v-a"))).binds, ["p-0 -> n"], "its pod is counted");
    }

    #[test]
    fn volumes_that_will_be_made_count_too() {
        let waiting = |limit| {
            Scene::new()
                .node("n", "4c")
                .has(limited("n", "d", limit))
                .has(StorageObject::Class(waiting_class("made", "d")))
                .has(StorageObject::Claim(claim("c1", "made", 1)))
                .has(StorageObject::Claim(claim("c2", "made", 1)))
                .job("p", |job| job.shape(uses(&["c1"])).pending(1, "1c"))
                .job("q", |job| job.shape(uses(&["c2"])).pending(1, "1c"))
        };
        assert_eq!(run_one_by_one(&waiting(2)).binds, ["p-0 -> n", "q-0 -> n"]);
        assert_eq!(run_one_by_one(&waiting(1)).binds, ["p-0 -> n"], "the first is counted in memory");
    }

    #[test]
    fn disks_of_in_tree_plugins_count_for_the_drivers_that_took_them_over() {
        let scene = |disk: Disk, driver: &str| {
            Scene::new()
                .node("n", "4c")
                .has(limited("n", driver, 0))
                .job("p", |job| job.shape(|shape| shape.volumes.disks.push(disk.clone())).pending(1, "1c"))
        };
        let ebs = || Disk::AwsElasticBlockStore { id: "vol".into() };
        let in_tree = |plugin: &str| Disk::InTree { plugin: plugin.into(), handle: "d".into() };
        for (disk, driver, counts) in [
            (ebs(), "ebs.csi.aws.com", true),
            (ebs(), "d", false),
            (in_tree("kubernetes.io/azure-disk"), "disk.csi.azure.com", true),
            (in_tree("kubernetes.io/azure-file"), "file.csi.azure.com", false),
            (in_tree("kubernetes.io/vsphere-volume"), "csi.vsphere.vmware.com", false),
        ] {
            let scene = scene(disk.clone(), driver);
            match counts {
                true => assert_eq!(objections_one_by_one(&scene, "p-0"), [(OVER.to_owned(), 1)], "{disk:?}"),
                false => assert_eq!(run_one_by_one(&scene).binds, ["p-0 -> n"], "{disk:?}"),
            }
        }
    }

    #[test]
    fn a_driver_may_have_to_be_on_the_node() {
        let needed = CsiDriverSpec { name: "d".into(), storage_capacity: false, needed_on_node: true };
        let scene = claims(Scene::new().node("n", "4c"), &["a"])
            .has(StorageObject::Driver(needed))
            .job("p", |job| job.shape(uses(&["a"])).pending(1, "1c"));
        let why = "d CSI driver is not installed on the node".to_owned();
        assert_eq!(objections_one_by_one(&scene, "p-0"), [(why, 1)]);
        assert_eq!(run_one_by_one(&scene.has(limited("n", "d", 1))).binds, ["p-0 -> n"]);
    }
}
