//! `RemovePodsViolatingNodeTaints`: pods on nodes with a taint that they do not tolerate.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::{PluginArgs, read as read_args};
use krafla_framework::registry::ArgumentProblem;
use krafla_model::taints::{Effect, Taint, tolerated};
use krafla_model::{ClusterState, NodeId, TaskId};

use crate::args::Choice;
use crate::limits::Reached;
use crate::memory::Again;
use crate::policy::Strategy;
use crate::round::{Answer, Better, Request, Round};

/// Its arguments.
pub(crate) struct NodeTaints {
    choice: Choice,
    preferences_too: bool,
    excluded: Vec<(String, Option<String>)>,
    included: Vec<(String, Option<String>)>,
}

pub(crate) fn read(args: &Value) -> Result<NodeTaints, Vec<ArgumentProblem>> {
    let fields = ["includePreferNoSchedule", "excludedTaints", "includedTaints", "namespaces", "labelSelector"];
    read_args(args, &fields, |args| {
        let (excluded, included) = (taints(args, fields[1]), taints(args, fields[2]));
        if !excluded.is_empty() && !included.is_empty() {
            args.problem(fields[2], "both `excludedTaints` and `includedTaints` are given; keep one of them");
        }
        NodeTaints { preferences_too: args.bool(fields[0], false), excluded, included, choice: Choice::read(args) }
    })
}

/// Taints as `key` or `key=value`.
fn taints(args: &mut PluginArgs<'_, '_>, key: &str) -> Vec<(String, Option<String>)> {
    let read = |(_, text): (String, &str)| match text.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    };
    args.texts(key).into_iter().map(read).collect()
}

impl NodeTaints {
    /// The first taint of a node that a pod should not be with.
    fn violated<'c>(&self, cluster: &'c ClusterState, task: TaskId, node: NodeId) -> Option<&'c Taint> {
        let is = |(key, value): &(String, Option<String>), taint: &Taint| {
            taint.key == key.as_str() && value.as_ref().is_none_or(|value| taint.value == value.as_str())
        };
        let tolerations = &cluster.shape_of(task).spec.tolerations;
        cluster.node(node).spec.taints.iter().find(|taint| {
            let counts = match taint.effect {
                Effect::NoSchedule => true,
                Effect::PreferNoSchedule => self.preferences_too,
                // Kubernetes evicts them itself.
                Effect::NoExecute => false,
            };
            counts
                && !self.excluded.iter().any(|excluded| is(excluded, taint))
                && (self.included.is_empty() || self.included.iter().any(|included| is(included, taint)))
                && !tolerated(tolerations, taint)
        })
    }
}

impl Strategy for NodeTaints {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        for node in round.nodes().to_vec() {
            // From the newest on, as the descheduler has it.
            for task in round.pods_on(node).into_iter().rev() {
                let cluster = round.cluster();
                let Some(taint) = self.violated(cluster, task, node) else { continue };
                if !self.choice.takes(cluster, task) || !round.is_evictable(task) {
                    continue;
                }
                let why = format!("the node has the taint `{}`, which the pod does not tolerate", taint.key);
                let accept = |cluster: &ClusterState, other: NodeId| self.violated(cluster, task, other).is_none();
                let better = Some(Better { accept: &accept, again: Again::Allowed, load: None });
                match round.evict(&Request { task, why, better }) {
                    Answer::Limit(Reached::Total) => return Ok(()),
                    Answer::Limit(Reached::Node) => break,
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
