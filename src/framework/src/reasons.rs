//! The book of current reasons: one for each job that waits, and one for each task that waits for another reason.

use krafla_model::ids::IdVec;
use krafla_model::{JobId, TaskId, Time};
use serde::Serialize;

use crate::reason::Reason;

/// A reason, and since when its code has been the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// The reason, with its newest numbers.
    pub reason: Reason,
    /// Since when.
    pub since: Time,
}

/// Current reasons.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    jobs: IdVec<JobId, Option<Standing>>,
    tasks: IdVec<TaskId, Option<Standing>>,
    /// Tasks whose own reason is a promise of this session.
    promised: Vec<TaskId>,
}

impl Reasons {
    /// The reason of a job.
    pub fn job(&self, job: JobId) -> Option<&Standing> {
        self.jobs[job].as_ref()
    }

    /// The reason of a task: its own, else that of its job.
    pub fn task(&self, task: TaskId, job: Option<JobId>) -> Option<&Standing> {
        self.tasks[task].as_ref().or_else(|| self.job(job?))
    }

    /// The task's own reason, if it differs from its job's.
    pub fn own(&self, task: TaskId) -> Option<&Standing> {
        self.tasks[task].as_ref()
    }

    /// Sets a job's reason. Answers whether its code is new, which is when people are told.
    pub fn set_job(&mut self, job: JobId, reason: Reason, now: Time) -> bool {
        stand(&mut self.jobs[job], reason, now)
    }

    /// Sets a task's own reason.
    pub fn set_task(&mut self, task: TaskId, reason: Reason, now: Time) -> bool {
        stand(&mut self.tasks[task], reason, now)
    }

    /// Sets a task's own reason for as long as the session's promises last.
    pub fn set_promised(&mut self, task: TaskId, reason: Reason, now: Time) {
        self.promised.push(task);
        stand(&mut self.tasks[task], reason, now);
    }

    /// Promises do not outlive their session: the next one makes them anew, or gives another reason.
    pub fn forget_promises(&mut self) {
        for task in std::mem::take(&mut self.promised) {
            self.clear_task(task);
        }
    }

    /// The job waits no longer.
    pub fn clear_job(&mut self, job: JobId) {
        if self.jobs[job].is_some() {
            self.jobs[job] = None;
        }
    }

    /// The task has no reason of its own any more.
    pub fn clear_task(&mut self, task: TaskId) {
        if self.tasks[task].is_some() {
            self.tasks[task] = None;
        }
    }
}

fn stand(slot: &mut Option<Standing>, reason: Reason, now: Time) -> bool {
    let same = slot.as_ref().filter(|standing| standing.reason.code() == reason.code());
    let since = same.map_or(now, |standing| standing.since);
    let new = same.is_none();
    *slot = Some(Standing { reason, since });
    new
}
