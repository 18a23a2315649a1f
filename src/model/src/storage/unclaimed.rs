//! Volumes that name no claim, by class and size; and by the node label that they ask for, so that a node is not asked about
//! those of all others. Volumes of local disks are each of one node.

use std::collections::{BTreeMap, BTreeSet};

use super::apply::take;
use super::{Storage, VolumeSpec};
use crate::labels::{Labels, NodeSelectorTerm, Test};
use crate::name::Name;

/// Size and name: the smallest first.
type BySize = BTreeSet<(i64, Name)>;

/// Of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unclaimed {
    all: BySize,
    /// Those of which no label can be told that their nodes have.
    roaming: BySize,
    /// The others, by a label that their nodes have: its key, then its value.
    pinned: BTreeMap<Name, BTreeMap<Name, BySize>>,
}

impl Unclaimed {
    fn insert(&mut self, volume: &VolumeSpec) {
        let item = (volume.capacity, volume.name.clone());
        match pins(volume) {
            None => drop(self.roaming.insert(item.clone())),
            Some(pins) => {
                for (key, value) in pins {
                    let of_key = self.pinned.entry(key.clone()).or_default();
                    of_key.entry(value.clone()).or_default().insert(item.clone());
                }
            }
        }
        self.all.insert(item);
    }

    fn remove(&mut self, volume: &VolumeSpec) {
        let item = (volume.capacity, volume.name.clone());
        self.all.remove(&item);
        self.roaming.remove(&item);
        for (key, value) in pins(volume).unwrap_or_default() {
            let Some(of_key) = self.pinned.get_mut(key) else { continue };
            take(of_key, value, &item);
            if of_key.is_empty() {
                self.pinned.remove(key);
            }
        }
    }
}

/// Labels of which a node has one that can use the volume: a condition of each term. `None`: that cannot be told.
fn pins(volume: &VolumeSpec) -> Option<Vec<(&Name, &Name)>> {
    let pin = |term: &'_ NodeSelectorTerm| -> Option<(usize, usize)> {
        let sizes = term.labels.iter().enumerate().filter_map(|(i, one)| match &one.test {
            Test::In(values) => Some((values.len(), i)),
            _ => None,
        });
        sizes.min()
    };
    let mut all = Vec::new();
    for term in volume.affinity.as_ref()? {
        let (_, at) = pin(term)?;
        if let Test::In(values) = &term.labels[at].test {
            all.extend(values.iter().map(|value| (&term.labels[at].key, value)));
        }
    }
    Some(all)
}

impl Storage {
    pub(super) fn insert_unclaimed(&mut self, volume: &VolumeSpec) {
        self.unclaimed.entry(volume.class.clone()).or_default().insert(volume);
    }

    pub(super) fn remove_unclaimed(&mut self, volume: &VolumeSpec) {
        if let Some(of_class) = self.unclaimed.get_mut(&volume.class) {
            of_class.remove(volume);
            if of_class.all.is_empty() {
                self.unclaimed.remove(&volume.class);
            }
        }
    }

    /// Volumes of a class that name no claim, the smallest first; of one size by name.
    pub fn unclaimed(&self, class: &str) -> impl Iterator<Item = &VolumeSpec> {
        let all = self.unclaimed.get(class).into_iter().flat_map(|of_class| &of_class.all);
        all.filter_map(|(_, name)| self.volumes.get(name))
    }

    /// Whether a volume of a class names no claim.
    pub fn has_unclaimed(&self, class: &str) -> bool {
        self.unclaimed.contains_key(class)
    }

    /// The smallest volume of a class that names no claim, that a node with these labels can use, and that `will_do`; of one
    /// size the first by name. Cost: the volumes for these labels that will not do.
    pub fn find_unclaimed(
        &self,
        class: &str,
        labels: &Labels,
        will_do: impl Fn(&VolumeSpec) -> bool,
    ) -> Option<&VolumeSpec> {
        let of_class = self.unclaimed.get(class)?;
        let pinned = of_class.pinned.iter().filter_map(|(key, values)| values.get(labels.get(key)?));
        let first = |list: &'_ BySize| -> Option<(i64, Name)> {
            let fits = |volume: &VolumeSpec| volume.is_usable_on(labels) && will_do(volume);
            list.iter().find(|(_, name)| self.volumes.get(name).is_some_and(fits)).cloned()
        };
        let best = std::iter::once(&of_class.roaming).chain(pinned).filter_map(first).min()?;
        self.volumes.get(&best.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Requirement;
    use crate::storage::{StorageObject, VolumePhase};

    fn volume(name: &str, capacity: i64, terms: Option<&[&[(&str, Test)]]>) -> VolumeSpec {
        let term = |conditions: &&[(&str, Test)]| NodeSelectorTerm {
            labels: conditions
                .iter()
                .map(|(key, test)| Requirement { key: (*key).into(), test: test.clone() })
                .collect(),
            name: Vec::new(),
        };
        VolumeSpec {
            name: name.into(),
            class: "c".into(),
            capacity,
            affinity: terms.map(|terms| terms.iter().map(term).collect()),
            phase: VolumePhase::Available,
            ..VolumeSpec::default()
        }
    }

    #[test]
    fn the_smallest_that_a_node_can_use_is_found_wherever_it_stands() {
        let is = |value: &str| Test::In(vec![value.into()]);
        let mut storage = Storage::default();
        let all = [
            volume("on-a", 4, Some(&[&[("host", is("a")), ("zone", Test::In(vec!["x".into(), "y".into()]))]])),
            volume("anywhere", 6, None),
            volume("where-label", 3, Some(&[&[("disk", Test::Exists)]])),
            volume("on-b-or-c", 2, Some(&[&[("host", is("b"))], &[("host", is("c"))]])),
            volume("nowhere", 1, Some(&[])),
        ];
        for one in &all {
            storage.put(StorageObject::Volume(one.clone()));
        }
        let found = |storage: &Storage, labels: &[(&str, &str)], without: &str| {
            let labels: Labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            let found = storage.find_unclaimed("c", &labels, |volume| volume.name != *without);
            found.map(|volume| volume.name.to_string())
        };
        for (labels, without, wanted) in [
            (&[("host", "a"), ("zone", "y")][..], "", "on-a"),
            (&[("host", "a"), ("zone", "z")], "", "anywhere"),
            (&[("host", "a"), ("zone", "y"), ("disk", "")], "", "where-label"),
            (&[("host", "c"), ("disk", "")], "", "on-b-or-c"),
            (&[("host", "c")], "on-b-or-c", "anywhere"),
        ] {
            assert_eq!(found(&storage, labels, without).as_deref(), Some(wanted), "{labels:?} {without}");
        }
        for one in &all {
            assert!(storage.has_unclaimed("c"));
            storage.remove(&StorageObject::Volume(one.clone()).key());
        }
        assert_eq!(storage, Storage::default(), "nothing is left of them");
    }
}
