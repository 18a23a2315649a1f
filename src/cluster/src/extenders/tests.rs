use std::sync::Mutex as StdMutex;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use krafla_framework::ObjectRef;
use krafla_framework::effect::ClaimsToBind;

use super::*;
use crate::perform::fake::clients;

/// An extender that answers every verb so, and what it was sent.
async fn extender(answer: impl Fn(&Value) -> (u16, Value) + Clone + Send + Sync + 'static) -> (String, Sent) {
    let sent = Sent::default();
    let serve = |State(sent): State<Sent>, uri: axum::http::Uri, body: axum::body::Bytes| async move {
        let body: Value = serde_json::from_slice(&body).expect("it is sent JSON");
        let (code, answered) = answer(&body);
        sent.0.lock().expect("no panic").push((uri.path().to_owned(), body));
        let answered = if answered.is_null() { Vec::new() } else { answered.to_string().into_bytes() };
        (StatusCode::from_u16(code).expect("a code"), answered)
    };
    let app = Router::new().route("/base/{verb}", post(serve)).with_state(sent.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/base/", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, sent)
}

#[derive(Clone, Default)]
struct Sent(Arc<StdMutex<Vec<(String, Value)>>>);

impl Sent {
    fn last(&self) -> (String, Value) {
        self.0.lock().expect("no panic").last().cloned().expect("something was sent")
    }
}

fn policy(url: &str) -> ExtenderPolicy {
    ExtenderPolicy {
        url_prefix: url.to_owned(),
        filter_verb: Some("filter".to_owned()),
        prioritize_verb: Some("prioritize".to_owned()),
        preempt_verb: Some("preempt".to_owned()),
        bind_verb: Some("bind".to_owned()),
        weight: 1,
        http_timeout_ms: 2_000,
        node_cache_capable: true,
        ..ExtenderPolicy::default()
    }
}

fn pod() -> PodRef {
    PodRef { uid: "u1".into(), namespace: "ns".into(), name: "p".into() }
}

/// Calls on a server that has the pods `p` and `victim`, and two nodes.
fn calls(policy: &ExtenderPolicy) -> HttpExtenders {
    let (clients, _) = clients(|_, path| {
        let node = |name: &str| json!({ "metadata": { "name": name, "labels": { "zone": "z" } } });
        match path.split('?').next().unwrap_or_default() {
            "/api/v1/nodes" => {
                (200, json!({ "metadata": { "resourceVersion": "1" }, "items": [node("a"), node("b")] }))
            }
            path if path.ends_with("/pods/p") => (200, json!({ "metadata": { "name": "p", "uid": "u1" } })),
            path if path.ends_with("/pods/victim") => (200, json!({ "metadata": { "name": "victim", "uid": "v" } })),
            _ => (404, json!({ "status": "Failure", "code": 404, "message": "not found", "reason": "NotFound" })),
        }
    });
    let calls = HttpExtenders::new(Handle::current(), clients);
    calls.configured(std::slice::from_ref(policy));
    calls
}

/// On a thread that may wait, as sessions have one.
async fn on_a_thread<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(ask).await.expect("it does not panic")
}

async fn filter(policy: ExtenderPolicy) -> Result<Filtered, String> {
    on_a_thread(move || calls(&policy).filter(&policy, &pod(), &["a", "b"])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_by_names_in_either_case_of_its_keys() {
    for answer in [
        json!({ "NodeNames": ["b"], "FailedNodes": { "a": "full" }, "FailedAndUnresolvableNodes": null, "Error": "" }),
        json!({ "nodenames": ["b"], "failedNodes": { "a": "full" } }),
    ] {
        let (url, sent) = extender(move |_| (200, answer.clone())).await;
        let said = filter(policy(&url)).await.expect("an answer");
        assert_eq!(said.passed, ["b".to_owned()].into());
        assert_eq!(said.failed["a"], "full");
        let (path, body) = sent.last();
        assert_eq!(path, "/base/filter");
        assert_eq!(body["NodeNames"], json!(["a", "b"]));
        assert_eq!(body["Nodes"], Value::Null);
        assert_eq!(body["Pod"]["metadata"]["uid"], "u1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_by_whole_nodes() {
    let answer = |body: &Value| {
        assert_eq!(body["NodeNames"], Value::Null);
        (200, json!({ "Nodes": { "items": [body["Nodes"]["items"][1].clone()] } }))
    };
    let (url, sent) = extender(answer).await;
    let said = filter(ExtenderPolicy { node_cache_capable: false, ..policy(&url) }).await.expect("an answer");
    assert_eq!(said.passed, ["b".to_owned()].into());
    let (_, body) = sent.last();
    assert_eq!(body["Nodes"]["items"][0]["metadata"]["labels"]["zone"], "z", "nodes are sent whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_answer() {
    for (code, answer, why) in [
        (200, json!({ "Error": "out of order" }), "out of order"),
        (200, json!({ "NodeNames": ["c"] }), "\"c\", which it was not asked about"),
        (200, json!({ "NodeNames": "c" }), "filter: the answer cannot be read: invalid type: string"),
        (200, Value::Null, "the answer cannot be read: EOF"),
        (503, json!({}), "it answers 503"),
    ] {
        let (url, _) = extender(move |_| (code, answer.clone())).await;
        let said = filter(policy(&url)).await.expect_err(why);
        assert!(said.contains(why), "{said}");
    }
    let said = filter(policy("http://127.0.0.1:1/")).await.expect_err("nobody listens there");
    assert!(said.contains("filter at http://127.0.0.1:1/"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_time_and_its_length_have_limits() {
    let (url, _) = extender(|_| (200, json!({ "NodeNames": [] }))).await;
    let connection = Connection::open(&policy(&url)).await.expect("a client").with_longest(5);
    let said = connection.post("filter", b"{}".to_vec()).await.expect_err("too long");
    assert!(said.contains("length limit exceeded"), "{said}");

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = format!("http://{}", listener.local_addr().expect("an address"));
    let slow = ExtenderPolicy { http_timeout_ms: 50, ..policy(&silent) };
    let said = filter(slow).await.expect_err("it says nothing");
    assert!(said.contains("no answer within 50 ms (httpTimeout)"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_victims_and_binds() {
    let (url, sent) = extender(|body| match body.get("NodeNameToMetaVictims") {
        Some(_) => {
            (200, json!({ "NodeNameToMetaVictims": { "a": { "Pods": [{ "UID": "v" }], "NumPDBViolations": 1 } } }))
        }
        None if body.get("PodName").is_some() => (200, json!({ "Error": "no" })),
        None => (200, json!([{ "Host": "a", "Score": 7 }])),
    })
    .await;
    let asked = policy(&url);
    let scores = on_a_thread({
        let asked = asked.clone();
        move || calls(&asked).prioritize(&asked, &pod(), &["a"])
    });
    assert_eq!(scores.await, Ok(BTreeMap::from([("a".to_owned(), 7)])));

    let victim = PodRef { uid: "v".into(), namespace: "ns".into(), name: "victim".into() };
    let victims = BTreeMap::from([(Name::from("a"), NodeVictims { pods: vec![victim], budget_violations: 0 })]);
    for capable in [true, false] {
        let asked = ExtenderPolicy { node_cache_capable: capable, ..asked.clone() };
        let (asked, victims) = (asked.clone(), victims.clone());
        let said = on_a_thread(move || calls(&asked).process_preemption(&asked, &pod(), &victims)).await;
        let agreed = NodeVictims { pods: vec!["v".to_owned()], budget_violations: 1 };
        assert_eq!(said, Ok(BTreeMap::from([("a".to_owned(), agreed)])));
        let (_, body) = sent.last();
        assert_eq!(body["NodeNameToVictims"].is_null(), capable);
        let whole = &body["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["name"];
        assert_eq!(*whole == "victim", !capable, "{body}");
    }

    let calls = on_a_thread(move || calls(&asked)).await;
    let said = Binding(calls).bind(&Nothing, &pod(), "a").await;
    assert_eq!(said, Some(Err("no".to_owned())));
    let (path, body) = sent.last();
    assert_eq!(path, "/base/bind");
    assert_eq!(body, json!({ "PodName": "p", "PodNamespace": "ns", "PodUID": "u1", "Node": "a" }));
}

/// An API that nobody asks.
struct Nothing;

impl ObjectApi for Nothing {
    fn get<'a>(&'a self, _: ObjectRef<'a>) -> Later<'a, Result<Option<String>, String>> {
        Box::pin(async { Ok(None) })
    }

    fn patch<'a>(&'a self, _: ObjectRef<'a>, _: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn patch_status<'a>(&'a self, _: ObjectRef<'a>, _: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    fn changed<'a>(&'a self, _: ObjectRef<'a>, at_most_ms: u64) -> Later<'a, u64> {
        Box::pin(async move { at_most_ms })
    }

    fn claims(&self, _: &str) -> Option<&ClaimsToBind> {
        None
    }
}
