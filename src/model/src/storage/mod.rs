//! Storage: the objects that say where a pod with volumes may run, and what has been chosen for its claims.
//!
//! What the API says is in [`Storage`]. What a session decided, and the API does not know yet, is part of a task's place
//! ([`ClaimChoice`]), so it goes and comes with the journal; [`ledger`] keeps it by volume and by claim.

mod apply;
mod attached;
pub mod ledger;
pub mod pod_volumes;
pub mod spec;
mod unclaimed;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::dra::DeviceChoice;
use crate::name::Name;
pub use attached::{AttachedVolumes, ToAttach, VolumeId};
pub use pod_volumes::{Disk, PodClaim, PodVolumes};
pub use spec::{
    AccessModes, AttachmentSpec, ClaimKey, ClaimRef, ClaimSpec, CsiDriverSpec, CsiNodeSpec, NO_PROVISIONER,
    StorageCapacitySpec, StorageClassSpec, VolumePhase, VolumeSource, VolumeSpec,
};
use unclaimed::Unclaimed;

/// An object of storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StorageObject {
    /// A PersistentVolumeClaim.
    Claim(ClaimSpec),
    /// A PersistentVolume.
    Volume(VolumeSpec),
    /// A StorageClass.
    Class(StorageClassSpec),
    /// A CSINode.
    Node(CsiNodeSpec),
    /// A CSIDriver.
    Driver(CsiDriverSpec),
    /// A CSIStorageCapacity.
    Capacity(StorageCapacitySpec),
    /// A VolumeAttachment.
    Attachment(AttachmentSpec),
}

/// The kind of an object of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StorageKind {
    /// StorageClasses.
    Class,
    /// CSIDrivers.
    Driver,
    /// CSINodes.
    Node,
    /// CSIStorageCapacities.
    Capacity,
    /// PersistentVolumes.
    Volume,
    /// PersistentVolumeClaims.
    Claim,
    /// VolumeAttachments.
    Attachment,
}

/// Which object of storage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StorageKey {
    /// Its kind.
    pub kind: StorageKind,
    /// Its namespace; empty if its kind has none.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

impl StorageObject {
    /// Which object it is.
    pub fn key(&self) -> StorageKey {
        let (kind, namespace, name) = match self {
            Self::Claim(claim) => (StorageKind::Claim, claim.namespace.clone(), &claim.name),
            Self::Volume(volume) => (StorageKind::Volume, Name::default(), &volume.name),
            Self::Class(class) => (StorageKind::Class, Name::default(), &class.name),
            Self::Node(node) => (StorageKind::Node, Name::default(), &node.name),
            Self::Driver(driver) => (StorageKind::Driver, Name::default(), &driver.name),
            Self::Capacity(one) => (StorageKind::Capacity, one.namespace.clone(), &one.name),
            Self::Attachment(one) => (StorageKind::Attachment, Name::default(), &one.name),
        };
        StorageKey { kind, namespace, name: name.clone() }
    }
}

/// What was chosen for a claim of a task that has its node in memory only: to be written before the bind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ClaimChoice {
    /// This volume.
    Volume {
        /// The claim, in the pod's namespace.
        claim: Name,
        /// The volume.
        volume: Name,
    },
    /// A volume that is to be made for the node.
    Provision {
        /// The claim, in the pod's namespace.
        claim: Name,
    },
    /// These devices, for a claim of devices.
    Devices(Box<DeviceChoice>),
}

impl ClaimChoice {
    /// The claim.
    pub fn claim(&self) -> &Name {
        match self {
            Self::Volume { claim, .. } | Self::Provision { claim } => claim,
            Self::Devices(choice) => &choice.name,
        }
    }
}

/// What the API says of storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    pub(crate) claims: BTreeMap<ClaimKey, ClaimSpec>,
    pub(crate) volumes: BTreeMap<Name, VolumeSpec>,
    pub(crate) classes: BTreeMap<Name, StorageClassSpec>,
    pub(crate) nodes: BTreeMap<Name, CsiNodeSpec>,
    pub(crate) drivers: BTreeMap<Name, CsiDriverSpec>,
    pub(crate) capacities: BTreeMap<(Name, Name), StorageCapacitySpec>,
    pub(crate) attachments: BTreeMap<Name, AttachmentSpec>,
    /// Volumes of each class that name no claim.
    pub(crate) unclaimed: BTreeMap<Name, Unclaimed>,
    /// Volumes that name a claim.
    pub(crate) claimed: BTreeMap<ClaimKey, BTreeSet<Name>>,
    /// Claims that name a volume, by its name.
    pub(crate) naming: BTreeMap<Name, BTreeSet<ClaimKey>>,
    /// Attachments of each node.
    pub(crate) attached: BTreeMap<Name, BTreeSet<Name>>,
    /// Attachments of each volume.
    pub(crate) attaching: BTreeMap<Name, BTreeSet<Name>>,
}

impl Storage {
    /// A claim.
    pub fn claim(&self, namespace: &Name, name: &Name) -> Option<&ClaimSpec> {
        self.claims.get(&(namespace.clone(), name.clone()))
    }

    /// All claims, by namespace and name.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimSpec> {
        self.claims.values()
    }

    /// A volume.
    pub fn volume(&self, name: &str) -> Option<&VolumeSpec> {
        self.volumes.get(name)
    }

    /// All volumes, by name.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeSpec> {
        self.volumes.values()
    }

    /// A StorageClass.
    pub fn class(&self, name: &str) -> Option<&StorageClassSpec> {
        self.classes.get(name)
    }

    /// The drivers of a node.
    pub fn csi_node(&self, name: &str) -> Option<&CsiNodeSpec> {
        self.nodes.get(name)
    }

    /// A CSI driver.
    pub fn driver(&self, name: &str) -> Option<&CsiDriverSpec> {
        self.drivers.get(name)
    }

    /// How much storage there is, by namespace and name.
    pub fn capacities(&self) -> impl Iterator<Item = &StorageCapacitySpec> {
        self.capacities.values()
    }

    /// Attachments to a node, by name.
    pub fn attachments(&self, node: &str) -> impl Iterator<Item = &AttachmentSpec> {
        self.attached.get(node).into_iter().flatten().filter_map(|name| self.attachments.get(name))
    }

    /// Volumes that name a claim, by name.
    pub fn named_on(&self, claim: &ClaimSpec) -> impl Iterator<Item = &VolumeSpec> {
        let names = self.claimed.get(&claim.key()).into_iter().flatten();
        let means = |volume: &&VolumeSpec| volume.claim.as_ref().is_some_and(|one| one.means(claim));
        names.filter_map(|name| self.volumes.get(name)).filter(means)
    }

    /// Whether a claim waits until a pod needs it.
    pub fn waits_for_consumer(&self, claim: &ClaimSpec) -> bool {
        self.class(&claim.class).is_some_and(|class| class.waits_for_consumer) && claim.volume.is_empty()
    }

    /// An object as it is known.
    pub fn get(&self, key: &StorageKey) -> Option<StorageObject> {
        let of_namespace = || (key.namespace.clone(), key.name.clone());
        match key.kind {
            StorageKind::Claim => self.claims.get(&of_namespace()).cloned().map(StorageObject::Claim),
            StorageKind::Volume => self.volumes.get(&key.name).cloned().map(StorageObject::Volume),
            StorageKind::Class => self.classes.get(&key.name).cloned().map(StorageObject::Class),
            StorageKind::Node => self.nodes.get(&key.name).cloned().map(StorageObject::Node),
            StorageKind::Driver => self.drivers.get(&key.name).cloned().map(StorageObject::Driver),
            StorageKind::Capacity => self.capacities.get(&of_namespace()).cloned().map(StorageObject::Capacity),
            StorageKind::Attachment => self.attachments.get(&key.name).cloned().map(StorageObject::Attachment),
        }
    }
}
