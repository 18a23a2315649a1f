//! How bad it is to evict some pods: Kubernetes' criteria in their order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use krafla_model::{ClusterState, Name, NodeId, TaskId, Time};

/// Kubernetes adds this to each priority, so that a sum grows with each pod.
const OFFSET: i64 = 1 << 31;

/// A disruption; the smaller is chosen. Equal ones go to the first node in tie order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Disruption {
    /// Victims that a disruption budget protects.
    violations: usize,
    /// The highest priority among the victims.
    highest: i64,
    /// The sum of their priorities, each plus 2^31.
    sum: i64,
    /// How many there are.
    victims: usize,
    /// The earliest start among those of the highest priority: the later the better.
    earliest_start: Reverse<Time>,
}

impl Disruption {
    /// That of evicting `victims`, of whom `violations` are protected.
    pub(super) fn of(cluster: &ClusterState, violations: usize, victims: &[TaskId]) -> Self {
        let priority = |task: &TaskId| i64::from(cluster.task(*task).priority);
        let highest = victims.iter().map(priority).max().unwrap_or(i64::MIN);
        let at_the_top = victims.iter().filter(|task| priority(task) == highest);
        Self {
            violations,
            highest,
            sum: victims.iter().map(|task| priority(task) + OFFSET).sum(),
            victims: victims.len(),
            earliest_start: Reverse(at_the_top.map(|task| started(cluster, *task)).min().unwrap_or(Time::NEVER)),
        }
    }

    /// What making room for `task` on a node takes at the very least, whoever of `candidates` goes. Cost: the candidates,
    /// for each resource that is lacking.
    pub(super) fn at_least(cluster: &ClusterState, task: TaskId, node: NodeId, candidates: &[TaskId]) -> Self {
        let free = cluster.node(node).future_idle();
        let mut victims = 0;
        for (resource, asked) in cluster.asked_of_nodes(cluster.shape_of(task)).iter() {
            let lacking = asked - free.get(resource);
            let held = |candidate: &TaskId| cluster.shape_of(*candidate).request.get(resource);
            let most = candidates.iter().map(held).max().unwrap_or(0);
            if lacking > 0 && most > 0 {
                victims = victims.max(usize::try_from((lacking - 1) / most + 1).unwrap_or(usize::MAX));
            }
        }
        if victims == 0 {
            // Nothing is lacking: perhaps nobody need go.
            return Self::of(cluster, 0, &[]);
        }
        let lowest = candidates.iter().map(|candidate| cluster.task(*candidate).priority).min().unwrap_or(i32::MAX);
        let at_the_bottom = candidates.iter().filter(|candidate| cluster.task(**candidate).priority == lowest);
        let latest = at_the_bottom.map(|candidate| started(cluster, *candidate)).max();
        Self {
            violations: 0,
            highest: i64::from(lowest),
            sum: (i64::from(lowest) + OFFSET).saturating_mul(i64::try_from(victims).unwrap_or(i64::MAX)),
            victims,
            earliest_start: Reverse(latest.unwrap_or(Time::NEVER)),
        }
    }

    /// Victims that a disruption budget protects.
    pub(super) fn violations(&self) -> usize {
        self.violations
    }
}

/// Order of pods by importance, the most important first: priority, then who started earlier.
pub(super) fn importance(cluster: &ClusterState, task: TaskId) -> (Reverse<i32>, Time, Name) {
    (Reverse(cluster.task(task).priority), started(cluster, task), cluster.task(task).uid.clone())
}

/// A pod that has not started counts as one that starts now.
fn started(cluster: &ClusterState, task: TaskId) -> Time {
    cluster.task(task).started.unwrap_or(cluster.now())
}

/// Parts pods, which are in order of importance, into those whose eviction would break a disruption budget once those
/// before them have gone, and the others.
pub(super) fn split_by_budgets(cluster: &ClusterState, pods: &[TaskId]) -> (Vec<TaskId>, Vec<TaskId>) {
    let mut left: BTreeMap<(Name, Name), i64> = BTreeMap::new();
    pods.iter().partition(|task| {
        let namespace = cluster.namespace_of(**task);
        let mut violates = false;
        for budget in cluster.budgets(namespace).filter(|budget| budget.protects(cluster, **task)) {
            if budget.lists(&cluster.task(**task).name) {
                continue; // its disruption has been counted
            }
            let key = (namespace.clone(), budget.spec.name.clone());
            let left = left.entry(key).or_insert_with(|| i64::from(budget.spec.allowed.unwrap_or(0)));
            *left -= 1;
            violates |= *left < 0;
        }
        violates
    })
}
