//! A proxy between Krafla and the API server that does what networks and overloaded servers do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures::StreamExt;
use kube::Client;
use serde_json::json;
use tokio::net::TcpListener;

use crate::harness::Aside;

/// What is done to a request.
#[derive(Clone, Debug)]
pub(crate) enum Mischief {
    /// It goes through.
    Pass,
    /// It is answered with this code, and never reaches the server.
    Refuse(u16, &'static str),
    /// It is done, and answered with this code all the same.
    DoneButAnswered(u16),
    /// It goes through after a while.
    Late(Duration),
}

/// What one bind meets, by its number from 1, its namespace and its pod.
type Plan = Arc<dyn Fn(usize, &str, &str) -> Mischief + Send + Sync>;

/// The proxy.
pub(crate) struct Proxy {
    state: Shared,
    kubeconfig: PathBuf,
    _server: Aside,
}

#[derive(Clone)]
struct Shared {
    client: Client,
    plan: Plan,
    /// How long a watch lives; for ever if `None`.
    watch_life: Option<Duration>,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    binds: usize,
    /// Binds that the server has done, by pod.
    done: BTreeMap<String, usize>,
}

impl Proxy {
    /// Starts one in front of the server of `client`.
    pub(crate) async fn start(
        client: Client,
        folder: &Path,
        watch_life: Option<Duration>,
        plan: impl Fn(usize, &str, &str) -> Mischief + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Shared { client, plan: Arc::new(plan), watch_life, log: Arc::default() };
        let pages = Router::new().fallback(forward).with_state(state.clone());
        let server = Aside::run(async move {
            let _ = axum::serve(listener, pages).await;
        });
        let kubeconfig = folder.join(format!("proxy-{port}.kubeconfig"));
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "c", "cluster": { "server": format!("http://127.0.0.1:{port}") } }],
            "users": [{ "name": "u", "user": { "token": "none" } }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
            "current-context": "c",
        });
        std::fs::write(&kubeconfig, text.to_string()).expect("written");
        Self { state, kubeconfig, _server: server }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Binds that have come by.
    pub(crate) fn binds(&self) -> usize {
        self.state.log.lock().expect("unpoisoned").binds
    }

    /// Pods that the server has bound more than once.
    pub(crate) fn bound_twice(&self) -> Vec<String> {
        let log = self.state.log.lock().expect("unpoisoned");
        log.done.iter().filter(|(_, n)| **n > 1).map(|(pod, _)| pod.clone()).collect()
    }
}

async fn forward(State(state): State<Shared>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    // /api/v1/namespaces/NS/pods/POD/binding
    let bind = match parts.as_slice() {
        [_, "api", "v1", "namespaces", namespace, "pods", pod, "binding"] => Some((*namespace, *pod)),
        _ => None,
    };
    let mischief = bind.map_or(Mischief::Pass, |(namespace, pod)| {
        let n = {
            let mut log = state.log.lock().expect("unpoisoned");
            log.binds += 1;
            log.binds
        };
        (state.plan)(n, namespace, pod)
    });
    match mischief {
        Mischief::Refuse(code, message) => return status(code, message),
        Mischief::Late(pause) => tokio::time::sleep(pause).await,
        Mischief::Pass | Mischief::DoneButAnswered(_) => {}
    }
    let watching = request.uri().query().is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    let response = match send(&state, request).await {
        Ok(response) => response,
        Err(why) => return status(503, &why),
    };
    if let Some((namespace, pod)) = bind
        && response.status().is_success()
    {
        let mut log = state.log.lock().expect("unpoisoned");
        *log.done.entry(format!("{namespace}/{pod}")).or_default() += 1;
    }
    if let Mischief::DoneButAnswered(code) = mischief {
        return status(code, "the answer was lost on the way");
    }
    match state.watch_life.filter(|_| watching) {
        Some(life) => {
            let (parts, body) = response.into_parts();
            let cut = body.into_data_stream().take_until(Box::pin(tokio::time::sleep(life)));
            Response::from_parts(parts, Body::from_stream(cut))
        }
        None => response,
    }
}

async fn send(state: &Shared, request: Request) -> Result<Response, String> {
    let (parts, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 16 << 20).await.map_err(|error| error.to_string())?;
    let uri = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut builder = axum::http::Request::builder().method(parts.method).uri(uri);
    for name in ["content-type", "accept"] {
        if let Some(value) = parts.headers.get(name) {
            builder = builder.header(name, value);
        }
    }
    let request = builder.body(kube::client::Body::from(body.to_vec())).map_err(|error| error.to_string())?;
    let response = state.client.send(request).await.map_err(|error| error.to_string())?;
    let (parts, body) = response.into_parts();
    let mut out = Response::builder().status(parts.status);
    if let Some(kind) = parts.headers.get("content-type") {
        out = out.header("content-type", kind);
    }
    out.body(Body::new(body)).map_err(|error| error.to_string())
}

fn status(code: u16, message: &str) -> Response {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code,
        "reason": match code { 409 => "Conflict", 429 => "TooManyRequests", 403 => "Forbidden", _ => "InternalError" },
    });
    let response = Response::builder().status(code).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).expect("a response")
}
