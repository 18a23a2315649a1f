//! Promises of earlier sessions: room that is being released for a job stays its own.
//!
//! Whoever could take it, also a job of higher priority, would make evictions vain, and somebody would be evicted again.

use std::collections::BTreeSet;

use krafla_framework::Session;
use krafla_framework::rank::{JobRank, QueueRank};
use krafla_model::{JobId, QueueId};

/// Jobs for whose tasks nodes have been nominated, in the order in which they go before all others.
pub(crate) fn with_promises(session: &Session<'_>) -> Vec<(QueueId, JobId)> {
    let (cluster, plugins) = (session.cluster(), session.plugins());
    let promised: BTreeSet<JobId> = cluster.nominees().filter_map(|task| cluster.task(task).job).collect();
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
