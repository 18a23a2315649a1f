//! `InterPodAffinity`: pods that want to be near others, or away from them, by topology domain.
//!
//! PreFilter counts in which domains pods are that matter (`count`); Filter looks a node's domains up.

mod count;
mod score;

use krafla_framework::conf::plugin_args::read;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{CycleState, NodePlugin, PreFilter, PreScore, Room, Scope, Value, Verdict, Why};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::pod_affinity::PodTerm;
use krafla_model::{ClusterState, NodeId, PodShape, TaskId};

use self::count::Counted;
use super::domains::{place, promised};
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

impl NodePlugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Domain)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Domain)
    }

    fn score_scope_for(&self, cluster: &ClusterState, task: TaskId) -> Scope {
        if self.has_preferences(cluster, task) { Scope::Domain } else { Scope::Nothing }
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let spec = &*cluster.shape_of(task).spec;
        let own = spec.pod_affinity.required.len() + spec.pod_anti_affinity.required.len();
        if own == 0 && cluster.repelling().next().is_none() {
            return PreFilter::Skip;
        }
        let mut counted = state.take_kept().unwrap_or_default();
        self.follow(&mut counted, cluster, task);
        let nobody_repels = counted.nobody_repels();
        state.put_kept(counted);
        // kube-scheduler does not ask whom nominated pods repel if nobody else repels and the pod itself says nothing. In a
        // session these are among those who repel.
        if own == 0 && nobody_repels { PreFilter::Skip } else { PreFilter::All }
    }

    fn add_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {
        if let Some(counted) = state.get_mut() {
            self.shift(counted, cluster, task, other, node, 1);
        }
    }

    fn remove_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {
        if let Some(counted) = state.get_mut() {
            self.shift(counted, cluster, task, other, node, -1);
        }
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, state: &CycleState) -> Verdict {
        let Some(counted) = state.get::<Counted>() else { return Verdict::Fits };
        let spec = &*cluster.shape_of(task).spec;
        let labels = &cluster.node(node).spec.labels;
        let at = place(cluster, node);
        if !counted.is_near(cluster, spec, at, when) {
            return Verdict::Unresolvable(Why::Says(AFFINITY));
        }
        let here =
            || promised(cluster, node).filter(|other| *other != task).map(|other| &*cluster.shape_of(other).spec);
        let away_from = &spec.pod_anti_affinity.required;
        // Who was promised room on this very node counts whether or not promises reach further.
        let with_promised =
            |term: &PodTerm| labels.get(&term.topology_key).is_some() && here().any(|o| meets(cluster, term, o));
        let some_promised = !cluster.node(node).books().pipelined.is_zero();
        if counted.is_crowded(at, when) || (some_promised && away_from.iter().any(with_promised)) {
            return Verdict::Unschedulable(Why::Says(ANTI_AFFINITY));
        }
        let repelled_by_promised = || {
            here().any(|other| {
                let terms = other.pod_anti_affinity.required.iter();
                terms.into_iter().any(|term| labels.get(&term.topology_key).is_some() && meets(cluster, term, spec))
            })
        };
        if counted.is_repelled(at, when) || (some_promised && repelled_by_promised()) {
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
}

/// Whether a term means a pod.
pub(super) fn meets(cluster: &ClusterState, term: &PodTerm, pod: &PodShape) -> bool {
    term.matches(&pod.namespace, &pod.labels, |namespace| cluster.namespace_labels(namespace))
}

#[cfg(test)]
mod tests;
