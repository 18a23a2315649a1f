//! What admission keeps free for jobs that were let in and do not hold it yet. Shared by the plugins that guard the
//! door: `overcommit`, `proportion` and `capacity`.

use krafla_model::{ClusterState, JobId, JobPhase, QueueGate, Resources, TaskId, TaskStatus};

/// What is kept for a job that was admitted before: its `minResources` less what it holds.
///
/// A job that runs counts only while its minimum is placed: a Spark job whose driver has ended does not reserve again.
/// Tasks behind scheduling gates cannot use it, so their requests are taken off; not those that only wait for the queue.
///
/// Nothing is kept for a job that fits no node at all: it would shut the door on the others for ever.
///
/// Volcano's `overcommit` reserves the whole of `minResources` until the job runs, so that what is placed already
/// counts twice; see docs/compatibility.md.
pub fn reservation(cluster: &ClusterState, id: JobId) -> Resources {
    let job = cluster.job(id);
    if job.is_unplaceable() {
        return Resources::default();
    }
    let allocated = job.counts().sum(TaskStatus::is_allocated);
    match job.phase {
        JobPhase::Inqueue => {}
        JobPhase::Running if allocated >= job.min_available() => {}
        _ => return Resources::default(),
    }
    job.inqueue_reservation().minus_clamped(&gated_request(cluster, id))
}

/// What admitting a job adds to the reservations: its `minResources`, less what its gated tasks ask for.
pub fn on_entry(cluster: &ClusterState, id: JobId) -> Resources {
    let min = cluster.job(id).min_resources.clone().unwrap_or_default();
    min.minus_clamped(&gated_request(cluster, id))
}

/// Whether anyone stands at the door, so that reservations need to be known at all.
pub fn anyone_waits_for_entry(cluster: &ClusterState) -> bool {
    cluster.waiting_jobs().any(|job| cluster.job(job).is_pending())
}

fn gated_request(cluster: &ClusterState, id: JobId) -> Resources {
    let mut sum = Resources::default();
    let job = cluster.job(id);
    if job.counts().of(TaskStatus::Gated) > 0 {
        let stuck = |task: &TaskId| {
            let task = cluster.task(*task);
            task.status() == TaskStatus::Gated && task.queue_gate() == QueueGate::None
        };
        for task in job.tasks().filter(stuck) {
            sum.add(&cluster.shape_of(task).request);
        }
    }
    sum
}
