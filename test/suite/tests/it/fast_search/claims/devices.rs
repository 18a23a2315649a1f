//! Devices, and claims of them.

use krafla_model::dra::{
    AllocatedDevice, Allocation, Alternative, Attribute, Capacity, DeviceAccess, DeviceConstraint, DeviceRequest,
    DeviceSpec, Quantity, ResourceClaimSpec, ResourceSliceSpec,
};
use krafla_model::labels::{NodeSelectorTerm, Test};
use krafla_model::{Event, Name};
use proptest::prelude::*;

use super::super::kinds::ZONES;
use super::{node_name, on};

const GPU: &str = "gpu.example.com";
const MODELS: [&str; 2] = ["old", "new"];

/// What is asked of devices.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Wish {
    /// `None`: all that match.
    count: Option<u32>,
    model: usize,
    alternatives: bool,
    constraint: Option<bool>,
    part: bool,
    twice: bool,
}

/// One device, whichever.
pub(super) const ONE_DEVICE: Wish =
    Wish { count: Some(1), model: MODELS.len() + 1, alternatives: false, constraint: None, part: false, twice: false };

pub(super) fn wish() -> impl Strategy<Value = Wish> {
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

pub(super) fn is_model(model: usize) -> Name {
    format!("device.attributes['{GPU}'].model == '{}'", MODELS[model]).into()
}

/// A pool in one slice: of the node of that number, unless it has another place.
pub(super) fn slice_of(pool: usize, place: Option<usize>, devices: &[usize], counted: bool, slices: i64) -> Event {
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
pub(super) fn given(pool: usize, device: usize) -> Allocation {
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

pub(super) fn device_claim(name: &str, wish: Wish, owner: Option<Name>) -> ResourceClaimSpec {
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
