//! Pods that wait for an event, together with those that the same plugins keep: most events help none of a group, and
//! then nobody in it is asked.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::{Name, TaskId, Time};

/// Who keeps the pods of a group: their profile, and the plugins that refused them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeptBy {
    pub(super) scheduler: Name,
    pub(super) plugins: BTreeSet<String>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Parked {
    since: BTreeSet<(Time, TaskId)>,
    groups: BTreeMap<KeptBy, BTreeSet<(Time, TaskId)>>,
    group_of: BTreeMap<TaskId, (Time, KeptBy)>,
}

impl Parked {
    /// Parks a pod that is not here.
    pub(super) fn insert(&mut self, task: TaskId, since: Time, by: KeptBy) {
        self.since.insert((since, task));
        self.groups.entry(by.clone()).or_default().insert((since, task));
        self.group_of.insert(task, (since, by));
    }

    pub(super) fn remove(&mut self, task: TaskId) {
        let Some((since, by)) = self.group_of.remove(&task) else { return };
        self.since.remove(&(since, task));
        if let Some(group) = self.groups.get_mut(&by) {
            group.remove(&(since, task));
            if group.is_empty() {
                self.groups.remove(&by);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.since.len()
    }

    /// Who has waited for longest, and since when.
    pub(super) fn first(&self) -> Option<(Time, TaskId)> {
        self.since.first().copied()
    }

    /// The pods for which `helps` holds, longest parked first. Of a group of which that cannot be, going by one of its
    /// pods, none is asked. Cost: groups, and the pods of those that may be helped.
    pub(super) fn helped(
        &self,
        may_help: impl Fn(TaskId, &BTreeSet<String>) -> bool,
        helps: impl Fn(TaskId, &BTreeSet<String>) -> bool,
    ) -> Vec<TaskId> {
        let mut helped: Vec<(Time, TaskId)> = Vec::new();
        for (by, pods) in &self.groups {
            if pods.first().is_some_and(|(_, any)| may_help(*any, &by.plugins)) {
                helped.extend(pods.iter().filter(|(_, task)| helps(*task, &by.plugins)));
            }
        }
        helped.sort_unstable();
        helped.into_iter().map(|(_, task)| task).collect()
    }
}
