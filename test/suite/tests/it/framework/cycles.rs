//! The scheduling cycle and the binding cycle, hook by hook.

use krafla_engine::{Input, Outcome};
use krafla_framework::{CycleState, Effect, ExtensionPoint};
use krafla_model::{ResourceId, Time};
use krafla_testkit::Scene;

use super::traced::{Answer, binds, calls, engine, hooks, said, script, tell};

fn two_nodes(pods: u32) -> Scene {
    Scene::new().node("a", "4c").node("b", "4c").job("p", |job| job.pending(pods, "1c"))
}

//
#[test]
fn the_hooks_of_a_pod_in_their_order() {
    let mut engine = engine();
    let step = tell(&mut engine, 0, &two_nodes(1));
    assert_eq!(binds(&step).len(), 1);
    let cycle = calls();
    assert_eq!(
        hooks(&cycle),
        ["PreEnqueue", "QueueSort", "PreFilter", "Filter", "PreScore", "Score", "NormalizeScore", "Reserve", "Permit"]
    );
    // The way to the bind is the shell's; what becomes of it is told.
    let uid = engine.cluster().tasks().next().map(|(_, task)| task.uid.clone()).expect("a pod");
    engine.step(Time(5), [Input::Outcome(Outcome::Bound { pod: uid })]);
    assert_eq!(hooks(&calls()), ["PostBind"]);
}

//
#[test]
fn one_pod_after_another_and_nothing_leaves_before_permit() {
    let mut engine = engine();
    script("First", ExtensionPoint::Permit, Some(Answer::Wait(60_000)));
    let step = tell(&mut engine, 0, &two_nodes(2));
    assert!(!step.effects.iter().any(|effect| matches!(effect, Effect::Bind { .. } | Effect::Evict { .. })));
    let calls = calls();
    let of = |pod: &str| {
        let is_its = |call: &&String| call.contains(pod) && !call.contains("Enqueue") && !call.contains("QueueSort");
        calls.iter().enumerate().filter(move |(_, call)| is_its(call)).map(|(i, _)| i).collect::<Vec<_>>()
    };
    assert!(of("p-0").last() < of("p-1").first(), "{calls:?}");
}

//
#[test]
fn an_error_of_pre_filter_ends_the_cycle() {
    let mut engine = engine();
    script("First", ExtensionPoint::PreFilter, Some(Answer::Fail));
    let step = tell(&mut engine, 0, &two_nodes(1));
    assert!(said(&step).contains("running PreFilter plugin \"First\": broken"), "{}", said(&step));
    assert_eq!(hooks(&calls()), ["PreEnqueue", "QueueSort", "PreFilter"]);
}

//
#[test]
fn what_pre_filter_and_pre_score_leave_is_there_for_each_node() {
    let mut engine = engine();
    tell(&mut engine, 0, &two_nodes(1));
    let calls = calls();
    let of = |hook: &str| {
        calls.iter().filter(|call| call.starts_with(&format!("First {hook} "))).map(String::as_str).collect::<Vec<_>>()
    };
    assert_eq!(of("PreFilter").len(), 1);
    let by = "left by PreFilter";
    assert_eq!(of("Filter"), [format!("First Filter p-0 a {by}"), format!("First Filter p-0 b {by}")]);
    assert_eq!(of("PreScore").len(), 1);
    let by = "left by PreScore";
    assert_eq!(of("Score"), [format!("First Score p-0 a {by}"), format!("First Score p-0 b {by}")]);
}

//
#[test]
fn filters_are_asked_in_their_order_up_to_the_first_objection() {
    let mut engine = engine();
    script("First", ExtensionPoint::Filter, Some(Answer::Refuse));
    let step = tell(&mut engine, 0, &two_nodes(1));
    assert!(said(&step).contains("0/2 nodes are available: 2 not here"), "{}", said(&step));
    let calls = calls();
    assert!(calls.iter().any(|call| call.starts_with("First Filter")));
    assert!(!calls.iter().any(|call| call.starts_with("Second Filter")), "{calls:?}");
}

//
#[test]
fn post_filters_are_asked_only_if_no_node_fits_and_until_one_helps() {
    let mut engine = engine();
    tell(&mut engine, 0, &two_nodes(1));
    assert!(!hooks(&calls()).contains(&"PostFilter"));

    let post_filters = |first: Option<Answer>| {
        let mut engine = super::traced::engine();
        script("Second", ExtensionPoint::Filter, Some(Answer::Refuse));
        script("First", ExtensionPoint::PostFilter, first);
        tell(&mut engine, 0, &two_nodes(1));
        calls().into_iter().filter(|call| call.contains("PostFilter")).collect::<Vec<_>>()
    };
    assert_eq!(post_filters(None), ["First PostFilter p-0", "Second PostFilter p-0"]);
    assert_eq!(post_filters(Some(Answer::Refuse)), ["First PostFilter p-0"], "it has nominated a node");
}

//
#[test]
fn an_error_of_pre_score_ends_the_cycle() {
    let mut engine = engine();
    script("Second", ExtensionPoint::PreScore, Some(Answer::Fail));
    let step = tell(&mut engine, 0, &two_nodes(1));
    assert!(binds(&step).is_empty());
    assert!(said(&step).contains("running PreScore plugin \"Second\": broken"), "{}", said(&step));
    assert!(!hooks(&calls()).contains(&"Reserve"));
}

//
#[test]
fn a_score_out_of_range_fails_the_attempt_by_the_plugins_name() {
    for (score, fits) in [(0.0, true), (100.0, true), (-1.0, false), (101.0, false)] {
        let mut engine = engine();
        script("First", ExtensionPoint::Score, Some(Answer::Score(score)));
        let step = tell(&mut engine, 0, &two_nodes(1));
        assert_eq!(binds(&step).len(), usize::from(fits), "{score}");
        let why = format!("plugin First returned the score {score}, which is not between 0 and 100");
        assert_eq!(said(&step).contains(&why), !fits, "{}", said(&step));
    }
}

//
#[test]
fn scores_are_normalized_once_for_each_plugin() {
    let mut engine = engine();
    tell(&mut engine, 0, &two_nodes(1));
    let calls: Vec<String> = calls().into_iter().filter(|call| call.contains("Normalize")).collect();
    assert_eq!(calls, ["First NormalizeScore of 2", "Second NormalizeScore of 2"]);
}

//
#[test]
fn the_same_pods_go_to_the_same_nodes() {
    let decided = || {
        let mut engine = engine();
        binds(&tell(&mut engine, 0, &two_nodes(8)))
    };
    assert_eq!(decided().len(), 8);
    assert_eq!(decided(), decided());
}

//
#[test]
fn what_is_reserved_nobody_else_gets() {
    let scene = (0..100).fold(Scene::new(), |scene, i| scene.node(&format!("n{i:03}"), "10c"));
    let mut engine = engine();
    let mut bound = binds(&tell(&mut engine, 0, &scene.job("p", |job| job.pending(1_001, "1c"))));
    for now in 1..10 {
        bound.extend(binds(&engine.step(Time(now), []))); // a session tries so many at once
    }
    calls();
    assert_eq!(bound.len(), 1_000, "1,000 binds on their way, and nothing left for the last");
    let cluster = engine.cluster();
    for &node in cluster.nodes() {
        assert_eq!(cluster.node(node).books().used.get(ResourceId::CPU), 10_000);
    }
}

//
#[test]
fn a_refused_reserve_is_undone_by_all_in_the_opposite_order() {
    let mut engine = engine();
    script("Second", ExtensionPoint::Reserve, Some(Answer::Refuse));
    let step = tell(&mut engine, 0, &two_nodes(1));
    assert!(binds(&step).is_empty());
    let hooks: Vec<String> = calls().into_iter().filter(|call| call.contains("eserve")).collect();
    let [first, second, third, fourth] = ["First Reserve", "Second Reserve", "Second Unreserve", "First Unreserve"];
    assert_eq!(hooks.len(), 4);
    for (hook, want) in hooks.iter().zip([first, second, third, fourth]) {
        assert!(hook.starts_with(want), "{hooks:?}");
    }
    assert!(engine.cluster().totals().used.is_zero());
}

//
#[test]
fn what_nobody_left_is_not_found() {
    let mut state = CycleState::default();
    assert_eq!(state.get::<u32>(), None);
    state.put(7_u32);
    assert_eq!(state.get::<u32>(), Some(&7));
    assert_eq!(state.delete::<u32>(), Some(7));
    assert_eq!(state.delete::<u32>(), None);
}

//
#[test]
fn permit_approves_denies_or_waits() {
    let bound = |answer| {
        let mut engine = engine();
        script("First", ExtensionPoint::Permit, answer);
        let step = tell(&mut engine, 0, &two_nodes(1));
        (binds(&step).len(), engine.configuration().plugins().waiting().len(), engine.cluster().totals().used.is_zero())
    };
    assert_eq!(bound(None), (1, 0, false));
    assert_eq!(bound(Some(Answer::Refuse)), (0, 0, true), "it is back in the queue");
    assert_eq!(bound(Some(Answer::Wait(30_000))), (0, 1, false), "it keeps its node meanwhile");
}

//
#[test]
fn binds_are_not_waited_for_and_only_a_bound_pod_has_post_bind() {
    let mut engine = engine();
    assert_eq!(binds(&tell(&mut engine, 0, &two_nodes(1))).len(), 1);
    let more = Scene::new().job("q", |job| job.pending(1, "1c"));
    assert_eq!(binds(&tell(&mut engine, 1, &more)).len(), 1, "the first bind has no answer yet");
    let uid = |name: &str| {
        let cluster = engine.cluster();
        cluster.tasks().find(|(_, task)| *task.name == *name).map(|(_, task)| task.uid.clone()).expect("it is there")
    };
    let (bound, refused) = (uid("p-0"), uid("q-0"));
    calls();
    engine.step(Time(2), [Input::Outcome(Outcome::Bound { pod: bound })]);
    assert_eq!(hooks(&calls()), ["PostBind"]);
    engine.step(Time(3), [Input::Outcome(Outcome::BindRefused { pod: refused, message: "gone".into() })]);
    let calls = calls();
    assert!(calls.iter().any(|call| call.starts_with("First Unreserve q-0")), "{calls:?}");
    assert!(!calls.iter().any(|call| call.contains("PostBind")), "{calls:?}");
}
