//! Random volumes and devices, pods that claim them, and what becomes of these objects meanwhile.

use std::sync::Arc;

use krafla_model::dra::{
    AllocatedDevice, Allocation, Alternative, Attribute, Capacity, ClaimSource, DeviceAccess, DeviceClassSpec,
    DeviceConstraint, DeviceRequest, DeviceSpec, PodClaim as DeviceClaim, Quantity, ResourceClaimSpec,
    ResourceSliceSpec,
};
use krafla_model::labels::{NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::storage::{
    AccessModes, AttachmentSpec, ClaimChoice, ClaimRef, ClaimSpec, CsiDriverSpec, CsiNodeSpec, Disk, NO_PROVISIONER,
    PodClaim, StorageCapacitySpec, StorageClassSpec, StorageKey, StorageKind, StorageObject, VolumePhase, VolumeSource,
    VolumeSpec,
};
use krafla_model::{ClusterState, Event, Name, PodShape, PodSpec, Task};
use proptest::prelude::*;

use super::kinds::{HOSTNAME, TOPOLOGY_ZONE, ZONES};

/// Claims, and volumes, of which there may be each.
const N: usize = 6;
const GIB: i64 = 1 << 30;
const DRIVERS: [&str; 3] = ["d0", "d1", "ebs.csi.aws.com"];
const CLASSES: [&str; 5] = ["", "local", "made", "ebs", "now"];
const GPU: &str = "gpu.example.com";
const MODELS: [&str; 2] = ["old", "new"];

/// What a pod claims.
#[derive(Clone, Copy, Debug)]
pub(super) enum Uses {
    Nothing,
    /// So many claims of storage, which depend on the pod's number too.
    Volumes {
        first: usize,
        n: usize,
        ephemeral: bool,
    },
    Disk {
        which: usize,
        read_only: bool,
    },
    /// A claim of devices that is made for it.
    Devices(Wish),
    /// A claim of devices that others use too.
    SharedDevices(usize),
}

/// What is asked of devices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// `None`: all that match.
    count: Option<u32>,
    model: usize,
    alternatives: bool,
    constraint: Option<bool>,
    part: bool,
    twice: bool,
}

/// An object, or the end of one.
#[derive(Clone, Debug)]
pub(super) enum Thing {
    Claim { n: usize, class: usize, gib: i64, state: usize, exclusive: bool },
    Volume { n: usize, class: usize, gib: i64, place: usize, source: usize, state: usize },
    Class { class: usize, waits: bool, in_zone: Option<usize> },
    CsiNode { node: usize, limits: [Option<i64>; 3] },
    Driver { n: usize, capacity: bool, needed: bool },
    Capacity { n: usize, class: usize, zone: usize, gib: i64 },
    Attachment { n: usize, node: usize, volume: usize, driver: usize },
    StorageGone { kind: usize, n: usize },
    Slice { pool: usize, place: Option<usize>, devices: Vec<usize>, counted: bool, slices: i64 },
    SliceGone(usize),
    DeviceClass(Option<usize>),
    SharedClaim { n: usize, wish: Wish, has: Option<(usize, usize)> },
    SharedClaimGone(usize),
}

impl Thing {
    /// A claim that has its volume.
    pub(super) fn bound_claim(n: usize) -> Self {
        Self::Claim { n, class: 0, gib: 1, state: 1, exclusive: false }
    }

    /// The volume of that claim, of a driver, for all nodes.
    pub(super) fn volume_of(n: usize) -> Self {
        Self::Volume { n, class: 0, gib: 1, place: 0, source: 1, state: 1 }
    }

    /// Four devices of a node.
    pub(super) fn slice_of(pool: usize) -> Self {
        Self::Slice { pool, place: None, devices: vec![0; 4], counted: false, slices: 1 }
    }
}

impl Uses {
    /// One device, whichever.
    pub(super) fn one_device() -> Self {
        Self::Devices(ONE_DEVICE)
    }
}

const ONE_DEVICE: Wish =
    Wish { count: Some(1), model: MODELS.len() + 1, alternatives: false, constraint: None, part: false, twice: false };

pub(super) fn uses() -> impl Strategy<Value = Uses> {
    let volumes = (0..N, 1_usize..3, prop::bool::weighted(0.2)).prop_map(|(first, n, ephemeral)| Uses::Volumes {
        first,
        n,
        ephemeral,
    });
    prop_oneof![
        10 => Just(Uses::Nothing),
        5 => volumes,
        1 => (0_usize..3, any::<bool>()).prop_map(|(which, read_only)| Uses::Disk { which, read_only }),
        4 => wish().prop_map(Uses::Devices),
        1 => (0_usize..3).prop_map(Uses::SharedDevices),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    let count = prop_oneof![6 => (1_u32..4).prop_map(Some), 1 => Just(None)];
    let constraint = prop::option::weighted(0.2, any::<bool>());
    (count, 0_usize..4, prop::bool::weighted(0.3), constraint, prop::bool::weighted(0.2), prop::bool::weighted(0.2))
        .prop_map(|(count, model, alternatives, constraint, part, twice)| Wish {
            count,
            model,
            alternatives,
            constraint,
            part,
            twice,
        })
}

pub(super) fn thing() -> impl Strategy<Value = Thing> {
    let state = || prop_oneof![4 => Just(0_usize), 4 => Just(1_usize), 2 => 2_usize..7];
    let limit = || prop::option::weighted(0.7, 0_i64..4);
    prop_oneof![
        5 => (0..N, 0..CLASSES.len(), 1_i64..6, state(), prop::bool::weighted(0.2))
            .prop_map(|(n, class, gib, state, exclusive)| Thing::Claim { n, class, gib, state, exclusive }),
        5 => (0..N, 0..CLASSES.len(), 1_i64..9, 0_usize..8, 0_usize..4, state())
            .prop_map(|(n, class, gib, place, source, state)| Thing::Volume { n, class, gib, place, source, state }),
        1 => (1..CLASSES.len(), prop::bool::weighted(0.8), prop::option::weighted(0.3, 0_usize..3))
            .prop_map(|(class, waits, in_zone)| Thing::Class { class, waits, in_zone }),
        3 => (0_usize..7, [limit(), limit(), limit()]).prop_map(|(node, limits)| Thing::CsiNode { node, limits }),
        1 => (0_usize..2, any::<bool>(), any::<bool>())
            .prop_map(|(n, capacity, needed)| Thing::Driver { n, capacity, needed }),
        2 => (0_usize..3, 1..CLASSES.len(), 0_usize..3, 1_i64..9)
            .prop_map(|(n, class, zone, gib)| Thing::Capacity { n, class, zone, gib }),
        2 => (0_usize..4, 0_usize..7, 0..N, 0..DRIVERS.len())
            .prop_map(|(n, node, volume, driver)| Thing::Attachment { n, node, volume, driver }),
        2 => (0_usize..7, 0..N).prop_map(|(kind, n)| Thing::StorageGone { kind, n }),
        4 => slice(),
        1 => (0_usize..6).prop_map(Thing::SliceGone),
        1 => prop::option::of(0_usize..2).prop_map(Thing::DeviceClass),
        2 => (0_usize..3, wish(), prop::option::weighted(0.4, (0_usize..6, 0_usize..4)))
            .prop_map(|(n, wish, has)| Thing::SharedClaim { n, wish, has }),
        1 => (0_usize..3).prop_map(Thing::SharedClaimGone),
    ]
}

fn slice() -> impl Strategy<Value = Thing> {
    let place = prop_oneof![6 => Just(None), 1 => (0_usize..5).prop_map(Some)];
    let slices = prop_oneof![9 => Just(1_i64), 1 => Just(2_i64)];
    (0_usize..6, place, prop::collection::vec(0_usize..12, 0..5), prop::bool::weighted(0.3), slices)
        .prop_map(|(pool, place, devices, counted, slices)| Thing::Slice { pool, place, devices, counted, slices })
}

/// What there is at first: some of each, most of it sound.
pub(super) fn world() -> Vec<Thing> {
    let mut all: Vec<Thing> = Vec::new();
    all.extend((1..CLASSES.len()).map(|class| Thing::Class { class, waits: class < 4, in_zone: None }));
    all.extend((0..N).map(|n| Thing::Claim {
        n,
        class: [1, 2, 3, 2, 0, 1][n],
        gib: 1,
        state: n % 2,
        exclusive: false,
    }));
    all.extend((0..N).map(|n| Thing::Volume {
        n,
        class: [1, 2, 3, 2, 0, 1][n],
        gib: 2,
        place: n,
        source: n % 4,
        state: n % 2,
    }));
    all.extend((0..4).map(|node| Thing::CsiNode { node, limits: [Some(2), None, Some(1)] }));
    all.push(Thing::DeviceClass(None));
    all.extend((0..3).map(|pool| Thing::Slice {
        pool,
        place: None,
        devices: vec![0, 1, 2],
        counted: false,
        slices: 1,
    }));
    all.extend((0..2).map(|n| Thing::SharedClaim { n, wish: ONE_DEVICE, has: None }));
    all
}

fn node_name(i: usize) -> Name {
    format!("n{i:03}").into()
}

fn one_of(key: &str, value: Name) -> Requirement {
    Requirement { key: key.into(), test: Test::In(vec![value]) }
}

fn on(key: &str, value: Name) -> NodeSelectorTerm {
    NodeSelectorTerm { labels: vec![one_of(key, value)], name: Vec::new() }
}

/// What is told of it.
pub(super) fn event(thing: &Thing) -> Event {
    match thing {
        Thing::Claim { n, class, gib, state, exclusive } => Event::Storage(StorageObject::Claim(ClaimSpec {
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
        })),
        Thing::Volume { n, class, gib, place, source, state } => Event::Storage(StorageObject::Volume(VolumeSpec {
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
        })),
        Thing::Class { class, waits, in_zone } => Event::Storage(StorageObject::Class(StorageClassSpec {
            name: CLASSES[*class].into(),
            provisioner: ["", NO_PROVISIONER, "d0", "kubernetes.io/aws-ebs", "d1"][*class].into(),
            waits_for_consumer: *waits,
            allowed_topologies: in_zone
                .iter()
                .map(|zone| Selector(vec![one_of("zone", ZONES[*zone].into())]))
                .collect(),
        })),
        Thing::CsiNode { node, limits } => {
            let drivers = DRIVERS.iter().zip(limits).map(|(driver, limit)| ((*driver).into(), *limit));
            Event::Storage(StorageObject::Node(CsiNodeSpec { name: node_name(*node), drivers: drivers.collect() }))
        }
        Thing::Driver { n, capacity, needed } => Event::Storage(StorageObject::Driver(CsiDriverSpec {
            name: DRIVERS[*n].into(),
            storage_capacity: *capacity,
            needed_on_node: *needed,
        })),
        Thing::Capacity { n, class, zone, gib } => Event::Storage(StorageObject::Capacity(StorageCapacitySpec {
            namespace: "default".into(),
            name: format!("s{n}").into(),
            class: CLASSES[*class].into(),
            nodes: Some(Selector(vec![one_of("zone", ZONES[*zone].into())])),
            largest: Some(gib * GIB),
            capacity: gib * GIB,
        })),
        Thing::Attachment { n, node, volume, driver } => Event::Storage(StorageObject::Attachment(AttachmentSpec {
            name: format!("a{n}").into(),
            attacher: DRIVERS[*driver].into(),
            node: node_name(*node),
            volume: format!("v{volume}").into(),
        })),
        Thing::StorageGone { kind, n } => Event::StorageGone(gone(*kind, *n)),
        Thing::Slice { pool, place, devices, counted, slices } => slice_of(*pool, *place, devices, *counted, *slices),
        Thing::SliceGone(pool) => Event::ResourceSliceGone(format!("s{pool}").into()),
        Thing::DeviceClass(model) => Event::DeviceClass(DeviceClassSpec {
            name: "gpu".into(),
            selectors: model.iter().map(|model| is_model(*model)).collect(),
            ..DeviceClassSpec::default()
        }),
        Thing::SharedClaim { n, wish, has } => {
            let name = format!("shared-{n}");
            let allocation = has.map(|(pool, device)| Arc::new(given(pool, device)));
            Event::ResourceClaim(Box::new(ResourceClaimSpec { allocation, ..device_claim(&name, *wish, None) }))
        }
        Thing::SharedClaimGone(n) => {
            Event::ResourceClaimGone { namespace: "default".into(), name: format!("shared-{n}").into() }
        }
    }
}

fn gone(kind: usize, n: usize) -> StorageKey {
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

fn is_model(model: usize) -> Name {
    format!("device.attributes['{GPU}'].model == '{}'", MODELS[model]).into()
}

/// A pool in one slice: of the node of that number, unless it has another place.
fn slice_of(pool: usize, place: Option<usize>, devices: &[usize], counted: bool, slices: i64) -> Event {
    let amount = |n: i64| Quantity::parse(&n.to_string()).expect("a number");
    let access = || match place {
        None => DeviceAccess::Node(node_name(pool)),
        Some(0) => DeviceAccess::Everywhere,
        Some(4) => DeviceAccess::Nowhere,
        Some(zone) => DeviceAccess::Selector(vec![on("zone", ZONES[zone - 1].into())]),
    };
    let device = |(i, kind): (usize, &usize)| DeviceSpec {
        name: format!("g{i}").into(),
        access: access(),
        attributes: match kind % 3 {
            2 => Vec::new(),
            model => vec![("model".into(), Attribute::Text(MODELS[model].into()))],
        },
        capacity: vec![("memory".into(), Capacity { value: amount(4), ..Capacity::default() })],
        consumes: if counted { vec![("set".into(), "slots".into(), amount(1 + *kind as i64 % 2))] } else { Vec::new() },
        shared: *kind >= 10,
        ..DeviceSpec::default()
    };
    Event::ResourceSlice(ResourceSliceSpec {
        name: format!("s{pool}").into(),
        driver: GPU.into(),
        pool: format!("pool{pool}").into(),
        generation: 1,
        slices,
        devices: devices.iter().enumerate().map(device).collect(),
        counters: if counted { vec![("set".into(), "slots".into(), amount(3))] } else { Vec::new() },
    })
}

/// A device that a claim has been given, by its status.
fn given(pool: usize, device: usize) -> Allocation {
    let device = AllocatedDevice {
        request: "r".into(),
        driver: GPU.into(),
        pool: format!("pool{pool}").into(),
        device: format!("g{device}").into(),
        ..AllocatedDevice::default()
    };
    let name = vec![Test::In(vec![node_name(pool)])];
    let nodes = Some(vec![NodeSelectorTerm { labels: Vec::new(), name }]);
    Allocation { devices: vec![device], nodes, ..Allocation::default() }
}

fn device_claim(name: &str, wish: Wish, owner: Option<Name>) -> ResourceClaimSpec {
    let alternative = |name: &str, model: usize, count: Option<u32>| Alternative {
        name: name.into(),
        class: "gpu".into(),
        selectors: if model < MODELS.len() { vec![is_model(model)] } else { Vec::new() },
        count,
        capacity: match wish.part {
            true => vec![("memory".into(), Quantity::parse("2").expect("a number"))],
            false => Vec::new(),
        },
        ..Alternative::default()
    };
    let alternatives = match wish.alternatives {
        true => vec![alternative("x", wish.model, wish.count), alternative("y", wish.model + 1, Some(1))],
        false => vec![alternative("", wish.model, wish.count)],
    };
    let request = |name: &str| DeviceRequest { name: name.into(), alternatives: alternatives.clone() };
    let mut requests = vec![request("r")];
    if wish.twice {
        requests.push(request("q"));
    }
    let constraint =
        |distinct| DeviceConstraint { requests: Vec::new(), attribute: format!("{GPU}/model").into(), distinct };
    ResourceClaimSpec {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        owner,
        requests,
        constraints: wish.constraint.into_iter().map(constraint).collect(),
        ..ResourceClaimSpec::default()
    }
}

/// A pod that claims this, by its number: its claims are told of before itself.
pub(super) fn claiming(pod: PodSpec, i: usize, uses: Uses) -> Vec<Event> {
    let mut shape = PodShape::clone(&pod.shape);
    let mut pod = pod;
    let mut before = Vec::new();
    match uses {
        Uses::Nothing => return vec![Event::Pod(pod)],
        Uses::Volumes { first, n, ephemeral } => {
            let named = |k: usize| PodClaim { name: format!("c{}", (first + i + k) % N).into(), ephemeral };
            shape.volumes.claims = (0..n).map(named).collect();
        }
        Uses::Disk { which, read_only } => shape.volumes.disks.push(match which {
            0 => Disk::GcePersistentDisk { name: "disk".into(), read_only },
            1 => Disk::AwsElasticBlockStore { id: format!("h{}", i % N).into() },
            _ => Disk::InTree { plugin: "kubernetes.io/cinder".into(), handle: "disk".into() },
        }),
        Uses::Devices(wish) => {
            let name = format!("{}-devices", pod.name);
            shape.claims = vec![ClaimSource::Template("devices".into())];
            let claim = device_claim(&name, wish, Some(pod.uid.clone()));
            before.push(Event::ResourceClaim(Box::new(claim)));
            pod.claims = vec![DeviceClaim { name: "d".into(), claim: Some(name.into()), generated: true }];
        }
        Uses::SharedDevices(n) => {
            let name: Name = format!("shared-{n}").into();
            shape.claims = vec![ClaimSource::Claim(name.clone())];
            pod.claims = vec![DeviceClaim { name: "d".into(), claim: Some(name), generated: false }];
        }
    }
    pod.shape = Arc::new(shape);
    before.push(Event::Pod(pod));
    before
}

/// What was chosen for the claims of those that are placed, as it is once it is written.
pub(super) fn written(cluster: &ClusterState) -> Vec<Event> {
    let mut events = Vec::new();
    for (id, task) in cluster.tasks().filter(|(_, task)| task.status().holds_node()) {
        for choice in task.choices() {
            events.extend(written_choice(cluster, cluster.namespace_of(id), task, choice));
        }
    }
    events
}

fn written_choice(cluster: &ClusterState, namespace: &Name, task: &Task, choice: &ClaimChoice) -> Vec<Event> {
    let storage = cluster.storage();
    let bind = |claim: &Name, volume: &Name| {
        let claim = storage.claim(namespace, claim)?.clone();
        let reference = ClaimRef { namespace: namespace.clone(), name: claim.name.clone(), uid: claim.uid.clone() };
        let bound = ClaimSpec { volume: volume.clone(), bind_completed: true, ..claim };
        Some((bound, reference))
    };
    match choice {
        ClaimChoice::Volume { claim, volume } => {
            let Some((bound, reference)) = bind(claim, volume) else { return Vec::new() };
            let Some(volume) = storage.volume(volume).cloned() else { return Vec::new() };
            let volume = VolumeSpec { claim: Some(reference), phase: VolumePhase::Bound, ..volume };
            vec![Event::Storage(StorageObject::Volume(volume)), Event::Storage(StorageObject::Claim(bound))]
        }
        ClaimChoice::Provision { claim } => {
            let name: Name = format!("made-{claim}").into();
            let Some((bound, reference)) = bind(claim, &name) else { return Vec::new() };
            let volume = VolumeSpec {
                name: name.clone(),
                class: bound.class.clone(),
                capacity: bound.request.unwrap_or(0),
                access_modes: bound.access_modes,
                claim: Some(reference),
                phase: VolumePhase::Bound,
                source: VolumeSource::Csi { driver: DRIVERS[0].into(), handle: name },
                ..VolumeSpec::default()
            };
            vec![Event::Storage(StorageObject::Volume(volume)), Event::Storage(StorageObject::Claim(bound))]
        }
        ClaimChoice::Devices(choice) => {
            let Some(claim) = cluster.dynamic_resources().claim(&choice.namespace, &choice.name) else {
                return Vec::new();
            };
            let mut spec = claim.spec().clone();
            spec.allocation = Some(Arc::clone(&choice.allocation));
            if !spec.reserved_for.contains(&task.uid) {
                spec.reserved_for.push(task.uid.clone());
            }
            vec![Event::ResourceClaim(Box::new(spec))]
        }
    }
}
