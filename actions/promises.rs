//! Promises of earlier sessions: room that is being released for a job stays its own, and room that is kept for a pod that
//! was moved.
//!
//! Whoever could take it, also a job of higher priority, would make evictions vain, and somebody would be evicted again.

use std::collections::BTreeSet;

use krafla_framework::rank::{JobRank, QueueRank};
use krafla_framework::{Room, Session};
use krafla_model::{ClusterState, JobId, QueueId, Reservation, TaskId, TaskStatus};

/// Whether a task waits for a node that has been nominated for it.
pub(crate) fn is_nominated(cluster: &ClusterState, task: TaskId) -> bool {
    let task = cluster.task(task);
    task.nominated.is_some() && task.status() == TaskStatus::Pending
}

/// Whether room is kept for a task of a job that has come.
pub(crate) fn is_expected(cluster: &ClusterState, job: JobId) -> bool {
    cluster.reservations().any(|kept| kept.job == Some(job) && has_come(cluster, kept))
}

/// Whether a task waits for which room is kept.
fn has_come(cluster: &ClusterState, kept: &Reservation) -> bool {
    let waits = |task: TaskId| {
        let task = cluster.task(task);
        task.shape == kept.shape && task.status() == TaskStatus::Pending
    };
    kept.job.is_some_and(|job| cluster.job(job).tasks().any(waits))
}

/// Gives up room that is kept for tasks that have come and may not be placed any more, for their queue's sake: it is due less
/// than when they were moved. Others may have the room at once then.
pub(crate) fn give_up_what_may_not_be_had(session: &mut Session<'_>) {
    let cluster = session.cluster();
    let mut come: BTreeSet<TaskId> = BTreeSet::new();
    for kept in cluster.reservations() {
        let Some(job) = kept.job.map(|job| cluster.job(job)) else { continue };
        let waits = |task: &TaskId| {
            let task = cluster.task(*task);
            task.shape == kept.shape && task.status() == TaskStatus::Pending
        };
        come.extend(job.tasks().filter(waits));
    }
    for task in come {
        let queue = session.cluster().task(task).job.and_then(|job| session.cluster().job(job).queue);
        let Some(queue) = queue else { continue };
        let mut statement = session.statement();
        let lifted = statement.lift_reservation(task).is_some();
        let now = statement.session();
        let cluster = now.cluster();
        let may_have_it = cluster.queue(queue).is_open()
            && now.plugins().allocatable(cluster, queue, task, Room::AfterRelease).is_none();
        if lifted && !may_have_it {
            statement.hold();
        }
    }
}

/// Jobs for whose tasks nodes have been nominated or room is kept, in the order in which they go before all others.
pub(crate) fn with_promises(session: &Session<'_>) -> Vec<(QueueId, JobId)> {
    let (cluster, plugins) = (session.cluster(), session.plugins());
    let nominated = cluster.nominees().filter_map(|task| cluster.task(task).job);
    let kept = cluster.reservations().filter(|kept| has_come(cluster, kept)).filter_map(|kept| kept.job);
    let promised: BTreeSet<JobId> = nominated.chain(kept).collect();
    let mut ranked: Vec<(QueueRank, JobRank, QueueId)> = Vec::new();
    for id in promised {
        let job = cluster.job(id);
        if let Some(queue) = job.queue.filter(|_| !job.is_pending()) {
            ranked.push((plugins.queue_rank(cluster, queue), plugins.job_rank(cluster, id), queue));
        }
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, (.., job), queue)| (queue, job)).collect()
}
