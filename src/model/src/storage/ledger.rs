//! Who uses which claim, and what was chosen for claims that the API does not know of yet. It moves with each task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::apply::{key_of, take};
use super::{ClaimChoice, ClaimKey, ClaimSpec, VolumeSpec};
use crate::ids::{NodeId, TaskId};
use crate::ledger::Place;
use crate::name::Name;
use crate::shape::Shape;
use crate::state::ClusterState;
use crate::task::Task;
use crate::task_status::TaskStatus;

/// Claims and volumes, by who has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VolumeLedger {
    /// Tasks that have, or were promised, a node, by the claims that they use.
    pub(crate) users: BTreeMap<ClaimKey, BTreeSet<TaskId>>,
    /// Tasks by the volumes that were chosen for their claims.
    pub(crate) choosers: BTreeMap<Name, BTreeSet<TaskId>>,
}

impl VolumeLedger {
    pub(crate) fn charge(&mut self, id: TaskId, task: &Task, shape: &Shape) {
        let namespace = &shape.spec.namespace;
        for claim in used(task, shape) {
            self.users.entry(key_of(namespace, claim)).or_default().insert(id);
        }
        for volume in chosen_volumes(task) {
            self.choosers.entry(volume.clone()).or_default().insert(id);
        }
    }

    pub(crate) fn uncharge(&mut self, id: TaskId, task: &Task, shape: &Shape) {
        let namespace = &shape.spec.namespace;
        for claim in used(task, shape) {
            take(&mut self.users, &key_of(namespace, claim), &id);
        }
        for volume in chosen_volumes(task) {
            take(&mut self.choosers, volume, &id);
        }
    }
}

fn used<'a>(task: &Task, shape: &'a Shape) -> impl Iterator<Item = &'a Name> {
    let counts = task.node.is_some() && (task.status.holds_node() || task.status == TaskStatus::Pipelined);
    shape.spec.volumes.claims.iter().filter(move |_| counts).map(|claim| &claim.name)
}

fn chosen_volumes(task: &Task) -> impl Iterator<Item = &Name> {
    let counts = task.node.is_some() && task.status.holds_node();
    task.choices().iter().filter(move |_| counts).filter_map(|choice| match choice {
        ClaimChoice::Volume { volume, .. } => Some(volume),
        ClaimChoice::Provision { .. } | ClaimChoice::Devices(_) => None,
    })
}

impl ClusterState {
    /// Makes what was chosen for the claims of a task that was just given a node part of its place: whatever undoes the
    /// place undoes it too.
    pub fn choose(&mut self, task: TaskId, choices: Vec<ClaimChoice>) {
        if !choices.is_empty() {
            let place = self.tasks[task].place();
            self.relocate(task, Place { choices: Some(Arc::from(choices)), ..place });
        }
    }

    /// Tasks that use a claim and have, or were promised, a node; by id.
    pub fn users_of(&self, namespace: &Name, claim: &Name) -> impl Iterator<Item = TaskId> {
        self.volume_ledger.users.get(&key_of(namespace, claim)).into_iter().flatten().copied()
    }

    /// What was chosen for a claim for another task than `except`, and the node of that task.
    pub fn choice_for(&self, claim: &ClaimSpec, except: TaskId) -> Option<(&ClaimChoice, NodeId)> {
        let users = self.volume_ledger.users.get(&claim.key())?;
        users.iter().filter(|user| **user != except).find_map(|user| {
            let task = &self.tasks[*user];
            let choice = task
                .choices()
                .iter()
                .find(|choice| !matches!(choice, ClaimChoice::Devices(_)) && *choice.claim() == claim.name)?;
            Some((choice, task.node.filter(|_| task.status.holds_node())?))
        })
    }

    /// Whether a volume was chosen for the claim of another task than `except`, and the API does not say so yet. A choice
    /// whose claim has got another volume meanwhile, or is gone, keeps nothing.
    pub fn is_chosen(&self, volume: &VolumeSpec, except: TaskId) -> bool {
        let Some(choosers) = self.volume_ledger.choosers.get(&volume.name) else { return false };
        choosers.iter().filter(|task| **task != except).any(|task| {
            let namespace = self.namespace_of(*task);
            self.tasks[*task].choices().iter().any(|choice| match choice {
                ClaimChoice::Volume { claim, volume: chosen } if *chosen == volume.name => {
                    self.storage.claim(namespace, claim).is_some_and(|claim| !claim.is_bound())
                }
                _ => false,
            })
        })
    }
}
