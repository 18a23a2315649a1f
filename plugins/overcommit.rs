//! `overcommit`: jobs are let in up to the size of the cluster times a factor.

use krafla_framework::session_plugin::{Freeable, SessionPlugin, Vote};
use krafla_framework::{ArgumentInfo, ArgumentKind, PluginEntry, PluginInfo, Point, Reason, Shortage};
use krafla_model::{ClusterState, JobId, ResourceId, Resources};

use crate::admission;

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "overcommit",
    about: "let jobs in up to the cluster's size times a factor",
    arguments: &[ArgumentInfo::new(
        FACTOR,
        ArgumentKind::Number { min: 1.0, max: 1_000.0 },
        "1.2",
        "multiple of the cluster that may be promised",
    )],
    points: &[Point::JobEnqueueable],
};

const FACTOR: &str = "overcommit-factor";
/// The factor is kept in millionths, so that amounts stay integers.
const MILLION: i128 = 1_000_000;

struct Overcommit {
    factor_millionths: i128,
    /// What may be promised in all.
    ceiling: Resources,
    /// What is held, and what is kept for admitted jobs.
    promised: Resources,
}

/// Makes the plugin.
#[allow(clippy::cast_possible_truncation, reason = "between 1 and 1000 times a million")]
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let factor_millionths = (entry.arguments.number(FACTOR, 1.2) * 1e6).round() as i128;
    Box::new(Overcommit { factor_millionths, ceiling: Resources::default(), promised: Resources::default() })
}

impl SessionPlugin for Overcommit {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn open(&mut self, cluster: &ClusterState) {
        if !admission::anyone_waits_for_entry(cluster) {
            return;
        }
        self.ceiling = Resources::default();
        for (id, amount) in cluster.totals().allocatable.iter() {
            let scaled = i128::from(amount) * self.factor_millionths / MILLION;
            self.ceiling.set(id, i64::try_from(scaled).unwrap_or(i64::MAX));
        }
        self.promised = cluster.totals().used.clone();
        for (job, _) in cluster.jobs() {
            self.promised.add(&admission::reservation(cluster, job));
        }
    }

    fn job_enqueueable(&self, cluster: &ClusterState, job: JobId, freeable: &Freeable) -> Vote {
        let Some(min) = &cluster.job(job).min_resources else { return Vote::Permit };
        // Pod slots are not held against anyone at the door, as in `proportion`.
        let min = min.clone().with(ResourceId::PODS, 0);
        let promised = self.promised.minus_clamped(&freeable.in_queue).minus_clamped(&freeable.elsewhere);
        let promised = promised.minus_clamped(&freeable.kept_for_lower);
        match min.first_over(&promised, &self.ceiling) {
            None => Vote::Permit,
            Some(short) => {
                Vote::Reject(Box::new(Reason::ClusterOvercommitted { shortage: Shortage::new(short, cluster) }))
            }
        }
    }

    fn job_enqueued(&mut self, cluster: &ClusterState, job: JobId) {
        self.promised.add(&admission::on_entry(cluster, job));
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::JobPhase::{self, Inqueue, Pending};
    use krafla_testkit::{JobScene, Scene};

    use crate::testing::{compiles, run};

    fn admits(scene: Scene, factor: &str, asks: Option<&str>) -> JobPhase {
        let plugin = format!("overcommit overcommit-factor={factor}");
        let scene = scene.job("new", |job| match asks {
            Some(asks) => job.min_resources(asks).at_the_door(),
            None => job.at_the_door(),
        });
        run(&scene, "enqueue, allocate", &[&plugin]).phases["new"]
    }

    #[test]
    fn a_job_is_let_in_up_to_the_factor() {
        let two_nodes = || Scene::new().node("n1", "2c4Gi").node("n2", "4c16Gi");
        for (factor, asks, want) in [
            ("1.2", Some("2c2G"), Inqueue),
            ("1.2", Some("7.2c2G"), Inqueue),
            ("1.2", Some("7201m"), Pending),
            ("1.0", Some("7.2c2G"), Pending),
            ("1.2", Some("20c20G"), Pending),
            ("1.2", Some("1c,example.com/absent=1"), Pending),
            ("1.2", None, Inqueue),
        ] {
            assert_eq!(admits(two_nodes(), factor, asks), want, "{asks:?} at {factor}");
        }
    }

    #[test]
    fn a_factor_below_one_is_refused() {
        // Volcano warns and takes 1.2.
        assert!(!compiles("overcommit overcommit-factor=0.8"));
        assert!(compiles("overcommit overcommit-factor=1"));
    }

    #[test]
    fn what_is_held_and_what_is_kept_for_admitted_jobs_counts() {
        // Ten cores, eight in use, factor 1.2: four are left, three of them kept.
        let scene = || {
            Scene::new()
                .node("n", "10c")
                .job("runs", |job| job.running(8, "1c", "n"))
                .job("let in", |job| job.min_resources("3c"))
        };
        assert_eq!(admits(scene(), "1.2", Some("2c")), Pending);
        assert_eq!(admits(scene(), "1.2", Some("1c")), Inqueue);
    }

    #[test]
    fn jobs_let_in_together_are_counted_together() {
        let door = |asks: &'static str| move |job: JobScene| job.min_resources(asks).at_the_door();
        let scene = Scene::new().node("n", "10c").job("a", door("7c")).job("b", door("7c")).job("c", door("5c"));
        let phases = run(&scene, "enqueue, allocate", &["overcommit"]).phases;
        assert_eq!(["a", "b", "c"].map(|job| phases[job]), [Inqueue, Pending, Inqueue]);
    }

    #[test]
    fn only_what_is_not_yet_held_is_kept() {
        // Volcano counts the four cores of an admitted job that has them twice, until its PodGroup says Running.
        let half_way = |running| {
            Scene::new().node("n", "10c").job("let in", |job| {
                job.min(4).min_resources("4c").running(running, "1c", "n").pending(4 - running, "1c")
            })
        };
        for running in [0, 2, 4] {
            assert_eq!(admits(half_way(running), "1", Some("6c")), Inqueue, "{running} of 4 run");
            assert_eq!(admits(half_way(running), "1", Some("7c")), Pending, "{running} of 4 run");
        }
    }

    #[test]
    fn nothing_is_kept_for_pods_behind_gates_or_for_a_job_below_its_minimum() {
        let gated = Scene::new().node("n", "10c").job("gated", |job| job.min_resources("4c").gated(4, "1c"));
        assert_eq!(admits(gated, "1", Some("10c")), Inqueue);
        let driver_gone = Scene::new().node("n", "10c").job("spark", |job| {
            let job = job.min(2).min_resources("5c").succeeded(1, "1c").running(1, "1c", "n");
            job.group(|group| group.phase = JobPhase::Running)
        });
        assert_eq!(admits(driver_gone, "1", Some("9c")), Inqueue);
    }
}
