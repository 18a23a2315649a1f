//! `las`: the job that has had the least service goes first, and may evict those that have had much more.
//!
//! Attained service is the time that a job has run, times its width: GPUs if it asks for any, else cores. It is only
//! looked at in steps, as in Tiresias (Gu et al., NSDI '19): a job begins on the first level and falls to the next with
//! each threshold that its service passes. Lower levels go first; within one, the older job does. Only who is on a
//! higher level is evicted, and nobody ever rises, so no two jobs evict each other in turns.

use krafla_framework::session_plugin::{Comparison, SessionPlugin, Victims};
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
        ArgumentInfo::new(LEVELS, ArgumentKind::Integer { min: 1, max: 32 }, "6", "how many levels there are"),
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
    let (factor, levels) = (entry.arguments.integer(FACTOR, 10), entry.arguments.integer(LEVELS, 6));
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

    fn preempts_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        if self.place(cluster, job) >= self.place(cluster, than) { Comparison::Always } else { Comparison::Unknown }
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

#[cfg(test)]
mod tests {
    use krafla_testkit::{JobScene, Scene, task_named};

    use super::*;
    use crate::testing::{compiles, run};

    const HOUR: i64 = 3_600_000;

    fn las(thresholds: &[i64]) -> Las {
        Las { thresholds: thresholds.iter().map(|hours| hours * HOUR * 1_000).collect() }
    }

    #[test]
    fn a_job_falls_with_each_threshold_that_its_service_reaches() {
        type Edit = fn(JobScene) -> JobScene;
        let cases: [(&str, Edit, usize, Option<i64>); 7] = [
            ("new", |job| job.pending(1, "1g"), 0, None),
            ("half an hour on one", |job| job.ran(1, "1g", "n", HOUR / 2), 0, Some(HOUR / 2)),
            ("half an hour on two", |job| job.ran(1, "2g", "n", HOUR / 2), 1, Some(9 * HOUR / 2)),
            ("an hour before, waits now", |job| job.resuming(1, "1g", HOUR), 1, None),
            ("an hour before, runs", |job| job.min(2).ran(2, "1g", "n", HOUR), 1, Some(4 * HOUR)),
            ("the last level", |job| job.ran(1, "1g", "n", 10 * HOUR), 2, None),
            ("cores where there is no GPU", |job| job.ran(1, "4c", "n", HOUR / 2), 1, Some(2 * HOUR)),
        ];
        for (name, edit, level, falls_in) in cases {
            let scene = Scene::new().node("n", "9c9g").job("a", edit).job("waits", |job| job.pending(1, "99g"));
            let cluster = scene.build();
            let las = las(&[1, 10]);
            let (job, _) = cluster.jobs().next().expect("two jobs");
            assert_eq!(las.level(&cluster, job), level, "{name}");
            assert_eq!(las.wakes_at(&cluster), falls_in.map_or(Time::NEVER, Time), "{name}");
        }
    }

    #[test]
    fn victims_are_on_a_higher_level() {
        let cluster = Scene::new()
            .node("n", "9g")
            .job("new", |job| job.pending(1, "1g"))
            .job("same", |job| job.ran(1, "1g", "n", HOUR - 1))
            .job("above", |job| job.ran(1, "1g", "n", HOUR))
            .job("back", |job| job.resuming(1, "1g", 2 * HOUR))
            .build();
        let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let victims = |preemptor: &str| {
            let preemptor = task_named(&cluster, preemptor);
            let Victims::Only(victims) = las(&[1]).preemptable(&cluster, preemptor, &all) else { panic!("no opinion") };
            victims.iter().map(|task| cluster.task(*task).name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(victims("new-0"), ["above-0", "back-0"]);
        assert_eq!(victims("back-0"), [""; 0], "whoever was evicted does not take that back");
    }

    #[test]
    fn the_youngest_of_a_level_goes_and_the_oldest_comes() {
        let scene = Scene::new()
            .node("n", "2g")
            .job("old", |job| job.ran(1, "1g", "n", 2 * HOUR))
            .job("young", |job| job.ran(1, "1g", "n", 2 * HOUR))
            .job("first", |job| job.min(1).pending(1, "1g"))
            .job("second", |job| job.min(1).resuming(1, "1g", HOUR));
        let plugins: &[&str] = &["las", "gang enableJobOrder=false enablePreemptable=false", "predicates"];
        assert_eq!(run(&scene, "allocate, preempt", plugins).evictions, ["young-0"]);
    }

    #[test]
    fn levels_grow_by_a_factor() {
        assert!(compiles("las las.threshold=30m las.factor=4 las.levels=5"));
        assert!(!compiles("las las.factor=1"));
        assert!(!compiles("las las.levels=0"));
        assert!(!compiles("las las.threshold=3"));
    }
}
