//! Promises of earlier sessions: room that is being released for a job stays its own.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::Session;
use krafla_framework::rank::{JobRank, QueueRank};
use krafla_model::{ClusterState, JobId, QueueId};

/// Jobs for whose tasks nodes have been nominated, in the order in which they go before all others.
///
/// Not those for which a job with a higher priority waits in the same queue: it may need the room more.
pub(crate) fn with_promises(session: &Session<'_>) -> Vec<(QueueId, JobId)> {
    let (cluster, plugins) = (session.cluster(), session.plugins());
    let promised: BTreeSet<JobId> = cluster.nominees().filter_map(|task| cluster.task(task).job).collect();
    if promised.is_empty() {
        return Vec::new();
    }
    let ahead = highest_priorities(cluster, &promised);
    let mut ranked: Vec<(QueueRank, JobRank, QueueId)> = Vec::new();
    for &job in promised.iter().filter(|job| !cluster.job(**job).is_pending()) {
        let Some(queue) = cluster.job(job).queue else { continue };
        if ahead.get(&queue).is_none_or(|ahead| cluster.job(job).priority >= *ahead) {
            ranked.push((plugins.queue_rank(cluster, queue), plugins.job_rank(cluster, job), queue));
        }
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, (.., job), queue)| (queue, job)).collect()
}

/// The highest priority of the jobs that wait in each queue without a promise.
fn highest_priorities(cluster: &ClusterState, promised: &BTreeSet<JobId>) -> BTreeMap<QueueId, i32> {
    let mut highest: BTreeMap<QueueId, i32> = BTreeMap::new();
    for id in cluster.waiting_jobs().filter(|job| !promised.contains(job)) {
        let job = cluster.job(id);
        if let Some(queue) = job.queue.filter(|_| !job.is_pending()) {
            let highest = highest.entry(queue).or_insert(job.priority);
            *highest = job.priority.max(*highest);
        }
    }
    highest
}
