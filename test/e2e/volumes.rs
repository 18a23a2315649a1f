//! Claims that wait for a node, with Kubernetes' own volume controller and a stand-in for a driver that makes volumes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use krafla_sandbox::Options;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::harness::{Stage, pod, text};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

async fn stage() -> Option<Stage> {
    let options = Options::new()
        .also_controller("persistentvolume-binder-controller")
        .also_controller("ephemeral-volume-controller");
    let stage = Stage::with(options).await?;
    stage.nodes(2, "4", "8Gi").await;
    for (name, provisioner) in [("local", "kubernetes.io/no-provisioner"), ("made", "csi.example.com")] {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name },
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        });
        stage.apply(&class).await;
    }
    Some(stage)
}

fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

/// A volume that only one node can use.
fn volume(name: &str, class: &str, size: &str, node: &str) -> Value {
    let term = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": size }, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": { "driver": "csi.example.com", "volumeHandle": name },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [term] }] } },
        },
    })
}

fn with_claim(name: &str, claim: &str, cpu: &str) -> Value {
    let mut pod = pod(name, None, cpu);
    pod["spec"]["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }]);
    pod
}

/// A class, a local volume on a node, a claim that wants it and a pod that wants the claim.
pub(crate) fn local(name: &str, node: &str) -> [Value; 4] {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name },
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    });
    [class, volume(name, name, "1Gi", node), claim(name, name), with_claim(name, name, "100m")]
}

fn claims(client: &Client) -> Api<PersistentVolumeClaim> {
    Api::namespaced(client.clone(), "default")
}

fn selected(claim: &PersistentVolumeClaim) -> Option<&String> {
    claim.metadata.annotations.as_ref()?.get(SELECTED_NODE)
}

/// A driver's part: it makes a volume for each claim that says for which node. Ended with the test.
struct Driver {
    works: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Driver {
    fn start(client: Client, works: bool) -> Self {
        let works = Arc::new(AtomicBool::new(works));
        let on = Arc::clone(&works);
        let task = tokio::spawn(async move {
            let volumes: Api<PersistentVolume> = Api::all(client.clone());
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                let Ok(list) = claims(&client).list(&ListParams::default()).await else { continue };
                for claim in list.items.iter().filter(|_| on.load(Ordering::SeqCst)) {
                    let (Some(node), Some(name)) = (selected(claim), &claim.metadata.name) else { continue };
                    let uid = claim.metadata.uid.as_deref().unwrap_or_default();
                    let mut made = volume(&format!("pvc-{uid}"), "made", "1Gi", node);
                    made["metadata"]["annotations"] = json!({ "pv.kubernetes.io/provisioned-by": "csi.example.com" });
                    made["spec"]["claimRef"] = json!({
                        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": name,
                        "uid": uid,
                    });
                    let made = serde_json::from_value(made).expect("a volume");
                    let _ = volumes.create(&PostParams::default(), &made).await; // once; then it is there
                }
            }
        });
        Self { works, task: task.abort_handle() }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn node_of(stage: &Stage, pod: &str) -> Option<String> {
    stage.pods().get(pod).await.expect("it is there").spec.and_then(|spec| spec.node_name)
}

//
#[tokio::test(flavor = "multi_thread")]
async fn claims_get_a_local_volume_or_one_that_is_made() {
    let Some(stage) = stage().await else { return };
    let _driver = Driver::start(stage.client.clone(), true);
    let krafla = stage.krafla();
    stage.create(&with_claim("early", "comes-later", "1")).await;
    stage.until_event("early", "FailedScheduling", "persistentvolumeclaim \"comes-later\" not found").await;

    for (name, size, node) in [("small-n1", "2Gi", "n1"), ("large-n0", "9Gi", "n0")] {
        stage.apply(&volume(name, "local", size, node)).await;
    }
    for name in ["a", "b"] {
        stage.create(&claim(name, "local")).await;
        stage.create(&with_claim(name, name, "1")).await;
        stage.until_running(&format!("group={name}"), 1).await;
    }
    let mut nodes = [node_of(&stage, "a").await, node_of(&stage, "b").await];
    nodes.sort();
    assert_eq!(nodes, [Some("n0".to_owned()), Some("n1".to_owned())], "a volume each, each on its own node");
    for name in ["a", "b"] {
        let bound = claims(&stage.client).get(name).await.expect("it is there");
        assert_eq!(bound.status.and_then(|status| status.phase).as_deref(), Some("Bound"));
    }

    stage.create(&claim("comes-later", "made")).await;
    stage.until_running("group=early", 1).await;
    let made = claims(&stage.client).get("comes-later").await.expect("it is there");
    assert_eq!(selected(&made), node_of(&stage, "early").await.as_ref(), "made for the node of its pod");

    let mut scratch = pod("scratch", None, "1");
    let template = json!({ "spec": claim("x", "made")["spec"] });
    scratch["spec"]["volumes"] = json!([{ "name": "tmp", "ephemeral": { "volumeClaimTemplate": template } }]);
    stage.create(&scratch).await;
    stage.until_running("group=scratch", 1).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

/// a volume that is not made in time, or that the driver gives up, stops the bind; the room of the pod is free for
/// others, and the pod is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_is_not_made_stops_the_bind_and_frees_the_room() {
    let Some(stage) = stage().await else { return };
    let driver = Driver::start(stage.client.clone(), false);
    let conf = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 3}}
";
    let file = stage.configure(conf);
    let flags = ["--leader-elect=false", "--profile-only", "--config", &file];
    let krafla = stage.krafla_with(stage.control_plane.kubeconfig(), &flags);
    let of_default = |mut pod: Value| {
        pod["spec"]["schedulerName"] = json!("default-scheduler");
        pod["spec"]["nodeSelector"] = json!({ "kubernetes.io/hostname": "n0" });
        pod
    };
    stage.create(&claim("c", "made")).await;
    stage.create(&of_default(with_claim("p", "c", "3"))).await;
    stage
        .eventually("the claim says for which node its volume is to be made", async || {
            let claim = claims(&stage.client).get("c").await.map_err(text)?;
            selected(&claim).map(|_| ()).ok_or_else(|| "it does not".to_owned())
        })
        .await;
    assert_eq!(node_of(&stage, "p").await, None, "it is not bound before its claim");
    stage.create(&of_default(pod("q", None, "3"))).await;
    stage.until_event("q", "FailedScheduling", "Insufficient cpu").await;
    let lacks = "binding volumes: persistentvolumeclaim \"c\" has no volume after 3 s";
    stage.until_event("p", "FailedScheduling", lacks).await;
    stage.until_running("group=q", 1).await;
    assert_eq!(node_of(&stage, "p").await, None);

    // The driver gives up; as soon as there is room the pod is tried again, and then the driver makes the volume.
    stage.delete_pod("q").await;
    stage
        .eventually("it is said that the volume is not made", async || {
            let forget = json!({ "metadata": { "annotations": { SELECTED_NODE: null } } });
            let claims = claims(&stage.client);
            claims.patch("c", &PatchParams::default(), &Patch::Merge(&forget)).await.map_err(text)?;
            let events = stage.events("p").await;
            let said = events.iter().any(|(_, message)| message.contains("provisioning failed for PVC \"c\""));
            said.then_some(()).ok_or_else(|| format!("there are {events:?}"))
        })
        .await;
    driver.works.store(true, Ordering::SeqCst);
    stage.until_running("group=p", 1).await;
    assert_eq!(node_of(&stage, "p").await.as_deref(), Some("n0"));
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}
