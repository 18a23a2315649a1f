//! `srsf`: the job with the smallest remaining service goes first, and may evict those that have more left.
//!
//! Remaining service is what the user says that the job runs, less what it has run, times its width: GPUs if it asks for
//! any, else cores (SRSF; compared with others by Zhao et al., SIGCOMM '22). A job that runs has ever less left, and one
//! that waits has the same, so no two jobs evict each other in turns. A job whose user says nothing comes last.

use std::collections::BTreeMap;

use krafla_framework::session_plugin::{Comparison, SessionPlugin, Victims};
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

    fn preempts_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        if remaining(cluster, job) >= remaining(cluster, than) { Comparison::Always } else { Comparison::Unknown }
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

#[cfg(test)]
mod tests {
    use krafla_testkit::{JobScene, Scene, task_named};

    use super::*;
    use crate::testing::run;

    const SECOND: i64 = 1_000;
    /// As the preset has them.
    const PLUGINS: &[&str] =
        &["srsf", "gang enableJobOrder=false enablePreemptable=false", "conformance", "predicates"];

    fn says(seconds: i64) -> impl Fn(JobScene) -> JobScene {
        move |job| job.group(|group| group.estimate_ms = Some(seconds * SECOND))
    }

    #[test]
    fn what_is_left_is_what_was_declared_less_what_was_run_times_the_width() {
        type Edit = fn(JobScene) -> JobScene;
        let cases: [(&str, Option<i64>, Edit, i64); 9] = [
            ("waits", Some(100), |job| job.pending(1, "1c2g"), 200),
            ("has run", Some(100), |job| job.ran(1, "1c2g", "n", 30 * SECOND), 140),
            ("goes on", Some(100), |job| job.resuming(1, "1c2g", 30 * SECOND), 140),
            ("a gang, one late", Some(100), |job| job.min(2).ran(1, "1g", "n", 30_000).ran(1, "1g", "n", 20_000), 160),
            ("elastic: the first counts", Some(100), |job| job.min(1).ran(1, "1g", "n", 30_000).pending(1, "1g"), 140),
            ("a gang in part has not run", Some(100), |job| job.min(2).ran(1, "1g", "n", 30_000).pending(1, "1g"), 200),
            ("outlived", Some(10), |job| job.ran(1, "1c2g", "n", 30 * SECOND), 0),
            ("no GPU: cores", Some(100), |job| job.pending(2, "3c"), 600),
            ("nothing said", None, |job| job.pending(1, "1c2g"), i64::MAX / 1_000_000),
        ];
        for (name, estimate, edit, want) in cases {
            let scene = Scene::new()
                .node("n", "9c9g")
                .job("a", |job| edit(job.group(|group| group.estimate_ms = estimate.map(|seconds| seconds * SECOND))));
            let cluster = scene.build();
            let (job, _) = cluster.jobs().next().expect("one job");
            assert_eq!(remaining(&cluster, job) / 1_000_000, want, "{name}, in device-seconds");
        }
    }

    #[test]
    fn victims_have_strictly_more_left() {
        let cluster = Scene::new()
            .node("n", "9c9g")
            .job("own", |job| says(100)(job).pending(1, "1g"))
            .job("equal", |job| says(100)(job).running(1, "1g", "n"))
            .job("wider", |job| says(60)(job).running(1, "2g", "n"))
            .job("less", |job| says(200)(job).ran(1, "1g", "n", 101 * SECOND))
            .job("unsaid", |job| job.running(1, "1g", "n"))
            .build();
        let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let victims = |preemptor: &str| {
            let preemptor = task_named(&cluster, preemptor);
            let Victims::Only(victims) = Srsf.preemptable(&cluster, preemptor, &all) else { panic!("no opinion") };
            victims.iter().map(|task| cluster.task(*task).name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(victims("own-0"), ["wider-0", "unsaid-0"]);
        assert_eq!(victims("unsaid-0"), [""; 0], "who says nothing takes from nobody");
    }

    #[test]
    fn the_least_left_goes_first_and_the_most_left_goes_away_first() {
        let scene = Scene::new()
            .node("n", "2g")
            .job("long", |job| says(900)(job).running(1, "1g", "n"))
            .job("longer", |job| says(1_000)(job).running(1, "1g", "n"))
            .job("medium", |job| says(500)(job).min(1).pending(1, "1g"))
            .job("short", |job| says(100)(job).min(1).pending(1, "2g"));
        // 200 GPU-seconds go before 500. Both have to go for it, and nobody is left for the other.
        assert_eq!(run(&scene, "allocate, preempt", PLUGINS).evictions, ["longer-0", "long-0"]);
        let one = Scene::new()
            .node("n", "2g")
            .job("longer", |job| says(1_000)(job).running(1, "1g", "n"))
            .job("long", |job| says(900)(job).running(1, "1g", "n"))
            .job("medium", |job| says(500)(job).min(1).pending(1, "1g"));
        assert_eq!(run(&one, "allocate, preempt", PLUGINS).evictions, ["longer-0"]);
    }

    #[test]
    fn a_gang_makes_way_as_a_whole_or_not_at_all() {
        type Edit = fn(JobScene) -> JobScene;
        let gang = |edit: Edit| {
            Scene::new()
                .node("n", "1g")
                .node("o", "1g")
                .job("gang", |job| edit(says(1_000)(job)))
                .job("short", |job| says(10)(job).min(1).pending(1, "1g"))
        };
        let cases: [(&str, Edit, &[&str]); 3] = [
            ("both go", |job| job.min(2).running(1, "1g", "n").running(1, "1g", "o"), &["gang-0", "gang-1"]),
            ("one is beyond the minimum", |job| job.min(1).running(1, "1g", "n").running(1, "1g", "o"), &["gang-0"]),
            (
                "one may not go, so none does",
                |job| job.min(2).running(1, "1g", "n").shape(|shape| shape.protected = true).running(1, "1g", "o"),
                &[],
            ),
        ];
        for (name, edit, want) in cases {
            let outcome = run(&gang(edit), "allocate, preempt", PLUGINS);
            assert_eq!(outcome.evictions, want, "{name}");
        }
        // With the vote of gang nobody is taken from a gang at its minimum.
        let whole = gang(|job| job.min(2).running(1, "1g", "n").running(1, "1g", "o"));
        assert_eq!(run(&whole, "allocate, preempt", &["srsf", "gang", "predicates"]).evictions, [""; 0]);
    }

    #[test]
    fn what_need_not_go_stays_gangs_too() {
        // Room for two is needed. The gang has the most left and would go first, but it alone is not enough; the two
        // single jobs on one node are, and then the gang stays.
        let scene = Scene::new()
            .node("n", "2g")
            .node("m", "1g")
            .node("o", "1g")
            .job("gang", |job| says(900)(job).min(2).running(1, "1g", "m").running(1, "1g", "o"))
            .job("a", |job| says(800)(job).running(1, "1g", "n"))
            .job("b", |job| says(700)(job).running(1, "1g", "n"))
            .job("short", |job| says(10)(job).min(1).pending(1, "2g"));
        assert_eq!(run(&scene, "allocate, preempt", PLUGINS).evictions, ["a-0", "b-0"]);
        // A gang of two for which a gang of two makes room on both nodes at once.
        let scene = Scene::new()
            .node("m", "1g")
            .node("o", "1g")
            .job("gang", |job| says(900)(job).min(2).running(1, "1g", "m").running(1, "1g", "o"))
            .job("short", |job| says(10)(job).min(2).pending(2, "1g"));
        assert_eq!(run(&scene, "allocate, preempt", PLUGINS).evictions, ["gang-0", "gang-1"]);
    }
}
