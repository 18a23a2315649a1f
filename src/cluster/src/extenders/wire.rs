//! What goes over the wire: `k8s.io/kube-scheduler/extender/v1`. Go reads keys in any case, and writes them as here;
//! extenders in other languages use the case of older versions, so both are read.

use std::collections::BTreeMap;

use krafla_framework::scheduling::extender::Filtered;
use krafla_framework::{NodeVictims, PodRef};
use krafla_model::Name;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// To JSON.
pub(super) fn encode<T: Serialize>(args: &T) -> Result<Vec<u8>, String> {
    serde_json::to_vec(args).map_err(|error| error.to_string())
}

/// From JSON.
pub(super) fn decode<T: DeserializeOwned>(answer: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(answer)
}

/// What filter and prioritize are asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ExtenderArgs {
    pub(super) pod: Value,
    pub(super) nodes: Option<Value>,
    pub(super) node_names: Option<Vec<String>>,
}

/// What filter answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FilterResult {
    #[serde(alias = "Nodes")]
    nodes: Option<NodeList>,
    #[serde(rename = "NodeNames", alias = "nodeNames", alias = "nodenames")]
    node_names: Option<Vec<String>>,
    #[serde(rename = "FailedNodes", alias = "failedNodes", alias = "failednodes")]
    failed: Option<BTreeMap<String, String>>,
    #[serde(rename = "FailedAndUnresolvableNodes", alias = "failedAndUnresolvableNodes")]
    unresolvable: Option<BTreeMap<String, String>>,
    #[serde(alias = "Error")]
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct NodeList {
    #[serde(alias = "Items")]
    items: Option<Vec<NamedNode>>,
}

#[derive(Debug, Deserialize)]
struct NamedNode {
    metadata: NodeName,
}

#[derive(Debug, Deserialize)]
struct NodeName {
    name: String,
}

impl FilterResult {
    /// The answer about these nodes. A node that nobody asked about is an error, as in kube-scheduler.
    pub(super) fn into_filtered(self, by_names: bool, asked: &[&str]) -> Result<Filtered, String> {
        if let Some(error) = self.error.filter(|error| !error.is_empty()) {
            return Err(error);
        }
        let whole = self.nodes.and_then(|list| list.items);
        let whole = whole.map(|items| items.into_iter().map(|node| node.metadata.name).collect());
        let passed = if by_names { self.node_names.or(whole) } else { whole };
        let passed = passed.unwrap_or_default();
        if let Some(stranger) = passed.iter().find(|name| !asked.contains(&name.as_str())) {
            return Err(format!("it passes the node {stranger:?}, which it was not asked about"));
        }
        Ok(Filtered {
            passed: passed.into_iter().collect(),
            failed: self.failed.unwrap_or_default(),
            unresolvable: self.unresolvable.unwrap_or_default(),
        })
    }
}

/// One score of prioritize.
#[derive(Debug, Deserialize)]
pub(super) struct HostPriority {
    #[serde(alias = "Host")]
    pub(super) host: String,
    #[serde(alias = "Score")]
    pub(super) score: i64,
}

/// Who would have to go from a node, as it is sent and answered.
#[derive(Debug, Serialize, Deserialize)]
struct Victims<P> {
    #[serde(rename = "Pods", alias = "pods", default = "Option::default")]
    pods: Option<Vec<P>>,
    #[serde(rename = "NumPDBViolations", alias = "numPDBViolations", default)]
    violations: i64,
}

/// A pod by its UID.
#[derive(Debug, Serialize, Deserialize)]
struct MetaPod {
    #[serde(rename = "UID", alias = "uid")]
    uid: String,
}

/// What preempt is asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct PreemptionArgs {
    pod: Value,
    node_name_to_victims: Option<BTreeMap<String, Victims<Value>>>,
    node_name_to_meta_victims: Option<BTreeMap<String, Victims<MetaPod>>>,
}

impl PreemptionArgs {
    /// With victims by their UIDs.
    pub(super) fn meta(pod: Value, victims: &BTreeMap<Name, NodeVictims<PodRef>>) -> Self {
        let meta = |pod: &PodRef| MetaPod { uid: pod.uid.to_string() };
        let victims = victims.iter().map(|(node, victims)| {
            let pods = Some(victims.pods.iter().map(meta).collect());
            (node.to_string(), Victims { pods, violations: victims.budget_violations })
        });
        Self { pod, node_name_to_victims: None, node_name_to_meta_victims: Some(victims.collect()) }
    }

    /// With victims as whole pods.
    pub(super) fn whole(pod: Value, victims: BTreeMap<String, NodeVictims<Value>>) -> Self {
        let whole =
            |victims: NodeVictims<Value>| Victims { pods: Some(victims.pods), violations: victims.budget_violations };
        let victims = victims.into_iter().map(|(node, victims)| (node, whole(victims))).collect();
        Self { pod, node_name_to_victims: Some(victims), node_name_to_meta_victims: None }
    }
}

/// What preempt answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PreemptionResult {
    #[serde(rename = "NodeNameToMetaVictims", alias = "nodeNameToMetaVictims")]
    victims: Option<BTreeMap<String, Victims<MetaPod>>>,
}

impl PreemptionResult {
    /// By node, the UIDs of who is to go.
    pub(super) fn into_victims(self) -> BTreeMap<String, NodeVictims<String>> {
        let uids = |victims: Victims<MetaPod>| NodeVictims {
            pods: victims.pods.unwrap_or_default().into_iter().map(|pod| pod.uid).collect(),
            budget_violations: victims.violations,
        };
        self.victims.unwrap_or_default().into_iter().map(|(node, victims)| (node, uids(victims))).collect()
    }
}

/// What bind is asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BindingArgs {
    pod_name: String,
    pod_namespace: String,
    #[serde(rename = "PodUID")]
    pod_uid: String,
    node: String,
}

impl BindingArgs {
    /// A pod to a node.
    pub(super) fn of(pod: &PodRef, node: &str) -> Self {
        let [pod_name, pod_namespace, pod_uid] = [&pod.name, &pod.namespace, &pod.uid].map(ToString::to_string);
        Self { pod_name, pod_namespace, pod_uid, node: node.to_owned() }
    }
}

/// What bind answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BindingResult {
    #[serde(alias = "Error")]
    error: Option<String>,
}

impl BindingResult {
    /// Whether it was done.
    pub(super) fn done(self) -> Result<(), String> {
        self.error.filter(|error| !error.is_empty()).map_or(Ok(()), Err)
    }
}
