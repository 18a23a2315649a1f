//! Whole objects, as extenders want them: the engine keeps only what it needs of them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use krafla_framework::{NodeVictims, PodRef};
use krafla_model::Name;
use kube::Api;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client::Clients;
use crate::perform::{CALL, text_of};

/// Victims that are read at once.
const READS: usize = 16;

/// Reads whole objects.
#[derive(Clone)]
pub(super) struct Objects {
    runtime: Handle,
    clients: Clients,
    /// Nodes, from the moment an extender wants them whole.
    nodes: Arc<OnceLock<Store<Node>>>,
}

impl Objects {
    pub(super) fn new(runtime: Handle, clients: Clients) -> Self {
        Self { runtime, clients, nodes: Arc::default() }
    }

    /// Begins to keep whole nodes.
    pub(super) fn watch_nodes(&self) {
        self.nodes.get_or_init(|| {
            let (store, writer) = reflector::store();
            let api = Api::<Node>::all(self.clients.watches.clone());
            let slim = |node: &mut Node| node.metadata.managed_fields = None;
            let stream = watcher(api, watcher::Config::default()).default_backoff().modify(slim);
            self.runtime.spawn(reflector(writer, stream).for_each(|_| async {}));
            store
        });
    }

    /// A pod; an error if it is gone.
    pub(super) async fn pod(&self, pod: &PodRef) -> Result<Value, String> {
        let api: Api<Pod> = Api::namespaced(self.clients.calls.clone(), &pod.namespace);
        self.clients.throttle.turn().await;
        let read = timeout(CALL, api.get_opt(&pod.name)).await;
        let read = read.map_err(|_| "the API server does not answer".to_owned())?.map_err(|error| text_of(&error))?;
        let found = read.filter(|found| found.metadata.uid.as_deref() == Some(&*pod.uid));
        let found = found.ok_or_else(|| format!("the pod {}/{} is gone", pod.namespace, pod.name))?;
        serde_json::to_value(&found).map_err(|error| error.to_string())
    }

    /// Nodes of these names, as a NodeList; those that are gone are left out.
    pub(super) async fn nodes(&self, names: &[String]) -> Result<Value, String> {
        self.watch_nodes();
        let Some(store) = self.nodes.get() else { return Err("the nodes are not known".to_owned()) };
        let ready = timeout(CALL, store.wait_until_ready()).await;
        if !matches!(ready, Ok(Ok(()))) {
            return Err("the nodes have not been listed yet".to_owned());
        }
        let found = names.iter().filter_map(|name| store.get(&ObjectRef::new(name)));
        let items: Result<Vec<Value>, _> = found.map(|node| serde_json::to_value(&*node)).collect();
        let items = items.map_err(|error| error.to_string())?;
        Ok(serde_json::json!({ "metadata": {}, "items": items }))
    }

    /// Victims as whole pods, by node, each with the budgets that they break.
    pub(super) async fn victims(
        &self,
        victims: &BTreeMap<Name, NodeVictims<PodRef>>,
    ) -> Result<BTreeMap<String, NodeVictims<Value>>, String> {
        let mut whole = BTreeMap::new();
        for (node, victims) in victims {
            let reads = stream::iter(victims.pods.clone()).map(|pod| async move { self.pod(&pod).await });
            let pods = reads.buffered(READS).try_collect().await?;
            whole.insert(node.to_string(), NodeVictims { pods, budget_violations: victims.budget_violations });
        }
        Ok(whole)
    }
}
