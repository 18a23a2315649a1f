//! Claims, volumes and classes for the tests of the plugins that look at them.

use krafla_model::labels::{NodeSelectorTerm, Requirement, Test};
use krafla_model::storage::{
    AccessModes, ClaimRef, ClaimSpec, CsiNodeSpec, PodClaim, StorageClassSpec, StorageObject, VolumePhase,
    VolumeSource, VolumeSpec,
};
use krafla_model::{Event, PodShape};
use krafla_testkit::Scene;

/// A scene with objects of storage.
pub(super) trait Stored {
    /// With one more.
    fn has(self, object: StorageObject) -> Self;
}

impl Stored for Scene {
    fn has(self, object: StorageObject) -> Self {
        self.event(Event::Storage(object))
    }
}

const GIB: i64 = 1 << 30;

/// A class whose claims wait for a node; `provisioner` makes volumes, unless it is empty.
pub(super) fn waiting_class(name: &str, provisioner: &str) -> StorageClassSpec {
    StorageClassSpec {
        name: name.into(),
        provisioner: if provisioner.is_empty() { krafla_model::storage::NO_PROVISIONER } else { provisioner }.into(),
        waits_for_consumer: true,
        ..StorageClassSpec::default()
    }
}

/// A claim of so many GiB.
pub(super) fn claim(name: &str, class: &str, gib: i64) -> ClaimSpec {
    ClaimSpec {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        class: class.into(),
        access_modes: AccessModes::READ_WRITE_ONCE,
        request: Some(gib * GIB),
        ..ClaimSpec::default()
    }
}

/// The same with its volume.
pub(super) fn bound(claim: ClaimSpec, volume: &str) -> ClaimSpec {
    ClaimSpec { volume: volume.into(), bind_completed: true, ..claim }
}

/// A volume of so many GiB that nobody has; on one node, unless that is empty.
pub(super) fn volume(name: &str, class: &str, gib: i64, node: &str) -> VolumeSpec {
    let on = Requirement { key: "kubernetes.io/hostname".into(), test: Test::In(vec![node.into()]) };
    VolumeSpec {
        name: name.into(),
        class: class.into(),
        access_modes: AccessModes::READ_WRITE_ONCE,
        capacity: gib * GIB,
        affinity: (!node.is_empty()).then(|| vec![NodeSelectorTerm { labels: vec![on], name: Vec::new() }]),
        phase: VolumePhase::Available,
        ..VolumeSpec::default()
    }
}

/// The same, for a claim.
pub(super) fn named(volume: VolumeSpec, claim: &str) -> VolumeSpec {
    let reference = ClaimRef { namespace: "default".into(), name: claim.into(), uid: format!("uid-{claim}").into() };
    VolumeSpec { claim: Some(reference), phase: VolumePhase::Bound, ..volume }
}

/// The same, of a driver.
pub(super) fn of_driver(volume: VolumeSpec, driver: &str) -> VolumeSpec {
    let handle = volume.name.clone();
    VolumeSpec { source: VolumeSource::Csi { driver: driver.into(), handle }, ..volume }
}

/// A node that attaches so many volumes of a driver.
pub(super) fn limited(node: &str, driver: &str, limit: i64) -> StorageObject {
    let drivers = vec![(driver.into(), Some(limit))];
    StorageObject::Node(CsiNodeSpec { name: node.into(), drivers })
}

/// Pods that follow use these claims.
pub(super) fn uses<'a>(claims: &'a [&'a str]) -> impl Fn(&mut PodShape) + 'a {
    |shape| {
        let named = |name: &&str| PodClaim { name: (*name).into(), ephemeral: false };
        shape.volumes.claims = claims.iter().map(named).collect();
    }
}
