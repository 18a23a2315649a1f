//! PodDisruptionBudgets: how many pods may be disrupted at one time, as the disruption controller counts them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::labels::Selector;
use crate::name::Name;
use crate::state::ClusterState;

/// A PodDisruptionBudget as the edge reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSpec {
    /// Its namespace; it protects pods of this one.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Whom it protects; `None` protects nobody, an empty one everybody in the namespace.
    pub selector: Option<Selector>,
    /// What its owner wants to stay; `None` lets nobody be disrupted.
    pub aim: Option<Aim>,
    /// How many more may be disrupted now; `None` while nobody has counted, which allows nothing.
    pub allowed: Option<u32>,
    /// Names of pods whose disruption is part of `allowed` although they may still be there. Sorted.
    pub disrupted: Vec<Name>,
}

/// What a budget wants to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Aim {
    /// At least so many are healthy.
    MinAvailable(Share),
    /// At most so many are not healthy.
    MaxUnavailable(Share),
}

/// A number of pods, or a part of those that there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Share {
    /// So many.
    Count(u32),
    /// So many hundredths.
    Percent(u32),
}

impl Share {
    /// The number of pods out of `total`; a part of a pod counts as one, as the disruption controller has it.
    pub fn of(self, total: u32) -> u32 {
        match self {
            Self::Count(n) => n,
            Self::Percent(percent) => {
                u32::try_from((u64::from(total) * u64::from(percent)).div_ceil(100)).unwrap_or(u32::MAX)
            }
        }
    }
}

impl Aim {
    /// How many of `expected` pods may be disrupted when `healthy` of them are.
    pub fn allowed(self, expected: u32, healthy: u32) -> u32 {
        let wanted = match self {
            Self::MinAvailable(share) => share.of(expected),
            Self::MaxUnavailable(share) => expected.saturating_sub(share.of(expected)),
        };
        if expected == 0 { 0 } else { healthy.saturating_sub(wanted) }
    }
}

/// A budget, and which disruptions its status is known to include.
#[derive(Clone, Debug)]
pub struct Budget {
    /// What was reported last.
    pub spec: BudgetSpec,
    /// UIDs of terminating pods that `spec.allowed` includes.
    counted: BTreeSet<Name>,
}

impl Budget {
    /// Whether it protects a task.
    pub fn protects(&self, cluster: &ClusterState, task: TaskId) -> bool {
        let shape = &cluster.shape_of(task).spec;
        shape.namespace == self.spec.namespace
            && self.spec.selector.as_ref().is_some_and(|selector| selector.matches(&shape.labels))
    }

    /// Whether its status lists a pod as disrupted already.
    pub fn lists(&self, pod: &Name) -> bool {
        self.spec.disrupted.binary_search(pod).is_ok()
    }

    /// How many more may be disrupted: what its status says, less the pods that have begun to terminate since. Below 0
    /// if more terminate than it allows. Cost: linear in the tasks that terminate.
    pub fn left(&self, cluster: &ClusterState) -> i64 {
        let since = |&task: &TaskId| {
            let known = cluster.task(task);
            self.protects(cluster, task) && !self.lists(&known.name) && !self.counted.contains(&known.uid)
        };
        let n = cluster.releasing().filter(since).count();
        i64::from(self.spec.allowed.unwrap_or(0)) - i64::try_from(n).unwrap_or(i64::MAX)
    }
}

impl ClusterState {
    /// Whether there is any budget.
    pub fn has_budgets(&self) -> bool {
        !self.budgets.is_empty()
    }

    /// Budgets of one namespace, by name.
    pub fn budgets(&self, namespace: &Name) -> impl Iterator<Item = &Budget> {
        let first = (namespace.clone(), Name::default());
        self.budgets.range(first..).take_while(move |((ns, _), _)| ns == namespace).map(|(_, budget)| budget)
    }

    /// Tasks that terminate, by id; what a session has only tried to evict included.
    pub fn releasing(&self) -> impl Iterator<Item = TaskId> {
        self.releasing.iter().copied()
    }

    /// Takes in a budget's new status. It includes a pod that it lists, and goes on to when the list drops the pod: the
    /// controller drops those whose deletion it sees, and counts them as unhealthy. It also includes a pod whose
    /// deletion was known before it, since whoever wrote the status knew as well; two watches have no common order, so
    /// that is not certain, and the API server has the last word on each eviction.
    pub(crate) fn apply_budget(&mut self, spec: BudgetSpec) {
        let key = (spec.namespace.clone(), spec.name.clone());
        let before = self.budgets.remove(&key).map(|budget| budget.counted).unwrap_or_default();
        let mut budget = Budget { spec, counted: BTreeSet::new() };
        for id in self.releasing() {
            let task = self.task(id);
            let included = task.deleting || budget.lists(&task.name) || before.contains(&task.uid);
            if included && budget.protects(self, id) {
                budget.counted.insert(task.uid.clone());
            }
        }
        self.budgets.insert(key, budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controllers_arithmetic() {
        use Aim::{MaxUnavailable as Max, MinAvailable as Min};
        use Share::{Count, Percent};
        for (aim, expected, healthy, allowed) in [
            (Min(Count(2)), 3, 3, 1),
            (Min(Count(2)), 3, 2, 0),
            (Min(Count(5)), 3, 3, 0),
            (Min(Count(0)), 3, 3, 3),
            (Min(Count(0)), 0, 0, 0),
            (Min(Percent(50)), 7, 7, 3), // 3.5 are 4
            (Min(Percent(100)), 7, 7, 0),
            (Max(Count(1)), 3, 3, 1),
            (Max(Count(1)), 3, 2, 0),
            (Max(Count(9)), 3, 2, 2),
            (Max(Percent(30)), 5, 5, 2), // 1.5 are 2
            (Max(Percent(30)), 5, 4, 1),
            (Max(Percent(0)), 5, 5, 0),
            (Max(Percent(100)), u32::MAX, u32::MAX, u32::MAX),
        ] {
            assert_eq!(aim.allowed(expected, healthy), allowed, "{aim:?} of {expected}, {healthy} healthy");
        }
    }
}
