//! `InterPodAffinity`: pods that want to be near others, or away from them, by topology domain.
//!
//! PreFilter counts once, over all pods, in which domains pods are that matter; Filter looks a node's domains up. What
//! pods of one shape say of another is worked out once a shape.

mod score;

use std::collections::BTreeMap;

use krafla_framework::conf::plugin_args::read;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{CycleState, NodePlugin, PreFilter, PreScore, Room, Scope, Value, Verdict, Why};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::pod_affinity::PodTerm;
use krafla_model::{ClusterState, NodeId, PodShape, ShapeId, TaskId, TaskStatus};

use super::domains::{Domains, placed, promised};
use super::hints;

const AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const EXISTING_ANTI_AFFINITY: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// See the module.
pub struct InterPodAffinity {
    /// What a node scores for each pod whose required affinity the new pod would satisfy; 0 to 100.
    pub hard_pod_affinity_weight: i32,
    /// Whether what existing pods prefer counts only for pods that prefer something themselves.
    pub ignore_preferred_terms_of_existing_pods: bool,
    /// Whether who was promised room repels from its whole domain, as in a session, or only from its node, as
    /// kube-scheduler's nominated pods do.
    pub promises_reach_domains: bool,
}

/// What PreFilter counted.
struct Counted {
    /// Pods that the task must be near, by each term's key; they match all of the terms.
    wanted: Domains,
    /// Pods that it must be away from.
    unwanted: Domains,
    /// Pods that must be away from it.
    repelling: Domains,
}

impl NodePlugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Domain)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn score_scope_for(&self, cluster: &ClusterState, task: TaskId) -> Scope {
        if self.has_preferences(cluster, task) { Scope::Cluster } else { Scope::Nothing }
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let spec = &*cluster.shape_of(task).spec;
        let own = spec.pod_affinity.required.len() + spec.pod_anti_affinity.required.len();
        if own == 0 && cluster.repelling().next().is_none() {
            return PreFilter::Skip;
        }
        let mut counted =
            Counted { wanted: Domains::default(), unwanted: Domains::default(), repelling: Domains::default() };
        for other in cluster.repelling() {
            if let Some(node) = cluster.task(other).node() {
                self.count_repelling(cluster, task, other, node, 1, &mut counted);
            }
        }
        if own > 0 {
            let mut said: BTreeMap<ShapeId, Said> = BTreeMap::new();
            for (node, other) in placed(cluster) {
                let shape = cluster.task(other).shape;
                let said = said.entry(shape).or_insert_with(|| Said::of(cluster, spec, &cluster.shape(shape).spec));
                said.count(cluster, spec, node, cluster.task(other).status(), 1, &mut counted);
            }
            if self.promises_reach_domains {
                for other in cluster.reserved().filter(|other| is_promised(cluster, *other)) {
                    let Some(node) = cluster.task(other).node() else { continue };
                    let said = Said::of(cluster, spec, &cluster.shape_of(other).spec);
                    let unwanted_only = Said { wanted: false, ..said };
                    unwanted_only.count(cluster, spec, node, TaskStatus::Pipelined, 1, &mut counted);
                }
            }
        }
        // kube-scheduler does not ask whom nominated pods repel if nobody else repels and the pod itself says nothing.
        let nobody_repels = counted.repelling == Domains::default()
            && (!self.promises_reach_domains || cluster.reserved().next().is_none());
        if own == 0 && nobody_repels {
            return PreFilter::Skip;
        }
        state.put(counted);
        PreFilter::All
    }

    fn add_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {
        self.shift(cluster, task, other, node, 1, state);
    }

    fn remove_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {
        self.shift(cluster, task, other, node, -1, state);
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, state: &CycleState) -> Verdict {
        let Some(counted) = state.get::<Counted>() else { return Verdict::Fits };
        let spec = &*cluster.shape_of(task).spec;
        let labels = &cluster.node(node).spec.labels;
        if !is_near(cluster, spec, node, when, counted) {
            return Verdict::Unresolvable(Why::Says(AFFINITY));
        }
        let crowded = |terms: &[PodTerm], domains: &Domains| {
            let in_domain = |term: &PodTerm| {
                labels.get(&term.topology_key).is_some_and(|value| domains.at(&term.topology_key, value, when) > 0)
            };
            terms.iter().any(in_domain)
        };
        let here =
            || promised(cluster, node).filter(|other| *other != task).map(|other| &*cluster.shape_of(other).spec);
        let away_from = &spec.pod_anti_affinity.required;
        // Who was promised room on this very node counts whether or not promises reach further.
        let with_promised =
            |term: &PodTerm| labels.get(&term.topology_key).is_some() && here().any(|o| meets(cluster, term, o));
        if crowded(away_from, &counted.unwanted) || away_from.iter().any(with_promised) {
            return Verdict::Unschedulable(Why::Says(ANTI_AFFINITY));
        }
        let repelled = counted
            .repelling
            .keys()
            .any(|key| labels.get(key).is_some_and(|value| counted.repelling.at(key, value, when) > 0));
        let repelled_by_promised = || {
            here().any(|other| {
                let terms = other.pod_anti_affinity.required.iter();
                terms.into_iter().any(|term| labels.get(&term.topology_key).is_some() && meets(cluster, term, spec))
            })
        };
        if repelled || repelled_by_promised() {
            return Verdict::Unschedulable(Why::Says(EXISTING_ANTI_AFFINITY));
        }
        Verdict::Fits
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const POD: ActionType = ActionType::ADD.and(ActionType::DELETE).and(ActionType::UPDATE_POD_LABEL);
        const NODE: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_LABEL);
        Some(&[(EventResource::Pod, POD), (EventResource::Node, NODE)])
    }

    /// A pod that comes may be wanted, one that goes may have kept it away; of one whose labels change, and of one that was
    /// promised another place, either may hold.
    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        let About::Pod { shape, node, nominated, .. } = &event.about else { return true };
        if *nominated || hints::is_own(task, event) || event.action.has_any(ActionType::UPDATE_POD_LABEL) {
            return true;
        }
        let spec = &*cluster.shape_of(task).spec;
        let any = |terms: &[PodTerm], pod: &PodShape| terms.iter().any(|term| meets(cluster, term, pod));
        let wanted = any(&spec.pod_affinity.required, shape);
        let apart = any(&spec.pod_anti_affinity.required, shape) || any(&shape.pod_anti_affinity.required, spec);
        node.is_some() && if event.action.has_any(ActionType::DELETE) { apart } else { wanted }
    }

    fn pre_score(&self, cluster: &ClusterState, task: TaskId, _: &[NodeId], state: &mut CycleState) -> PreScore {
        self.count_preferences(cluster, task, state)
    }

    fn score(&self, cluster: &ClusterState, _: TaskId, node: NodeId, state: &CycleState) -> f64 {
        score::of_node(cluster, node, state)
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn normalizes_by_extremes(&self) -> bool {
        true
    }

    fn normalize(&self, _: &ClusterState, _: &[NodeId], _: &CycleState, scores: &mut [f64]) {
        score::normalize(scores);
    }
}

impl InterPodAffinity {
    /// As in Volcano's sessions, where promises are made for whole jobs.
    pub fn in_a_session(hard_pod_affinity_weight: i32) -> Self {
        Self { hard_pod_affinity_weight, ignore_preferred_terms_of_existing_pods: false, promises_reach_domains: true }
    }

    /// From `InterPodAffinityArgs`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"], |args| Self {
            hard_pod_affinity_weight: i32::try_from(args.integer("hardPodAffinityWeight", 0..=100, 1)).unwrap_or(1),
            ignore_preferred_terms_of_existing_pods: args.bool("ignorePreferredTermsOfExistingPods", false),
            promises_reach_domains: false,
        })
    }

    /// Pods that must be away from the task.
    fn count_repelling(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        other: TaskId,
        node: NodeId,
        by: i64,
        counted: &mut Counted,
    ) {
        let status = cluster.task(other).status();
        if status == TaskStatus::Pipelined && !self.promises_reach_domains {
            return;
        }
        let spec = &*cluster.shape_of(task).spec;
        for term in &cluster.shape_of(other).spec.pod_anti_affinity.required {
            if meets(cluster, term, spec) {
                counted.repelling.shift(cluster, node, &term.topology_key, status, by);
            }
        }
    }

    fn shift(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        other: TaskId,
        node: NodeId,
        by: i64,
        state: &mut CycleState,
    ) {
        let Some(counted) = state.get_mut::<Counted>() else { return };
        let spec = &*cluster.shape_of(task).spec;
        self.count_repelling(cluster, task, other, node, by, counted);
        let status = cluster.task(other).status();
        Said::of(cluster, spec, &cluster.shape_of(other).spec).count(cluster, spec, node, status, by, counted);
    }
}

/// What a pod's required terms say of another pod.
struct Said {
    /// The other matches every affinity term.
    wanted: bool,
    /// Which anti-affinity terms it matches, by place.
    unwanted: Vec<usize>,
}

impl Said {
    fn of(cluster: &ClusterState, spec: &PodShape, other: &PodShape) -> Self {
        let (towards, away) = (&spec.pod_affinity.required, &spec.pod_anti_affinity.required);
        Self {
            wanted: !towards.is_empty() && towards.iter().all(|term| meets(cluster, term, other)),
            unwanted: (0..away.len()).filter(|&i| meets(cluster, &away[i], other)).collect(),
        }
    }

    fn count(
        &self,
        cluster: &ClusterState,
        spec: &PodShape,
        node: NodeId,
        status: TaskStatus,
        by: i64,
        counted: &mut Counted,
    ) {
        if self.wanted {
            for term in &spec.pod_affinity.required {
                counted.wanted.shift(cluster, node, &term.topology_key, status, by);
            }
        }
        for &i in &self.unwanted {
            let key = &spec.pod_anti_affinity.required[i].topology_key;
            counted.unwanted.shift(cluster, node, key, status, by);
        }
    }
}

/// Whether a node's domains have whom the task must be near. The first pod of a group that wants to be near its own
/// kind may go anywhere where there are such domains.
fn is_near(cluster: &ClusterState, spec: &PodShape, node: NodeId, when: Room, counted: &Counted) -> bool {
    let terms = &spec.pod_affinity.required;
    let labels = &cluster.node(node).spec.labels;
    let mut near = true;
    for term in terms {
        match labels.get(&term.topology_key) {
            None => return false,
            Some(value) => near &= counted.wanted.at(&term.topology_key, value, when) > 0,
        }
    }
    near || (counted.wanted.is_empty(when) && terms.iter().all(|term| meets(cluster, term, spec)))
}

/// Whether a term means a pod.
pub(super) fn meets(cluster: &ClusterState, term: &PodTerm, pod: &PodShape) -> bool {
    term.matches(&pod.namespace, &pod.labels, |namespace| cluster.namespace_labels(namespace))
}

fn is_promised(cluster: &ClusterState, task: TaskId) -> bool {
    cluster.task(task).status() == TaskStatus::Pipelined
}

#[cfg(test)]
mod tests;
