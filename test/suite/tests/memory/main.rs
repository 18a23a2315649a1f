//! What a pod costs in the model (L6): under 4 KiB, with an environment of 64 KiB on it that stays outside. In a binary
//! of its own, because the bytes of the whole process are counted.

use krafla_api::Converter;
use krafla_model::{ClusterState, Event};
use peak_alloc::PeakAlloc;

#[global_allocator]
static HELD: PeakAlloc = PeakAlloc;

const PODS: usize = 5_000;

/// A pod as an API server would send it, with names, labels and a UID of its own.
fn pod(i: usize) -> serde_json::Value {
    serde_json::json!({
        "metadata": {
            "name": format!("trainer-{}-worker-{i}", i / 100),
            "namespace": "ml",
            "uid": format!("8f14e45f-ceea-467f-ab84-{i:012}"),
            "labels": { "job-name": format!("trainer-{}", i / 100), "app": "trainer", "team": "vision" },
            "annotations": { "scheduling.k8s.io/group-name": format!("trainer-{}", i / 100) },
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeSelector": { "pool": "gpu" },
            "tolerations": [{ "key": "nvidia.com/gpu", "operator": "Exists" }],
            "containers": [{
                "name": "main",
                "image": "registry.example.com/ml/trainer:1",
                "env": [{ "name": "CONFIG", "value": "x".repeat(64 << 10) }],
                "resources": { "requests": { "cpu": "4", "memory": "16Gi" }, "limits": { "nvidia.com/gpu": 1 } },
            }],
        },
    })
}

#[test]
fn a_pod_with_a_large_environment_costs_under_4_kib() {
    let mut converter = Converter::new();
    let mut cluster = ClusterState::new();
    let before = HELD.current_usage();
    for i in 0..PODS {
        let object = serde_json::from_value(pod(i)).expect("a pod");
        let (spec, problems) = converter.pod(&object);
        assert!(problems.is_empty(), "{problems:?}");
        cluster.apply(Event::Pod(spec.expect("a pod that can be read")));
    }
    let held = HELD.current_usage() - before;
    let each = held / PODS;
    eprintln!("{each} bytes a pod, {} shapes", cluster.n_shapes());
    assert!(each < 4 << 10, "{each} bytes a pod");
    assert!(each > 100, "{each} bytes a pod: the allocator does not count");
}
