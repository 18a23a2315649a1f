//! What evictions could free for a job that stands at the door: enough to know whether it is worth letting in.
//!
//! Pods of it may not exist yet, so nobody is asked about single victims; who goes in the end, the actions decide.

use std::collections::BTreeMap;

use krafla_framework::{Freeable, Session};
use krafla_model::{ClusterState, JobId, JobPhase, QueueId, Resources, TaskId, TaskStatus};

/// Sums that jobs of one queue and one priority have in common, reckoned once a session.
#[derive(Default)]
pub(crate) struct FreeableSums {
    in_queue: BTreeMap<(QueueId, i32), Resources>,
    kept: BTreeMap<(QueueId, i32), Resources>,
}

impl FreeableSums {
    /// What could be freed for a job by the actions of this configuration. Cost: the tasks of its queue, once.
    pub(crate) fn for_job(&mut self, session: &Session<'_>, id: JobId) -> Freeable {
        let (cluster, job) = (session.cluster(), session.cluster().job(id));
        let Some(queue) = job.queue else { return Freeable::default() };
        let mut freeable = Freeable::default();
        let kept = self.kept.entry((queue, job.priority));
        freeable.kept_for_lower = kept.or_insert_with(|| kept_for_lower(cluster, queue, job.priority)).clone();
        if ["preempt", "gangpreempt"].into_iter().any(|action| session.has_action(action)) {
            let sum = self.in_queue.entry((queue, job.priority)).or_insert_with(|| below(cluster, queue, job.priority));
            freeable.in_queue = sum.clone();
        }
        if ["reclaim", "gangreclaim"].into_iter().any(|action| session.has_action(action))
            && let Some(min) = &job.min_resources
        {
            freeable.elsewhere = session.plugins().could_reclaim(cluster, queue, min).unwrap_or_default();
        }
        freeable
    }
}

/// What jobs of lower priority in a queue hold beyond their minimums.
fn below(cluster: &ClusterState, queue: QueueId, priority: i32) -> Resources {
    let mut sum = Resources::default();
    let lower = cluster.queue(queue).jobs().map(|job| cluster.job(job)).filter(|job| job.priority < priority);
    for job in lower {
        let spare = job.n_ready().saturating_sub(job.min_available()) as usize;
        let may_go = |task: &TaskId| {
            matches!(cluster.task(*task).status(), TaskStatus::Bound | TaskStatus::Running)
                && !cluster.shape_of(*task).spec.protected
        };
        for task in job.tasks().filter(may_go).take(spare) {
            sum.add(&cluster.shape_of(task).request);
        }
    }
    sum
}

/// What admission keeps for jobs of lower priority in a queue that were let in and hold nothing. Cost: its waiting jobs.
fn kept_for_lower(cluster: &ClusterState, queue: QueueId, priority: i32) -> Resources {
    let mut sum = Resources::default();
    for job in cluster.waiting_jobs().map(|job| cluster.job(job)) {
        let waits_inside = job.queue == Some(queue) && job.phase == JobPhase::Inqueue && job.priority < priority;
        let holds_nothing = job.held().occupied().is_zero() && job.counts().of(TaskStatus::Gated) == 0;
        if waits_inside && holds_nothing && !job.is_unplaceable() {
            sum.add(&job.inqueue_reservation());
        }
    }
    sum
}
