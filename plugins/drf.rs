//! `drf`: dominant-resource fairness between the jobs of a queue.
//!
//! A job's share is the largest fraction of the cluster that it holds of any resource (Ghodsi et al., NSDI '11). The
//! job with the smallest share goes first, and the order is renewed after each task, which is the task form of the
//! paper. With weights the share is divided by the job's weight. With `enableHierarchy` queues are divided too: see
//! `drf_hierarchy.rs`.

use std::collections::BTreeMap;

use krafla_framework::session_plugin::{Comparison, SessionPlugin, Victims};
use krafla_framework::{PluginEntry, PluginInfo, Point, Rank, RelativeShare};
use krafla_model::{ClusterState, JobId, QueueId, ResourceId, Resources, TaskId};
use ordered_float::OrderedFloat;

use crate::drf_hierarchy::Hierarchy;

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "drf",
    about: "dominant-resource fairness between jobs, and with `enableHierarchy` between queues as a tree",
    arguments: &[],
    points: &[Point::Hierarchy, Point::JobOrder, Point::QueueOrder, Point::Preemptable, Point::Reclaimable],
};

/// The points without the hierarchy: nothing is divided between queues.
const FLAT_POINTS: &[Point] = &[Point::JobOrder, Point::Preemptable];

/// Shares that differ by less count as equal when victims are chosen.
const SHARE_DELTA: f64 = 1e-6;

#[derive(Default)]
struct Drf {
    /// Whether queues are a tree.
    hierarchy: bool,
    /// The tree of this session; empty without the hierarchy.
    tree: Hierarchy,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    Box::new(Drf { hierarchy: entry.switches.hierarchy(), ..Drf::default() })
}

impl SessionPlugin for Drf {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        if self.hierarchy { INFO.points } else { FLAT_POINTS }
    }

    fn open(&mut self, cluster: &ClusterState) {
        if self.hierarchy {
            self.tree = Hierarchy::of(cluster);
        }
    }

    fn on_allocate(&mut self, cluster: &ClusterState, task: TaskId) {
        if let Some(job) = cluster.task(task).job {
            self.tree.follow(cluster, job);
        }
    }

    fn on_deallocate(&mut self, cluster: &ClusterState, task: TaskId) {
        self.on_allocate(cluster, task);
    }

    /// Jobs that have been let in since the session began count for what branches are due.
    fn before_action(&mut self, cluster: &ClusterState, action: &str) {
        if self.hierarchy && matches!(action, "reclaim" | "gangreclaim") {
            self.tree.divide(cluster, None);
        }
    }

    fn queue_order(&self, _: &ClusterState, queue: QueueId, rank: &mut Rank) {
        self.tree.rank(queue, rank);
    }

    /// What runs out for one is out of reach for all, and that moves every branch.
    fn queues_move_together(&self) -> bool {
        self.hierarchy
    }

    fn could_reclaim(&self, cluster: &ClusterState, queue: QueueId, more: &Resources) -> Option<Resources> {
        self.hierarchy.then(|| self.tree.could_reclaim(cluster, queue, more))
    }

    fn compares_branches(&self) -> bool {
        self.hierarchy
    }

    fn branch_shares(
        &self,
        resource: ResourceId,
        one: QueueId,
        more: &Resources,
        other: QueueId,
    ) -> Option<[RelativeShare; 2]> {
        self.tree.shares_where_they_part(resource, one, more, other)
    }

    fn reclaimable(&self, cluster: &ClusterState, reclaimer: TaskId, candidates: &[TaskId]) -> Victims {
        Victims::Only(self.tree.victims(cluster, reclaimer, candidates))
    }

    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {
        rank.ascending(share(cluster, job, &cluster.job(job).held().claimed()));
    }

    /// Whoever would still have at least the preemptor's share after giving the victim up. Each candidate counts as
    /// given up for those after it, chosen or not, as in Volcano.
    fn preemptable(&self, cluster: &ClusterState, preemptor: TaskId, candidates: &[TaskId]) -> Victims {
        let Some(own) = cluster.task(preemptor).job else { return Victims::Only(Vec::new()) };
        let mine = share(cluster, own, &cluster.job(own).held().claimed().plus(&cluster.shape_of(preemptor).request));
        let mut left: BTreeMap<JobId, Resources> = BTreeMap::new();
        let mut victims = Vec::new();
        for &candidate in candidates {
            let Some(id) = cluster.task(candidate).job else { continue };
            let rest = left.entry(id).or_insert_with(|| cluster.job(id).held().claimed());
            rest.sub(&cluster.shape_of(candidate).request);
            let theirs = share(cluster, id, rest);
            if mine < theirs || (mine - theirs).abs() <= SHARE_DELTA {
                victims.push(candidate);
            }
        }
        Victims::Only(victims)
    }

    fn preempts_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        let (one, two) = (cluster.job(job), cluster.job(than));
        let hold_nothing = one.held().claimed().is_zero() && two.held().claimed().is_zero();
        if hold_nothing && one.spec.weight <= two.spec.weight { Comparison::Now } else { Comparison::Unknown }
    }
}

/// Dominant share of what a job holds, over its weight.
fn share(cluster: &ClusterState, job: JobId, held: &Resources) -> OrderedFloat<f64> {
    held.dominant_share(&cluster.totals().allocatable) / f64::from(cluster.job(job).spec.weight.max(1))
}

#[cfg(test)]
mod tests {
    use krafla_testkit::Scene;

    use super::*;
    use crate::testing::run;

    fn shares(scene: Scene) -> Vec<f64> {
        let cluster = scene.build();
        cluster.jobs().map(|(id, job)| share(&cluster, id, &job.held().claimed()).into_inner()).collect()
    }

    #[test]
    fn the_dominant_resource_decides() {
        let scene = Scene::new()
            .node("n", "10c10Gi8g")
            .job("cpu", |job| job.running(3, "1c", "n").running(1, "1Gi", "n"))
            .job("memory", |job| job.running(1, "1c4Gi", "n"))
            .job("gpu", |job| job.running(1, "1c4g", "n"))
            .job("one GPU pod", |job| job.running(1, "1c2g", "n"));
        assert_eq!(shares(scene), [0.3, 0.4, 0.5, 0.25]);
        // charged by its eight GPUs, not by its core.
        let eight = Scene::new().node("n", "100c100g").job("a", |job| job.running(1, "1c8g", "n"));
        assert_eq!(shares(eight), [0.08]);
    }

    #[test]
    fn many_tiny_pods_are_charged_for_their_slots() {
        let scene = Scene::new().node("n", "10c10Gi100p").job("tiny", |job| job.running(50, "10m", "n"));
        assert_eq!(shares(scene), [0.5]);
    }

    #[test]
    fn a_resource_that_the_cluster_lacks_is_not_considered() {
        let scene = Scene::new()
            .node("n", "10c")
            .job("a", |job| job.running(1, "1c", "n"))
            .job("b", |job| job.pending(1, "4g"));
        assert_eq!(shares(scene), [0.1, 0.0]);
    }

    #[test]
    fn the_smaller_share_goes_first_and_equals_go_by_age() {
        let order = |first: &str, second: &str| {
            let scene = Scene::new()
                .node("n", "10c10Gi100p")
                .node("new", "1c1Gi")
                .job("a", |job| job.running(1, first, "n").pending(1, "1c1Gi"))
                .job("b", |job| job.running(1, second, "n").pending(1, "1c1Gi"));
            run(&scene, "allocate", DRF).binds[0].clone()
        };
        assert_eq!(order("6c1Gi", "1c1Gi"), "b-1 -> n");
        assert_eq!(order("3c1Gi", "1c4Gi"), "a-1 -> n");
        assert_eq!(order("3c1Gi", "1c3Gi"), "a-1 -> n", "the older of equals");
        assert_eq!(order("1c3Gi", "3c1Gi"), "a-1 -> n", "the older of equals");
    }

    #[test]
    fn shares_follow_the_cluster_when_nodes_come_and_go() {
        // the dominant resource is memory on the small cluster, CPU once the big node has come.
        let scene = Scene::new().node("n", "10c10Gi").job("a", |job| job.running(2, "1c2Gi", "n"));
        let mut cluster = scene.build();
        let now = |cluster: &ClusterState| {
            let (id, job) = cluster.jobs().next().expect("one job");
            share(cluster, id, &job.held().claimed()).into_inner()
        };
        assert_eq!(now(&cluster), 0.4);
        let amounts = krafla_testkit::amounts("10c190Gi110p");
        let big = krafla_model::NodeSpec { name: "big".into(), allocatable: amounts, ..Default::default() };
        cluster.apply(krafla_model::Event::Node(big));
        assert_eq!(now(&cluster), 0.1);
        cluster.apply(krafla_model::Event::NodeGone("big".into()));
        assert_eq!(now(&cluster), 0.4);
    }

    #[test]
    fn victims_are_those_whose_job_keeps_at_least_the_preemptors_share() {
        let victims = |asks: &str| {
            let cluster = Scene::new()
                .node("n", "10c10Gi100p")
                .job("a", |job| job.running(3, "2c", "n"))
                .job("b", |job| job.pending(1, asks))
                .build();
            let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
            let Victims::Only(victims) = Drf::default().preemptable(&cluster, all[3], &all[..3]) else {
                panic!("no opinion")
            };
            victims.len()
        };
        assert_eq!(victims("2c"), 2, "0.4 is more than 0.2, 0.2 is equal, 0.0 is less");
        assert_eq!(victims("5c"), 0);
    }

    const DRF: &[&str] = &["drf", "predicates"];

    /// One user of a worked example: what a task asks for, and the weight.
    struct User {
        asks: &'static str,
        weight: u32,
    }

    const fn user(asks: &'static str) -> User {
        User { asks, weight: 1 }
    }

    /// Users with more tasks than fit, oldest first, on one node.
    fn feast(node: &str, users: &[User]) -> Scene {
        let scene = Scene::new().node("n", &format!("{node}100000p"));
        users.iter().enumerate().fold(scene, |scene, (i, user)| {
            scene.job(&format!("u{i}"), |job| job.group(|group| group.weight = user.weight).pending(250, user.asks))
        })
    }

    #[test]
    fn the_published_examples_come_out() {
        let heavy = |asks, weight| User { asks, weight };
        for (name, node, users, want, left) in [
            ("the paper's, A older", "9c18Gi", [user("1c4Gi"), user("3c1Gi")], [3, 2], "memory 4Gi"),
            ("the paper's, B older", "9c18Gi", [user("3c1Gi"), user("1c4Gi")], [2, 3], "memory 4Gi"),
            ("weights 2 to 1", "9c18Gi", [heavy("1c4Gi", 2), user("3c1Gi")], [4, 1], "cpu 2, memory 1Gi"),
            ("ten times the cluster", "90c180Gi", [user("1c4Gi"), user("3c1Gi")], [30, 20], "memory 40Gi"),
            (
                "more memory: B loses, DRF is not resource monotone",
                "18c72Gi",
                [user("1c4Gi"), user("3c1Gi")],
                [9, 3],
                "memory 33Gi",
            ),
            ("more CPU", "144c144Gi", [user("1c4Gi"), user("3c1Gi")], [27, 36], "cpu 9"),
            ("weights 2 to 1, no task cut", "117c234Gi", [heavy("1c4Gi", 2), user("3c1Gi")], [54, 18], "cpu 9"),
            ("weights 1 to 2, no task cut", "45c90Gi", [user("1c4Gi"), heavy("3c1Gi", 2)], [9, 12], "memory 42Gi"),
            (
                "asset fairness would break sharing incentive",
                "30c30Gi",
                [user("1c3Gi"), user("1c1Gi")],
                [5, 15],
                "cpu 10",
            ),
            (
                "asset fairness would break bottleneck fairness",
                "168c168Gi",
                [user("3c2Gi"), user("4c1Gi")],
                [28, 21],
                "memory 91Gi",
            ),
            (
                "CEEI would reward a lie: the truth",
                "600c600Gi",
                [user("16c1Gi"), user("1c2Gi")],
                [25, 200],
                "memory 175Gi",
            ),
            ("CEEI would reward a lie: the lie", "600c600Gi", [user("16c8Gi"), user("1c2Gi")], [25, 200], "nothing"),
        ] {
            let outcome = run(&feast(node, &users), "allocate", DRF);
            assert_eq!([outcome.n_bound("u0"), outcome.n_bound("u1")], want, "{name}");
            let mut free = outcome.cluster.totals().future_idle();
            free.set(krafla_model::ResourceId::PODS, 0);
            assert_eq!(outcome.cluster.names().format_all(&free), left, "{name}");
        }
    }

    #[test]
    fn the_papers_order_of_tasks() {
        // B first on the tie: B 1/3, A 2/9, A 4/9, B 2/3, A 2/3, and then the cluster is full.
        let outcome = run(&feast("9c18Gi", &[user("3c1Gi"), user("1c4Gi")]), "allocate", DRF);
        let users: Vec<&str> = outcome.binds.iter().map(|bind| &bind[..2]).collect();
        assert_eq!(users, ["u0", "u1", "u1", "u0", "u1"]);
    }

    #[test]
    fn cpu_and_gpu_users_alternate_to_thirty_three_each() {
        //
        let outcome = run(&feast("100c100g", &[user("2c1g"), user("1c2g")]), "allocate", DRF);
        assert_eq!([outcome.n_bound("u0"), outcome.n_bound("u1")], [33, 33]);
        let mut ahead = 0_i32;
        for bind in &outcome.binds {
            ahead += if bind.starts_with("u0") { 1 } else { -1 };
            assert!((0..=1).contains(&ahead), "A, then B, at {bind}");
        }
        let cluster = &outcome.cluster;
        let held: Vec<String> =
            cluster.jobs().map(|(_, job)| cluster.names().format_all(&job.held().allocated)).collect();
        assert_eq!(held, ["cpu 66, pods 33, nvidia.com/gpu 33", "cpu 33, pods 33, nvidia.com/gpu 66"]);
        for (id, job) in cluster.jobs() {
            assert_eq!(share(cluster, id, &job.held().claimed()), OrderedFloat(0.66));
        }
        let idle = cluster.totals().future_idle();
        assert_eq!([idle.get(krafla_model::ResourceId::CPU), idle.get(krafla_model::ResourceId::GPU)], [1000, 1000]);
    }

    #[test]
    fn three_resources_and_a_missing_one_are_shared_too() {
        // The cluster has no example.com/fpga, so a job that asks for it gets nothing and blocks nobody.
        let users = [user("2c1Gi"), user("1c4Gi"), user("1c1Gi1g"), user("1c,example.com/fpga=1")];
        // Divisible: CPU and memory both run out when each has 2/3, which is 20, 13 1/3 and 6 2/3 tasks.
        let outcome = run(&feast("60c80Gi10g", &users), "allocate", DRF);
        assert_eq!(["u0", "u1", "u2", "u3"].map(|u| outcome.n_bound(u)), [20, 13, 7, 0]);
    }

    #[test]
    fn each_user_fills_the_node_that_is_shaped_like_its_tasks() {
        // DRFH: over the pool 10 and 10; DRF on each node alone would give 6 and 6. What brings each task to its node
        // is the score for even use.
        let scene = Scene::new()
            .node("n1", "2c12G")
            .node("n2", "12c2G")
            .job("u0", |job| job.pending(12, "200m1G"))
            .job("u1", |job| job.pending(12, "1c0.2G"));
        let even = "nodeorder leastrequested.weight=0 balancedresource.weight=1";
        let outcome = run(&scene, "allocate", &["drf", "predicates", even]);
        assert_eq!([outcome.n_bound("u0"), outcome.n_bound("u1")], [10, 10]);
        assert!(outcome.binds.iter().all(|bind| bind.starts_with("u0") == bind.ends_with("n1")), "{:?}", outcome.binds);
        for (id, job) in outcome.cluster.jobs() {
            let held = share(&outcome.cluster, id, &job.held().claimed());
            assert!((held.into_inner() - 5.0 / 7.0).abs() < 1e-12);
        }
    }

    #[test]
    fn two_queues_get_one_pod_each() {
        let scene = Scene::new()
            .node("n", "2c9Gi")
            .queue("q1", |queue| queue)
            .queue("q2", |queue| queue)
            .job("a", |job| job.queue("q1").pending(2, "1c"))
            .job("b", |job| job.queue("q2").pending(2, "1c"));
        let outcome = run(&scene, "allocate", &["gang", "drf", "proportion"]);
        assert_eq!([outcome.n_bound("a"), outcome.n_bound("b")], [1, 1]);
    }
}
