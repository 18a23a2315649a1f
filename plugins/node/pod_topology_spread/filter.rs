//! Constraints that must hold: counts by domain, and the emptiest domain.

use std::ops::{AddAssign, SubAssign};

use krafla_framework::{Verdict, Why};
use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::{ClusterState, Name, NodeId, PodShape, TaskId};

use super::super::domains::{Domains, Follower, place, promised};
use super::{count_on, counts, is_included, value};

pub(super) const BROKEN: &str = "node(s) didn't match pod topology spread constraints";
pub(super) const NO_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// What PreFilter counted: for each constraint the pods by domain.
#[derive(Default)]
pub(super) struct Counted {
    follower: Follower,
    constraints: Vec<Counts>,
}

/// The counts of one constraint.
struct Counts {
    constraint: SpreadConstraint,
    /// Whether the pod itself counts.
    own: i64,
    domains: Domains<Adds>,
    emptiest: Emptiest,
}

/// What a node adds to its domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Adds {
    /// One if it counts: it has every key, and the constraint includes it. A domain is one where such a node is.
    nodes: i64,
    pods: i64,
}

impl AddAssign for Adds {
    fn add_assign(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.pods += other.pods;
    }
}

impl SubAssign for Adds {
    fn sub_assign(&mut self, other: Self) {
        self.nodes -= other.nodes;
        self.pods -= other.pods;
    }
}

/// The domains with the fewest pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Emptiest {
    /// How many domains there are.
    domains: usize,
    /// The number of the emptiest, and its pods.
    first: Option<(usize, i64)>,
    /// The pods of the next.
    second: Option<i64>,
}

impl Emptiest {
    fn of(sums: &[Adds]) -> Self {
        let mut found = Self::default();
        for (number, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.nodes > 0) {
            found.domains += 1;
            match found.first {
                Some((_, least)) if sum.pods >= least => {
                    found.second = Some(found.second.map_or(sum.pods, |second| second.min(sum.pods)));
                }
                first => {
                    found.second = first.map(|(_, least)| least);
                    found.first = Some((number, sum.pods));
                }
            }
        }
        found
    }

    /// The pods of the emptiest domain if `here` had `more`; 0 if there are fewer domains than there have to be.
    fn least(self, constraint: &SpreadConstraint, here: usize, more: i64) -> i64 {
        match self.first {
            _ if self.domains < constraint.min_domains as usize => 0,
            Some((number, pods)) if number == here => self.second.unwrap_or(i64::MAX).min(pods + more),
            Some((_, pods)) => pods,
            None => 0,
        }
    }
}

impl Counted {
    /// Brings the counts up to date: over all nodes that have every key, each constraint over those that it includes.
    /// Cost: the pods on nodes that have changed, the first time all; and the domains.
    pub(super) fn follow(
        &mut self,
        cluster: &ClusterState,
        task: TaskId,
        constraints: Vec<SpreadConstraint>,
        promises_count: bool,
    ) {
        let spec = &*cluster.shape_of(task).spec;
        let n = cluster.nodes().len();
        let same = self.constraints.iter().map(|counts| &counts.constraint).eq(&constraints);
        if !same {
            self.follower = Follower::default();
        }
        let places = match self.follower.changed(cluster) {
            Some(places) => places,
            None => {
                let counts = |constraint: SpreadConstraint| Counts {
                    own: i64::from(constraint.selector.as_ref().is_some_and(|one| one.matches(&spec.labels))),
                    domains: Domains::new(constraint.topology_key.clone(), n),
                    emptiest: Emptiest::default(),
                    constraint,
                };
                self.constraints = constraints.into_iter().map(counts).collect();
                (0..n).collect()
            }
        };
        for place in places {
            let node = cluster.nodes()[place];
            let has_all_keys = self.has_all_keys(cluster, node);
            for Counts { constraint, domains, .. } in &mut self.constraints {
                let mut adds = Adds::default();
                if has_all_keys && is_included(constraint, cluster, spec, node) {
                    adds = Adds { nodes: 1, pods: count_on(constraint, &spec.namespace, cluster, node) };
                    if promises_count {
                        adds.pods += promised_on(constraint, &spec.namespace, cluster, task, node);
                    }
                }
                domains.set(place, value(cluster, node, &constraint.topology_key), adds);
            }
        }
        self.look_for_emptiest();
    }

    fn look_for_emptiest(&mut self) {
        for counts in &mut self.constraints {
            counts.emptiest = Emptiest::of(counts.domains.sums());
        }
    }

    /// One pod more, or less, on a node.
    pub(super) fn shift(&mut self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, by: i64) {
        let spec = &*cluster.shape_of(task).spec;
        if !self.has_all_keys(cluster, node) {
            return;
        }
        for Counts { constraint, domains, .. } in &mut self.constraints {
            let meant = cluster.shape_of(other).spec.namespace == spec.namespace
                && constraint.selector.as_ref().is_some_and(|one| one.matches(&cluster.shape_of(other).spec.labels));
            if meant && is_included(constraint, cluster, spec, node) {
                domains.shift(place(cluster, node), |adds| adds.pods += by);
            }
        }
        self.look_for_emptiest();
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
        let at = place(cluster, node);
        for Counts { constraint, own, domains, emptiest } in &self.constraints {
            let (Some(here), Some(sum)) = (domains.domain(at), domains.at(at)) else {
                return Verdict::Unresolvable(Why::Says(NO_LABEL));
            };
            let skew_with = |more: i64| sum.pods + more + own - emptiest.least(constraint, here, more);
            let more = match promises_are_counted {
                true => 0,
                false => self.promised_there(cluster, task, node, constraint, spec),
            };
            if skew_with(0).max(skew_with(more)) > i64::from(constraint.max_skew) {
                return Verdict::Unschedulable(Why::Says(BROKEN));
            }
        }
        Verdict::Fits
    }

    /// How many that were promised room on a node would count.
    fn promised_there(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
        constraint: &SpreadConstraint,
        spec: &PodShape,
    ) -> i64 {
        if cluster.node(node).books().pipelined.is_zero() {
            return 0;
        }
        let included = self.has_all_keys(cluster, node) && is_included(constraint, cluster, spec, node);
        if included { promised_on(constraint, &spec.namespace, cluster, task, node) } else { 0 }
    }

    fn has_all_keys(&self, cluster: &ClusterState, node: NodeId) -> bool {
        self.constraints.iter().all(|counts| value(cluster, node, &counts.constraint.topology_key).is_some())
    }
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
