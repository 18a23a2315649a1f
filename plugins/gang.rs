//! `gang`: a job starts with its minimum or not at all, and keeps it while others are served.

use std::collections::BTreeMap;

use krafla_framework::reasons::Reasons;
use krafla_framework::session_plugin::{Comparison, EvictionKind, JobCondition, SessionPlugin, Victims, Vote};
use krafla_framework::{PluginEntry, PluginInfo, Point, Rank, Reason};
use krafla_model::{ClusterState, Job, JobId, TaskId, TaskStatus};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "gang",
    about: "a job starts with its minimum or not at all",
    arguments: &[],
    points: &[
        Point::JobValid,
        Point::JobOrder,
        Point::SubJobOrder,
        Point::JobReady,
        Point::SubJobReady,
        Point::JobPipelined,
        Point::SubJobPipelined,
        Point::Preemptable,
        Point::Reclaimable,
        Point::UnifiedEvictable,
        Point::JobStarving,
    ],
};

struct Gang;

/// Makes the plugin.
pub fn build(_: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(Gang)
}

impl SessionPlugin for Gang {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    fn job_valid(&self, cluster: &ClusterState, job: JobId) -> Option<Reason> {
        let job = cluster.job(job);
        if let Some((role, valid)) = job.role_short_of_pods() {
            return Some(Reason::NotEnoughPodsOfTask { role: role.name.clone(), valid, min: role.min });
        }
        let valid = job.n_valid();
        (valid < job.min_available()).then(|| Reason::NotEnoughTasks { valid, min: job.min_available() })
    }

    /// A gang that has started and lost members is repaired first, then gangs that have not started, then the rest.
    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        let job = cluster.job(job);
        rank.ascending(match () {
            () if job.needs_repair() => 0,
            () if !job.is_ready() => 1,
            () => 2,
        });
    }

    fn job_ready(&self, cluster: &ClusterState, job: JobId) -> bool {
        cluster.job(job).is_ready()
    }

    fn job_pipelined(&self, cluster: &ClusterState, job: JobId) -> Vote {
        minimum_is_promised(cluster, job)
    }

    fn job_starving(&self, cluster: &ClusterState, job: JobId) -> bool {
        cluster.job(job).is_starving()
    }

    fn preemptable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        spare_of_each_job(cluster, candidates)
    }

    /// What a job can spare is asked for once for all.
    fn preempts_no_more(&self, _: &ClusterState, _: JobId, _: JobId) -> Comparison {
        Comparison::Now
    }

    fn reclaims_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        self.preempts_no_more(cluster, job, than)
    }

    fn reclaimable(&self, cluster: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        spare_of_each_job(cluster, candidates)
    }

    /// The gang-aware actions reckon with whole and safe bundles themselves.
    fn unified_evictable(&self, _: &ClusterState, _: EvictionKind, _: JobId, candidates: &[TaskId]) -> Victims {
        Victims::Only(candidates.to_vec())
    }

    fn close(
        &mut self,
        cluster: &ClusterState,
        reasons: &Reasons,
        changed: &[JobId],
        conditions: &mut Vec<JobCondition>,
    ) {
        for &id in changed {
            let job = cluster.job(id);
            if job.n_tasks() == 0 || is_winding_down(cluster, job) {
                continue;
            }
            if job.is_ready() {
                conditions.push(JobCondition {
                    job: id,
                    kind: "Scheduled",
                    reason: "tasks in gang are ready to be scheduled".to_owned(),
                    message: String::new(),
                });
                continue;
            }
            let missing = job.min_available().saturating_sub(job.n_ready());
            let why = match reasons.job(id) {
                Some(standing) => standing.reason.to_string(),
                // None of its pods waits: those that it lacks do not exist.
                None => Reason::NotEnoughTasks { valid: job.n_valid(), min: job.min_available() }.to_string(),
            };
            conditions.push(JobCondition {
                job: id,
                kind: "Unschedulable",
                reason: "NotEnoughResources".to_owned(),
                message: format!("{missing}/{} tasks in gang unschedulable: {why}", job.n_tasks()),
            });
        }
    }
}

/// Whether what the gang lacks is only still terminating: nothing new is to be said about it then. A member that
/// terminates without ever having had a node does not count.
fn is_winding_down(cluster: &ClusterState, job: &Job) -> bool {
    let counts = job.counts();
    if counts.of(TaskStatus::Releasing) == 0
        || counts.sum(|s| matches!(s, TaskStatus::Pending | TaskStatus::Pipelined)) > 0
    {
        return false;
    }
    let settled = counts.sum(|s| matches!(s, TaskStatus::Running | TaskStatus::Bound) || s.is_finished());
    let mut releasing = 0;
    for task in job.tasks().map(|task| cluster.task(task)) {
        releasing += u32::from(task.status() == TaskStatus::Releasing && task.node().is_some());
    }
    releasing > 0 && settled + releasing >= job.min_available()
}

/// For a job whose minimum has nodes or was promised them, against any other.
pub(crate) fn minimum_is_promised(cluster: &ClusterState, id: JobId) -> Vote {
    let job = cluster.job(id);
    if job.is_pipelined() {
        return Vote::Permit;
    }
    Vote::Reject(Box::new(Reason::NotEnoughTasks {
        valid: job.n_ready() + job.n_pipelined(),
        min: job.min_available(),
    }))
}

/// Of each job as many as it has beyond its minimum, in the order of the candidates.
fn spare_of_each_job(cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
    let mut left: BTreeMap<JobId, u32> = BTreeMap::new();
    let mut spare = Vec::new();
    for &candidate in candidates {
        let Some(id) = cluster.task(candidate).job else { continue };
        let job = cluster.job(id);
        let ready = left.entry(id).or_insert_with(|| job.n_ready());
        if *ready > job.min_available() {
            *ready -= 1;
            spare.push(candidate);
        }
    }
    Victims::Only(spare)
}

#[cfg(test)]
mod tests {
    use krafla_testkit::Scene;

    use super::*;
    use crate::testing::run;

    #[test]
    fn only_what_is_beyond_the_minimum_is_spared_for_others() {
        for (min, running, spare) in [(3, 3, 0), (3, 5, 2), (5, 5, 0), (0, 5, 5), (6, 5, 0)] {
            let scene = Scene::new().node("n", "8c").job("a", |job| job.min(min).running(running, "1c", "n"));
            let cluster = scene.build();
            let tasks: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
            let Victims::Only(victims) = Gang.preemptable(&cluster, tasks[0], &tasks) else { panic!("no opinion") };
            assert_eq!(victims.len(), spare, "minimum {min}, {running} run");
            let reclaimed = Gang.reclaimable(&cluster, tasks[0], &tasks);
            assert_eq!(reclaimed, Victims::Only(victims), "both follow one rule");
        }
    }

    #[test]
    fn role_minimums_are_ignored_when_their_sum_exceeds_the_minimum() {
        let scene = |min| {
            Scene::new()
                .node("n", "8c")
                .job("a", |job| {
                    job.min(min).role_min("master", 2).role_min("worker", 2).running(2, "1c", "n").role("worker")
                })
                .build()
        };
        let ready = |cluster: &ClusterState| {
            let (id, _) = cluster.jobs().next().expect("one job");
            (Gang.job_ready(cluster, id), Gang.job_valid(cluster, id).map(|reason| reason.code()))
        };
        assert_eq!(ready(&scene(2)), (true, None));
        assert_eq!(ready(&scene(4)), (false, Some("NotEnoughPodsOfTask")));
    }

    #[test]
    fn pending_tasks_that_ask_for_nothing_count_as_placed() {
        let cluster =
            Scene::new().node("n", "8c").job("a", |job| job.min(3).running(2, "1c", "n").pending(1, "")).build();
        let (id, _) = cluster.jobs().next().expect("one job");
        assert!(Gang.job_ready(&cluster, id));
    }

    #[test]
    fn a_gang_that_only_winds_down_is_left_alone() {
        for (min, running, releasing, pending, quiet) in
            [(2, 1, 1, 0, true), (2, 1, 1, 1, false), (3, 1, 1, 0, false), (2, 2, 0, 0, false)]
        {
            let cluster = Scene::new()
                .node("n", "8c")
                .job("a", |job| {
                    job.min(min).running(running, "1c", "n").releasing(releasing, "1c", "n").pending(pending, "1c")
                })
                .build();
            let (_, job) = cluster.jobs().next().expect("one job");
            assert_eq!(
                is_winding_down(&cluster, job),
                quiet,
                "min {min}, {running} run, {releasing} end, {pending} wait"
            );
        }
    }

    #[test]
    fn who_was_promised_room_or_never_had_a_node_does_not_wind_down() {
        let promised = Scene::new()
            .node("n", "2c")
            .job("a", |job| job.min(2).running(1, "1c", "n").releasing(1, "1c", "n").pending(1, "1c"));
        let mut cluster = promised.build();
        let (task, node) = (krafla_testkit::task_named(&cluster, "a-2"), cluster.nodes()[0]);
        cluster.pipeline(task, node).expect("room is being released");
        let (_, job) = cluster.jobs().next().expect("one job");
        assert!(!is_winding_down(&cluster, job), "a member waits for the release");

        let homeless = Scene::new().node("n", "2c").job("a", |job| job.min(1).releasing(1, "1c", ""));
        let cluster = homeless.build();
        let (_, job) = cluster.jobs().next().expect("one job");
        assert!(!is_winding_down(&cluster, job), "it never had a node");
    }

    #[test]
    fn phases_follow_where_the_members_stand() {
        use krafla_model::JobPhase::{Completed, Inqueue, Pending, Running, Unknown};
        type Edit = fn(krafla_testkit::JobScene) -> krafla_testkit::JobScene;
        let cases: [(&str, Edit, bool, krafla_model::JobPhase); 8] = [
            ("3 of 3, one has ended", |j| j.min(3).running(2, "1c", "n").succeeded(1, "1c"), false, Running),
            ("all have ended", |j| j.min(3).succeeded(3, "1c"), false, Completed),
            ("it runs and cannot be completed", |j| j.min(2).running(1, "1c", "n"), true, Unknown),
            ("let in, one of two runs", |j| j.min(2).running(1, "1c", "n"), false, Inqueue),
            (
                "ran, and lost a member",
                |j| j.min(2).running(1, "1c", "n").group(|group| group.phase = Running),
                false,
                Pending,
            ),
            ("still terminating", |j| j.min(2).running(1, "1c", "n").releasing(1, "1c", "n"), false, Running),
            ("no minimum, no pod: not completed", |j| j.at_the_door(), false, Pending),
            ("no minimum, one runs", |j| j.running(1, "1c", "n").pending(1, "1c"), false, Running),
        ];
        for (name, edit, unschedulable, want) in cases {
            let cluster = Scene::new().node("n", "8c").job("a", edit).build();
            let (_, job) = cluster.jobs().next().expect("one job");
            assert_eq!(krafla_framework::phase::phase_of(job, unschedulable), want, "{name}");
        }
    }

    const FAIR: &[&str] = &["gang", "drf", "proportion", "predicates", "nodeorder"];

    /// Two masters and two workers of one core, each kind bound to its own node.
    fn masters_and_workers(min: u32, master_min: u32, worker_min: u32) -> Scene {
        Scene::new().job("a", |job| {
            job.min(min)
                .role_min("master", master_min)
                .role_min("worker", worker_min)
                .role("master")
                .selects("nodeRole", "master")
                .pending(2, "1c1Gi")
                .role("worker")
                .selects("nodeRole", "worker")
                .pending(2, "1c1Gi")
        })
    }

    #[test]
    fn gangs_start_with_what_their_roles_need() {
        let master = |scene: Scene, has: &str| scene.labelled_node("n1", has, "nodeRole", "master");
        let worker = |scene: Scene, name: &str, has: &str| scene.labelled_node(name, has, "nodeRole", "worker");
        let one_of_each = worker(master(masters_and_workers(2, 1, 1), "1c9Gi"), "n2", "1c9Gi");
        let two_masters = worker(master(masters_and_workers(2, 2, 0), "1c9Gi"), "n2", "2c9Gi");
        let anyone = worker(
            Scene::new().job("a", |job| {
                job.min(1)
                    .role("master")
                    .selects("nodeRole", "master")
                    .pending(1, "1c1Gi")
                    .role("worker")
                    .selects("nodeRole", "worker")
                    .pending(1, "1c1Gi")
            }),
            "n1",
            "2c9Gi",
        );
        let no_minimum = Scene::new().node("n1", "2c9Gi").job("a", |job| job.pending(2, "1c1Gi"));
        let surplus = Scene::new().node("n1", "2c9Gi").job("a", |job| {
            job.min(2)
                .role_min("master", 1)
                .role_min("worker", 1)
                .role("master")
                .pending(2, "1c1Gi")
                .role("worker")
                .pending(1, "1c1Gi")
        });
        for (name, scene, want) in [
            ("the minimum of each role, no more fits", one_of_each, vec!["a-0 -> n1", "a-2 -> n2"]),
            ("one master too few", two_masters, vec![]),
            ("a role that fits nowhere does not block another", anyone, vec!["a-1 -> n1"]),
            ("no minimum", no_minimum, vec!["a-0 -> n1", "a-1 -> n1"]),
            ("a surplus master does not take the worker's room", surplus, vec!["a-0 -> n1", "a-2 -> n1"]),
        ] {
            assert_eq!(run(&scene, "allocate", FAIR).binds, want, "{name}");
        }
    }

    #[test]
    fn two_queues_share_two_cores_and_one_misfit_blocks_neither() {
        let two = Scene::new()
            .node("n1", "2c9Gi")
            .queue("q1", |queue| queue)
            .queue("q2", |queue| queue)
            .job("a", |job| job.queue("q1").pending(2, "1c1Gi"))
            .job("b", |job| job.queue("q2").pending(2, "1c1Gi"));
        assert_eq!(run(&two, "allocate", FAIR).binds, ["a-0 -> n1", "b-0 -> n1"]);
        let misfit = Scene::new()
            .node("n1", "2c9Gi")
            .queue("q1", |queue| queue)
            .queue("q2", |queue| queue)
            .job("a", |job| job.queue("q1").pending(1, "3c1Gi"))
            .job("b", |job| job.queue("q2").pending(1, "1c1Gi"));
        assert_eq!(run(&misfit, "allocate", FAIR).binds, ["b-0 -> n1"]);
    }

    #[test]
    fn a_gang_that_waits_for_a_release_keeps_its_room_and_binds_nothing() {
        let scene = |releasing: u32| {
            Scene::new()
                .node("n", "2c")
                .job("old", |job| job.releasing(releasing, "1c", "n").running(1 - releasing, "1c", "n"))
                .job("gang", |job| job.min(2).pending(2, "1c"))
                .job("late", |job| job.min(1).pending(1, "1c"))
        };
        let promised = run(&scene(1), "allocate", &["gang"]);
        assert_eq!(promised.binds, [""; 0]);
        assert_eq!(promised.reasons["gang"].0, "WaitingForRelease");
        assert_eq!(
            run(&scene(0), "allocate", &["gang"]).binds,
            ["late-0 -> n"],
            "nothing is promised where nothing ends"
        );
    }

    #[test]
    fn a_gang_whose_members_may_not_be_tried_yet_says_so() {
        let scene = Scene::new().node("n", "9c").job("a", |job| job.min(3).pending(2, "1c").gated(1, "1c"));
        let outcome = run(&scene, "allocate", &["gang"]);
        assert_eq!(outcome.binds, [""; 0]);
        assert_eq!(outcome.reasons["a"].1, "waits for the removal of 1 scheduling gates");

        let scene = Scene::new().node("n", "9c").job("a", |job| job.min(3).pending(3, "1c"));
        let mut cluster = run(&scene, "allocate", &["gang"]).cluster;
        for pod in ["a-0", "a-1"] {
            let retry_at = krafla_model::Time(if pod == "a-0" { 9_000 } else { 0 });
            cluster.bind_refused(krafla_testkit::task_named(&cluster, pod), retry_at);
        }
        let conf = crate::testing::conf("allocate", &[&["gang"]]);
        let outcome = krafla_testkit::run(cluster, &crate::testing::registry(), &conf);
        assert_eq!(outcome.binds, [""; 0], "a-1 alone would not complete the gang");
        assert_eq!(outcome.reasons["a"].1, "its bind was refused 1 times; tried again at 9s");
    }

    #[test]
    fn without_gang_each_task_is_tried() {
        let scene = Scene::new().node("n", "2c").job("a", |job| job.min(3).pending(1, "5c").pending(2, "1c"));
        assert_eq!(run(&scene, "allocate", &["gang"]).binds, [""; 0]);
        assert_eq!(run(&scene, "allocate", &["predicates"]).binds, ["a-1 -> n", "a-2 -> n"]);
        assert_eq!(run(&scene, "allocate", &["gang enableJobReady=false"]).binds, ["a-1 -> n", "a-2 -> n"]);
    }

    #[test]
    fn what_one_node_is_overdrawn_by_takes_nothing_from_the_others() {
        let scene = Scene::new()
            .node("shrunk", "1c")
            .node("free", "2c")
            .job("old", |job| job.running(3, "1c", "shrunk"))
            .job("new", |job| job.min(2).pending(2, "1c"));
        assert_eq!(run(&scene, "allocate", &["gang"]).binds, ["new-0 -> free", "new-1 -> free"]);
    }

    #[test]
    fn backfill_starts_no_gang_whose_role_lacks_a_member() {
        let gang = |workers: u32| {
            Scene::new().node("n", "8c").job("a", |job| {
                job.min(3)
                    .role_min("master", 1)
                    .role_min("worker", 2)
                    .role("master")
                    .pending(1, "9c")
                    .role("worker")
                    .pending(workers, "")
            })
        };
        assert_eq!(run(&gang(2), "allocate, backfill", &["gang"]).binds, [""; 0]);
        assert_eq!(run(&gang(4), "allocate, backfill", &["gang"]).binds, [""; 0], "three have nodes, but no master");
    }

    #[test]
    fn a_pod_that_fits_nowhere_does_not_keep_backfill_from_the_next() {
        let scene = Scene::new().node("n", "8c").job("a", |job| {
            job.selects("disk", "none").pending(1, "").shape(|s| s.node_selector = Default::default()).pending(1, "")
        });
        assert_eq!(run(&scene, "backfill", &["gang", "predicates"]).binds, ["a-1 -> n"]);
    }

    #[test]
    fn a_gang_that_is_infeasible_holds_nothing_back() {
        // three pods of four GPUs on two nodes of four.
        let training = |nodes: u32, others: bool| {
            let scene = (0..nodes).fold(Scene::new(), |scene, i| scene.node(&format!("n{i}"), "32c64Gi4g"));
            let scene = scene.job("ai-training-job-001", |job| job.min(3).pending(3, "4c8Gi4g"));
            if others { scene.job("other", |job| job.min(2).pending(2, "1c1Gi4g")) } else { scene }
        };
        let plugins = &["gang", "predicates", "nodeorder"];
        assert_eq!(run(&training(2, false), "allocate", plugins).binds, [""; 0]);
        assert_eq!(run(&training(2, true), "allocate", plugins).binds, ["other-0 -> n0", "other-1 -> n1"]);
        // on three nodes they start together, one on each.
        let started = run(&training(3, false), "allocate", plugins).binds;
        assert_eq!(started, [0, 1, 2].map(|i| format!("ai-training-job-001-{i} -> n{i}")));
    }

    #[test]
    fn without_gang_two_jobs_lock_each_other_out_and_with_it_one_runs() {
        // A-130; in random orders in `gang_properties`.
        let scene = ["a", "b"]
            .into_iter()
            .fold(Scene::new().node("n", "8c4g"), |scene, name| scene.job(name, |job| job.min(4).pending(4, "1c1g")));
        for (plugins, want) in [(&["drf"] as &[&str], [2, 2]), (&["gang", "drf"], [4, 0])] {
            let outcome = run(&scene, "allocate", plugins);
            assert_eq!([outcome.n_bound("a"), outcome.n_bound("b")], want, "{plugins:?}");
        }
    }

    #[test]
    fn members_beyond_the_quorum_come_one_by_one() {
        //
        let scene = Scene::new().node("n", "4c").job("a", |job| job.min(2).pending(5, "1c"));
        let first = run(&scene, "allocate", &["gang"]);
        assert_eq!(first.n_bound("a"), 4);
        let more = Scene::new().node("n", "5c").job("a", |job| job.min(2).running(4, "1c", "n").pending(1, "1c"));
        assert_eq!(run(&more, "allocate", &["gang"]).binds, ["a-4 -> n"]);
    }
}
