//! The kinds of objects that storage depends on.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::storage::{StorageKey, StorageKind, StorageObject};
use krafla_model::{Name, Problem};
use serde_json::Value;

use crate::converter::Converter;
use crate::fault::{Fault, typed};
use crate::report::namespace_of;

/// An object of storage as the API has it.
#[derive(Clone, Debug, PartialEq)]
pub enum StorageManifest {
    /// A claim.
    Claim(Box<PersistentVolumeClaim>),
    /// A volume.
    Volume(Box<PersistentVolume>),
    /// A class.
    Class(Box<StorageClass>),
    /// The drivers of a node.
    Node(Box<CSINode>),
    /// A driver.
    Driver(Box<CSIDriver>),
    /// How much storage there is.
    Capacity(Box<CSIStorageCapacity>),
    /// A volume that is attached.
    Attachment(Box<VolumeAttachment>),
}

impl StorageManifest {
    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Claim(one) => &one.metadata,
            Self::Volume(one) => &one.metadata,
            Self::Class(one) => &one.metadata,
            Self::Node(one) => &one.metadata,
            Self::Driver(one) => &one.metadata,
            Self::Capacity(one) => &one.metadata,
            Self::Attachment(one) => &one.metadata,
        }
    }

    /// The same, to be changed.
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Claim(one) => &mut one.metadata,
            Self::Volume(one) => &mut one.metadata,
            Self::Class(one) => &mut one.metadata,
            Self::Node(one) => &mut one.metadata,
            Self::Driver(one) => &mut one.metadata,
            Self::Capacity(one) => &mut one.metadata,
            Self::Attachment(one) => &mut one.metadata,
        }
    }

    /// Reads an object; none if it is of another kind.
    pub(crate) fn read(api_version: &str, kind: &str, value: &Value) -> Result<Option<Self>, Fault> {
        Ok(Some(match (api_version, kind) {
            ("v1", "PersistentVolumeClaim") => Self::Claim(typed(value)?),
            ("v1", "PersistentVolume") => Self::Volume(typed(value)?),
            ("storage.k8s.io/v1", "StorageClass") => Self::Class(typed(value)?),
            ("storage.k8s.io/v1", "CSINode") => Self::Node(typed(value)?),
            ("storage.k8s.io/v1", "CSIDriver") => Self::Driver(typed(value)?),
            ("storage.k8s.io/v1", "CSIStorageCapacity") => Self::Capacity(typed(value)?),
            ("storage.k8s.io/v1", "VolumeAttachment") => Self::Attachment(typed(value)?),
            _ => return Ok(None),
        }))
    }

    /// Which object it is; none if it has no name.
    pub(crate) fn key(&self) -> Option<StorageKey> {
        let (kind, has_namespace) = match self {
            Self::Claim(_) => (StorageKind::Claim, true),
            Self::Volume(_) => (StorageKind::Volume, false),
            Self::Class(_) => (StorageKind::Class, false),
            Self::Node(_) => (StorageKind::Node, false),
            Self::Driver(_) => (StorageKind::Driver, false),
            Self::Capacity(_) => (StorageKind::Capacity, true),
            Self::Attachment(_) => (StorageKind::Attachment, false),
        };
        let meta = self.metadata();
        let namespace = if has_namespace { namespace_of(meta) } else { "" };
        Some(StorageKey { kind, namespace: namespace.into(), name: Name::from(meta.name.as_deref()?) })
    }
}

impl Converter {
    /// Reads an object of storage.
    pub(crate) fn storage(&mut self, object: &StorageManifest) -> (Option<StorageObject>, Vec<Problem>) {
        fn of<T>(
            (read, problems): (Option<T>, Vec<Problem>),
            wrap: fn(T) -> StorageObject,
        ) -> (Option<StorageObject>, Vec<Problem>) {
            (read.map(wrap), problems)
        }
        match object {
            StorageManifest::Claim(one) => of(self.claim(one), StorageObject::Claim),
            StorageManifest::Volume(one) => of(self.volume(one), StorageObject::Volume),
            StorageManifest::Class(one) => of(self.storage_class(one), StorageObject::Class),
            StorageManifest::Node(one) => of(self.csi_node(one), StorageObject::Node),
            StorageManifest::Driver(one) => of(self.csi_driver(one), StorageObject::Driver),
            StorageManifest::Capacity(one) => of(self.storage_capacity(one), StorageObject::Capacity),
            StorageManifest::Attachment(one) => of(self.attachment(one), StorageObject::Attachment),
        }
    }
}
