//! What the shell itself has to know of objects: enough to write to them and to speak of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use krafla_model::Name;
use serde_json::Value;

use crate::watch::Kind;

/// A PodGroup, by namespace and name.
pub(crate) type GroupKey = (Name, Name);

/// What is known of one PodGroup.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupEntry {
    /// Which API it is of.
    pub(crate) kind: Kind,
    /// Its UID.
    pub(crate) uid: String,
    /// Its status as the API has it.
    pub(crate) status: Value,
}

/// Objects by name, shared between the feed, which fills it, and those who write.
#[derive(Clone, Default)]
pub(crate) struct Directory(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    groups: BTreeMap<GroupKey, GroupEntry>,
    /// Groups of waiting pods that do not name theirs, by the pod's UID: the bind tells the pod.
    links: BTreeMap<Name, Name>,
}

impl Directory {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A PodGroup is new or has changed.
    pub(crate) fn set_group(&self, key: GroupKey, entry: GroupEntry) {
        self.entries().groups.insert(key, entry);
    }

    /// A PodGroup of this kind is gone. Answers whether it is the one that is known by its name.
    pub(crate) fn remove_group(&self, key: &GroupKey, kind: Kind) -> bool {
        let mut entries = self.entries();
        let known = entries.groups.get(key).is_some_and(|entry| entry.kind == kind);
        if known {
            entries.groups.remove(key);
        }
        known
    }

    /// What is known of a PodGroup.
    pub(crate) fn group(&self, key: &GroupKey) -> Option<GroupEntry> {
        self.entries().groups.get(key).cloned()
    }

    /// Whether there is a PodGroup of this name.
    pub(crate) fn has_group(&self, key: &GroupKey) -> bool {
        self.entries().groups.contains_key(key)
    }

    /// Notes the group of a pod that does not name it.
    pub(crate) fn link(&self, pod: Name, group: Name) {
        self.entries().links.insert(pod, group);
    }

    /// The pod names its group now, has a node, or is gone.
    pub(crate) fn unlink(&self, pod: &str) {
        let mut entries = self.entries();
        if !entries.links.is_empty() {
            entries.links.remove(pod);
        }
    }

    /// The group of a pod that does not name it.
    pub(crate) fn linked(&self, pod: &str) -> Option<Name> {
        self.entries().links.get(pod).cloned()
    }
}
