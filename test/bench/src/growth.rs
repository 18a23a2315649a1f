//! What a cycle costs against the size of the cluster, and against what has changed since the last one.

use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::Effect;
use krafla_model::{Event, PodPhase, PodSpec, QueueSpec, Time};

use crate::clock::{least, timed_step};
use crate::{SCORED, against_plain, group, pod, scaled, shape};

/// Cycles that are timed.
const CYCLES: u32 = 400;

/// Prints the table: the cost of a cycle, and its ratio to that of the first row.
pub(crate) fn run(percent: u32, runs: u32) {
    println!("\n{:<34} {:>7} {:>9} {:>12} {:>9}", "a cycle", "nodes", "new pods", "us", "ratio");
    let mut first = None;
    for (nodes, new) in [(5_000, 1), (10_000, 1), (20_000, 1), (5_000, 2), (5_000, 4)] {
        let nodes = scaled(nodes, percent);
        let best = least(runs, || cycle(nodes, new)) * 1e6;
        let ratio = best / *first.get_or_insert(best);
        println!("{:<34} {nodes:>7} {new:>9} {best:>12.1} {ratio:>9.2}", "helm, pods of one shape");
    }
}

/// How much more a cycle costs with so many times the nodes and so many times the new pods.
pub(crate) fn ratio(percent: u32, runs: u32, nodes: u32, new: u32) -> f64 {
    let best = |nodes: u32, new: u32| least(runs, || cycle(scaled(nodes, percent), new));
    best(5_000 * nodes, new) / best(5_000, 1)
}

/// Seconds of a cycle in which so many pods come, and those of the cycle before begin to run.
pub(crate) fn cycle(nodes: u32, new: u32) -> f64 {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let mut engine = Engine::new(registry, Options { events: false, ..Options::default() });
    let mut inputs = vec![
        Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() },
        Input::Event(Event::Queue(QueueSpec { name: "default".into(), ..QueueSpec::default() })),
    ];
    inputs.extend((0..nodes).map(against_plain::node));
    engine.step(Time(0), inputs);
    let shape = shape(100);
    let mut inputs = Vec::new();
    let mut spent = 0.0;
    for i in 0..CYCLES + 20 {
        for k in 0..new {
            let name = format!("job-{i}-{k}");
            inputs.extend([group(&name, 1), Input::Event(Event::Pod(pod(&name, k, &shape)))]);
        }
        let (step, seconds) = timed_step(&mut engine, Time(i64::from(i) * 1_000), std::mem::take(&mut inputs));
        if i >= 20 {
            spent += seconds;
        }
        for effect in &step.effects {
            let Effect::Bind { pod: bound, node, .. } = effect else { continue };
            inputs.push(Input::Outcome(Outcome::Bound { pod: bound.uid.clone() }));
            let job = bound.name.rsplit_once('-').map_or("", |(job, _)| job);
            let spec = pod(job, 0, &shape);
            let (uid, name) = (bound.uid.clone(), bound.name.clone());
            let node = Some(node.clone());
            inputs.push(Input::Event(Event::Pod(PodSpec { uid, name, node, phase: PodPhase::Running, ..spec })));
        }
    }
    spent / f64::from(CYCLES)
}
