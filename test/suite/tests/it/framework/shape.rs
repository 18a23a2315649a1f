//! What the framework offers, and what a profile may put where.

use std::collections::BTreeMap;

use krafla_framework::conf::compile::compile;
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{CycleState, ExtensionPoint, PluginSet, Profile, WaitingPods};
use krafla_model::TaskId;
use krafla_testkit::Scene;

use super::traced::{binds, calls, engine_of, hooks, profile, tell, traced_registry};

/// One profile of a file in kube-scheduler's form.
fn compiled(profile: &str) -> ProfilePolicy {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: \
         default-scheduler\n{profile}"
    );
    let compiled = compile(&text, "test", &traced_registry().catalogue());
    let said: Vec<String> = compiled.problems.iter().map(|problem| problem.render(&text)).collect();
    compiled.policy.unwrap_or_else(|| panic!("{}", said.join("\n"))).profiles.remove(0)
}

fn with_profile<T>(policy: ProfilePolicy, ask: impl FnOnce(&Profile) -> T) -> T {
    let policy = Policy { profiles: vec![policy], ..Policy::default() }.one_by_one();
    let plugins = PluginSet::build(&policy, &traced_registry());
    let cluster = Scene::new().job("p", |job| job.pending(1, "1c")).build();
    let task = cluster.tasks().next().map(|(id, _)| id).expect("a pod");
    ask(plugins.profile_for(&cluster, task))
}

//
#[test]
fn every_operation_of_the_framework() {
    let registry = traced_registry();
    let policy = Policy { profiles: vec![profile(&registry, &["First", "Second"])], ..Policy::default() }.one_by_one();
    let mut plugins = PluginSet::build(&policy, &registry);
    let cluster = Scene::new().node("a", "4c").job("p", |job| job.pending(1, "1c")).build();
    let task: TaskId = cluster.tasks().next().map(|(id, _)| id).expect("a pod");
    let node = cluster.nodes()[0];
    calls();
    let at_the_door: Vec<&str> =
        plugins.profile_for(&cluster, task).plugins(ExtensionPoint::PreEnqueue).map(|plugin| plugin.name()).collect();
    assert_eq!((at_the_door.first(), at_the_door.last()), (Some(&"SchedulingGates"), Some(&"Second")));
    let mut own = Profile::default();
    assert!(own.run_pre_enqueue_plugins(&cluster, task).is_ok());
    assert!(own.run_reserve_plugins_reserve(&cluster, task, node).is_ok());
    let mut waiting = WaitingPods::default();
    assert_eq!(own.run_permit_plugins(&cluster, task, node, &mut waiting), Ok(BTreeMap::new()));
    own.run_reserve_plugins_unreserve(&cluster, task, node, &mut waiting);
    own.run_post_bind_plugins(&cluster, task, node);
    assert!(calls().is_empty(), "a profile without plugins agrees to everything");

    assert!(plugins.profile_for(&cluster, task).run_pre_enqueue_plugins(&cluster, task).is_ok());
    plugins.unreserve(&cluster, task, node);
    let (first, second) = (calls(), CycleState::default());
    assert_eq!(hooks(&first), ["PreEnqueue", "Unreserve"]);
    assert!(second.get::<u8>().is_none());
}

//
#[test]
fn what_a_profile_says_of_itself() {
    let none = "  plugins: {score: {disabled: [{name: \"*\"}]}, postFilter: {disabled: [{name: \"*\"}]}}\n";
    with_profile(compiled(none), |profile| {
        assert!(!profile.has_score_plugins() && !profile.has_post_filter_plugins() && profile.has_filter_plugins());
        assert_eq!(&**profile.profile_name(), "default-scheduler");
        assert_eq!(profile.percentage_of_nodes_to_score(), None);
        assert!(!profile.list_plugins().contains_key(&ExtensionPoint::Score));
    });
    let zero = "  percentageOfNodesToScore: 0\n  plugins: {score: {enabled: [{name: First, weight: 3}]}}\n";
    with_profile(compiled(zero), |profile| {
        assert!(profile.has_score_plugins());
        assert_eq!(profile.percentage_of_nodes_to_score(), Some(0));
        assert_eq!(profile.list_plugins()[&ExtensionPoint::Score].last(), Some(&"First"));
    });
}

//
#[test]
fn a_profile_sets_the_order_of_filters() {
    let filters = |profile: &str| {
        with_profile(compiled(profile), |profile| {
            let filters = profile.list_plugins()[&ExtensionPoint::Filter].clone();
            let place = |name: &str| filters.iter().position(|known| *known == name).expect("it filters");
            place("TaintToleration") < place("NodeAffinity")
        })
    };
    assert!(filters(""), "taints before affinity, as in Kubernetes");
    let last = "  plugins:\n    filter:\n      disabled: [{name: TaintToleration}]\n      enabled: [{name: \
                NodeAffinity}, {name: TaintToleration}]\n";
    assert!(!filters(last));
}

//
#[test]
fn every_point_can_be_configured_by_itself() {
    for point in ExtensionPoint::ALL {
        let disabled = if point == ExtensionPoint::QueueSort { ", disabled: [{name: \"*\"}]" } else { "" };
        let one = format!("  plugins: {{{}: {{enabled: [{{name: First}}]{disabled}}}}}\n", point.key());
        let profile = compiled(&one);
        let places = |name: &str| {
            let is_there = |members: &Vec<(String, i64)>| members.iter().any(|(known, _)| known == name);
            profile.points.iter().filter(|(_, members)| is_there(members)).map(|(point, _)| *point).collect::<Vec<_>>()
        };
        assert_eq!(places("First"), [point]);
        let mut engine = engine_of(traced_registry(), profile);
        calls();
        let step =
            tell(&mut engine, 0, &Scene::new().node("a", "4c").node("b", "4c").job("p", |job| job.pending(1, "1c")));
        assert_eq!(binds(&step).len(), 1, "{point}");
        let called = calls();
        let wanted = match point {
            ExtensionPoint::Score => "Score NormalizeScore".to_owned(),
            // Not with a node that fits, or not before the bind.
            ExtensionPoint::PostFilter | ExtensionPoint::PreBind | ExtensionPoint::Bind | ExtensionPoint::PostBind => {
                String::new()
            }
            _ => point.to_string(),
        };
        assert_eq!(hooks(&called).join(" "), wanted, "{point}");
    }
}
