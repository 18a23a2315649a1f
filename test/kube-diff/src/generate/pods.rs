//! Pods.

use serde_json::{Map, Value, json};

use super::affinity::{node_affinity, pod_affinity, spread_constraints, tolerations};
use super::{APPS, GPU, IMAGES, NAMESPACES, PRIORITIES, REVISIONS, RUNTIME, TIERS};
use crate::dice::Dice;

/// An owner that is there: its namespace, and the reference to it.
pub(crate) type Owner = (String, Value);

/// A pod of this name.
pub(crate) fn pod(dice: &mut Dice, name: &str, nodes: &[String], owners: &[Owner]) -> Value {
    let labels = labels(dice);
    let mut metadata = json!({ "name": name, "namespace": dice.pick(&NAMESPACES), "labels": labels });
    if !owners.is_empty() && dice.chance(25) {
        let (namespace, reference) = &owners[dice.index(owners.len())];
        metadata["namespace"] = json!(namespace);
        metadata["ownerReferences"] = json!([reference]);
    }
    let n = if dice.chance(70) { 1 } else { dice.between(2, 3) };
    let mut ports = Ports::default();
    let containers: Vec<Value> = (0..n).map(|i| container(dice, &format!("c{i}"), &mut ports)).collect();
    let mut spec = json!({ "containers": containers, "terminationGracePeriodSeconds": 1000 });
    if dice.chance(20) {
        let mut init = |dice: &mut Dice, i: i64| {
            let mut container = container(dice, &format!("i{i}"), &mut ports);
            if dice.chance(40) {
                container["restartPolicy"] = json!("Always");
            }
            container
        };
        spec["initContainers"] = (0..dice.between(1, 2)).map(|i| init(dice, i)).collect();
    }
    if dice.chance(8) {
        spec["runtimeClassName"] = json!(RUNTIME);
    }
    if dice.chance(40) {
        spec["priorityClassName"] = json!(PRIORITIES[dice.index(PRIORITIES.len())].0);
    }
    if dice.chance(12) {
        spec["nodeSelector"] = match dice.index(4) {
            0 => json!({ "disk": dice.pick(&["hdd", "nvme", "ssd"]) }),
            1 => json!({ "kubernetes.io/arch": dice.pick(&["amd64", "arm64"]) }),
            2 => json!({ "kubernetes.io/arch": "amd64", super::REGION: dice.pick(&["east", "west"]) }),
            _ => json!({ super::ZONE: dice.pick(&["z1", "z2", "z3", "z4"]) }),
        };
    }
    let mut affinity = Map::new();
    for (key, terms) in [
        ("nodeAffinity", node_affinity(dice, nodes, 18, 30)),
        ("podAffinity", pod_affinity(dice, 10, 15, &labels)),
        ("podAntiAffinity", pod_affinity(dice, 10, 15, &labels)),
    ] {
        if terms != json!({}) {
            affinity.insert(key.to_owned(), terms);
        }
    }
    if !affinity.is_empty() {
        spec["affinity"] = affinity.into();
    }
    if dice.chance(30) {
        spec["topologySpreadConstraints"] = spread_constraints(dice, &labels);
    }
    if dice.chance(45) {
        spec["tolerations"] = tolerations(dice);
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// Labels of a pod; any may lack.
pub(crate) fn labels(dice: &mut Dice) -> Value {
    let mut labels = json!({});
    for (key, values, percent) in
        [("app", &APPS[..], 90), ("tier", &TIERS[..], 50), ("rev", &REVISIONS[..], 60), ("owner", &["x", "y"][..], 30)]
    {
        if dice.chance(percent) {
            labels[key] = json!(dice.pick(values));
        }
    }
    labels
}

/// Host ports of a pod so far: the API wants no two alike.
#[derive(Default)]
struct Ports(Vec<(i64, &'static str, &'static str)>);

fn container(dice: &mut Dice, name: &str, ports: &mut Ports) -> Value {
    let image = if dice.chance(20) { "registry.example/none:7" } else { IMAGES[dice.index(IMAGES.len())].0 };
    // Without its tag it is the same image.
    let image = if dice.chance(50) { image.strip_suffix(":latest").unwrap_or(image) } else { image };
    let mut container = json!({ "name": name, "image": image, "resources": resources(dice) });
    if dice.chance(10) {
        let port = dice.between(8000, 8002);
        let protocol = dice.pick(&["TCP", "TCP", "UDP", "SCTP"]);
        let ip = dice.pick(&["", "", "127.0.0.1", "10.0.0.1", "0.0.0.0"]);
        if !ports.0.contains(&(port, protocol, ip)) {
            ports.0.push((port, protocol, ip));
            let mut wanted = json!({ "containerPort": port, "hostPort": port, "protocol": protocol });
            if !ip.is_empty() {
                wanted["hostIP"] = json!(ip);
            }
            container["ports"] = json!([wanted]);
        }
    }
    container
}

fn resources(dice: &mut Dice) -> Value {
    let (mut requests, mut limits) = (json!({}), json!({}));
    if dice.chance(60) {
        requests["cpu"] = json!(if dice.chance(5) { "0".to_owned() } else { format!("{}m", dice.between(1, 900)) });
    }
    if dice.chance(55) {
        let memory = dice.between(1, 1500);
        requests["memory"] =
            json!(if dice.chance(50) { format!("{memory}Mi") } else { (memory * 1_000_003).to_string() });
    }
    if dice.chance(8) {
        requests["ephemeral-storage"] = json!(format!("{}Mi", dice.between(100, 9000)));
    }
    if dice.chance(6) {
        // What is limited and not requested is requested.
        limits["cpu"] = json!("1");
        limits["memory"] = json!("1600Mi");
    }
    if dice.chance(6) {
        limits[GPU] = json!(dice.between(0, 2).to_string());
    }
    json!({ "requests": requests, "limits": limits })
}
