//! `CapacityScheduling`: each namespace is sure of the minimum of its ElasticQuota, may borrow what others leave of
//! theirs, up to its maximum, and gives it back when they want it.

use std::collections::BTreeSet;

use krafla_framework::{CycleState, FailedAttempt, NodePlugin, PostFilter, PreFilter, Why};
use krafla_model::cluster_event::{ActionType, EventResource};
use krafla_model::{ClusterState, ElasticQuota, Name, ResourceId, Resources, TaskId, TaskStatus};

use super::preemption::{VictimRule, preempt};

/// See the module.
pub struct CapacityScheduling;

impl NodePlugin for CapacityScheduling {
    fn name(&self) -> &'static str {
        "CapacityScheduling"
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let namespace = cluster.namespace_of(task);
        let leaving = Leaving::of(state.is_preemption());
        let Some(quota) = quota_now(cluster, namespace, leaving) else { return PreFilter::Skip };
        let asked = asked_with_nominated(cluster, task);
        let names = cluster.names();
        let refuse = |why: String| PreFilter::Unschedulable(Why::Told(why.as_str().into()));
        if let Some((resource, held, limit)) = quota.over_max_with(&asked.in_namespace) {
            let [held, limit] = [held, limit].map(|amount| names.format(resource, amount));
            let resource = names.name(resource);
            return refuse(format!(
                "ElasticQuota of {namespace} allows at most {limit} of {resource}, it would be {held}"
            ));
        }
        match over_all_minimums(cluster, &asked.in_all, leaving) {
            Some((resource, held, sure)) => {
                let [held, sure] = [held, sure].map(|amount| names.format(resource, amount));
                let resource = names.name(resource);
                refuse(format!("the ElasticQuotas together are sure of {sure} of {resource}, it would be {held}"))
            }
            None => PreFilter::All,
        }
    }

    fn has_a_say_in_placing(&self, _: &ClusterState, _: TaskId) -> bool {
        false
    }

    fn post_filter(&self, attempt: &mut FailedAttempt<'_>) -> PostFilter {
        let rule = Borrowers::of(attempt.cluster(), attempt.task);
        preempt(attempt, &rule)
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const ANY: ActionType = ActionType::ADD.and(ActionType::UPDATE).and(ActionType::DELETE);
        Some(&[(EventResource::Pod, ActionType::DELETE), (EventResource::ElasticQuota, ANY)])
    }
}

/// What is asked for by a pod, and by those that have been nominated for a node before it.
struct Asked {
    /// In its namespace: by those that are at least as important.
    in_namespace: Resources,
    /// Also by those of other namespaces that hold no more than they are sure of.
    in_all: Resources,
}

fn asked_with_nominated(cluster: &ClusterState, task: TaskId) -> Asked {
    let namespace = cluster.namespace_of(task);
    let own = &cluster.shape_of(task).request;
    let mut asked = Asked { in_namespace: own.clone(), in_all: own.clone() };
    for other in promised(cluster).into_iter().filter(|other| *other != task) {
        let theirs = cluster.namespace_of(other);
        let Some(quota) = cluster.elastic_quota(theirs) else { continue };
        let request = &cluster.shape_of(other).request;
        if theirs == namespace && cluster.task(other).priority >= cluster.task(task).priority {
            asked.in_namespace.add(request);
            asked.in_all.add(request);
        } else if theirs != namespace && !quota.is_over_min_with(&Resources::default()) {
            asked.in_all.add(request);
        }
    }
    asked
}

/// Pods that wait for a node that is theirs.
fn promised(cluster: &ClusterState) -> BTreeSet<TaskId> {
    let pipelined = |task: &TaskId| cluster.task(*task).status() == TaskStatus::Pipelined;
    cluster.nominees().chain(cluster.reserved().filter(pipelined)).collect()
}

/// Which of the pods that terminate count as gone.
#[derive(Clone, Copy)]
enum Leaving {
    /// Those whose eviction is only tried: the others still hold what they have.
    Tried,
    /// All: room is looked for that will be there.
    All,
}

impl Leaving {
    fn of(is_preemption: bool) -> Self {
        if is_preemption { Self::All } else { Self::Tried }
    }

    fn tasks(self, cluster: &ClusterState) -> impl Iterator<Item = TaskId> {
        cluster.releasing().filter(move |task| matches!(self, Self::All) || cluster.is_tried_eviction(*task))
    }
}

/// The quota of a namespace, as if those were gone that leave.
fn quota_now(cluster: &ClusterState, namespace: &Name, leaving: Leaving) -> Option<ElasticQuota> {
    let mut quota = cluster.elastic_quota(namespace)?.clone();
    for task in leaving.tasks(cluster).filter(|task| cluster.namespace_of(*task) == namespace) {
        quota.used.sub(&cluster.shape_of(task).request);
    }
    Some(quota)
}

/// The first resource of which all namespaces with a quota, with `more`, would hold more than they are sure of together.
fn over_all_minimums(cluster: &ClusterState, more: &Resources, leaving: Leaving) -> Option<(ResourceId, i64, i64)> {
    let (mut held, mut sure) = (more.clone(), Resources::default());
    for (_, quota) in cluster.elastic_quotas() {
        held.add(&quota.used);
        sure.add(&quota.min);
    }
    for task in leaving.tasks(cluster).filter(|task| cluster.elastic_quota(cluster.namespace_of(*task)).is_some()) {
        held.sub(&cluster.shape_of(task).request);
    }
    held.iter()
        .filter(|(id, _)| *id != ResourceId::PODS)
        .map(|(id, held)| (id, held, sure.get(id)))
        .find(|(_, held, sure)| held > sure)
}

/// Who may go: with what is borrowed, the less important of one's own namespace; within what one is sure of, those of
/// namespaces that borrow, whatever their priority; without a quota, the less important of those without one.
enum Borrowers {
    OwnLessImportant,
    OfOthers,
    WithoutQuota,
}

impl Borrowers {
    fn of(cluster: &ClusterState, task: TaskId) -> Self {
        match quota_now(cluster, cluster.namespace_of(task), Leaving::All) {
            None => Self::WithoutQuota,
            Some(quota) if quota.is_over_min_with(&asked_with_nominated(cluster, task).in_namespace) => {
                Self::OwnLessImportant
            }
            Some(_) => Self::OfOthers,
        }
    }
}

impl VictimRule for Borrowers {
    fn may_go(&self, cluster: &ClusterState, task: TaskId, victim: TaskId) -> bool {
        let [own, theirs] = [task, victim].map(|task| cluster.namespace_of(task));
        let less_important = cluster.task(victim).priority < cluster.task(task).priority;
        match self {
            Self::OwnLessImportant => own == theirs && less_important,
            Self::OfOthers => {
                own != theirs
                    && quota_now(cluster, theirs, Leaving::All)
                        .is_some_and(|quota| quota.is_over_min_with(&Resources::default()))
            }
            Self::WithoutQuota => cluster.elastic_quota(theirs).is_none() && less_important,
        }
    }
}

#[cfg(test)]
#[path = "capacity_scheduling_tests.rs"]
mod tests;
