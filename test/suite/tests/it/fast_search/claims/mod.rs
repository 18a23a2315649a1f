//! Random volumes and devices, pods that claim them, and what becomes of these objects meanwhile.

mod devices;
mod storage;

use std::sync::Arc;

use krafla_model::dra::{ClaimSource, DeviceClassSpec, PodClaim as DeviceClaim, ResourceClaimSpec};
use krafla_model::labels::{NodeSelectorTerm, Requirement, Test};
use krafla_model::storage::{
    ClaimChoice, ClaimRef, ClaimSpec, Disk, PodClaim, StorageObject, VolumePhase, VolumeSource, VolumeSpec,
};
use krafla_model::{ClusterState, Event, Name, PodShape, PodSpec, Task};
use proptest::prelude::*;

use self::devices::{ONE_DEVICE, Wish, device_claim, given, is_model, slice_of, wish};

/// Claims, and volumes, of which there may be each.
const N: usize = 6;
const DRIVERS: [&str; 3] = ["d0", "d1", "ebs.csi.aws.com"];
const CLASSES: [&str; 5] = ["", "local", "made", "ebs", "now"];

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
        Thing::StorageGone { kind, n } => Event::StorageGone(storage::gone(*kind, *n)),
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
        _ => Event::Storage(storage::object(thing).expect("an object of storage")),
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
