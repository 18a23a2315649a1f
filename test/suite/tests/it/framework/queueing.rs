//! The queue: who may enter it, and who is next.

use krafla_framework::ExtensionPoint;
use krafla_model::Time;
use krafla_testkit::Scene;

use super::traced::{Answer, binds, calls, engine, hooks, profile, script, tell, traced_registry};

//
#[test]
fn a_pod_enters_once_every_pre_enqueue_agrees() {
    let mut engine = engine();
    script("First", ExtensionPoint::PreEnqueue, Some(Answer::Refuse));
    let scene = Scene::new().node("a", "4c").job("p", |job| job.pending(1, "1c"));
    assert!(binds(&tell(&mut engine, 0, &scene)).is_empty());
    assert_eq!(hooks(&calls()), ["PreEnqueue"], "it is never tried");
    script("First", ExtensionPoint::PreEnqueue, None);
    script("Second", ExtensionPoint::PreEnqueue, Some(Answer::Refuse));
    let another = Scene::new().node("b", "4c");
    assert!(binds(&tell(&mut engine, 1, &another)).is_empty());
    script("Second", ExtensionPoint::PreEnqueue, None);
    assert_eq!(binds(&tell(&mut engine, 2, &Scene::new().node("c", "4c"))).len(), 1);
}

//
#[test]
fn the_more_important_first_and_among_equals_who_came_first() {
    let mut engine = engine();
    let room = Scene::new().node("a", "1c");
    let pod =
        |name: &str, priority: i32| Scene::new().job(name, |job| job.task_priority(priority).pending(1, "1c")).events();
    let arrive = |engine: &mut krafla_engine::Engine, now, events: Vec<krafla_model::Event>| {
        engine.step(Time(now), events.into_iter().map(krafla_engine::Input::Event))
    };
    for (now, name, priority) in [(0, "early", 0), (1, "late", 0), (2, "high", 1_000_000)] {
        arrive(&mut engine, now, pod(name, priority));
    }
    calls();
    let step = tell(&mut engine, 60_000, &room);
    assert_eq!(binds(&step), ["high-0 -> a"]);
    let mut order: Vec<String> = calls();
    order.retain(|call| call.starts_with("First PreFilter"));
    assert_eq!(order, ["First PreFilter high-0", "First PreFilter early-0", "First PreFilter late-0"]);
}

// the configuration compiler refuses none and two; see src/framework/src/conf/kube/tests/validation.rs.
#[test]
fn one_plugin_sorts_the_queue() {
    let registry = traced_registry();
    let profile = profile(&registry, &["First", "Second"]);
    assert_eq!(profile.points[&ExtensionPoint::QueueSort].len(), 1);
    let mut engine = engine();
    tell(&mut engine, 0, &Scene::new().node("a", "4c").job("p", |job| job.pending(2, "1c")));
    assert!(!calls().iter().any(|call| call.starts_with("Second QueueSort")));
}
