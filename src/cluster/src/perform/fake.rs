//! A server for tests: answers by a script, and notes what was asked.

use std::sync::{Arc, Mutex};

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::client::{Clients, ContentType, Throttle};

/// What was asked: method and path.
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

/// Clients whose calls are answered by `answer`: code and body.
pub(crate) fn clients(answer: impl Fn(&str, &str) -> (u16, Value) + Send + Sync + 'static) -> (Clients, Asked) {
    let asked = Asked::default();
    let (noted, answer) = (Arc::clone(&asked), Arc::new(answer));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        noted.lock().expect("unpoisoned").push(format!("{method} {path}"));
        let (code, body) = answer(&method, &path);
        let response = http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        async move { Ok::<_, std::convert::Infallible>(response.expect("a response")) }
    });
    let client = Client::new(service, "default");
    let content_type = ContentType::default();
    (Clients { watches: client.clone(), calls: client, throttle: Throttle::new(0.0, 0), content_type }, asked)
}

/// A refusal as the API server words it.
pub(crate) fn refusal(code: u16, message: &str) -> (u16, Value) {
    (code, json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code }))
}

/// A success.
pub(crate) fn done() -> (u16, Value) {
    (201, json!({ "kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201 }))
}
