//! `las`: the job that has had the least service goes first, and may evict those that have had much more.
//!
//! Attained service is the time that a job has run, times its width: GPUs if it asks for any, else cores. It is only
//! looked at in steps, as in Tiresias (Gu et al., NSDI '19): a job begins on the first level and falls to the next with
//! each threshold that its service passes. Lower levels go first; within one, the older job does. Only who is on a
//! higher level is evicted, and nobody ever rises, so no two jobs evict each other in turns.

use krafla_framework::session_plugin::{SessionPlugin, Victims};
use krafla_framework::{ArgumentInfo, ArgumentKind, PluginEntry, PluginInfo, Point, Rank};
use krafla_model::{ClusterState, JobId, TaskId, TaskStatus, Time};

use crate::srsf::{key, lacks_pods, later_jobs};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "las",
    about: "least attained service first, in levels; needs no run times",
    arguments: &[
        ArgumentInfo::new(
            THRESHOLD,
            ArgumentKind::Duration,
            "1h",
            "service of one GPU or core after which a job leaves the first level",
        ),
        ArgumentInfo::new(
            FACTOR,
            ArgumentKind::Integer { min: 2, max: 1_000_000 },
            "10",
            "from each threshold to the next",
        ),
        ArgumentInfo::new(LEVELS, ArgumentKind::Integer { min: 1, max: 32 }, "2", "how many levels there are"),
    ],
    points: &[Point::JobOrder, Point::Preemptable, Point::JobStarving],
};

const THRESHOLD: &str = "las.threshold";
const FACTOR: &str = "las.factor";
const LEVELS: &str = "las.levels";

struct Las {
    /// Service at which a job leaves each level but the last, in thousandths of a device times milliseconds; ascending.
    thresholds: Vec<i64>,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let first = i64::try_from(entry.arguments.duration_ms(THRESHOLD, 3_600_000)).unwrap_or(i64::MAX);
    let (factor, levels) = (entry.arguments.integer(FACTOR, 10), entry.arguments.integer(LEVELS, 2));
    let mut thresholds = Vec::new();
    let mut next = first.max(1).saturating_mul(1_000);
    for _ in 1..levels {
        thresholds.push(next);
        next = next.saturating_mul(factor);
    }
    Box::new(Las { thresholds })
}

impl Las {
    /// The level of a job, from 0.
    fn level(&self, cluster: &ClusterState, job: JobId) -> usize {
        let service = cluster.attained_ms(job).saturating_mul(cluster.service_width(job));
        self.thresholds.partition_point(|threshold| *threshold <= service)
    }

    fn place(&self, cluster: &ClusterState, job: JobId) -> i64 {
        i64::try_from(self.level(cluster, job)).unwrap_or(i64::MAX)
    }

    /// When a job that runs falls to the next level.
    fn falls_at(&self, cluster: &ClusterState, job: JobId) -> Option<Time> {
        let own = cluster.job(job);
        let run = own.counts().sum(|status| matches!(status, TaskStatus::Running | TaskStatus::Succeeded));
        if own.counts().of(TaskStatus::Running) == 0 || run < own.min_available() {
            return None;
        }
        let threshold = *self.thresholds.get(self.level(cluster, job))?;
        let width = cluster.service_width(job);
        let needed_ms = threshold / width + i64::from(threshold % width != 0);
        Some(cluster.now() + (needed_ms - cluster.attained_ms(job)).max(1))
    }
}

impl SessionPlugin for Las {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.ascending(key(self.place(cluster, job)));
    }

    fn job_starving(&self, cluster: &ClusterState, job: JobId) -> bool {
        lacks_pods(cluster, job)
    }

    fn preemptable(&self, cluster: &ClusterState, preemptor: TaskId, candidates: &[TaskId]) -> Victims {
        later_jobs(cluster, preemptor, candidates, |job| self.place(cluster, job))
    }

    /// Those on the highest level, and of equals the youngest.
    fn victim_job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.descending(key(self.place(cluster, job)));
        rank.descending(key(cluster.job(job).spec.created.0));
    }

    /// When the first job that runs falls to another level, if anybody waits for that. Cost: the pods of all jobs.
    fn wakes_at(&self, cluster: &ClusterState) -> Time {
        if cluster.waiting_jobs().next().is_none() {
            return Time::NEVER;
        }
        cluster.jobs().filter_map(|(job, _)| self.falls_at(cluster, job)).min().unwrap_or(Time::NEVER)
    }
}
