//! Completes the book of reasons: whatever waits has one current reason, also where no action looked.

use std::collections::BTreeMap;

use krafla_framework::conf::policy::SCHEDULE_ONE;
use krafla_framework::{Reason, Reasons};
use krafla_model::{ClusterState, JobId, QueueGate, QueueId, TaskId, TaskStatus};

/// What waits for another reason than before.
#[derive(Debug, Default)]
pub(crate) struct Newly {
    /// Jobs.
    pub(crate) jobs: Vec<JobId>,
    /// Tasks that have no job.
    pub(crate) tasks: Vec<TaskId>,
}

/// Gives a reason to each job and task that waits without one, and takes it from those that wait no longer.
/// Cost: linear in waiting jobs, and in the tasks of those that have gated or parked ones.
pub(crate) fn complete(cluster: &ClusterState, reasons: &mut Reasons, actions: &[&'static str]) -> Newly {
    let now = cluster.now();
    let mut newly = Newly::default();
    let mut ahead: BTreeMap<QueueId, usize> = BTreeMap::new();
    let one_by_one = actions.contains(&SCHEDULE_ONE);
    for id in cluster.waiting_jobs() {
        let job = cluster.job(id);
        let counts = job.counts();
        let gated = counts.of(TaskStatus::Gated);
        if one_by_one {
            // Each pod has its own reason; the first of them stands for the job.
            let own = job.tasks().find_map(|task| reasons.own(task)).map(|standing| standing.reason.clone());
            let all_gated = gated > 0 && counts.of(TaskStatus::Pending) == 0;
            let gates = || all_gated.then(|| Reason::SchedulingGated { gates: gates_of(cluster, id) });
            if let Some(reason) = own.or_else(gates)
                && reasons.set_job(id, reason, now)
            {
                newly.jobs.push(id);
            }
        } else if reasons.job(id).is_none() {
            let queue = job.queue;
            let position = queue.map_or(0, |queue| *ahead.entry(queue).or_default());
            let valid = job.n_valid();
            let reason = if counts.of(TaskStatus::Pending) + gated == 0 && valid < job.min_available() {
                Some(Reason::NotEnoughTasks { valid, min: job.min_available() })
            } else if gated > 0 && counts.of(TaskStatus::Pending) == 0 {
                Some(Reason::SchedulingGated { gates: gates_of(cluster, id) })
            } else if job.is_pending() {
                Some(Reason::NotAdmitted { ahead: position })
            } else if job.pending_best_effort() > 0 && !actions.contains(&"backfill") {
                Some(Reason::NoActionPlacesIt { actions: actions.len(), missing: "backfill" })
            } else if counts.of(TaskStatus::Pending) > 0 && !actions.contains(&"allocate") {
                Some(Reason::NoActionPlacesIt { actions: actions.len(), missing: "allocate" })
            } else {
                None
            };
            if let Some(reason) = reason
                && reasons.set_job(id, reason, now)
            {
                newly.jobs.push(id);
            }
        }
        if job.is_pending()
            && let Some(queue) = job.queue
        {
            *ahead.entry(queue).or_default() += 1;
        }
        if gated > 0 || (reasons.job(id).is_none() && !one_by_one) {
            for task in job.tasks() {
                explain_task(cluster, reasons, task);
            }
        }
    }
    for (group, tasks) in cluster.orphans() {
        let pods = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        for &task in tasks.iter().filter(|task| cluster.task(**task).status().is_waiting()) {
            if reasons.set_task(task, Reason::PodGroupNotFound { group: group.clone(), pods }, now) {
                newly.tasks.push(task);
            }
        }
    }
    newly
}

fn explain_task(cluster: &ClusterState, reasons: &mut Reasons, id: TaskId) {
    let task = cluster.task(id);
    let now = cluster.now();
    match task.status() {
        // It waits for its queue, as it was told, or for what its job waits for.
        TaskStatus::Gated
            if task.queue_gate() == QueueGate::Shut && task.job.is_some_and(|job| reasons.job(job).is_some()) =>
        {
            if reasons.own(id).is_some_and(|own| matches!(own.reason, Reason::SchedulingGated { .. })) {
                reasons.clear_task(id);
            }
        }
        TaskStatus::Gated => {
            reasons.set_task(id, Reason::SchedulingGated { gates: task.gates }, now);
        }
        TaskStatus::Pending if task.retry_at > now && task.refusals > 0 => {
            reasons.set_task(id, Reason::BindRefused { times: task.refusals, retry_at: task.retry_at }, now);
        }
        // What this session promised it stands until the next; what a plugin said, until it is tried again.
        TaskStatus::Pending if reasons.own(id).is_some_and(|own| stands_while_pending(&own.reason)) => {}
        TaskStatus::Binding
            if reasons.own(id).is_some_and(|own| matches!(own.reason, Reason::WaitingForPermit { .. })) => {}
        _ => reasons.clear_task(id),
    }
}

fn stands_while_pending(reason: &Reason) -> bool {
    matches!(reason, Reason::WaitingForRelease { .. } | Reason::RefusedByPlugin { .. })
}

fn gates_of(cluster: &ClusterState, job: JobId) -> u32 {
    cluster.job(job).tasks().map(|task| cluster.task(task).gates).sum()
}
