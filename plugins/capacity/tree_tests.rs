//! With the hierarchy: the queues as a tree.

use krafla_framework::session_plugin::EvictionKind;
use krafla_model::JobPhase::{Inqueue, Pending};
use krafla_testkit::{JobScene, QueueScene, Scene};

use crate::testing::{self, conf, dues, queue_order, reclaims, registry, run};

const TREE: &str = "capacity enableHierarchy=true";
const ALL: &[&str] = &["gang", TREE, "predicates"];
const NONE: [&str; 0] = [];

fn root() -> Scene {
    Scene::new().queue("root", |queue| queue)
}

fn level(n: usize) -> String {
    format!("{TREE} ancestorReclaimLevel={n}")
}

fn below(parent: &'static str, amounts: &'static str) -> impl Fn(QueueScene) -> QueueScene {
    move |queue| queue.parent(parent).deserved(amounts)
}

fn capped(parent: &'static str, amounts: &'static str) -> impl Fn(QueueScene) -> QueueScene {
    move |queue| queue.parent(parent).capability(amounts)
}

fn runs(queue: &'static str, asks: &'static str) -> impl Fn(JobScene) -> JobScene {
    testing::runs(queue, asks, "n")
}

fn waits(queue: &'static str, asks: &'static str) -> impl Fn(JobScene) -> JobScene {
    move |job| job.queue(queue).min(1).pending(1, asks)
}

#[test]
fn jobs_are_in_the_leaves_and_one_in_an_inner_queue_harms_nobody_else() {
    let scene = root()
        .node("n", "8c8Gi")
        .queue("q1", capped("root", "4c4Gi"))
        .queue("q11", capped("q1", "1c1Gi"))
        .queue("q12", capped("q1", "3c3Gi"))
        .job("leaf", waits("q11", "1c1Gi"))
        .job("inner", |job| job.queue("q1").min(1).min_resources("1c").at_the_door().pending(1, "1c"))
        .job("admitted", waits("q1", "1c1Gi"))
        .job("free", |job| job.queue("q1").pending(1, ""));
    let outcome = run(&scene, "enqueue, allocate, backfill", ALL);
    assert_eq!(outcome.binds, ["leaf-0 -> n"]);
    assert_eq!(outcome.phases["inner"], Pending);
    let text = "queue `q1` has 2 queues below it and starts no jobs of its own; use one of those, such as `q11`";
    for job in ["inner", "admitted", "free"] {
        assert_eq!(outcome.reasons[job], ("QueueNotLeaf", text.to_owned()), "{job}");
    }
}

#[test]
fn a_queue_with_a_wrong_parent_harms_itself_and_those_below_it() {
    let scene = |with_root: bool| {
        let scene = if with_root { root() } else { Scene::new() };
        scene
            .node("n", "8c")
            .queue("sound", |queue| queue.parent("root").deserved("1c"))
            .queue("orphan", |queue| queue.parent("nowhere"))
            .queue("child", |queue| queue.parent("orphan"))
            .job("a", waits("sound", "1c"))
            .job("b", waits("orphan", "1c"))
            .job("c", |job| job.queue("child").min_resources("1c").at_the_door())
    };
    for with_root in [true, false] {
        let outcome = run(&scene(with_root), "enqueue, allocate", ALL);
        assert_eq!(outcome.binds, ["a-0 -> n"], "a missing root is one without limits");
        let queues = if with_root { 5 } else { 4 };
        let text = format!(
            "queue `orphan` names the parent `nowhere`, which does not exist among {queues} queues; create it or name another"
        );
        for job in ["b", "c"] {
            assert_eq!(outcome.reasons[job], ("QueueParentNotFound", text.clone()), "{job}");
        }
    }
}

#[test]
fn queues_on_a_cycle_refuse_their_jobs_and_no_others() {
    // The cycle is closed by a queue that has a sound parent at first: the edge reports it, and nothing stops.
    let mut cluster = root()
        .node("n", "8c")
        .queue("a", |queue| queue)
        .queue("b", |queue| queue.parent("a"))
        .queue("c", |queue| queue.parent("b"))
        .queue("sound", |queue| queue)
        .job("1", waits("c", "1c"))
        .job("2", waits("sound", "1c"))
        .build();
    let a = cluster.find_queue("a").expect("a queue");
    let mut spec = cluster.queue(a).spec.clone();
    spec.parent = "b".into();
    assert_eq!(cluster.apply(krafla_model::Event::Queue(spec)).len(), 2);
    let outcome = krafla_testkit::run(cluster, &registry(), &conf("allocate", &[ALL]));
    assert_eq!(outcome.binds, ["2-0 -> n"]);
    let text =
        "queue `a` is below itself: its parent `b` leads back to it over 2 queues; give one of them another parent";
    assert_eq!(outcome.reasons["1"], ("QueueCycle", text.to_owned()));
}

#[test]
fn a_leaf_borrows_beyond_its_due_up_to_the_limits_above() {
    let scene = root()
        .node("n", "8c8Gi")
        .queue("q3", |queue| queue.deserved("4c4Gi").capability("4c4Gi"))
        .queue("q31", |queue| queue.parent("q3").deserved("2c2Gi").capability("4c4Gi"))
        .queue("q32", below("q3", "2c2Gi"))
        .queue("q33", |queue| queue.parent("q3"));
    let alone = scene.clone().job("p", |job| job.queue("q31").min(2).pending(2, "2c2Gi"));
    assert_eq!(run(&alone, "allocate", ALL).n_bound("p"), 2);

    let full = scene.job("r1", runs("q31", "2c2Gi")).job("r2", runs("q32", "2c2Gi")).job("p", waits("q33", "3c3Gi"));
    let outcome = run(&full, "allocate", ALL);
    assert_eq!(outcome.binds, NONE);
    assert_eq!(outcome.reasons["p"].1, "limit of queue `q3`: insufficient cpu: asks for 3, 4 of 4 in use");
    assert!(!reclaims(&full, TREE, "p-0", &["r1-0"]).0, "it is due nothing");
}

#[test]
fn what_a_capability_does_not_name_is_that_of_the_queue_above() {
    let scene = root()
        .node("n", "8c8Gi")
        .queue("q5", capped("root", "4Gi"))
        .queue("q51", capped("q5", "2Gi"))
        .job("cpu", waits("q51", "1c"))
        .job("memory", waits("q51", "3Gi"));
    let outcome = run(&scene, "allocate", ALL);
    assert_eq!(outcome.binds, ["cpu-0 -> n"]);
    assert!(outcome.reasons["memory"].1.starts_with("limit of queue `q51`"), "{:?}", outcome.reasons);

    // A root that names CPU alone forbids nothing else.
    let scene = Scene::new()
        .node("n", "8c4g")
        .queue("root", |queue| queue.capability("8c"))
        .queue("q", |queue| queue.capability("4c4g"))
        .job("p", |job| job.queue("q").min(1).pending(2, "1c2g"));
    assert_eq!(run(&scene, "allocate", ALL).n_bound("p"), 2);
}

#[test]
fn the_door_looks_at_the_queues_above() {
    let job = |queue| move |job: JobScene| job.queue(queue).min(1).min_resources("2c4Gi").at_the_door();
    let scene = root()
        .node("n", "8c8Gi")
        .queue("q6", capped("root", "2c4Gi"))
        .queue("q61", |queue| queue.parent("q6"))
        .queue("q62", |queue| queue.parent("q6"))
        .job("first", job("q61"))
        .job("second", job("q62"));
    let outcome = run(&scene, "enqueue, allocate", ALL);
    assert_eq!([outcome.phases["first"], outcome.phases["second"]], [Inqueue, Pending]);
    assert_eq!(outcome.reasons["second"].1, "limit of queue `q6`: insufficient cpu: asks for 2, 2 of 2 in use");
}

#[test]
fn a_job_that_is_larger_than_the_cluster_is_let_in_unless_a_queue_forbids_it() {
    let huge = |job: JobScene| job.queue("q").min_resources("99c").at_the_door();
    let scene = root().node("n", "8c");
    let open = scene.clone().queue("q", |queue| queue).job("p", huge);
    assert_eq!(run(&open, "enqueue, allocate", &[TREE]).phases["p"], Inqueue);
    let limited = scene.queue("q", capped("root", "98c")).job("p", huge);
    assert_eq!(run(&limited, "enqueue, allocate", &[TREE]).phases["p"], Pending);
}

#[test]
fn amounts_that_do_not_add_up_are_taken_as_far_as_they_go() {
    let scene = Scene::new()
        .node("n", "8c8Gi")
        .queue("root", |queue| queue.capability("16c16Gi").deserved("1c").guarantee("1c"))
        .queue("q7", |queue| queue.parent("root").capability("6c6Gi").deserved("1c"))
        .queue("q71", |queue| queue.parent("q7").guarantee("4c3Gi"))
        .queue("q72", |queue| queue.parent("q7").guarantee("4c3Gi").capability("9c9Gi").deserved("9c"))
        .job("p", |job| job.queue("q71").pending(8, "1c"))
        .job("q", |job| job.queue("q72").pending(8, "1c"));
    assert_eq!(
        dues(&scene, TREE),
        ["q7: cpu 1", "q71: cpu 4, memory 3Gi", "q72: cpu 9, memory 3Gi", "root: cpu 1"],
        "the root is due what those below it are"
    );
    let outcome = run(&scene, "allocate", ALL);
    assert_eq!([outcome.n_bound("p"), outcome.n_bound("q")], [2, 4], "six in all, by their shares of 4 and 9");

    // A guarantee beyond what the queue above may hold is no reason to evict: there would be no room.
    let scene = root()
        .node("n", "8c")
        .queue("above", capped("root", "6c"))
        .queue("below", |queue| queue.parent("above").guarantee("7c"))
        .job("six", waits("below", "6c"))
        .job("seven", waits("below", "7c"));
    assert_eq!(["six-0", "seven-0"].map(|pod| reclaims(&scene, TREE, pod, &[]).0), [true, false]);
}

#[test]
fn gpus_and_a_due_of_none_are_no_obstacle() {
    let whole = |extra: &'static str| move |queue: QueueScene| queue.deserved(extra).parent("q8");
    for extra in ["2c2Gi4g", "2c2Gi4g,hugepages-1Gi=0"] {
        let scene = root()
            .node("n", "8c8Gi8g")
            .queue("q8", |queue| queue.deserved("4c4Gi8g"))
            .queue("q81", whole(extra))
            .queue("q82", whole(extra))
            .job("p", waits("q81", "2c2Gi1g"));
        assert_eq!(run(&scene, "allocate", ALL).binds, ["p-0 -> n"], "{extra}");
    }
    let scene = root()
        .node("n", "8c8Gi8g")
        .queue("q", |queue| queue)
        .queue("q1", capped("q", "4c4Gi4g"))
        .queue("q2", capped("q", "4c4Gi4g"))
        .job("a", waits("q1", "1c1Gi4g"))
        .job("b", waits("q2", "1c1Gi4g"));
    assert_eq!(run(&scene, "allocate", ALL).binds.len(), 2);
}

#[test]
fn queues_are_compared_where_their_branches_part() {
    let scene = root()
        .node("n", "16c")
        .queue("default", |queue| queue.priority(-1))
        .queue("a", |queue| queue.deserved("4c"))
        .queue("a1", below("a", "1c"))
        .queue("a2", below("a", "3c"))
        .queue("b", |queue| queue.deserved("8c"))
        .queue("b1", below("b", "2c"))
        .job("1", runs("a2", "3c"))
        .job("2", runs("b1", "2c"));
    let leaves = |order: Vec<String>| -> Vec<String> { order.into_iter().filter(|name| name.len() == 2).collect() };
    assert_eq!(leaves(queue_order(&scene, TREE)), ["b1", "a1", "a2"], "0.25 of b before 0.75 of a");
    assert_eq!(leaves(queue_order(&scene, "capacity"))[0], "a1", "without the hierarchy: it holds nothing");
    let first = scene.queue("c", |queue| queue.priority(1));
    assert_eq!(queue_order(&first, TREE)[0], "c");
}

#[test]
fn branches_take_turns_by_what_they_hold_now() {
    for scene in [root(), Scene::new()] {
        let scene = scene
            .node("n", "6c")
            .queue("a", |queue| queue.deserved("3c"))
            .queue("a1", below("a", "2c"))
            .queue("a2", below("a", "2c"))
            .queue("b", |queue| queue.deserved("3c"))
            .queue("b1", below("b", "3c"))
            .job("1", |job| job.queue("a1").pending(6, "1c"))
            .job("2", |job| job.queue("a2").pending(6, "1c"))
            .job("3", |job| job.queue("b1").pending(6, "1c"));
        let outcome = run(&scene, "allocate", ALL);
        let turns = ["1-0", "3-0", "2-0", "3-1", "1-1", "3-2"].map(|pod| format!("{pod} -> n"));
        assert_eq!(outcome.binds, turns);
    }
}

#[test]
fn close_relatives_give_back_first() {
    let mut cluster = root()
        .node("n", "8c8Gi")
        .queue("q3", |queue| queue.deserved("4c4Gi").capability("4c4Gi"))
        .queue("q31", |queue| queue.parent("q3").deserved("2c2Gi").capability("4c4Gi"))
        .queue("q32", below("q3", "2c2Gi"))
        .queue("q4", |queue| queue.deserved("2c2Gi"))
        .queue("q5", |queue| queue.deserved("4c4Gi"))
        .job("p5", runs("q4", "4c4Gi"))
        .job("p6", runs("q31", "2c2Gi"))
        .job("p7", runs("q31", "2c2Gi"))
        .job("p8", waits("q32", "2c2Gi"))
        .build();
    krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&[TREE]]), |session| {
        let (cluster, plugins) = (session.cluster(), session.plugins());
        let queue = |name| cluster.find_queue(name).expect("the queue exists");
        let mut order = ["q5", "q4", "q31"];
        order.sort_by_key(|name| plugins.victim_queue_rank(cluster, queue(name), queue("q32")));
        assert_eq!(order, ["q31", "q4", "q5"], "the sibling, then who holds most of its due");
        let task = |name| krafla_testkit::task_named(cluster, name);
        let victims = plugins.reclaimable(cluster, task("p8-0"), &[task("p7-0"), task("p5-0")]);
        assert_eq!(victims, [task("p7-0"), task("p5-0")]);
        assert!(plugins.preemptive(cluster, queue("q32"), &[task("p8-0")]), "q3 is full, but p7 is below it too");
    });
}

/// Name, levels, scene, who reclaims, candidates in their order, whether it may, who gives back.
type Case = (&'static str, usize, Scene, &'static str, &'static [&'static str], bool, &'static [&'static str]);

#[test]
fn ancestors_are_asked_for_their_due_as_far_as_the_level_says() {
    let lent = || {
        root()
            .node("n", "8c5g")
            .queue("queue1", |queue| queue.deserved("2g"))
            .queue("queue11", below("queue1", "2g"))
            .queue("queue12", |queue| queue.parent("queue1"))
            .job("p17", runs("queue12", "2g"))
            .job("p18", runs("queue12", "2g"))
            .job("p", waits("queue11", "2g"))
    };
    let leaf_without_due = || {
        root()
            .node("n", "8c4g")
            .queue("parent", |queue| queue.deserved("1g"))
            .queue("leaf", |queue| queue.parent("parent"))
            .queue("other", |queue| queue)
            .job("v", runs("other", "4g"))
            .job("p", waits("leaf", "1g"))
    };
    let projects = || {
        root()
            .node("n", "8c5g")
            .queue("project1", |queue| queue.deserved("1g").capability("2g"))
            .queue("project2", |queue| queue.deserved("3g").capability("4g"))
            .queue("project1-soft", |queue| queue.parent("project1"))
            .queue("project2-soft", |queue| queue.parent("project2"))
            .queue("project2-hard", below("project2", "3g"))
    };
    let grand = || {
        root()
            .node("n", "2c2Gi")
            .queue("grand-a", |queue| queue)
            .queue("parent-a", |queue| queue.parent("grand-a"))
            .queue("queue-a", below("parent-a", "2c2Gi"))
            .queue("grand-b", |queue| queue.deserved("3c3Gi"))
            .queue("parent-b", below("grand-b", "1c1Gi"))
            .queue("queue-b", below("parent-b", "1c1Gi"))
            .job("v", runs("queue-b", "2c2Gi"))
            .job("p", waits("queue-a", "2c2Gi"))
    };
    let cousins = |grand: &'static str, one: &'static str, two: &'static str| {
        root()
            .node("n", "4c4Gi")
            .queue("top", |queue| queue.deserved("4c4Gi"))
            .queue(grand, |queue| queue.parent("top"))
            .queue("one", |queue| queue.parent(one))
            .queue("two", |queue| queue.parent(two))
            .job("v", |job| job.queue("one").running(4, "1c1Gi", "n"))
            .job("p", waits("two", "1c1Gi"))
    };
    let cases: Vec<Case> = vec![
        ("a sibling that is due nothing gives back what was lent", 0, lent(), "p-0", &["p17-0"], true, &["p17-0"]),
        ("a leaf without a due may not reclaim", 0, leaf_without_due(), "p-0", &["v-0"], false, &["v-0"]),
        ("unless the queue above it may", 1, leaf_without_due(), "p-0", &["v-0"], true, &["v-0"]),
        (
            "a project gives back until it is at its due",
            1,
            projects()
                .job("p2", |job| job.queue("project2-soft").running(4, "1g", "n"))
                .job("p1", waits("project1-soft", "1g")),
            "p1-0",
            &["p2-3", "p2-0", "p2-1"],
            true,
            &["p2-3"],
        ),
        (
            "between siblings the queue above is not asked; another project at its due keeps its own",
            1,
            projects()
                .job("p2", |job| job.queue("project2-soft").running(3, "1g", "n").pending(1, "1g"))
                .job("p1", runs("project1-soft", "1g"))
                .job("p3", waits("project2-hard", "1g")),
            "p3-0",
            &["p2-2", "p1-0"],
            true,
            &["p2-2"],
        ),
        (
            "a leaf at its due keeps all, though the queue above it is over",
            1,
            projects()
                .queue("project2-other", below("project2", "1g"))
                .job("v", runs("project2-other", "1g"))
                .job("p2", runs("project2-hard", "3g"))
                .job("p1", waits("project1-soft", "1g")),
            "p1-0",
            &["v-0"],
            true,
            &[],
        ),
        ("only the leaf is asked", 0, grand(), "p-0", &["v-0"], true, &["v-0"]),
        ("the parent is over its due too", 1, grand(), "p-0", &["v-0"], true, &["v-0"]),
        ("the grandparent is not", 2, grand(), "p-0", &["v-0"], true, &[]),
        (
            "siblings without a due share what is above them",
            1,
            cousins("middle", "top", "top"),
            "p-0",
            &["v-0", "v-1"],
            false,
            &[],
        ),
        ("and cousins", 2, cousins("middle", "middle", "middle"), "p-0", &["v-0"], false, &[]),
        ("also at different depths", 2, cousins("middle", "middle", "top"), "p-0", &["v-0"], false, &[]),
        (
            "at level 0 they take from each other",
            0,
            cousins("middle", "middle", "top"),
            "p-0",
            &["v-0"],
            false,
            &["v-0"],
        ),
        (
            "blocked where the second queue above is at its due",
            2,
            root()
                .node("n", "8c4g")
                .queue("top", |queue| queue.deserved("2g"))
                .queue("mid", below("top", "1g"))
                .queue("low", below("mid", "1g"))
                .queue("other", |queue| queue.deserved("1g"))
                .job("v", |job| job.queue("low").running(2, "1g", "n"))
                .job("p", waits("other", "1g")),
            "p-0",
            &["v-0", "v-1"],
            true,
            &[],
        ),
        (
            "a common ancestor is not asked, however far it is from either",
            1,
            root()
                .node("n", "8c8g")
                .queue("top", |queue| queue.deserved("4g"))
                .queue("mid", below("top", "2g"))
                .queue("low", below("mid", "2g"))
                .queue("near", below("top", "1g"))
                .job("v", |job| job.queue("near").running(2, "1g", "n"))
                .job("p", waits("low", "1g")),
            "p-0",
            &["v-0"],
            true,
            &["v-0"],
        ),
    ];
    for (name, levels, scene, pod, candidates, may, victims) in cases {
        let (allowed, named) = reclaims(&scene, &level(levels), pod, candidates);
        let want: Vec<String> = victims.iter().map(|pod| (*pod).to_owned()).collect();
        assert_eq!((allowed, named), (may, want), "{name}");
    }
}

#[test]
fn a_queue_without_a_place_reclaims_nothing_and_keeps_its_own_due() {
    let scene = |reclaimer, holder| {
        root()
            .node("n", "4c")
            .queue("orphan", |queue| queue.parent("nowhere").deserved("2c"))
            .queue("sound", |queue| queue.deserved("2c"))
            .job("v", move |job: JobScene| job.queue(holder).running(4, "1c", "n"))
            .job("p", waits(reclaimer, "1c"))
    };
    let candidates = ["v-0", "v-1", "v-2"];
    assert_eq!(reclaims(&scene("orphan", "sound"), &level(1), "p-0", &candidates), (false, vec![]));
    let (may, victims) = reclaims(&scene("sound", "orphan"), &level(1), "p-0", &candidates);
    assert_eq!((may, victims), (true, vec!["v-0".to_owned(), "v-1".to_owned()]));
}

#[test]
fn for_a_whole_job_only_the_leaves_are_asked() {
    let mut cluster = root()
        .node("n", "9c9Gi")
        .queue("above", |queue| queue.deserved("9c9Gi"))
        .queue("holder", below("above", "2c"))
        .queue("kept", |queue| queue.parent("above").guarantee("2c"))
        .queue("gang", |queue| queue.deserved("1c"))
        .queue("orphan", |queue| queue.parent("nowhere"))
        .job("v", |job| job.queue("holder").running(1, "1Gi", "n").running(3, "1c", "n"))
        .job("k", runs("kept", "2c"))
        .job("p", |job| job.queue("gang").min(2).pending(2, "1c"))
        .job("o", |job| job.queue("orphan").min(2).pending(2, "1c"))
        .build();
    krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&[&level(1)]]), |session| {
        let (cluster, plugins) = (session.cluster(), session.plugins());
        let task = |name| krafla_testkit::task_named(cluster, name);
        let candidates = ["v-0", "v-1", "v-2", "v-3", "k-0"].map(task);
        let victims = |kind, job: &str| {
            let job = cluster.find_job(&"default".into(), &job.into()).expect("the job exists");
            plugins.unified_evictable(cluster, kind, job, &candidates)
        };
        assert_eq!(victims(EvictionKind::GangReclaim, "p"), ["v-0", "v-1"].map(task), "memory is due to nobody there");
        assert_eq!(victims(EvictionKind::GangReclaim, "o"), []);
        assert_eq!(victims(EvictionKind::GangPreempt, "p"), candidates);
    });
}
