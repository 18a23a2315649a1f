//! `NodeAffinity`: node selector and node affinity, required and preferred.

use std::collections::BTreeSet;

use krafla_framework::conf::plugin_args::read;
use krafla_framework::node_plugin::default_normalize;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{CycleState, NodePlugin, PreFilter, PreScore, Room, Scope, Value, Verdict, Why};
use krafla_model::cluster_event::{ActionType, ClusterEvent, EventResource};
use krafla_model::labels::{NodeSelectorTerm, Test};
use krafla_model::{ClusterState, Name, NodeId, NodeSpec, PodShape, TaskId};

use super::{arguments, hints};

/// Whether a node is one that the pod's node selector and required affinity allow.
pub(crate) fn required_matches(spec: &PodShape, node: &NodeSpec) -> bool {
    let allowed = |terms: &Vec<NodeSelectorTerm>| terms.iter().any(|term| term.matches(&node.name, &node.labels));
    spec.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
        && spec.required_affinity.as_ref().is_none_or(allowed)
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeAffinity {
    /// What every pod of the profile requires beside its own: any of these terms.
    pub added_required: Option<Vec<NodeSelectorTerm>>,
    /// What every pod of the profile prefers beside its own, with weights.
    pub added_preferred: Vec<(i32, NodeSelectorTerm)>,
}

impl NodeAffinity {
    /// Whether a node is one that the profile allows all its pods.
    fn added_matches(&self, node: &NodeSpec) -> bool {
        let any = |terms: &Vec<NodeSelectorTerm>| terms.iter().any(|term| term.matches(&node.name, &node.labels));
        self.added_required.as_ref().is_none_or(any)
    }

    /// From `NodeAffinityArgs`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["addedAffinity"], |args| {
            let fields = [REQUIRED, PREFERRED];
            let Some(mut added) = args.map("addedAffinity", &fields) else { return Self::default() };
            let added_required = added.map(REQUIRED, &["nodeSelectorTerms"]).map(|mut required| {
                let terms = arguments::node_selector_terms(&mut required, "nodeSelectorTerms");
                if terms.is_empty() {
                    required
                        .problem("nodeSelectorTerms", "without terms no node would do; write `- matchExpressions: …`");
                }
                terms
            });
            let added_preferred = arguments::preferred_terms(&mut added, PREFERRED);
            Self { added_required, added_preferred }
        })
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

impl NodePlugin for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    /// If every term asks for nodes by name, only those need to be looked at.
    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, _: &mut CycleState) -> PreFilter {
        let spec = &cluster.shape_of(task).spec;
        let Some(terms) = &spec.required_affinity else {
            let says_nothing = spec.node_selector.is_empty() && self.added_required.is_none();
            return if says_nothing { PreFilter::Skip } else { PreFilter::All };
        };
        let mut named = BTreeSet::new();
        for term in terms {
            match names_asked_for(term) {
                Some(names) => named.extend(names),
                None => return PreFilter::All,
            }
        }
        if named.is_empty() {
            return PreFilter::Reject(Why::Says("pod affinity terms conflict"));
        }
        PreFilter::Narrow(named.iter().filter_map(|name| cluster.find_node(name)).collect())
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        let host = &cluster.node(node).spec;
        if !self.added_matches(host) {
            return Verdict::Unresolvable(Why::Says("node(s) didn't match scheduler-enforced node affinity"));
        }
        if required_matches(&cluster.shape_of(task).spec, host) {
            return Verdict::Fits;
        }
        Verdict::Unresolvable(Why::Says("node(s) didn't match Pod's node affinity/selector"))
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const NODE: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_LABEL);
        Some(&[(EventResource::Node, NODE)])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        let spec = &cluster.shape_of(task).spec;
        hints::suits_now(cluster, event, |node| self.added_matches(node) && required_matches(spec, node))
    }

    fn pre_score(&self, cluster: &ClusterState, task: TaskId, _: &[NodeId], _: &mut CycleState) -> PreScore {
        let prefers = !cluster.shape_of(task).spec.preferred_affinity.is_empty();
        PreScore::when(prefers || !self.added_preferred.is_empty())
    }

    /// Sum of the weights of the preferred terms that match. An empty term matches every node here.
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let node = &cluster.node(node).spec;
        let terms = cluster.shape_of(task).spec.preferred_affinity.iter().chain(&self.added_preferred);
        let matching = terms.filter(|(_, term)| term.is_empty() || term.matches(&node.name, &node.labels));
        f64::from(matching.map(|(weight, _)| *weight).sum::<i32>())
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn normalizes_by_extremes(&self) -> bool {
        true
    }

    fn normalize(&self, _: &ClusterState, _: &[NodeId], _: &CycleState, scores: &mut [f64]) {
        default_normalize(scores, false);
    }
}

/// The node names that a term restricts to, if it does: the intersection of its `In` conditions on the name.
fn names_asked_for(term: &NodeSelectorTerm) -> Option<BTreeSet<Name>> {
    let mut names: Option<BTreeSet<Name>> = None;
    for test in &term.name {
        let Test::In(values) = test else { continue };
        let values: BTreeSet<Name> = values.iter().cloned().collect();
        names = Some(match names {
            None => values,
            Some(before) => before.intersection(&values).cloned().collect(),
        });
    }
    names
}
