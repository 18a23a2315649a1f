//! How the answers of several plugins combine: votes, intersections, the first tier that speaks. With plugins that
//! answer what they are told to.

use krafla_framework::conf::policy::Tier;
use krafla_framework::{Domain, EvictedFor, Purpose};
use krafla_framework::{
    PluginBuilder, PluginEntry, PluginInfo, PluginSet, Point, Policy, Reason, Registry, SessionPlugin, VictimVotes,
    Victims, Vote,
};
use krafla_model::subgroup::{SubGroupId, SubGroupPolicy};
use krafla_model::{ClusterState, JobId, TaskId};
use krafla_testkit::Scene;

const POINTS: &[Point] = &[
    Point::JobPipelined,
    Point::Preemptable,
    Point::JobReady,
    Point::JobStarving,
    Point::SubJobReady,
    Point::SubJobPipelined,
    Point::HyperNodeOrder,
    Point::HyperNodeGradient,
];

/// A plugin whose name says what it answers: a vote, then the numbers of the tasks it would let go (`none`: no task,
/// nothing: no opinion).
struct Scripted(&'static str);

impl SessionPlugin for Scripted {
    fn name(&self) -> &'static str {
        self.0
    }

    fn points(&self) -> &'static [Point] {
        POINTS
    }

    fn job_pipelined(&self, _: &ClusterState, _: JobId) -> Vote {
        match self.0.split(' ').next() {
            Some("permit") => Vote::Permit,
            Some("reject") => Vote::Reject(Box::new(Reason::NotEnoughTasks { valid: 0, min: 1 })),
            _ => Vote::Abstain,
        }
    }

    fn sub_job_ready(&self, _: &ClusterState, sub: SubGroupId) -> bool {
        !(self.0.starts_with("reject") && sub.index == 1)
    }

    fn sub_job_pipelined(&self, cluster: &ClusterState, sub: SubGroupId) -> Vote {
        if sub.index == 1 { self.job_pipelined(cluster, sub.job) } else { Vote::Abstain }
    }

    fn hyper_node_order(&self, _: &ClusterState, _: SubGroupId, domains: &[Domain]) -> Vec<f64> {
        let points = if self.0.starts_with("permit") { 2.0 } else { 1.0 };
        domains.iter().map(|domain| if domain.name == "near" { points } else { 0.0 }).collect()
    }

    fn hyper_node_gradient(
        &self,
        _: &ClusterState,
        _: JobId,
        _: Option<SubGroupId>,
        start: &Domain,
        _: Purpose,
    ) -> Option<Vec<Vec<Domain>>> {
        self.0.starts_with("permit").then(|| vec![vec![domain("near")], vec![start.clone()]])
    }

    fn job_ready(&self, _: &ClusterState, _: JobId) -> bool {
        !self.0.starts_with("reject")
    }

    fn job_starving(&self, _: &ClusterState, _: JobId) -> bool {
        self.0.starts_with("permit")
    }

    fn preemptable(&self, _: &ClusterState, _: TaskId, candidates: &[TaskId]) -> Victims {
        let Some((_, named)) = self.0.split_once(' ') else { return Victims::Abstain };
        let wanted: Vec<usize> = named.split(',').filter_map(|n| n.parse().ok()).collect();
        Victims::Only(wanted.into_iter().map(|n| candidates[n]).collect())
    }
}

const NAMES: [&str; 9] =
    ["permit", "abstain", "reject", "permit 1,2", "permit 2,3", "permit 1", "permit 9", "permit none", "abstain 5"];

fn plugins(tiers: &[&[&'static str]]) -> PluginSet {
    let mut registry = Registry::default();
    for name in NAMES {
        let info = PluginInfo { name, about: "answers as told", arguments: &[], points: POINTS };
        registry.plugins.push(PluginBuilder {
            info,
            build: |entry| {
                Box::new(Scripted(NAMES.into_iter().find(|name| *name == entry.name).expect("a known name")))
            },
        });
    }
    let tier = |names: &&[&str]| Tier { plugins: names.iter().map(|name| PluginEntry::named(name)).collect() };
    PluginSet::build(&Policy { tiers: tiers.iter().map(tier).collect(), ..Policy::default() }, &registry)
}

fn scene() -> (ClusterState, JobId, Vec<TaskId>) {
    let cluster = Scene::new().node("n", "99c").job("a", |job| job.running(10, "1c", "n")).build();
    let job = cluster.jobs().next().expect("one job").0;
    let tasks = cluster.tasks().map(|(id, _)| id).collect();
    (cluster, job, tasks)
}

#[test]
fn a_vote_ends_at_the_first_rejection_or_after_the_first_tier_that_permits() {
    let (cluster, job, _) = scene();
    for (tiers, passes) in [
        (&[][..], true),
        (&[&["abstain"][..]][..], true),
        (&[&["permit", "reject"]], false),
        (&[&["abstain"], &["permit", "reject"]], false),
        (&[&["permit"], &["reject"]], true),
        (&[&["abstain"], &["reject"]], false),
    ] {
        assert_eq!(plugins(tiers).job_pipelined(&cluster, job), passes, "{tiers:?}");
    }
}

#[test]
fn victims_are_those_on_whom_the_first_tier_with_an_opinion_agrees() {
    let (cluster, _, tasks) = scene();
    for (tiers, veto, volcano) in [
        (&[][..], &[][..], &[][..]),
        (&[&["permit 1,2", "permit 2,3"][..]][..], &[2], &[2]),
        (&[&["abstain"], &["permit 1"]], &[1], &[1]),
        (&[&["abstain", "permit 1,2"], &["permit 9"]], &[1, 2], &[1, 2]),
        // In Volcano nobody is no answer, and the next tier decides;
        (&[&["permit none"], &["permit 1"]], &[], &[1]),
        (&[&["permit 1,2", "permit none"], &["permit 9"]], &[], &[9]),
        (&[&["permit none"], &["permit none"]], &[], &[]),
        // also for those of its own tier who come after it,
        (&[&["permit none", "permit 1,2"], &["permit 9"]], &[], &[9]),
        // and two who have nobody in common are forgotten, so that the third alone decides, or the next tier.
        (&[&["permit 1", "permit 2,3", "permit 9"]], &[], &[9]),
        (&[&["permit 1", "permit 2,3"], &["permit 9"]], &[], &[9]),
    ] {
        let plugins = plugins(tiers);
        for (votes, wanted) in [(VictimVotes::Veto, veto), (VictimVotes::Volcano, volcano)] {
            let wanted: Vec<TaskId> = wanted.iter().map(|&n: &usize| tasks[n]).collect();
            let victims = plugins.victims(&cluster, EvictedFor::Queue(tasks[0]), &tasks, votes);
            assert_eq!(victims, wanted, "{tiers:?}, {votes:?}");
        }
    }
}

#[test]
fn all_must_agree_that_a_job_is_ready_and_the_first_tier_alone_says_that_it_starves() {
    let (cluster, job, _) = scene();
    for (tiers, ready, starving) in [
        (&[][..], true, false),
        (&[&["permit"][..]][..], true, true),
        (&[&["permit", "abstain"]], true, false),
        (&[&["permit"], &["reject"]], false, true),
        (&[&["reject"], &["permit"]], false, false),
    ] {
        let plugins = plugins(tiers);
        assert_eq!(
            (plugins.job_ready(&cluster, job), plugins.job_starving(&cluster, job)),
            (ready, starving),
            "{tiers:?}"
        );
    }
}

fn domain(name: &str) -> Domain {
    Domain { name: name.into(), nodes: Vec::new() }
}

/// A job of two kinds of pods, of which one is a sub-group.
fn with_sub_groups() -> (ClusterState, JobId) {
    let policy = SubGroupPolicy {
        name: "w".into(),
        topology: None,
        size: 1,
        min_sub_groups: 1,
        selector: None,
        match_label_keys: vec!["part".into()],
    };
    let scene = Scene::new().job("a", |job| job.group(|group| group.sub_groups.push(policy)).pending(2, "1c"));
    let cluster = scene.build();
    let job = cluster.jobs().next().expect("one job").0;
    (cluster, job)
}

#[test]
fn sub_groups_are_asked_for_where_there_are_some_and_else_the_job() {
    let (split, job) = with_sub_groups();
    let sub = |index| SubGroupId { job, index };
    let rejecting = plugins(&[&["reject"]]);
    assert!(rejecting.sub_job_ready(&split, sub(0)) && !rejecting.sub_job_ready(&split, sub(1)));
    assert!(rejecting.sub_job_pipelined(&split, sub(0)) && !rejecting.sub_job_pipelined(&split, sub(1)));
    let (whole, job, _) = scene();
    let sub = SubGroupId { job, index: 0 };
    assert!(
        !rejecting.sub_job_ready(&whole, sub) && !rejecting.sub_job_pipelined(&whole, sub),
        "the job's own answers"
    );
    assert!(rejecting.sub_job_rank(&whole, sub) < rejecting.sub_job_rank(&whole, SubGroupId { job, index: 1 }));
}

#[test]
fn scores_of_domains_add_up_and_the_first_gradient_decides() {
    let (cluster, job, _) = scene();
    let sub = SubGroupId { job, index: 0 };
    let both = plugins(&[&["abstain"], &["permit"]]);
    assert_eq!(both.hyper_node_scores(&cluster, sub, &[domain("far"), domain("near")]), [0.0, 3.0]);
    let tried = both.hyper_node_gradient(&cluster, job, Some(sub), &domain("top"), Purpose::Allocate);
    assert_eq!(tried, [[domain("near")], [domain("top")]]);
    let unasked = plugins(&[&["abstain"]]).hyper_node_gradient(&cluster, job, None, &domain("top"), Purpose::Evict);
    assert_eq!(unasked, [[domain("top")]]);
}
