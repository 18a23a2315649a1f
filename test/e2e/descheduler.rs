//! The descheduler on a real API server: evictions that disruption budgets refuse, replacements that go where room was kept,
//! and a round that is only said.

use std::process::{Command, Output};

use k8s_openapi::api::core::v1::{Node, Pod};
use krafla_sandbox::{Options, create_nodes, node};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::harness::{Stage, pod};

const POLICY: &str = "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: RemovePodsViolatingNodeTaints}]
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
";

/// Three pods of a ReplicaSet, which the real controller makes.
async fn replicas(stage: &Stage, name: &str, cpu: &str) {
    let template = pod(name, None, cpu);
    let labels = json!({ "group": name });
    stage
        .create(&json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "replicas": 3, "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": template["spec"] },
            },
        }))
        .await;
}

async fn taint(stage: &Stage, name: &str) {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    let patch = json!({ "spec": { "taints": [{ "key": "old", "effect": "NoSchedule" }] } });
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.expect("the node takes the taint");
}

fn policy(stage: &Stage) -> String {
    let path = stage.folder.path().join("policy.yaml");
    std::fs::write(&path, POLICY).expect("written");
    path.display().to_string()
}

/// `krafla deschedule`, once.
async fn deschedule(stage: &Stage, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krafla"));
    command.args(["deschedule", "--policy", &policy(stage), "--kubeconfig"]).arg(stage.control_plane.kubeconfig());
    command.args(flags);
    tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.expect("it ends")
}

async fn places(stage: &Stage, group: &str) -> Vec<(String, String)> {
    let list = stage.pods().list(&ListParams::default().labels(&format!("group={group}"))).await.expect("pods");
    let place = |pod: &Pod| Some((pod.name_any(), pod.spec.as_ref()?.node_name.clone()?));
    list.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).filter_map(place).collect()
}

/// pods leave, the controller makes others, and the scheduler binds them where room was kept.
#[tokio::test(flavor = "multi_thread")]
async fn replacements_go_where_room_was_kept() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(1, "8", "16Gi").await;
    let policy = policy(&stage);
    let krafla = stage.krafla_that_deschedules(&policy);
    krafla.until_ready().await;
    replicas(&stage, "web", "2").await;
    stage.until_running("group=web", 3).await;
    let new = [node("new0", "4", "16Gi"), node("new1", "4", "16Gi")];
    create_nodes(&stage.client, Vec::from(new)).await.expect("nodes are made");
    taint(&stage, "n0").await;
    stage
        .eventually("three pods run on the new nodes", async || {
            let places = places(&stage, "web").await;
            let moved = places.iter().filter(|(_, node)| node.starts_with("new")).count();
            if (moved, places.len()) == (3, 3) { Ok(()) } else { Err(format!("they are at {places:?}")) }
        })
        .await;
    // Where they were to go, and where they are.
    let mut planned: Vec<String> = Vec::new();
    for line in krafla.log().lines().filter(|line| line.contains("strategy=\"RemovePodsViolatingNodeTaints\"")) {
        let to = line.split("to=\"").nth(1).and_then(|rest| rest.split('"').next());
        planned.extend(to.filter(|to| to.starts_with("new")).map(str::to_owned));
    }
    planned.sort_unstable();
    let mut are: Vec<String> = places(&stage, "web").await.into_iter().map(|(_, node)| node).collect();
    are.sort_unstable();
    assert_eq!(planned, are, "{}", krafla.log());
    let key = "descheduler_pods_evicted_total{result=\"success\",strategy=\"RemovePodsViolatingNodeTaints\",profile=\"p\",\
               namespace=\"default\",node=\"n0\"}";
    stage
        .eventually("three evictions are counted", async || match krafla.metric(key).await {
            Some(n) if (n - 3.0).abs() < 0.5 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    krafla.books_are_right().await;
}

/// one round, and the end. A budget whose status is not up to date looks as if it allowed one; the API server
/// refuses it all the same: the pod runs on, and nobody asks again.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_ends_it_and_a_dry_run_does_nothing() {
    // Without the controller that would bring the status up to date.
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(2, "8", "16Gi").await;
    for name in ["free", "kept"] {
        let mut one: Value = pod(name, None, "1");
        one["metadata"]["annotations"] = json!({ "descheduler.alpha.kubernetes.io/evict": "true" });
        one["spec"]["nodeName"] = json!("n0");
        stage.create(&one).await;
    }
    stage.until_running("group in (free,kept)", 2).await;
    stage
        .create(&json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "kept", "namespace": "default" },
            "spec": { "minAvailable": 0, "selector": { "matchLabels": { "group": "kept" } } },
        }))
        .await;
    let budgets = stage.api("policy/v1", "PodDisruptionBudget", None);
    let status =
        json!({ "status": { "disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1 } });
    budgets.patch_status("kept", &PatchParams::default(), &Patch::Merge(&status)).await.expect("the status is written");
    taint(&stage, "n0").await;

    let said = deschedule(&stage, &["--dry-run"]).await;
    let out = String::from_utf8_lossy(&said.stdout).to_string();
    assert!(said.status.success(), "{said:?}");
    assert_eq!(out.matches("would evict default/").count(), 2, "{out}");
    assert_eq!(stage.bound("group in (free,kept)").await, Ok(2));

    let done = deschedule(&stage, &[]).await;
    assert!(done.status.success(), "{done:?}");
    assert_eq!(String::from_utf8_lossy(&done.stdout).matches("evicts default/").count(), 2);
    stage
        .eventually("the one is gone", async || {
            let names: Vec<String> = places(&stage, "free").await.into_iter().map(|(name, _)| name).collect();
            if names.is_empty() { Ok(()) } else { Err(format!("there is {names:?}")) }
        })
        .await;
    assert_eq!(places(&stage, "kept").await, [("kept".to_owned(), "n0".to_owned())]);
    stage.until_event("kept", "EvictionRefused", "disruption budget").await;
    let wrong = stage.folder.path().join("wrong.yaml");
    std::fs::write(&wrong, POLICY.replace("NodeTaints}]", "NodeTaint}]")).expect("written");
    let refused = Command::new(env!("CARGO_BIN_EXE_krafla"))
        .args(["deschedule", "--kubeconfig"])
        .arg(stage.control_plane.kubeconfig())
        .arg("--policy")
        .arg(&wrong)
        .output()
        .expect("it runs");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("did you mean `RemovePodsViolatingNodeTaints`?"));
}
