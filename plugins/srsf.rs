//! `srsf`: the job with the smallest remaining service goes first, and may evict those that have more left.
//!
//! Remaining service is what the user says that the job runs, less what it has run, times its width: GPUs if it asks for
//! any, else cores (SRSF; compared with others by Zhao et al., SIGCOMM '22). A job that runs has ever less left, and one
//! that waits has the same, so no two jobs evict each other in turns. A job whose user says nothing comes last.

use std::collections::BTreeMap;

use krafla_framework::session_plugin::{SessionPlugin, Victims};
use krafla_framework::{PluginEntry, PluginInfo, Point, Rank};
use krafla_model::{ClusterState, JobId, TaskId};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "srsf",
    about: "shortest remaining service first, by declared run times",
    arguments: &[],
    points: &[Point::JobOrder, Point::Preemptable, Point::JobStarving],
};

struct Srsf;

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(Srsf)
}

impl SessionPlugin for Srsf {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.ascending(key(remaining(cluster, job)));
    }

    fn job_starving(&self, cluster: &ClusterState, job: JobId) -> bool {
        lacks_pods(cluster, job)
    }

    fn preemptable(&self, cluster: &ClusterState, preemptor: TaskId, candidates: &[TaskId]) -> Victims {
        later_jobs(cluster, preemptor, candidates, |job| remaining(cluster, job))
    }

    /// Those with the most left, and of equals the youngest.
    fn victim_job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.descending(key(remaining(cluster, job)));
        rank.descending(key(cluster.job(job).spec.created.0));
    }
}

/// What a job has left, in thousandths of a device, or of a core, times milliseconds; the most there is if its user
/// does not say.
fn remaining(cluster: &ClusterState, job: JobId) -> i64 {
    cluster.remaining_ms(job).map_or(i64::MAX, |ms| ms.saturating_mul(cluster.service_width(job)))
}

/// An amount as a key.
#[allow(clippy::cast_precision_loss, reason = "it only orders; exact below 2^53, 100 GPUs for 1,000 days")]
pub(crate) fn key(amount: i64) -> f64 {
    amount as f64
}

/// Whether some pod of a job has neither a node nor the promise of one.
pub(crate) fn lacks_pods(cluster: &ClusterState, job: JobId) -> bool {
    let job = cluster.job(job);
    ((job.n_ready() + job.n_pipelined()) as usize) < job.n_tasks()
}

/// Candidates whose job comes strictly later than the preemptor's, in the order of `place`; none of its own job.
pub(crate) fn later_jobs(
    cluster: &ClusterState,
    preemptor: TaskId,
    candidates: &[TaskId],
    place: impl Fn(JobId) -> i64,
) -> Victims {
    let Some(own) = cluster.task(preemptor).job else { return Victims::Only(Vec::new()) };
    let mine = place(own);
    let mut known: BTreeMap<JobId, bool> = BTreeMap::new();
    let mut is_later = |victim: &TaskId| {
        let job = cluster.task(*victim).job.filter(|job| *job != own);
        job.is_some_and(|job| *known.entry(job).or_insert_with(|| place(job) > mine))
    };
    Victims::Only(candidates.iter().copied().filter(|victim| is_later(victim)).collect())
}
