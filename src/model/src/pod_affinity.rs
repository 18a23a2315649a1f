//! Where a pod wants to be relative to other pods: affinity terms and spread constraints, compiled at the edge.

use serde::{Deserialize, Serialize};

use crate::labels::{Labels, Selector};
use crate::name::Name;

/// One term of a pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodTerm {
    /// The node label whose value names the domain.
    pub topology_key: Name,
    /// Which pods it is about; `None` matches none. `matchLabelKeys` and `mismatchLabelKeys` are part of it.
    pub selector: Option<Selector>,
    /// The namespaces of those pods.
    pub namespaces: Namespaces,
}

/// The namespaces that a term looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Namespaces {
    /// These.
    pub names: Vec<Name>,
    /// And those whose labels match; an empty selector matches every namespace.
    pub selector: Option<Selector>,
}

impl PodTerm {
    /// Whether a pod of this namespace, with these labels, is meant. `labels_of` has the labels of namespaces.
    pub fn matches<'a>(
        &self,
        namespace: &Name,
        labels: &Labels,
        labels_of: impl Fn(&Name) -> Option<&'a Labels>,
    ) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
            && self.namespaces.has(namespace, labels_of)
    }
}

impl Namespaces {
    /// Whether a namespace is one of them. Labels of one that nobody told of are empty.
    pub fn has<'a>(&self, namespace: &Name, labels_of: impl Fn(&Name) -> Option<&'a Labels>) -> bool {
        self.names.contains(namespace)
            || self.selector.as_ref().is_some_and(|selector| match labels_of(namespace) {
                Some(labels) => selector.matches(labels),
                None => selector.matches(&Labels::default()),
            })
    }
}

/// The affinity, or the anti-affinity, of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PodTerms {
    /// Terms that must hold.
    pub required: Vec<PodTerm>,
    /// Terms that should, with weights of 1 to 100.
    pub preferred: Vec<(i32, PodTerm)>,
}

impl PodTerms {
    /// Whether there is no term.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpreadConstraint {
    /// By how much the fullest domain may exceed the emptiest; at least 1.
    pub max_skew: u32,
    /// The node label whose value names the domain.
    pub topology_key: Name,
    /// `DoNotSchedule`: nodes that would break it are out. Else it only ranks nodes.
    pub must_hold: bool,
    /// Which pods of the namespace count; `None` matches none. `matchLabelKeys` are part of it.
    pub selector: Option<Selector>,
    /// With fewer domains than this the emptiest counts as empty; at least 1.
    pub min_domains: u32,
    /// Whether nodes that the pod's node selector and affinity rule out are left out (`nodeAffinityPolicy: Honor`).
    pub honors_affinity: bool,
    /// Whether nodes whose taints the pod does not tolerate are left out (`nodeTaintsPolicy: Honor`).
    pub honors_taints: bool,
}

/// The controller of a pod, where default spread constraints ask for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Workload {
    /// `Service`, `ReplicaSet`, `ReplicationController` or `StatefulSet`.
    pub kind: Name,
    /// Its name.
    pub name: Name,
}

/// Whose pods a workload or a service means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadSpec {
    /// Its namespace.
    pub namespace: Name,
    /// Its kind and name.
    pub workload: Workload,
    /// Its selector; `None` matches none.
    pub selector: Option<Selector>,
}

/// A namespace and its labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceSpec {
    /// Its name.
    pub name: Name,
    /// Its labels.
    pub labels: Labels,
}
