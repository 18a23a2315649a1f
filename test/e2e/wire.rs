//! What comes over the wire in protobuf says the same as in JSON: the server writes both.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::node::v1::RuntimeClass;
use krafla_api::Converter;
use krafla_cluster::{Access, ContentType};
use krafla_sandbox::Options;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::harness::Stage;

const AZURE_DISK: &str = "/subscriptions/s/resourcegroups/g/providers/microsoft.compute/disks/d";

/// A client as the scheduler has it.
async fn client(stage: &Stage, content_type: ContentType) -> Client {
    let kubeconfig = Some(stage.control_plane.kubeconfig().to_owned());
    Access { kubeconfig, content_type, ..Access::default() }.clients().await.expect("a client").calls
}

/// What the scheduler and the descheduler know of the pod.
fn read(pod: &Pod) -> String {
    let mut converter = Converter::new();
    converter.read_details();
    converter.keep_annotations(&["example.com/kept"]);
    let group = (krafla_api::group_of(pod), krafla_api::implicit_group_name(pod));
    format!("{:?} {group:?} {:?}", converter.pod(pod), pod.metadata.resource_version)
}

fn pod(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "labels": { "app": "x", "text": "" },
            "annotations": { "example.com/kept": "\"quoted\"\n\u{e9}", "scheduling.k8s.io/group-name": "gang" },
            "ownerReferences": [
                { "apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "u", "controller": true },
                { "apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": "v" },
            ],
        },
        "spec": spec,
    })
}

/// Every field of a pod that has a say in scheduling, as far as one pod may have them.
fn rich() -> Value {
    let term = json!({
        "matchExpressions": [{ "key": "pool", "operator": "In", "values": ["a", "b"] }, { "key": "x", "operator": "Exists" }],
        "matchFields": [{ "key": "metadata.name", "operator": "NotIn", "values": ["n9"] }],
    });
    let like = json!({
        "labelSelector": {
            "matchLabels": { "app": "x" },
            "matchExpressions": [{ "key": "a", "operator": "NotIn", "values": ["1"] }],
        },
        "topologyKey": "zone", "namespaces": ["default", "other"], "namespaceSelector": {},
        "matchLabelKeys": ["text"], "mismatchLabelKeys": ["text2"],
    });
    let affinity = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [like],
        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 7, "podAffinityTerm": like }],
    });
    let container = |name: &str| {
        json!({
            "name": name, "image": "registry.example.com/train:1", "command": ["train"],
            "env": [{ "name": "RANK", "value": "1" }], "volumeMounts": [{ "name": "scratch", "mountPath": "/data" }],
            "ports": [
                { "containerPort": 80, "hostPort": 8080, "protocol": "UDP", "hostIP": "10.0.0.1" },
                { "containerPort": 81 },
            ],
            "resources": {
                "requests": { "cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "0" },
                "limits": { "cpu": "2", "memory": "1536Mi", "nvidia.com/gpu": "1" },
            },
            "livenessProbe": { "httpGet": { "path": "/", "port": 80 } },
        })
    };
    let mut sidecar = container("sidecar");
    sidecar["restartPolicy"] = json!("Always");
    sidecar["ports"] = json!([]);
    let template = |class: &str| {
        json!({ "volumeClaimTemplate": { "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": { "requests": { "storage": "1Gi" } }, "selector": { "matchLabels": { "a": "b" } },
        } } })
    };
    json!({
        "schedulerName": "volcano", "priority": null, "preemptionPolicy": "PreemptLowerPriority",
        "nodeSelector": { "pool": "a" }, "hostUsers": false, "schedulingGates": [{ "name": "example.com/gate" }],
        "containers": [container("main")], "initContainers": [sidecar],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] },
                "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 3, "preference": term }],
            },
            "podAffinity": affinity, "podAntiAffinity": affinity,
        },
        "tolerations": [
            { "key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0 },
            { "operator": "Exists" },
            { "key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule" },
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2,
                "labelSelector": { "matchLabels": { "app": "x" } }, "matchLabelKeys": ["text"],
                "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
            },
            { "maxSkew": 5, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway" },
        ],
        "resourceClaims": [
            { "name": "one", "resourceClaimName": "claim-1" },
            { "name": "two", "resourceClaimTemplateName": "template" },
        ],
        "volumes": [
            { "name": "scratch", "emptyDir": {} },
            { "name": "host", "hostPath": { "path": "/x" } },
            { "name": "claim", "persistentVolumeClaim": { "claimName": "c", "readOnly": true } },
            { "name": "own", "ephemeral": template("fast") },
            { "name": "own2", "ephemeral": template("") },
            { "name": "gce", "gcePersistentDisk": { "pdName": "disk", "readOnly": true } },
            { "name": "aws", "awsElasticBlockStore": { "volumeID": "vol" } },
            { "name": "iscsi", "iscsi": { "targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:x", "lun": 2 } },
            { "name": "rbd", "rbd": { "monitors": ["a", "b"], "image": "i", "pool": "p" } },
            { "name": "cinder", "cinder": { "volumeID": "v" } },
            { "name": "file", "azureFile": { "secretName": "s", "shareName": "h" } },
            { "name": "disk", "azureDisk": { "diskName": "d", "diskURI": AZURE_DISK, "kind": "Managed" } },
            { "name": "sphere", "vsphereVolume": { "volumePath": "p" } },
            { "name": "port", "portworxVolume": { "volumeID": "v" } },
            { "name": "inline", "csi": { "driver": "csi.example.com" } },
        ],
    })
}

fn status() -> Value {
    let of = |name: &str| {
        json!([{
            "name": name, "restartCount": 3, "ready": false, "image": "x", "imageID": "y",
            "state": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
            "lastState": { "waiting": { "reason": "CrashLoopBackOff" } },
            "allocatedResources": { "cpu": "100m" }, "resources": { "requests": { "cpu": "200m" } },
        }])
    };
    json!({ "status": {
        "phase": "Running", "reason": "Why", "nominatedNodeName": "node-2", "startTime": "2026-01-01T00:00:05Z",
        "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "a\tb",
              "lastTransitionTime": "2026-01-01T00:00:04Z" },
            { "type": "Ready", "status": "True" },
        ],
        "containerStatuses": of("main"), "initContainerStatuses": of("sidecar"),
        "resourceClaimStatuses": [{ "name": "two", "resourceClaimName": "device-1" }, { "name": "one" }],
    } })
}

#[tokio::test]
async fn pods_say_the_same_in_protobuf_as_in_json() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    let (json, protobuf) = (client(&stage, ContentType::Json).await, client(&stage, ContentType::Protobuf).await);
    let heavy = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": { "name": "heavy" }, "handler": "heavy",
        "overhead": { "podFixed": { "cpu": "10m" } },
    });
    let classes: Api<RuntimeClass> = Api::all(stage.client.clone());
    classes.create(&Default::default(), &serde_json::from_value(heavy).expect("a class")).await.expect("its class");
    let small = json!({ "containers": [{ "name": "main", "image": "x" }] });
    let mut host = small.clone();
    host["hostNetwork"] = json!(true);
    host["runtimeClassName"] = json!("heavy");
    host["resources"] = json!({ "requests": { "cpu": "3" }, "limits": { "cpu": "4" } });
    for (name, spec) in [("rich", rich()), ("small", small), ("host", host)] {
        let mut manifest = pod(name, &spec);
        if name == "small" {
            manifest["metadata"] = json!({ "name": name });
        }
        let pods: Api<Pod> = Api::default_namespaced(stage.client.clone());
        let made = pods.create(&Default::default(), &serde_json::from_value(manifest).expect("a pod")).await;
        made.unwrap_or_else(|error| panic!("{name}: {error}"));
        if name == "rich" {
            let patched = pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status())).await;
            patched.expect("its status");
        }
    }

    let nothing = Api::<Pod>::namespaced(protobuf.clone(), "volcano-system").list(&ListParams::default()).await;
    assert_eq!(nothing.expect("an empty list").items, Vec::new());

    // Lists, page by page.
    let (by_json, by_protobuf) = (Api::<Pod>::all(json.clone()), Api::<Pod>::all(protobuf.clone()));
    let page = ListParams::default().limit(2);
    let expected = by_json.list(&page).await.expect("a page");
    let got = by_protobuf.list(&page).await.expect("a page");
    assert_eq!(got.metadata.remaining_item_count, Some(1));
    assert_eq!(got.metadata.resource_version, expected.metadata.resource_version);
    let rest = page.continue_token(got.metadata.continue_.as_deref().expect("there is more"));
    let got: Vec<Pod> = got.items.into_iter().chain(by_protobuf.list(&rest).await.expect("the rest").items).collect();
    let expected = by_json.list(&ListParams::default()).await.expect("all").items;
    assert_eq!(got.len(), 3);
    for (got, expected) in got.iter().zip(&expected) {
        assert_eq!(read(got), read(expected), "{}", expected.name_any());
    }
    let rich = got.iter().find(|pod| pod.name_any() == "rich").expect("it");
    let spec = rich.spec.as_ref().expect("a spec");
    assert!(
        rich.metadata.managed_fields.is_none() && spec.containers[0].env.is_none(),
        "what nobody asks for is skipped"
    );
    assert_eq!(
        spec.tolerations.as_ref().and_then(|all| all[0].toleration_seconds),
        Some(0),
        "a zero that says something"
    );
    let classes: Vec<_> = spec.volumes.iter().flatten().filter_map(|volume| volume.ephemeral.as_ref()).collect();
    let class =
        |i: usize| classes[i].volume_claim_template.as_ref().and_then(|one| one.spec.storage_class_name.clone());
    assert_eq!(
        (class(0).as_deref(), class(1).as_deref()),
        (Some("fast"), Some("")),
        "an empty text that says something"
    );

    // Watches: what there is, what changes, what goes, and a thread that is lost.
    let pods: Api<Pod> = Api::default_namespaced(protobuf.clone());
    let mut seen = pods.watch(&WatchParams::default(), "0").await.expect("a watch").boxed();
    let writer: Api<Pod> = Api::default_namespaced(stage.client.clone());
    let label = json!({ "metadata": { "labels": { "app": "y" } } });
    writer.patch("small", &PatchParams::default(), &Patch::Merge(&label)).await.expect("a label");
    writer.delete("small", &DeleteParams::default().grace_period(0)).await.expect("gone");
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &String| !event.starts_with("deleted")) {
        events.push(match seen.try_next().await.expect("an event").expect("the watch goes on") {
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Added(pod) => format!("added {}", pod.name_any()),
            WatchEvent::Modified(pod) => format!("modified {} {:?}", pod.name_any(), pod.labels().get("app")),
            WatchEvent::Deleted(pod) => format!("deleted {}", pod.name_any()),
            other => panic!("{other:?}"),
        });
    }
    // Whoever deletes may mark first.
    events.sort();
    events.dedup();
    let expected =
        ["added host", "added rich", "added small", "deleted small", "modified small Some(\"y\")"].map(str::to_owned);
    assert_eq!(events, expected);
    let Err(kube::Error::Api(refusal)) = pods.list(&ListParams::default().continue_token("nonsense")).await else {
        panic!("a continue token that is none")
    };
    assert_eq!(refusal.code, 400);
    assert!(refusal.message.contains("continue"), "{}", refusal.message);
}
