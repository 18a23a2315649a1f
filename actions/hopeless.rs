//! Jobs that no placement could serve: their minimum asks for more than all nodes together have free. A sum over nodes is
//! all that it costs to know, and it spares a full cluster from being searched for every job that waits.

use std::collections::BTreeMap;

use krafla_framework::{Reason, Session};
use krafla_model::{ClusterState, JobId, QueueId, Resources, ShapeId, TaskId, TaskStatus};

use crate::allocate::{n_asking, refuse};
use crate::placement::{cluster_is_too_full_for, placed};

/// What jobs have in common that are refused alike: the queue, what each missing member asks for, and how many there are.
pub(crate) type Plain = (QueueId, ShapeId, u32);

/// Tells jobs that had no turn why they stay, reckoned once for those that are alike.
pub(crate) fn refuse_the_hopeless(
    session: &mut Session<'_>,
    jobs: &[(JobId, Plain, Reason)],
    repairs: &BTreeMap<QueueId, Vec<(JobId, u32)>>,
) {
    let mut overused: BTreeMap<QueueId, Option<Reason>> = BTreeMap::new();
    let mut beyond: BTreeMap<Plain, Option<Reason>> = BTreeMap::new();
    for &(job, plain, ref reason) in jobs {
        let queue = plain.0;
        let passed_over = overused.entry(queue).or_insert_with(|| session.plugins().overused(session.cluster(), queue));
        if let Some(reason) = passed_over {
            let reason = reason.clone();
            session.explain_job(job, reason);
            continue;
        }
        let beyond = beyond.entry(plain).or_insert_with(|| beyond_its_queue(session, queue, job)).clone();
        let repairs = repairs.get(&queue).map_or(&[][..], Vec::as_slice);
        refuse(session, job, beyond.unwrap_or_else(|| reason.clone()), repairs);
    }
}

/// What a job has in common with others that are refused alike; `None` if it holds something, or its tasks differ in what they
/// ask for.
pub(crate) fn plain(session: &Session<'_>, queue: QueueId, id: JobId) -> Option<Plain> {
    let cluster = session.cluster();
    let job = cluster.job(id);
    let asks = |task: &TaskId| cluster.task(*task).status() == TaskStatus::Pending;
    let holds_back = placed(job) > 0 || job.counts().of(TaskStatus::Gated) > 0 || job.min_available() == 0;
    if holds_back || session.plugins().job_ready(cluster, id) {
        return None;
    }
    let mut shapes = job.tasks().filter(asks).map(|task| cluster.task(task).shape);
    let first = shapes.next()?;
    let n = job.min_available();
    // Where all are needed only the sum counts, and the job knows it: its tasks need not be looked at.
    let all_are_needed = n_asking(cluster, id) == n && job.pending_best_effort() == 0;
    let sum_is_alike = all_are_needed && job.held().pending == cluster.shape(first).request.times(i64::from(n));
    (sum_is_alike || shapes.all(|shape| shape == first)).then_some((queue, first, n))
}

/// Why no placement at all can complete the gang: its minimum asks for more than the whole cluster has free. A sum over
/// nodes is all it costs, and it spares a full cluster from being searched for every job that waits.
pub(crate) fn hopeless(session: &Session<'_>, id: JobId) -> Option<Reason> {
    let cluster = session.cluster();
    let job = cluster.job(id);
    if session.plugins().job_ready(cluster, id) {
        return None;
    }
    let needed = job.min_available().saturating_sub(placed(job));
    cluster_is_too_full_for(cluster, id, &least_request(cluster, id, needed)?, needed)
}

/// Why the queue could not hold the gang's minimum, whatever room nodes have. That is decisive then: room that others
/// free would not help.
pub(crate) fn beyond_its_queue(session: &Session<'_>, queue: QueueId, id: JobId) -> Option<Reason> {
    let cluster = session.cluster();
    let job = cluster.job(id);
    let least = least_request(cluster, id, job.min_available().saturating_sub(placed(job)))?;
    let reason = session.plugins().minimum_allocatable(cluster, queue, id, &least)?;
    reason.is_of_the_queue(cluster).then_some(reason)
}

/// Whether what is asked for would be too much for the cluster if it were empty.
pub(crate) fn is_more_than_the_cluster(reason: &Reason) -> bool {
    matches!(reason, Reason::ClusterTooFull { shortage, .. } if shortage.asked > shortage.limit)
}

/// The least that any `needed` of a job's pending tasks ask for together; `None` where that is not plain: tasks of
/// several shapes of which not all are needed.
fn least_request(cluster: &ClusterState, id: JobId, needed: u32) -> Option<Resources> {
    let (job, asking) = (cluster.job(id), n_asking(cluster, id));
    if needed == 0 || needed > asking {
        return None;
    }
    if needed == asking {
        let slots = i64::from(needed);
        return Some(job.held().pending.clone().with(krafla_model::ResourceId::PODS, slots));
    }
    let mut shapes = job
        .tasks()
        .filter(|task| cluster.task(*task).status() == TaskStatus::Pending && !cluster.shape_of(*task).best_effort)
        .map(|task| cluster.task(task).shape);
    let first = shapes.next()?;
    shapes.all(|shape| shape == first).then(|| cluster.shape(first).request.times(i64::from(needed)))
}
