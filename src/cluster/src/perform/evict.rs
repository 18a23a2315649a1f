//! Evictions, through the Eviction API: a PodDisruptionBudget may refuse them, and that is understood.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use krafla_engine::Outcome;
use krafla_framework::effect::PodRef;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::answer::{Answer, CALL};
use super::bind::pods;
use super::{LOST_ANSWER, Means};

/// How a pod is made to go.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// The Eviction API, which asks disruption budgets.
    Eviction {
        /// How long the pod may take to end, in seconds, if that is not for it to say.
        grace_seconds: Option<u32>,
        /// The plugin of the descheduler that wants it to go.
        plugin: Option<String>,
    },
    /// Deletion with the pod's own grace period, after a condition that says why, as kube-scheduler does.
    Deletion {
        /// For whom.
        message: String,
    },
}

/// Annotations of an eviction, and who asks for it.
const REQUESTED_BY: &str = "requested-by";
const REASON: &str = "reason";
const REQUESTER: &str = "krafla.io/descheduler";

/// Evictions at once.
const AT_ONCE: usize = 32;

/// Performs evictions.
#[derive(Clone)]
pub(crate) struct Evictor(Arc<Inner>);

struct Inner {
    means: Means,
    in_flight: Semaphore,
}

impl Evictor {
    pub(crate) fn new(means: Means) -> Self {
        Self(Arc::new(Inner { means, in_flight: Semaphore::new(AT_ONCE) }))
    }

    /// Evicts a pod; its outcome comes to the inbox.
    pub(crate) fn evict(&self, pod: PodRef, by: By) {
        let inner = Arc::clone(&self.0);
        let held = inner.means.backlog.enter();
        tokio::spawn(async move {
            let outcome = inner.evict(pod, by).await;
            drop(held);
            inner.means.outcomes.tell(outcome).await;
        });
    }
}

impl Inner {
    async fn evict(&self, pod: PodRef, by: By) -> Outcome {
        let Ok(_place) = self.in_flight.acquire().await else {
            return Outcome::EvictRefused { pod: pod.uid, message: "the scheduler stops".to_owned() };
        };
        let mut pauses = LOST_ANSWER;
        let outcome = loop {
            self.means.clients.throttle.turn().await;
            if !*self.means.leads.borrow() {
                let message = "another scheduler leads now".to_owned();
                break Outcome::EvictRefused { pod: pod.uid, message };
            }
            let answer = match &by {
                By::Eviction { grace_seconds, plugin } => self.send(&pod, *grace_seconds, plugin.as_deref()).await,
                By::Deletion { message } => self.delete(&pod, message).await,
            };
            match answer {
                Answer::Done => break Outcome::Evicted { pod: pod.uid },
                // Gone already: what was wanted is so. The watch tells the rest.
                Answer::Refused { code: 404, .. } => break Outcome::Evicted { pod: pod.uid },
                // The UID in the precondition belongs to a pod that is gone.
                Answer::Refused { code: 409, message } if message.contains("UID") => {
                    break Outcome::Evicted { pod: pod.uid };
                }
                Answer::Refused { message, .. } => break Outcome::EvictRefused { pod: pod.uid, message },
                // Evicting a pod that terminates already changes nothing, so this one may be sent again.
                Answer::Unknown { .. } => {}
            }
            sleep(pauses.pause()).await;
        };
        self.means.metrics.eviction(matches!(outcome, Outcome::Evicted { .. }));
        outcome
    }

    async fn delete(&self, pod: &PodRef, message: &str) -> Answer {
        let api = pods(&self.means.clients.calls, pod);
        let condition = json!({
            "metadata": {"uid": &*pod.uid},
            "status": {"conditions": [{
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
                "message": message,
            }]},
        });
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&condition));
        let said = api.patch_status(&pod.name, &params, &patch);
        match Answer::within(CALL, said).await {
            Answer::Done => {}
            other => return other,
        }
        let preconditions = kube::api::Preconditions { uid: Some(pod.uid.to_string()), ..Default::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        Answer::within(CALL, api.delete(&pod.name, &params)).await
    }

    async fn send(&self, pod: &PodRef, grace_seconds: Option<u32>, plugin: Option<&str>) -> Answer {
        let eviction = request(pod, grace_seconds, plugin);
        let api = pods(&self.means.clients.calls, pod);
        let params = PostParams::default();
        let call = api.create_subresource::<_, serde_json::Value>("eviction", &pod.name, &params, &eviction);
        Answer::within(CALL, call).await
    }
}

/// What is sent. Who takes evictions on is told who asks, and why, as the descheduler of Kubernetes does.
fn request(pod: &PodRef, grace_seconds: Option<u32>, plugin: Option<&str>) -> Eviction {
    let annotations = plugin.map(|plugin| {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        BTreeMap::from([pair(REQUESTED_BY, REQUESTER), pair(REASON, plugin)])
    });
    Eviction {
        metadata: ObjectMeta {
            name: Some(pod.name.to_string()),
            namespace: Some(pod.namespace.to_string()),
            annotations,
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            grace_period_seconds: grace_seconds.map(i64::from),
            preconditions: Some(Preconditions { uid: Some(pod.uid.to_string()), ..Preconditions::default() }),
            ..DeleteOptions::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use krafla_engine::Input;
    use serde_json::Value;

    use tokio::sync::watch;

    use super::super::Backlog;
    use super::super::fake::{clients, done, refusal};
    use super::*;
    use crate::inbox::{Letter, Outcomes, inbox};
    use crate::metrics::Metrics;

    async fn outcome(answer: impl Fn(&str, &str) -> (u16, Value) + Send + Sync + 'static) -> (Outcome, usize) {
        let (clients, asked) = clients(answer);
        let (mailbox, mut letters) = inbox();
        let (_leader, leads) = watch::channel(true);
        let (outcomes, metrics, backlog) = (Outcomes(mailbox), Metrics::new(), Backlog::new());
        let evictor = Evictor::new(Means { clients, outcomes, metrics, backlog, leads });
        evictor.evict(
            PodRef { uid: "u1".into(), namespace: "ns".into(), name: "p".into() },
            By::Eviction { grace_seconds: None, plugin: None },
        );
        match letters.recv().await {
            Some(Letter::Input(input)) => match *input {
                Input::Outcome(outcome) => (outcome, asked.lock().expect("unpoisoned").len()),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_disruption_budget_refuses_and_the_engine_hears_why_at_once() {
        let why = "Cannot evict pod as it would violate the pod's disruption budget.";
        let (is, calls) = outcome(move |_, _| refusal(429, why)).await;
        assert_eq!(is, Outcome::EvictRefused { pod: "u1".into(), message: why.to_owned() });
        assert_eq!(calls, 1, "whether it is tried again the engine decides");
    }

    #[test]
    fn an_eviction_says_who_asks_and_why() {
        let pod = PodRef { uid: "u1".into(), namespace: "ns".into(), name: "p".into() };
        let sent = serde_json::to_value(request(&pod, Some(7), Some("PodLifeTime"))).expect("JSON");
        let wanted = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "name": "p", "namespace": "ns",
                          "annotations": { "reason": "PodLifeTime", "requested-by": "krafla.io/descheduler" } },
            "deleteOptions": { "gracePeriodSeconds": 7, "preconditions": { "uid": "u1" } },
        });
        assert_eq!(sent, wanted);
        assert_eq!(request(&pod, None, None).metadata.annotations, None, "those of the scheduler itself say nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_counts_as_evicted() {
        let evicted = Outcome::Evicted { pod: "u1".into() };
        assert_eq!(outcome(|_, _| done()).await.0, evicted);
        assert_eq!(outcome(|_, _| refusal(404, "not found")).await.0, evicted);
        let of_another = "the UID in the precondition (u1) does not match the UID in record (u2)";
        assert_eq!(outcome(move |_, _| refusal(409, of_another)).await.0, evicted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_is_asked_for_again() {
        let n = std::sync::atomic::AtomicUsize::new(0);
        let (is, calls) = outcome(move |_, _| match n.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0..3 => refusal(503, "away"),
            _ => done(),
        })
        .await;
        assert_eq!((is, calls), (Outcome::Evicted { pod: "u1".into() }, 4));
    }
}
