use krafla_engine::{Engine, Input, Options};
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{Effect, ExtensionPoint};
use krafla_model::{ElasticQuotaSpec, Event, Time};
use krafla_testkit::{JobScene, Scene, amounts};

/// A quota for the pods of a namespace.
fn quota(namespace: &str, min: &str, max: &str) -> Event {
    Event::ElasticQuota(ElasticQuotaSpec {
        namespace: namespace.into(),
        name: "quota".into(),
        min: amounts(min),
        max: amounts(max),
    })
}

fn in_namespace(namespace: &'static str, priority: i32) -> impl Fn(JobScene) -> JobScene {
    move |job| job.namespace(namespace).task_priority(priority)
}

/// An engine with kube-scheduler's default profile and this plugin in place of DefaultPreemption.
fn engine() -> Engine {
    let registry = crate::testing::registry();
    let mut profile = ProfilePolicy::default_profile(&registry);
    let this = ("CapacityScheduling".to_owned(), 1);
    profile.points.entry(ExtensionPoint::PreFilter).or_default().push(this.clone());
    profile.points.entry(ExtensionPoint::Reserve).or_default().push(this.clone());
    profile.points.insert(ExtensionPoint::PostFilter, vec![this]);
    let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
    Engine::with_policy(registry, Options { profile_only: true, events: true, ..Options::default() }, policy)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Decided {
    bound: Vec<String>,
    evicted: Vec<String>,
    said: String,
}

fn step(engine: &mut Engine, now: i64, inputs: impl IntoIterator<Item = Input>) -> Decided {
    let mut decided = Decided::default();
    for effect in engine.step(Time(now), inputs).effects {
        match effect {
            Effect::Bind { pod, .. } => decided.bound.push(pod.name.to_string()),
            Effect::Evict { pod, .. } => decided.evicted.push(pod.name.to_string()),
            Effect::Event { message, .. } => decided.said += &message,
            _ => {}
        }
    }
    decided
}

fn decide(scene: &Scene) -> Decided {
    step(&mut engine(), 0, scene.events().into_iter().map(Input::Event))
}

#[test]
fn a_namespace_borrows_up_to_its_maximum() {
    let scene = Scene::new()
        .node("n", "20c")
        .event(quota("a", "2c", "4c"))
        .event(quota("b", "4c", ""))
        .job("a", |job| in_namespace("a", 0)(job).pending(6, "1c"));
    let decided = decide(&scene);
    assert_eq!(decided.bound.len(), 4, "{decided:?}");
    assert!(decided.said.contains("ElasticQuota of a allows at most 4 of cpu, it would be 5"), "{}", decided.said);
}

#[test]
fn all_together_hold_no_more_than_they_are_sure_of() {
    let scene = Scene::new()
        .node("n", "20c")
        .event(quota("a", "2c", ""))
        .event(quota("b", "3c", ""))
        .job("a", |job| in_namespace("a", 0)(job).pending(6, "1c"))
        .job("free", |job| in_namespace("without", 0)(job).pending(3, "1c"));
    let decided = decide(&scene);
    let of = |name: &str| decided.bound.iter().filter(|pod| pod.starts_with(name)).count();
    assert_eq!((of("a"), of("free")), (5, 3), "{decided:?}");
    assert!(
        decided.said.contains("the ElasticQuotas together are sure of 5 of cpu, it would be 6"),
        "{}",
        decided.said
    );
}

#[test]
fn what_a_quota_does_not_name_it_is_not_sure_of() {
    let scene = Scene::new()
        .node("n", "4c1Gi")
        .event(quota("a", "2c", ""))
        .job("a", |job| in_namespace("a", 0)(job).pending(1, "1c1Gi"));
    assert!(decide(&scene).said.contains("sure of 0 of memory"), "{:?}", decide(&scene));
}

#[test]
fn who_is_within_its_minimum_takes_back_what_others_borrow_whatever_their_priority() {
    let scene = |asks: &'static str| {
        Scene::new()
            .node("n", "4c")
            .event(quota("a", "2c", "4c"))
            .event(quota("b", "2c", "4c"))
            .job("low", |job| in_namespace("a", 1)(job).running(2, "1c", "n"))
            .job("high", |job| in_namespace("a", 100)(job).running(2, "1c", "n"))
            .job("b", |job| in_namespace("b", 0)(job).pending(1, asks))
    };
    assert_eq!(decide(&scene("1c")).evicted.len(), 1);
    assert!(decide(&scene("1c")).evicted[0].starts_with("low"), "the least important of those who borrow");
    // Once two are gone, the others are within what their namespace is sure of.
    assert_eq!(decide(&scene("2c")).evicted.len(), 2);
    assert!(decide(&scene("3c")).evicted.is_empty(), "it would borrow itself, and has nobody of its own");
}

#[test]
fn no_more_go_than_come() {
    let scene = Scene::new()
        .node("n", "8c")
        .event(quota("a", "2c", "6c"))
        .event(quota("b", "6c", "8c"))
        .job("a", |job| in_namespace("a", 9)(job).running(6, "1c", "n"))
        .job("b", |job| in_namespace("b", 0)(job).pending(6, "1c"));
    let decided = decide(&scene);
    assert_eq!((decided.bound.len(), decided.evicted.len()), (2, 4), "{decided:?}");
}

#[test]
fn who_borrows_takes_only_from_the_less_important_of_its_own() {
    let scene = |priority| {
        Scene::new()
            .node("n", "4c")
            .event(quota("a", "1c", "4c"))
            .event(quota("b", "3c", "4c"))
            .job("own", |job| in_namespace("a", 5)(job).running(2, "1c", "n"))
            .job("theirs", |job| in_namespace("b", 0)(job).running(2, "1c", "n"))
            .job("new", |job| in_namespace("a", priority)(job).pending(1, "1c"))
    };
    let evicted = decide(&scene(10)).evicted;
    assert_eq!(evicted.len(), 1);
    assert!(evicted[0].starts_with("own"), "{evicted:?}");
    assert!(decide(&scene(5)).evicted.is_empty());
}

#[test]
fn pods_without_a_quota_keep_to_themselves() {
    let scene = Scene::new()
        .node("n", "2c")
        .event(quota("a", "1c", "4c"))
        .job("a", |job| in_namespace("a", 0)(job).running(1, "1c", "n"))
        .job("free", |job| in_namespace("without", 0)(job).running(1, "1c", "n"))
        .job("new", |job| in_namespace("without", 9)(job).pending(1, "1c"));
    let evicted = decide(&scene).evicted;
    assert_eq!(evicted.len(), 1);
    assert!(evicted[0].starts_with("free"), "{evicted:?}");
}

#[test]
fn a_larger_quota_lets_a_waiting_pod_in_at_once() {
    let scene = Scene::new()
        .node("n", "4c")
        .event(quota("a", "1c", "1c"))
        .job("a", |job| in_namespace("a", 0)(job).pending(2, "1c"));
    let mut engine = engine();
    let first = step(&mut engine, 0, scene.events().into_iter().map(Input::Event));
    assert_eq!(first.bound.len(), 1);
    let later = step(&mut engine, 60_000, [Input::Event(quota("a", "2c", "2c"))]);
    assert_eq!(later.bound.len(), 1, "{later:?}");
}
