//! `priority`: jobs and tasks of a higher priority class go first, and may evict those of a lower one.

use krafla_framework::session_plugin::{Comparison, EvictionKind, SessionPlugin, Victims};
use krafla_framework::{PluginEntry, PluginInfo, Point, Rank};
use krafla_model::{ClusterState, JobId, TaskId};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "priority",
    about: "order and preempt by priority class",
    arguments: &[],
    points: &[
        Point::TaskOrder,
        Point::JobOrder,
        Point::SubJobOrder,
        Point::Preemptable,
        Point::UnifiedEvictable,
        Point::JobStarving,
    ],
};

struct Priority;

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(Priority)
}

impl SessionPlugin for Priority {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.descending(cluster.job(job).priority);
    }

    fn task_order(&self, cluster: &ClusterState, task: TaskId, rank: &mut Rank) {
        rank.descending(cluster.task(task).priority);
    }

    fn job_starving(&self, cluster: &ClusterState, job: JobId) -> bool {
        let job = cluster.job(job);
        ((job.n_ready() + job.n_pipelined()) as usize) < job.n_tasks()
    }

    /// Of another job: those of a lower job priority. Of the same job: those of a lower task priority.
    fn preemptable(&self, cluster: &ClusterState, preemptor: TaskId, candidates: &[TaskId]) -> Victims {
        let Some(own) = cluster.task(preemptor).job else { return Victims::Only(Vec::new()) };
        let lower = |victim: &TaskId| match cluster.task(*victim).job {
            Some(job) if job == own => cluster.task(*victim).priority < cluster.task(preemptor).priority,
            Some(job) => cluster.job(job).priority < cluster.job(own).priority,
            None => false,
        };
        Victims::Only(candidates.iter().copied().filter(lower).collect())
    }

    fn preempts_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        if cluster.job(job).priority <= cluster.job(than).priority { Comparison::Always } else { Comparison::Unknown }
    }

    fn unified_evictable(
        &self,
        cluster: &ClusterState,
        kind: EvictionKind,
        job: JobId,
        candidates: &[TaskId],
    ) -> Victims {
        let lower = |victim: &TaskId| {
            let other = cluster.task(*victim).job;
            other.is_some_and(|other| cluster.job(other).priority < cluster.job(job).priority)
        };
        match kind {
            EvictionKind::GangReclaim => Victims::Only(candidates.to_vec()),
            EvictionKind::GangPreempt => Victims::Only(candidates.iter().copied().filter(lower).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::priority::PriorityClassSpec;
    use krafla_model::{Event, Name};
    use krafla_testkit::{Scene, task_named};

    use super::*;
    use crate::testing::{conf, registry, run};

    fn class(name: &str, value: i32) -> Event {
        let name = Name::from(name);
        Event::PriorityClass(PriorityClassSpec { name, value, global_default: false, preempts: true })
    }

    fn classes(scene: Scene) -> Scene {
        [("low", 100), ("mid", 500), ("high", 1000)]
            .into_iter()
            .fold(scene, |s, (name, value)| s.event(class(name, value)))
    }

    fn labels(cluster: &ClusterState, victims: Victims) -> Vec<String> {
        let Victims::Only(victims) = victims else { panic!("no opinion") };
        victims.iter().map(|task| cluster.task(*task).name.to_string()).collect()
    }

    #[test]
    fn victims_are_of_lower_jobs_or_lower_tasks_of_the_same_job() {
        let cluster = classes(
            Scene::new()
                .node("n", "9c")
                .job("l", |job| job.class("low").running(1, "1c", "n").task_priority(1000).running(1, "1c", "n"))
                .job("m", |job| {
                    job.class("mid")
                        .task_priority(1)
                        .running(1, "1c", "n")
                        .task_priority(5)
                        .running(1, "1c", "n")
                        .pending(1, "1c")
                })
                .job("h", |job| job.class("high").running(1, "1c", "n").pending(1, "1c")),
        )
        .build();
        let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let victims =
            |preemptor| labels(&cluster, Priority.preemptable(&cluster, task_named(&cluster, preemptor), &all));
        assert_eq!(victims("m-2"), ["l-0", "l-1", "m-0"], "a lower job's tasks whatever theirs, its own only if lower");
        assert_eq!(victims("h-1"), ["l-0", "l-1", "m-0", "m-1", "m-2"]);
        assert_eq!(victims("l-0"), [""; 0]);

        let orphan = task_named(&cluster, "l-0");
        let mut cluster = cluster.clone();
        cluster.apply(Event::PodGroupGone { namespace: "default".into(), name: "l".into() });
        assert_eq!(
            labels(&cluster, Priority.preemptable(&cluster, orphan, &all)),
            [""; 0],
            "a preemptor without a job"
        );
        let left = labels(&cluster, Priority.preemptable(&cluster, task_named(&cluster, "m-2"), &all));
        assert_eq!(left, ["m-0"], "victims without a job are passed over");
    }

    #[test]
    fn a_whole_job_may_evict_lower_ones_and_reclaim_from_anyone() {
        let cluster = classes(
            Scene::new()
                .node("n", "9c")
                .job("l", |job| job.class("low").running(1, "1c", "n"))
                .job("h", |job| job.class("high").running(1, "1c", "n"))
                .job("m", |job| job.class("mid").pending(1, "1c")),
        )
        .build();
        let candidates: Vec<TaskId> = ["l-0", "h-0"].map(|pod| task_named(&cluster, pod)).to_vec();
        let job = cluster.find_job(&"default".into(), &"m".into()).unwrap();
        let victims = |kind| labels(&cluster, Priority.unified_evictable(&cluster, kind, job, &candidates));
        assert_eq!(victims(EvictionKind::GangReclaim), ["l-0", "h-0"]);
        assert_eq!(victims(EvictionKind::GangPreempt), ["l-0"]);
    }

    #[test]
    fn switched_off_it_names_nobody_and_alone_it_does() {
        let scene = classes(
            Scene::new()
                .node("n", "6c")
                .job("l", |job| job.class("low").running(2, "3c", "n"))
                .job("h", |job| job.class("high").pending(1, "3c")),
        );
        for (tiers, n) in [
            (&[&["priority enablePreemptable=false"] as &[&str]] as &[&[&str]], 0),
            (&[&["priority"]], 2),
            (&[&["priority enablePreemptable=false"], &["conformance"]], 2),
        ] {
            let mut cluster = scene.build();
            let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
            let victims = krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", tiers), |session| {
                session.plugins().preemptable(session.cluster(), all[2], &all[..2])
            });
            assert_eq!(victims.len(), n, "{tiers:?}");
        }
    }

    #[test]
    fn higher_jobs_and_higher_tasks_go_first() {
        let scene = classes(
            Scene::new()
                .node("n", "3c")
                .job("l", |job| job.class("low").pending(1, "1c"))
                .job("h", |job| job.class("high").pending(1, "1c").task_priority(9).pending(1, "1c"))
                .job("unclassed", |job| job.pending(1, "1c")),
        );
        assert_eq!(run(&scene, "allocate", &["priority"]).binds, ["h-1 -> n", "h-0 -> n", "l-0 -> n"]);
    }

    #[test]
    fn a_job_starves_while_any_task_has_no_place() {
        for (running, pending, starving) in [(2, 1, true), (2, 0, false), (0, 1, true)] {
            let scene = Scene::new().node("n", "9c");
            let cluster = scene.job("a", |job| job.min(1).running(running, "1c", "n").pending(pending, "1c")).build();
            let (job, _) = cluster.jobs().next().unwrap();
            assert_eq!(Priority.job_starving(&cluster, job), starving, "{running} run, {pending} wait");
        }
        // With gang in the same tier both must say so: a job above its minimum does not starve.
        let mut cluster =
            Scene::new().node("n", "9c").job("a", |job| job.min(1).running(1, "1c", "n").pending(1, "1c")).build();
        let (job, _) = cluster.jobs().next().unwrap();
        for (plugins, want) in [
            (&["priority", "gang"] as &[&str], false),
            (&["priority", "gang enableJobStarving=false"], true),
            (&["drf"], false),
        ] {
            let conf = conf("allocate", &[plugins]);
            let starves = krafla_testkit::ask(&mut cluster, &registry(), &conf, |session| {
                session.plugins().job_starving(session.cluster(), job)
            });
            assert_eq!(starves, want, "{plugins:?}");
        }
    }
}
