//! Binds: `pods/binding`, many at once, each to a certain end.
//!
//! A bind is sent once. When its answer is lost the pod is asked where it is, as often as it takes, before the engine
//! hears anything: an outcome is never a guess. Sending it twice would do no harm either, since the server binds a pod
//! only once.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_api::keys;
use krafla_engine::Outcome;
use krafla_framework::effect::{ClaimsToBind, PodRef};
use krafla_model::Name;
use kube::api::{PostParams, Request};
use kube::{Api, Client, Resource};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::answer::{Answer, CALL};
use super::hooks::Hooks;
use super::placing::Placing;
use super::{LOST_ANSWER, Means};
use crate::client::ContentType;
use crate::directory::Directory;
use crate::protobuf;

/// Performs binds.
#[derive(Clone)]
pub(crate) struct Binder(Arc<Inner>);

struct Inner {
    means: Means,
    directory: Directory,
    placing: Placing,
    in_flight: Semaphore,
    hooks: Hooks,
}

impl Binder {
    pub(crate) fn new(means: Means, directory: Directory, placing: Placing, at_once: usize, hooks: Hooks) -> Self {
        Self(Arc::new(Inner { means, directory, placing, in_flight: Semaphore::new(at_once), hooks }))
    }

    /// Binds a pod; its outcome comes to the inbox.
    pub(crate) fn bind(&self, pod: PodRef, node: Name, plugins: Vec<Name>, claims: Vec<ClaimsToBind>) {
        let inner = Arc::clone(&self.0);
        // A pod that waits for its claims, perhaps for minutes, keeps nobody waiting.
        let held = claims.is_empty().then(|| inner.means.backlog.enter());
        inner.placing.decide(&pod.uid);
        tokio::spawn(async move {
            let uid = pod.uid.clone();
            let outcome = inner.with_plugins(pod, &node, &plugins, &claims).await;
            if matches!(outcome, Outcome::BindRefused { .. }) {
                inner.placing.forget(&uid);
            }
            drop(held);
            inner.means.outcomes.tell(outcome).await;
        });
    }
}

impl Inner {
    /// PreBind, the bind, PostBind.
    async fn with_plugins(&self, pod: PodRef, node: &Name, plugins: &[Name], claims: &[ClaimsToBind]) -> Outcome {
        if plugins.is_empty() {
            return self.bind(pod, node).await;
        }
        let asked = pod.clone();
        let way = self.hooks.way(plugins, claims, &asked, node);
        if let Err(message) = way.pre_bind().await {
            return Outcome::BindRefused { pod: pod.uid, message };
        }
        let _held = (!claims.is_empty()).then(|| self.means.backlog.enter());
        let outcome = match way.bind().await {
            Some(Ok(())) => Outcome::Bound { pod: pod.uid },
            // Whether it was done all the same, the pod knows.
            Some(Err(message)) => self.ask_until_known(&pod, node, message).await,
            None => self.bind(pod, node).await,
        };
        match outcome {
            Outcome::Bound { .. } => way.post_bind().await,
            _ => way.undo_pre_bind().await,
        }
        outcome
    }

    async fn bind(&self, pod: PodRef, node: &Name) -> Outcome {
        let Ok(_place) = self.in_flight.acquire().await else {
            return Outcome::BindRefused { pod: pod.uid, message: "the scheduler stops".to_owned() };
        };
        self.placing.undisturbed(&pod.uid).await;
        self.means.clients.throttle.turn().await;
        if !*self.means.leads.borrow() {
            return Outcome::BindRefused { pod: pod.uid, message: "another scheduler leads now".to_owned() };
        }
        let began = Instant::now();
        let outcome = match self.send(&pod, node).await {
            Answer::Done => Outcome::Bound { pod: pod.uid },
            // A conflict is also how the server says that an earlier bind, whose answer was lost, has been done.
            Answer::Refused { code: 409, message } | Answer::Unknown { message } => {
                self.ask_until_known(&pod, node, message).await
            }
            Answer::Refused { message, .. } => Outcome::BindRefused { pod: pod.uid, message },
        };
        self.means.metrics.bind(began.elapsed(), matches!(outcome, Outcome::Bound { .. }));
        outcome
    }

    async fn send(&self, pod: &PodRef, node: &Name) -> Answer {
        // The server merges these annotations into the pod: what does not name its PodGroup is told it here.
        let group = self.directory.linked(&pod.uid);
        let annotations = group.map(|group| BTreeMap::from([(keys::GROUP_NAME.to_owned(), group.to_string())]));
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(pod.name.to_string()),
                namespace: Some(pod.namespace.to_string()),
                uid: Some(pod.uid.to_string()),
                annotations,
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.to_string()),
                ..ObjectReference::default()
            },
        };
        let client = &self.means.clients.calls;
        let request = match bind_request(pod, binding, self.means.clients.content_type) {
            Ok(request) => request,
            Err(error) => return Answer::Refused { code: 400, message: error.to_string() },
        };
        Answer::within(CALL, client.request::<kube::core::Status>(request)).await
    }

    /// Asks the pod where it is until the server answers.
    async fn ask_until_known(&self, pod: &PodRef, node: &Name, message: String) -> Outcome {
        let api = pods(&self.means.clients.calls, pod);
        let refused = |message: String| Outcome::BindRefused { pod: pod.uid.clone(), message };
        let mut pauses = LOST_ANSWER;
        loop {
            self.means.clients.throttle.turn().await;
            match timeout(CALL, api.get_opt(&pod.name)).await {
                Ok(Ok(None)) => return refused(format!("{message}; the pod is gone")),
                Ok(Ok(Some(found))) => return where_it_is(&found, pod, node, message),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                    return refused(format!("{message}; the pod is gone"));
                }
                Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                    return refused(format!("{message}; and the pod may not be read: {}", status.message));
                }
                Ok(Err(_)) | Err(_) => {}
            }
            sleep(pauses.pause()).await;
        }
    }
}

fn bind_request(
    pod: &PodRef,
    binding: Binding,
    content_type: ContentType,
) -> Result<http::Request<Vec<u8>>, Box<dyn std::error::Error>> {
    let (body, media) = match content_type {
        ContentType::Protobuf => (protobuf::binding(binding), protobuf::PROTOBUF),
        ContentType::Json => (serde_json::to_vec(&binding)?, "application/json"),
    };
    let of_pods = Request::new(Pod::url_path(&(), Some(&pod.namespace)));
    let mut request = of_pods.create_subresource("binding", &pod.name, &PostParams::default(), body)?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    Ok(request)
}

/// What the pod itself says about its bind.
fn where_it_is(found: &Pod, pod: &PodRef, node: &Name, message: String) -> Outcome {
    let refused = |message: String| Outcome::BindRefused { pod: pod.uid.clone(), message };
    if found.metadata.uid.as_deref() != Some(&*pod.uid) {
        return refused(format!("{message}; the pod is gone, and another has its name"));
    }
    match found.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).filter(|node| !node.is_empty()) {
        Some(there) if there == &**node => Outcome::Bound { pod: pod.uid.clone() },
        Some(there) => refused(format!("{message}; the pod is on node {there}")),
        None => refused(message),
    }
}

pub(super) fn pods(client: &Client, pod: &PodRef) -> Api<Pod> {
    Api::namespaced(client.clone(), &pod.namespace)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use krafla_engine::Input;
    use serde_json::{Value, json};

    use tokio::sync::watch;

    use super::super::fake::{Asked, clients, done, refusal};
    use super::super::{Backlog, Interest};
    use super::*;
    use crate::inbox::{Letter, Outcomes, inbox};
    use crate::metrics::Metrics;

    fn pod_ref() -> PodRef {
        PodRef { uid: "u1".into(), namespace: "ns".into(), name: "p".into() }
    }

    fn pod_on(node: Option<&str>, uid: &str) -> (u16, Value) {
        let spec = json!({ "nodeName": node, "containers": [] });
        (200, json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "uid": uid }, "spec": spec }))
    }

    /// What becomes of a bind to `n1` on a server that answers so.
    async fn outcome(answer: impl Fn(&str, &str) -> (u16, Value) + Send + Sync + 'static) -> (Outcome, Asked) {
        let (clients, asked) = clients(answer);
        let (mailbox, mut letters) = inbox();
        let (_leader, leads) = watch::channel(true);
        let (outcomes, metrics, backlog) = (Outcomes(mailbox), Metrics::new(), Backlog::new());
        let means = Means { clients, outcomes, metrics, backlog, leads };
        let (client, interest) = (means.clients.calls.clone(), Interest::default());
        let hooks = Hooks { plugins: Vec::new().into(), client, interest };
        let binder = Binder::new(means, Directory::default(), Placing::default(), 4, hooks);
        binder.bind(pod_ref(), "n1".into(), Vec::new(), Vec::new());
        match letters.recv().await {
            Some(Letter::Input(input)) => match *input {
                Input::Outcome(outcome) => (outcome, asked),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn bound() -> Outcome {
        Outcome::Bound { pod: "u1".into() }
    }

    fn refused(message: &str) -> Outcome {
        Outcome::BindRefused { pod: "u1".into(), message: message.to_owned() }
    }

    //
    #[tokio::test(start_paused = true)]
    async fn a_bind_is_sent_once_to_the_binding_of_the_pod() {
        let (is, asked) = outcome(|_, _| done()).await;
        assert_eq!(is, bound());
        assert_eq!(*asked.lock().expect("unpoisoned"), ["POST /api/v1/namespaces/ns/pods/p/binding"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_an_outcome_at_once_and_is_not_tried_again_here() {
        for code in [403, 404, 422, 429] {
            let (is, asked) = outcome(move |_, _| refusal(code, "no")).await;
            assert_eq!(is, refused("no"));
            assert_eq!(asked.lock().expect("unpoisoned").len(), 1, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_lost_answer_the_pod_says_where_it_is() {
        let table = [
            (500, pod_on(Some("n1"), "u1"), bound()),
            (409, pod_on(Some("n1"), "u1"), bound()),
            (409, pod_on(Some("n2"), "u1"), refused("lost; the pod is on node n2")),
            (500, pod_on(None, "u1"), refused("lost")),
            (504, pod_on(Some("n1"), "u2"), refused("lost; the pod is gone, and another has its name")),
            (503, refusal(404, "not found"), refused("lost; the pod is gone")),
        ];
        for (code, found, wanted) in table {
            let answers = found.clone();
            let (is, _) = outcome(move |method, _| match method {
                "POST" => refusal(code, "lost"),
                _ => answers.clone(),
            })
            .await;
            match (&is, &wanted) {
                // An unknown outcome carries its code in the message.
                (Outcome::BindRefused { message, .. }, Outcome::BindRefused { message: part, .. }) => {
                    let part = part.strip_prefix("lost").unwrap_or(part);
                    assert!(message.starts_with("lost") && message.ends_with(part), "{code}: {message}");
                }
                _ => assert_eq!(is, wanted, "{code} {found:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_server_is_away_nothing_is_guessed() {
        let begun = Instant::now();
        let (is, asked) = outcome(move |method, _| match method {
            "GET" if begun.elapsed() > Duration::from_secs(20) => pod_on(Some("n1"), "u1"),
            _ => refusal(503, "away"),
        })
        .await;
        assert_eq!(is, bound());
        let asked = asked.lock().expect("unpoisoned");
        assert_eq!(asked.iter().filter(|one| one.starts_with("POST")).count(), 1, "{asked:?}");
    }
}
