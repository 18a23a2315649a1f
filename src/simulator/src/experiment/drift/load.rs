//! The cluster of the day, and what its pods use.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_model::budget::{Aim, Share};
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_details::Owner;
use krafla_model::{
    Amounts, BudgetSpec, Event, Name, NodeSpec, NodeUsageSpec, PodDetails, PodGroupSpec, PodPhase, PodShape,
    PodUsageSpec, QueueSpec, Time,
};

use super::{HOUR, MINUTE, Options};
use crate::trace::random::draw;
use crate::world::{Controller, Happening, Life, Submission, Submitted, World};

const NODE_CPU: i64 = 32_000;
const POD_CPU: i64 = 2_000;
/// Of a template.
const REPLICAS: u64 = 4;
/// On average.
const PODS_A_NODE: u64 = 10;
/// Of a hundred nodes one goes every other hour while things change, and another one comes.
const NODES_FOR_ONE_THAT_GOES: u32 = 100;
/// One template in so many changes its load each hour.
const ONE_CHANGES_OF: u64 = 20;

/// A number below `n` that looks random.
fn dice(seed: u64, item: u64, column: &str, n: u64) -> u64 {
    draw(seed, &item.to_string(), column) % n.max(1)
}

/// How many templates there are.
fn n_templates(options: &Options) -> u64 {
    u64::from(options.nodes) * PODS_A_NODE / REPLICAS
}

/// What a pod of each template uses at a time, in milli-CPU: 20 to 119 percent of what it asks for.
pub(super) fn loads(options: &Options, at: Time) -> Vec<i64> {
    let quiet_from = i64::try_from(options.quiet_from()).unwrap_or(i64::MAX / HOUR) * HOUR;
    let hours = at.0.min(quiet_from) / HOUR;
    let of = |template: u64| {
        let changes = |hour: &i64| dice(options.seed, template, &format!("changes-{hour}"), ONE_CHANGES_OF) == 0;
        let since = (1..=hours).rev().find(changes).unwrap_or(0);
        let percent = 20 + dice(options.seed, template, &format!("load-{since}"), 100);
        POD_CPU * i64::try_from(percent).unwrap_or(0) / 100
    };
    (0..n_templates(options)).map(of).collect()
}

/// What every node and pod uses now, and how full the fullest node is, in permille.
pub(super) fn measure(world: &World, loads: &[i64]) -> (Vec<Event>, i64) {
    let now = world.now();
    let mut by_node: BTreeMap<Name, i64> = world.nodes().map(|node| (node.name.clone(), 0)).collect();
    let mut pods = Vec::new();
    for pod in (0..world.n_pods()).map(|i| world.pod(i)) {
        if pod.gone || pod.spec.phase != PodPhase::Running {
            continue;
        }
        let Some(used) = pod.spec.node.as_ref().and_then(|node| by_node.get_mut(node)) else { continue };
        let template = pod.spec.name[1..].split_once('-').and_then(|(number, _)| number.parse::<usize>().ok());
        let Some(&cpu) = template.and_then(|template| loads.get(template)) else { continue };
        *used += cpu;
        let used = Amounts::default().with("cpu", cpu);
        pods.push(PodUsageSpec { namespace: "default".into(), name: pod.spec.name.clone(), used });
    }
    let hottest = by_node.values().max().copied().unwrap_or(0) * 1_000 / NODE_CPU;
    let of_node = |(node, cpu): (Name, i64)| {
        let used = Amounts::default().with("cpu", cpu);
        Event::NodeUsage(NodeUsageSpec { node, at: now, used, sample_ppm: None })
    };
    (by_node.into_iter().map(of_node).chain([Event::PodUsage(pods)]).collect(), hottest)
}

/// Plans all that happens in the day, whatever the descheduler does.
pub(super) fn plan(world: &mut World, options: &Options) {
    let object = |event: Event| Happening::Object(Box::new(event));
    let queue = QueueSpec { name: "default".into(), weight: 1, ..QueueSpec::default() };
    world.plan(Time(0), object(Event::Queue(queue)));
    for n in 0..options.nodes {
        world.plan(Time(0), object(node(&format!("n{n:04}"))));
    }
    for t in 0..n_templates(options) {
        world.plan(Time(0), object(budget(t)));
        world.plan(Time(0), Happening::Submit(Box::new(template(t))));
    }
    for hour in (2..options.quiet_from()).step_by(2) {
        let at = Time(i64::try_from(hour).unwrap_or(0) * HOUR + MINUTE / 2);
        for k in 0..options.nodes.div_ceil(NODES_FOR_ONE_THAT_GOES) {
            let gone = dice(options.seed, u64::from(k), &format!("goes-{hour}"), u64::from(options.nodes));
            world.plan(at, object(Event::NodeGone(format!("n{gone:04}").into())));
            world.plan(at + MINUTE, object(node(&format!("x{hour:02}-{k:02}"))));
        }
    }
}

fn node(name: &str) -> Event {
    let allocatable = Amounts::default().with("cpu", NODE_CPU).with("memory", 128 << 30).with("pods", 110);
    Event::Node(NodeSpec { name: name.into(), allocatable, ..NodeSpec::default() })
}

/// The name of a template; [`measure`] reads the number in it.
fn named(t: u64) -> String {
    format!("t{t:05}")
}

fn template(t: u64) -> Submission {
    let name = named(t);
    let labels = [("app".into(), Name::from(name.as_str()))].into_iter().collect();
    let request = Amounts::default().with("cpu", POD_CPU).with("memory", 1 << 30);
    let shape =
        Arc::new(PodShape { namespace: "default".into(), labels, request, controlled: true, ..PodShape::default() });
    let owner = Owner { kind: "ReplicaSet".into(), name: name.as_str().into(), uid: name.as_str().into() };
    let details = Arc::new(PodDetails { owners: vec![owner], ..PodDetails::default() });
    let life = Life { controller: Controller::Recreate, ..Life::default() };
    let pod = |k: u64| Submitted {
        details: Some(Arc::clone(&details)),
        ..Submitted::new(format!("{name}-{k}").into(), Arc::clone(&shape), life)
    };
    let group = PodGroupSpec {
        namespace: "default".into(),
        name: name.as_str().into(),
        uid: name.as_str().into(),
        queue: "default".into(),
        min_member: 1,
        ..PodGroupSpec::default()
    };
    Submission {
        group,
        announced: true,
        joins: false,
        goes_with_pods: false,
        pods: (0..REPLICAS).map(pod).collect(),
        kind: String::new(),
    }
}

/// One pod of a template may be away.
fn budget(t: u64) -> Event {
    let app = Requirement { key: "app".into(), test: Test::In(vec![named(t).into()]) };
    Event::Budget(BudgetSpec {
        namespace: "default".into(),
        name: named(t).into(),
        selector: Some(Selector(vec![app])),
        aim: Some(Aim::MaxUnavailable(Share::Count(1))),
        ..BudgetSpec::default()
    })
}
