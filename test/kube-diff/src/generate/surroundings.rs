//! What stands about the pods: namespaces, classes, services and owners.

use serde_json::{Value, json};

use super::{APPS, NAMESPACES, PRIORITIES, RUNTIME, TIERS};
use crate::dice::Dice;

/// Namespaces with their labels.
pub(crate) fn namespaces(dice: &mut Dice) -> Vec<Value> {
    let namespace = |name: &&str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": namespace_labels(dice) } });
    NAMESPACES.iter().map(namespace).collect()
}

/// Labels of a namespace, beside its name's.
pub(crate) fn namespace_labels(dice: &mut Dice) -> Value {
    let mut labels = json!({});
    if dice.chance(70) {
        labels["team"] = json!(dice.pick(&["a", "b"]));
    }
    if dice.chance(50) {
        labels["stage"] = json!(dice.pick(&["production", "test"]));
    }
    labels
}

/// Classes of priority, of whose pods none preempts unless `preempt`.
pub(crate) fn priority_classes(preempt: bool) -> Vec<Value> {
    let policy = if preempt { "PreemptLowerPriority" } else { "Never" };
    let class = |(name, value): &(&str, i32)| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name },
            "value": value, "globalDefault": *name == PRIORITIES[0].0, "preemptionPolicy": policy,
        })
    };
    PRIORITIES.iter().map(class).collect()
}

/// The class of runtimes with an overhead.
pub(crate) fn runtime_class() -> Value {
    json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": { "name": RUNTIME }, "handler": "boxed",
        "overhead": { "podFixed": { "cpu": "75m", "memory": "33Mi" } },
    })
}

/// A service, which pods of its selector are spread for.
pub(crate) fn service(dice: &mut Dice, name: &str) -> Value {
    let mut selector = json!({ "app": dice.pick(&APPS) });
    if dice.chance(30) {
        selector["tier"] = json!(dice.pick(&TIERS));
    }
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": dice.pick(&NAMESPACES) },
        "spec": { "ports": [{ "port": 80 }], "clusterIP": "None", "selector": selector },
    });
    if dice.chance(10) {
        service["spec"]["selector"] = Value::Null;
    }
    service
}

/// A ReplicaSet that owns pods. Nobody makes its pods: no controller runs.
pub(crate) fn replica_set(dice: &mut Dice, name: &str) -> Value {
    let app = dice.pick(&APPS);
    let mut selector = json!({ "matchLabels": { "app": app } });
    if dice.chance(30) {
        selector["matchExpressions"] = json!([{ "key": "rev", "operator": "Exists" }]);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": { "name": name, "namespace": dice.pick(&NAMESPACES) },
        "spec": {
            "replicas": 0,
            "selector": selector,
            "template": {
                "metadata": { "labels": { "app": app, "rev": "1" } },
                "spec": { "containers": [{ "name": "c", "image": "registry.example/small" }] },
            },
        },
    })
}
