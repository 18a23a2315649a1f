//! `sla`: a job that has waited longer than it accepts goes first, enters its queue, and keeps what it was promised.

use krafla_framework::session_plugin::{Freeable, SessionPlugin, Vote};
use krafla_framework::{ArgumentInfo, ArgumentKind, PluginEntry, PluginInfo, Point, Rank};
use krafla_model::{ClusterState, JobId, Time};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "sla",
    about: "let jobs pass that waited too long",
    arguments: &[ArgumentInfo::new(
        WAITING_TIME,
        ArgumentKind::Duration,
        "",
        "longest wait; the annotation of a job goes before it",
    )],
    points: &[Point::JobOrder, Point::JobEnqueueable, Point::JobPipelined],
};

const WAITING_TIME: &str = "sla-waiting-time";

struct Sla {
    /// Longest wait of jobs that say nothing of their own, in milliseconds.
    global_ms: Option<i64>,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let ms = i64::try_from(entry.arguments.duration_ms(WAITING_TIME, 0)).unwrap_or(i64::MAX);
    Box::new(Sla { global_ms: (ms > 0).then_some(ms) })
}

impl Sla {
    fn deadline(&self, cluster: &ClusterState, job: JobId) -> Option<Time> {
        let spec = &cluster.job(job).spec;
        Some(spec.created + spec.sla_waiting_ms.or(self.global_ms)?)
    }

    fn vote(&self, cluster: &ClusterState, job: JobId) -> Vote {
        match self.deadline(cluster, job) {
            Some(deadline) if deadline <= cluster.now() => Vote::Permit,
            _ => Vote::Abstain,
        }
    }
}

impl SessionPlugin for Sla {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    #[allow(clippy::cast_precision_loss, reason = "a time that only orders; exact below 285,000 years")]
    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.ascending(self.deadline(cluster, job).map_or(f64::INFINITY, |deadline| deadline.0 as f64));
    }

    fn job_enqueueable(&self, cluster: &ClusterState, job: JobId, _: &Freeable) -> Vote {
        self.vote(cluster, job)
    }

    fn job_pipelined(&self, cluster: &ClusterState, job: JobId) -> Vote {
        self.vote(cluster, job)
    }

    fn wakes_at(&self, cluster: &ClusterState) -> Time {
        let deadlines = cluster.waiting_jobs().filter_map(|job| self.deadline(cluster, job));
        deadlines.filter(|deadline| *deadline > cluster.now()).min().unwrap_or(Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::JobPhase::{Inqueue, Pending};
    use krafla_testkit::Scene;

    use super::*;
    use crate::testing::{compiles, conf, registry, run};

    const MINUTE: i64 = 60_000;

    #[test]
    fn the_earlier_deadline_goes_first_and_any_deadline_before_none() {
        for (name, plugin, own, want) in [
            ("the global one before its own hour", "sla sla-waiting-time=3m", [None, Some(60 * MINUTE)], "j0-0 -> n"),
            ("its own minute before the global one", "sla sla-waiting-time=3m", [None, Some(MINUTE)], "j1-0 -> n"),
            ("one before none", "sla", [None, Some(60 * MINUTE)], "j1-0 -> n"),
            ("none at all: by age", "sla", [None, None], "j0-0 -> n"),
        ] {
            let scene = (0..2).fold(Scene::new().node("n", "1c"), |scene, i| {
                scene.job(&format!("j{i}"), |job| job.group(|g| g.sla_waiting_ms = own[i]).pending(1, "1c"))
            });
            assert_eq!(run(&scene, "allocate", &[plugin]).binds, [want], "{name}");
        }
    }

    #[test]
    fn a_wait_is_written_with_its_unit() {
        // Volcano ignores an integer with a log line.
        assert!(!compiles("sla sla-waiting-time=1"));
        assert!(!compiles("sla sla-waiting-time=-3m"));
        assert!(compiles("sla sla-waiting-time=1h30m"));
    }

    #[test]
    fn after_its_deadline_a_job_enters_past_later_tiers_only() {
        let scene = |now| Scene::new().node("n", "1c").at(now).job("a", |job| job.min_resources("99c").at_the_door());
        let sla = "sla sla-waiting-time=3m";
        let (earlier, same): (&[&[&str]], &[&[&str]]) = (&[&[sla], &["overcommit"]], &[&[sla, "overcommit"]]);
        for (tiers, now, want) in [
            (earlier, 4 * MINUTE, Inqueue),
            (earlier, 3 * MINUTE, Inqueue),
            (earlier, 2 * MINUTE, Pending),
            (same, 4 * MINUTE, Pending),
            (&[&["overcommit"], &[sla]], 4 * MINUTE, Pending),
        ] {
            let outcome = krafla_testkit::run(scene(now).build(), &registry(), &conf("enqueue, allocate", tiers));
            assert_eq!(outcome.phases["a"], want, "{tiers:?} at {now}");
        }
    }

    #[test]
    fn after_its_deadline_a_gang_keeps_what_it_was_promised_before_later_tiers() {
        let sla = "sla sla-waiting-time=3m";
        for (tiers, now, want) in [
            (&[&[sla] as &[&str], &["gang"]] as &[&[&str]], 4 * MINUTE, true),
            (&[&[sla], &["gang"]], 2 * MINUTE, false),
            (&[&[sla, "gang"]], 4 * MINUTE, false),
        ] {
            let mut cluster = Scene::new().node("n", "1c").at(now).job("a", |job| job.min(2).pending(2, "1c")).build();
            let (job, _) = cluster.jobs().next().unwrap();
            let kept = krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", tiers), |session| {
                session.plugins().job_pipelined(session.cluster(), job)
            });
            assert_eq!(kept, want, "{tiers:?} at {now}");
        }
    }

    #[test]
    fn it_asks_to_be_woken_at_the_next_deadline() {
        let job = |own| move |job: krafla_testkit::JobScene| job.group(|g| g.sla_waiting_ms = own).pending(1, "9c");
        let scene = Scene::new().at(5 * MINUTE).job("past", job(Some(MINUTE))).job("next", job(Some(7 * MINUTE)));
        let sla = Sla { global_ms: Some(60 * MINUTE) };
        assert_eq!(sla.wakes_at(&scene.build()), Time(7 * MINUTE + 1), "made one millisecond after the first");
        assert_eq!(Sla { global_ms: None }.wakes_at(&Scene::new().job("a", job(None)).build()), Time::NEVER);
    }
}
