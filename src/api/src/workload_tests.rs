use serde_json::{Value, json};

use super::*;
use crate::object::Object;

fn read(api_version: &str, kind: &str, spec: Value) -> (Workload, Vec<String>) {
    let value =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w", "namespace": "ns"}, "spec": spec});
    match Object::read(&value).expect("a workload") {
        (Object::Workload(workload), problems) => (*workload, problems),
        (other, _) => panic!("{other:?}"),
    }
}

fn names(workload: &Workload) -> Vec<String> {
    workload.pods().filter_map(|pod| pod.metadata.name).collect()
}

#[test]
fn pods_have_the_names_that_controllers_give() {
    for (api_version, kind, spec, want, at_once) in [
        ("apps/v1", "Deployment", json!({"replicas": 2}), &["w-0", "w-1"][..], 2),
        ("apps/v1", "ReplicaSet", json!({}), &["w-0"], 1),
        ("apps/v1", "StatefulSet", json!({"replicas": 2, "ordinals": {"start": 5}}), &["w-5", "w-6"], 1),
        ("apps/v1", "StatefulSet", json!({"replicas": 2, "podManagementPolicy": "Parallel"}), &["w-0", "w-1"], 2),
        ("batch/v1", "Job", json!({}), &["w-0"], 1),
        ("batch/v1", "Job", json!({"completions": 3, "parallelism": 2}), &["w-0", "w-1", "w-2"], 2),
        ("batch/v1", "Job", json!({"parallelism": 2}), &["w-0", "w-1"], 2),
        ("batch/v1", "Job", json!({"completions": 2, "suspend": true}), &["w-0", "w-1"], 0),
        ("batch.volcano.sh/v1alpha1", "Job", json!({"tasks": [{"replicas": 2}]}), &["w-default0-0", "w-default0-1"], 2),
    ] {
        let (workload, problems) = read(api_version, kind, spec);
        assert_eq!(problems, [""; 0]);
        assert_eq!(names(&workload), want, "{kind}");
        assert_eq!(workload.parts[0].at_once, at_once, "{kind}");
        assert_eq!(workload.kind.as_str(), kind);
    }
}

#[test]
fn a_pod_is_its_template_with_an_owner() {
    let (workload, _) = read(
        "apps/v1",
        "Deployment",
        json!({"template": {
            "metadata": {"labels": {"app": "x"}, "annotations": {"krafla.io/runtime": "5s"}},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]},
        }}),
    );
    let pod = workload.pod(&workload.parts[0], 0);
    assert_eq!(pod.metadata.namespace.as_deref(), Some("ns"));
    assert_eq!(pod.metadata.labels.as_ref().and_then(|labels| labels.get("app")).map(String::as_str), Some("x"));
    assert_eq!(annotation(&pod.metadata, keys::RUNTIME), Some("5s"));
    let owner = &pod.metadata.owner_references.as_ref().expect("an owner")[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str(), owner.controller), ("Deployment", "w", Some(true)));
    assert_eq!(crate::group::implicit_group_name(&pod), "podgroup-deployment-w");
    assert_eq!(pod.spec.and_then(|spec| spec.scheduler_name).as_deref(), Some("volcano"));
}

#[test]
fn pods_of_a_volcano_job_know_their_job() {
    let (workload, problems) = read(
        "batch.volcano.sh/v1alpha1",
        "Job",
        json!({
            "schedulerName": "krafla", "queue": "q", "priorityClassName": "high", "minAvailable": 3,
            "tasks": [
                {"name": "ps", "replicas": 1, "template": {"spec": {"priorityClassName": "low", "containers": [{"name": "c"}]}}},
                {"name": "worker", "replicas": 4, "partitionPolicy": {"partitionSize": 2}, "template": {"spec": {"containers": [{"name": "c"}]}}},
            ],
        }),
    );
    assert_eq!(problems, [""; 0]);
    assert_eq!(names(&workload), ["w-ps-0", "w-worker-0", "w-worker-1", "w-worker-2", "w-worker-3"]);
    let pod = workload.pod(&workload.parts[1], 3);
    assert_eq!(crate::pod::group_of(&pod), Some("w"));
    assert_eq!(annotation(&pod.metadata, keys::TASK_SPEC), Some("worker"));
    assert_eq!(crate::report::label(&pod.metadata, keys::PARTITION_ID), Some("1"));
    let spec = pod.spec.expect("a spec");
    assert_eq!((spec.scheduler_name.as_deref(), spec.priority_class_name.as_deref()), (Some("krafla"), Some("high")));
    let ps = workload.pod(&workload.parts[0], 0);
    assert_eq!(ps.spec.and_then(|spec| spec.priority_class_name).as_deref(), Some("low"));
    assert_eq!(workload.gang.as_ref().map(|gang| gang.min_available), Some(3));
    assert_eq!(workload.n_pods(), 5);
}

#[test]
fn counts_out_of_range_are_said() {
    let (workload, problems) = read("apps/v1", "Deployment", json!({"replicas": -2}));
    assert_eq!(
        (workload.n_pods(), problems[0].as_str()),
        (0, "spec.replicas is -2, not a number of pods; it counts as 0")
    );
    let (workload, problems) = read("batch/v1", "Job", json!({"completions": 2_000_000_000, "parallelism": 5}));
    assert_eq!(workload.n_pods(), MOST_PODS);
    assert!(problems[0].contains("more than 1000000"), "{problems:?}");
    let (workload, _) = read(
        "batch.volcano.sh/v1alpha1",
        "Job",
        json!({"tasks": [{"replicas": 3, "partitionPolicy": {"partitionSize": 0}}]}),
    );
    assert_eq!(names(&workload).len(), 3, "a partition of no pods is no partition");
}
