//! `RemovePodsViolatingNodeAffinity`: pods on nodes that their node affinity does not want, or wants less than others.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::read as read_args;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::{ClusterState, NodeId, TaskId};

use crate::args::Choice;
use crate::limits::Reached;
use crate::memory::Again;
use crate::policy::Strategy;
use crate::round::{Answer, Better, Request, Round};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Its arguments.
pub(crate) struct NodeAffinity {
    choice: Choice,
    required: bool,
    preferred: bool,
}

pub(crate) fn read(args: &Value) -> Result<NodeAffinity, Vec<ArgumentProblem>> {
    read_args(args, &["nodeAffinityType", "namespaces", "labelSelector"], |args| {
        let (mut required, mut preferred) = (false, false);
        for (path, kind) in args.texts("nodeAffinityType") {
            match kind {
                REQUIRED => required = true,
                PREFERRED => preferred = true,
                _ => args.problem_at(path, format!("there is no `{kind}`; they are: {REQUIRED}, {PREFERRED}")),
            }
        }
        if args.get("nodeAffinityType").is_none() {
            let message = format!("it is missing; write `nodeAffinityType: [{REQUIRED}]`");
            args.problem("nodeAffinityType", message);
        }
        NodeAffinity { required, preferred, choice: Choice::read(args) }
    })
}

/// Whether a node is one that a pod requires.
fn is_required(cluster: &ClusterState, task: TaskId, node: NodeId) -> bool {
    let (shape, spec) = (&cluster.shape_of(task).spec, &cluster.node(node).spec);
    let selected = shape.node_selector.iter().all(|(key, value)| spec.labels.get(key) == Some(value));
    let terms = shape.required_affinity.as_ref();
    selected && terms.is_none_or(|terms| terms.iter().any(|term| term.matches(&spec.name, &spec.labels)))
}

/// How much a pod prefers a node.
fn preference(cluster: &ClusterState, task: TaskId, node: NodeId) -> i64 {
    let (shape, spec) = (&cluster.shape_of(task).spec, &cluster.node(node).spec);
    let holds = |(_, term): &&(i32, krafla_model::labels::NodeSelectorTerm)| term.matches(&spec.name, &spec.labels);
    shape.preferred_affinity.iter().filter(holds).map(|(weight, _)| i64::from(*weight)).sum()
}

impl NodeAffinity {
    fn required(&self, round: &mut Round<'_, '_, '_>, task: TaskId, node: NodeId) -> Option<Answer> {
        let cluster = round.cluster();
        let shape = &cluster.shape_of(task).spec;
        let requires = shape.required_affinity.is_some() || !shape.node_selector.is_empty();
        if !requires || is_required(cluster, task, node) || !round.fits_elsewhere(task) {
            return None;
        }
        let why = "the node is not one that the pod requires any more".to_owned();
        let accept = |cluster: &ClusterState, other: NodeId| is_required(cluster, task, other);
        let better = Some(Better { accept: &accept, again: Again::Allowed, load: None });
        Some(round.evict(&Request { task, why, better }))
    }

    fn preferred(&self, round: &mut Round<'_, '_, '_>, task: TaskId, node: NodeId) -> Option<Answer> {
        if round.cluster().shape_of(task).spec.preferred_affinity.is_empty() {
            return None;
        }
        let own = preference(round.cluster(), task, node);
        let nodes = round.nodes().to_vec();
        let liked = nodes.into_iter().filter(|other| preference(round.cluster(), task, *other) > own);
        let liked: Vec<NodeId> = liked.collect();
        if !liked.into_iter().any(|other| round.fits_on(task, other)) {
            return None;
        }
        let why = format!("the pod prefers other nodes to this one, which it gives {own} points");
        let accept = |cluster: &ClusterState, other: NodeId| preference(cluster, task, other) > own;
        let better = Some(Better { accept: &accept, again: Again::Allowed, load: None });
        Some(round.evict(&Request { task, why, better }))
    }
}

impl Strategy for NodeAffinity {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        for node in round.nodes().to_vec() {
            for task in round.pods_on(node) {
                if !self.choice.takes(round.cluster(), task) || !round.is_evictable(task) {
                    continue;
                }
                let mut answer = if self.required { self.required(round, task, node) } else { None };
                if answer.is_none() && self.preferred {
                    answer = self.preferred(round, task, node);
                }
                match answer {
                    Some(Answer::Limit(Reached::Total)) => return Ok(()),
                    Some(Answer::Limit(Reached::Node)) => break,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
