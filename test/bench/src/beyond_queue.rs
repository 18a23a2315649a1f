//! Gangs that ask for more than their queue may hold, on a cluster with room for them all: each waits, whatever is tried.

use std::sync::Arc;

use krafla_engine::{Engine, Input, Options};
use krafla_framework::Effect;
use krafla_model::{Amounts, Event, NodeSpec, PodShape, QueueSpec, Time};

use crate::clock::timed_step;
use crate::group_in;

/// Its name.
const NAME: &str = "gangs-beyond-their-queue";
const NODES: u32 = 2_000;
const GANGS: u32 = 100;
/// Pods of a gang, and how many of them the queue could hold.
const PODS: u32 = 500;
const HELD: u32 = 400;
const CONFIGURATION: &str = "
actions: allocate, backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: capacity}, {name: predicates}, {name: nodeorder}, {name: binpack}]
";

/// Prints it, if its name contains `only`: beside trying each gang.
pub(crate) fn table(only: &str, percent: u32, runs: u32) {
    if !NAME.contains(only) {
        return;
    }
    println!("\n{:<30} {:>7} {:>9} {:>12} {:>12} {:>9}", "not tried", "nodes", "gangs", "us a gang", "tried", "ratio");
    let (nodes, gangs) = (super::scaled(NODES, percent), super::scaled(GANGS, percent));
    let each = |blind: bool| {
        let best = (0..runs.max(1)).map(|_| run(nodes, gangs, blind)).fold(f64::INFINITY, f64::min);
        best * 1e6 / f64::from(gangs)
    };
    let (untried, tried) = (each(false), each(true));
    println!("{NAME:<30} {nodes:>7} {gangs:>9} {untried:>12.1} {tried:>12.1} {:>9.1}", tried / untried);
}

/// Answers the seconds until all were refused; if `blind`, each is tried.
fn run(nodes: u32, gangs: u32, blind: bool) -> f64 {
    let mut registry = krafla_plugins::registry(krafla_actions::all());
    for action in registry.actions.iter_mut().filter(|action| blind && action.info.name == "allocate") {
        action.build = krafla_actions::allocate::build_blind;
    }
    let mut engine = Engine::new(registry, Options { events: false, ..Options::default() });
    let mut inputs = vec![Input::Configuration { file: "bench.conf".to_owned(), text: CONFIGURATION.to_owned() }];
    let capability = Amounts::default().with("cpu", 1_000 * i64::from(HELD));
    inputs.push(Input::Event(Event::Queue(QueueSpec { name: "small".into(), capability, ..QueueSpec::default() })));
    for i in 0..nodes {
        let allocatable = Amounts::default().with("cpu", 96_000).with("memory", 1 << 40).with("pods", 110);
        let node = NodeSpec { name: format!("node-{i:05}").into(), allocatable, ..NodeSpec::default() };
        inputs.push(Input::Event(Event::Node(node)));
    }
    engine.step(Time(0), inputs);
    engine.step(Time(5_000), []);
    let request = Amounts::default().with("cpu", 1_000).with("memory", 1 << 30);
    let shape = Arc::new(PodShape { namespace: "default".into(), request, ..PodShape::default() });
    let mut work = Vec::new();
    for j in 0..gangs {
        let name = format!("gang-{j:03}");
        work.push(group_in("small", &name, PODS));
        work.extend((0..PODS).map(|k| Input::Event(Event::Pod(super::pod(&name, k, &shape)))));
    }
    engine.follow(Time(9_000), work);
    let other = QueueSpec { name: "other".into(), ..QueueSpec::default() };
    let (step, seconds) = timed_step(&mut engine, Time(10_000), vec![Input::Event(Event::Queue(other))]);
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::Bind { .. })), "{NAME}: nobody is bound");
    seconds
}
