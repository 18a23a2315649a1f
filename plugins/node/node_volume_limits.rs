//! `NodeVolumeLimits`: a node attaches no more volumes of a driver than its CSINode says.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::storage::{ClaimSpec, CsiNodeSpec, VolumeSource};
use krafla_model::{ClusterState, Name, NodeId, TaskId, TaskStatus};

use super::volume_claims::{claims, concerns};

/// In-tree plugins, and the drivers that take them over: on every node that says which drivers it has, whether it names the
/// plugin as taken over or not.
const MIGRATED: [(&str, &str); 5] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// In-tree plugins whose volumes count for no driver.
const UNCOUNTED: [&str; 2] = ["kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"];

/// See the module.
pub struct NodeVolumeLimits;

/// A volume of a driver: the driver, and what tells its volumes apart.
type Attached = (Name, Name);

impl NodePlugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, _: &mut CycleState) -> PreFilter {
        let volumes = &cluster.shape_of(task).spec.volumes;
        let counted = !volumes.claims.is_empty() || volumes.disks.iter().any(|disk| disk.in_tree().is_some());
        if counted { PreFilter::All } else { PreFilter::Skip }
    }

    /// Volumes of pods that terminate count until they are detached, which their VolumeAttachments say; as in
    /// kube-scheduler.
    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, _: &CycleState) -> Verdict {
        let host = cluster.node(node);
        let drivers = cluster.storage().csi_node(host.name());
        let mut wanted = BTreeSet::new();
        for claim in claims(cluster, task) {
            match claim {
                Ok(claim) => wanted.extend(volume_of(cluster, claim, drivers)),
                Err(why) => return Verdict::Unresolvable(why),
            }
        }
        wanted.extend(disks_of(cluster, task, drivers));
        if let Some((missing, _)) = wanted.iter().find(|(driver, _)| !is_there(cluster, driver, drivers)) {
            let told = format!("{missing} CSI driver is not installed on the node");
            return Verdict::Unschedulable(Why::Told(told.into()));
        }
        let limits = drivers.map(|node| node.drivers.as_slice()).unwrap_or_default();
        if wanted.is_empty() || limits.iter().all(|(_, limit)| limit.is_none()) {
            return Verdict::Fits;
        }
        let leaves = |other: &TaskId| cluster.task(*other).status() == TaskStatus::Releasing;
        let others = host.books().tasks.iter().copied();
        let mut attached: BTreeSet<Attached> = others
            .filter(|other| *other != task && (when == Room::Now || !leaves(other)))
            .flat_map(|other| used_by(cluster, other, drivers))
            .collect();
        for one in cluster.storage().attachments(host.name()).filter(|one| !one.attacher.is_empty()) {
            if let Some(VolumeSource::Csi { handle, .. }) = cluster.storage().volume(&one.volume).map(|v| &v.source) {
                attached.insert((one.attacher.clone(), handle.clone()));
            }
        }
        let mut counts: BTreeMap<&Name, (i64, i64)> = BTreeMap::new();
        for one in wanted.iter().filter(|one| !attached.contains(one)) {
            counts.entry(&one.0).or_default().0 += 1;
        }
        for (driver, _) in &attached {
            counts.entry(driver).or_default().1 += 1;
        }
        let over = |(driver, limit): &(Name, Option<i64>)| {
            let (more, has) = counts.get(driver).copied().unwrap_or_default();
            more > 0 && limit.is_some_and(|limit| has + more > limit)
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

/// Whether a driver that pods need on their node is there.
fn is_there(cluster: &ClusterState, driver: &Name, node: Option<&CsiNodeSpec>) -> bool {
    !cluster.storage().driver(driver).is_some_and(|driver| driver.needed_on_node)
        || node.is_some_and(|node| node.drivers.iter().any(|(name, _)| name == driver))
}

/// The volumes of a pod that is there. A claim that is not its own counts for nothing.
fn used_by<'a>(
    cluster: &'a ClusterState,
    task: TaskId,
    node: Option<&'a CsiNodeSpec>,
) -> impl Iterator<Item = Attached> + 'a {
    let of_claims = claims(cluster, task).filter_map(Result::ok).filter_map(move |one| volume_of(cluster, one, node));
    of_claims.chain(disks_of(cluster, task, node))
}

fn disks_of<'a>(
    cluster: &'a ClusterState,
    task: TaskId,
    node: Option<&'a CsiNodeSpec>,
) -> impl Iterator<Item = Attached> + 'a {
    let disks = cluster.shape_of(task).spec.volumes.disks.iter();
    disks.filter_map(move |disk| {
        let (plugin, handle) = disk.in_tree()?;
        Some((driver_of(plugin, node)?, handle.clone()))
    })
}

/// What a claim attaches: its volume, or one that will be made for it.
fn volume_of(cluster: &ClusterState, claim: &ClaimSpec, node: Option<&CsiNodeSpec>) -> Option<Attached> {
    let storage = cluster.storage();
    match storage.volume(&claim.volume).map(|volume| &volume.source) {
        Some(VolumeSource::Csi { driver, handle }) => Some((driver.clone(), handle.clone())),
        Some(VolumeSource::InTree { plugin, handle }) => Some((driver_of(plugin, node)?, handle.clone())),
        Some(VolumeSource::Other) => None,
        None => {
            let provisioner = &storage.class(&claim.class)?.provisioner;
            let taken_over = MIGRATED.iter().any(|(plugin, _)| **provisioner == **plugin);
            let driver = match provisioner.as_str() {
                plugin if UNCOUNTED.contains(&plugin) => return None,
                plugin if taken_over => driver_of(plugin, node)?,
                _ => provisioner.clone(),
            };
            // No driver calls a volume so.
            Some((driver, format!("claim {}/{}", claim.namespace, claim.name).into()))
        }
    }
}

/// The driver that takes a plugin over on a node.
fn driver_of(plugin: &str, node: Option<&CsiNodeSpec>) -> Option<Name> {
    node?;
    MIGRATED.iter().find(|(known, _)| *known == plugin).map(|(_, driver)| (*driver).into())
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
