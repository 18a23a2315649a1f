//! What an API server insists upon and a scenario leaves out, because no scheduling depends on it.

use k8s_openapi::api::core::v1 as core;
use krafla_api::keys;
use serde_json::{Map, Value, json};

/// Label of every object that a scenario makes: its name.
pub(crate) const LABEL: &str = "krafla.io/scenario";
/// KWOK's mark of nodes that it looks after.
const KWOK: &str = "kwok.x-k8s.io/node";

/// The name of a scenario as the value of a label.
pub(crate) fn label_value(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let text: String = name.chars().map(plain).take(63).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// Marks an object as of a scenario, and the pods that a controller will make of it.
pub(crate) fn mark(object: &mut Value, label: &str) {
    mark_one(object.get_mut("metadata"), label);
    let Some(spec) = object.get_mut("spec") else { return };
    if let Some(template) = spec.get_mut("template").and_then(Value::as_object_mut) {
        mark_one(Some(template.entry("metadata").or_insert_with(|| json!({}))), label);
    }
    for task in spec.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(template) = task.get_mut("template").and_then(Value::as_object_mut) {
            mark_one(Some(template.entry("metadata").or_insert_with(|| json!({}))), label);
        }
    }
}

fn mark_one(meta: Option<&mut Value>, label: &str) {
    if let Some(meta) = meta.and_then(Value::as_object_mut) {
        let labels = meta.entry("labels").or_insert_with(|| json!({}));
        if labels.is_null() {
            *labels = json!({});
        }
        labels[LABEL] = json!(label);
    }
}

/// A node that KWOK, if it is there, keeps alive.
pub(crate) fn for_kwok(node: &mut Value) {
    if let Some(meta) = node.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.entry("annotations").or_insert_with(|| json!({}))[KWOK] = json!("fake");
    }
}

/// Completes a pod: images, limits of what cannot be shared out twice, the scheduler. A priority that is its own stands
/// in Volcano's annotation, since the admission of priorities takes none that is not of a class.
pub(crate) fn complete(pod: &mut Value, scheduler: &str) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.entry("schedulerName").or_insert_with(|| json!(scheduler));
    spec.entry("restartPolicy").or_insert_with(|| json!("Never"));
    let priority = spec.remove("priority").filter(|priority| !priority.is_null());
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if !container["image"].is_string() {
                container["image"] = json!("krafla.io/none:0");
            }
            limit(container);
        }
    }
    if let Some(priority) = priority {
        pod["metadata"]["annotations"][keys::TASK_PRIORITY] = json!(priority.to_string());
    }
}

/// Limits for extended resources and huge pages, which the API wants equal to the requests.
fn limit(container: &mut Value) {
    let requests = container["resources"]["requests"].as_object().cloned().unwrap_or_default();
    let whole = |name: &str| name.contains('/') || name.starts_with("hugepages-");
    let limits: Map<String, Value> = requests.into_iter().filter(|(name, _)| whole(name)).collect();
    for (name, amount) in limits {
        let own = &mut container["resources"]["limits"][&name];
        if own.is_null() {
            *own = amount;
        }
    }
}

/// Whether a pod that was read back still has a gate that a manifest does not have.
pub(crate) fn keeps_gates(live: &core::Pod, manifest: &Value) -> bool {
    let has = live.spec.as_ref().is_some_and(|spec| spec.scheduling_gates.iter().flatten().next().is_some());
    has && manifest["spec"]["schedulingGates"].as_array().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_of_a_scenario_becomes_one_that_an_api_server_takes() {
        let mut pod = json!({
            "metadata": {"name": "p", "annotations": {}},
            "spec": {"priority": 5, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": 2}}}]},
        });
        complete(&mut pod, "volcano");
        assert_eq!(pod["spec"]["schedulerName"], "volcano");
        assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"], json!({"nvidia.com/gpu": 2}));
        assert!(pod["spec"]["containers"][0]["image"].is_string() && pod["spec"].get("priority").is_none());
        assert_eq!(pod["metadata"]["annotations"][keys::TASK_PRIORITY], "5");
    }

    #[test]
    fn pods_of_a_template_are_marked_too() {
        let mut deployment = json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": {}}}});
        mark(&mut deployment, "s");
        assert_eq!(deployment["metadata"]["labels"], json!({LABEL: "s"}));
        assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], json!({LABEL: "s"}));
    }

    #[test]
    fn a_name_becomes_a_label() {
        assert_eq!(label_value("a gang, waiting!"), "a-gang--waiting");
        assert_eq!(label_value(&"x".repeat(99)).len(), 63);
    }
}
