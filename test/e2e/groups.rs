//! Gangs by Kubernetes' own PodGroups (`scheduling.k8s.io`), on a real API server with its gate on.

use krafla_sandbox::{Options, create_nodes, node};
use serde_json::{Value, json};

use crate::harness::{Krafla, Stage, pod, text};

const GROUP: &str = "scheduling.k8s.io/v1beta1";

/// kube-scheduler's default profile, with the plugin that Kubernetes adds behind its gate.
const CONF: &str = r"
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: GangScheduling}]}
";

async fn stage() -> Option<Stage> {
    let options = Options::new().feature("GenericWorkload").api_server_flag(format!("--runtime-config={GROUP}=true"));
    let stage = Stage::with(options).await?;
    stage.nodes(2, "4", "8Gi").await;
    Some(stage)
}

/// A gang of `n` pods that needs all of them.
async fn gang(stage: &Stage, name: &str, n: usize, scheduler: &str) {
    stage
        .create(&json!({
            "apiVersion": GROUP, "kind": "PodGroup", "metadata": { "name": name, "namespace": "default" },
            "spec": { "schedulingPolicy": { "gang": { "minCount": n } } },
        }))
        .await;
    for i in 0..n {
        let mut pod = pod(&format!("{name}-{i}"), None, "3");
        pod["metadata"]["labels"]["gang"] = json!(name);
        pod["spec"]["schedulerName"] = json!(scheduler);
        pod["spec"]["schedulingGroup"] = json!({ "podGroupName": name });
        stage.create(&pod).await;
    }
}

/// Waits until the condition `PodGroupScheduled` has this status and reason.
async fn until_group_is(stage: &Stage, name: &str, status: &str, reason: &str) {
    let groups = stage.api(GROUP, "PodGroup", Some("default"));
    stage
        .eventually(&format!("the PodGroup {name} is {reason}"), async || {
            let group = groups.get(name).await.map_err(text)?;
            let conditions: Value = group.data["status"]["conditions"].clone();
            let condition = &conditions[0];
            let is = condition["type"] == "PodGroupScheduled"
                && condition["status"] == status
                && condition["reason"] == reason;
            if is { Ok(()) } else { Err(conditions.to_string()) }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_place_a_native_gang_whole_or_not_at_all() {
    let Some(stage) = stage().await else { return };
    let _krafla: Krafla = stage.krafla_with(stage.control_plane.kubeconfig(), &["--leader-elect=false"]);
    gang(&stage, "too-big", 3, "volcano").await;
    until_group_is(&stage, "too-big", "False", "Unschedulable").await;
    gang(&stage, "fits", 2, "volcano").await;
    stage.until_running("gang=fits", 2).await;
    until_group_is(&stage, "fits", "True", "Scheduled").await;
    assert_eq!(stage.bound("gang=too-big").await.expect("listed"), 0);
    for i in 0..2 {
        stage.delete_pod(&format!("fits-{i}")).await;
    }
    create_nodes(&stage.client, [node("third", "4", "8Gi")]).await.expect("a node");
    stage.until_running("gang=too-big", 3).await;
    until_group_is(&stage, "too-big", "True", "Scheduled").await;
}

// A-012.
#[tokio::test(flavor = "multi_thread")]
async fn pods_one_by_one_wait_for_each_other_at_permit() {
    let Some(stage) = stage().await else { return };
    let file = stage.configure(CONF);
    let flags = ["--leader-elect=false", "--profile-only", "--config", &file];
    let _krafla: Krafla = stage.krafla_with(stage.control_plane.kubeconfig(), &flags);
    gang(&stage, "pair", 2, "default-scheduler").await;
    stage.until_running("gang=pair", 2).await;
    gang(&stage, "late", 2, "default-scheduler").await;
    stage.until_event("late-0", "FailedScheduling", "0/2 nodes are available").await;
    assert_eq!(stage.bound("gang=late").await.expect("listed"), 0);
    for i in 0..2 {
        stage.delete_pod(&format!("pair-{i}")).await;
    }
    stage.until_running("gang=late", 2).await;
}
