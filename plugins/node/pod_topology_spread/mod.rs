//! `PodTopologySpread`: pods spread evenly over topology domains.
//!
//! Constraints that must hold are counted in PreFilter, once for a pod; the others, which rank nodes, in PreScore.

mod args;
mod filter;
mod score;

use krafla_framework::{CycleState, NodePlugin, PreFilter, PreScore, Room, Scope, Verdict};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::labels::Selector;
use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::taints::{Effect, tolerated};
use krafla_model::{ClusterState, Name, NodeId, PodShape, TaskId, TaskStatus};

use super::domains::holding;
use super::{hints, node_affinity};

/// The label of a node's own name: its domains are the nodes themselves.
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Which constraints pods get that have none themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defaults {
    /// Over nodes with a skew of 3, and over zones with one of 5, if it can be helped.
    System,
    /// These; their selectors are filled in.
    List(Vec<SpreadConstraint>),
}

/// See the module.
pub struct PodTopologySpread {
    /// For pods that have no constraints.
    pub defaults: Defaults,
    /// Whether who was promised room counts in its whole domain, as in a session, or only for its node, as
    /// kube-scheduler's nominated pods do.
    pub promises_reach_domains: bool,
}

impl NodePlugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Domain)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Domain)
    }

    fn score_scope_for(&self, cluster: &ClusterState, task: TaskId) -> Scope {
        if self.constraints(cluster, task, false).is_empty() { Scope::Nothing } else { Scope::Domain }
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let constraints = self.constraints(cluster, task, true);
        if constraints.is_empty() {
            return PreFilter::Skip;
        }
        let mut counted: filter::Counted = state.take_kept().unwrap_or_default();
        counted.follow(cluster, task, constraints, self.promises_reach_domains);
        state.put_kept(counted);
        PreFilter::All
    }

    fn add_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {
        if let Some(counted) = state.get_mut::<filter::Counted>() {
            counted.shift(cluster, task, other, node, 1);
        }
    }

    fn remove_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {
        if let Some(counted) = state.get_mut::<filter::Counted>() {
            counted.shift(cluster, task, other, node, -1);
        }
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, state: &CycleState) -> Verdict {
        let counted = state.get::<filter::Counted>();
        counted.map_or(Verdict::Fits, |counted| counted.verdict(cluster, task, node, self.promises_reach_domains))
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const POD: ActionType = ActionType::ADD
            .and(ActionType::DELETE)
            .and(ActionType::UPDATE_POD_LABEL)
            .and(ActionType::UPDATE_POD_TOLERATION);
        const NODE: ActionType = ActionType::ADD
            .and(ActionType::DELETE)
            .and(ActionType::UPDATE_NODE_LABEL)
            .and(ActionType::UPDATE_NODE_TAINT);
        Some(&[(EventResource::Pod, POD), (EventResource::Node, NODE)])
    }

    /// Pods of other namespaces are not counted. Whether labels mattered before they changed is not known.
    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        match &event.about {
            About::Pod { shape, .. } => {
                let counts = hints::holder(event).is_some() && shape.namespace == *cluster.namespace_of(task);
                hints::is_own(task, event) || counts
            }
            _ => true,
        }
    }

    fn pre_score(&self, cluster: &ClusterState, task: TaskId, nodes: &[NodeId], state: &mut CycleState) -> PreScore {
        let constraints = self.constraints(cluster, task, false);
        if constraints.is_empty() || nodes.is_empty() {
            return PreScore::Skip;
        }
        let own = !cluster.shape_of(task).spec.spread.is_empty();
        let needs_all_keys = own || self.defaults != Defaults::System;
        let mut counted: score::Counted = state.take_kept().unwrap_or_default();
        counted.follow(cluster, task, nodes, constraints, needs_all_keys);
        state.put_kept(counted);
        PreScore::Score
    }

    fn score(&self, cluster: &ClusterState, _: TaskId, node: NodeId, state: &CycleState) -> f64 {
        state.get::<score::Counted>().map_or(0.0, |counted| counted.of_node(cluster, node))
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn normalize(&self, cluster: &ClusterState, nodes: &[NodeId], state: &CycleState, scores: &mut [f64]) {
        if let Some(counted) = state.get::<score::Counted>() {
            counted.normalize(cluster, nodes, scores);
        }
    }
}

impl PodTopologySpread {
    /// As in Volcano's sessions, where promises are made for whole jobs.
    pub fn in_a_session() -> Self {
        Self { defaults: Defaults::System, promises_reach_domains: true }
    }

    /// The constraints of a task that must hold, or the others: its own, or else the defaults for the pods that its
    /// services and its workload select.
    fn constraints(&self, cluster: &ClusterState, task: TaskId, must_hold: bool) -> Vec<SpreadConstraint> {
        let spec = &*cluster.shape_of(task).spec;
        if !spec.spread.is_empty() {
            return spec.spread.iter().filter(|constraint| constraint.must_hold == must_hold).cloned().collect();
        }
        // Asked for every pod: what cannot matter is found out before anything is made.
        if !cluster.knows_workloads() || (must_hold && self.defaults == Defaults::System) {
            return Vec::new();
        }
        let defaults = match &self.defaults {
            Defaults::System => system_defaults(),
            Defaults::List(list) => list.clone(),
        };
        let mut wanted: Vec<SpreadConstraint> =
            defaults.into_iter().filter(|constraint| constraint.must_hold == must_hold).collect();
        if wanted.is_empty() {
            return wanted;
        }
        let selector = default_selector(cluster, spec);
        if selector.0.is_empty() {
            return Vec::new();
        }
        for constraint in &mut wanted {
            constraint.selector = Some(selector.clone());
        }
        wanted
    }
}

fn system_defaults() -> Vec<SpreadConstraint> {
    let soft = |key: &str, max_skew| SpreadConstraint {
        max_skew,
        topology_key: key.into(),
        must_hold: false,
        selector: None,
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    };
    vec![soft(HOSTNAME, 3), soft(ZONE, 5)]
}

/// What the services that select a pod select, merged as label sets: a later service overwrites what an earlier one says of
/// a label. What its workload selects is asked for on top of that, except that a ReplicationController's labels are merged
/// too. Empty if there is neither.
fn default_selector(cluster: &ClusterState, spec: &PodShape) -> Selector {
    let mut selector = Selector::default();
    for service in cluster.services(&spec.namespace) {
        if !service.0.is_empty() && service.matches(&spec.labels) {
            merge(&mut selector, service);
        }
    }
    if let Some(workload) = &spec.workload
        && let Some(own) = cluster.workload_selector(&spec.namespace, workload)
    {
        match workload.kind.as_str() {
            "ReplicationController" => merge(&mut selector, own),
            _ => selector.0.extend(own.0.iter().cloned()),
        }
    }
    selector
}

fn merge(selector: &mut Selector, more: &Selector) {
    for requirement in &more.0 {
        match selector.0.iter_mut().find(|known| known.key == requirement.key) {
            Some(known) => known.test = requirement.test.clone(),
            None => selector.0.push(requirement.clone()),
        }
    }
}

/// Whether a node counts for a constraint, by what the pod itself says of nodes.
fn is_included(constraint: &SpreadConstraint, cluster: &ClusterState, spec: &PodShape, node: NodeId) -> bool {
    let host = &cluster.node(node).spec;
    if constraint.honors_affinity && !node_affinity::required_matches(spec, host) {
        return false;
    }
    let keeps_off = |taint: &&krafla_model::taints::Taint| {
        taint.effect != Effect::PreferNoSchedule && !tolerated(&spec.tolerations, taint)
    };
    !constraint.honors_taints || host.taints.iter().find(keeps_off).is_none()
}

/// The value of a node's label.
fn value<'c>(cluster: &'c ClusterState, node: NodeId, key: &str) -> Option<&'c Name> {
    cluster.node(node).spec.labels.get(key)
}

/// Whether a pod counts for a constraint of a pod of this namespace. Pods that terminate do not.
fn counts(constraint: &SpreadConstraint, namespace: &Name, cluster: &ClusterState, other: TaskId) -> bool {
    let pod = cluster.task(other);
    let spec = &cluster.shape_of(other).spec;
    pod.status() != TaskStatus::Releasing
        && spec.namespace == *namespace
        && constraint.selector.as_ref().is_some_and(|selector| selector.matches(&spec.labels))
}

/// How many pods on a node count for a constraint. For a selector that means every pod kube-scheduler counts none, though
/// the pod itself then counts where its constraint must hold.
fn count_on(constraint: &SpreadConstraint, namespace: &Name, cluster: &ClusterState, node: NodeId) -> i64 {
    if constraint.selector.as_ref().is_none_or(|selector| selector.0.is_empty()) {
        return 0;
    }
    let counting = holding(cluster, node).filter(|other| counts(constraint, namespace, cluster, *other));
    i64::try_from(counting.count()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
