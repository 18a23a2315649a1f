//! Without the hierarchy: each queue on its own.

use krafla_model::JobPhase::{Inqueue, Pending};
use krafla_model::queue::QueueState;
use krafla_testkit::{JobScene, QueueScene, Scene};

use crate::testing::{compiles, dues, queue_order, reclaims, registry, run, runs, waits};

const ALL: &[&str] = &["gang", "capacity", "predicates"];
const NONE: [&str; 0] = [];

fn due(amounts: &'static str) -> impl Fn(QueueScene) -> QueueScene {
    move |queue| queue.deserved(amounts)
}

#[test]
fn a_pod_starts_while_its_queue_stays_under_its_capability() {
    for (name, capability, binds) in [("room for both", "2c2Gi", "p-0 -> n1"), ("half a core short", "1500m,1.5Gi", "")]
    {
        let scene = Scene::new()
            .node("n1", "2c4Gi")
            .node("n2", "2c4Gi")
            .queue("q", |queue| queue.capability(capability))
            .job("r", runs("q", "1c1Gi", "n1"))
            .job("p", |job| job.queue("q").min(1).selects("kubernetes.io/hostname", "n1").pending(1, "1c1Gi"));
        let outcome = run(&scene, "enqueue, allocate", ALL);
        assert_eq!(outcome.binds.join(","), binds, "{name}");
    }
}

#[test]
fn a_queue_borrows_what_is_idle_beyond_its_due() {
    let scene = Scene::new()
        .node("n", "8c8Gi")
        .queue("a", due("2c2Gi"))
        .queue("b", due("6c6Gi"))
        .job("p", |job| job.queue("a").pending(8, "1c1Gi"));
    assert_eq!(run(&scene, "allocate", ALL).n_bound("p"), 8);
}

#[test]
fn each_queue_leaves_room_for_the_guarantees_of_the_others() {
    let scene = Scene::new()
        .node("n", "8c")
        .queue("a", |queue| queue.guarantee("3c"))
        .queue("b", |queue| queue.guarantee("1c"))
        .job("p", |job| job.queue("b").pending(8, "1c"));
    assert_eq!(run(&scene, "allocate", ALL).n_bound("p"), 5);
    let scene = scene.job("q", |job| job.queue("a").pending(8, "1c"));
    assert_eq!(run(&scene, "allocate", ALL).n_bound("q"), 6, "each its guarantee, and idle room by it");
}

#[test]
fn the_door_and_the_limit_look_at_what_is_asked_only() {
    for (name, queue, asks, binds, phase) in [
        ("memory is used up, CPU is not", "q1", "1c", "p-0 -> n1", Inqueue),
        ("CPU is used up, memory is not", "q2", "1G", "p-0 -> n2", Inqueue),
        ("both", "q1", "1c1G", "", Pending),
    ] {
        let scene = Scene::new()
            .node("n1", "3c3G")
            .node("n2", "3c3G")
            .queue("q1", |queue| queue.deserved("2c2G").capability("2c2G"))
            .queue("q2", |queue| queue.deserved("2c2G").capability("3c3G"))
            .job("r1", runs("q1", "1c3G", "n1"))
            .job("r2", runs("q2", "3c1G", "n2"))
            .job("p", waits(queue, asks));
        let outcome = run(&scene, "enqueue, allocate", ALL);
        assert_eq!((outcome.binds.join(",").as_str(), outcome.phases["p"]), (binds, phase), "{name}");
        if phase == Pending {
            let (code, text) = &outcome.reasons["p"];
            assert_eq!(*code, "QueueLimit");
            assert_eq!(
                text,
                "limit of queue `q1`: insufficient memory: asks for 1000000000, 3000000000 of 1953125Ki in use"
            );
        }
    }
}

#[test]
fn a_queue_that_is_not_open_admits_and_starts_nothing() {
    for state in [QueueState::Closed, QueueState::Closing, QueueState::Unknown] {
        let scene = |job: &dyn Fn(JobScene) -> JobScene| {
            let queue = |queue: QueueScene| queue.deserved("4c").state(state);
            Scene::new().node("n", "4c").queue("q", queue).job("p", job)
        };
        let outcome = run(&scene(&waits("q", "1c")), "enqueue, allocate", ALL);
        assert_eq!((outcome.binds.len(), outcome.phases["p"]), (0, Pending), "{state:?}");
        assert_eq!(outcome.reasons["p"].0, "QueueNotOpen");
        let inside = scene(&|job| job.queue("q").pending(1, "1c"));
        assert_eq!(run(&inside, "allocate", ALL).binds, NONE, "{state:?}: admitted before");
    }
}

#[test]
fn what_is_kept_for_admitted_jobs_fills_the_queue_at_the_door() {
    let scene = Scene::new()
        .node("n", "8c")
        .queue("q", |queue| queue.capability("4c"))
        .job("a", |job| job.queue("q").min(3).min_resources("3c").running(1, "1c", "n").pending(1, "1c"))
        .job("b", |job| job.queue("q").min_resources("1c").at_the_door())
        .job("c", |job| job.queue("q").min_resources("1c").at_the_door());
    let phases = run(&scene, "enqueue, allocate", ALL).phases;
    assert_eq!([phases["b"], phases["c"]], [Inqueue, Pending]);
}

#[test]
fn the_queue_of_the_highest_priority_goes_first() {
    let scene = Scene::new()
        .node("n5", "2c4Gi")
        .node("n6", "2c4Gi")
        .queue("q7", |queue| queue.priority(5))
        .queue("q8", |queue| queue.priority(1))
        .queue("q9", |queue| queue.priority(10))
        .job("r", runs("q7", "2c4Gi", "n5"))
        .job("p8", |job| job.queue("q8").min(1).pending(1, "2c4Gi"))
        .job("p9", |job| job.queue("q9").min(1).pending(1, "2c4Gi"));
    assert_eq!(run(&scene, "enqueue, allocate", ALL).binds, ["p9-0 -> n6"]);
}

#[test]
fn then_the_one_that_is_furthest_below_its_due_and_who_borrows_without_a_due_last() {
    let scene = Scene::new()
        .node("n", "20c40Gi")
        .queue("default", |queue| queue.priority(-1))
        .queue("borrows", |queue| queue)
        .queue("idle without a due", |queue| queue.deserved("0c,nvidia.com/gpu=0"))
        .queue("over", due("2c4Gi"))
        .queue("full", due("1c"))
        .queue("near", due("2c4Gi"))
        .queue("idle", due("2c4Gi"))
        .job("1", runs("near", "1c3Gi", "n"))
        .job("2", runs("over", "3c1Gi", "n"))
        .job("3", runs("full", "1c", "n"))
        .job("4", runs("borrows", "1c", "n"));
    let order = ["idle", "near", "full", "idle without a due", "over", "borrows", "default"];
    assert_eq!(queue_order(&scene, "capacity"), order);
}

#[test]
fn a_due_is_at_least_the_guarantee_and_at_most_what_the_queue_may_hold() {
    let scene = Scene::new()
        .node("n", "8c8Gi")
        .queue("a", |queue| queue.deserved("2c8Gi").guarantee("3c"))
        .queue("b", |queue| queue.deserved("9c2Gi").capability("4c"))
        .queue("c", |queue| queue.deserved("9c"));
    assert_eq!(dues(&scene, "capacity"), ["a: cpu 3, memory 8Gi", "b: cpu 4, memory 2Gi", "c: cpu 5"]);
}

#[test]
fn without_the_hierarchy_a_parent_is_a_queue_like_any_other() {
    let scene = Scene::new()
        .node("n", "8c")
        .queue("above", |queue| queue.capability("2c"))
        .queue("below", |queue| queue.parent("above"))
        .queue("astray", |queue| queue.parent("nowhere"))
        .job("a", |job| job.queue("above").pending(2, "1c"))
        .job("b", |job| job.queue("below").running(1, "1c", "n").pending(2, "1c"))
        .job("c", |job| job.queue("astray").pending(1, "1c"));
    assert_eq!(run(&scene, "allocate", ALL).binds.len(), 5);

    let root = Scene::new()
        .node("n", "8c")
        .queue("idle", due("4c"))
        .queue("root", due("4c"))
        .job("a", runs("root", "1c", "n"))
        .job("b", runs("idle", "1c", "n"));
    assert_eq!(queue_order(&root, "capacity")[..2], ["idle", "root"], "equal shares: the older");
    assert_eq!(dues(&root, "capacity"), ["idle: cpu 4", "root: cpu 4"]);
}

/// Name, scene, who reclaims, candidates in their order, whether it may, who gives back.
type Case = (&'static str, Scene, &'static str, &'static [&'static str], bool, &'static [&'static str]);

#[test]
fn a_queue_gives_back_what_is_beyond_its_due_in_what_the_victim_holds() {
    let two = |due: &'static str, node: &str| {
        let queue = move |queue: QueueScene| queue.deserved(due);
        Scene::new().node("n1", node).node("n2", node).queue("a", queue).queue("b", queue)
    };
    let cases: Vec<Case> = vec![
        (
            "over its due; the one of two pods that is a candidate",
            two("2c4Gi", "2c4Gi")
                .job("p5", runs("a", "2c4Gi", "n1"))
                .job("p6", runs("a", "2c4Gi", "n2"))
                .job("p7", waits("b", "2c4Gi")),
            "p7-0",
            &["p6-0"],
            true,
            &["p6-0"],
        ),
        (
            "and no more than that",
            two("2c4Gi", "2c4Gi")
                .job("p5", runs("a", "2c4Gi", "n1"))
                .job("p6", runs("a", "2c4Gi", "n2"))
                .job("p7", waits("b", "2c4Gi")),
            "p7-0",
            &["p5-0", "p6-0"],
            true,
            &["p5-0"],
        ),
        (
            "who reclaims may be over its due in what it does not ask for",
            two("2c4Gi10g", "2c4Gi10g")
                .job("p8", runs("a", "10g", "n1"))
                .job("p9", runs("a", "10g", "n2"))
                .job("p10", runs("b", "2c4Gi", "n1"))
                .job("p11", runs("b", "2c4Gi", "n2"))
                .job("p12", waits("b", "10g")),
            "p12-0",
            &["p9-0"],
            true,
            &["p9-0"],
        ),
        (
            "within its due in CPU, which is enough; the victim's queue is due nothing",
            Scene::new()
                .node("n", "2c4Gi")
                .queue("a", |queue| queue.deserved("2c2Gi").capability("4c4Gi"))
                .queue("b", |queue| queue.capability("2c2Gi"))
                .job("r", runs("a", "1c3Gi", "n"))
                .job("v", runs("b", "1c1Gi", "n"))
                .job("p", waits("a", "1c1Gi")),
            "p-0",
            &["v-0"],
            true,
            &["v-0"],
        ),
        (
            "over its due in everything that it asks for",
            Scene::new()
                .node("n", "2c4Gi")
                .queue("a", |queue| queue.deserved("1c2Gi").capability("4c4Gi"))
                .queue("b", |queue| queue)
                .job("r", runs("a", "1c1Gi", "n"))
                .job("v", runs("b", "1c1Gi", "n"))
                .job("p", waits("a", "1c2Gi")),
            "p-0",
            &["v-0"],
            false,
            &["v-0"],
        ),
        (
            "a queue at its due keeps all; one that is due nothing would give a GPU, which alone is not enough",
            Scene::new()
                .node("n", "4c8Gi4g")
                .queue("14", due("2c4Gi2g"))
                .queue("15", |queue| queue)
                .queue("16", due("2c4Gi2g"))
                .job("a", runs("14", "2c4Gi", "n"))
                .job("b", runs("15", "1g", "n"))
                .job("c", runs("16", "2c1Gi1g", "n"))
                .job("p", waits("16", "2c3Gi1g")),
            "p-0",
            &["a-0", "b-0"],
            true,
            &["b-0"],
        ),
        (
            "only what serves, and only what is not due: of memory, CPU and a GPU the GPU",
            Scene::new()
                .node("n", "4c8Gi1g")
                .queue("17", due("2c2Gi"))
                .queue("18", due("2c4Gi1g"))
                .job("memory", runs("17", "4Gi", "n"))
                .job("cpu", runs("17", "1c", "n"))
                .job("gpu", runs("17", "1g", "n"))
                .job("r", runs("18", "2c4Gi", "n"))
                .job("p", waits("18", "1c1g")),
            "p-0",
            &["memory-0", "cpu-0", "gpu-0"],
            true,
            &["gpu-0"],
        ),
        (
            "what the due does not name is not weighed",
            Scene::new()
                .node("n", "4c4Gi1g")
                .queue("19", due("1g"))
                .queue("20", due("2c2Gi"))
                .job("v", runs("19", "4c4Gi1g", "n"))
                .job("p", waits("20", "1c1Gi")),
            "p-0",
            &["v-0"],
            true,
            &[],
        ),
        (
            "but a due of no GPU is",
            Scene::new()
                .node("n", "4c4Gi1g")
                .queue("a", due("4c4Gi0g"))
                .queue("b", due("2c2Gi"))
                .job("v", runs("a", "4c4Gi1g", "n"))
                .job("p", waits("b", "1c1Gi")),
            "p-0",
            &["v-0"],
            true,
            &["v-0"],
        ),
        (
            "its own capability is in the way",
            Scene::new()
                .node("n", "10c100Gi")
                .queue("21", |queue| queue.deserved("8c100Gi").capability("8c100Gi"))
                .queue("22", |queue| queue.capability("2c5Gi"))
                .job("r", runs("21", "7c90Gi", "n"))
                .job("v", runs("22", "2c5Gi", "n"))
                .job("p", waits("21", "2c5Gi")),
            "p-0",
            &["v-0"],
            false,
            &["v-0"],
        ),
        (
            "a guarantee is kept, though the queue is over it",
            Scene::new()
                .node("n", "4c4Gi")
                .queue("a", |queue| queue.guarantee("2c"))
                .queue("b", due("4c"))
                .job("v", |job| job.queue("a").running(1, "2c1Gi", "n").running(1, "1c1Gi", "n"))
                .job("p", waits("b", "1c1Gi")),
            "p-0",
            &["v-0", "v-1"],
            true,
            &["v-1"],
        ),
    ];
    for (name, scene, pod, candidates, may, victims) in cases {
        let (allowed, named) = reclaims(&scene, "capacity", pod, candidates);
        assert_eq!((allowed, named), (may, victims.iter().map(|pod| (*pod).to_owned()).collect()), "{name}");
    }
}

#[test]
fn a_queue_that_is_not_open_reclaims_nothing_and_its_own_are_reclaimed() {
    let scene = Scene::new()
        .node("n", "2c")
        .queue("a", |queue| queue.deserved("2c").state(QueueState::Closing))
        .queue("b", |queue| queue)
        .job("v", runs("b", "2c", "n"))
        .job("p", |job| job.queue("a").pending(1, "2c"));
    assert_eq!(reclaims(&scene, "capacity", "p-0", &["v-0"]), (false, vec![]));
}

#[test]
fn arguments_are_checked_by_the_compiler() {
    assert!(compiles("capacity ancestorReclaimLevel=2 enableHierarchy=true"));
    assert!(!compiles("capacity ancestorReclaimLevel=-1"));
    assert!(!compiles("capacity ancestorReclaimLevel=1.5"));
    assert!(compiles("capacity capacity.DynamicResourceAllocationEnable=true"), "with a warning");
}

#[test]
fn the_preset_is_right_to_the_letter() {
    let preset = include_str!("../../conf/presets/capacity.conf");
    let compiled = krafla_framework::conf::compile::compile(preset, "capacity.conf", &registry().catalogue());
    assert!(compiled.policy.is_some() && compiled.problems.is_empty(), "{:?}", compiled.problems);
}
