//! Room for many jobs at once, in a cluster full of small ones: within a queue (`preempt`), and between two (`reclaim`).

use krafla_engine::{Engine, Input, Options};
use krafla_framework::Effect;
use krafla_model::priority::PriorityClassSpec;
use krafla_model::{Event, PodGroupSpec, PodPhase, PodSpec, Time};

use crate::clock::timed_step;
use crate::pod_group;
use crate::reclaim::{GPUS, queues_and_nodes, shape};

/// GPUs of each pod for which room is made.
const WANTED: u32 = 4;

/// Who takes from whom.
#[derive(Clone, Copy)]
struct Case {
    /// Its name.
    name: &'static str,
    nodes: u32,
    /// Jobs of one pod that need room.
    jobs: u32,
    /// The queue of those.
    queue: &'static str,
    configuration: &'static str,
}

/// All of them.
const CASES: [Case; 2] = [
    Case {
        name: "preempt-for-200-jobs",
        nodes: 1_000,
        jobs: 200,
        queue: "small",
        configuration: "
actions: allocate, preempt, backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: drf}, {name: predicates}]
",
    },
    Case {
        name: "reclaim-for-200-jobs",
        nodes: 1_000,
        jobs: 200,
        queue: "large",
        configuration: "
actions: allocate, reclaim, backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: proportion}, {name: predicates}]
",
    },
];

/// Nodes of the cluster, in hundredths.
fn nodes(case: &Case, percent: u32) -> u32 {
    (case.nodes * percent / 100).max(10)
}

/// Prints those whose name contains `only`: what is kept from one job to the next beside asking every node for each.
pub(crate) fn table(only: &str, percent: u32, runs: u32) {
    println!(
        "\n{:<30} {:>7} {:>9} {:>12} {:>12} {:>9}",
        "making room", "nodes", "jobs", "us a job", "every node", "ratio"
    );
    for case in CASES.iter().filter(|case| case.name.contains(only)) {
        let jobs = (case.jobs * percent / 100).max(2);
        let each = |blind: bool| {
            let best = (0..runs.max(1)).map(|_| run(case, percent, blind)).fold(f64::INFINITY, f64::min);
            best * 1e6 / f64::from(jobs)
        };
        let (kept, anew) = (each(false), each(true));
        println!(
            "{:<30} {:>7} {jobs:>9} {kept:>12.1} {anew:>12.1} {:>9.1}",
            case.name,
            nodes(case, percent),
            anew / kept
        );
    }
}

/// Answers the seconds until room was made for all jobs; if `blind`, every node is asked for each.
fn run(case: &Case, percent: u32, blind: bool) -> f64 {
    let mut registry = krafla_plugins::registry(krafla_actions::all());
    for action in registry.actions.iter_mut().filter(|_| blind) {
        match action.info.name {
            "allocate" => action.build = krafla_actions::allocate::build_blind,
            "preempt" => action.build = krafla_actions::preempt::build_blind,
            "reclaim" => action.build = krafla_actions::reclaim::build_blind,
            _ => {}
        }
    }
    let mut engine = Engine::new(registry, Options { events: false, ..Options::default() });
    let (nodes, jobs) = (nodes(case, percent), (case.jobs * percent / 100).max(2));
    let mut inputs = vec![Input::Configuration { file: "bench.conf".to_owned(), text: case.configuration.to_owned() }];
    for (name, value) in [("low", 10), ("high", 100)] {
        let class = PriorityClassSpec { name: name.into(), value, global_default: false, preempts: true };
        inputs.push(Input::Event(Event::PriorityClass(class)));
    }
    inputs.extend(queues_and_nodes(nodes));
    let one = shape(1_000);
    for j in 0..nodes {
        let name = format!("small-{j:05}");
        inputs.push(group(&name, "small", "low"));
        for k in 0..GPUS {
            let placed = PodSpec {
                node: Some(format!("node-{:05}", (j + k * 131) % nodes).into()),
                phase: PodPhase::Running,
                started: Some(Time(i64::from((j * 7_919 + k * 104_729) % 100_000))),
                ..super::pod(&name, k, &one)
            };
            inputs.push(Input::Event(Event::Pod(placed)));
        }
    }
    engine.step(Time(100_000), inputs);
    engine.step(Time(105_000), []);
    let wanted = shape(1_000 * i64::from(WANTED));
    let mut work = Vec::new();
    for j in 0..jobs {
        let name = format!("large-{j:05}");
        work.push(group(&name, case.queue, "high"));
        work.push(Input::Event(Event::Pod(PodSpec { priority: 100, ..super::pod(&name, 0, &wanted) })));
    }
    let (step, seconds) = timed_step(&mut engine, Time(110_000), work);
    let evictions = step.effects.iter().filter(|effect| matches!(effect, Effect::Evict { .. })).count();
    let served = u32::try_from(evictions).unwrap_or(u32::MAX) / WANTED;
    assert!(served == jobs, "{}: room for {served} of {jobs} jobs", case.name);
    seconds
}

fn group(name: &str, queue: &str, class: &str) -> Input {
    Input::Event(Event::PodGroup(PodGroupSpec {
        queue: queue.into(),
        priority_class: class.into(),
        ..pod_group(name, 1)
    }))
}
