//! Constraints that must hold: counts by domain, and the emptiest domain.

use std::collections::BTreeMap;

use krafla_framework::{Verdict, Why};
use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use super::super::domains::promised;
use super::{count_on, counts, is_included, value};

pub(super) const BROKEN: &str = "node(s) didn't match pod topology spread constraints";
pub(super) const NO_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// What PreFilter counted: for each constraint the pods by domain.
pub(super) struct Counted {
    constraints: Vec<SpreadConstraint>,
    domains: Vec<BTreeMap<Name, i64>>,
}

impl Counted {
    /// Counts over all nodes that have every key, each constraint over those that it includes. Cost: all pods.
    pub(super) fn of(
        cluster: &ClusterState,
        task: TaskId,
        constraints: Vec<SpreadConstraint>,
        promises_count: bool,
    ) -> Self {
        let spec = &*cluster.shape_of(task).spec;
        let mut counted = Self { domains: vec![BTreeMap::new(); constraints.len()], constraints };
        for &node in cluster.nodes() {
            if !counted.has_all_keys(cluster, node) {
                continue;
            }
            for (constraint, domains) in counted.constraints.iter().zip(&mut counted.domains) {
                let Some(value) = value(cluster, node, &constraint.topology_key) else { continue };
                if !is_included(constraint, cluster, spec, node) {
                    continue;
                }
                let mut n = count_on(constraint, &spec.namespace, cluster, node);
                if promises_count {
                    n += promised_on(constraint, &spec.namespace, cluster, task, node);
                }
                *domains.entry(value.clone()).or_default() += n;
            }
        }
        counted
    }

    /// One pod more, or less, on a node.
    pub(super) fn shift(&mut self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, by: i64) {
        let spec = &*cluster.shape_of(task).spec;
        if !self.has_all_keys(cluster, node) {
            return;
        }
        for (constraint, domains) in self.constraints.iter().zip(&mut self.domains) {
            let Some(value) = value(cluster, node, &constraint.topology_key) else { continue };
            let meant = cluster.shape_of(other).spec.namespace == spec.namespace
                && constraint.selector.as_ref().is_some_and(|one| one.matches(&cluster.shape_of(other).spec.labels));
            if meant && is_included(constraint, cluster, spec, node) {
                *domains.entry(value.clone()).or_default() += by;
            }
        }
    }

    /// Whether the task may run on a node: with those who were promised room there, and without them.
    pub(super) fn verdict(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
        promises_are_counted: bool,
    ) -> Verdict {
        let spec = &*cluster.shape_of(task).spec;
        for (constraint, domains) in self.constraints.iter().zip(&self.domains) {
            let Some(here) = value(cluster, node, &constraint.topology_key) else {
                return Verdict::Unresolvable(Why::Says(NO_LABEL));
            };
            let own = i64::from(constraint.selector.as_ref().is_some_and(|selector| selector.matches(&spec.labels)));
            let included = self.has_all_keys(cluster, node) && is_included(constraint, cluster, spec, node);
            let more = match promises_are_counted || !included {
                true => 0,
                false => promised_on(constraint, &spec.namespace, cluster, task, node),
            };
            let skew_with = |more: i64| {
                let count = domains.get(here).copied().unwrap_or(0) + more;
                count + own - least(constraint, domains, here, more)
            };
            if skew_with(0).max(skew_with(more)) > i64::from(constraint.max_skew) {
                return Verdict::Unschedulable(Why::Says(BROKEN));
            }
        }
        Verdict::Fits
    }

    fn has_all_keys(&self, cluster: &ClusterState, node: NodeId) -> bool {
        self.constraints.iter().all(|constraint| value(cluster, node, &constraint.topology_key).is_some())
    }
}

/// The count of the emptiest domain if `here` had `more`; 0 if there are fewer domains than there have to be.
fn least(constraint: &SpreadConstraint, domains: &BTreeMap<Name, i64>, here: &Name, more: i64) -> i64 {
    if domains.len() < constraint.min_domains as usize {
        return 0;
    }
    let counts = domains.iter().map(|(value, n)| if value == here { n + more } else { *n });
    counts.min().unwrap_or(0)
}

/// How many that were promised room on a node will count for a constraint.
fn promised_on(
    constraint: &SpreadConstraint,
    namespace: &Name,
    cluster: &ClusterState,
    task: TaskId,
    node: NodeId,
) -> i64 {
    let others = promised(cluster, node).filter(|other| *other != task);
    let counting = others.filter(|other| counts(constraint, namespace, cluster, *other));
    i64::try_from(counting.count()).unwrap_or(i64::MAX)
}
