//! Decisions a second, on clusters that exist only in memory: `hack/bench`.
//!
//! Each case fills an engine with nodes and pods, and times the cycles that place them: decisions only, no API and no
//! simulated kubelets. Time is that of the thread, as far as the system tells. A case runs several times; the fastest run
//! counts, since nothing makes a run faster than it is.
//! Ratios between cases of one run say more than the numbers of one machine: the budget table of the design compares
//! like with like.

mod against_plain;
mod beyond_queue;
mod budgets;
mod clock;
mod growth;
mod instructions;
mod making_room;
mod one_by_one;
mod reclaim;
mod scenarios;
mod shapes;
mod steady;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use clock::timed_step;
use krafla_engine::{Engine, Input, Options, Outcome, Step};
use krafla_framework::Effect;
use krafla_model::{
    Amounts, Event, JobPhase, Name, NodeSpec, PodGroupSpec, PodPhase, PodShape, PodSpec, QueueSpec, Time,
};
use krafla_test_bench::memory;

/// Time decisions on clusters in memory.
#[derive(Parser)]
struct Arguments {
    /// Only cases whose name contains this. `budgets`, `scenarios`: each budget, and whether it is
    /// kept; `instructions`: the gate.
    #[arg(default_value = "")]
    only: String,
    /// Runs of each case.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Size of every case: 1 is small enough for instruction counts, 100 is full.
    #[arg(long, default_value_t = 100)]
    percent: u32,
    /// Write the budgets as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    instructions: instructions::Options,
}

/// A cluster and what is to be placed on it.
struct Case {
    name: &'static str,
    nodes: u32,
    jobs: u32,
    pods_each: u32,
    /// Pods needed to start.
    minimum: u32,
    /// Distinct pod shapes.
    shapes: u32,
    /// Pods that run already, spread evenly.
    running: u32,
    configuration: &'static str,
}

const SCORED: &str = include_str!("../../../conf/presets/volcano-helm.conf");
const FIRST_FIT: &str = include_str!("../../../conf/presets/fifo.conf");

static CASES: [Case; 8] = [
    Case {
        name: "equal-pods-first-fit",
        nodes: 5_000,
        jobs: 1,
        pods_each: 10_000,
        minimum: 1,
        shapes: 1,
        running: 0,
        configuration: FIRST_FIT,
    },
    Case {
        name: "equal-pods-scored",
        nodes: 1_000,
        jobs: 1,
        pods_each: 2_000,
        minimum: 1,
        shapes: 1,
        running: 0,
        configuration: SCORED,
    },
    Case {
        name: "thousand-shapes-first-fit",
        nodes: 5_000,
        jobs: 10_000,
        pods_each: 1,
        minimum: 1,
        shapes: 1_000,
        running: 0,
        configuration: FIRST_FIT,
    },
    Case {
        name: "thousand-shapes-scored",
        nodes: 1_000,
        jobs: 2_000,
        pods_each: 1,
        minimum: 1,
        shapes: 1_000,
        running: 0,
        configuration: SCORED,
    },
    Case {
        name: "gangs-first-fit",
        nodes: 2_000,
        jobs: 20,
        pods_each: 500,
        minimum: 500,
        shapes: 20,
        running: 0,
        configuration: FIRST_FIT,
    },
    Case {
        name: "gangs-scored",
        nodes: 1_000,
        jobs: 20,
        pods_each: 100,
        minimum: 100,
        shapes: 20,
        running: 0,
        configuration: SCORED,
    },
    Case {
        name: "equal-pods-beside-80000",
        nodes: 1_000,
        jobs: 1,
        pods_each: 2_000,
        minimum: 1,
        shapes: 1,
        running: 80_000,
        configuration: FIRST_FIT,
    },
    Case {
        name: "nothing-to-do-beside-150000",
        nodes: 5_000,
        jobs: 0,
        pods_each: 0,
        minimum: 0,
        shapes: 1,
        running: 150_000,
        configuration: SCORED,
    },
];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let json = arguments.json.as_deref();
    match arguments.only.as_str() {
        "budgets" => return budgets::table(&budgets::measure(arguments.percent, arguments.runs), json),
        scenarios::NAME => return budgets::table(&scenarios::measure(arguments.percent, arguments.runs), json),
        instructions::NAME => return instructions::gate(&arguments.instructions),
        _ => {}
    }
    if instructions::run_case(&arguments.only) {
        return ExitCode::SUCCESS;
    }
    if let Some(name) = arguments.only.strip_prefix(memory::WORD) {
        let said = scenarios::of_memory(name, arguments.percent).unwrap_or_else(|| peak_of(name, arguments.percent));
        println!("{said}");
        return ExitCode::SUCCESS;
    }
    println!(
        "{:<30} {:>7} {:>9} {:>10} {:>12} {:>12}",
        "case", "nodes", "decisions", "seconds", "a second", "us a pod"
    );
    let percent = arguments.percent;
    for case in CASES.iter().filter(|case| case.name.contains(&arguments.only)) {
        time(case.name, scaled(case.nodes, percent), arguments.runs, || run(case, percent));
    }
    if reclaim::NAME.contains(&arguments.only) {
        time(reclaim::NAME, reclaim::nodes(percent), arguments.runs, || reclaim::run(percent));
    }
    making_room::table(&arguments.only, percent, arguments.runs);
    beyond_queue::table(&arguments.only, percent, arguments.runs);
    against_plain::run(&arguments.only, percent, arguments.runs);
    if "growth".contains(&arguments.only) {
        growth::run(percent, arguments.runs);
    }
    if "one-by-one".contains(&arguments.only) {
        one_by_one::run(percent);
    }
    shapes::run(&arguments.only, percent, arguments.runs);
    if steady::NAME.contains(&arguments.only) {
        steady::run(percent);
    }
    ExitCode::SUCCESS
}

/// The case of this name.
fn case_named(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).expect("the case is there")
}

/// The most memory that this process has held after a case.
#[allow(clippy::cast_precision_loss, reason = "bytes for people")]
fn peak_of(name: &str, percent: u32) -> f64 {
    run(case_named(name), percent);
    memory::peak_bytes("self") as f64
}

/// Runs a case several times, and prints the fastest run.
fn time(name: &str, nodes: u32, runs: u32, run: impl Fn() -> (u32, f64)) {
    let mut best = f64::INFINITY;
    let mut decisions = 0;
    for _ in 0..runs.max(1) {
        let (n, seconds) = run();
        decisions = n;
        best = best.min(seconds);
    }
    let rate = f64::from(decisions) / best.max(1e-9);
    let each = best * 1e6 / f64::from(decisions.max(1));
    println!("{name:<30} {nodes:>7} {decisions:>9} {best:>10.4} {rate:>12.0} {each:>12.2}");
}

fn scaled(n: u32, percent: u32) -> u32 {
    if n == 0 { 0 } else { (n * percent / 100).max(1) }
}

/// Builds a case's cluster, then times the step that places its pods. Answers decisions and seconds.
fn run(case: &Case, percent: u32) -> (u32, f64) {
    let mut engine = filled(case, percent);
    let (step, seconds) = timed_step(&mut engine, Time(10_000), pending(case, percent));
    (u32::try_from(binds(&step)).unwrap_or(u32::MAX), seconds)
}

/// How many binds a step brought.
fn binds(step: &Step) -> usize {
    step.effects.iter().filter(|effect| matches!(effect, Effect::Bind { .. })).count()
}

/// A case's cluster, at rest.
fn filled(case: &Case, percent: u32) -> Engine {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let mut engine = Engine::new(registry, Options { events: false, ..Options::default() });
    let nodes = scaled(case.nodes, percent);
    let mut inputs = vec![
        Input::Configuration { file: "bench.conf".to_owned(), text: case.configuration.to_owned() },
        Input::Event(Event::Queue(QueueSpec { name: "default".into(), ..QueueSpec::default() })),
    ];
    let running = scaled(case.running, percent);
    let room = running / nodes.max(1) + 110;
    for i in 0..nodes {
        let allocatable = Amounts::default()
            .with("cpu", 96_000 + i64::from(running / nodes.max(1)) * 100)
            .with("memory", 1 << 40)
            .with("pods", i64::from(room));
        inputs.push(Input::Event(Event::Node(NodeSpec {
            name: format!("node-{i:05}").into(),
            allocatable,
            ..NodeSpec::default()
        })));
    }
    if running > 0 {
        inputs.push(group("running", 1));
        let shape = shape(100);
        for k in 0..running {
            let node = format!("node-{:05}", k % nodes);
            let pod = pod("running", k, &shape);
            inputs.push(Input::Event(Event::Pod(PodSpec { node: Some(node.into()), phase: PodPhase::Running, ..pod })));
        }
    }
    engine.step(Time(0), inputs);
    engine.step(Time(5_000), []);
    engine
}

/// The pods that the timed step places.
fn pending(case: &Case, percent: u32) -> Vec<Input> {
    let (jobs, pods_each) = if case.jobs > 1 {
        (scaled(case.jobs, percent), case.pods_each)
    } else {
        (case.jobs, scaled(case.pods_each, percent))
    };
    let shapes: Vec<Arc<PodShape>> = (0..case.shapes).map(|i| shape(1_000 + i64::from(i % 1_000))).collect();
    if case.jobs == 0 {
        // One event that stirs, and nothing to place.
        return vec![Input::Event(Event::Queue(QueueSpec { name: "other".into(), ..QueueSpec::default() }))];
    }
    let mut inputs = Vec::new();
    for j in 0..jobs {
        let name = format!("job-{j:05}");
        inputs.push(group(&name, case.minimum.min(pods_each)));
        let shape = &shapes[(j % case.shapes) as usize];
        inputs.extend((0..pods_each).map(|k| Input::Event(Event::Pod(pod(&name, k, shape)))));
    }
    inputs
}

fn shape(cpu: i64) -> Arc<PodShape> {
    Arc::new(PodShape {
        namespace: "default".into(),
        request: Amounts::default().with("cpu", cpu).with("memory", 1 << 30),
        ..PodShape::default()
    })
}

fn group(name: &str, min_member: u32) -> Input {
    Input::Event(Event::PodGroup(pod_group(name, min_member)))
}

fn group_in(queue: &str, name: &str, min_member: u32) -> Input {
    Input::Event(Event::PodGroup(PodGroupSpec { queue: queue.into(), ..pod_group(name, min_member) }))
}

/// A group that has been let in.
fn pod_group(name: &str, min_member: u32) -> PodGroupSpec {
    PodGroupSpec {
        uid: name.into(),
        name: name.into(),
        min_member,
        phase: JobPhase::Inqueue,
        ..PodGroupSpec::default()
    }
}

fn pod(group: &str, k: u32, shape: &Arc<PodShape>) -> PodSpec {
    let name = Name::from(format!("{group}-{k:06}"));
    PodSpec {
        uid: name.clone(),
        name,
        group: Some(group.into()),
        shape: Arc::clone(shape),
        priority: 1,
        ..PodSpec::default()
    }
}
