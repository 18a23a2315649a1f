//! L4: pods that their quota holds back do not slow the others down: 5,000 full nodes, 50,000 pods beyond the capability of
//! their queue, and 500 pods of another queue that finish each second, for as many that wait.

use std::collections::VecDeque;
use std::sync::Arc;

use krafla_engine::{Engine, Input, Options, Step};
use krafla_model::{Amounts, Event, NodeSpec, PodPhase, PodShape, PodSpec, QueueSpec, Time};

use super::{news_of, started};
use crate::clock::timed_step;
use crate::{SCORED, group_in, pod, scaled, shape};

const NODES: u32 = 5_000;
const PODS_A_NODE: u32 = 4;
const BLOCKED: u32 = 50_000;
const A_SECOND: u32 = 500;
const PODS_A_JOB: u32 = 10;
/// Seconds of one turn.
const TURN: u32 = 20;
const TURNS: u32 = 3;

/// What the blocked pods cost the others.
pub(super) struct Beside {
    /// Pods that start in a second, beside the blocked ones, as a part of what it is without them: the engine's time comes on
    /// top of each second.
    pub(super) rate: f64,
    /// How many times the engine's own time is.
    pub(super) time: f64,
}

/// Both clusters take turns; the best turn of each counts.
pub(super) fn measure(percent: u32, runs: u32) -> Beside {
    let mut clusters = [BLOCKED, 0].map(|blocked| (Cluster::new(percent, scaled(blocked, percent)), f64::INFINITY));
    for _ in 0..TURNS * runs.max(1) {
        for (cluster, best) in &mut clusters {
            *best = best.min((0..TURN).map(|_| cluster.second()).sum());
        }
    }
    let [with, without] = clusters.map(|(_, best)| best);
    let turn = f64::from(TURN);
    Beside { rate: (turn + without) / (turn + with), time: with / without }
}

/// Some seconds beside so many blocked pods, in hundredths: what is counted.
pub(crate) fn some_seconds(percent: u32) {
    let mut cluster = Cluster::new(percent, scaled(BLOCKED, percent));
    (0..TURN).for_each(|_| _ = cluster.second());
}

struct Cluster {
    engine: Engine,
    shape: Arc<PodShape>,
    a_second: u32,
    /// Pods that run, the oldest first.
    running: VecDeque<PodSpec>,
    arrived: u32,
    now: i64,
    told: Vec<Input>,
}

impl Cluster {
    fn new(percent: u32, blocked: u32) -> Self {
        let registry = krafla_plugins::registry(krafla_actions::all());
        let engine = Engine::new(registry, Options { events: false, ..Options::default() });
        let mut inputs = vec![Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() }];
        let one_job = Amounts::default().with("cpu", 1_000 * i64::from(PODS_A_JOB));
        for (name, capability) in [("open", Amounts::default()), ("blocked", one_job)] {
            let name = name.into();
            inputs.push(Input::Event(Event::Queue(QueueSpec { name, capability, ..QueueSpec::default() })));
        }
        let nodes = scaled(NODES, percent);
        for i in 0..nodes {
            let allocatable = Amounts::default()
                .with("cpu", 1_000 * i64::from(PODS_A_NODE))
                .with("memory", 1 << 36)
                .with("pods", 110);
            let name = format!("node-{i:05}").into();
            inputs.push(Input::Event(Event::Node(NodeSpec { name, allocatable, ..NodeSpec::default() })));
        }
        let shape = shape(1_000);
        for j in 0..blocked / PODS_A_JOB {
            let name = format!("blocked-{j}");
            inputs.push(group_in("blocked", &name, PODS_A_JOB));
            inputs.extend((0..PODS_A_JOB).map(|k| Input::Event(Event::Pod(pod(&name, k, &shape)))));
        }
        let mut cluster = Self {
            engine,
            shape,
            a_second: scaled(A_SECOND, percent),
            running: VecDeque::new(),
            arrived: 0,
            now: 0,
            told: inputs,
        };
        // One blocked job runs, and keeps its queue at its capability.
        let room = nodes * PODS_A_NODE - PODS_A_JOB;
        cluster.arrive(room);
        let inputs = std::mem::take(&mut cluster.told);
        let step = cluster.engine.step(Time(0), inputs);
        cluster.carry_out(&step);
        assert_eq!(cluster.running.len(), room as usize, "the cluster is full");
        cluster
    }

    fn arrive(&mut self, pods: u32) {
        for _ in 0..pods {
            let k = self.arrived;
            if k.is_multiple_of(PODS_A_JOB) {
                self.told.push(group_in("open", &job(k), 1));
            }
            self.told.push(Input::Event(Event::Pod(pod(&job(k), k, &self.shape))));
            self.arrived += 1;
        }
    }

    fn carry_out(&mut self, step: &Step) {
        let shape = &self.shape;
        let started = started(step, |uid| {
            let (job, k) = uid.rsplit_once('-').expect("a job and a number");
            pod(job, k.parse().expect("a number"), shape)
        });
        for pod in started {
            self.told.extend(news_of(pod.clone()));
            if pod.name.starts_with("open-") {
                self.running.push_back(pod);
            }
        }
    }

    /// A second: some pods finish, as many come, and are placed.
    fn second(&mut self) -> f64 {
        for mut pod in self.running.drain(..self.a_second as usize) {
            pod.phase = PodPhase::Succeeded;
            let uid = pod.uid.clone();
            self.told.extend([Input::Event(Event::Pod(pod)), Input::Event(Event::PodGone(uid))]);
        }
        self.arrive(self.a_second);
        let before = self.running.len();
        self.now += 1_000;
        let (step, seconds) = timed_step(&mut self.engine, Time(self.now), std::mem::take(&mut self.told));
        self.carry_out(&step);
        assert_eq!(self.running.len() - before, self.a_second as usize, "as many start as have finished");
        seconds
    }
}

fn job(pod: u32) -> String {
    format!("open-{}", pod / PODS_A_JOB)
}
