//! Who may go, and who goes first.
//!
//! Cheapest first: pods that do not run yet, then as the plugins that say who may go order jobs, then those of lower
//! priority (queue, job, pod), then as the plugins order queues to take from, then the larger ones, so that fewer have to
//! go, then those that have run for the shortest time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use krafla_framework::{EvictedFor, Point, Rank, Session};
use krafla_model::resources::ratio;
use krafla_model::{ClusterState, JobId, NodeId, QueueId, Resources, TaskId, TaskStatus, Time};
use ordered_float::OrderedFloat;

use super::shares::queue_of;
use super::{Against, Beneficiary};

/// What weighs most against evicting a task: whether it runs, the place of its job among those to take from, then the
/// priorities of its queue, its job and itself.
pub(super) type Standing = (bool, Rank, i32, i32, i32);

/// What an eviction costs; smaller goes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    standing: Standing,
    queue: Rank,
    size: Reverse<OrderedFloat<f64>>,
    made: Reverse<Time>,
}

/// What a set of evictions costs; of the sets that serve, the smallest is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// Those of the worst victim.
    worst: Option<(Standing, Rank)>,
    n: usize,
    /// Milliseconds that the victims have run, as far as is known.
    lost: i64,
}

/// The place of each queue among those to take from, as it was when the search began: within one plan it stands still,
/// so that what a node costs changes only with the node.
#[derive(Default)]
pub(crate) struct QueueRanks(BTreeMap<QueueId, Rank>);

impl QueueRanks {
    pub(crate) fn of(session: &Session<'_>, who: &Beneficiary<'_>) -> Self {
        let Against::OtherQueues(_) = who.against else { return Self::default() };
        let (cluster, plugins) = (session.cluster(), session.plugins());
        let others = cluster.queues().filter(|(id, queue)| *id != who.queue && queue.n_jobs() > 0);
        Self(others.map(|(id, _)| (id, plugins.victim_queue_rank(cluster, id, who.queue))).collect())
    }

    pub(crate) fn rank(&self, queue: Option<QueueId>) -> Rank {
        queue.and_then(|queue| self.0.get(&queue)).cloned().unwrap_or_default()
    }
}

impl Cost {
    pub(crate) fn of(session: &Session<'_>, who: &Beneficiary<'_>, ranks: &QueueRanks, victims: &[TaskId]) -> Self {
        let cluster = session.cluster();
        let weigh = |task: &TaskId| (standing(session, who, *task), ranks.rank(queue_of(cluster, *task)));
        Self {
            worst: victims.iter().map(weigh).max(),
            n: victims.len(),
            lost: victims.iter().map(|task| run_ms(cluster, *task)).fold(0, i64::saturating_add),
        }
    }

    /// One that is no more than that of any set with a worst victim, so many, and a loss, all of them at least these.
    pub(super) fn at_least(worst: Option<(Standing, Rank)>, n: usize, lost: i64) -> Self {
        Self { worst, n, lost }
    }
}

/// For how long a task that would go has run.
pub(super) fn run_ms(cluster: &ClusterState, task: TaskId) -> i64 {
    match cluster.task(task).status() {
        TaskStatus::Running => (cluster.now().0 - cluster.task(task).created.0).max(0),
        _ => 0,
    }
}

/// Tasks on a node that may go for `task`, cheapest first. Cost: the tasks on the node, times the plugins that vote.
pub(crate) fn candidates(
    session: &Session<'_>,
    who: &Beneficiary<'_>,
    ranks: &QueueRanks,
    task: TaskId,
    node: NodeId,
) -> Vec<TaskId> {
    let cluster = session.cluster();
    let request = &cluster.shape_of(task).request;
    let mut ranked: Vec<(Worth, TaskId)> = cluster
        .node(node)
        .books()
        .tasks
        .iter()
        .copied()
        .filter(|&victim| may_be_asked(cluster, who, task, victim))
        .map(|victim| {
            let worth = Worth {
                standing: standing(session, who, victim),
                queue: ranks.rank(queue_of(cluster, victim)),
                size: Reverse(size(&cluster.shape_of(victim).request, request)),
                made: Reverse(cluster.task(victim).created),
            };
            (worth, victim)
        })
        .collect();
    if ranked.is_empty() {
        return Vec::new();
    }
    ranked.sort_unstable();
    agreed(session, who, task, ranked.into_iter().map(|(_, victim)| victim).collect())
}

/// Who of `asked` the plugins let go, in the same order.
fn agreed(session: &Session<'_>, who: &Beneficiary<'_>, task: TaskId, asked: Vec<TaskId>) -> Vec<TaskId> {
    let (plugins, cluster) = (session.plugins(), session.cluster());
    let whom = match who.against {
        Against::OtherJobs | Against::OwnJob => EvictedFor::Queue(task),
        Against::OtherQueues(_) => EvictedFor::OtherQueue(task),
    };
    let mut agreed = plugins.victims(cluster, whom, &asked, who.votes);
    agreed.sort_unstable();
    asked.into_iter().filter(|victim| agreed.binary_search(victim).is_ok()).collect()
}

/// Everybody of a job that still has a node, wherever that is: who goes with the one that takes it below its minimum.
/// `None` if any of them may not go.
pub(crate) fn rest_of_gang(
    session: &Session<'_>,
    who: &Beneficiary<'_>,
    task: TaskId,
    job: JobId,
) -> Option<Vec<TaskId>> {
    let cluster = session.cluster();
    let rest = everybody_placed(cluster, job);
    let may_all_be_asked = rest.iter().all(|&victim| may_be_asked(cluster, who, task, victim));
    (may_all_be_asked && agreed(session, who, task, rest.clone()).len() == rest.len()).then_some(rest)
}

/// Tasks of a job that have a node and do not terminate.
pub(crate) fn everybody_placed(cluster: &ClusterState, job: JobId) -> Vec<TaskId> {
    cluster.job(job).tasks().filter(|id| cluster.task(*id).status().is_allocated()).collect()
}

/// Whether a job is whole as things stand: it has its minimum, or nobody of it has a node. Without a plugin that knows
/// gangs every job is.
pub(crate) fn is_whole(session: &Session<'_>, job: JobId) -> bool {
    let own = session.cluster().job(job);
    own.is_ready() || own.counts().sum(TaskStatus::is_allocated) == 0 || !session.plugins().has(Point::JobReady)
}

/// Whether a task may be evicted for anybody: it has a node, is not protected, and no eviction of it was refused a moment
/// ago.
pub(crate) fn is_evictable(cluster: &ClusterState, id: TaskId) -> bool {
    let task = cluster.task(id);
    matches!(task.status(), TaskStatus::Bound | TaskStatus::Running)
        && !cluster.shape_of(id).spec.protected
        && task.retry_at <= cluster.now()
}

/// Whether a task is one that the action takes from at all; the plugins have their say afterwards.
fn may_be_asked(cluster: &ClusterState, who: &Beneficiary<'_>, task: TaskId, victim: TaskId) -> bool {
    let is_own = cluster.task(victim).job == Some(who.job);
    is_own == matches!(who.against, Against::OwnJob) && could_be_asked(cluster, who, task, victim)
}

/// The same for some job of the queue: a task of the job itself may be meant.
pub(super) fn could_be_asked(cluster: &ClusterState, who: &Beneficiary<'_>, task: TaskId, victim: TaskId) -> bool {
    let spares_only_a_slot = cluster.shape_of(task).best_effort && !cluster.shape_of(victim).best_effort;
    if !is_evictable(cluster, victim) || spares_only_a_slot {
        return false;
    }
    let Some(job) = cluster.task(victim).job else { return false };
    let queue = cluster.job(job).queue;
    match who.against {
        Against::OtherJobs => queue == Some(who.queue),
        Against::OwnJob => job == who.job,
        Against::OtherQueues(_) => {
            queue.is_some_and(|queue| queue != who.queue && cluster.queue(queue).spec.reclaimable)
        }
    }
}

pub(super) fn standing(session: &Session<'_>, who: &Beneficiary<'_>, task: TaskId) -> Standing {
    let cluster = session.cluster();
    let own = cluster.task(task);
    let queue_priority = match who.against {
        Against::OtherQueues(_) => queue_of(cluster, task).map_or(0, |queue| cluster.queue(queue).spec.priority),
        Against::OtherJobs | Against::OwnJob => 0,
    };
    let job_priority = own.job.map_or(0, |job| cluster.job(job).priority);
    let job_rank = match (who.against, own.job) {
        (Against::OtherJobs, Some(job)) => session.plugins().victim_job_rank(cluster, job),
        _ => Rank::default(),
    };
    (own.status() == TaskStatus::Running, job_rank, queue_priority, job_priority, own.priority)
}

/// How much of what is needed a victim frees: 1 is all of it in some dimension.
pub(super) fn size(frees: &Resources, needed: &Resources) -> OrderedFloat<f64> {
    let parts = needed.iter().map(|(id, amount)| ratio(frees.get(id).min(amount), amount));
    parts.max().unwrap_or_default()
}
