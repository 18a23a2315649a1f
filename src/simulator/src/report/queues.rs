//! How did the jobs of each queue fare?

use super::stats::Spread;
use super::summary::by_finish;
use crate::record::Record;

/// The jobs of one queue.
#[derive(Debug, Default)]
pub(super) struct QueueJobs {
    /// Jobs submitted.
    pub(super) jobs: usize,
    /// Jobs that started and ended.
    pub(super) finished: usize,
    /// Their mean wait.
    pub(super) mean_wait_ms: i64,
}

/// One entry for each queue of the record. The warm-up counts here, as the shares include it too.
pub(super) fn queue_jobs(record: &Record) -> Vec<QueueJobs> {
    let mut jobs = vec![0; record.queues.len()];
    for job in &record.jobs {
        if let Some(n) = jobs.get_mut(job.queue) {
            *n += 1;
        }
    }
    let mut waits = vec![Vec::new(); record.queues.len()];
    for ended in by_finish(record) {
        if let Some(waits) = waits.get_mut(ended.job.queue) {
            waits.push(ended.wait_ms());
        }
    }
    let of_queue = |(jobs, waits)| {
        let waits = Spread::new(waits);
        QueueJobs { jobs, finished: waits.len(), mean_wait_ms: waits.mean_ms() }
    };
    jobs.into_iter().zip(waits).map(of_queue).collect()
}
