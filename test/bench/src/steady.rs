//! A large cluster that is offered pods without a pause (L8): 30,000 nodes, 2,000 pods a second, until 800,000 run.
//!
//! Every tenth of a second of virtual time the engine is told what has come, what became of its binds, and what runs since;
//! what it takes for that and for its cycle is a pod's time from its arrival to the decision.

use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::Effect;
use krafla_model::{Event, PodPhase, PodSpec, QueueSpec, Time};
use krafla_test_bench::memory::peak_bytes;

use crate::clock::timed_step;
use crate::{SCORED, against_plain, group, pod, scaled, shape};

/// Its name.
pub(crate) const NAME: &str = "steady-2000-a-second";

const NODES: u32 = 30_000;
const PODS: u32 = 800_000;
const PODS_A_STEP: u32 = 200;
const STEP_MS: i64 = 100;
/// Kinds of pods.
const SHAPES: i64 = 40;
/// Pods of one job.
const PODS_A_JOB: u32 = 8;

/// What it took.
pub(crate) struct Steady {
    pub(crate) pods: u32,
    /// Decisions a second of the engine's own time.
    pub(crate) rate: f64,
    /// Milliseconds from the arrival of a pod to its bind, for 99 of 100.
    pub(crate) p99_ms: f64,
    pub(crate) longest_ms: f64,
    /// The most memory that the process has held.
    pub(crate) peak_bytes: u64,
}

/// Prints it.
pub(crate) fn run(percent: u32) {
    let Steady { pods, rate, p99_ms, longest_ms, peak_bytes } = measure(percent);
    println!(
        "\n{NAME}: {} nodes, {pods} pods: {rate:.0} decisions a second, p99 {p99_ms:.1} ms, longest cycle {longest_ms:.1} ms, \
         at most {} MiB",
        scaled(NODES, percent),
        peak_bytes >> 20
    );
}

pub(crate) fn measure(percent: u32) -> Steady {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let mut engine = Engine::new(registry, Options { events: false, ..Options::default() });
    let mut inputs = vec![
        Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() },
        Input::Event(Event::Queue(QueueSpec { name: "default".into(), ..QueueSpec::default() })),
    ];
    inputs.extend((0..scaled(NODES, percent)).map(against_plain::node));
    engine.step(Time(0), inputs);
    let shapes: Vec<_> = (0..SHAPES).map(|i| shape(100 + 10 * i)).collect();
    let shape_of = |k: u32| &shapes[(k / PODS_A_JOB) as usize % shapes.len()];
    let (pods, mut arrived, mut bound) = (scaled(PODS, percent), 0, 0);
    let (mut told, mut times) = (Vec::new(), Vec::new());
    let mut now = 10_000;
    while bound < pods {
        let mut inputs = std::mem::take(&mut told);
        for _ in 0..PODS_A_STEP.min(pods - arrived) {
            let job = format!("job-{}", arrived / PODS_A_JOB);
            if arrived % PODS_A_JOB == 0 {
                inputs.push(group(&job, 1));
            }
            inputs.push(Input::Event(Event::Pod(pod(&job, arrived, shape_of(arrived)))));
            arrived += 1;
        }
        let (step, seconds) = timed_step(&mut engine, Time(now), inputs);
        times.push(seconds * 1e3);
        let before = bound;
        for effect in &step.effects {
            let Effect::Bind { pod: uid, node, .. } = effect else { continue };
            bound += 1;
            told.push(Input::Outcome(Outcome::Bound { pod: uid.uid.clone() }));
            let k = uid.name.rsplit_once('-').and_then(|(_, k)| k.parse().ok()).unwrap_or(0);
            let job = format!("job-{}", k / PODS_A_JOB);
            let running = PodSpec { node: Some(node.clone()), phase: PodPhase::Running, ..pod(&job, k, shape_of(k)) };
            told.push(Input::Event(Event::Pod(running)));
        }
        assert!(bound > before || arrived < pods, "{bound} of {pods} pods found a node");
        now += STEP_MS;
    }
    let spent: f64 = times.iter().sum::<f64>() / 1e3;
    times.sort_by(f64::total_cmp);
    Steady {
        pods,
        rate: f64::from(pods) / spent,
        p99_ms: times[times.len() * 99 / 100],
        longest_ms: times.last().copied().unwrap_or(0.0),
        peak_bytes: peak_bytes("self"),
    }
}
