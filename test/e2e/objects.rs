//! Objects that change or go while they matter: the right end state, no phantom usage, and the reason in an event.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::harness::{Stage, pod, text};
use crate::proxy::{Mischief, Proxy};

fn queue(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": { "name": name },
        "spec": { "weight": 1 },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_close_open_and_go_with_jobs_in_them() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(2, "4", "16Gi").await;
    let krafla = stage.krafla();
    stage.create(&queue("q")).await;
    let state = async || -> Result<String, String> {
        let queue = stage.queues().get("q").await.map_err(text)?;
        Ok(queue.data["status"]["state"].as_str().unwrap_or_default().to_owned())
    };
    let until = async |wanted: &str| {
        stage
            .eventually(&format!("the queue is {wanted}"), async || match state().await? {
                is if is == wanted => Ok(()),
                is => Err(format!("it is {is}")),
            })
            .await;
    };
    until("Open").await;
    stage.gang("a", 2, 2, "1", "q").await;
    stage.until_running("group=a", 2).await;
    stage
        .eventually("the queue says what it holds", async || {
            let queue = stage.queues().get("q").await.map_err(text)?;
            let cpu = queue.data["status"]["allocated"]["cpu"].clone();
            if cpu == json!("2") { Ok(()) } else { Err(format!("cpu is {cpu}")) }
        })
        .await;

    // Closed with a job in it: that job goes on, and no other is let in.
    let close = json!({ "status": { "state": "Closing" } });
    let _ = stage.queues().patch_status("q", &PatchParams::default(), &Patch::Merge(close)).await.expect("closed");
    until("Closing").await;
    stage.gang("b", 1, 1, "1", "q").await;
    stage.until_event("b", "Unschedulable", "Clos").await;
    stage.until_event("b-0", "FailedScheduling", "queue").await;
    assert_eq!(stage.bound("group=b").await, Ok(0));
    for gang in ["a", "b"] {
        stage.pod_groups().delete(gang, &DeleteParams::default()).await.expect("deleted");
    }
    for pod in ["a-0", "a-1", "b-0"] {
        stage.delete_pod(pod).await;
    }
    until("Closed").await;
    let open = json!({ "status": { "state": "Open" } });
    let _ = stage.queues().patch_status("q", &PatchParams::default(), &Patch::Merge(open)).await.expect("opened");
    stage.gang("c", 1, 1, "1", "q").await;
    stage.until_running("group=c", 1).await;

    // Deleted with a job in it: what runs goes on; what comes waits and says why.
    stage.queues().delete("q", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_millis(500)).await;
    stage.gang("d", 1, 1, "1", "q").await;
    stage.until_event("d", "Unschedulable", "queue `q`").await;
    assert_eq!(stage.bound("group=c").await, Ok(1));
    stage.create(&queue("q")).await;
    stage.until_running("group=d", 1).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_podgroup_deleted_under_running_pods_leaves_no_phantom() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(1, "4", "16Gi").await;
    let krafla = stage.krafla();
    stage.gang("a", 4, 4, "1", "default").await;
    stage.until_running("group=a", 4).await;
    stage.pod_groups().delete("a", &DeleteParams::default()).await.expect("deleted");
    stage.gang("b", 4, 4, "1", "default").await;
    stage.until_event("b", "Unschedulable", "cpu").await;
    assert_eq!(stage.bound("group=b").await, Ok(0), "the pods of a still hold the node");
    for i in 0..4 {
        stage.delete_pod(&format!("a-{i}")).await;
    }
    stage.until_running("group=b", 4).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_deleted_while_its_bind_is_on_its_way_frees_its_room() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(1, "2", "16Gi").await;
    let proxy = Proxy::start(stage.client.clone(), stage.folder.path(), None, |_, _, pod| match pod {
        "late" => Mischief::Late(Duration::from_secs(4)),
        _ => Mischief::Pass,
    })
    .await;
    stage.create(&pod("late", None, "2")).await;
    let krafla = stage.krafla_with(proxy.kubeconfig(), &["--leader-elect=false"]);
    stage
        .eventually("the bind is on its way", async || match proxy.binds() {
            0 => Err("not yet".to_owned()),
            _ => Ok(()),
        })
        .await;
    stage.delete_pod("late").await;
    stage.create(&pod("next", None, "2")).await;
    stage.until_running("group=next", 1).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_vanishes_with_its_pods_is_not_counted_any_more() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(2, "2", "16Gi").await;
    let krafla = stage.krafla();
    stage.gang("a", 4, 1, "1", "default").await;
    stage.until_running("group=a", 4).await;
    let nodes: Api<Node> = Api::all(stage.client.clone());
    nodes.delete("n0", &DeleteParams::default()).await.expect("deleted");
    stage.gang("b", 1, 1, "1", "default").await;
    stage.until_event("b", "Unschedulable", "cpu").await;
    let pods: Vec<Pod> = stage.pods().list(&Default::default()).await.expect("pods").items;
    let on = |node: &'static str| {
        let here = move |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        pods.iter().filter(here).map(|pod| pod.metadata.name.as_deref().expect("a name"))
    };
    // What the collector of orphaned pods does, a minute sooner.
    for orphan in on("n0") {
        let _ = stage.pods().delete(orphan, &DeleteParams::default().grace_period(0)).await;
    }
    for survivor in on("n1").take(1) {
        stage.delete_pod(survivor).await;
    }
    stage.until_running("group=b", 1).await;
    stage.no_node_is_overfull().await;
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bind_that_the_server_forbids_is_told_in_an_event_and_holds_no_room() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(1, "5", "16Gi").await;
    let proxy = Proxy::start(stage.client.clone(), stage.folder.path(), None, |_, _, pod| match pod {
        "refused" => Mischief::Refuse(403, "exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5"),
        _ => Mischief::Pass,
    })
    .await;
    stage.create(&pod("refused", None, "2")).await;
    // Without a door, where an admitted job would keep its minimum.
    let conf =
        stage.configure("actions: \"allocate, backfill\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n");
    let krafla = stage.krafla_with(proxy.kubeconfig(), &["--leader-elect=false", "--scheduler-conf", &conf]);
    stage.until_event("refused", "FailedScheduling", "exceeded quota: team").await;
    // Its room is free for others while it waits: beside it this one would not fit.
    stage.create(&pod("other", None, "4")).await;
    stage.until_running("group=other", 1).await;
    assert_eq!(stage.bound("group=refused").await, Ok(0));
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_quota_keeps_a_job_at_the_door_and_says_so() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(2, "8", "16Gi").await;
    let conf = stage.configure(
        "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n  - name: resourcequota\n  - name: predicates\n  - name: proportion\n",
    );
    stage
        .create(&json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "team", "namespace": "default" },
            "spec": { "hard": { "requests.cpu": "2" } },
        }))
        .await;
    let krafla =
        stage.krafla_with(stage.control_plane.kubeconfig(), &["--leader-elect=false", "--scheduler-conf", &conf]);
    stage
        .create(&json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": { "name": "big", "namespace": "default" },
            "spec": { "minMember": 1, "minResources": { "requests.cpu": "3", "cpu": "3" } },
        }))
        .await;
    let message = stage.until_event("big", "Unschedulable", "team").await;
    assert!(message.contains('3'), "{message}");
    krafla.books_are_right().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_waits_says_why_with_numbers_where_people_look() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(2, "4", "16Gi").await;
    let krafla = stage.krafla();
    stage.gang("a", 3, 3, "3", "default").await;
    let message = stage.until_event("a-0", "FailedScheduling", "cpu").await;
    assert!(message.chars().any(|c| c.is_ascii_digit()), "{message}");
    stage
        .eventually("the condition says the same", async || {
            let pod = stage.pods().get("a-0").await.map_err(text)?;
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            let scheduled = conditions.into_iter().find(|one| one.type_ == "PodScheduled").ok_or("there is none")?;
            let said = scheduled.message.unwrap_or_default();
            if scheduled.reason.as_deref() == Some("Unschedulable") && said == message { Ok(()) } else { Err(said) }
        })
        .await;
    krafla.books_are_right().await;
}
