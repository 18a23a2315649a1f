//! The nominations of a session: nodes for pods that wait for the room of others, beyond the session itself.
//!
//! Whoever is tried sees those that come before it as if they were there. What is promised to them so can stand from one
//! try to the next: then a try costs who was nominated since, not all who are.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::journal::{Operation, Verb};
use krafla_model::{NodeId, TaskId};

use super::{Session, tell};
use crate::scheduling::point::ExtensionPoint;

/// See the module.
#[derive(Default)]
pub(super) struct Nominations {
    of: BTreeMap<TaskId, NodeId>,
    on: BTreeMap<NodeId, BTreeSet<TaskId>>,
    by_priority: BTreeMap<i32, BTreeSet<TaskId>>,
    /// Promises that stand on the books.
    kept: BTreeMap<TaskId, NodeId>,
    /// Whose promise may have to be made, or taken back.
    unsettled: BTreeSet<TaskId>,
    /// The least priority of those to whom promises are kept; `None` while none are.
    down_to: Option<i32>,
}

impl Nominations {
    /// All of them, by task.
    pub(super) fn into_map(self) -> BTreeMap<TaskId, NodeId> {
        self.of
    }

    fn insert(&mut self, task: TaskId, priority: i32, node: NodeId) {
        self.remove(task, priority);
        self.of.insert(task, node);
        self.on.entry(node).or_default().insert(task);
        self.by_priority.entry(priority).or_default().insert(task);
    }

    fn remove(&mut self, task: TaskId, priority: i32) {
        self.unsettled.insert(task);
        let Some(node) = self.of.remove(&task) else { return };
        if let Some(others) = self.on.get_mut(&node) {
            others.remove(&task);
        }
        if let Some(others) = self.by_priority.get_mut(&priority) {
            others.remove(&task);
        }
    }

    /// From now on promises are kept to those of at least this priority.
    fn keep_down_to(&mut self, priority: i32) {
        let of = match self.down_to.replace(priority) {
            Some(before) => self.by_priority.range(before.min(priority)..before.max(priority)),
            None => self.by_priority.range(priority..),
        };
        self.unsettled.extend(of.flat_map(|(_, tasks)| tasks));
    }
}

impl Session<'_> {
    /// Nominates a node for a task beyond this session; it holds nothing there.
    pub fn nominate(&mut self, task: TaskId, node: NodeId) {
        self.nominations.insert(task, self.cluster.task(task).priority, node);
    }

    /// Takes a task's nomination back.
    pub fn clear_nomination(&mut self, task: TaskId) {
        self.nominations.remove(task, self.cluster.task(task).priority);
    }

    /// Tasks that are nominated for a node beyond this session, by id.
    pub fn nominations(&self) -> impl Iterator<Item = (TaskId, NodeId)> {
        self.nominations.of.iter().map(|(task, node)| (*task, *node))
    }

    /// Tasks that are nominated for one node, by id.
    pub fn nominated_for(&self, node: NodeId) -> impl Iterator<Item = TaskId> {
        self.nominations.on.get(&node).into_iter().flatten().copied()
    }

    /// Whether what is promised to nominated tasks stands on the books: see [`Self::keep_promises_before`].
    pub fn keeps_promises(&self) -> bool {
        self.nominations.down_to.is_some()
    }

    /// Promises every nominated task that comes before `task` its node, and takes back what others were promised. It
    /// stands until [`Self::take_promises_back`], and nobody may look at the books meanwhile who is not to see it. Where
    /// somebody might, nothing is promised: where pods wait at Permit, or plugins follow what is done. Cost: nominations that
    /// have changed, or that come before one of the two tasks and not before the other.
    pub fn keep_promises_before(&mut self, task: TaskId) {
        let followed = self.plugins.names().next().is_some() || !self.plugins.waiting.is_empty();
        if followed || self.searcher.is_plain() {
            return self.take_promises_back();
        }
        let priority = self.cluster.task(task).priority;
        self.nominations.keep_down_to(priority);
        self.nominations.unsettled.insert(task);
        let mut refused = BTreeSet::from([task]);
        for other in std::mem::take(&mut self.nominations.unsettled) {
            let comes_before = other != task && self.cluster.task(other).priority >= priority;
            let node = self.nominations.of.get(&other).copied().filter(|_| comes_before);
            if node == self.nominations.kept.get(&other).copied() {
                continue;
            }
            self.take_promise_back(other);
            if let Some(node) = node
                && !self.keep_promise(other, node)
            {
                refused.insert(other);
            }
        }
        self.nominations.unsettled = refused;
    }

    /// Takes back what was promised by [`Self::keep_promises_before`].
    pub fn take_promises_back(&mut self) {
        if self.nominations.down_to.take().is_none() {
            return;
        }
        self.nominations.unsettled.clear();
        while let Some((&task, _)) = self.nominations.kept.first_key_value() {
            self.take_promise_back(task);
        }
    }

    /// Whether giving a task a node is a matter of that node alone: no plugin chooses for it, or has a say at Reserve or
    /// Permit. What is promised to others may then stand meanwhile.
    pub fn is_placed_unseen(&self, task: TaskId) -> bool {
        let profile = self.plugins.profile_for(self.cluster, task);
        let mut plugins =
            [ExtensionPoint::Reserve, ExtensionPoint::Permit].into_iter().flat_map(|at| profile.plugins(at));
        self.cluster.shape_of(task).spec.gpu_share_milli == 0
            && !plugins.any(|plugin| plugin.has_a_say_in_placing(self.cluster, task))
    }

    /// A task that cannot be promised anything has a node.
    fn keep_promise(&mut self, task: TaskId, node: NodeId) -> bool {
        let before = self.cluster.savepoint();
        let promised = self.cluster.promise(task, node).is_ok();
        if promised {
            self.cluster.keep_since(before);
            tell(self.plugins, self.cluster, Operation { verb: Verb::Pipeline, task, node }, true);
            self.nominations.kept.insert(task, node);
        }
        promised
    }

    fn take_promise_back(&mut self, task: TaskId) {
        if self.nominations.kept.remove(&task).is_some()
            && let Some(operation) = self.cluster.give_up_reservation(task)
        {
            tell(self.plugins, self.cluster, operation, false);
        }
    }
}
