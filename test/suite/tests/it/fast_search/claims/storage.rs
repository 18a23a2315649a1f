//! Objects of storage.

use krafla_model::labels::{NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::storage::{
    AccessModes, AttachmentSpec, ClaimRef, ClaimSpec, CsiDriverSpec, CsiNodeSpec, NO_PROVISIONER, StorageCapacitySpec,
    StorageClassSpec, StorageKey, StorageKind, StorageObject, VolumePhase, VolumeSource, VolumeSpec,
};

use super::super::kinds::{HOSTNAME, TOPOLOGY_ZONE, ZONES};
use super::{CLASSES, DRIVERS, Thing, node_name, on, one_of};

const GIB: i64 = 1 << 30;

/// The object of storage that a thing is; `None` if it is something else.
pub(super) fn object(thing: &Thing) -> Option<StorageObject> {
    Some(match thing {
        Thing::Claim { n, class, gib, state, exclusive } => StorageObject::Claim(ClaimSpec {
            namespace: "default".into(),
            name: format!("c{n}").into(),
            uid: format!("uid-c{n}").into(),
            class: CLASSES[*class].into(),
            access_modes: match exclusive {
                true => AccessModes::READ_WRITE_ONCE_POD,
                false => AccessModes::READ_WRITE_ONCE,
            },
            request: Some(gib * GIB),
            volume: if [1, 2, 3].contains(state) { format!("v{n}").into() } else { "".into() },
            bind_completed: *state == 1,
            lost: *state == 3,
            deleting: *state == 4,
            selected_node: (*state == 5).then(|| node_name(n % 3)),
            owner: (*state == 6).then(|| format!("p{n}").into()),
            ..ClaimSpec::default()
        }),
        Thing::Volume { n, class, gib, place, source, state } => StorageObject::Volume(VolumeSpec {
            name: format!("v{n}").into(),
            labels: match place {
                6 => [(TOPOLOGY_ZONE.into(), ZONES[n % 3].into())].into_iter().collect(),
                _ => Default::default(),
            },
            class: CLASSES[*class].into(),
            access_modes: AccessModes::READ_WRITE_ONCE.and(AccessModes::READ_WRITE_ONCE_POD),
            capacity: gib * GIB,
            affinity: match place {
                0 | 6 => None,
                1 | 2 => Some(vec![on("zone", ZONES[n % 3].into())]),
                3 => Some(vec![on("zone", "a".into()), on(HOSTNAME, node_name(1))]),
                4 => Some(vec![NodeSelectorTerm {
                    labels: vec![Requirement { key: "disk".into(), test: Test::Exists }],
                    name: Vec::new(),
                }]),
                _ => Some(vec![on(HOSTNAME, node_name(n % 4))]),
            },
            claim: [1, 2].contains(state).then(|| ClaimRef {
                namespace: "default".into(),
                name: format!("c{n}").into(),
                uid: if *state == 1 { format!("uid-c{n}").into() } else { "other".into() },
            }),
            phase: match state {
                1 => VolumePhase::Bound,
                4 => VolumePhase::Pending,
                _ => VolumePhase::Available,
            },
            deleting: *state == 3,
            source: match source {
                0 => VolumeSource::Other,
                1 | 2 => VolumeSource::Csi { driver: DRIVERS[source - 1].into(), handle: format!("h{}", n % 4).into() },
                _ => VolumeSource::InTree { plugin: "kubernetes.io/aws-ebs".into(), handle: format!("h{n}").into() },
            },
            ..VolumeSpec::default()
        }),
        Thing::Class { class, waits, in_zone } => StorageObject::Class(StorageClassSpec {
            name: CLASSES[*class].into(),
            provisioner: ["", NO_PROVISIONER, "d0", "kubernetes.io/aws-ebs", "d1"][*class].into(),
            waits_for_consumer: *waits,
            allowed_topologies: in_zone
                .iter()
                .map(|zone| Selector(vec![one_of("zone", ZONES[*zone].into())]))
                .collect(),
        }),
        Thing::CsiNode { node, limits } => {
            let drivers = DRIVERS.iter().zip(limits).map(|(driver, limit)| ((*driver).into(), *limit));
            StorageObject::Node(CsiNodeSpec { name: node_name(*node), drivers: drivers.collect() })
        }
        Thing::Driver { n, capacity, needed } => StorageObject::Driver(CsiDriverSpec {
            name: DRIVERS[*n].into(),
            storage_capacity: *capacity,
            needed_on_node: *needed,
        }),
        Thing::Capacity { n, class, zone, gib } => StorageObject::Capacity(StorageCapacitySpec {
            namespace: "default".into(),
            name: format!("s{n}").into(),
            class: CLASSES[*class].into(),
            nodes: Some(Selector(vec![one_of("zone", ZONES[*zone].into())])),
            largest: Some(gib * GIB),
            capacity: gib * GIB,
        }),
        Thing::Attachment { n, node, volume, driver } => StorageObject::Attachment(AttachmentSpec {
            name: format!("a{n}").into(),
            attacher: DRIVERS[*driver].into(),
            node: node_name(*node),
            volume: format!("v{volume}").into(),
        }),
        _ => return None,
    })
}

/// Which object of storage goes.
pub(super) fn gone(kind: usize, n: usize) -> StorageKey {
    let (kind, name) = match kind {
        0 => (StorageKind::Claim, format!("c{n}")),
        1 => (StorageKind::Volume, format!("v{n}")),
        2 => (StorageKind::Class, CLASSES[n % CLASSES.len()].to_owned()),
        3 => (StorageKind::Node, node_name(n).to_string()),
        4 => (StorageKind::Driver, DRIVERS[n % DRIVERS.len()].to_owned()),
        5 => (StorageKind::Capacity, format!("s{}", n % 3)),
        _ => (StorageKind::Attachment, format!("a{}", n % 4)),
    };
    let has_namespace = matches!(kind, StorageKind::Claim | StorageKind::Capacity);
    StorageKey { kind, namespace: if has_namespace { "default".into() } else { "".into() }, name: name.into() }
}
