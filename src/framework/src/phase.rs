//! The phase of a PodGroup, from where its tasks stand.

use krafla_model::{Job, JobPhase, TaskStatus};

/// The phase that a job should have now. `unschedulable`: this session found that its gang cannot be completed.
///
/// The rules are Volcano's, but for one: a PodGroup whose minimum is 0 and whose pods have not been seen does not count
/// as completed.
pub fn phase_of(job: &Job, unschedulable: bool) -> JobPhase {
    let counts = job.counts();
    let completed = counts.sum(TaskStatus::is_finished);
    let releasing = counts.of(TaskStatus::Releasing);
    let scheduled = counts.of(TaskStatus::Running) + counts.of(TaskStatus::Bound) + completed + releasing;
    if counts.of(TaskStatus::Running) > 0 && unschedulable {
        return JobPhase::Unknown;
    }
    if scheduled >= job.min_available() && scheduled > 0 {
        return if scheduled == completed { JobPhase::Completed } else { JobPhase::Running };
    }
    match job.phase {
        JobPhase::Inqueue => JobPhase::Inqueue,
        // A gang whose members are just being bound is on its way, not back at the door.
        JobPhase::Running if counts.of(TaskStatus::Binding) > 0 => JobPhase::Running,
        _ if counts.of(TaskStatus::Binding) > 0 => JobPhase::Inqueue,
        _ => JobPhase::Pending,
    }
}
