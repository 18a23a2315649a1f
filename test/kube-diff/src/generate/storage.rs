//! Claims, volumes, classes and what drivers say of nodes.

use serde_json::{Value, json};

use super::{HOSTNAME, REGION, ZONE};
use crate::dice::Dice;

/// Drivers of volumes; the first also makes them.
pub(crate) const DRIVERS: [&str; 2] = ["one.csi.example.com", "two.csi.example.com"];
/// A class of volumes that are there, one of volumes that are made, and one whose claims do not wait for a pod.
const LOCAL: &str = "local";
const MADE: &str = "made";
const AT_ONCE: &str = "at-once";

/// Classes, a driver that says how much storage there is, and how much that is.
pub(crate) fn surroundings() -> Vec<Value> {
    let class = |name: &str, provisioner: &str, mode: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name },
            "provisioner": provisioner, "volumeBindingMode": mode,
        })
    };
    let mut narrow = class("made-in-z1", DRIVERS[1], "WaitForFirstConsumer");
    narrow["allowedTopologies"] = json!([{ "matchLabelExpressions": [{ "key": ZONE, "values": ["z1", "z2"] }] }]);
    let capacity = |zone: &str, size: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
            "metadata": { "name": zone, "namespace": "default" }, "storageClassName": MADE,
            "nodeTopology": { "matchLabels": { ZONE: zone } }, "capacity": size,
        })
    };
    vec![
        class(LOCAL, "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        class(MADE, DRIVERS[0], "WaitForFirstConsumer"),
        class(AT_ONCE, DRIVERS[0], "Immediate"),
        narrow,
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": { "name": DRIVERS[0] },
            "spec": { "storageCapacity": true },
        }),
        capacity("z1", "3Gi"),
        capacity("z2", "30Gi"),
        capacity("z3", "8Gi"),
    ]
}

/// The drivers of a node, perhaps with limits, perhaps in the place of an in-tree plugin.
pub(crate) fn csi_node(dice: &mut Dice, node: &str) -> Value {
    let mut drivers: Vec<Value> = Vec::new();
    for driver in DRIVERS.into_iter().chain(["ebs.csi.aws.com"]) {
        if dice.chance(80) {
            let mut one = json!({ "name": driver, "nodeID": node, "topologyKeys": null });
            if dice.chance(80) {
                one["allocatable"] = json!({ "count": dice.between(1, 3) });
            }
            drivers.push(one);
        }
    }
    let mut metadata = json!({ "name": node });
    if dice.chance(60) {
        let migrated = "kubernetes.io/aws-ebs,kubernetes.io/gce-pd";
        metadata["annotations"] = json!({ "storage.alpha.kubernetes.io/migrated-plugins": migrated });
    }
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": { "drivers": drivers },
    })
}

/// A claim of this name, of any class, and the volume that it has already, if it has one.
pub(crate) fn claim(dice: &mut Dice, namespace: &str, name: &str, nodes: &[String]) -> (Value, Option<Value>) {
    let modes = if dice.chance(15) { json!(["ReadWriteOncePod"]) } else { json!(["ReadWriteOnce"]) };
    let mut spec = json!({
        "accessModes": modes, "resources": { "requests": { "storage": format!("{}Gi", dice.between(1, 9)) } },
    });
    let mut metadata = json!({ "name": name, "namespace": namespace });
    if dice.chance(50) {
        spec["storageClassName"] = json!("");
        spec["volumeName"] = json!(format!("v-{namespace}-{name}"));
        metadata["annotations"] = json!({ "pv.kubernetes.io/bind-completed": "yes" });
        let mut volume = volume(dice, &format!("v-{namespace}-{name}"), "", nodes);
        volume["spec"]["claimRef"] = json!({ "namespace": namespace, "name": name });
        volume["spec"]["accessModes"] = spec["accessModes"].clone();
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec,
        });
        return (claim, Some(volume));
    }
    let class = dice.pick(&[LOCAL, LOCAL, MADE, MADE, "made-in-z1", AT_ONCE]);
    spec["storageClassName"] = json!(class);
    if dice.chance(10) {
        spec["selector"] = json!({ "matchLabels": { "speed": "fast" } });
    }
    (json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec }), None)
}

/// A volume that waits for a claim.
pub(crate) fn local_volume(dice: &mut Dice, name: &str, nodes: &[String]) -> Value {
    volume(dice, name, LOCAL, nodes)
}

fn volume(dice: &mut Dice, name: &str, class: &str, nodes: &[String]) -> Value {
    let mut labels = json!({});
    if dice.chance(30) {
        labels[ZONE] = json!(dice.pick(&["z1", "z2", "z3", "z1__z2"]));
    }
    if dice.chance(15) {
        labels[REGION] = json!(dice.pick(&["east", "west"]));
    }
    if dice.chance(50) {
        labels["speed"] = json!("fast");
    }
    let mut spec = json!({
        "capacity": { "storage": format!("{}Gi", dice.between(1, 20)) },
        "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"], "storageClassName": class,
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": { "driver": dice.pick(&DRIVERS), "volumeHandle": name },
    });
    if spec["accessModes"].as_array().is_some_and(|modes| modes.len() > 1) {
        spec["accessModes"] = json!(["ReadWriteOnce"]); // ReadWriteOncePod stands alone
    }
    if dice.chance(60) && !nodes.is_empty() {
        let some: Vec<&String> = (0..dice.between(1, 4)).map(|_| &nodes[dice.index(nodes.len())]).collect();
        let condition = match dice.index(3) {
            0 => json!({ "key": ZONE, "operator": "In", "values": [dice.pick(&["z1", "z2", "z3", "z4"])] }),
            1 => json!({ "key": "rack", "operator": "Exists" }),
            _ => json!({ "key": HOSTNAME, "operator": "In", "values": some }),
        };
        spec["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [condition] }] } });
    }
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name, "labels": labels }, "spec": spec,
    })
}

/// A disk that a pod names itself.
pub(crate) fn disk(dice: &mut Dice) -> Value {
    let read_only = dice.chance(50);
    let name = dice.pick(&["d1", "d2", "d3"]);
    match dice.index(4) {
        0 => json!({ "name": "disk", "gcePersistentDisk": { "pdName": name, "readOnly": read_only } }),
        1 => json!({ "name": "disk", "awsElasticBlockStore": { "volumeID": name } }),
        2 => json!({
            "name": "disk",
            "iscsi": { "targetPortal": "10.0.0.1:3260", "iqn": format!("iqn.2020-01.com.example:{name}"), "lun": 0, "readOnly": read_only },
        }),
        _ => json!({
            "name": "disk",
            "rbd": { "monitors": [dice.pick(&["m1", "m2"]), "m3"], "image": name, "readOnly": read_only },
        }),
    }
}
