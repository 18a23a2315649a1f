//! Claims, volumes and what else the place of a pod with volumes depends on, as the edge reports it.

use serde::{Deserialize, Serialize};

use crate::labels::{Labels, NodeSelectorTerm, Selector};
use crate::name::Name;

/// Ways in which a volume may be used, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccessModes(u8);

impl AccessModes {
    /// `ReadWriteOnce`.
    pub const READ_WRITE_ONCE: Self = Self(1);
    /// `ReadOnlyMany`.
    pub const READ_ONLY_MANY: Self = Self(1 << 1);
    /// `ReadWriteMany`.
    pub const READ_WRITE_MANY: Self = Self(1 << 2);
    /// `ReadWriteOncePod`.
    pub const READ_WRITE_ONCE_POD: Self = Self(1 << 3);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are among these.
    pub const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Namespace and name of a claim.
pub type ClaimKey = (Name, Name);

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimSpec {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub uid: Name,
    /// Its StorageClass; empty if it has none.
    pub class: Name,
    /// How it is to be used.
    pub access_modes: AccessModes,
    /// Whether it wants a device (`volumeMode: Block`) rather than a file system.
    pub block: bool,
    /// How large the volume has to be, in bytes; `None` if it does not say.
    pub request: Option<i64>,
    /// Which volumes will do; `None`: any.
    pub selector: Option<Selector>,
    /// The volume that it names; empty if none.
    pub volume: Name,
    /// Whether the bond with that volume is complete.
    pub bind_completed: bool,
    /// Whether its volume is gone.
    pub lost: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The node for which its volume is being made.
    pub selected_node: Option<Name>,
    /// UID of the controller that it belongs to: for the claim of an ephemeral volume, the pod.
    pub owner: Option<Name>,
}

impl ClaimSpec {
    /// Its namespace and name.
    pub fn key(&self) -> ClaimKey {
        (self.namespace.clone(), self.name.clone())
    }

    /// Whether it has its volume.
    pub fn is_bound(&self) -> bool {
        !self.volume.is_empty() && self.bind_completed
    }
}

/// The claim that a volume says it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRef {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its UID; empty while nobody has looked.
    pub uid: Name,
}

impl ClaimRef {
    /// Whether it means this claim.
    pub fn means(&self, claim: &ClaimSpec) -> bool {
        self.name == claim.name && self.namespace == claim.namespace && (self.uid.is_empty() || self.uid == claim.uid)
    }
}

/// Where the data of a volume are, as far as limits of nodes depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeSource {
    /// Something that is not attached by a driver.
    #[default]
    Other,
    /// A volume of a CSI driver.
    Csi {
        /// The driver.
        driver: Name,
        /// What the driver calls the volume.
        handle: Name,
    },
    /// A volume of a plugin that Kubernetes once had, and a driver may have taken over.
    InTree {
        /// The plugin: `kubernetes.io/aws-ebs`.
        plugin: Name,
        /// What it calls the volume.
        handle: Name,
    },
}

/// Where a volume is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumePhase {
    /// Nobody has looked at it yet.
    #[default]
    Pending,
    /// It may be had.
    Available,
    /// It belongs to a claim.
    Bound,
    /// Its claim is gone.
    Released,
    /// It could not be cleaned.
    Failed,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeSpec {
    /// Its name.
    pub name: Name,
    /// Its labels.
    pub labels: Labels,
    /// Its StorageClass; empty if it has none.
    pub class: Name,
    /// How it may be used.
    pub access_modes: AccessModes,
    /// Whether it is a device (`volumeMode: Block`).
    pub block: bool,
    /// Its size in bytes.
    pub capacity: i64,
    /// The nodes that can use it: one term must match. `None`: all.
    pub affinity: Option<Vec<NodeSelectorTerm>>,
    /// The claim that it is for.
    pub claim: Option<ClaimRef>,
    /// Where it is in its life.
    pub phase: VolumePhase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Where its data are.
    pub source: VolumeSource,
}

impl VolumeSpec {
    /// Whether a node with these labels can use it. As everywhere in Kubernetes, only the labels count here.
    pub fn is_usable_on(&self, labels: &Labels) -> bool {
        self.affinity.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches("", labels)))
    }

    /// Whether it is large enough for a claim and of its mode: what must hold even for a volume that is meant for it.
    pub fn is_large_enough(&self, claim: &ClaimSpec) -> bool {
        self.capacity >= claim.request.unwrap_or(0) && self.block == claim.block && !self.deleting
    }

    /// Whether a claim may take it, as it stands and without regard to nodes.
    pub fn may_serve(&self, claim: &ClaimSpec) -> bool {
        self.claim.is_none()
            && self.phase == VolumePhase::Available
            && self.class == claim.class
            && self.is_large_enough(claim)
            && self.access_modes.has_all(claim.access_modes)
            && claim.selector.as_ref().is_none_or(|selector| selector.matches(&self.labels))
    }
}

/// The provisioner of classes whose volumes are made by hand.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageClassSpec {
    /// Its name.
    pub name: Name,
    /// Who makes its volumes.
    pub provisioner: Name,
    /// Whether claims wait until a pod needs them.
    pub waits_for_consumer: bool,
    /// The nodes for which volumes can be made: one selector must match. Empty: all.
    pub allowed_topologies: Vec<Selector>,
}

impl StorageClassSpec {
    /// Whether somebody makes its volumes.
    pub fn is_provisioned(&self) -> bool {
        !self.provisioner.is_empty() && *self.provisioner != *NO_PROVISIONER
    }

    /// Whether volumes can be made for a node with these labels. A selector without conditions matches no node.
    pub fn allows(&self, labels: &Labels) -> bool {
        let matches = |one: &Selector| !one.0.is_empty() && one.matches(labels);
        self.allowed_topologies.is_empty() || self.allowed_topologies.iter().any(matches)
    }
}

/// A CSINode: the drivers of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsiNodeSpec {
    /// The node's name.
    pub name: Name,
    /// Its drivers, each with the number of volumes that can be attached; sorted by name.
    pub drivers: Vec<(Name, Option<i64>)>,
}

/// A CSIDriver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CsiDriverSpec {
    /// Its name.
    pub name: Name,
    /// Whether it says how much storage there is where.
    pub storage_capacity: bool,
    /// Whether pods with its volumes are kept from nodes that lack it.
    pub needed_on_node: bool,
}

/// A CSIStorageCapacity: how much storage of a class there is for some nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageCapacitySpec {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The StorageClass.
    pub class: Name,
    /// The nodes; `None`: none.
    pub nodes: Option<Selector>,
    /// The largest volume that can be made for them, in bytes; `None`: nobody knows, so none.
    pub largest: Option<i64>,
    /// How much there is in all, in bytes; 0 if nobody knows.
    pub capacity: i64,
}

/// A VolumeAttachment: a volume that is, or is to be, attached to a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttachmentSpec {
    /// Its name.
    pub name: Name,
    /// The driver.
    pub attacher: Name,
    /// The node.
    pub node: Name,
    /// The volume.
    pub volume: Name,
}
