//! Extenders: how they are called.
//!
//! A session waits for each answer, as kube-scheduler does: whoever has extenders has chosen that. Whole pods are read
//! from the API server when they are sent, and whole nodes are watched only if some extender wants them.

mod client;
mod objects;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use krafla_framework::conf::policy::ExtenderPolicy;
use krafla_framework::scheduling::extender::{EXTENDER_BIND, Filtered};
use krafla_framework::{BindingPlugin, ExtenderCalls, Later, NodeVictims, ObjectApi, PodRef};
use krafla_model::Name;
use serde::Serialize;
use tokio::runtime::Handle;
use tracing::warn;

use crate::client::Clients;
use client::Connection;
use objects::Objects;
use wire::{BindingArgs, BindingResult, ExtenderArgs, FilterResult, HostPriority, PreemptionArgs, PreemptionResult};

/// Extenders over HTTP.
#[derive(Clone)]
pub(crate) struct HttpExtenders {
    runtime: Handle,
    objects: Objects,
    configured: Arc<Mutex<Configured>>,
}

/// What the configuration in force says.
#[derive(Default)]
struct Configured {
    policies: Vec<ExtenderPolicy>,
    /// One for each policy; or what is wrong with it.
    connections: Vec<Result<Connection, String>>,
}

impl HttpExtenders {
    /// Extenders that are called from `runtime`, which has to have threads besides the one that waits.
    pub(crate) fn new(runtime: Handle, clients: Clients) -> Self {
        Self { objects: Objects::new(runtime.clone(), clients), runtime, configured: Arc::default() }
    }

    /// What binds for them.
    pub(crate) fn binding_plugin(&self) -> Arc<dyn BindingPlugin> {
        Arc::new(Binding(self.clone()))
    }

    fn connection(&self, to: &ExtenderPolicy) -> Result<Connection, String> {
        let configured = self.configured.lock().unwrap_or_else(PoisonError::into_inner);
        match configured.policies.iter().position(|policy| policy == to) {
            Some(at) => configured.connections[at].clone(),
            None => Err("it is not configured any more".to_owned()),
        }
    }

    /// Waits for what needs the runtime; the thread of the sessions is none of its own.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<T, String> {
        let (done, answer) = mpsc::channel();
        self.runtime.spawn(async move {
            let _ = done.send(work.await);
        });
        answer.recv().unwrap_or_else(|_| Err("the scheduler stops".to_owned()))
    }

    /// Asks about nodes.
    fn ask<T: serde::de::DeserializeOwned + Send + 'static>(
        &self,
        to: &ExtenderPolicy,
        verb: Option<&String>,
        pod: &PodRef,
        nodes: &[&str],
    ) -> Result<T, String> {
        let connection = self.connection(to)?;
        let verb = verb.cloned().unwrap_or_default();
        let (objects, pod, whole) = (self.objects.clone(), pod.clone(), !to.node_cache_capable);
        let names: Vec<String> = nodes.iter().map(|&name| name.to_owned()).collect();
        let asked = self.wait(async move {
            let pod = objects.pod(&pod).await?;
            let args = match whole {
                true => ExtenderArgs { pod, nodes: Some(objects.nodes(&names).await?), node_names: None },
                false => ExtenderArgs { pod, nodes: None, node_names: Some(names) },
            };
            send(&connection, &verb, &args).await
        });
        if let Err(why) = &asked {
            warn!(extender = to.url_prefix, ignorable = to.ignorable, "{why}");
        }
        asked
    }
}

async fn send<A: Serialize + Sync, T: serde::de::DeserializeOwned>(
    connection: &Connection,
    verb: &str,
    args: &A,
) -> Result<T, String> {
    let answer = connection.post(verb, wire::encode(args)?).await?;
    wire::decode(&answer).map_err(|why| format!("{verb}: the answer cannot be read: {why}"))
}

impl ExtenderCalls for HttpExtenders {
    fn configured(&self, extenders: &[ExtenderPolicy]) {
        let mut configured = self.configured.lock().unwrap_or_else(PoisonError::into_inner);
        if configured.policies == extenders {
            return;
        }
        let connect = |policy: &ExtenderPolicy| {
            let policy = policy.clone();
            self.wait(async move { Connection::open(&policy).await })
        };
        configured.connections = extenders.iter().map(connect).collect();
        configured.policies = extenders.to_vec();
        for (policy, connection) in configured.policies.iter().zip(&configured.connections) {
            if let Err(why) = connection {
                warn!(extender = policy.url_prefix, "cannot be called: {why}");
            }
        }
        if extenders.iter().any(|extender| !extender.node_cache_capable) {
            self.objects.watch_nodes();
        }
    }

    fn filter(&self, to: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) -> Result<Filtered, String> {
        let result: FilterResult = self.ask(to, to.filter_verb.as_ref(), pod, nodes)?;
        result.into_filtered(to.node_cache_capable, nodes)
    }

    fn prioritize(&self, to: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) -> Result<BTreeMap<String, i64>, String> {
        let scores: Option<Vec<HostPriority>> = self.ask(to, to.prioritize_verb.as_ref(), pod, nodes)?;
        Ok(scores.unwrap_or_default().into_iter().map(|one| (one.host, one.score)).collect())
    }

    fn process_preemption(
        &self,
        to: &ExtenderPolicy,
        pod: &PodRef,
        victims: &BTreeMap<Name, NodeVictims<PodRef>>,
    ) -> Result<BTreeMap<String, NodeVictims<String>>, String> {
        let connection = self.connection(to)?;
        let verb = to.preempt_verb.clone().unwrap_or_default();
        let (objects, pod, victims, whole) =
            (self.objects.clone(), pod.clone(), victims.clone(), !to.node_cache_capable);
        let result: PreemptionResult = self.wait(async move {
            let pod = objects.pod(&pod).await?;
            let args = match whole {
                true => PreemptionArgs::whole(pod, objects.victims(&victims).await?),
                false => PreemptionArgs::meta(pod, &victims),
            };
            send(&connection, &verb, &args).await
        })?;
        Ok(result.into_victims())
    }
}

/// The way of a bind through the extender that binds.
struct Binding(HttpExtenders);

impl BindingPlugin for Binding {
    fn name(&self) -> &'static str {
        EXTENDER_BIND
    }

    fn bind<'a>(
        &'a self,
        _api: &'a dyn ObjectApi,
        pod: &'a PodRef,
        node: &'a str,
    ) -> Later<'a, Option<Result<(), String>>> {
        Box::pin(async move {
            let (verb, connection) = {
                let configured = self.0.configured.lock().unwrap_or_else(PoisonError::into_inner);
                let at = configured.policies.iter().position(|policy| policy.bind_verb.is_some())?;
                (configured.policies[at].bind_verb.clone()?, configured.connections[at].clone())
            };
            Some(
                async { send(&connection?, &verb, &BindingArgs::of(pod, node)).await.and_then(BindingResult::done) }
                    .await,
            )
        })
    }
}
