//! Random nodes and pods, with all that plugins look at.

use std::sync::Arc;

use krafla_model::labels::{NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::pod::HostPort;
use krafla_model::pod_affinity::{Namespaces, PodTerm, PodTerms, SpreadConstraint};
use krafla_model::taints::{Effect, Match, Taint, Toleration};
use krafla_model::{Amounts, Event, NodeSpec, PodShape, PodSpec};
use proptest::prelude::*;

use super::claims::{Uses, uses};

#[derive(Clone, Debug)]
pub(super) struct NodeKind {
    pub(super) cpu: i64,
    pub(super) memory: i64,
    pub(super) gpus: i64,
    /// Whether its GPUs are modelled one by one.
    pub(super) devices: bool,
    pub(super) zone: Option<usize>,
    pub(super) ssd: bool,
    pub(super) taint: Option<usize>,
    pub(super) cordoned: bool,
    pub(super) image: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct PodKind {
    pub(super) cpu: i64,
    pub(super) memory: i64,
    pub(super) gpus: i64,
    pub(super) share: u16,
    pub(super) labelled: usize,
    /// What it says of nodes, and of other pods.
    pub(super) says: Says,
    pub(super) image: Option<usize>,
    pub(super) port: bool,
    pub(super) uses: Uses,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Says {
    Nothing,
    SelectsZone(usize),
    SelectsSsd,
    PrefersSsd,
    PrefersZoneAndSsd(usize),
    Tolerates,
    Spreads { must_hold: bool, over_zones: bool, skew: u32 },
    WantsNear { required: bool, whom: usize },
    WantsAway { required: bool, whom: usize, in_zone: bool },
    NamesNode(usize),
}

pub(super) fn node_kind() -> impl Strategy<Value = NodeKind> {
    let has = (1_i64..9, 1_i64..9, prop_oneof![3 => Just(0_i64), 1 => 1_i64..5], any::<bool>());
    let is = (prop::option::of(0_usize..3), any::<bool>(), prop::option::weighted(0.3, 0_usize..3));
    let more = (prop::bool::weighted(0.1), prop::option::of(0_usize..2));
    (has, is, more).prop_map(|((cpu, memory, gpus, devices), (zone, ssd, taint), (cordoned, image))| NodeKind {
        cpu,
        memory,
        gpus,
        devices,
        zone,
        ssd,
        taint,
        cordoned,
        image,
    })
}

fn says() -> impl Strategy<Value = Says> {
    prop_oneof![
        6 => Just(Says::Nothing),
        1 => (0_usize..3).prop_map(Says::SelectsZone),
        1 => Just(Says::SelectsSsd),
        2 => Just(Says::PrefersSsd),
        1 => (0_usize..3).prop_map(Says::PrefersZoneAndSsd),
        2 => Just(Says::Tolerates),
        2 => (any::<bool>(), any::<bool>(), 1_u32..3)
            .prop_map(|(must_hold, over_zones, skew)| Says::Spreads { must_hold, over_zones, skew }),
        1 => (any::<bool>(), 0_usize..3).prop_map(|(required, whom)| Says::WantsNear { required, whom }),
        1 => (any::<bool>(), 0_usize..3, any::<bool>())
            .prop_map(|(required, whom, in_zone)| Says::WantsAway { required, whom, in_zone }),
        1 => (0_usize..6).prop_map(Says::NamesNode),
    ]
}

pub(super) fn pod_kind() -> impl Strategy<Value = PodKind> {
    let asks = (
        0_i64..4,
        0_i64..4,
        prop_oneof![4 => Just(0_i64), 1 => 1_i64..3],
        prop_oneof![6 => Just(0_u16), 1 => 200_u16..900],
    );
    (asks, 0_usize..3, says(), prop::option::weighted(0.4, 0_usize..2), prop::bool::weighted(0.1), uses()).prop_map(
        |((cpu, memory, gpus, share), labelled, says, image, port, uses)| PodKind {
            cpu,
            memory,
            gpus,
            share,
            labelled,
            says,
            image,
            port,
            uses,
        },
    )
}

pub(super) const ZONES: [&str; 3] = ["a", "b", "c"];
pub(super) const APPS: [&str; 3] = ["web", "db", "job"];
const IMAGES: [&str; 2] = ["small:1", "large:1"];
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(super) const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";

pub(super) fn node(i: usize, kind: &NodeKind) -> Event {
    let mut spec = NodeSpec { name: format!("n{i:03}").into(), unschedulable: kind.cordoned, ..NodeSpec::default() };
    spec.allocatable = Amounts::default()
        .with("cpu", kind.cpu * 1_000)
        .with("memory", kind.memory << 30)
        .with("pods", 12)
        .with("nvidia.com/gpu", kind.gpus * 1_000);
    if kind.devices {
        spec.gpu_devices = u8::try_from(kind.gpus).expect("a few");
    }
    spec.labels.set(HOSTNAME.into(), spec.name.clone());
    if let Some(zone) = kind.zone {
        spec.labels.set("zone".into(), ZONES[zone].into());
        spec.labels.set(TOPOLOGY_ZONE.into(), ZONES[zone].into());
        spec.labels.set("volcano.sh/nodegroup-name".into(), ZONES[zone].into());
    }
    if kind.ssd {
        spec.labels.set("disk".into(), "ssd".into());
    }
    if let Some(taint) = kind.taint {
        let effect = [Effect::NoSchedule, Effect::PreferNoSchedule, Effect::PreferNoSchedule][taint];
        let key = ["off", "old", "slow"][taint];
        spec.taints.push(Taint { key: key.into(), value: "".into(), effect });
        if taint == 2 {
            spec.taints.push(Taint { key: "old".into(), value: "".into(), effect });
        }
    }
    if let Some(image) = kind.image {
        spec.images.push((IMAGES[image].into(), (image as i64 + 1) * (400 << 20)));
    }
    Event::Node(spec)
}

pub(super) fn is_app(app: usize) -> Selector {
    Selector(vec![Requirement { key: "app".into(), test: Test::In(vec![APPS[app].into()]) }])
}

pub(super) fn shape(kind: &PodKind) -> PodShape {
    let mut shape = PodShape { namespace: "default".into(), ..PodShape::default() };
    for (name, amount) in
        [("cpu", kind.cpu * 700), ("memory", kind.memory << 29), ("nvidia.com/gpu", kind.gpus * 1_000)]
    {
        if amount > 0 {
            shape.request.set_amount(&name.into(), amount);
        }
    }
    if kind.share > 0 && kind.gpus == 0 {
        shape.gpu_share_milli = kind.share;
        shape.request.set_amount(&"nvidia.com/gpu".into(), i64::from(kind.share));
    }
    shape.labels.set("app".into(), APPS[kind.labelled].into());
    let ssd = || NodeSelectorTerm {
        labels: vec![Requirement { key: "disk".into(), test: Test::In(vec!["ssd".into()]) }],
        name: Vec::new(),
    };
    let zone = |zone: usize| NodeSelectorTerm {
        labels: vec![Requirement { key: "zone".into(), test: Test::In(vec![ZONES[zone].into()]) }],
        name: Vec::new(),
    };
    let term = |whom: usize, in_zone: bool| PodTerm {
        topology_key: if in_zone { "zone".into() } else { HOSTNAME.into() },
        selector: Some(is_app(whom)),
        namespaces: match whom {
            0 => Namespaces { names: vec!["default".into()], selector: None },
            _ => Namespaces {
                names: Vec::new(),
                selector: Some(Selector(vec![Requirement { key: "team".into(), test: Test::Exists }])),
            },
        },
    };
    let terms = |required: bool, term: PodTerm| match required {
        true => PodTerms { required: vec![term], preferred: Vec::new() },
        false => PodTerms { required: Vec::new(), preferred: vec![(30, term)] },
    };
    match kind.says {
        Says::Nothing => {}
        Says::SelectsZone(zone) => shape.node_selector.set("zone".into(), ZONES[zone].into()),
        Says::SelectsSsd => shape.required_affinity = Some(vec![ssd()]),
        Says::PrefersSsd => shape.preferred_affinity = vec![(10, ssd())],
        Says::PrefersZoneAndSsd(one) => shape.preferred_affinity = vec![(10, ssd()), (25, zone(one))],
        Says::Tolerates => {
            shape.tolerations = vec![Toleration { key: Some("old".into()), test: Match::Exists, effect: None }];
        }
        Says::Spreads { must_hold, over_zones, skew } => {
            shape.spread.push(SpreadConstraint {
                max_skew: skew,
                topology_key: if over_zones { "zone".into() } else { HOSTNAME.into() },
                must_hold,
                selector: Some(is_app(kind.labelled)),
                min_domains: 1,
                honors_affinity: true,
                honors_taints: over_zones,
            });
        }
        Says::WantsNear { required, whom } => shape.pod_affinity = terms(required, term(whom, true)),
        Says::WantsAway { required, whom, in_zone } => {
            shape.pod_anti_affinity = terms(required, term(whom, in_zone));
        }
        Says::NamesNode(i) => {
            let test = Test::In(vec![format!("n{i:03}").into()]);
            shape.required_affinity = Some(vec![NodeSelectorTerm { labels: Vec::new(), name: vec![test] }]);
        }
    }
    if let Some(image) = kind.image {
        shape.images.push(IMAGES[image].into());
    }
    if kind.port {
        shape.host_ports.push(HostPort { ip: "".into(), protocol: "TCP".into(), port: 80 });
    }
    shape
}

pub(super) fn pod(i: usize, shape: &Arc<PodShape>) -> PodSpec {
    PodSpec {
        uid: format!("p{i}").into(),
        name: format!("p{i}").into(),
        group: Some("g".into()),
        shape: Arc::clone(shape),
        priority: 1,
        ..PodSpec::default()
    }
}
