//! `cdp`: a pod is left in peace for a while after it was given its node.

use krafla_framework::session_plugin::{Comparison, EvictionKind, SessionPlugin, Victims};
use krafla_framework::{PluginEntry, PluginInfo, Point};
use krafla_model::{ClusterState, JobId, PodPhase, TaskId, Time};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "cdp",
    about: "leave a pod in peace for its cooldown time",
    arguments: &[],
    points: &[Point::Preemptable, Point::Reclaimable, Point::UnifiedEvictable, Point::Evictable],
};

struct Cdp {
    /// When the first protection ends of those that the last session saw.
    next_end: Time,
}

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(Cdp { next_end: Time::NEVER })
}

impl SessionPlugin for Cdp {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    /// Cost: linear in tasks, if any pod has a cooldown.
    fn open(&mut self, cluster: &ClusterState) {
        self.next_end = Time::NEVER;
        if cluster.shapes().any(|shape| shape.spec.cooldown_ms > 0) {
            let ends = cluster.tasks().filter_map(|(task, _)| protected_until(cluster, task));
            self.next_end = ends.min().unwrap_or(Time::NEVER);
        }
    }

    fn preemptable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        cooled_down(cluster, candidates)
    }

    fn preempts_no_more(&self, _: &ClusterState, _: JobId, _: JobId) -> Comparison {
        Comparison::Always
    }

    fn reclaims_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        self.preempts_no_more(cluster, job, than)
    }

    fn reclaimable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        cooled_down(cluster, candidates)
    }

    fn unified_evictable(&self, cluster: &ClusterState, _: EvictionKind, _: JobId, candidates: &[TaskId]) -> Victims {
        cooled_down(cluster, candidates)
    }

    fn evictable(&self, cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
        cooled_down(cluster, candidates)
    }

    /// Who began to run after the last session kept nobody of that session from anything.
    fn wakes_at(&self, cluster: &ClusterState) -> Time {
        let somebody_waits = cluster.waiting_jobs().next().is_some();
        if somebody_waits && self.next_end > cluster.now() { self.next_end } else { Time::NEVER }
    }
}

/// When the protection of a task ends, if it is protected now.
fn protected_until(cluster: &ClusterState, id: TaskId) -> Option<Time> {
    let cooldown = cluster.shape_of(id).spec.cooldown_ms;
    let task = cluster.task(id);
    if cooldown == 0 || task.phase != PodPhase::Running {
        return None;
    }
    Some(task.scheduled_at? + cooldown).filter(|end| *end > cluster.now())
}

fn cooled_down(cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
    let is_free = |task: &TaskId| protected_until(cluster, *task).is_none();
    Victims::Only(candidates.iter().copied().filter(is_free).collect())
}

#[cfg(test)]
mod tests {
    use krafla_testkit::{JobScene, Scene, ask, task_named};

    use super::*;
    use crate::testing::{conf, registry};

    const SECOND: i64 = 1_000;
    const NOW: i64 = 1_000 * SECOND;

    /// A running pod of this cooldown that was given its node so many seconds ago.
    fn aged(cooldown: i64, ago: i64) -> impl FnOnce(JobScene) -> JobScene {
        move |job| {
            let job = job.shape(|shape| shape.cooldown_ms = cooldown * SECOND).running(1, "1c", "n");
            job.each(|pod| pod.scheduled_at = Some(Time(NOW - ago * SECOND)))
        }
    }

    #[test]
    fn a_running_pod_is_protected_until_its_cooldown_is_over() {
        let cluster = Scene::new()
            .at(NOW)
            .node("n", "99c")
            .job("young", aged(600, 100))
            .job("old", aged(600, 800))
            .job("just-over", aged(600, 600))
            .job("plain", aged(0, 100))
            .job("undated", |job| job.shape(|shape| shape.cooldown_ms = 600 * SECOND).running(1, "1c", "n"))
            .job("starting", |job| aged(600, 100)(job).each(|pod| pod.phase = PodPhase::Pending))
            .build();
        let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let free = ["old-0", "just-over-0", "plain-0", "undated-0", "starting-0"];
        let free = Victims::Only(free.map(|pod| task_named(&cluster, pod)).to_vec());
        let cdp = build(&PluginEntry::default());
        assert_eq!(cdp.preemptable(&cluster, all[0], &all), free);
        assert_eq!(cdp.reclaimable(&cluster, all[0], &all), free);
        let (job, _) = cluster.jobs().next().unwrap();
        for kind in [EvictionKind::GangPreempt, EvictionKind::GangReclaim] {
            assert_eq!(cdp.unified_evictable(&cluster, kind, job, &all), free);
        }
    }

    #[test]
    fn it_asks_to_be_woken_when_the_next_protection_ends_and_somebody_waits() {
        let waiter = |job: JobScene| job.pending(1, "99c");
        for (name, scene, want) in [
            ("two protected", Scene::new().job("a", aged(600, 100)).job("b", aged(600, 200)).job("w", waiter), 400),
            ("nobody waits", Scene::new().job("a", aged(600, 100)), -1),
            ("nobody is protected", Scene::new().job("a", aged(600, 700)).job("w", waiter), -1),
        ] {
            let mut cluster = scene.at(NOW).node("n", "9c").build();
            let woken = ask(&mut cluster, &registry(), &conf("allocate", &[&["cdp"]]), |session| {
                session.plugins().wakes_at(session.cluster())
            });
            assert_eq!(woken, if want < 0 { Time::NEVER } else { Time(NOW + want * SECOND) }, "{name}");
        }
    }
}
