//! The cluster that both look at: made in Kubernetes, and told to Krafla's model in the same order.

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use krafla_api::{Object, Selecting};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::generate::pods::Owner;
use crate::generate::{NAMESPACES, nodes, pods, surroundings};
use crate::ours::Ours;
use crate::stage::{Stage, Verdict, create, delete_now, patch, patch_status};
use crate::storage::Stored;

/// How many nodes and services there are, and how many pods wait that are nominated for a node, at most.
const MOST_NODES: usize = 24;
const FEWEST_NODES: usize = 6;
const MOST_SERVICES: usize = 8;
const MOST_NOMINEES: usize = 4;
/// A label that no node has.
const NOWHERE: &str = "nowhere";

/// See the module.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) ours: Ours,
    pub(crate) dice: Dice,
    pub(crate) nodes: Vec<String>,
    /// Pods that have a node, as they were last seen.
    pub(crate) placed: Vec<Pod>,
    owners: Vec<Owner>,
    services: Vec<Service>,
    pub(crate) stored: Stored,
    nominees: Vec<Pod>,
    named: u32,
    touched: u32,
    /// Faults that Krafla finds with objects that the API server took.
    pub(crate) problems: Vec<String>,
}

impl World {
    /// Namespaces and classes, and nothing else.
    pub(crate) async fn new(dice: Dice, preempt: bool) -> anyhow::Result<Self> {
        let stage = Stage::start().await?;
        let mut this = Self {
            stage,
            ours: Ours::new(),
            dice,
            nodes: Vec::new(),
            placed: Vec::new(),
            owners: Vec::new(),
            services: Vec::new(),
            stored: Stored::default(),
            nominees: Vec::new(),
            named: 0,
            touched: 0,
            problems: Vec::new(),
        };
        for manifest in surroundings::namespaces(&mut this.dice) {
            let namespace = create(&this.stage.all::<Namespace>(), &manifest).await?;
            this.tell(Object::Namespace(Box::new(namespace)));
        }
        for manifest in surroundings::priority_classes(preempt) {
            let class = create(&this.stage.all::<PriorityClass>(), &manifest).await?;
            this.tell(Object::PriorityClass(Box::new(class)));
        }
        create(&this.stage.all::<RuntimeClass>(), &surroundings::runtime_class()).await?;
        Ok(this)
    }

    /// A cluster to begin with.
    pub(crate) async fn fill(&mut self) -> anyhow::Result<()> {
        for _ in 0..6 {
            self.add_replica_set().await?;
        }
        for _ in 0..4 {
            self.add_service().await?;
        }
        for _ in 0..self.dice.between(10, 16) {
            self.add_node().await?;
            let node = self.nodes[self.nodes.len() - 1].clone();
            self.add_csi_node(&node).await?;
        }
        self.fill_storage().await?;
        self.touch_nodes().await
    }

    /// Tells the model of an object.
    pub(crate) fn tell(&mut self, object: Object) {
        self.problems.extend(self.ours.apply(&object));
    }

    pub(crate) fn tell_pod(&mut self, pod: &Pod) {
        self.tell(Object::Pod(Box::new(pod.clone())));
    }

    /// A name that was not used before.
    pub(crate) fn name(&mut self, prefix: &str) -> String {
        self.named += 1;
        format!("{prefix}-{}", self.named)
    }

    /// The manifest of a pod, random.
    pub(crate) fn next_pod(&mut self) -> Value {
        let name = self.name("p");
        pods::pod(&mut self.dice, &name, &self.nodes, &self.owners)
    }

    /// Creates a pod and tells the model.
    pub(crate) async fn create_pod(&mut self, manifest: &Value) -> anyhow::Result<Pod> {
        let namespace = manifest["metadata"]["namespace"].as_str().context("a pod's namespace")?;
        let pod = create(&self.stage.of::<Pod>(namespace), manifest).await?;
        self.tell_pod(&pod);
        Ok(pod)
    }

    /// Notes what became of a pod: it is placed, or removed again.
    pub(crate) async fn follow(&mut self, pod: Pod, verdict: &Verdict) -> anyhow::Result<()> {
        match verdict {
            Verdict::Bound(_) => {
                self.tell_pod(&pod);
                self.placed.push(pod);
                Ok(())
            }
            Verdict::Refused(_) => self.remove(&pod).await,
        }
    }

    /// Removes a pod at once.
    pub(crate) async fn remove(&mut self, pod: &Pod) -> anyhow::Result<()> {
        let (namespace, name) = key(pod);
        delete_now(&self.stage.of::<Pod>(namespace), name).await?;
        self.ours.gone(&Object::Pod(Box::new(pod.clone())));
        self.placed.retain(|other| other.metadata.uid != pod.metadata.uid);
        Ok(())
    }

    /// Something happens, or nothing.
    pub(crate) async fn change(&mut self) -> anyhow::Result<()> {
        // About as many go as come, so that the cluster stays as full as it is.
        while self.placed.len() > 7 * self.nodes.len() || (self.placed.len() > 10 && self.dice.chance(25)) {
            let pod = self.placed.remove(self.dice.index(self.placed.len()));
            self.remove(&pod).await?;
        }
        if !self.dice.chance(30) {
            return Ok(());
        }
        match self.dice.index(16) {
            0 | 1 if self.nodes.len() < MOST_NODES => {
                self.add_node().await?;
                let node = self.nodes[self.nodes.len() - 1].clone();
                self.add_csi_node(&node).await?;
                self.add_local_volume().await?;
                self.touch_nodes().await?;
            }
            2 if self.nodes.len() > FEWEST_NODES => {
                self.remove_node().await?;
                self.touch_nodes().await?;
            }
            3..=7 => self.change_node().await?,
            8 => self.add_service().await?,
            9 => self.change_namespace().await?,
            10 | 11 => self.change_pod_labels().await?,
            12 | 13 => self.end_pod().await?,
            _ => self.nominate().await?,
        }
        self.stage.settle().await;
        Ok(())
    }

    pub(crate) async fn add_node(&mut self) -> anyhow::Result<()> {
        let name = self.name("n");
        let manifest = nodes::node(&mut self.dice, &name);
        let node = create(&self.stage.all::<Node>(), &manifest).await?;
        self.tell(Object::Node(Box::new(node)));
        self.nodes.push(name);
        Ok(())
    }

    /// kube-scheduler counts the nodes that hold an image anew for a node that changes, and goes by an older count for the
    /// others. So that both count the same, each node changes in something that does not matter.
    pub(crate) async fn touch_nodes(&mut self) -> anyhow::Result<()> {
        self.touched += 1;
        let change = json!({ "metadata": { "annotations": { "touched": self.touched.to_string() } } });
        for name in &self.nodes {
            patch::<Node>(&self.stage.all(), name, &change).await?;
        }
        Ok(())
    }

    /// A node goes, and its pods a little later.
    async fn remove_node(&mut self) -> anyhow::Result<()> {
        let name = self.nodes.remove(self.dice.index(self.nodes.len()));
        let api = self.stage.all::<Node>();
        let node = api.get(&name).await?;
        delete_now(&api, &name).await?;
        self.ours.gone(&Object::Node(Box::new(node)));
        self.remove_csi_node(&name).await?;
        let on_it = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_ref() == Some(&name));
        let orphans: Vec<Pod> = self.placed.iter().filter(on_it).cloned().collect();
        for pod in orphans {
            if self.dice.chance(80) {
                self.remove(&pod).await?;
            }
        }
        Ok(())
    }

    async fn change_node(&mut self) -> anyhow::Result<()> {
        let name = self.nodes[self.dice.index(self.nodes.len())].clone();
        let api = self.stage.all::<Node>();
        let node = match self.dice.index(5) {
            0 => {
                let old = api.get(&name).await?.metadata.labels.unwrap_or_default();
                let mut labels = nodes::labels(&mut self.dice, &name);
                for key in old.into_keys() {
                    labels.entry(key).or_insert(Value::Null);
                }
                patch(&api, &name, &json!({ "metadata": { "labels": labels } })).await?
            }
            1 => patch(&api, &name, &json!({ "spec": { "taints": nodes::taints(&mut self.dice, 60) } })).await?,
            2 => patch(&api, &name, &json!({ "spec": { "unschedulable": self.dice.chance(30) } })).await?,
            3 => patch_status(&api, &name, &json!({ "status": { "images": nodes::images(&mut self.dice) } })).await?,
            _ => {
                let resources = nodes::resources(&mut self.dice);
                let status = json!({ "capacity": resources, "allocatable": resources });
                patch_status(&api, &name, &json!({ "status": status })).await?
            }
        };
        self.tell(Object::Node(Box::new(node)));
        self.touch_nodes().await
    }

    async fn add_service(&mut self) -> anyhow::Result<()> {
        if self.services.len() >= MOST_SERVICES {
            let service = self.services.remove(self.dice.index(self.services.len()));
            let namespace = service.metadata.namespace.clone().unwrap_or_default();
            delete_now(&self.stage.of::<Service>(&namespace), service.metadata.name.as_deref().unwrap_or_default())
                .await?;
            self.ours.gone(&Object::Service(Box::new(service)));
        }
        let name = self.name("s");
        let manifest = surroundings::service(&mut self.dice, &name);
        let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let service = create(&self.stage.of::<Service>(&namespace), &manifest).await?;
        self.tell(Object::Service(Box::new(service.clone())));
        self.services.push(service);
        Ok(())
    }

    async fn add_replica_set(&mut self) -> anyhow::Result<()> {
        let name = self.name("rs");
        let manifest = surroundings::replica_set(&mut self.dice, &name);
        let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let set = create(&self.stage.of::<ReplicaSet>(&namespace), &manifest).await?;
        let reference = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": set.metadata.uid, "controller": true,
        });
        self.owners.push((namespace, reference));
        let selector = Some(set.spec.selector);
        self.tell(Object::Selecting(Box::new(Selecting { kind: "ReplicaSet", metadata: set.metadata, selector })));
        Ok(())
    }

    async fn change_namespace(&mut self) -> anyhow::Result<()> {
        let name = self.dice.pick(&NAMESPACES);
        let mut labels = surroundings::namespace_labels(&mut self.dice);
        for key in ["team", "stage"] {
            if labels.get(key).is_none() {
                labels[key] = Value::Null;
            }
        }
        let api = self.stage.all::<Namespace>();
        let namespace = patch(&api, name, &json!({ "metadata": { "labels": labels } })).await?;
        self.tell(Object::Namespace(Box::new(namespace)));
        Ok(())
    }

    async fn change_pod_labels(&mut self) -> anyhow::Result<()> {
        if self.placed.is_empty() {
            return Ok(());
        }
        let at = self.dice.index(self.placed.len());
        let mut labels = pods::labels(&mut self.dice);
        for key in ["app", "tier", "rev", "owner"] {
            if labels.get(key).is_none() {
                labels[key] = Value::Null;
            }
        }
        let (namespace, name) = key(&self.placed[at]);
        let pod = patch(&self.stage.of::<Pod>(namespace), name, &json!({ "metadata": { "labels": labels } })).await?;
        self.tell_pod(&pod);
        self.placed[at] = pod;
        Ok(())
    }

    /// A pod runs, ends, or begins to terminate and stays so.
    async fn end_pod(&mut self) -> anyhow::Result<()> {
        if self.placed.is_empty() {
            return Ok(());
        }
        let at = self.dice.index(self.placed.len());
        let (namespace, name) = key(&self.placed[at]);
        let api = self.stage.of::<Pod>(namespace);
        let pod = if self.dice.chance(50) {
            api.delete(name, &DeleteParams::default()).await?;
            let Some(pod) = api.get_opt(name).await? else {
                // It had ended, and nobody waits for its end.
                let gone = self.placed.remove(at);
                self.ours.gone(&Object::Pod(Box::new(gone)));
                return Ok(());
            };
            pod
        } else {
            let phase = self.dice.pick(&["Running", "Succeeded", "Failed"]);
            let before = self.placed[at].status.as_ref().and_then(|status| status.phase.as_deref());
            if matches!(before, Some("Succeeded" | "Failed")) {
                return Ok(()); // what has ended stays so
            }
            patch_status(&api, name, &json!({ "status": { "phase": phase } })).await?
        };
        self.tell_pod(&pod);
        self.placed[at] = pod;
        Ok(())
    }

    /// A pod that cannot run yet is nominated for a node, as if its preemption were under way.
    async fn nominate(&mut self) -> anyhow::Result<()> {
        if self.nominees.len() >= MOST_NOMINEES {
            let pod = self.nominees.remove(0);
            self.remove(&pod).await?;
        }
        let mut manifest = self.next_pod();
        manifest["spec"]["nodeSelector"][NOWHERE] = json!("yes");
        manifest["spec"]["nodeSelector"].as_object_mut().context("a selector")?.retain(|key, _| key == NOWHERE);
        let pod = self.create_pod(&manifest).await?;
        let (namespace, name) = key(&pod);
        self.stage.verdict(namespace, name).await?;
        let node = &self.nodes[self.dice.index(self.nodes.len())];
        let status = json!({ "status": { "nominatedNodeName": node } });
        let pod = patch_status(&self.stage.of::<Pod>(namespace), name, &status).await?;
        self.tell_pod(&pod);
        self.nominees.push(pod);
        Ok(())
    }

    /// Some pods, as `namespace/name`, are gone.
    pub(crate) fn forget(&mut self, gone: &[String]) {
        let is_gone = |pod: &Pod| gone.contains(&label(pod));
        for pod in self.placed.iter().filter(|pod| is_gone(pod)) {
            self.ours.gone(&Object::Pod(Box::new(pod.clone())));
        }
        self.placed.retain(|pod| !is_gone(pod));
    }

    /// The manifest of a node, as it is now.
    pub(crate) async fn node(&self, name: &str) -> anyhow::Result<Value> {
        let api: Api<Node> = self.stage.all();
        Ok(serde_json::to_value(api.get(name).await?)?)
    }
}

/// Namespace and name of a pod.
pub(crate) fn key(pod: &Pod) -> (&str, &str) {
    let meta = &pod.metadata;
    (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

/// A pod as `namespace/name`.
pub(crate) fn label(pod: &Pod) -> String {
    let (namespace, name) = key(pod);
    format!("{namespace}/{name}")
}
