//! What is attached to a node: volumes of the pods that are there, and of its VolumeAttachments. A book of the node, which
//! moves with its pods and with the objects that say what their claims attach.
//!
//! Cost of a change of an object: the pods that use it.

use std::collections::{BTreeMap, BTreeSet};

use super::{AttachmentSpec, ClaimSpec, Disk, Storage, StorageKey, StorageKind, StorageObject, VolumeSource};
use crate::ids::{NodeId, TaskId};
use crate::name::Name;
use crate::shape::Shape;
use crate::state::ClusterState;
use crate::task::Task;

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

/// A volume of a driver: the driver, and what tells its volumes apart.
pub type VolumeId = (Name, Name);

/// A volume that a pod would have attached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToAttach {
    /// Which.
    pub volume: VolumeId,
    /// Whether a driver attaches it only where it has taken over for a plugin: on nodes that say which drivers they have.
    pub taken_over: bool,
}

/// Who has a volume attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Holders {
    /// Pods that terminate.
    leaving: u32,
    /// Others, and VolumeAttachments.
    staying: u32,
}

/// Volumes of one driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    all: u32,
    /// Without those that only pods have that terminate.
    staying: u32,
}

/// Volumes that are attached to a node, or will be: as on a node that says which drivers it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedVolumes {
    holders: BTreeMap<VolumeId, Holders>,
    counts: BTreeMap<Name, Count>,
}

impl AttachedVolumes {
    /// How many holders a volume has: now, or once those pods are gone that terminate.
    pub fn holders(&self, volume: &VolumeId, without_leaving: bool) -> u32 {
        let holders = self.holders.get(volume).copied().unwrap_or_default();
        if without_leaving { holders.staying } else { holders.staying + holders.leaving }
    }

    /// How many volumes of a driver there are: now, or once those pods are gone that terminate.
    pub fn of_driver(&self, driver: &Name, without_leaving: bool) -> u32 {
        let count = self.counts.get(driver).copied().unwrap_or_default();
        if without_leaving { count.staying } else { count.all }
    }

    /// One holder more, or less.
    pub(crate) fn shift(&mut self, volume: &VolumeId, leaving: bool, inwards: bool) {
        let holders = self.holders.entry(volume.clone()).or_default();
        let before = *holders;
        let part = if leaving { &mut holders.leaving } else { &mut holders.staying };
        *part = if inwards { *part + 1 } else { part.saturating_sub(1) };
        let after = *holders;
        if after == Holders::default() {
            self.holders.remove(volume);
        }
        let (any, stays) = (|h: Holders| u32::from(h.staying + h.leaving > 0), |h: Holders| u32::from(h.staying > 0));
        let count = self.counts.entry(volume.0.clone()).or_default();
        count.all = count.all + any(after) - any(before);
        count.staying = count.staying + stays(after) - stays(before);
        if *count == Count::default() {
            self.counts.remove(&volume.0);
        }
    }
}

/// The driver that takes a plugin over.
fn driver_of(plugin: &str) -> Option<Name> {
    MIGRATED.iter().find(|(known, _)| *known == plugin).map(|(_, driver)| (*driver).into())
}

impl Disk {
    /// What a pod that names it has attached.
    pub fn to_attach(&self) -> Option<ToAttach> {
        let (plugin, handle) = self.in_tree()?;
        Some(ToAttach { volume: (driver_of(plugin)?, handle.clone()), taken_over: true })
    }
}

impl Storage {
    /// What a claim attaches: its volume, or one that will be made for it.
    pub fn to_attach(&self, claim: &ClaimSpec) -> Option<ToAttach> {
        let known = self.volumes.get(&claim.volume).map(|volume| &volume.source);
        let (driver, handle, taken_over) = match known {
            Some(VolumeSource::Csi { driver, handle }) => (driver.clone(), handle.clone(), false),
            Some(VolumeSource::InTree { plugin, handle }) => (driver_of(plugin)?, handle.clone(), true),
            Some(VolumeSource::Other) => return None,
            None => {
                let provisioner = &self.class(&claim.class)?.provisioner;
                if UNCOUNTED.contains(&provisioner.as_str()) {
                    return None;
                }
                let taken_over = driver_of(provisioner);
                let is_taken_over = taken_over.is_some();
                let driver = taken_over.unwrap_or_else(|| provisioner.clone());
                // No driver calls a volume so.
                (driver, format!("claim {}/{}", claim.namespace, claim.name).into(), is_taken_over)
            }
        };
        Some(ToAttach { volume: (driver, handle), taken_over })
    }

    /// What a pod that is on a node has attached there. A claim that is not its own counts for nothing.
    pub(crate) fn attached_by(&self, task: &Task, shape: &Shape) -> BTreeSet<VolumeId> {
        let spec = &shape.spec;
        if spec.volumes.is_empty() {
            return BTreeSet::new();
        }
        let own = spec.volumes.claims.iter().filter_map(|own| {
            let claim = self.claim(&spec.namespace, &own.name)?;
            (!own.ephemeral || claim.owner.as_ref() == Some(&task.uid)).then(|| self.to_attach(claim))?
        });
        let disks = spec.volumes.disks.iter().filter_map(Disk::to_attach);
        own.chain(disks).map(|one| one.volume).collect()
    }

    /// What a VolumeAttachment attaches.
    pub(crate) fn attached_as(&self, one: &AttachmentSpec) -> Option<VolumeId> {
        match self.volumes.get(&one.volume).map(|volume| &volume.source) {
            Some(VolumeSource::Csi { handle, .. }) if !one.attacher.is_empty() => {
                Some((one.attacher.clone(), handle.clone()))
            }
            _ => None,
        }
    }

    /// VolumeAttachments whose volume an object says, or that it is.
    fn attachments_by(&self, key: &StorageKey) -> Vec<Name> {
        match key.kind {
            StorageKind::Volume => self.attaching.get(&key.name).into_iter().flatten().cloned().collect(),
            StorageKind::Attachment => vec![key.name.clone()],
            _ => Vec::new(),
        }
    }
}

impl ClusterState {
    /// Changes an object of storage, and with it what the pods that use it have attached.
    pub(crate) fn change_storage(
        &mut self,
        key: &StorageKey,
        change: impl FnOnce(&mut Storage) -> Option<StorageObject>,
    ) -> Option<StorageObject> {
        let (users, attachments) = (self.users_through(key), self.storage.attachments_by(key));
        self.count_attached(&users, &attachments, false);
        let before = change(&mut self.storage);
        self.count_attached(&users, &attachments, true);
        before
    }

    /// Tasks whose volumes an object says. Cost, for a class: the claims in use.
    fn users_through(&self, key: &StorageKey) -> Vec<TaskId> {
        let users = &self.volume_ledger.users;
        match key.kind {
            StorageKind::Claim => self.users_of(&key.namespace, &key.name).collect(),
            StorageKind::Volume => {
                let claims = self.storage.naming.get(&key.name).into_iter().flatten();
                let all: BTreeSet<TaskId> = claims.filter_map(|claim| users.get(claim)).flatten().copied().collect();
                all.into_iter().collect()
            }
            StorageKind::Class => {
                let is_of = |claim: &super::ClaimKey| {
                    self.storage.claims.get(claim).is_some_and(|claim| claim.class == key.name)
                };
                let all: BTreeSet<TaskId> =
                    users.iter().filter(|(claim, _)| is_of(claim)).flat_map(|(_, tasks)| tasks).copied().collect();
                all.into_iter().collect()
            }
            StorageKind::Node | StorageKind::Driver | StorageKind::Capacity | StorageKind::Attachment => Vec::new(),
        }
    }

    fn count_attached(&mut self, users: &[TaskId], attachments: &[Name], inwards: bool) {
        for &user in users {
            let task = &self.tasks[user];
            let Some(node) = task.node.and_then(|node| self.nodes.get_mut(node)) else { continue };
            let leaving = task.status == crate::task_status::TaskStatus::Releasing;
            for volume in self.storage.attached_by(task, self.shapes.get(task.shape)) {
                node.books.attached.shift(&volume, leaving, inwards);
            }
        }
        for one in attachments {
            let Some(one) = self.storage.attachments.get(one) else { continue };
            let Some(volume) = self.storage.attached_as(one) else { continue };
            if let Some(node) = self.node_by_name.get(&one.node).and_then(|id| self.nodes.get_mut(*id)) {
                node.books.attached.shift(&volume, false, inwards);
            }
        }
    }

    /// What VolumeAttachments say of a node.
    pub(crate) fn count_attachments(&self, node: NodeId, attached: &mut AttachedVolumes) {
        for one in self.storage.attachments(self.nodes[node].name()) {
            if let Some(volume) = self.storage.attached_as(one) {
                attached.shift(&volume, false, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_of_several_counts_once_until_the_last_one_goes() {
        let volume = |name: &str| -> VolumeId { ("d".into(), name.into()) };
        let mut attached = AttachedVolumes::default();
        attached.shift(&volume("a"), false, true);
        attached.shift(&volume("a"), true, true);
        attached.shift(&volume("b"), true, true);
        let counts = |attached: &AttachedVolumes| {
            [false, true].map(|later| (attached.of_driver(&"d".into(), later), attached.holders(&volume("a"), later)))
        };
        assert_eq!(counts(&attached), [(2, 2), (1, 1)]);
        attached.shift(&volume("a"), false, false);
        assert_eq!(counts(&attached), [(2, 1), (0, 0)]);
        attached.shift(&volume("a"), true, false);
        attached.shift(&volume("b"), true, false);
        assert_eq!(attached, AttachedVolumes::default());
    }
}
