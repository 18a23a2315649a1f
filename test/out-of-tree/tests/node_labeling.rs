//! The label before the bind, on a real API server: it is there when the pod runs, and gone when the bind fails.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use krafla_out_of_tree::node_labeling::LABEL;
use krafla_sandbox::{Assets, ControlPlane, Options, create_nodes, node};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

const CONF: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    preBind: {enabled: [{name: NodeLabeling}]}
";

/// The scheduler of this crate, ended with the test.
struct Scheduler(Child);

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a112_the_node_is_labelled_before_the_bind() {
    let Some(assets) = Assets::for_test() else { return };
    let control_plane = ControlPlane::start(&assets, Options::new()).await.expect("the control plane starts");
    let client = control_plane.client().expect("a client");
    create_nodes(&client, vec![node("n0", "4", "8Gi")]).await.expect("a node");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profiles.yaml");
    std::fs::write(&file, CONF).expect("written");
    let scheduler = Command::new(env!("CARGO_BIN_EXE_krafla-out-of-tree"))
        .args(["schedule", "--profile-only", "--leader-elect=false", "--kubeconfig"])
        .arg(control_plane.kubeconfig())
        .arg("--config")
        .arg(&file)
        .env("DEBUG_SOCKET_DIR", folder.path().join("socket"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _scheduler = Scheduler(scheduler.expect("it starts"));
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "main", "image": "app:1" }] },
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).expect("a pod")).await.expect("it is made");
    let start = Instant::now();
    loop {
        let bound = pods.get("p").await.expect("it is there").spec.and_then(|spec| spec.node_name);
        let nodes: Api<Node> = Api::all(client.clone());
        let labels = nodes.get("n0").await.expect("it is there").metadata.labels.unwrap_or_default();
        if bound.is_some() {
            assert_eq!(labels.get(LABEL).map(String::as_str), Some("true"), "labelled before it was bound");
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the pod is not bound");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
