//! Preemption and reclaim through the Eviction API, with disruption budgets whose status the real controller computes.

use serde_json::{Value, json};

use crate::harness::{Stage, pod, text};

/// What decides, without the plugin that would ask the budgets beforehand.
const CONF: &str = r#"
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"#;

/// The same with it.
const CONF_WITH_BUDGETS: &str = r#"
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"#;

async fn class(stage: &Stage, name: &str, value: i32) {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name }, "value": value,
    });
    stage.create(&class).await;
}

/// A job of single pods: any of them may go.
async fn job(stage: &Stage, name: &str, n: usize, min: usize, queue: &str, class: Option<&str>) {
    let mut spec = json!({ "minMember": min, "queue": queue });
    if let Some(class) = class {
        spec["priorityClassName"] = json!(class);
    }
    stage
        .create(&json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": { "name": name, "namespace": "default" }, "spec": spec,
        }))
        .await;
    for i in 0..n {
        let mut pod = pod(&format!("{name}-{i}"), Some(name), "1");
        if let Some(class) = class {
            pod["spec"]["priorityClassName"] = json!(class);
        }
        stage.create(&pod).await;
    }
}

/// A budget for the pods of a job, once the controller has said how many may go.
async fn budget(stage: &Stage, job: &str, min_available: usize, allowed: i64) {
    let spec = json!({ "minAvailable": min_available, "selector": { "matchLabels": { "group": job } } });
    let metadata = json!({ "name": job, "namespace": "default" });
    stage
        .create(
            &json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec }),
        )
        .await;
    let budgets = stage.api("policy/v1", "PodDisruptionBudget", None);
    stage
        .eventually("the controller has computed the budget", async || {
            let status = budgets.get(job).await.map_err(text)?.data["status"].clone();
            let is = (status["currentHealthy"].as_i64(), status["disruptionsAllowed"].as_i64());
            let healthy = i64::try_from(min_available).ok().map(|min| min + allowed);
            if is == (healthy, Some(allowed)) { Ok(()) } else { Err(format!("it is {status}")) }
        })
        .await;
}

async fn queue(stage: &Stage, name: &str) {
    let metadata = json!({ "name": name });
    let spec: Value = json!({ "weight": 1 });
    stage
        .create(&json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata, "spec": spec,
        }))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_refuses_victims_and_others_go_in_their_place() {
    let Some(stage) = Stage::new().await else { return };
    for (name, value) in [("low", 10), ("mid", 50), ("high", 1_000)] {
        class(&stage, name, value).await;
    }
    stage.nodes(1, "4", "16Gi").await;
    let conf = stage.configure(CONF);
    let krafla =
        stage.krafla_with(stage.control_plane.kubeconfig(), &["--leader-elect=false", "--scheduler-conf", &conf]);
    job(&stage, "cheap", 2, 0, "default", Some("low")).await;
    job(&stage, "dear", 2, 0, "default", Some("mid")).await;
    stage.until_running("group=cheap", 2).await;
    stage.until_running("group=dear", 2).await;
    budget(&stage, "cheap", 2, 0).await;

    job(&stage, "high", 2, 2, "default", Some("high")).await;
    stage.until_event("cheap-0", "EvictionRefused", "budget").await;
    stage.until_running("group=high", 2).await;
    assert_eq!(stage.bound("group=cheap").await, Ok(2), "the budget allowed none of them to go");
    assert_eq!(stage.bound("group=dear").await, Ok(0));
    for victim in ["dear-0", "dear-1"] {
        let said = stage.events(victim).await;
        assert!(said.iter().any(|(reason, text)| reason == "Evict" && text.contains("default/high")), "{said:?}");
    }
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_reclaims_its_due_and_no_more_than_a_budget_allows() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(2, "4", "16Gi").await;
    for name in ["first", "second"] {
        queue(&stage, name).await;
    }
    let conf = stage.configure(CONF_WITH_BUDGETS);
    let krafla =
        stage.krafla_with(stage.control_plane.kubeconfig(), &["--leader-elect=false", "--scheduler-conf", &conf]);
    job(&stage, "kept", 4, 1, "first", None).await;
    stage.until_running("group=kept", 4).await;
    job(&stage, "lent", 4, 1, "first", None).await;
    stage.until_running("group=lent", 4).await;
    budget(&stage, "kept", 3, 1).await;

    job(&stage, "owner", 4, 4, "second", None).await;
    stage.until_running("group=owner", 4).await;
    let left = (stage.bound("group=kept").await, stage.bound("group=lent").await);
    match left {
        (Ok(kept), Ok(lent)) => {
            assert!(kept >= 3, "{kept} are left of those of which three have to be");
            assert_eq!(kept + lent, 4, "a queue is due half of eight");
        }
        other => panic!("{other:?}"),
    }
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}
