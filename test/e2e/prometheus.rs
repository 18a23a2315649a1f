//! A stand-in for Prometheus beside a real API server: what it answers well, slowly, hugely and wrongly, and what the
//! descheduler makes of it.

use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{Aside, PATIENCE, Stage, eventually, pod};

const QUERY: &str = "avg by (instance) (instance:node_cpu:rate:sum)";

/// How it answers.
#[derive(Clone, Debug)]
enum Manner {
    /// With this code and body.
    With(u16, String),
    /// With a good body, after so long.
    After(Duration),
    /// With a body that goes on for so many bytes.
    Huge(usize),
}

#[derive(Clone)]
struct StandIn {
    manner: Arc<Mutex<Manner>>,
    /// Queries that it was asked.
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Deserialize)]
struct Asked {
    query: String,
}

impl StandIn {
    async fn start() -> (Self, String, Aside) {
        let new = Self { manner: Arc::new(Mutex::new(Manner::With(503, String::new()))), asked: Arc::default() };
        let routes = Router::new().route("/api/v1/query", get(answer)).with_state(new.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Aside::run(async move { axum::serve(listener, routes).await.expect("it serves") });
        (new, url, server)
    }

    fn answers(&self, manner: Manner) {
        *self.manner.lock().expect("no panic") = manner;
    }

    fn n_asked(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }
}

async fn answer(State(stand_in): State<StandIn>, Query(asked): Query<Asked>) -> Response {
    stand_in.asked.lock().expect("no panic").push(asked.query);
    let manner = stand_in.manner.lock().expect("no panic").clone();
    match manner {
        Manner::With(code, body) => (StatusCode::from_u16(code).expect("a code"), body).into_response(),
        Manner::After(pause) => {
            tokio::time::sleep(pause).await;
            good().into_response()
        }
        Manner::Huge(bytes) => {
            let pieces = (0..bytes >> 16).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 16]));
            Body::from_stream(futures::stream::iter(pieces)).into_response()
        }
    }
}

/// As Prometheus 3 writes it: an instant vector. Another job's target is not a node of this cluster.
fn vector(values: &[(&str, &str)]) -> Value {
    let sample = |(instance, value): &(&str, &str)| {
        json!({ "metric": { "__name__": "instance:node_cpu:ratio", "instance": instance, "job": "node-exporter" },
                "value": [1_796_083_200.123, value] })
    };
    let samples: Vec<Value> = values.iter().map(sample).collect();
    json!({ "status": "success", "data": { "resultType": "vector", "result": samples } })
}

fn good() -> String {
    let mut body = vector(&[("n0", "0.9512"), ("n1", "0.05"), ("10.0.0.9:9100", "0.5"), ("n2", "4.2e-02")]);
    body["warnings"] = json!(["PromQL warning: 1 of 4 stores could not be reached"]);
    body["infos"] = json!(["PromQL info: metric might not be a counter, name does not end in _total"]);
    body["data"]["stats"] = json!({ "timings": { "evalTotalTime": 0.000_447 } });
    body.to_string()
}

fn policy(stage: &Stage, url: &str) -> String {
    let path = stage.folder.path().join("prometheus.yaml");
    let text = format!(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nmetricsProviders:\n- source: Prometheus\n  \
         prometheus: {{url: \"{url}\"}}\nprofiles:\n- name: p\n  pluginConfig:\n  - name: LowNodeUtilization\n    args:\n      \
         thresholds: {{MetricResource: 20}}\n      targetThresholds: {{MetricResource: 70}}\n      \
         metricsUtilization: {{source: Prometheus, prometheus: {{query: \"{QUERY}\"}}}}\n  \
         plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}\n"
    );
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// `krafla deschedule`, once.
async fn once(stage: &Stage, policy: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krafla"));
    command.args(["deschedule", "--policy", policy, "--kubeconfig"]).arg(stage.control_plane.kubeconfig());
    command.args(flags);
    tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.expect("it ends")
}

/// whatever Prometheus answers, a round ends, says why it does nothing, and evicts nobody; when the answer is good again, it
/// works, also in a scheduler that has run all the while.
#[tokio::test(flavor = "multi_thread")]
async fn prometheus_may_answer_slowly_hugely_and_wrongly() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(3, "8", "16Gi").await;
    let labels = json!({ "group": "web" });
    let template = pod("web", None, "1");
    let (stand_in, url, _server) = StandIn::start().await;
    let policy = policy(&stage, &url);
    let krafla = stage.krafla_that_deschedules(&policy);
    krafla.until_ready().await;
    // All on n0: the other nodes are open once these run.
    let cordon = |on: bool| json!({ "spec": { "unschedulable": on } });
    let nodes = stage.api("v1", "Node", None);
    let patch = kube::api::PatchParams::default();
    for name in ["n1", "n2"] {
        nodes.patch(name, &patch, &kube::api::Patch::Merge(&cordon(true))).await.expect("cordoned");
    }
    stage
        .create(&json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web", "namespace": "default" },
            "spec": { "replicas": 4, "selector": { "matchLabels": labels },
                      "template": { "metadata": { "labels": labels }, "spec": template["spec"] } },
        }))
        .await;
    stage.until_running("group=web", 4).await;
    for name in ["n1", "n2"] {
        nodes.patch(name, &patch, &kube::api::Patch::Merge(&cordon(false))).await.expect("uncordoned");
    }

    let failed = |code: u16, kind: &str, error: &str| {
        Manner::With(code, json!({ "status": "error", "errorType": kind, "error": error }).to_string())
    };
    let with = |body: Value| Manner::With(200, body.to_string());
    let wrong = [
        (Manner::With(200, "<html><body>Sign in</body></html>".to_owned()), "its answer is not what it should be"),
        (Manner::With(200, String::new()), "its answer is not what it should be"),
        (
            Manner::With(500, "upstream connect error".to_owned()),
            "it answers 500 Internal Server Error: upstream connect",
        ),
        (failed(400, "bad_data", "1:5: parse error: unexpected end of input"), "unexpected end of input"),
        (failed(503, "timeout", "query timed out in expression evaluation"), "query timed out"),
        (failed(200, "execution", "many-to-many matching not allowed"), "the query failed: many-to-many"),
        (
            with(json!({ "status": "success", "data": { "resultType": "scalar", "result": [1.5, "0.5"] } })),
            "a vector is needed",
        ),
        (
            with(json!({ "status": "success", "data": { "resultType": "matrix", "result": [
                { "metric": { "instance": "n0" }, "values": [[1.5, "0.5"]] }] } })),
            "a vector is needed",
        ),
        (with(vector(&[("n0", "0.95"), ("n1", "NaN"), ("n2", "0.05")])), "the value of n1 is NaN"),
        (with(vector(&[("n0", "95"), ("n1", "5"), ("n2", "5")])), "has to be from 0 to 1"),
        (with(vector(&[("n0", "0.95"), ("n2", "0.05")])), "the use of node n1 was not measured"),
        (with(vector(&[("10.0.0.1:9100", "0.95")])), "was not measured"),
        (with(vector(&[])), "was not measured"),
        (Manner::Huge(64 << 20), "larger than 16 MiB"),
        (Manner::After(Duration::from_secs(60)), "no whole answer within 10000 ms"),
    ];
    for (manner, says) in wrong {
        stand_in.answers(manner.clone());
        let (began, before) = (Instant::now(), stand_in.n_asked());
        let done = once(&stage, &policy, &[]).await;
        let said = String::from_utf8_lossy(&done.stderr).to_string();
        assert!(done.status.success() && said.contains(says), "{manner:?}: {done:?}");
        assert!(stand_in.n_asked() > before && began.elapsed() < Duration::from_secs(30), "{manner:?}: {said}");
        assert_eq!(String::from_utf8_lossy(&done.stdout).matches("evicts ").count(), 0, "{manner:?}: {done:?}");
    }
    assert_eq!(stage.bound("group=web").await, Ok(4));
    assert!(!krafla.log().contains("evicted:"), "nobody has gone\n{}", krafla.log());

    // Well again. A good answer with warnings, infos and a target that is no node.
    stand_in.answers(Manner::With(200, good()));
    let said = once(&stage, &policy, &["--dry-run"]).await;
    let out = String::from_utf8_lossy(&said.stdout).to_string();
    assert_eq!(out.matches("would evict default/web-").count(), 1, "one of a busy node in a round: {said:?}");
    assert!(out.contains("95.1% of MetricResource is used on the node, and 70% is the target"), "{out}");
    let key = "descheduler_pods_evicted_total{result=\"success\",strategy=\"LowNodeUtilization\",profile=\"p\",\
               namespace=\"default\",node=\"n0\"}";
    // It asks every 30 seconds, and may just have begun to wait for an answer.
    let patience = 2 * PATIENCE;
    eventually("the scheduler, which has run all the while, evicts", patience, async || {
        match krafla.metric(key).await {
            Some(n) if n > 0.5 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    stage.until_running("group=web", 4).await;
    assert!(stand_in.asked.lock().expect("no panic").iter().all(|query| query == QUERY), "the query as it was written");
    assert!(krafla.log().contains("known again"), "{}", krafla.log());
    krafla.books_are_right().await;
}
