use std::sync::Arc;

use krafla_framework::{Cause, Decision, EvictionCertificate, PluginSet, PodRef, Policy, Registry};
use krafla_model::{ClusterState, Name, Reservation, TaskId, Time};
use krafla_testkit::{Scene, task_named};

/// A pod of 2 cores on each of two nodes of 4, and one that asks for 4. The first was evicted.
fn scene(controlled: bool) -> (ClusterState, TaskId) {
    let mut cluster = Scene::new()
        .node("a", "4c")
        .node("b", "4c")
        .job("mover", |job| job.shape(|shape| shape.controlled = controlled).running(1, "2c", "a"))
        .job("other", |job| job.running(1, "2c", "b"))
        .job("big", |job| job.pending(1, "4c"))
        .build();
    let victim = task_named(&cluster, "mover-0");
    let savepoint = cluster.savepoint();
    cluster.evict(victim).expect("it runs");
    cluster.keep_since(savepoint);
    (cluster, victim)
}

fn keep_room(cluster: &mut ClusterState, victim: TaskId, node: &str) {
    let (job, shape) = (cluster.task(victim).job, cluster.task(victim).shape);
    let node = cluster.find_node(node).expect("a node");
    let savepoint = cluster.savepoint();
    cluster.reserve(Reservation { job, shape, node, until: Time(1) }).expect("there is room");
    cluster.keep_since(savepoint);
}

fn certificate(beneficiary: &str, destination: Option<&str>, cause: Option<Cause>) -> EvictionCertificate {
    EvictionCertificate {
        volcano_votes: false,
        action: "test".to_owned(),
        beneficiary: beneficiary.to_owned(),
        placements: Arc::new([]),
        node: "a".into(),
        destination: destination.map(Name::from),
        cause,
        grace_seconds: None,
        shares: Vec::new(),
    }
}

fn complaints(cluster: &ClusterState, decisions: &[Decision]) -> String {
    let plugins = PluginSet::build(&Policy::default(), &Registry::default());
    crate::broken(cluster, &plugins, decisions).join("\n")
}

/// What is said of a move to `b`, with what is done before.
fn of_a_move(controlled: bool, prepare: impl FnOnce(&mut ClusterState, TaskId)) -> String {
    let (mut cluster, victim) = scene(controlled);
    prepare(&mut cluster, victim);
    let (big, node) = (task_named(&cluster, "big-0"), cluster.find_node("a").expect("a node"));
    cluster.set_nominations(&[(big, node)]);
    let placements = Arc::new([(PodRef::of(&cluster, big), Name::from("a"))]);
    let certificate = EvictionCertificate { placements, ..certificate("default/big", Some("b"), None) };
    complaints(&cluster, &[Decision::Evict(victim, certificate)])
}

#[test]
fn a_move_needs_an_owner_and_room_that_is_kept_and_free() {
    assert_eq!(of_a_move(true, |cluster, victim| keep_room(cluster, victim, "b")), "");
    let unowned = of_a_move(false, |cluster, victim| keep_room(cluster, victim, "b"));
    assert!(unowned.contains("nobody makes it again"), "{unowned}");
    let unkept = of_a_move(true, |_, _| {});
    assert!(unkept.contains("no room is kept for it there"), "{unkept}");
    // What is kept is promised room, which may be one that another pod still has to leave.
    let taken = of_a_move(true, |cluster, victim| {
        let (other, savepoint) = (task_named(cluster, "other-0"), cluster.savepoint());
        cluster.evict(other).expect("it runs");
        cluster.keep_since(savepoint);
        keep_room(cluster, victim, "b");
        keep_room(cluster, victim, "b");
    });
    assert!(taken.contains("cpu is not free there"), "{taken}");
}

#[test]
fn an_eviction_for_nobody_needs_a_cause() {
    let (cluster, victim) = scene(true);
    let said = |cause| complaints(&cluster, &[Decision::Evict(victim, certificate("", None, cause))]);
    let cause = |why: &str| Some(Cause { plugin: "tdm".to_owned(), why: why.to_owned() });
    assert_eq!(said(cause("its hours are over")), "");
    assert!(said(None).contains("nobody gets the room"));
    assert!(said(cause("")).contains("the cause is not said"));
}

#[test]
fn nobody_goes_twice() {
    let (cluster, victim) = scene(true);
    let cause = |why: &str| Some(Cause { plugin: "tdm".to_owned(), why: why.to_owned() });
    let decision = |why| Decision::Evict(victim, certificate("", None, cause(why)));
    let said = complaints(&cluster, &[decision("one"), decision("two")]);
    assert!(said.contains("evicts default/mover-0 twice"), "{said}");
}
