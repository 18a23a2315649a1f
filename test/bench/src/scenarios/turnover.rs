//! L5: what is gone leaves nothing behind: 200,000 short jobs on 500 nodes over a day of virtual time. Resident memory of
//! the process after the last, beside that after the first tenth: it counts also what the allocator cannot give back.

use std::collections::{BTreeMap, VecDeque};

use krafla_api::Converter;
use krafla_engine::{Engine, Input, Options};
use krafla_model::{Amounts, Event, JobPhase, Name, NodeSpec, PodGroupSpec, PodSpec, QueueSpec, Time};
use krafla_test_bench::memory::resident_bytes;
use serde_json::json;

use super::{news_of, started};
use crate::{SCORED, scaled};

/// Its name.
pub(super) const NAME: &str = "turnover";

const NODES: u32 = 500;
const JOBS: u32 = 200_000;
const DAY_MS: i64 = 86_400_000;
/// Time between two cycles.
const BETWEEN_MS: i64 = 5_000;
/// How long a job runs: five to fifteen minutes.
const RUNS_MS: (i64, i64) = (300_000, 600_000);

#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(super) fn ratio(percent: u32) -> f64 {
    let jobs = scaled(JOBS, percent);
    let mut cluster = Cluster::new(percent);
    let mut after_a_tenth = 0;
    while cluster.ended < jobs {
        cluster.step(jobs);
        if after_a_tenth == 0 && cluster.ended >= jobs / 10 {
            after_a_tenth = resident_bytes();
        }
    }
    resident_bytes() as f64 / after_a_tenth as f64
}

struct Cluster {
    engine: Engine,
    converter: Converter,
    /// Pods that are there, by UID.
    pods: BTreeMap<Name, PodSpec>,
    /// Pods that run, by their end.
    ends: BTreeMap<(i64, Name), PodSpec>,
    /// Pods that have ended in the cycle before.
    ended_pods: VecDeque<PodSpec>,
    now: i64,
    arrived: u32,
    ended: u32,
}

impl Cluster {
    fn new(percent: u32) -> Self {
        let registry = krafla_plugins::registry(krafla_actions::all());
        let mut engine = Engine::new(registry, Options::default());
        let mut inputs = vec![
            Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() },
            Input::Event(Event::Queue(QueueSpec { name: "default".into(), ..QueueSpec::default() })),
        ];
        for i in 0..scaled(NODES, percent) {
            let allocatable = Amounts::default().with("cpu", 8_000).with("memory", 1 << 36).with("pods", 110);
            let name = format!("node-{i:05}").into();
            inputs.push(Input::Event(Event::Node(NodeSpec { name, allocatable, ..NodeSpec::default() })));
        }
        engine.step(Time(0), inputs);
        Self {
            engine,
            converter: Converter::new(),
            pods: BTreeMap::new(),
            ends: BTreeMap::new(),
            ended_pods: VecDeque::new(),
            now: 0,
            arrived: 0,
            ended: 0,
        }
    }

    /// What a day brings until now: jobs come at an even pace, run, end, and are deleted with their groups.
    fn step(&mut self, jobs: u32) {
        self.now += BETWEEN_MS;
        let mut inputs = Vec::new();
        for pod in self.ended_pods.drain(..) {
            let name = pod.group.unwrap_or_default();
            inputs.push(Input::Event(Event::PodGone(pod.uid)));
            inputs.push(Input::Event(Event::PodGroupGone { namespace: "default".into(), name }));
            self.ended += 1;
        }
        while let Some(entry) = self.ends.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let mut pod = entry.remove();
            pod.phase = krafla_model::PodPhase::Succeeded;
            inputs.push(Input::Event(Event::Pod(pod.clone())));
            self.ended_pods.push_back(pod);
        }
        let due = i64::from(jobs) * self.now / DAY_MS;
        while i64::from(self.arrived) < due.min(i64::from(jobs)) {
            self.arrive(&mut inputs);
        }
        let step = self.engine.step(Time(self.now), inputs);
        let pods = &mut self.pods;
        let started = started(&step, |uid| pods.get(uid).cloned().expect("what is bound was there"));
        let mut news = Vec::new();
        for pod in started {
            self.pods.remove(&pod.uid);
            let k: i64 = pod.name.rsplit_once('-').and_then(|(_, k)| k.parse().ok()).unwrap_or(0);
            self.ends.insert((self.now + RUNS_MS.0 + k * 7_919 % RUNS_MS.1, pod.uid.clone()), pod.clone());
            news.extend(news_of(pod));
        }
        self.engine.step(Time(self.now + 100), news);
    }

    /// A job of one pod, which carries the job's name as a label, as the Job controller writes it.
    fn arrive(&mut self, inputs: &mut Vec<Input>) {
        let k = self.arrived;
        self.arrived += 1;
        let job = format!("job-{k}");
        let pod = json!({
            "metadata": {
                "name": format!("pod-{k}"), "namespace": "default", "uid": format!("8f14e45f-ceea-467f-ab84-{k:012}"),
                "labels": { "job-name": job, "app": "batch" },
                "annotations": { "scheduling.k8s.io/group-name": job },
            },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{
                    "name": "main", "image": "registry.example.com/batch:1",
                    "resources": { "requests": { "cpu": format!("{}m", 500 + k % 7 * 100), "memory": "1Gi" } },
                }],
            },
        });
        let (pod, problems) = self.converter.pod(&krafla_api::json::pod(pod).expect("a pod"));
        assert!(problems.is_empty(), "{problems:?}");
        let pod = pod.expect("a pod that can be read");
        self.pods.insert(pod.uid.clone(), pod.clone());
        inputs.push(Input::Event(Event::PodGroup(PodGroupSpec {
            uid: job.as_str().into(),
            name: job.into(),
            min_member: 1,
            phase: JobPhase::Pending,
            ..PodGroupSpec::default()
        })));
        inputs.push(Input::Event(Event::Pod(pod)));
    }
}
