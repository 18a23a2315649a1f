//! Pods one by one (`--profile-only`), with a KubeSchedulerConfiguration, in place of kube-scheduler.

use serde_json::{Value, json};

use crate::harness::{Stage, pod};

/// Two profiles, and gangs at Permit in both.
const CONF: &str = r#"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: Coscheduling}]}
- schedulerName: packing
  plugins:
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: Coscheduling}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"#;

fn of(scheduler: &str, name: &str, cpu: &str) -> Value {
    let mut pod = pod(name, None, cpu);
    pod["spec"]["schedulerName"] = json!(scheduler);
    pod
}

async fn stage(nodes: usize) -> Option<(Stage, crate::harness::Krafla)> {
    let stage = Stage::new().await?;
    stage.nodes(nodes, "4", "8Gi").await;
    let file = stage.configure(CONF);
    let flags = ["--leader-elect=false", "--profile-only", "--config", &file];
    let krafla = stage.krafla_with(stage.control_plane.kubeconfig(), &flags);
    Some((stage, krafla))
}

// A-042, A-044, A-045.
#[tokio::test(flavor = "multi_thread")]
async fn an_important_pod_takes_the_room_of_one_that_is_not() {
    let Some((stage, _krafla)) = stage(2).await else { return };
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "high" }, "value": 1000,
    });
    stage.create(&class).await;
    for name in ["a", "b"] {
        stage.create(&of("default-scheduler", name, "3")).await;
    }
    stage.until_running("group in (a, b)", 2).await;
    stage.create(&of("default-scheduler", "waits", "3")).await;
    stage.until_event("waits", "FailedScheduling", "0/2 nodes are available: 2 Insufficient cpu").await;
    let mut high = of("default-scheduler", "high", "3");
    high["spec"]["priorityClassName"] = json!("high");
    stage.create(&high).await;
    stage.until_running("group=high", 1).await;
    let left = stage.bound("group in (a, b)").await.expect("listed");
    assert_eq!(left, 1, "one went, and only one");
    stage.no_node_is_overfull().await;
    assert_eq!(
        stage.pod_groups().list(&Default::default()).await.expect("listed").items.len(),
        0,
        "no PodGroup is made"
    );
}

// A-122, A-123, A-213.
#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_chosen_by_name_and_foreign_pods_are_left_alone() {
    let Some((stage, _krafla)) = stage(3).await else { return };
    stage.create(&of("default-scheduler", "first", "1")).await;
    stage.until_running("group=first", 1).await;
    stage.create(&of("somebody-else", "foreign", "1")).await;
    for i in 0..3 {
        stage.create(&of("packing", &format!("packed-{i}"), "1")).await;
        stage.until_running(&format!("group=packed-{i}"), 1).await;
    }
    let pods = stage.pods().list(&Default::default()).await.expect("listed").items;
    let node = |name: &str| {
        let pod = pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name)).expect("it is there");
        pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
    };
    for i in 0..3 {
        assert_eq!(node(&format!("packed-{i}")), node("first"), "the fullest node is filled");
    }
    assert_eq!(node("foreign"), None);
}

// A-093, A-103.
#[tokio::test(flavor = "multi_thread")]
async fn a_gang_by_labels_alone_starts_whole() {
    let Some((stage, _krafla)) = stage(2).await else { return };
    let member = |i: usize| {
        let mut pod = of("default-scheduler", &format!("worker-{i}"), "4");
        pod["metadata"]["labels"]["gang"] = json!("yes");
        pod["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io/name"] = json!("job-001");
        pod["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io/min-available"] = json!("3");
        pod
    };
    for i in 0..3 {
        stage.create(&member(i)).await;
    }
    stage.until_event("worker-2", "FailedScheduling", "").await;
    assert_eq!(stage.bound("gang=yes").await.expect("listed"), 0, "two nodes are not enough for three");
    krafla_sandbox::create_nodes(&stage.client, vec![krafla_sandbox::node("late", "4", "8Gi")]).await.expect("a node");
    stage.until_running("gang=yes", 3).await;
    stage.no_node_is_overfull().await;
}
