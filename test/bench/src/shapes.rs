//! The workloads of scheduler_perf in memory: kube-scheduler's default profile, pods one by one, no API server. What
//! Krafla decides comes back to it as the server would tell it: binds that worked, pods that have a node, pods that are
//! gone. All of that is timed, as processor time.

use std::collections::BTreeMap;

use krafla_api::{Converter, Object, ReadOptions, read_manifests};
use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::Effect;
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_model::{Event, Name, PodSpec, Time};
use krafla_test_bench::workloads::{MEASURED, WORKLOADS, Workload};
use serde_json::Value;

use crate::clock::timed_step;

/// By this name all of them are asked for.
pub(crate) const NAME: &str = "shapes";
/// Virtual time between two cycles, in milliseconds.
const BETWEEN: i64 = 1_000;

/// Prints the table of those whose name contains `only`.
pub(crate) fn run(only: &str, percent: u32, runs: u32) {
    println!(
        "\n{:<48} {:>6} {:>6} {:>8} {:>8} {:>11} {:>10} {:>7}",
        "scheduler_perf in memory", "nodes", "init", "pods", "cycle us", "a second", "threshold", "ratio"
    );
    for workload in WORKLOADS {
        if workload.has_gangs() || !(NAME == only || workload.name.contains(only)) {
            continue;
        }
        let workload = workload.scaled(percent as usize);
        let best = (0..runs.max(1)).map(|_| seconds(&workload)).fold(f64::INFINITY, f64::min);
        #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = workload.measured as f64 / best;
        let asked = f64::from(workload.threshold);
        let beside = if workload.threshold == 0 {
            format!("{:>10} {:>7}", "-", "-")
        } else {
            format!("{asked:>10.0} {:>7.0}", rate / asked)
        };
        println!(
            "{:<48} {:>6} {:>6} {:>8} {:>8.1} {rate:>11.0} {beside}",
            workload.name,
            workload.nodes,
            workload.init,
            workload.measured,
            1e6 / rate
        );
    }
}

/// An engine, what it has decided, and how that is told to it.
struct Cluster {
    engine: Engine,
    converter: Converter,
    pods: BTreeMap<Name, PodSpec>,
    now: i64,
    told: Vec<Input>,
    /// Measured pods that have a node.
    bound: usize,
    /// What was spent since the measured pods came; none before.
    seconds: Option<f64>,
}

/// What it takes to place the pods that count.
pub(crate) fn seconds(workload: &Workload) -> f64 {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let profile = ProfilePolicy::default_profile(&registry);
    let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
    let options = Options { profile_only: true, events: false, ..Options::default() };
    let engine = Engine::with_policy(registry, options, policy);
    let mut cluster = Cluster {
        engine,
        converter: Converter::new(),
        pods: BTreeMap::new(),
        now: 0,
        told: Vec::new(),
        bound: 0,
        seconds: None,
    };
    for i in 0..workload.nodes {
        cluster.add(&workload.node(i));
    }
    for object in workload.objects() {
        cluster.add(&object);
    }
    for i in 0..workload.init {
        cluster.add_pod(workload, &workload.init_pod(i));
    }
    cluster.until_quiet();
    for (name, size) in workload.groups() {
        cluster.add(&Workload::native_group(&name, size));
    }
    for i in 0..workload.measured {
        cluster.add_pod(workload, &workload.measured_pod(i));
    }
    cluster.seconds = Some(0.0);
    cluster.until_quiet();
    let (bound, measured) = (cluster.bound, workload.measured);
    assert!(bound == measured, "{}: {bound} of {measured} pods found a node", workload.name);
    cluster.seconds.unwrap_or_default()
}

impl Cluster {
    fn add_pod(&mut self, workload: &Workload, pod: &Value) {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        for object in workload.objects_of(&name) {
            self.add(&object);
        }
        self.add(pod);
    }

    fn add(&mut self, value: &Value) {
        let object = match value["kind"].as_str() {
            Some("Pod") => {
                let mut value = value.clone();
                let meta = &mut value["metadata"];
                let (namespace, name) = (&meta["namespace"], &meta["name"]);
                meta["uid"] = format!("{}/{}", namespace.as_str().unwrap_or(""), name.as_str().unwrap_or("")).into();
                Object::Pod(Box::new(krafla_api::json::pod(value).expect("a pod")))
            }
            Some("Node") => Object::Node(Box::new(krafla_api::json::node(value.clone()).expect("a node"))),
            _ => {
                let read = read_manifests(&value.to_string(), "workload", &ReadOptions::default());
                assert!(read.problems.is_empty(), "{:?}", read.problems);
                read.objects.into_iter().next().expect("an object").value
            }
        };
        let (event, problems) = self.converter.event(&object);
        assert!(problems.is_empty(), "{problems:?}");
        let Some(event) = event else { return };
        if let Event::Pod(pod) = &event {
            self.pods.insert(pod.uid.clone(), pod.clone());
        }
        self.told.push(Input::Event(event));
    }

    /// Runs cycles until nothing comes of one, nor of those that follow while pods wait for their next try.
    fn until_quiet(&mut self) {
        let mut idle = 0;
        while idle < 20 {
            let inputs = std::mem::take(&mut self.told);
            let now = Time(self.now);
            let step = match &mut self.seconds {
                Some(sum) => {
                    let (step, seconds) = timed_step(&mut self.engine, now, inputs);
                    *sum += seconds;
                    step
                }
                None => self.engine.step(now, inputs),
            };
            self.now += BETWEEN;
            for effect in &step.effects {
                self.carry_out(effect);
            }
            let more = step.cycle.is_some_and(|cycle| cycle.unfinished) || !self.told.is_empty();
            idle = if more { 0 } else { idle + 1 };
        }
    }

    fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::Bind { pod, node, .. } => {
                self.bound += usize::from(pod.name.starts_with(MEASURED));
                self.told.push(Input::Outcome(Outcome::Bound { pod: pod.uid.clone() }));
                if let Some(spec) = self.pods.get_mut(&pod.uid) {
                    spec.node = Some(node.clone());
                    self.told.push(Input::Event(Event::Pod(spec.clone())));
                }
            }
            Effect::Evict { pod, .. } => {
                self.told.push(Input::Outcome(Outcome::Evicted { pod: pod.uid.clone() }));
                self.pods.remove(&pod.uid);
                self.told.push(Input::Event(Event::PodGone(pod.uid.clone())));
            }
            _ => {}
        }
    }
}
