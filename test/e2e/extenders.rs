//! An extender over HTTP, on a real API server: it filters, scores, and binds.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use k8s_openapi::api::core::v1::{Binding, ObjectReference};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use serde_json::{Value, json};

use crate::harness::{Stage, pod};

/// What the extender has been sent.
type Asked = Arc<Mutex<Vec<Value>>>;

#[derive(Clone)]
struct Extender {
    client: kube::Client,
    asked: Asked,
}

/// Serves an extender that refuses `n0`, prefers `n2`, and binds itself.
async fn serve(client: kube::Client) -> (String, Asked) {
    let asked = Asked::default();
    let routes = Router::new()
        .route("/filter", post(filter))
        .route("/prioritize", post(prioritize))
        .route("/bind", post(bind))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(Extender { client, asked: Arc::clone(&asked) });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, asked)
}

fn read(body: &Bytes) -> Value {
    serde_json::from_slice(body).expect("it is sent JSON")
}

async fn filter(State(extender): State<Extender>, body: Bytes) -> String {
    let args = read(&body);
    extender.asked.lock().expect("no panic").push(args.clone());
    let items = args["Nodes"]["items"].as_array().cloned().unwrap_or_default();
    let (refused, passed): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|node| node["metadata"]["name"] == "n0");
    let failed: serde_json::Map<String, Value> = refused
        .iter()
        .filter_map(|node| Some((node["metadata"]["name"].as_str()?.to_owned(), json!("no licence here"))))
        .collect();
    json!({ "Nodes": { "items": passed }, "FailedNodes": failed }).to_string()
}

async fn prioritize(body: Bytes) -> String {
    let args = read(&body);
    let items = args["Nodes"]["items"].as_array().cloned().unwrap_or_default();
    let score = |node: &Value| if node["metadata"]["name"] == "n2" { 10 } else { 0 };
    let scores: Vec<Value> =
        items.iter().map(|node| json!({ "Host": node["metadata"]["name"], "Score": score(node) })).collect();
    json!(scores).to_string()
}

async fn bind(State(extender): State<Extender>, body: Bytes) -> String {
    let args = read(&body);
    extender.asked.lock().expect("no panic").push(args.clone());
    let text = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
    let binding = Binding {
        metadata: ObjectMeta { name: Some(text("PodName")), uid: Some(text("PodUID")), ..ObjectMeta::default() },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(text("Node")),
            ..ObjectReference::default()
        },
    };
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(extender.client, &text("PodNamespace"));
    let name = text("PodName");
    let sent =
        pods.create_subresource::<_, kube::core::Status>("binding", &name, &PostParams::default(), &binding).await;
    json!({ "Error": sent.err().map(|error| error.to_string()).unwrap_or_default() }).to_string()
}

//
#[tokio::test(flavor = "multi_thread")]
async fn an_extender_filters_scores_and_binds() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(3, "4", "8Gi").await;
    let (url, asked) = serve(stage.client.clone()).await;
    let file = stage.configure(&format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n- urlPrefix: {url}\n  \
         filterVerb: filter\n  prioritizeVerb: prioritize\n  bindVerb: bind\n  weight: 100\n"
    ));
    let flags = ["--leader-elect=false", "--profile-only", "--config", &file];
    let _krafla = stage.krafla_with(stage.control_plane.kubeconfig(), &flags);
    for (name, cpu) in [("first", "1"), ("second", "3"), ("third", "3")] {
        let mut pod = pod(name, None, cpu);
        pod["spec"]["schedulerName"] = json!("default-scheduler");
        stage.create(&pod).await;
        stage.until_running(&format!("group={name}"), 1).await;
    }
    let pods = stage.pods().list(&Default::default()).await.expect("listed").items;
    let node = |name: &str| {
        let pod = pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name)).expect("it is there");
        pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
    };
    assert_eq!([node("first"), node("second"), node("third")], ["n2", "n2", "n1"]);

    let mut last = pod("last", None, "3");
    last["spec"]["schedulerName"] = json!("default-scheduler");
    stage.create(&last).await;
    stage.until_event("last", "FailedScheduling", "1 no licence here").await;

    let asked = asked.lock().expect("no panic");
    let bound = asked.iter().filter_map(|sent| sent["PodName"].as_str()).collect::<Vec<_>>();
    assert_eq!(bound, ["first", "second", "third"], "each pod is bound by the extender, once");
    let sent = &asked[0];
    assert_eq!(sent["Pod"]["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1", "pods are sent whole");
    assert!(sent["Nodes"]["items"][0]["status"]["allocatable"].is_object(), "and so are nodes");
}
