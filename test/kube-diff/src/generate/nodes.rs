//! Nodes.

use serde_json::{Map, Value, json};

use super::{EFFECTS, GPU, HOSTNAME, IMAGES, REGION, TAINTS, ZONE};
use crate::dice::Dice;

/// A node of this name, status included.
pub(crate) fn node(dice: &mut Dice, name: &str) -> Value {
    let resources = resources(dice);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": labels(dice, name) },
        "spec": { "taints": taints(dice, 35), "unschedulable": dice.chance(6) },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{ "type": "Ready", "status": "True" }],
            "images": images(dice),
        },
    })
}

/// Labels. Any of them may lack, the host's name too.
pub(crate) fn labels(dice: &mut Dice, name: &str) -> Map<String, Value> {
    let mut labels = Map::new();
    let mut put = |dice: &mut Dice, percent: u32, key: &str, value: &str| {
        if dice.chance(percent) {
            labels.insert(key.to_owned(), json!(value));
        }
    };
    let zone = dice.between(1, 4);
    put(dice, 85, ZONE, &format!("z{zone}"));
    put(dice, 80, REGION, if zone < 3 { "east" } else { "west" });
    put(dice, 95, HOSTNAME, name);
    let disk = dice.pick(&["hdd", "nvme", "ssd"]);
    put(dice, 60, "disk", disk);
    let rack = dice.pick(&["r1", "r2", "r3", "r4"]);
    put(dice, 40, "rack", rack);
    let arch = dice.pick(&["amd64", "amd64", "arm64"]);
    put(dice, 90, "kubernetes.io/arch", arch);
    let generation = dice.pick(&["1", "2", "5", "9", "10", "third"]);
    put(dice, 60, "generation", generation);
    put(dice, 20, "empty", "");
    labels
}

/// Taints of all effects, on so many nodes of a hundred.
pub(crate) fn taints(dice: &mut Dice, percent: u32) -> Value {
    let mut taints: Vec<Value> = Vec::new();
    let mut percent = percent;
    while dice.chance(percent) && taints.len() < 3 {
        let (key, value) = TAINTS[dice.index(TAINTS.len())];
        let effect = if dice.chance(50) { "PreferNoSchedule" } else { dice.pick(&EFFECTS) };
        // A node has one taint for each key and effect.
        if taints.iter().all(|taint| taint["key"] != key || taint["effect"] != effect) {
            taints.push(json!({ "key": key, "value": value, "effect": effect }));
        }
        percent = 40;
    }
    json!(taints)
}

/// What is allocatable; seldom round.
pub(crate) fn resources(dice: &mut Dice) -> Value {
    let cores = dice.between(1, 16);
    let cpu = if dice.chance(50) { cores.to_string() } else { format!("{}m", cores * 1000 - dice.between(1, 400)) };
    let memory = if dice.chance(50) {
        format!("{}Gi", cores * 3)
    } else {
        (cores * 4_000_000_000 - dice.between(0, 999_999)).to_string()
    };
    let pods = if dice.chance(15) { dice.between(1, 6) } else { dice.between(20, 110) };
    let mut resources = json!({ "cpu": cpu, "memory": memory, "pods": pods.to_string() });
    if dice.chance(70) {
        resources["ephemeral-storage"] = json!(format!("{}Gi", dice.between(5, 200)));
    }
    if dice.chance(35) {
        resources[GPU] = json!(dice.between(0, 8).to_string());
    }
    resources
}

/// Images on the node; one may have several names.
pub(crate) fn images(dice: &mut Dice) -> Value {
    let held: Vec<Value> = IMAGES
        .iter()
        .filter(|_| dice.chance(35))
        .map(|(name, bytes)| json!({ "names": [format!("{name}-digest"), name], "sizeBytes": bytes }))
        .collect();
    json!(held)
}
