//! Moves: only where it is better, with the place kept, whole gangs, and not in circles.

use krafla_framework::{DescheduleResult, DeschedulerSettings, Planning};
use krafla_model::taints::{Effect, Taint};
use krafla_model::{ClusterState, Event, NodeSpec, Time};
use krafla_testkit::Scene;

use crate::testing::{Rounds, own, planned, policy, settings, unplanned, with_evictor};

const CPU: &str = "thresholds: {cpu: 20}, targetThresholds: {cpu: 70}";

fn low() -> String {
    policy("LowNodeUtilization", "balance", CPU, "")
}

fn on(scene: Scene, owner: &str, n: u32, asks: &str, node: &str) -> Scene {
    scene.job(owner, |job| job.running(n, asks, node).each(|pod| own(pod, owner)))
}

/// S32 in the small: a pod that makes any node busy is not moved; the one beside it is, once.
#[test]
fn what_makes_any_node_busy_stays() {
    let scene = Scene::new().node("a", "10c").node("b", "10c");
    let scene = on(on(scene, "big", 1, "8c", "a"), "small", 1, "1c", "a");
    let came = planned(scene.build(), &low());
    assert_eq!(came.moves(), ["small-0 -> b"]);
    assert_eq!(came.refusals(), ["big-0: there is no better place for it now"]);
    assert_eq!(unplanned(scene.build(), &low()).gone(), ["big-0"]);
}

/// S33: five pods to move and one place: one is listed, whatever the plan.
#[test]
fn a_dry_run_counts_what_it_has_moved() {
    let taint = |spec: &mut NodeSpec| {
        spec.taints.push(Taint { key: "gone".into(), value: "".into(), effect: Effect::NoSchedule });
    };
    let scene = || {
        let scene = Scene::new().node_with("old", "20c", taint).node("large", "4c");
        let scene = ["s1", "s2", "s3", "s4"].into_iter().fold(scene, |scene, name| scene.node(name, "2c"));
        on(scene, "x", 5, "4c", "old")
    };
    let plain = policy("RemovePodsViolatingNodeTaints", "deschedule", "", "");
    let fits = with_evictor("RemovePodsViolatingNodeTaints", "deschedule", "", "nodeFit: true");
    for (text, planning) in [(&plain, Planning::Kept), (&plain, Planning::Foreseen), (&fits, Planning::Off)] {
        let settings = DeschedulerSettings { dry_run: true, ..settings(text, planning) };
        let mut cluster = scene().build();
        let came = Rounds::new(&settings).next(&mut cluster);
        assert_eq!(came.gone().len(), 1, "{planning:?}");
        assert_eq!(came.notes.iter().filter(|note| note.result == DescheduleResult::DryRun).count(), 1);
        assert!(came.decisions.is_empty(), "a dry run decides nothing");
        assert_eq!(cluster.reservations().count(), 0);
    }
}

#[test]
fn a_place_is_kept_and_not_given_twice() {
    let taint = |spec: &mut NodeSpec| {
        spec.taints.push(Taint { key: "gone".into(), value: "".into(), effect: Effect::NoSchedule });
    };
    let scene = Scene::new().node_with("old", "20c", taint).node("b", "3c").node("c", "5c");
    let scene = on(scene, "x", 5, "2c", "old");
    let mut cluster = scene.build();
    let text = policy("RemovePodsViolatingNodeTaints", "deschedule", "", "");
    let came = Rounds::new(&settings(&text, Planning::Kept)).next(&mut cluster);
    assert_eq!(came.moves().len(), 3, "two of 5 cores and one of 3: {:?}", came.moves());
    assert_eq!(cluster.reservations().count(), 3);
}

#[test]
fn gangs_are_moved_whole_or_left() {
    let scene = |spare: &str| {
        Scene::new()
            .node("a", "10c")
            .node("b", spare)
            .job("g", |job| job.min(3).running(3, "3c", "a").each(|pod| own(pod, "g")))
    };
    let came = planned(scene("20c").build(), &low());
    assert_eq!(came.gone(), ["g-0", "g-1", "g-2"]);
    let left = planned(scene("8c").build(), &low());
    assert_eq!(left.gone(), [] as [&str; 0]);
}

fn tainted(cluster: &mut ClusterState, node: &str, is_tainted: bool) {
    let id = cluster.find_node(node).expect("a node");
    let mut spec = cluster.node(id).spec.clone();
    spec.taints.clear();
    if is_tainted {
        spec.taints.push(Taint { key: "t".into(), value: "".into(), effect: Effect::NoSchedule });
    }
    cluster.apply(Event::Node(spec));
}

/// A pod that was moved, as its controller makes it again on the node that was kept.
fn arrive(cluster: &mut ClusterState, pod: &str, node: &str) {
    let task = krafla_testkit::task_named(cluster, pod);
    let (details, shape) = (cluster.task(task).details.clone(), cluster.shape_of(task).spec.clone());
    let (uid, name) = (cluster.task(task).uid.clone(), cluster.task(task).name.clone());
    let group = cluster.task(task).group.clone();
    cluster.apply(Event::PodGone(uid.clone()));
    let uid = format!("{uid}+").into();
    let phase = krafla_model::PodPhase::Running;
    cluster.apply(Event::Pod(krafla_model::PodSpec {
        uid,
        name,
        group,
        shape,
        details,
        phase,
        node: Some(node.into()),
        created: cluster.now(),
        ..krafla_model::PodSpec::default()
    }));
}

/// what was moved a moment ago stays, although a rule would move it back.
#[test]
fn nothing_goes_back_within_the_cool_down() {
    let scene = Scene::new().node("a", "9c").node("b", "9c");
    let mut cluster = on(scene, "x", 1, "1c", "a").build();
    let text = policy("RemovePodsViolatingNodeTaints", "deschedule", "", "");
    let mut rounds = Rounds::new(&DeschedulerSettings { cool_down_ms: 60_000, ..settings(&text, Planning::Kept) });
    tainted(&mut cluster, "a", true);
    assert_eq!(rounds.next(&mut cluster).moves(), ["x-0 -> b"]);
    arrive(&mut cluster, "x-0", "b");
    tainted(&mut cluster, "a", false);
    tainted(&mut cluster, "b", true);
    cluster.set_now(Time(59_999));
    let came = rounds.next(&mut cluster);
    assert_eq!(came.refusals(), ["x-0: moved here a moment ago"]);
    cluster.set_now(Time(60_000));
    assert_eq!(rounds.next(&mut cluster).moves(), ["x-0 -> a"]);
}

/// Another policy knows what the one before it moved.
#[test]
fn the_cool_down_outlives_the_policy() {
    let scene = Scene::new().node("a", "9c").node("b", "9c");
    let mut cluster = on(scene, "x", 1, "1c", "a").build();
    let policy = |name: &str| {
        let text = policy("RemovePodsViolatingNodeTaints", "deschedule", "", "").replace("name: p\n", name);
        Rounds::new(&DeschedulerSettings { cool_down_ms: 60_000, ..settings(&text, Planning::Kept) })
    };
    let mut rounds = policy("name: old\n");
    tainted(&mut cluster, "a", true);
    assert_eq!(rounds.next(&mut cluster).moves(), ["x-0 -> b"]);
    arrive(&mut cluster, "x-0", "b");
    tainted(&mut cluster, "a", false);
    tainted(&mut cluster, "b", true);
    cluster.set_now(Time(30_000));
    let (mut heir, mut stranger) = (policy("name: new\n"), policy("name: new\n"));
    heir.inherit(&rounds);
    assert_eq!(heir.next(&mut cluster).refusals(), ["x-0: moved here a moment ago"]);
    assert_eq!(stranger.next(&mut cluster).moves(), ["x-0 -> a"], "nobody has told it");
}

#[test]
fn a_pod_that_nobody_makes_again_needs_no_place() {
    let scene = Scene::new().node("a", "9c").node("b", "9c").at(1_000_000).job("x", |job| {
        job.running(1, "1c", "a").each(|pod| {
            pod.created = Time(1);
            let shape = std::sync::Arc::make_mut(&mut pod.shape);
            shape.annotations.set(crate::evictor::EVICT.into(), "".into());
        })
    });
    let mut cluster = scene.build();
    tainted(&mut cluster, "a", true);
    let came = planned(cluster, &policy("RemovePodsViolatingNodeTaints", "deschedule", "", ""));
    assert_eq!(came.moves(), ["x-0 -> ?"]);
}

#[test]
fn with_one_node_there_is_no_round() {
    let mut cluster = on(Scene::new().node("a", "9c"), "x", 1, "1c", "a").build();
    tainted(&mut cluster, "a", true);
    let came = unplanned(cluster, &policy("RemovePodsViolatingNodeTaints", "deschedule", "", ""));
    assert!(came.notes.is_empty());
}
