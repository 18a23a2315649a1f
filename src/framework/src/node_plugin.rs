//! The node level: extension points of the Scheduling Framework that find a node for one task.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;

use krafla_model::{ClusterState, NodeId, TaskId};

use crate::verdict::{Verdict, Why};

/// What the answer of a Filter or a Score depends on. An incremental search re-examines only what has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The pod's shape, and the node with what is on it.
    Node,
    /// The pod's shape, and what is in the node's topology domain.
    Domain,
    /// The whole cluster.
    Cluster,
}

/// Answer of PreFilter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFilter {
    /// Ask the Filter about every node.
    All,
    /// The Filter has nothing to say about this task.
    Skip,
    /// Only these nodes can do; the Filter is asked about them.
    Narrow(Vec<NodeId>),
    /// No node can do.
    Reject(Why),
}

/// Values that plugins leave for their later hooks within the search for one task, one of each type.
#[derive(Default)]
pub struct CycleState(BTreeMap<TypeId, Box<dyn Any>>);

impl CycleState {
    /// Leaves a value; replaces one of the same type.
    pub fn put<T: Any>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// The value of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A node-level plugin. It takes part in the points for which it names a scope; all hooks have neutral defaults.
///
/// Hooks are pure: the same cluster, task and node give the same answer.
pub trait NodePlugin: Send {
    /// Its name, as in Kubernetes.
    fn name(&self) -> &'static str;

    /// What its Filter depends on; `None` if it has none.
    fn filter_scope(&self) -> Option<Scope> {
        None
    }

    /// What its Score depends on; `None` if it has none.
    fn score_scope(&self) -> Option<Scope> {
        None
    }

    /// Once for a task, before any node is looked at.
    fn pre_filter(&self, _cluster: &ClusterState, _task: TaskId, _state: &mut CycleState) -> PreFilter {
        PreFilter::All
    }

    /// May the task run there? Called for each node that earlier filters let pass.
    fn filter(&self, _cluster: &ClusterState, _task: TaskId, _node: NodeId, _state: &CycleState) -> Verdict {
        Verdict::Fits
    }

    /// Once for a task, with all nodes that passed. `false` skips the Score.
    fn pre_score(&self, _cluster: &ClusterState, _task: TaskId, _nodes: &[NodeId], _state: &mut CycleState) -> bool {
        true
    }

    /// How good the node is; larger is better. Kubernetes' own plugins end in 0 to 100.
    fn score(&self, _cluster: &ClusterState, _task: TaskId, _node: NodeId, _state: &CycleState) -> f64 {
        0.0
    }

    /// Whether [`Self::normalize`] changes anything: scores then depend on all nodes that passed.
    fn normalizes(&self) -> bool {
        false
    }

    /// Brings the scores of all nodes to their final range, in place.
    fn normalize(&self, _scores: &mut [f64]) {}
}

/// Kubernetes' default normalisation: the highest score becomes 100, the others in proportion, in whole numbers.
/// `reversed`: the lowest raw score is best.
pub fn default_normalize(scores: &mut [f64], reversed: bool) {
    let highest = scores.iter().copied().fold(0.0, f64::max);
    for score in scores {
        let share = if highest > 0.0 { (100.0 * *score / highest).floor() } else { 0.0 };
        *score = if reversed { 100.0 - share } else { share };
    }
}

/// A plugin in a profile, and what it is there for.
pub struct ProfileEntry {
    pub(crate) plugin: Box<dyn NodePlugin>,
    pub(crate) filters: bool,
    /// What its score is multiplied by; 0 if it does not score.
    pub(crate) weight: f64,
}

impl ProfileEntry {
    /// A plugin that only filters.
    pub fn filter(plugin: Box<dyn NodePlugin>) -> Self {
        Self { plugin, filters: true, weight: 0.0 }
    }

    /// A plugin that only scores.
    pub fn score(plugin: Box<dyn NodePlugin>, weight: f64) -> Self {
        Self { plugin, filters: false, weight }
    }

    /// A plugin that does both.
    pub fn both(plugin: Box<dyn NodePlugin>, weight: f64) -> Self {
        Self { plugin, filters: true, weight }
    }
}

/// The configured set of node-level plugins, in order.
#[derive(Default)]
pub struct Profile {
    pub(crate) entries: Vec<ProfileEntry>,
    pub(crate) filters: Vec<usize>,
    pub(crate) scorers: Vec<usize>,
}

impl Profile {
    /// A profile of these plugins.
    pub fn new(entries: Vec<ProfileEntry>) -> Self {
        let with = |has: &dyn Fn(&ProfileEntry) -> bool| {
            entries.iter().enumerate().filter(|(_, entry)| has(entry)).map(|(i, _)| i).collect()
        };
        let filters = with(&|entry| entry.filters && entry.plugin.filter_scope().is_some());
        let scorers = with(&|entry| entry.plugin.score_scope().is_some() && entry.weight != 0.0);
        Self { filters, scorers, entries }
    }

    /// Whether every filter looks at one node only. Then room that shrinks can only turn a yes into a no.
    pub fn filters_by_node(&self) -> bool {
        self.filters.iter().all(|&i| self.entries[i].plugin.filter_scope() == Some(Scope::Node))
    }
}
