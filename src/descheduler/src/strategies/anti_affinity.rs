//! `RemovePodsViolatingInterPodAntiAffinity`: pods beside others that they must not be near.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::read as read_args;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::{ClusterState, NodeId, TaskId};

use crate::args::Choice;
use crate::evictor::details;
use crate::limits::Reached;
use crate::memory::Again;
use crate::policy::Strategy;
use crate::round::{Answer, Better, Request, Round};

/// Its arguments.
pub(crate) struct AntiAffinity {
    choice: Choice,
}

pub(crate) fn read(args: &Value) -> Result<AntiAffinity, Vec<ArgumentProblem>> {
    read_args(args, &["namespaces", "labelSelector"], |args| AntiAffinity { choice: Choice::read(args) })
}

/// A pod that `task` must not be near and is, if there is one among `others`.
fn near(cluster: &ClusterState, task: TaskId, node: NodeId, others: &[(TaskId, NodeId)]) -> Option<TaskId> {
    let domain = |node: NodeId, key: &str| cluster.node(node).spec.labels.get(key);
    for term in &cluster.shape_of(task).spec.pod_anti_affinity.required {
        let Some(own) = domain(node, &term.topology_key) else { continue };
        let is_meant = |(other, place): &&(TaskId, NodeId)| {
            let shape = &cluster.shape_of(*other).spec;
            *other != task
                && domain(*place, &term.topology_key) == Some(own)
                && term.matches(&shape.namespace, &shape.labels, |namespace| cluster.namespace_labels(namespace))
        };
        if let Some((other, _)) = others.iter().find(is_meant) {
            return Some(*other);
        }
    }
    None
}

impl Strategy for AntiAffinity {
    fn run(&self, round: &mut Round<'_, '_, '_>) -> Result<(), String> {
        let nodes = round.nodes().to_vec();
        let on = |round: &Round<'_, '_, '_>, node: NodeId| {
            round.pods_on(node).into_iter().map(move |task| (task, node)).collect::<Vec<_>>()
        };
        let mut all: Vec<(TaskId, NodeId)> = nodes.iter().flat_map(|node| on(round, *node)).collect();
        for node in nodes {
            let mut here = round.pods_on(node);
            let cluster = round.cluster();
            here.retain(|task| {
                !cluster.shape_of(*task).spec.pod_anti_affinity.required.is_empty() && self.choice.takes(cluster, *task)
            });
            here.sort_by_key(|task| (cluster.task(*task).priority, details(cluster, *task).qos, *task));
            for task in here {
                let Some(other) = near(round.cluster(), task, node, &all) else { continue };
                if !round.is_evictable(task) {
                    continue;
                }
                let why = format!("it must not be near {}, and is", round.cluster().task_label(other));
                let better = Some(Better { accept: &|_, _| true, again: Again::Allowed, load: None });
                match round.evict(&Request { task, why, better }) {
                    // Whoever it was too near to may stay now.
                    Answer::Goes(_) => all.retain(|(one, _)| *one != task),
                    Answer::Stays => {}
                    Answer::Limit(Reached::Total) => return Ok(()),
                    Answer::Limit(Reached::Node) => break,
                    Answer::Limit(Reached::Namespace) => {}
                }
            }
        }
        Ok(())
    }
}
