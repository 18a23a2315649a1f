//! L3: what runs already does not make the next pods dearer: 3,000 pods on 1,000 nodes, beside 80,000 and beside none.

use krafla_engine::{Engine, Input, Options};
use krafla_model::{Amounts, Event, Name, NodeSpec, PodPhase, PodSpec, QueueSpec, Time};

use crate::clock::timed_step;
use crate::{SCORED, binds, group, pod, scaled, shape};

const NODES: u32 = 1_000;
const PODS: u32 = 3_000;
const RUNNING: u32 = 80_000;
/// Rounds of a run. The first warms up what is kept.
const ROUNDS: u32 = 12;

/// How much longer the pods take beside the others. Both clusters take turns, and the best of each counts.
pub(super) fn ratio(percent: u32, runs: u32) -> f64 {
    let mut clusters = [RUNNING, 0].map(|running| (Cluster::new(percent, scaled(running, percent)), f64::INFINITY));
    for round in 0..=ROUNDS * runs.max(1) {
        for (cluster, best) in &mut clusters {
            let seconds = cluster.round(round, scaled(PODS, percent));
            *best = if round == 0 { *best } else { best.min(seconds) };
        }
    }
    clusters[0].1 / clusters[1].1
}

/// Some rounds, beside what runs or beside nothing: what is counted.
pub(crate) fn some_rounds(percent: u32, beside_others: bool) {
    let running = if beside_others { scaled(RUNNING, percent) } else { 0 };
    let mut cluster = Cluster::new(percent, running);
    (0..3).for_each(|round| _ = cluster.round(round, scaled(PODS, percent)));
}

struct Cluster {
    engine: Engine,
    now: i64,
}

impl Cluster {
    fn new(percent: u32, running: u32) -> Self {
        let registry = krafla_plugins::registry(krafla_actions::all());
        let mut engine = Engine::new(registry, Options { events: false, ..Options::default() });
        let nodes = scaled(NODES, percent);
        let mut inputs = vec![
            Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() },
            Input::Event(Event::Queue(QueueSpec { name: "default".into(), ..QueueSpec::default() })),
            group("running", 1),
        ];
        // Room for all, in both clusters.
        let allocatable = Amounts::default().with("cpu", 96_000).with("memory", 1 << 40).with("pods", 200);
        inputs.extend((0..nodes).map(|i| {
            let (name, allocatable) = (format!("node-{i:05}").into(), allocatable.clone());
            Input::Event(Event::Node(NodeSpec { name, allocatable, ..NodeSpec::default() }))
        }));
        let small = shape(100);
        inputs.extend((0..running).map(|k| {
            let node = Some(format!("node-{:05}", k % nodes).into());
            Input::Event(Event::Pod(PodSpec { node, phase: PodPhase::Running, ..pod("running", k, &small) }))
        }));
        engine.step(Time(0), inputs);
        Self { engine, now: 10_000 }
    }

    /// Seconds until so many pods are placed. They are gone when the next round begins.
    fn round(&mut self, round: u32, pods: u32) -> f64 {
        let name = format!("round-{round}");
        let shape = shape(1_000);
        let all: Vec<PodSpec> = (0..pods).map(|k| pod(&name, k, &shape)).collect();
        let mut gone: Vec<Input> = all.iter().map(|pod| Input::Event(Event::PodGone(pod.uid.clone()))).collect();
        let mut inputs = vec![group(&name, 1)];
        inputs.extend(all.into_iter().map(|pod| Input::Event(Event::Pod(pod))));
        let (step, seconds) = timed_step(&mut self.engine, Time(self.now), inputs);
        assert_eq!(binds(&step), pods as usize, "every pod finds a node");
        gone.push(Input::Event(Event::PodGroupGone { namespace: "default".into(), name: Name::from(name) }));
        self.engine.step(Time(self.now + 5_000), gone);
        self.now += 10_000;
        seconds
    }
}
