//! Node affinity, affinity between pods, spread constraints and tolerations.

use serde_json::{Value, json};

use super::{APPS, EFFECTS, NAMESPACES, REVISIONS, TAINTS, TIERS, TOPOLOGIES};
use crate::dice::Dice;

/// Node affinity, of so many pods of a hundred the required and the preferred kind.
pub(crate) fn node_affinity(dice: &mut Dice, nodes: &[String], required: u32, preferred: u32) -> Value {
    let mut affinity = json!({});
    if dice.chance(required) {
        let mut terms: Vec<Value> = (0..dice.between(1, 2)).map(|_| node_term(dice, nodes)).collect();
        if dice.chance(4) {
            terms.push(json!({}));
        }
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = json!({ "nodeSelectorTerms": terms });
    }
    if dice.chance(preferred) {
        let terms: Vec<Value> = (0..dice.between(1, 3))
            .map(|_| {
                let term = if dice.chance(8) { json!({}) } else { node_term(dice, nodes) };
                json!({ "weight": dice.between(1, 100), "preference": term })
            })
            .collect();
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = json!(terms);
    }
    affinity
}

fn node_term(dice: &mut Dice, nodes: &[String]) -> Value {
    let mut term = json!({});
    if dice.chance(12) && !nodes.is_empty() {
        let operator = dice.pick(&["In", "NotIn", "NotIn"]);
        // Kubernetes takes one name for each condition.
        let name = if dice.chance(5) { "gone" } else { &nodes[dice.index(nodes.len())] };
        term["matchFields"] = json!([{ "key": "metadata.name", "operator": operator, "values": [name] }]);
        if dice.chance(50) {
            return term;
        }
    }
    let n = dice.between(1, 2);
    term["matchExpressions"] = (0..n).map(|_| node_expression(dice)).collect();
    term
}

fn node_expression(dice: &mut Dice) -> Value {
    let generation = |dice: &mut Dice, operator: &str| json!({ "key": "generation", "operator": operator, "values": [dice.between(0, 9).to_string()] });
    let (key, values): (&str, &[&str]) = match dice.index(6) {
        0 => ("disk", &["hdd", "nvme", "ssd"]),
        1 => ("rack", &["r1", "r2", "r3", "r4"]),
        2 => ("kubernetes.io/arch", &["amd64", "arm64"]),
        3 => (super::ZONE, &["z1", "z2", "z3", "z4"]),
        4 => ("empty", &["", "full"]),
        _ => ("generation", &["1", "2", "third"]),
    };
    match dice.index(8) {
        0 => generation(dice, "Gt"),
        1 => generation(dice, "Lt"),
        2 => json!({ "key": key, "operator": "Exists" }),
        3 => json!({ "key": key, "operator": "DoesNotExist" }),
        4 => json!({ "key": key, "operator": "NotIn", "values": dice.some(values, 1) }),
        _ => json!({ "key": key, "operator": "In", "values": dice.some(values, 1) }),
    }
}

/// Terms of affinity or anti-affinity between pods.
pub(crate) fn pod_affinity(dice: &mut Dice, required: u32, preferred: u32, labels: &Value) -> Value {
    let mut affinity = json!({});
    if dice.chance(required) {
        let n = if dice.chance(80) { 1 } else { 2 };
        let terms: Vec<Value> = (0..n).map(|_| pod_term(dice, labels)).collect();
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = json!(terms);
    }
    if dice.chance(preferred) {
        let terms: Vec<Value> = (0..dice.between(1, 2))
            .map(|_| json!({ "weight": dice.between(1, 100), "podAffinityTerm": pod_term(dice, labels) }))
            .collect();
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = json!(terms);
    }
    affinity
}

fn pod_term(dice: &mut Dice, labels: &Value) -> Value {
    let mut term = json!({ "topologyKey": dice.pick(&TOPOLOGIES) });
    // A term without a selector means no pod; an empty one means all.
    if !dice.chance(3) {
        term["labelSelector"] = selector(dice, labels);
        let both = dice.chance(5);
        if (dice.chance(8) || both) && !names_revision(&term["labelSelector"]) {
            term["matchLabelKeys"] = json!(["rev"]);
        }
        if dice.chance(5) || both {
            term["mismatchLabelKeys"] = json!(["owner"]);
        }
    }
    if dice.chance(20) {
        term["namespaces"] = json!(dice.some(&NAMESPACES, 1));
    }
    if dice.chance(20) {
        term["namespaceSelector"] = match dice.index(3) {
            0 => json!({}),
            1 => json!({ "matchLabels": { "team": dice.pick(&["a", "b"]) } }),
            _ => {
                json!({ "matchExpressions": [{ "key": "stage", "operator": dice.pick(&["Exists", "DoesNotExist"]) }] })
            }
        };
    }
    term
}

/// A selector of pods; often one that means the pod itself.
pub(crate) fn selector(dice: &mut Dice, labels: &Value) -> Value {
    if dice.chance(40) && labels.get("app").is_some() {
        return json!({ "matchLabels": { "app": labels["app"] } });
    }
    match dice.index(8) {
        0 => json!({}),
        1 => json!({ "matchLabels": { "app": dice.pick(&APPS), "tier": dice.pick(&TIERS) } }),
        2 => json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": dice.some(&APPS, 1) }] }),
        3 => json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": dice.some(&APPS, 1) }] }),
        4 => json!({ "matchExpressions": [{ "key": "tier", "operator": "Exists" }] }),
        5 => {
            json!({ "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }, { "key": "rev", "operator": "In", "values": dice.some(&REVISIONS, 1) }] })
        }
        _ => json!({ "matchLabels": { "app": dice.pick(&APPS) } }),
    }
}

/// Whether a selector asks for the key that is matched by itself: the API wants it in one place alone.
fn names_revision(selector: &Value) -> bool {
    selector["matchExpressions"].as_array().into_iter().flatten().any(|one| one["key"] == "rev")
}

/// Spread constraints, hard and soft, no two of one key and kind.
pub(crate) fn spread_constraints(dice: &mut Dice, labels: &Value) -> Value {
    let mut constraints: Vec<Value> = Vec::new();
    for _ in 0..dice.between(1, 3) {
        let key = dice.pick(&TOPOLOGIES);
        let hard = dice.chance(45);
        let when = if hard { "DoNotSchedule" } else { "ScheduleAnyway" };
        if constraints.iter().any(|one| one["topologyKey"] == key && one["whenUnsatisfiable"] == when) {
            continue;
        }
        let mut constraint = json!({ "maxSkew": dice.between(1, 4), "topologyKey": key, "whenUnsatisfiable": when });
        if !dice.chance(5) {
            constraint["labelSelector"] = selector(dice, labels);
            if dice.chance(15) && !names_revision(&constraint["labelSelector"]) {
                constraint["matchLabelKeys"] = json!(["rev"]);
            }
        }
        if hard && dice.chance(25) {
            constraint["minDomains"] = json!(dice.between(1, 5));
        }
        if dice.chance(25) {
            constraint["nodeAffinityPolicy"] = json!(dice.pick(&["Honor", "Ignore"]));
        }
        if dice.chance(35) {
            constraint["nodeTaintsPolicy"] = json!(dice.pick(&["Honor", "Ignore"]));
        }
        constraints.push(constraint);
    }
    json!(constraints)
}

/// Tolerations, some of them of everything.
pub(crate) fn tolerations(dice: &mut Dice) -> Value {
    let toleration = |dice: &mut Dice| {
        if dice.chance(4) {
            return json!({ "operator": "Exists" });
        }
        let (key, value) = TAINTS[dice.index(TAINTS.len())];
        let mut toleration = if dice.chance(50) {
            json!({ "key": key, "operator": "Exists" })
        } else {
            json!({ "key": key, "operator": "Equal", "value": value })
        };
        if dice.chance(10) {
            toleration = json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" });
        }
        if dice.chance(60) {
            let effect = dice.pick(&EFFECTS);
            toleration["effect"] = json!(effect);
            if effect == "NoExecute" && dice.chance(50) {
                toleration["tolerationSeconds"] = json!(3600);
            }
        }
        toleration
    };
    (0..dice.between(1, 4)).map(|_| toleration(dice)).collect()
}
