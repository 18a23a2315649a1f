//! Which node a pod gets by the plugins of Kubernetes, alone and together.

use krafla_engine::Engine;
use krafla_framework::conf::compile::compile;
use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Verdict};
use krafla_model::labels::{NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::pod_affinity::{Namespaces, PodTerm};
use krafla_plugins::node::InterPodAffinity;
use krafla_test_suite::registry;
use krafla_testkit::{JobScene, Scene, task_named};

use super::traced::{binds, said, tell};

const TWO_PROFILES: &str = include_str!("../../../../../conf/kube-scheduler/two-profiles.yaml");
const DEFAULT: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn engine(conf: &str) -> Engine {
    let registry = registry();
    let compiled = compile(conf, "test", &registry.catalogue());
    let policy = compiled.policy.expect("it compiles").one_by_one();
    let options = krafla_engine::Options { profile_only: true, events: true, ..krafla_engine::Options::default() };
    Engine::with_policy(registry, options, policy)
}

fn placed(conf: &str, scene: &Scene) -> Vec<String> {
    binds(&tell(&mut engine(conf), 0, scene))
}

fn requires(key: &'static str, value: &'static str) -> NodeSelectorTerm {
    NodeSelectorTerm {
        labels: vec![Requirement { key: key.into(), test: Test::In(vec![value.into()]) }],
        ..Default::default()
    }
}

//
#[test]
fn a_required_zone_filters_and_a_preferred_one_only_scores() {
    let nodes = || Scene::new().labelled_node("a", "4c", "zone", "one").labelled_node("b", "4c", "zone", "two");
    let required = nodes().job("p", |job| {
        job.shape(|shape| shape.required_affinity = Some(vec![requires("zone", "two")])).pending(2, "3c")
    });
    assert_eq!(placed(DEFAULT, &required), ["p-0 -> b"], "the second finds no room in the zone");
    let preferred = nodes().job("p", |job| job.prefers(10, requires("zone", "two")).pending(2, "3c"));
    assert_eq!(placed(DEFAULT, &preferred), ["p-0 -> b", "p-1 -> a"]);
}

//
#[test]
fn what_is_left_exactly_is_enough() {
    let scene = Scene::new().node("a", "4c4Gi").job("p", |job| job.pending(2, "2c2Gi"));
    assert_eq!(placed(DEFAULT, &scene).len(), 2);
}

//
#[test]
fn the_old_annotation_of_critical_pods_does_nothing() {
    let scene = Scene::new().node("a", "1c").job("low", |job| job.running(1, "1c", "a")).job("p", |job| {
        let key = "scheduler.alpha.kubernetes.io/critical-pod";
        job.shape(move |shape| shape.annotations.set(key.into(), "".into())).pending(1, "1c")
    });
    let step = tell(&mut engine(DEFAULT), 0, &scene);
    assert!(said(&step).contains("No preemption victims found"), "{}", said(&step));
}

//
#[test]
fn the_node_with_the_images_is_chosen() {
    let (app, sidecar) = (("my-app:1.0".into(), 500 << 20), ("sidecar:2.0".into(), 50 << 20));
    let scene = Scene::new()
        .node("a", "4c")
        .node_with("b", "4c", |node| node.images = vec![app.clone()])
        .node_with("c", "4c", |node| node.images = vec![app.clone(), sidecar])
        .job("p", |job| {
            job.shape(|shape| shape.images = vec!["my-app:1.0".into(), "sidecar:2.0".into()]).pending(1, "1c")
        });
    assert_eq!(placed(DEFAULT, &scene), ["p-0 -> c"]);
}

fn affinity() -> InterPodAffinity {
    InterPodAffinity {
        hard_pod_affinity_weight: 1,
        ignore_preferred_terms_of_existing_pods: false,
        promises_reach_domains: false,
    }
}

//
#[test]
fn affinity_between_pods_looks_at_the_cluster_once() {
    let term = PodTerm {
        topology_key: "kubernetes.io/hostname".into(),
        selector: Some(Selector(vec![Requirement { key: "app".into(), test: Test::In(vec!["x".into()]) }])),
        namespaces: Namespaces { names: ["default".into()].into(), selector: None },
    };
    let apart = |job: JobScene| {
        job.shape(|shape| {
            shape.labels.set("app".into(), "x".into());
            shape.pod_anti_affinity.required = vec![term.clone()];
        })
    };
    let host = |scene: Scene, name: &str| scene.labelled_node(name, "4c", "kubernetes.io/hostname", name);
    let nodes = || host(host(Scene::new(), "a"), "b");
    let pod = |scene: Scene| scene.job("p", |job| apart(job).pending(1, "1c"));
    let with = pod(nodes().job("there", |job| apart(job).running(1, "1c", "a"))).build();
    let (plugin, mut state) = (affinity(), CycleState::default());
    assert_eq!(plugin.pre_filter(&with, task_named(&with, "p-0"), &mut state), PreFilter::All);
    // Without the other pod; what PreFilter has counted stands, so Filter does not count anew.
    let without = pod(nodes()).build();
    let task = task_named(&without, "p-0");
    let fits = |node| plugin.filter(&without, task, node, Room::Now, &state) == Verdict::Fits;
    assert_eq!(without.nodes().iter().map(|node| fits(*node)).collect::<Vec<_>>(), [false, true]);
}

//
#[test]
fn the_weights_of_the_default_profile_of_the_example_decide() {
    // After the pod, a is used evenly, and by 61 %; b by 60 % and 55 %, a little less, but less evenly than before.
    let scene = |scheduler: &'static str| {
        Scene::new()
            .node("a", "100c100Gi110p")
            .node("b", "10c20Gi110p")
            .job("old", |job| job.running(1, "60c60Gi", "a").running(1, "5c10Gi", "b"))
            .job("p", move |job| job.shape(move |shape| shape.scheduler_name = scheduler.into()).pending(1, "1c1Gi"))
    };
    assert_eq!(placed(DEFAULT, &scene("default-scheduler")), ["p-0 -> b"], "Kubernetes' own weights");
    assert_eq!(placed(TWO_PROFILES, &scene("default-scheduler")), ["p-0 -> a"]);
}

//
#[test]
fn the_other_profile_of_the_example_packs() {
    let scene = |scheduler: &'static str| {
        Scene::new()
            .node("a", "4c4Gi")
            .node("b", "4c4Gi")
            .job("old", |job| job.running(1, "1c1Gi", "b"))
            .job("p", move |job| job.shape(move |shape| shape.scheduler_name = scheduler.into()).pending(3, "1c1Gi"))
    };
    let packed = placed(TWO_PROFILES, &scene("cost-optimized-scheduler"));
    assert_eq!(packed, ["p-0 -> b", "p-1 -> b", "p-2 -> b"]);
    assert_eq!(placed(TWO_PROFILES, &scene("default-scheduler"))[0], "p-0 -> a");
}

//
#[test]
fn gangs_at_permit_alone_work_and_the_missing_points_are_named() {
    let conf = include_str!("../../../../../conf/kube-scheduler/coscheduling-profile.yaml");
    let compiled = compile(conf, "test", &registry().catalogue());
    let said: Vec<String> = compiled.problems.iter().map(|problem| problem.render(conf)).collect();
    assert!(said[0].contains("not at preFilter, postFilter, reserve"), "{said:?}");
    let gang = |job: JobScene| job.shape(|shape| shape.scheduler_name = "coscheduling-scheduler".into()).min(3);
    let scene = |nodes: usize| {
        (0..nodes)
            .fold(Scene::new(), |scene, i| scene.node(&format!("n{i}"), "4g4c"))
            .job("g", |job| gang(job).pending(3, "4g1c"))
    };
    assert_eq!(placed(conf, &scene(2)).len(), 0);
    assert_eq!(placed(conf, &scene(3)).len(), 3);
}
