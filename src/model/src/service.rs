//! What a job has had of the cluster: for how long it has run, over all lives of its pods, and how wide it is.
//!
//! A job has run for as long as its minimum has: the k-th longest run of its pods, k being the minimum. A pod that was
//! made in the place of one that is gone goes on from there. Whoever makes it says so on it; if nobody does, it goes on
//! from the longest run of the job's pods that this state has seen end. So the time only ever grows, whatever a
//! restart cost, and no order by it can turn about because somebody was evicted.

use crate::ids::{JobId, TaskId};
use crate::resources::ResourceId;
use crate::state::ClusterState;

impl ClusterState {
    /// For how long a job has run, in milliseconds. Cost: its tasks.
    pub fn attained_ms(&self, id: JobId) -> i64 {
        let job = self.job(id);
        let ended = job.counts().of(crate::TaskStatus::Succeeded);
        let needed = job.min_available().saturating_sub(ended).max(1) as usize;
        let live = job.tasks().filter(|task| !self.task(*task).status().is_finished());
        let mut runs: Vec<i64> = live.map(|task| self.run_ms(task)).collect();
        runs.sort_unstable_by(|one, other| other.cmp(one));
        runs.get(needed - 1).copied().unwrap_or(job.ran_ms)
    }

    /// How long a job still has to run, as its user says, in milliseconds; `None` if that was not said. One that has
    /// outlived what was said has nothing left.
    pub fn remaining_ms(&self, id: JobId) -> Option<i64> {
        Some(self.job(id).spec.estimate_ms?.saturating_sub(self.attained_ms(id)).max(0))
    }

    /// What a job's service is reckoned in: thousandths of GPUs if its pods ask for any, else of cores; at least 1.
    pub fn service_width(&self, id: JobId) -> i64 {
        let held = self.job(id).held();
        let sum = |id: ResourceId| -> i64 {
            [&held.allocated, &held.pipelined, &held.releasing, &held.pending].iter().map(|part| part.get(id)).sum()
        };
        let gpus = sum(ResourceId::GPU);
        if gpus > 0 { gpus } else { sum(ResourceId::CPU).max(1) }
    }

    /// For how long a pod has run, with those that it goes on from.
    fn run_ms(&self, id: TaskId) -> i64 {
        let task = self.task(id);
        let own = task.started.map_or(0, |started| (self.now.0 - started.0).max(0));
        task.attained_ms.unwrap_or(0).saturating_add(own)
    }

    /// A pod joins a job: unless it says itself from where it goes on, it goes on from where the job stood.
    pub(crate) fn goes_on(&mut self, id: TaskId, job: JobId) {
        let ran_ms = self.jobs[job].ran_ms;
        self.tasks[id].attained_ms.get_or_insert(ran_ms);
    }

    /// A pod is gone: the job keeps in mind for how long it had run.
    pub(crate) fn remember_run(&mut self, id: TaskId) {
        if let Some(job) = self.tasks[id].job {
            let ran_ms = self.run_ms(id);
            let job = &mut self.jobs[job];
            job.ran_ms = job.ran_ms.max(ran_ms);
        }
    }
}
