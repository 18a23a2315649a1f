//! What a gang plugin of one's own has to get right, by the numbers of the acceptance list.

use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{Effect, ExtensionPoint};
use krafla_model::{Event, Name, ResourceId, Time};
use krafla_out_of_tree::custom_gang::{GANG, MIN_AVAILABLE};
use krafla_testkit::{JobScene, Scene};

fn engine() -> Engine {
    let mut registry = krafla_plugins::registry(krafla_actions::all());
    krafla_out_of_tree::extend(&mut registry);
    let mut profile = ProfilePolicy::default_profile(&registry);
    for point in [ExtensionPoint::Reserve, ExtensionPoint::Permit] {
        profile.points.entry(point).or_default().push(("CustomGangScheduling".to_owned(), 1));
    }
    let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
    Engine::with_policy(registry, Options { profile_only: true, ..Options::default() }, policy)
}

fn nodes(n: usize) -> Scene {
    (0..n).fold(Scene::new(), |scene, i| scene.node(&format!("n{i}"), "4c"))
}

fn member(gang: &'static str, min: &'static str) -> impl Fn(JobScene) -> JobScene {
    move |job| {
        job.shape(|shape| {
            shape.labels.set(GANG.into(), gang.into());
            if !min.is_empty() {
                shape.annotations.set(MIN_AVAILABLE.into(), min.into());
            }
        })
    }
}

fn binds(engine: &mut Engine, now: i64, inputs: Vec<Input>) -> usize {
    let step = engine.step(Time(now), inputs);
    step.effects.iter().filter(|effect| matches!(effect, Effect::Bind { .. })).count()
}

fn told(scene: &Scene) -> Vec<Input> {
    scene.events().into_iter().map(Input::Event).collect()
}

fn waiting(engine: &Engine) -> usize {
    engine.configuration().plugins().waiting().len()
}

fn used(engine: &Engine) -> i64 {
    engine.cluster().totals().used.get(ResourceId::CPU)
}

//
#[test]
fn a170_the_plugin_is_short() {
    let lines = include_str!("../src/custom_gang.rs").lines().count();
    assert!(lines < 150, "{lines} lines");
}

#[test]
fn a171_a_pod_without_the_label_does_not_wait() {
    let scene = nodes(1).job("p", |job| job.pending(1, "4c"));
    assert_eq!(binds(&mut engine(), 0, told(&scene)), 1);
}

#[test]
fn a172_and_a173_members_wait_for_the_last_and_go_together() {
    let mut engine = engine();
    let three = nodes(4).job("g", |job| member("g", "4")(job).pending(3, "4c"));
    assert_eq!(binds(&mut engine, 0, told(&three)), 0);
    assert_eq!(waiting(&engine), 3);
    let four = nodes(4).job("g", |job| member("g", "4")(job).pending(4, "4c"));
    assert_eq!(binds(&mut engine, 1_000, told(&four)), 4);
    assert_eq!(waiting(&engine), 0);
}

#[test]
fn a174_one_that_falls_out_takes_the_others_with_it() {
    let mut engine = engine();
    let three = nodes(4).job("g", |job| member("g", "4")(job).pending(3, "4c"));
    binds(&mut engine, 0, told(&three));
    let uid: Name = engine.configuration().plugins().waiting().iter().next().expect("three wait").uid.clone();
    binds(&mut engine, 1_000, vec![Input::Event(Event::PodGone(uid))]);
    assert_eq!(waiting(&engine), 0);
    assert_eq!(used(&engine), 0);
}

#[test]
fn a175_and_a176_without_a_quorum_everything_is_free_again_after_a_minute() {
    let mut engine = engine();
    let scene = nodes(3).job("g", |job| member("g", "4")(job).pending(4, "4c"));
    assert_eq!(binds(&mut engine, 0, told(&scene)), 0);
    assert_eq!((waiting(&engine), used(&engine)), (3, 12_000));
    assert_eq!(engine.wakes_at(), Time(60_000));
    assert_eq!(binds(&mut engine, 60_000, Vec::new()), 0);
    assert_eq!((waiting(&engine), used(&engine)), (0, 0));
}

#[test]
fn a177_namespaces_further_members_retries_and_unreadable_minimums() {
    // The same gang name, and the same pod names, in two namespaces: two gangs.
    let mut engine_of_two = engine();
    let two = nodes(4)
        .job("g", |job| member("g", "3")(job).pending(2, "4c"))
        .job("h", |job| member("g", "3")(job.namespace("other")).pending(2, "4c"));
    assert_eq!(binds(&mut engine_of_two, 0, told(&two)), 0, "four pods, and neither gang has three");
    // A member beyond the quorum does not wait for a new one.
    let mut late = engine();
    let first = nodes(4).job("g", |job| member("g", "3")(job).pending(3, "4c"));
    assert_eq!(binds(&mut late, 0, told(&first)), 3);
    let more = nodes(4).job("g", |job| member("g", "3")(job).pending(4, "4c"));
    assert_eq!(binds(&mut late, 1_000, told(&more)), 1);
    // A member that is tried again counts once.
    let mut again = engine();
    let two_of_three = nodes(4).job("g", |job| member("g", "3")(job).pending(2, "4c"));
    binds(&mut again, 0, told(&two_of_three));
    binds(&mut again, 60_000, Vec::new());
    binds(&mut again, 400_000, Vec::new());
    assert!(waiting(&again) <= 2 && again.cluster().totals().used.get(ResourceId::CPU) <= 8_000);
    // An annotation that is missing, or no number, is told, and nobody waits for ever.
    for min in ["", "four"] {
        let mut engine = engine();
        let scene = nodes(1).job("g", |job| member("g", min)(job).pending(1, "4c"));
        assert_eq!((binds(&mut engine, 0, told(&scene)), waiting(&engine), used(&engine)), (0, 0, 0));
    }
}

#[test]
fn a178_a_refused_bind_takes_its_waiting_gang_along_and_reserve_keeps_nothing() {
    let mut engine = engine();
    let scene = nodes(3).job("g", |job| member("g", "3")(job).pending(3, "4c"));
    assert_eq!(binds(&mut engine, 0, told(&scene)), 3);
    let pod = engine.cluster().tasks().next().expect("a pod").1.uid.clone();
    binds(&mut engine, 10, vec![Input::Outcome(Outcome::BindRefused { pod, message: "no".to_owned() })]);
    assert_eq!(used(&engine), 8_000, "the other two are on their way");
}
