//! L6: what scheduling does not ask for is not kept: 20,000 pods with 64 KiB of environment each, read from their text one
//! after the other. Resident memory of the process, so that it counts also what the allocator cannot give back.

use krafla_api::Converter;
use krafla_engine::{Engine, Input, Options};
use krafla_model::{Event, QueueSpec, Time};
use krafla_test_bench::memory::resident_bytes;
use serde_json::json;

use crate::{SCORED, against_plain, binds, group, scaled};

/// Its name.
pub(super) const NAME: &str = "environment";

const NODES: u32 = 1_000;
const PODS: u32 = 20_000;
const PODS_A_JOB: u32 = 100;
/// Pods that are read before anything is counted, so that what is kept once is there.
const WARM_UP: u32 = 100;

#[allow(clippy::cast_precision_loss, reason = "bytes for people")]
pub(super) fn bytes_a_pod(percent: u32) -> f64 {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let mut engine = Engine::new(registry, Options::default());
    let mut inputs = vec![
        Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() },
        Input::Event(Event::Queue(QueueSpec { name: "default".into(), ..QueueSpec::default() })),
    ];
    inputs.extend((0..scaled(NODES, percent)).map(against_plain::node));
    engine.step(Time(0), inputs);
    let mut converter = Converter::new();
    let pods = scaled(PODS, percent);
    let environment = "x".repeat(64 << 10);
    let mut before = 0;
    for k in 0..WARM_UP + pods {
        if k == WARM_UP {
            before = resident_bytes();
        }
        let job = format!("trainer-{}", k / PODS_A_JOB);
        if k % PODS_A_JOB == 0 {
            engine.follow(Time(0), [group(&job, 1)]);
        }
        let read = krafla_api::json::pod(serde_json::from_str(&text(&job, k, &environment)).expect("JSON"));
        let (pod, problems) = converter.pod(&read.expect("a pod"));
        assert!(problems.is_empty(), "{problems:?}");
        engine.follow(Time(0), pod.map(|pod| Input::Event(Event::Pod(pod))));
    }
    // What the engine keeps of those that it has placed counts too.
    let step = engine.step(Time(5_000), []);
    assert_eq!(binds(&step), (WARM_UP + pods) as usize, "every pod finds a node");
    drop(step);
    resident_bytes().saturating_sub(before) as f64 / f64::from(pods)
}

/// A pod as the API server sends it.
fn text(job: &str, k: u32, environment: &str) -> String {
    json!({
        "metadata": {
            "name": format!("{job}-worker-{k}"),
            "namespace": "default",
            "uid": format!("8f14e45f-ceea-467f-ab84-{k:012}"),
            "labels": { "job-name": job, "app": "trainer", "team": "vision" },
            "annotations": { "scheduling.k8s.io/group-name": job },
        },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{
                "name": "main",
                "image": "registry.example.com/ml/trainer:1",
                "env": [{ "name": "CONFIG", "value": environment }],
                "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
            }],
        },
    })
    .to_string()
}
