//! Nodes that are there because their objects say so.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// How many calls go out at once.
const CALLS: usize = 32;

/// A node to be created, to be chained.
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeBuilder {
    name: String,
    resources: BTreeMap<String, Quantity>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    taints: Vec<Taint>,
    ready: bool,
}

/// A ready node with so much CPU and memory, in Kubernetes' notation, and room for 110 pods.
pub fn node(name: impl Into<String>, cpu: &str, memory: &str) -> NodeBuilder {
    let name = name.into();
    let labels =
        [("kubernetes.io/hostname", name.as_str()), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", "amd64")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    let builder = NodeBuilder {
        name,
        resources: BTreeMap::new(),
        labels,
        annotations: BTreeMap::new(),
        taints: Vec::new(),
        ready: true,
    };
    builder.holds("cpu", cpu).holds("memory", memory).holds("pods", "110")
}

impl NodeBuilder {
    /// Capacity and allocatable of a resource: `pods`, `ephemeral-storage`, `nvidia.com/gpu`.
    pub fn holds(mut self, resource: &str, amount: &str) -> Self {
        self.resources.insert(resource.to_owned(), Quantity(amount.to_owned()));
        self
    }

    /// A label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// An annotation.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// A taint; its effect is `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        let taint = Taint {
            key: key.to_owned(),
            value: Some(value.to_owned()).filter(|value| !value.is_empty()),
            effect: effect.to_owned(),
            ..Taint::default()
        };
        self.taints.push(taint);
        self
    }

    /// A node whose kubelet does not say that it is ready.
    pub fn not_ready(mut self) -> Self {
        self.ready = false;
        self
    }

    /// The object, status included.
    pub fn build(self) -> Node {
        let system = NodeSystemInfo {
            architecture: "amd64".to_owned(),
            kubelet_version: "v1.37.2".to_owned(),
            operating_system: "linux".to_owned(),
            ..NodeSystemInfo::default()
        };
        Node {
            metadata: ObjectMeta {
                name: Some(self.name),
                labels: Some(self.labels),
                annotations: Some(self.annotations).filter(|annotations| !annotations.is_empty()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                taints: Some(self.taints).filter(|taints| !taints.is_empty()),
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus {
                capacity: Some(self.resources.clone()),
                allocatable: Some(self.resources),
                conditions: Some(vec![ready_condition(self.ready)]),
                node_info: Some(system),
                ..NodeStatus::default()
            }),
        }
    }
}

impl From<NodeBuilder> for Node {
    fn from(builder: NodeBuilder) -> Self {
        builder.build()
    }
}

/// Creates nodes. An API server takes the status of a node with its creation, as of no other object; later it goes
/// through the subresource.
pub async fn create_nodes<N: Into<Node>>(
    client: &Client,
    nodes: impl IntoIterator<Item = N>,
) -> Result<(), kube::Error> {
    let api: Api<Node> = Api::all(client.clone());
    let nodes: Vec<Node> = nodes.into_iter().map(Into::into).collect();
    let create = async |node: Node| api.create(&PostParams::default(), &node).await.map(drop);
    futures::stream::iter(nodes.into_iter().map(create)).buffer_unordered(CALLS).try_collect().await
}

/// Says that a node is ready, or that it no longer is.
pub async fn set_ready(client: &Client, node: &str, ready: bool) -> Result<(), kube::Error> {
    let api: Api<Node> = Api::all(client.clone());
    let patch = Patch::Strategic(json!({ "status": { "conditions": [ready_condition(ready)] } }));
    api.patch_status(node, &PatchParams::default(), &patch).await.map(drop)
}

fn ready_condition(ready: bool) -> NodeCondition {
    let now = Some(Time(Timestamp::now()));
    NodeCondition {
        type_: "Ready".to_owned(),
        status: if ready { "True" } else { "False" }.to_owned(),
        reason: Some(if ready { "KubeletReady" } else { "KubeletNotReady" }.to_owned()),
        message: Some("the kubelet stand-in says so".to_owned()),
        last_heartbeat_time: now.clone(),
        last_transition_time: now,
    }
}
