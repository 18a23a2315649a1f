//! Nodes, and what there is beside pods.

use serde_json::{Value, json};

use super::{INIT, Kind, MEASURED, Workload};

pub(super) const ZONE: &str = "topology.kubernetes.io/zone";
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";
/// The node that all pods of a DaemonSet are for.
pub(super) const THE_NODE: &str = "scheduler-perf-node";
/// A device of which a node has one.
pub(super) const DEVICE: &str = "example.com/device";
pub(super) const DRIVER: &str = "driver.example.com";
pub(super) const DEVICE_CLASS: &str = "class.example.com";
/// Devices, and volumes, of a node.
const A_NODE_HAS: usize = 10;
/// Namespaces whose pods are looked at together.
pub(super) const NAMESPACES: usize = 100;

/// A node: 4 CPU, 32 GiB, 110 pods, of one of three zones.
pub(super) fn node(workload: &Workload, i: usize) -> Value {
    let mut amounts = json!({ "cpu": "4", "memory": "32Gi", "pods": "110" });
    let mut name = node_name(i);
    let mut taints = json!([]);
    match workload.kind {
        Kind::Gangs(_) => amounts = json!({ "cpu": "32", "memory": "128Gi", "pods": "110" }),
        Kind::WhileGated | Kind::GatedAffinity => {
            amounts = json!({ "cpu": "4000", "memory": "32000Gi", "pods": "90000" });
        }
        Kind::Daemonset if i == 0 => {
            name = THE_NODE.to_owned();
            amounts = json!({ "cpu": "4000", "memory": "32000Gi", "pods": "90000" });
        }
        Kind::ExtendedResource => amounts[DEVICE] = json!("1"),
        Kind::NodeInclusion if i % 5 == 4 => taints = json!([{ "key": "foo", "effect": "NoSchedule" }]),
        _ => {}
    }
    let zone = match workload.kind {
        // Affine pods are to have room: upstream has one zone there.
        Kind::PodAffinity
        | Kind::PreferredPodAffinity
        | Kind::NodeAffinity
        | Kind::AcrossNamespaces { anti: false, .. }
        | Kind::Mixed => "zone1".to_owned(),
        _ => format!("zone{}", i % 3),
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { HOSTNAME: name, ZONE: zone } },
        "spec": { "taints": taints },
        "status": {
            "capacity": amounts, "allocatable": amounts, "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })
}

pub(super) fn node_name(i: usize) -> String {
    format!("node-{i:05}")
}

pub(super) fn namespace(i: usize) -> String {
    format!("team-{}", i % NAMESPACES)
}

pub(super) fn objects(workload: &Workload) -> Vec<Value> {
    let mut all = vec![json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": "high" }, "value": 1_000,
    })];
    match workload.kind {
        Kind::AcrossNamespaces { .. } => all.extend((0..NAMESPACES).map(|i| {
            let labels = json!({ "team": "devops" });
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace(i), "labels": labels } })
        })),
        Kind::DefaultTopologySpreading => all.push(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "service", "namespace": "default" },
            "spec": { "selector": { "color": "blue" }, "ports": [{ "port": 80 }] },
        })),
        Kind::CsiVolumes => all.extend((0..workload.nodes).map(|i| {
            let driver = json!({ "name": DRIVER, "nodeID": node_name(i), "allocatable": { "count": A_NODE_HAS } });
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": { "name": node_name(i) },
                "spec": { "drivers": [driver] },
            })
        })),
        Kind::DeviceClaims => {
            let selector = json!({ "cel": { "expression": format!("device.driver == '{DRIVER}'") } });
            all.push(json!({
                "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": DEVICE_CLASS },
                "spec": { "selectors": [selector] },
            }));
            all.extend((0..workload.nodes).map(slice));
        }
        _ => {}
    }
    all
}

/// The devices of a node.
fn slice(i: usize) -> Value {
    let devices: Vec<Value> = (0..A_NODE_HAS).map(|k| json!({ "name": format!("device-{k}") })).collect();
    let name = node_name(i);
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": name },
        "spec": {
            "driver": DRIVER, "nodeName": name, "devices": devices,
            "pool": { "name": name, "generation": 1, "resourceSliceCount": 1 },
        },
    })
}

pub(super) fn objects_of(workload: &Workload, pod: &str) -> Vec<Value> {
    let counts = pod.starts_with(INIT) || pod.starts_with(MEASURED);
    let source = match workload.kind {
        // Upstream's pods that are there before have none.
        Kind::InTreeVolumes if pod.starts_with(MEASURED) => json!({ "awsElasticBlockStore": { "volumeID": pod } }),
        Kind::CsiVolumes if counts => json!({ "csi": { "driver": DRIVER, "volumeHandle": pod } }),
        Kind::DeviceClaims if counts => {
            let request = json!({ "name": "one", "exactly": { "deviceClassName": DEVICE_CLASS } });
            return vec![json!({
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "metadata": { "name": pod, "namespace": "default", "uid": format!("claim-{pod}") },
                "spec": { "devices": { "requests": [request] } },
            })];
        }
        _ => return Vec::new(),
    };
    let capacity = json!({ "storage": "1Gi" });
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": pod },
        "spec": {
            "capacity": capacity, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": { "namespace": "default", "name": pod, "uid": format!("claim-{pod}") },
        },
        "status": { "phase": "Bound" },
    });
    for (key, value) in source.as_object().into_iter().flatten() {
        volume["spec"][key] = value.clone();
    }
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": pod, "namespace": "default", "uid": format!("claim-{pod}"),
            "annotations": { "pv.kubernetes.io/bind-completed": "yes" },
        },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": capacity }, "volumeName": pod },
        "status": { "phase": "Bound" },
    });
    vec![volume, claim]
}
