//! Which change lets which pod in again, by the plugin that refused it.

use std::sync::Arc;

use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{NodePlugin, PluginSet};
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod::HostPort;
use krafla_model::pod_affinity::{Namespaces, PodTerm};
use krafla_model::taints::{Effect, Match, Taint, Toleration};
use krafla_model::{Amounts, Event, NodeSpec, PodSpec};
use krafla_testkit::{JobScene, Scene, amounts, task_named};

/// Whether something happening helps the pod `p-0` of a scene that `plugin` has refused.
fn helps(plugin: &str, scene: &Scene, happens: Event) -> bool {
    let registry = crate::testing::registry();
    let profiles = vec![ProfilePolicy::default_profile(&registry)];
    let plugins = PluginSet::build(&Policy { profiles, ..Policy::default() }.one_by_one(), &registry);
    let mut cluster = scene.build();
    cluster.keep_cluster_events();
    cluster.take_cluster_events();
    cluster.apply(happens);
    let task = task_named(&cluster, "p-0");
    let asked = std::collections::BTreeSet::from([plugin.to_owned()]);
    let events = cluster.take_cluster_events();
    events.iter().any(|event| {
        plugins.profile_for(&cluster, task).any_plugin(&asked, |plugin: &dyn NodePlugin| {
            let of_it = plugin.events().expect("it says what it waits for");
            let counts = of_it.iter().any(|(kind, action)| *kind == event.resource && action.has_any(event.action));
            counts && plugin.may_help(event) && plugin.helps(&cluster, task, event)
        })
    })
}

fn node(name: &str, edit: impl FnOnce(&mut NodeSpec)) -> Event {
    let mut spec = NodeSpec { name: name.into(), allocatable: amounts("4c4Gi110p"), ..NodeSpec::default() };
    edit(&mut spec);
    Event::Node(spec)
}

fn taint(key: &str) -> Taint {
    Taint { key: key.into(), value: "".into(), effect: Effect::NoSchedule }
}

/// A cluster with a node, a pod that runs there, one that only waits, and `p-0`.
fn scene(edit: impl Fn(JobScene) -> JobScene) -> Scene {
    Scene::new()
        .node_with("n", "4c4Gi110p", |spec| spec.taints = vec![taint("x")])
        .job("runs", |job| job.running(1, "1c", "n"))
        .job("waits", |job| job.pending(1, "1c"))
        .job("p", |job| edit(job).pending(1, "4c"))
}

/// The pod of this name is gone.
fn gone(scene: &Scene, name: &str) -> Event {
    let cluster = scene.build();
    Event::PodGone(cluster.task(task_named(&cluster, name)).uid.clone())
}

/// The pod of this name with another signature.
fn changed(scene: &Scene, name: &str, edit: impl FnOnce(&mut krafla_model::PodShape)) -> Event {
    let pod = scene.events().into_iter().find_map(|event| match event {
        Event::Pod(pod) if *pod.name == *name => Some(pod),
        _ => None,
    });
    let mut pod: PodSpec = pod.expect("it is in the scene");
    edit(Arc::make_mut(&mut pod.shape));
    Event::Pod(pod)
}

#[test]
fn room_and_ports_come_from_nodes_and_from_pods_that_held_some() {
    let plain = scene(|job| job);
    for (what, event, want) in [
        ("a pod that ran is gone", gone(&plain, "runs-0"), true),
        ("a pod that only waited is gone", gone(&plain, "waits-0"), false),
        ("a new node that is large enough", node("m", |_| {}), true),
        ("a new node that is too small", node("m", |spec| spec.allocatable = Amounts::default().with("cpu", 1)), false),
        ("a label", node("n", |spec| spec.labels.set("a".into(), "b".into())), false),
    ] {
        assert_eq!(helps("NodeResourcesFit", &plain, event), want, "{what}");
    }
    let port = |port| HostPort { ip: "".into(), protocol: "TCP".into(), port };
    let with = |theirs: u16| {
        Scene::new()
            .node("n", "4c")
            .job("runs", |job| job.shape(|shape| shape.host_ports = vec![port(theirs)]).running(1, "1c", "n"))
            .job("p", |job| job.shape(|shape| shape.host_ports = vec![port(80)]).pending(1, "1c"))
    };
    assert!(helps("NodePorts", &with(80), gone(&with(80), "runs-0")));
    assert!(!helps("NodePorts", &with(81), gone(&with(81), "runs-0")), "it had another port");
}

#[test]
fn taints_cordons_and_labels_count_where_a_node_suits_that_did_not() {
    let plain = scene(|job| job);
    let tainted =
        |keys: &'static [&str]| node("n", move |spec| spec.taints = keys.iter().map(|key| taint(key)).collect());
    for (what, event, want) in [
        ("the taint is gone", tainted(&[]), true),
        ("another taint", tainted(&["y"]), false),
        ("a new node with a taint", node("m", |spec| spec.taints = vec![taint("x")]), false),
        ("a new node", node("m", |_| {}), true),
        (
            "its own tolerations",
            changed(&plain, "p-0", |shape| {
                let any = Toleration { key: None, test: Match::Exists, effect: None };
                shape.tolerations = vec![any];
            }),
            true,
        ),
        ("a pod is gone", gone(&plain, "runs-0"), false),
    ] {
        assert_eq!(helps("TaintToleration", &plain, event), want, "{what}");
    }
    let cordoned =
        Scene::new().node_with("n", "4c", |spec| spec.unschedulable = true).job("p", |job| job.pending(1, "1c"));
    assert!(helps("NodeUnschedulable", &cordoned, node("n", |_| {})));
    assert!(!helps("NodeUnschedulable", &cordoned, node("m", |spec| spec.unschedulable = true)));

    let wants_zone = scene(|job| job.selects("zone", "a"));
    let zone = |value: &'static str| node("n", move |spec| spec.labels.set("zone".into(), value.into()));
    assert!(helps("NodeAffinity", &wants_zone, zone("a")));
    assert!(!helps("NodeAffinity", &wants_zone, zone("b")));
}

#[test]
fn pods_help_those_that_want_them_or_were_kept_away_by_them() {
    let term = || PodTerm {
        topology_key: "zone".into(),
        selector: Some(Selector(vec![Requirement { key: "app".into(), test: Test::In(vec!["x".into()]) }])),
        namespaces: Namespaces { names: vec!["default".into()], selector: None },
    };
    let with = |app: &'static str, apart: bool| {
        Scene::new()
            .labelled_node("n", "4c", "zone", "a")
            .job("runs", |job| job.shape(|shape| shape.labels.set("app".into(), app.into())).running(1, "1c", "n"))
            .job("p", |job| {
                let own = move |shape: &mut krafla_model::PodShape| match apart {
                    true => shape.pod_anti_affinity.required = vec![term()],
                    false => shape.pod_affinity.required = vec![term()],
                };
                job.shape(own).pending(1, "1c")
            })
    };
    let plugin = "InterPodAffinity";
    for (app, apart, want) in [("x", true, true), ("y", true, false), ("x", false, false)] {
        let scene = with(app, apart);
        assert_eq!(helps(plugin, &scene, gone(&scene, "runs-0")), want, "{app} goes, apart: {apart}");
    }
    let scene = with("y", false);
    assert!(helps(plugin, &scene, changed(&scene, "runs-0", |shape| shape.labels.set("app".into(), "x".into()))));

    let elsewhere = Scene::new()
        .node("n", "4c")
        .job("runs", |job| job.running(1, "1c", "n"))
        .job("theirs", |job| job.namespace("other").running(1, "1c", "n"))
        .job("p", |job| job.pending(1, "1c"));
    assert!(helps("PodTopologySpread", &elsewhere, gone(&elsewhere, "runs-0")));
    assert!(!helps("PodTopologySpread", &elsewhere, gone(&elsewhere, "theirs-0")), "pods of others are not counted");
}
