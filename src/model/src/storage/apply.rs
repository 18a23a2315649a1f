//! Objects of storage, as they come, change and go.

use std::collections::{BTreeMap, BTreeSet};

use super::{Storage, StorageKey, StorageKind, StorageObject};
use crate::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use crate::name::Name;
use crate::news::News;
use crate::state::ClusterState;

impl ClusterState {
    /// What the API says of storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(crate) fn apply_storage(&mut self, object: StorageObject) {
        let key = object.key();
        let is_new = self.change_storage(&key, |storage| storage.put(object)).is_none();
        self.storage_changed(key, if is_new { ActionType::ADD } else { ActionType::UPDATE });
    }

    pub(crate) fn remove_storage(&mut self, key: &StorageKey) {
        if self.change_storage(key, |storage| storage.remove(key)).is_some() {
            self.storage_changed(key.clone(), ActionType::DELETE);
        }
    }

    /// Nobody but pods with volumes asks for any of this.
    fn storage_changed(&mut self, key: StorageKey, action: ActionType) {
        if !self.volume_waiters.is_empty() {
            self.room_version += 1;
        }
        let resource = match key.kind {
            StorageKind::Claim => EventResource::PersistentVolumeClaim,
            StorageKind::Volume => EventResource::PersistentVolume,
            StorageKind::Class => EventResource::StorageClass,
            StorageKind::Node => EventResource::CsiNode,
            StorageKind::Driver => EventResource::CsiDriver,
            StorageKind::Capacity => EventResource::CsiStorageCapacity,
            StorageKind::Attachment => EventResource::VolumeAttachment,
        };
        self.note(|_| ClusterEvent { resource, action, about: About::Storage(key) });
    }

    /// What an object of storage brings: only a pod with volumes that waits can make use of it.
    pub(crate) fn storage_news(&self, object: &StorageObject) -> News {
        let known = self.storage.get(&object.key());
        match known {
            Some(known) if known == *object => News::Nothing,
            _ if self.volume_waiters.is_empty() => News::Quiet,
            // One attachment more only takes room.
            None if matches!(object, StorageObject::Attachment(_)) => News::Quiet,
            _ => News::Something,
        }
    }

    /// What the end of an object of storage brings.
    pub(crate) fn storage_gone_news(&self, key: &StorageKey) -> News {
        match self.storage.get(key) {
            None => News::Nothing,
            Some(_) if self.volume_waiters.is_empty() => News::Quiet,
            Some(_) => News::Something,
        }
    }
}

impl Storage {
    /// Puts an object in the place of what was known of it, which is the answer.
    pub fn put(&mut self, object: StorageObject) -> Option<StorageObject> {
        let before = self.remove(&object.key());
        match object {
            StorageObject::Claim(claim) => {
                if !claim.volume.is_empty() {
                    self.naming.entry(claim.volume.clone()).or_default().insert(claim.key());
                }
                self.claims.insert(claim.key(), claim);
            }
            StorageObject::Volume(volume) => {
                match &volume.claim {
                    None => self.insert_unclaimed(&volume),
                    Some(claim) => {
                        let key = (claim.namespace.clone(), claim.name.clone());
                        self.claimed.entry(key).or_default().insert(volume.name.clone());
                    }
                }
                self.volumes.insert(volume.name.clone(), volume);
            }
            StorageObject::Class(class) => {
                self.classes.insert(class.name.clone(), class);
            }
            StorageObject::Node(node) => {
                self.nodes.insert(node.name.clone(), node);
            }
            StorageObject::Driver(driver) => {
                self.drivers.insert(driver.name.clone(), driver);
            }
            StorageObject::Capacity(one) => {
                self.capacities.insert((one.namespace.clone(), one.name.clone()), one);
            }
            StorageObject::Attachment(one) => {
                self.attached.entry(one.node.clone()).or_default().insert(one.name.clone());
                self.attaching.entry(one.volume.clone()).or_default().insert(one.name.clone());
                self.attachments.insert(one.name.clone(), one);
            }
        }
        before
    }

    /// Takes an object out; it is the answer.
    pub fn remove(&mut self, key: &StorageKey) -> Option<StorageObject> {
        let of_namespace = || (key.namespace.clone(), key.name.clone());
        Some(match key.kind {
            StorageKind::Claim => {
                let claim = self.claims.remove(&of_namespace())?;
                take(&mut self.naming, &claim.volume, &claim.key());
                StorageObject::Claim(claim)
            }
            StorageKind::Volume => {
                let volume = self.volumes.remove(&key.name)?;
                match &volume.claim {
                    None => self.remove_unclaimed(&volume),
                    Some(claim) => {
                        take(&mut self.claimed, &(claim.namespace.clone(), claim.name.clone()), &volume.name);
                    }
                }
                StorageObject::Volume(volume)
            }
            StorageKind::Class => StorageObject::Class(self.classes.remove(&key.name)?),
            StorageKind::Node => StorageObject::Node(self.nodes.remove(&key.name)?),
            StorageKind::Driver => StorageObject::Driver(self.drivers.remove(&key.name)?),
            StorageKind::Capacity => StorageObject::Capacity(self.capacities.remove(&of_namespace())?),
            StorageKind::Attachment => {
                let one = self.attachments.remove(&key.name)?;
                take(&mut self.attached, &one.node, &one.name);
                take(&mut self.attaching, &one.volume, &one.name);
                StorageObject::Attachment(one)
            }
        })
    }

    /// Every object, classes first and claims after volumes.
    pub fn objects(&self) -> impl Iterator<Item = StorageObject> {
        let classes = self.classes.values().cloned().map(StorageObject::Class);
        let drivers = self.drivers.values().cloned().map(StorageObject::Driver);
        let nodes = self.nodes.values().cloned().map(StorageObject::Node);
        let capacities = self.capacities.values().cloned().map(StorageObject::Capacity);
        let volumes = self.volumes.values().cloned().map(StorageObject::Volume);
        let claims = self.claims.values().cloned().map(StorageObject::Claim);
        let attachments = self.attachments.values().cloned().map(StorageObject::Attachment);
        classes.chain(drivers).chain(nodes).chain(capacities).chain(volumes).chain(claims).chain(attachments)
    }
}

/// Takes `item` out of the set of `key`, and an empty set out of the map.
pub(super) fn take<K: Ord, T: Ord>(sets: &mut BTreeMap<K, BTreeSet<T>>, key: &K, item: &T) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(item);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}

/// Name of a claim's key, for the ledger.
pub(super) fn key_of(namespace: &Name, claim: &Name) -> (Name, Name) {
    (namespace.clone(), claim.clone())
}
