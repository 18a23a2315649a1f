//! How bad it is to evict some pods: Kubernetes' criteria in their order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use krafla_model::{ClusterState, Name, NodeId, TaskId, Time};
use smallvec::SmallVec;

/// Kubernetes adds this to each priority, so that a sum grows with each pod.
const OFFSET: i64 = 1 << 31;

/// A disruption; the smaller is chosen. Equal ones go to the first node in tie order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// Victims that a disruption budget protects.
    pub(super) fn violations(&self) -> usize {
        self.violations
    }
}

/// Order of pods by importance, the most important first: priority, then who started earlier.
pub(super) fn importance(cluster: &ClusterState, task: TaskId) -> (Reverse<i32>, Time, Name) {
    (Reverse(cluster.task(task).priority), started(cluster, task), cluster.task(task).uid.clone())
}

/// What making room on a node takes at the very least, whoever goes of those who may. As numbers that stand until the node
/// changes: the time now is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Least {
    /// Nobody may go, or there would be too little room if all went.
    Hopeless,
    /// Nothing is lacking: perhaps nobody need go.
    Nobody,
    /// So many, the highest priority among them, and the sum of all.
    Victims {
        n: u32,
        highest: i32,
        sum: i64,
        /// The earliest start of those of the highest priority, or if that is a pod that has not started, the latest start
        /// known of such a pod: it may lie ahead of the time now.
        start: Time,
        unstarted: bool,
    },
}

impl Least {
    /// For `task` on `node`, whoever of `candidates` goes. Any set that makes room has at least as many as are needed of the
    /// largest; so its highest priority is at least that of as many of the lowest, its sum at least theirs, and if both are
    /// just that, these priorities are its own, and those at the top started no later than as many of the latest there.
    /// Cost: the candidates, for each resource that is lacking, and their order.
    pub(super) fn of(cluster: &ClusterState, task: TaskId, node: NodeId, candidates: &[TaskId]) -> Self {
        let asked = cluster.asked_of_nodes(cluster.shape_of(task));
        let free = cluster.node(node).future_idle();
        let mut n = 0;
        for (resource, asked) in asked.iter() {
            let lacking = asked - free.get(resource);
            if lacking <= 0 {
                continue;
            }
            let held = |candidate: &TaskId| cluster.shape_of(*candidate).request.get(resource);
            if candidates.iter().map(held).sum::<i64>() < lacking {
                return Self::Hopeless;
            }
            let most = candidates.iter().map(held).max().unwrap_or(0).max(1);
            n = n.max(usize::try_from((lacking - 1) / most + 1).unwrap_or(usize::MAX));
        }
        if candidates.is_empty() {
            return Self::Hopeless;
        }
        if n == 0 {
            return Self::Nobody;
        }
        let mut ranked: SmallVec<[(i32, Reverse<Time>); 16]> = candidates
            .iter()
            .map(|candidate| {
                let pod = cluster.task(*candidate);
                (pod.priority, Reverse(pod.started.unwrap_or(Time::NEVER)))
            })
            .collect();
        ranked.sort_unstable();
        // That many are there: each resource is covered by all of them, and by none of them more than by the largest.
        let lowest = &ranked[..n.min(ranked.len())];
        let (highest, Reverse(start)) = lowest[lowest.len() - 1];
        let unstarted = start == Time::NEVER;
        let at_the_top =
            |(priority, Reverse(start)): &&(i32, Reverse<Time>)| *priority == highest && *start != Time::NEVER;
        let latest = || ranked.iter().find(at_the_top).map_or(Time(i64::MIN), |(_, Reverse(start))| *start);
        Self::Victims {
            n: u32::try_from(n).unwrap_or(u32::MAX),
            highest,
            sum: lowest.iter().map(|(priority, _)| i64::from(*priority) + OFFSET).sum(),
            start: if unstarted { latest() } else { start },
            unstarted,
        }
    }

    /// As a disruption; `None` where there is no hope.
    pub(super) fn disruption(self, now: Time) -> Option<Disruption> {
        match self {
            Self::Hopeless => None,
            Self::Nobody => Some(Disruption {
                violations: 0,
                highest: i64::MIN,
                sum: 0,
                victims: 0,
                earliest_start: Reverse(Time::NEVER),
            }),
            Self::Victims { n, highest, sum, start, unstarted } => Some(Disruption {
                violations: 0,
                highest: i64::from(highest),
                sum,
                victims: n as usize,
                earliest_start: Reverse(if unstarted { start.max(now) } else { start }),
            }),
        }
    }
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
