//! Decisions a second beside those of the plain search, which asks every plugin about every node; in one run, so that the
//! ratio says something on any machine. The plain search places as many pods as it can be waited for.

use std::sync::Arc;

use krafla_engine::{Engine, Input, Options};
use krafla_framework::Effect;
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_model::labels::{NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::pod_affinity::{Namespaces, PodTerm, PodTerms, SpreadConstraint};
use krafla_model::{Amounts, Event, NodeSpec, PodShape, PodSpec, QueueSpec, Time};

use crate::clock::timed_step;
use crate::{SCORED, group, pod, scaled};

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// What is configured.
#[derive(Clone, Copy)]
enum Conf {
    /// What Volcano's Helm chart installs.
    Tiers,
    /// kube-scheduler's default profile, which looks at all nodes.
    Profile,
}

struct Row {
    name: &'static str,
    conf: Conf,
    pods: u32,
    /// Pods that the plain search places.
    plain_pods: u32,
    /// The shape of the pod of this number.
    shape: fn(u32) -> PodShape,
    /// How many shapes there are.
    shapes: u32,
}

const NODES: u32 = 5_000;

const ROWS: [Row; 12] = [
    row("equal-pods", Conf::Tiers, 10_000, 1, plain),
    row("equal-pods", Conf::Profile, 10_000, 1, plain),
    row("thousand-shapes", Conf::Tiers, 10_000, 1_000, plain),
    row("thousand-shapes", Conf::Profile, 10_000, 1_000, plain),
    row("labels-of-their-own", Conf::Tiers, 10_000, 10_000, |k| {
        let mut shape = plain(0);
        shape.labels.set("job-name".into(), format!("job-{k}").into());
        shape
    }),
    row("preferred-node-affinity", Conf::Profile, 10_000, 1, |k| PodShape {
        preferred_affinity: vec![(10, in_zone("zone-1"))],
        ..plain(k)
    }),
    row("spread-over-zones", Conf::Profile, 5_000, 1, |k| PodShape { spread: vec![spread(ZONE, true)], ..app(k) }),
    row("spread-if-possible", Conf::Profile, 5_000, 1, |k| PodShape {
        spread: vec![spread(ZONE, false), spread(HOSTNAME, false)],
        ..app(k)
    }),
    row("near-its-kind", Conf::Profile, 5_000, 1, |k| PodShape { pod_affinity: required(ZONE), ..app(k) }),
    row("away-from-its-kind", Conf::Profile, 4_000, 1, |k| PodShape {
        pod_anti_affinity: required(HOSTNAME),
        ..app(k)
    }),
    row("near-if-possible", Conf::Profile, 5_000, 1, |k| PodShape { pod_affinity: preferred(ZONE), ..app(k) }),
    row("away-if-possible", Conf::Profile, 5_000, 1, |k| PodShape { pod_anti_affinity: preferred(HOSTNAME), ..app(k) }),
];

const fn row(name: &'static str, conf: Conf, pods: u32, shapes: u32, shape: fn(u32) -> PodShape) -> Row {
    Row { name, conf, pods, plain_pods: 100, shape, shapes }
}

/// Decisions a second of one row, by its name in the table.
pub(crate) fn rate_of(name: &str, percent: u32, runs: u32) -> f64 {
    let row = ROWS.iter().find(|row| full_name(row) == name).expect("the row is there");
    let (nodes, pods) = (scaled(NODES, percent), scaled(row.pods, percent));
    (0..runs.max(1)).map(|_| rate(row, nodes, pods, false)).fold(0.0_f64, f64::max)
}

fn full_name(row: &Row) -> String {
    let conf = match row.conf {
        Conf::Tiers => "helm",
        Conf::Profile => "default profile",
    };
    format!("{}, {conf}", row.name)
}

/// Prints the table.
pub(crate) fn run(only: &str, percent: u32, runs: u32) {
    println!(
        "\n{:<34} {:>7} {:>9} {:>12} {:>12} {:>9}",
        "beside the plain search", "nodes", "decisions", "a second", "plain", "ratio"
    );
    for row in &ROWS {
        let name = full_name(row);
        if !name.contains(only) {
            continue;
        }
        let (nodes, pods) = (scaled(NODES, percent), scaled(row.pods, percent));
        let best =
            |pods: u32, plain: bool| (0..runs.max(1)).map(|_| rate(row, nodes, pods, plain)).fold(0.0_f64, f64::max);
        let (fast, plain) = (best(pods, false), best(row.plain_pods.min(pods), true));
        println!("{name:<34} {nodes:>7} {pods:>9} {fast:>12.0} {plain:>12.0} {:>9.1}", fast / plain);
    }
}

/// Decisions a second.
fn rate(row: &Row, nodes: u32, pods: u32, plain_search: bool) -> f64 {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let options = Options { events: false, plain_search, ..Options::default() };
    let mut engine = match row.conf {
        Conf::Tiers => {
            let mut engine = Engine::new(registry, options);
            engine.step(Time(0), [Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() }]);
            engine
        }
        Conf::Profile => {
            let profile = ProfilePolicy::default_profile(&registry);
            let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
            Engine::with_policy(registry, Options { profile_only: true, ..options }, policy)
        }
    };
    let mut inputs = vec![Input::Event(Event::Queue(QueueSpec { name: "default".into(), ..QueueSpec::default() }))];
    inputs.extend((0..nodes).map(node));
    engine.step(Time(0), inputs);
    engine.step(Time(5_000), []);
    let mut inputs = work(row, pods);
    let (mut bound, mut now) = (0, 10_000);
    let mut seconds = 0.0;
    while bound < pods as usize {
        let (step, spent) = timed_step(&mut engine, Time(now), std::mem::take(&mut inputs));
        seconds += spent;
        let binds = step.effects.iter().filter(|effect| matches!(effect, Effect::Bind { .. })).count();
        assert!(binds > 0, "{}: {bound} of {pods} pods found a node", row.name);
        bound += binds;
        now += 1;
    }
    f64::from(pods) / seconds
}

fn work(row: &Row, pods: u32) -> Vec<Input> {
    let shapes: Vec<Arc<PodShape>> = (0..row.shapes).map(|k| Arc::new((row.shape)(k))).collect();
    let shape = |k: u32| &shapes[(k % row.shapes) as usize];
    let of = |name: &str, k: u32| pod(name, k, shape(k));
    match (row.conf, row.shapes) {
        (Conf::Profile, _) => {
            (0..pods).map(|k| Input::Event(Event::Pod(PodSpec { group: None, ..of("p", k) }))).collect()
        }
        (Conf::Tiers, 1) => {
            let pods = (0..pods).map(|k| Input::Event(Event::Pod(of("job", k))));
            std::iter::once(group("job", 1)).chain(pods).collect()
        }
        (Conf::Tiers, _) => (0..pods)
            .flat_map(|k| {
                let name = format!("job-{k:05}");
                [group(&name, 1), Input::Event(Event::Pod(of(&name, k)))]
            })
            .collect(),
    }
}

pub(crate) fn node(i: u32) -> Input {
    let name = format!("node-{i:05}");
    let allocatable = Amounts::default().with("cpu", 96_000).with("memory", 1 << 40).with("pods", 110);
    let mut spec = NodeSpec { name: name.as_str().into(), allocatable, ..NodeSpec::default() };
    spec.labels.set(HOSTNAME.into(), name.into());
    spec.labels.set(ZONE.into(), format!("zone-{}", i % 3).into());
    Input::Event(Event::Node(spec))
}

fn plain(k: u32) -> PodShape {
    PodShape {
        namespace: "default".into(),
        request: Amounts::default().with("cpu", 1_000 + i64::from(k)).with("memory", 1 << 30),
        ..PodShape::default()
    }
}

/// A pod of an application.
fn app(k: u32) -> PodShape {
    let mut shape = plain(k);
    shape.labels.set("app".into(), "web".into());
    shape
}

fn its_kind() -> Selector {
    Selector(vec![Requirement { key: "app".into(), test: Test::In(vec!["web".into()]) }])
}

fn in_zone(zone: &str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        labels: vec![Requirement { key: ZONE.into(), test: Test::In(vec![zone.into()]) }],
        name: Vec::new(),
    }
}

fn spread(key: &str, must_hold: bool) -> SpreadConstraint {
    SpreadConstraint {
        max_skew: 5,
        topology_key: key.into(),
        must_hold,
        selector: Some(its_kind()),
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    }
}

fn term(key: &str) -> PodTerm {
    PodTerm {
        topology_key: key.into(),
        selector: Some(its_kind()),
        namespaces: Namespaces { names: vec!["default".into()], selector: None },
    }
}

fn required(key: &str) -> PodTerms {
    PodTerms { required: vec![term(key)], preferred: Vec::new() }
}

fn preferred(key: &str) -> PodTerms {
    PodTerms { required: Vec::new(), preferred: vec![(100, term(key))] }
}
