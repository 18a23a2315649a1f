//! Extenders: services outside of the scheduler that take part in its decisions.
//!
//! They are asked one after another, each about what the ones before left. A shell makes the calls; where it makes none,
//! as in a simulation, pods are placed as if there were no extenders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krafla_model::{ClusterState, Name, NodeId, Shape, TaskId};

use crate::conf::policy::ExtenderPolicy;
use crate::effect::PodRef;
use crate::scheduling::verdict::{RefusalCount, Verdict, Why};

/// Highest score that an extender may give; a plugin's is ten times as much.
const MAX_EXTENDER_SCORE: f64 = 10.0;
const MAX_NODE_SCORE: f64 = 100.0;

/// The name under which an objection of any extender is remembered: everything may help against it.
const ANY_EXTENDER: &str = "/extender";

/// The name of the binding plugin that leaves a bind to the extender that binds.
pub const EXTENDER_BIND: &str = "/extender-bind";

/// What an extender says about nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Names of the nodes that will do.
    pub passed: BTreeSet<String>,
    /// Nodes that will not, and why; evictions may help.
    pub failed: BTreeMap<String, String>,
    /// Nodes that will not whatever is evicted, and why.
    pub unresolvable: BTreeMap<String, String>,
}

/// Who would have to go from a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeVictims<P> {
    /// The pods, the most important first.
    pub pods: Vec<P>,
    /// How many of them a budget protects.
    pub budget_violations: i64,
}

/// Calls to extenders. Each waits for its answer, for at most the extender's own time; an error is a sentence.
pub trait ExtenderCalls: Send + Sync {
    /// A configuration with these extenders takes effect.
    fn configured(&self, extenders: &[ExtenderPolicy]);

    /// Which of these nodes will do for the pod.
    fn filter(&self, to: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) -> Result<Filtered, String>;

    /// Scores from 0 to 10, by the node's name.
    fn prioritize(&self, to: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) -> Result<BTreeMap<String, i64>, String>;

    /// Which nodes a preemption may clear, and of whom: the UIDs of all or some of those that it was asked about.
    fn process_preemption(
        &self,
        to: &ExtenderPolicy,
        pod: &PodRef,
        victims: &BTreeMap<Name, NodeVictims<PodRef>>,
    ) -> Result<BTreeMap<String, NodeVictims<String>>, String>;
}

/// The extenders of one configuration.
#[derive(Clone)]
pub struct Extenders {
    policies: Arc<[ExtenderPolicy]>,
    calls: Arc<dyn ExtenderCalls>,
}

impl Extenders {
    /// `None` if there are none, or nobody who calls them.
    pub fn new(policies: &[ExtenderPolicy], calls: Option<&Arc<dyn ExtenderCalls>>) -> Option<Self> {
        let calls = calls?;
        calls.configured(policies);
        (!policies.is_empty()).then(|| Self { policies: policies.into(), calls: Arc::clone(calls) })
    }

    /// Whether any of them chooses among nodes for pods of this shape.
    pub(crate) fn choose(&self, cluster: &ClusterState, shape: &Shape) -> bool {
        let asked = |to: &&ExtenderPolicy| to.filter_verb.is_some() || to.prioritize_verb.is_some();
        self.policies.iter().filter(asked).any(|to| is_interested(to, cluster, shape))
    }

    /// Whether one of them binds pods of this shape.
    pub fn bind(&self, cluster: &ClusterState, shape: &Shape) -> bool {
        self.policies.iter().any(|to| to.bind_verb.is_some() && is_interested(to, cluster, shape))
    }

    /// Whether one of them has a say in a preemption for a task.
    pub(crate) fn preempt(&self, cluster: &ClusterState, task: TaskId) -> bool {
        self.asked(cluster, task, |to| &to.preempt_verb).next().is_some()
    }

    fn asked<'a>(
        &'a self,
        cluster: &'a ClusterState,
        task: TaskId,
        verb: fn(&ExtenderPolicy) -> &Option<String>,
    ) -> impl Iterator<Item = &'a ExtenderPolicy> {
        let shape = cluster.shape_of(task);
        self.policies.iter().filter(move |to| verb(to).is_some() && is_interested(to, cluster, shape))
    }

    /// Takes from `nodes` those to which an extender objects. `Err` is the sentence of one that failed and may not.
    pub(crate) fn filter(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &mut Vec<NodeId>,
        mut objection: impl FnMut(NodeId, Verdict),
    ) -> Result<(), String> {
        let pod = PodRef::of(cluster, task);
        for to in self.asked(cluster, task, |to| &to.filter_verb) {
            if nodes.is_empty() {
                break;
            }
            match self.calls.filter(to, &pod, &names(cluster, nodes)) {
                Ok(said) => nodes.retain(|&node| match about(&said, &cluster.node(node).name()[..]) {
                    Verdict::Fits => true,
                    other => {
                        objection(node, other);
                        false
                    }
                }),
                Err(why) if to.ignorable => tracing::debug!(extender = to.url_prefix, why, "skipped"),
                Err(why) => return Err(format!("extender {}: {why}", to.url_prefix)),
            }
        }
        Ok(())
    }

    /// Adds what they think of `nodes` to the plugins' scores. One that gives no answer has no say.
    #[allow(clippy::cast_precision_loss, reason = "scores of at most ten, weights of at most a million")]
    pub(crate) fn prioritize(&self, cluster: &ClusterState, task: TaskId, nodes: &[NodeId], totals: &mut [f64]) {
        let pod = PodRef::of(cluster, task);
        for to in self.asked(cluster, task, |to| &to.prioritize_verb) {
            match self.calls.prioritize(to, &pod, &names(cluster, nodes)) {
                Ok(scores) => {
                    for (node, total) in nodes.iter().zip(&mut *totals) {
                        let score = scores.get(&cluster.node(*node).name()[..]).copied().unwrap_or(0);
                        *total += (score * to.weight) as f64 * (MAX_NODE_SCORE / MAX_EXTENDER_SCORE);
                    }
                }
                Err(why) => tracing::debug!(extender = to.url_prefix, why, "gives no scores"),
            }
        }
    }

    /// Leaves of the nodes that a preemption may clear those to which they agree, each with whom they want gone.
    /// `Err` is the sentence of one that failed and may not, or answers with pods that it was not asked about.
    pub(crate) fn process_preemption(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        mut candidates: BTreeMap<NodeId, NodeVictims<TaskId>>,
    ) -> Result<BTreeMap<NodeId, NodeVictims<TaskId>>, String> {
        let pod = PodRef::of(cluster, task);
        for to in self.asked(cluster, task, |to| &to.preempt_verb) {
            if candidates.is_empty() {
                break;
            }
            let refs = candidates.iter().map(|(node, victims)| {
                let pods = victims.pods.iter().map(|victim| PodRef::of(cluster, *victim)).collect();
                (cluster.node(*node).name().clone(), NodeVictims { pods, budget_violations: victims.budget_violations })
            });
            let said = self.calls.process_preemption(to, &pod, &refs.collect());
            match said.and_then(|said| chosen(cluster, &candidates, said)) {
                Ok(left) => candidates = left,
                Err(why) if to.ignorable => tracing::debug!(extender = to.url_prefix, why, "skipped"),
                Err(why) => return Err(format!("extender {}: {why}", to.url_prefix)),
            }
        }
        Ok(candidates)
    }
}

/// Whether pods of this shape are an extender's business: it manages something that they ask for, or manages nothing in
/// particular.
fn is_interested(to: &ExtenderPolicy, cluster: &ClusterState, shape: &Shape) -> bool {
    let asks_for =
        |name: &str| shape.request.iter().any(|(id, amount)| amount > 0 && cluster.names().name(id).as_str() == name);
    to.managed_resources.is_empty() || to.managed_resources.iter().any(|managed| asks_for(&managed.name))
}

fn names<'a>(cluster: &'a ClusterState, nodes: &[NodeId]) -> Vec<&'a str> {
    nodes.iter().map(|node| &cluster.node(*node).name()[..]).collect()
}

/// What an extender says about one node. One that it says nothing about is left out.
fn about(said: &Filtered, node: &str) -> Verdict {
    if said.passed.contains(node) {
        return Verdict::Fits;
    }
    match (said.unresolvable.get(node), said.failed.get(node)) {
        (Some(why), _) => Verdict::Unresolvable(Why::Told(why.as_str().into())),
        (None, Some(why)) => Verdict::Unschedulable(Why::Told(why.as_str().into())),
        (None, None) => Verdict::Unschedulable(Why::Says("node(s) were left out by an extender")),
    }
}

/// An answer about victims, in terms of those it was asked about.
fn chosen(
    cluster: &ClusterState,
    candidates: &BTreeMap<NodeId, NodeVictims<TaskId>>,
    said: BTreeMap<String, NodeVictims<String>>,
) -> Result<BTreeMap<NodeId, NodeVictims<TaskId>>, String> {
    let mut left = BTreeMap::new();
    for (name, victims) in said {
        let known = cluster.find_node(&name).and_then(|node| Some((node, candidates.get(&node)?)));
        let (node, known) = known.ok_or_else(|| format!("it was not asked about victims on the node {name:?}"))?;
        let find = |uid: &String| known.pods.iter().copied().find(|task| cluster.task(*task).uid[..] == **uid);
        let pods = victims.pods.iter().map(|uid| find(uid).ok_or_else(|| format!("on {name:?} is no victim {uid:?}")));
        let pods = pods.collect::<Result<_, String>>()?;
        left.insert(node, NodeVictims { pods, budget_violations: victims.budget_violations });
    }
    Ok(left)
}

/// How an objection of an extender is counted.
pub(crate) fn count(refused: &mut RefusalCount, unschedulable: &mut Vec<NodeId>, node: NodeId, verdict: Verdict) {
    refused.plugins.insert(ANY_EXTENDER);
    if matches!(verdict, Verdict::Unschedulable(_)) {
        unschedulable.push(node);
    }
    refused.add(node, verdict);
}
