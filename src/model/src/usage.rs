//! What nodes and pods really use, as somebody measured it. Requests say what is promised; this says what is so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{NodeId, TaskId};
use crate::name::Name;
use crate::resources::{Amounts, Resources};
use crate::state::ClusterState;
use crate::time::Time;

/// The use of a whole, in millionths.
pub const WHOLE_PPM: i64 = 1_000_000;

/// What one node uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeUsageSpec {
    /// The node.
    pub node: Name,
    /// When it was measured.
    pub at: Time,
    /// CPU in milli-CPU, memory in bytes.
    pub used: Amounts,
    /// The answer to the query of the descheduler's policy, in millionths of the whole, where that is the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_ppm: Option<i64>,
}

/// What one pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodUsageSpec {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// CPU in milli-CPU, memory in bytes.
    pub used: Amounts,
}

/// What is known of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeUsage {
    /// When it was measured.
    pub at: Time,
    /// What it uses.
    pub used: Resources,
    /// The answer to the policy's query, in millionths.
    pub sample_ppm: Option<i64>,
}

/// Everything that was measured last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    nodes: BTreeMap<Name, NodeUsage>,
    pods: BTreeMap<(Name, Name), Resources>,
}

impl ClusterState {
    /// What a node used when that was measured last.
    pub fn node_usage(&self, node: NodeId) -> Option<&NodeUsage> {
        self.measured.nodes.get(self.node(node).name())
    }

    /// What a pod used when that was measured last.
    pub fn pod_usage(&self, task: TaskId) -> Option<&Resources> {
        if self.measured.pods.is_empty() {
            return None;
        }
        self.measured.pods.get(&(self.namespace_of(task).clone(), self.task(task).name.clone()))
    }

    pub(crate) fn apply_node_usage(&mut self, spec: NodeUsageSpec) {
        let used = self.only_known(&spec.used);
        // Plugins may keep pods off a busy node, and let them on again.
        self.room_version += 1;
        if let Some(id) = self.find_node(&spec.node) {
            self.nodes[id].version = self.version;
        }
        self.measured.nodes.insert(spec.node, NodeUsage { at: spec.at, used, sample_ppm: spec.sample_ppm });
    }

    pub(crate) fn apply_pod_usage(&mut self, specs: Vec<PodUsageSpec>) {
        self.measured.pods =
            specs.into_iter().map(|spec| ((spec.namespace, spec.name), self.only_known(&spec.used))).collect();
    }

    pub(crate) fn forget_node_usage(&mut self, node: &Name) {
        self.measured.nodes.remove(node);
    }

    /// Amounts of resources that the cluster has; nothing can be done about others.
    fn only_known(&self, amounts: &Amounts) -> Resources {
        let mut known = Resources::default();
        for (name, amount) in amounts.iter() {
            if let Some(id) = self.names.find(name) {
                known.set(id, amount);
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, NodeSpec, ResourceId};

    #[test]
    fn what_was_measured_last_counts_and_goes_with_the_node() {
        let mut cluster = ClusterState::new();
        let allocatable = Amounts::default().with("cpu", 4_000);
        let node =
            || Event::Node(NodeSpec { name: "n".into(), allocatable: allocatable.clone(), ..NodeSpec::default() });
        cluster.apply(node());
        let id = cluster.find_node("n").unwrap();
        assert_eq!(cluster.node_usage(id), None);
        for cpu in [1_000, 3_000] {
            let used = Amounts::default().with("cpu", cpu).with("unheard-of", 7);
            cluster.apply(Event::NodeUsage(NodeUsageSpec { node: "n".into(), used, ..NodeUsageSpec::default() }));
        }
        assert_eq!(cluster.node_usage(id).unwrap().used, Resources::default().with(ResourceId::CPU, 3_000));
        cluster.apply(Event::NodeGone("n".into()));
        cluster.apply(node());
        assert_eq!(cluster.node_usage(cluster.find_node("n").unwrap()), None);
    }
}
