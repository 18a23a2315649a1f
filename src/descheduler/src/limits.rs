//! How many pods may go in one round: in all, from one node, from one namespace.

use std::collections::BTreeMap;

use krafla_framework::conf::descheduler::DeschedulerPolicy;
use krafla_model::{Name, NodeId};

/// The limit that is reached, from the widest to the narrowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// Of the round: nobody else goes.
    Total,
    /// Of the node: nobody else of it goes.
    Node,
    /// Of the namespace: other pods may go.
    Namespace,
}

impl Reached {
    /// As the metric has it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "maximum number of evicted pods in the round reached",
            Self::Node => "maximum number of evicted pods per node reached",
            Self::Namespace => "maximum number of evicted pods per namespace reached",
        }
    }
}

/// What one round has used up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    most_in_all: Option<u32>,
    most_per_node: Option<u32>,
    most_per_namespace: Option<u32>,
    in_all: u32,
    by_node: BTreeMap<NodeId, u32>,
    by_namespace: BTreeMap<Name, u32>,
}

impl Limits {
    pub(crate) fn of(policy: &DeschedulerPolicy) -> Self {
        Self {
            most_in_all: policy.most_in_all,
            most_per_node: policy.most_per_node,
            most_per_namespace: policy.most_per_namespace,
            ..Self::default()
        }
    }

    /// The first limit that one more would exceed.
    pub(crate) fn reached(&self, node: NodeId, namespace: &Name) -> Option<Reached> {
        let is_full = |most: Option<u32>, used: u32| most.is_some_and(|most| used >= most);
        if is_full(self.most_in_all, self.in_all) {
            Some(Reached::Total)
        } else if is_full(self.most_per_node, self.by_node.get(&node).copied().unwrap_or(0)) {
            Some(Reached::Node)
        } else if is_full(self.most_per_namespace, self.by_namespace.get(namespace).copied().unwrap_or(0)) {
            Some(Reached::Namespace)
        } else {
            None
        }
    }

    /// One pod goes.
    pub(crate) fn count(&mut self, node: NodeId, namespace: &Name) {
        self.in_all += 1;
        *self.by_node.entry(node).or_default() += 1;
        *self.by_namespace.entry(namespace.clone()).or_default() += 1;
    }
}
