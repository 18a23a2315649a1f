//! Claims of devices on a real API server: what the scheduler writes, and that no device is given out twice.

use krafla_sandbox::Options;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::harness::{Krafla, Stage, pod};

const RESOURCE: &str = "resource.k8s.io/v1";

async fn stage(flags: &[&str]) -> Option<(Stage, Krafla)> {
    let stage = Stage::with(Options::new().also_controller("resourceclaim-controller")).await?;
    stage.nodes(2, "4", "8Gi").await;
    offer(&stage, "n1").await;
    let krafla = stage.krafla_with(stage.control_plane.kubeconfig(), flags);
    Some((stage, krafla))
}

/// A device on a node, a class that has configuration for its driver, and two claims, `c1` and `c2`, for one device each.
pub(crate) async fn offer(stage: &Stage, node: &str) {
    let selector = json!({ "cel": { "expression": "device.driver == 'gpu.example.com'" } });
    let opaque =
        json!({ "driver": "gpu.example.com", "parameters": { "apiVersion": "gpu.example.com/v1", "kind": "Any" } });
    stage
        .create(&json!({
            "apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": { "name": "gpu" },
            "spec": { "selectors": [selector], "config": [{ "opaque": opaque }] },
        }))
        .await;
    stage
        .create(&json!({
            "apiVersion": RESOURCE, "kind": "ResourceSlice", "metadata": { "name": format!("{node}-gpu") },
            "spec": {
                "driver": "gpu.example.com", "nodeName": node,
                "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
                "devices": [{ "name": "gpu-0", "attributes": { "model": { "string": "A100" } } }],
            },
        }))
        .await;
    let model = json!({ "cel": { "expression": "device.attributes['gpu.example.com'].model == 'A100'" } });
    for name in ["c1", "c2"] {
        let request = json!({ "name": "g", "exactly": { "deviceClassName": "gpu", "selectors": [model.clone()] } });
        stage
            .create(&json!({
                "apiVersion": RESOURCE, "kind": "ResourceClaim", "metadata": { "name": name },
                "spec": { "devices": { "requests": [request] } },
            }))
            .await;
    }
}

/// A pod with one of those claims.
pub(crate) fn claimant(name: &str, claim: &str, scheduler: &str) -> Value {
    let mut pod = pod(name, None, "100m");
    pod["spec"]["schedulerName"] = json!(scheduler);
    pod["spec"]["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimName": claim }]);
    pod["spec"]["containers"][0]["resources"]["claims"] = json!([{ "name": "gpu" }]);
    pod
}

async fn status(stage: &Stage, claim: &str) -> Value {
    let found = stage.api(RESOURCE, "ResourceClaim", None).get(claim).await.expect("the claim is there");
    found.data["status"].clone()
}

async fn node_of(stage: &Stage, name: &str) -> Option<String> {
    let pods = stage.pods().list(&ListParams::default().labels(&format!("group={name}"))).await.expect("listed");
    pods.items.first()?.spec.as_ref()?.node_name.clone()
}

async fn one_device_serves_one_pod_at_a_time(flags: &[&str], scheduler: &str) {
    let Some((stage, _krafla)) = stage(flags).await else { return };
    stage.create(&claimant("p1", "c1", scheduler)).await;
    stage.until_running("group=p1", 1).await;
    assert_eq!(node_of(&stage, "p1").await.as_deref(), Some("n1"));
    let given = status(&stage, "c1").await;
    let result = &given["allocation"]["devices"]["results"][0];
    assert_eq!((&result["request"], &result["device"], &result["pool"]), (&json!("g"), &json!("gpu-0"), &json!("n1")));
    assert_eq!(given["allocation"]["devices"]["config"][0]["source"], "FromClass");
    assert_eq!(
        given["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"],
        json!(["n1"]),
        "{given}"
    );
    assert_eq!(given["reservedFor"][0]["name"], "p1");
    stage.create(&claimant("p2", "c2", scheduler)).await;
    stage.until_event("p2", "FailedScheduling", "0 of 1 that match are free").await;
    assert_eq!(status(&stage, "c2").await["allocation"], Value::Null, "no device is given out twice");
    // kube-controller-manager takes the device back once the first pod is gone.
    stage.delete_pod("p1").await;
    stage.until_running("group=p2", 1).await;
    assert_eq!(status(&stage, "c2").await["reservedFor"][0]["name"], "p2");
    let former = status(&stage, "c1").await;
    assert_eq!(former["allocation"], Value::Null, "{former}");
}

//
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_written_before_the_bind_and_no_device_is_given_out_twice() {
    one_device_serves_one_pod_at_a_time(&["--leader-elect=false", "--profile-only"], "default-scheduler").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_serve_claims_too() {
    one_device_serves_one_pod_at_a_time(&["--leader-elect=false"], "volcano").await;
}
