use std::collections::BTreeMap;

use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{Effect, ExtensionPoint, Value};
use krafla_model::{Event, Name, Time};
use krafla_testkit::{JobScene, Scene};

use super::*;

/// An engine with kube-scheduler's default profile and Coscheduling at these points.
fn engine(points: &[ExtensionPoint], arguments: &[(&str, i64)]) -> Engine {
    let registry = crate::testing::registry();
    let mut profile = ProfilePolicy::default_profile(&registry);
    for point in points {
        let members = profile.points.entry(*point).or_default();
        if *point == ExtensionPoint::QueueSort {
            members.clear();
        }
        members.push((Coscheduling::NAME.to_owned(), 1));
    }
    let arguments: BTreeMap<String, Value> =
        arguments.iter().map(|(key, n)| ((*key).to_owned(), Value::Integer(*n))).collect();
    profile.arguments.insert(Coscheduling::NAME.to_owned(), Value::Map(arguments));
    let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
    Engine::with_policy(registry, Options { profile_only: true, ..Options::default() }, policy)
}

const ALL: &[ExtensionPoint] = &[
    ExtensionPoint::QueueSort,
    ExtensionPoint::PreFilter,
    ExtensionPoint::PostFilter,
    ExtensionPoint::Reserve,
    ExtensionPoint::Permit,
];

fn inputs(scene: &Scene) -> Vec<Input> {
    scene.events().into_iter().map(Input::Event).collect()
}

/// Pods that a step binds, in order.
fn binds(engine: &mut Engine, now: i64, inputs: Vec<Input>) -> Vec<String> {
    let step = engine.step(Time(now), inputs);
    let bind = |effect: Effect| match effect {
        Effect::Bind { pod, node, .. } => Some(format!("{} -> {node}", pod.name)),
        _ => None,
    };
    step.effects.into_iter().filter_map(bind).collect()
}

fn gang(min: u32) -> impl Fn(JobScene) -> JobScene {
    move |job| job.min(min)
}

fn gone(uid: &str) -> Vec<Input> {
    vec![Input::Event(Event::PodGone(Name::from(uid)))]
}

//
#[test]
fn a_gang_that_fits_is_bound_together() {
    let scene = ["a", "b", "c"].into_iter().fold(Scene::new(), |scene, node| scene.node(node, "4c"));
    let scene = scene.job("g", |job| gang(3)(job).pending(3, "4c"));
    let bound = binds(&mut engine(ALL, &[]), 0, inputs(&scene));
    assert_eq!(bound.len(), 3, "{bound:?}");
}

//
#[test]
fn a_gang_that_does_not_fit_holds_nothing_after_its_time_and_is_never_partly_bound() {
    let scene = Scene::new().node("a", "4c").node("b", "4c").job("g", |job| gang(3)(job).pending(3, "4c"));
    // Only at Permit, as people write it: nobody rejects those that wait before their time is over.
    let mut engine = engine(&[ExtensionPoint::Permit], &[("permitWaitingTimeSeconds", 30)]);
    assert!(binds(&mut engine, 0, inputs(&scene)).is_empty());
    assert_eq!(engine.configuration().plugins().waiting().len(), 2);
    assert_eq!(engine.wakes_at(), Time(30_000), "the timer of Permit");
    assert!(binds(&mut engine, 29_999, Vec::new()).is_empty());
    assert_eq!(engine.configuration().plugins().waiting().len(), 2);
    assert!(binds(&mut engine, 30_000, Vec::new()).is_empty());
    assert_eq!(engine.configuration().plugins().waiting().len(), 0);
    assert!(engine.cluster().totals().used.is_zero(), "everything is given back");
}

#[test]
fn with_all_its_points_a_member_without_a_node_rejects_those_that_wait() {
    let scene = Scene::new().node("a", "4c").node("b", "4c").job("g", |job| gang(3)(job).pending(3, "4c"));
    let mut engine = engine(ALL, &[("podGroupRejectPercentage", 10)]);
    assert!(binds(&mut engine, 0, inputs(&scene)).is_empty());
    assert!(engine.configuration().plugins().waiting().is_empty());
    assert!(engine.cluster().totals().used.is_zero());
}

//
#[test]
fn a_missing_member_completes_the_gang_and_further_ones_do_not_wait() {
    let nodes = || ["a", "b", "c", "d"].into_iter().fold(Scene::new(), |scene, node| scene.node(node, "4c"));
    let scene = nodes().job("g", |job| gang(3)(job).pending(2, "4c"));
    let mut engine = engine(&[ExtensionPoint::Permit], &[]);
    assert!(binds(&mut engine, 0, inputs(&scene)).is_empty(), "two of three wait");
    let whole = nodes().job("g", |job| gang(3)(job).pending(4, "4c"));
    let bound = binds(&mut engine, 5_000, inputs(&whole));
    assert_eq!(bound.len(), 4, "{bound:?}");
}

//
#[test]
fn a_member_that_is_deleted_while_it_waits_gives_its_room_back() {
    let nodes = || ["a", "b", "c"].into_iter().fold(Scene::new(), |scene, node| scene.node(node, "4c"));
    let scene = nodes().job("g", |job| gang(3)(job).pending(2, "4c"));
    let mut engine = engine(&[ExtensionPoint::Permit], &[]);
    binds(&mut engine, 0, inputs(&scene));
    let uid = engine.configuration().plugins().waiting().iter().next().expect("one waits").uid.clone();
    binds(&mut engine, 1_000, gone(&uid));
    assert_eq!(engine.configuration().plugins().waiting().len(), 1);
    assert_eq!(engine.cluster().totals().used.get(krafla_model::ResourceId::CPU), 4_000);
}

//
#[test]
fn after_a_rejection_the_group_rests_if_it_is_told_to() {
    let scene = Scene::new().node("a", "4c").node("b", "4c").job("g", |job| gang(3)(job).pending(3, "4c"));
    let mut engine = engine(ALL, &[("podGroupBackoffSeconds", 3)]);
    binds(&mut engine, 0, inputs(&scene));
    let group = engine.cluster().jobs().next().expect("the group").1;
    assert_eq!((group.retry_at, group.failed_at), (Time(3_000), Some(Time(0))));
}

//
#[test]
fn a_refused_bind_sends_those_that_wait_back() {
    let nodes = || ["a", "b", "c"].into_iter().fold(Scene::new(), |scene, node| scene.node(node, "4c"));
    let scene = nodes().job("g", |job| gang(2)(job).pending(2, "4c"));
    let mut engine = engine(&[ExtensionPoint::Permit, ExtensionPoint::Reserve], &[]);
    assert_eq!(binds(&mut engine, 0, inputs(&scene)).len(), 2);
    let pod = engine.cluster().tasks().next().expect("a pod").1.uid.clone();
    let refused = Input::Outcome(Outcome::BindRefused { pod, message: "no".to_owned() });
    binds(&mut engine, 100, vec![refused]);
    assert!(engine.cluster().jobs().next().expect("the group").1.failed_at.is_some());
}

//
#[test]
fn arguments_and_what_is_wrong_with_them() {
    let read = |pairs: &[(&str, Value)]| {
        let fields = pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Coscheduling::from_args(&Value::Map(fields)).err().map(|problems| problems[0].path.clone())
    };
    let right = [("permitWaitingTimeSeconds", Value::Integer(30)), ("podGroupBackoffSeconds", Value::Integer(3))];
    assert_eq!(read(&right), None);
    assert_eq!(read(&[("podGroupRejectPercentage", Value::Integer(101))]).as_deref(), Some("podGroupRejectPercentage"));
    assert_eq!(read(&[("permitWaitingTimeSeconds", Value::Integer(-1))]).as_deref(), Some("permitWaitingTimeSeconds"));
    assert_eq!(read(&[("permitWaitingTime", Value::Integer(1))]).as_deref(), Some("permitWaitingTime"));
}

//
#[test]
fn a_group_that_goes_with_its_last_pod_is_not_remembered() {
    let scene = Scene::new().node("a", "4c").job("g", |job| gang(2)(job).pending(2, "3c"));
    let mut engine = engine(&[ExtensionPoint::Permit, ExtensionPoint::Reserve], &[]);
    binds(&mut engine, 0, inputs(&scene));
    assert_eq!(engine.configuration().plugins().waiting().len(), 1);
    let pods: Vec<Name> = engine.cluster().tasks().map(|(_, task)| task.uid.clone()).collect();
    let mut all: Vec<Input> = pods.iter().flat_map(|uid| gone(uid)).collect();
    all.push(Input::Event(Event::PodGroupGone { namespace: "default".into(), name: "g".into() }));
    binds(&mut engine, 1_000, all);
    assert_eq!((engine.panics(), engine.cluster().n_jobs()), (0, 0));
}
