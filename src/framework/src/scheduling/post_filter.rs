//! What a plugin may try when no node fits a pod: on the books themselves, and undone before it answers.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;

use krafla_model::journal::{Refusal, Savepoint};
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use crate::scheduling::extender::NodeVictims;
use crate::scheduling::profile::Profile;
use crate::scheduling::search::{SearchLimits, Searcher};
use crate::scheduling::verdict::Refusals;
use crate::scheduling::waiting::WaitingPods;

/// Answer of PostFilter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostFilter {
    /// The pod will fit there once these are gone, which may be nobody. It is nominated for the node and tried again
    /// when they are.
    Nominate {
        /// The node.
        node: NodeId,
        /// Who has to go.
        victims: Vec<TaskId>,
    },
    /// Something was done that may help, with words; the next plugin is asked all the same.
    Unschedulable(String),
    /// Nothing helps, with words; no other plugin is asked.
    Unresolvable(String),
}

/// A pod that found no node.
pub struct FailedAttempt<'a> {
    /// The pod.
    pub task: TaskId,
    /// Nodes whose objection an eviction may lift, in tie order.
    pub unschedulable: &'a [NodeId],
    /// What the nodes said.
    pub refusals: &'a Refusals,
    cluster: &'a mut ClusterState,
    profile: &'a Profile,
    searcher: &'a mut Searcher,
    waiting: &'a mut WaitingPods,
    /// Claims whose devices nobody uses and that are to lose them: namespace, name, UID.
    pub(crate) idle_claims: Vec<(Name, Name, Name)>,
}

impl<'a> FailedAttempt<'a> {
    pub(crate) fn new(
        task: TaskId,
        unschedulable: &'a [NodeId],
        refusals: &'a Refusals,
        cluster: &'a mut ClusterState,
        profile: &'a Profile,
        searcher: &'a mut Searcher,
        waiting: &'a mut WaitingPods,
    ) -> Self {
        Self { task, unschedulable, refusals, cluster, profile, searcher, waiting, idle_claims: Vec::new() }
    }

    /// The cluster, with what is being tried.
    pub fn cluster(&self) -> &ClusterState {
        self.cluster
    }

    /// The pods that wait at Permit, to be rejected.
    pub fn waiting(&mut self) -> &mut WaitingPods {
        self.waiting
    }

    /// A claim of devices that nobody uses is to lose them, so that it may get others.
    pub fn deallocate(&mut self, namespace: Name, name: Name, uid: Name) {
        self.idle_claims.push((namespace, name, uid));
    }

    /// Whether everything is to be tried, and nothing kept: what is right, to compare with.
    pub fn is_plain(&self) -> bool {
        self.searcher.is_plain()
    }

    /// The value of this type that was kept at an earlier pod; it holds for the cluster as it was then.
    pub fn take_kept<T: Any>(&mut self) -> Option<T> {
        Some(*self.searcher.kept.remove(&TypeId::of::<T>())?.downcast().ok()?)
    }

    /// Keeps a value for the next pod that fits nowhere, as long as the configuration stands.
    pub fn keep<T: Any>(&mut self, value: T) {
        self.searcher.kept.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// Where the books stand.
    pub fn savepoint(&self) -> Savepoint {
        self.cluster.savepoint()
    }

    /// Undoes what was tried since.
    pub fn undo(&mut self, savepoint: Savepoint) {
        while self.cluster.undo_one(savepoint).is_some() {}
    }

    /// As if `victim` were gone.
    pub fn remove(&mut self, victim: TaskId) -> Result<(), Refusal> {
        self.cluster.evict(victim)
    }

    /// As if it were there after all.
    pub fn add_back(&mut self, victim: TaskId) -> Result<(), Refusal> {
        self.cluster.reprieve(victim)
    }

    /// Whether the pod fits on a node as things are tried.
    pub fn fits(&mut self, node: NodeId) -> bool {
        let anytime = SearchLimits { may_start: true, may_wait: true };
        self.searcher.would_fit(self.profile, self.cluster, self.task, node, anytime)
    }

    /// Whether an extender has a say in preemption.
    pub fn has_preempting_extenders(&self) -> bool {
        self.profile.extenders.as_ref().is_some_and(|extenders| extenders.preempt(self.cluster, self.task))
    }

    /// Leaves of the nodes that could be cleared those to which the extenders agree. `Err` is the sentence of one that
    /// failed.
    pub fn ask_extenders(
        &self,
        candidates: BTreeMap<NodeId, NodeVictims<TaskId>>,
    ) -> Result<BTreeMap<NodeId, NodeVictims<TaskId>>, String> {
        match &self.profile.extenders {
            Some(extenders) => extenders.process_preemption(self.cluster, self.task, candidates),
            None => Ok(candidates),
        }
    }
}
