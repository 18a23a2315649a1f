//! Carrying out what the engine has decided. Whatever asks for an outcome gets exactly one.

mod answer;
mod backlog;
mod bind;
mod deallocate;
mod events;
mod evict;
#[cfg(test)]
pub(crate) mod fake;
mod hooks;
mod interest;
mod placing;
mod status;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use krafla_framework::{BindingPlugin, Effect};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use answer::{Answer, CALL, text_of};
pub(crate) use backlog::Backlog;
use bind::Binder;
pub(crate) use events::{Events, Notice, reference};
use evict::{By, Evictor};
use hooks::Hooks;
pub(crate) use interest::Interest;
pub(crate) use placing::Placing;
pub(crate) use status::{Counts, FIELD_MANAGER, Statuses};

use crate::client::Clients;
use crate::directory::Directory;
use crate::inbox::Outcomes;
use crate::metrics::Metrics;
use crate::pauses::Pauses;

/// Pauses after a call whose answer was lost.
const LOST_ANSWER: Pauses = Pauses::new(Duration::from_millis(100), Duration::from_secs(2));

/// Carries out effects.
pub(crate) struct Performer {
    binder: Binder,
    evictor: Evictor,
    statuses: Statuses,
    events: Events,
    backlog: Backlog,
    placing: Placing,
    interest: Interest,
    writers: Vec<JoinHandle<()>>,
    means: Means,
}

/// What it takes to make a call that has an outcome.
#[derive(Clone)]
pub(crate) struct Means {
    clients: Clients,
    outcomes: Outcomes,
    metrics: Metrics,
    backlog: Backlog,
    /// Nothing is sent while another process leads.
    leads: watch::Receiver<bool>,
}

/// Who the performer writes as, and how much at once.
pub(crate) struct Role {
    /// The name that events carry.
    pub(crate) component: String,
    /// What events about the scheduler itself are about.
    pub(crate) scheduler: ObjectReference,
    /// Binds at once.
    pub(crate) binds_at_once: usize,
    /// Plugins that take part on the way to a bind.
    pub(crate) binding_plugins: Vec<Arc<dyn BindingPlugin>>,
}

impl Performer {
    pub(crate) fn start(
        clients: &Clients,
        directory: &Directory,
        outcomes: &Outcomes,
        metrics: &Metrics,
        role: Role,
        leads: &watch::Receiver<bool>,
    ) -> Self {
        let backlog = Backlog::new();
        let placing = Placing::default();
        let interest = Interest::default();
        let (statuses, mut writers) = Statuses::start(clients, directory, &backlog, &placing, leads);
        let (events, event_writers) =
            Events::start(clients, directory, &backlog, metrics, role.component, role.scheduler);
        writers.extend(event_writers);
        let means = Means {
            clients: clients.clone(),
            outcomes: outcomes.clone(),
            metrics: metrics.clone(),
            backlog: backlog.clone(),
            leads: leads.clone(),
        };
        Self {
            evictor: Evictor::new(means.clone()),
            binder: Binder::new(
                means.clone(),
                directory.clone(),
                placing.clone(),
                role.binds_at_once,
                Hooks {
                    plugins: role.binding_plugins.into(),
                    client: clients.calls.clone(),
                    interest: interest.clone(),
                },
            ),
            statuses,
            events,
            backlog,
            placing,
            interest,
            writers,
            means,
        }
    }

    /// The writer of events.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Who may write to which waiting pod.
    pub(crate) fn placing(&self) -> &Placing {
        &self.placing
    }

    /// Who waits for which object.
    pub(crate) fn interest(&self) -> &Interest {
        &self.interest
    }

    /// The writer of statuses.
    pub(crate) fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// Notes who leads. What was to be written while this process led is another's to write afterwards.
    pub(crate) fn follow_leadership(
        &self,
        mut leads: watch::Receiver<bool>,
        metrics: Metrics,
    ) -> impl Future<Output = ()> + Send + use<> {
        let statuses = self.statuses.clone();
        async move {
            loop {
                let leading = *leads.borrow_and_update();
                if !leading {
                    statuses.forget_wanted();
                }
                metrics.leads(leading);
                if leads.changed().await.is_err() {
                    return;
                }
            }
        }
    }

    /// Carries out one effect. Never waits.
    pub(crate) fn perform(&self, effect: Effect) {
        match effect {
            Effect::Bind { pod, node, plugins, claims } => self.binder.bind(pod, node, plugins, claims),
            Effect::Evict { pod, certificate, delete: false } => {
                let plugin = certificate.cause.as_ref().map(|cause| cause.plugin.clone());
                self.evictor.evict(pod, By::Eviction { grace_seconds: certificate.grace_seconds, plugin });
            }
            Effect::Evict { pod, certificate, delete: true } => {
                let message = format!("{} will run on {}", certificate.beneficiary, certificate.node);
                self.evictor.evict(pod, By::Deletion { message });
            }
            Effect::OpenGate { pod } => self.statuses.open_gate(pod),
            Effect::Deallocate { namespace, name, uid } => deallocate::deallocate(&self.means, namespace, name, uid),
            Effect::JobStatus { namespace, name, phase, running, succeeded, failed } => {
                self.statuses.group_counts((namespace, name), Counts { phase, running, succeeded, failed });
            }
            Effect::JobCondition { namespace, name, kind, reason, message } => {
                self.statuses.group_condition((namespace, name), kind, reason, message);
            }
            Effect::PodCondition { pod, reason, message } => self.statuses.pod_condition(pod, reason, message),
            Effect::Nominate { pod, node } => self.statuses.nominate(pod, node),
            Effect::QueueStatus { name, allocated } => self.statuses.queue(name, allocated),
            Effect::Event { about, warning, reason, message } => self.events.say(about, warning, reason, message),
        }
    }

    /// Whether no bind or eviction waits for its outcome.
    pub(crate) fn is_quiet(&self) -> bool {
        self.backlog.len() == 0
    }

    /// Waits, but no longer than `most`, until every bind and eviction has its outcome, and what was to be written has
    /// been.
    pub(crate) async fn finish(self, most: Duration) -> bool {
        let end = tokio::time::Instant::now() + most;
        self.backlog.quiet(most).await;
        let all_done = self.is_quiet();
        self.events.close();
        drop((self.statuses, self.events));
        for writer in self.writers {
            if tokio::time::timeout_at(end, writer).await.is_err() {
                return false;
            }
        }
        all_done
    }
}
