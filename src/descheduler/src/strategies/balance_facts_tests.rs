//! The facts of the fact sheet on each strategy at `balance`, as a stranger would try them: small clusters, and who goes.

use std::sync::Arc;

use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::pod_details::QosClass::{self, BestEffort, Burstable, Guaranteed};
use krafla_model::taints::Effect;
use krafla_model::{ClusterState, NodeSpec, PodShape, PodSpec};
use krafla_testkit::Scene;

use crate::testing::{own, policy, unplanned};

/// Who goes in one round without a plan, of a strategy at its point.
fn gone(cluster: &ClusterState, strategy: &str, point: &str, arguments: &str, rest: &str) -> Vec<String> {
    unplanned(cluster.clone(), &policy(strategy, point, arguments, rest)).gone()
}

fn is_app(value: &str) -> Selector {
    Selector(vec![Requirement { key: "app".into(), test: Test::In(vec![value.into()]) }])
}

fn labelled(shape: &mut PodShape, app: &str) {
    shape.labels.set("app".into(), app.into());
}

/// Equal are pods of one owner with the same images; the nodes that count are those that would take them.
#[test]
fn duplicates_are_of_one_owner_and_image() {
    type Edit = dyn Fn(usize, &mut PodSpec);
    let plain: &Edit = &|_, pod| own(pod, "x");
    let images: &Edit = &|i, pod| {
        own(pod, "x");
        let mut details = crate::testing::owned_by("x");
        details.images = vec![if i == 0 { "app:1" } else { "app:2" }.into()];
        pod.details = Some(Arc::new(details));
    };
    let owners: &Edit = &|i, pod| own(pod, if i == 0 { "x" } else { "y" });
    for (name, edit, n_gone) in [("equal", plain, 1), ("other images", images, 0), ("other owners", owners, 0)] {
        let scene = (0..2).fold(Scene::new().node("a", "9c").node("b", "9c"), |scene, i| {
            scene.job(&format!("x{i}"), |job| job.running(1, "1c", "a").each(|pod| edit(i, pod)))
        });
        assert_eq!(gone(&scene.build(), "RemoveDuplicates", "balance", "", "").len(), n_gone, "{name}");
    }
    for (name, selects, tainted, n_gone) in [
        // Six pods and three nodes that would take them: two each.
        ("three of four nodes", false, true, 4),
        ("four nodes", false, false, 4),
        ("one node that they select", true, false, 0),
    ] {
        let mut scene = Scene::new().labelled_node("a", "9c", "disk", "ssd").node("b", "9c").node("c", "9c");
        scene = if tainted { scene.tainted_node("d", "9c", "t", Effect::NoSchedule) } else { scene.node("d", "9c") };
        let scene = scene.job("x", |job| {
            let job = if selects { job.selects("disk", "ssd") } else { job };
            job.running(6, "1c", "a").each(|pod| own(pod, "x"))
        });
        assert_eq!(gone(&scene.build(), "RemoveDuplicates", "balance", "", "").len(), n_gone, "{name}");
    }
}

/// Pods `x` that keep to a constraint over nodes, so many on each.
fn spread(max_skew: u32, sizes: &[u32]) -> Scene {
    let names = ["a", "b", "c", "d"];
    let scene = names[..sizes.len()].iter().fold(Scene::new(), |scene, name| scene.node(name, "200c"));
    scene.job("x", |job| {
        let job = job.shape(|shape| {
            labelled(shape, "x");
            shape.spread = vec![by_node(max_skew)];
        });
        let placed = sizes.iter().zip(names).filter(|(n, _)| **n > 0);
        placed.fold(job, |job, (n, node)| job.running(*n, "1c", node)).each(|pod| own(pod, "x"))
    })
}

fn by_node(max_skew: u32) -> SpreadConstraint {
    SpreadConstraint {
        max_skew,
        topology_key: "kubernetes.io/hostname".into(),
        must_hold: true,
        selector: Some(is_app("x")),
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    }
}

/// Sizes of domains, the skew that may be, and how many go.
#[test]
fn topology_spread_moves_as_many_as_that_takes() {
    for (sizes, max_skew, n_gone) in [
        (&[8, 7, 0][..], 1, 5),
        (&[0, 1, 3, 5], 1, 3),
        (&[2, 6], 2, 1),
        (&[0, 1, 100], 1, 66),
        (&[5, 2], 1, 1),
        (&[4, 4, 4, 3], 1, 0),
    ] {
        let scene = spread(max_skew, sizes);
        let is = gone(&scene.build(), "RemovePodsViolatingTopologySpreadConstraint", "balance", "", "");
        assert_eq!(is.len(), n_gone, "{sizes:?} with {max_skew}");
    }
}

/// Nobody goes who fits on no node of a domain below the average, unless the policy says so.
#[test]
fn topology_spread_looks_for_a_place() {
    let scene = spread(1, &[4, 0]).job("big", |job| job.running(1, "200c", "b"));
    for (arguments, n_gone) in [("", 0), ("topologyBalanceNodeFit: true", 0), ("topologyBalanceNodeFit: false", 2)] {
        let is = gone(&scene.build(), "RemovePodsViolatingTopologySpreadConstraint", "balance", arguments, "");
        assert_eq!(is.len(), n_gone, "{arguments}");
    }
}

/// The least important of a domain go first.
#[test]
fn topology_spread_takes_the_least_important() {
    let scene = [("mid", 5), ("low", 1), ("high", 9), ("top", 10)].into_iter().fold(
        Scene::new().node("a", "9c").node("b", "9c"),
        |scene, (name, priority)| {
            scene.job(name, |job| {
                job.shape(|shape| {
                    labelled(shape, "x");
                    shape.spread = vec![by_node(1)];
                })
                .task_priority(priority)
                .running(1, "1c", "a")
                .each(|pod| own(pod, name))
            })
        },
    );
    let mut is = gone(&scene.build(), "RemovePodsViolatingTopologySpreadConstraint", "balance", "", "");
    is.sort_unstable();
    assert_eq!(is, ["low-0", "mid-0"]);
}

fn low(cluster: &ClusterState, arguments: &str) -> Vec<String> {
    gone(cluster, "LowNodeUtilization", "balance", arguments, "")
}

const CPU: &str = "thresholds: {cpu: 20}, targetThresholds: {cpu: 70}";

fn web(scene: Scene, name: &str, n: u32, asks: &str, node: &str) -> Scene {
    scene.job(name, |job| job.running(n, asks, node).each(|pod| own(pod, name)))
}

/// A cordoned node is none that pods could go to; nor is it idle for the count of idle nodes.
#[test]
fn low_node_utilization_and_cordoned_nodes() {
    let off = |spec: &mut NodeSpec| spec.unschedulable = true;
    let hot = || web(Scene::new().node("hot", "10c99Gi"), "x", 9, "1c", "hot");
    assert_eq!(low(&hot().node_with("cold", "10c99Gi", off).build(), CPU).len(), 0);
    let one_more = hot().node_with("cold", "10c99Gi", off).node("open", "10c99Gi");
    assert_eq!(low(&one_more.build(), CPU).len(), 2);
    assert_eq!(low(&one_more.build(), &format!("{CPU}, numberOfNodes: 1")).len(), 0);
}

/// Pod slots and other resources are amounts like the others, once a threshold names them.
#[test]
fn low_node_utilization_by_pods_and_gpus() {
    let scene = Scene::new().node("hot", "99c10p8g").node("cold", "99c10p8g");
    let scene = web(web(scene, "x", 8, "1c1g", "hot"), "y", 1, "1c", "cold");
    for (arguments, n_gone) in [
        ("thresholds: {pods: 20}, targetThresholds: {pods: 50}", 3),
        ("thresholds: {nvidia.com/gpu: 20}, targetThresholds: {nvidia.com/gpu: 50}", 4),
        ("thresholds: {pods: 5}, targetThresholds: {pods: 50}", 0),
        ("thresholds: {cpu: 20}, targetThresholds: {cpu: 50}", 0),
    ] {
        assert_eq!(low(&scene.build(), arguments).len(), n_gone, "{arguments}");
    }
}

/// The fullest node is relieved first, as far as the idle ones have room up to their target.
#[test]
fn low_node_utilization_begins_with_the_fullest() {
    let scene = Scene::new().node("warm", "10c99Gi").node("hot", "10c99Gi").node("cold", "4c99Gi");
    let scene = web(web(scene, "w", 8, "1c", "warm"), "h", 10, "1c", "hot");
    // The idle one may have 70 percent of 4 cores: no more than 2.8.
    let is = low(&scene.build(), CPU);
    assert!(is.len() == 3 && is.iter().all(|name| name.starts_with("h-")), "{is:?}");
}

/// Daemons count, and stay.
#[test]
fn low_node_utilization_counts_who_stays() {
    let scene = Scene::new().node("hot", "10c99Gi").node("cold", "10c99Gi").job("d", |job| {
        job.running(8, "1c", "hot").each(|pod| {
            own(pod, "d");
            let mut details = crate::testing::owned_by("d");
            details.owners[0].kind = "DaemonSet".into();
            pod.details = Some(Arc::new(details));
        })
    });
    let scene = web(scene, "x", 1, "1c", "hot");
    assert_eq!(low(&scene.build(), CPU), ["x-0"]);
}

#[test]
fn mistakes_in_thresholds() {
    for (strategy, arguments, wanted) in [
        ("LowNodeUtilization", "thresholds: {cpu: 20}, targetThresholds: {memory: 70}", "memory"),
        ("LowNodeUtilization", "thresholds: {cpu: 80}, targetThresholds: {cpu: 70}", "cpu"),
        ("LowNodeUtilization", "thresholds: {cpu: 120}, targetThresholds: {cpu: 130}", "from 0 to 100"),
        ("LowNodeUtilization", "targetThresholds: {cpu: 70}", "thresholds"),
        ("HighNodeUtilization", "", "thresholds"),
        ("HighNodeUtilization", "thresholds: {cpu: 20}, evictionModes: [All]", "All"),
        ("RemovePodsViolatingNodeTaints", "includedTaints: [a], excludedTaints: [b]", "includedTaints"),
        ("RemovePodsHavingTooManyRestarts", "", "podRestartThreshold"),
        ("RemovePodsHavingTooManyRestarts", "podRestartThreshold: 0", "podRestartThreshold"),
        ("RemovePodsViolatingNodeAffinity", "", "nodeAffinityType"),
    ] {
        let point = if strategy.ends_with("Utilization") { "balance" } else { "deschedule" };
        let settings = crate::testing::settings(&policy(strategy, point, arguments, ""), Default::default());
        let said = crate::build(&settings).err().unwrap_or_default().join("\n");
        assert!(said.contains(wanted), "{strategy} {arguments}: {said}");
    }
}

/// Deviations that are not the same on both sides are fine, and what would be under 0 or over 100 percent is those.
#[test]
fn low_node_utilization_by_wide_deviations() {
    let scene = Scene::new().node("a", "10c99Gi").node("b", "10c99Gi");
    let scene = web(web(scene, "x", 9, "1c", "a"), "y", 1, "1c", "b");
    for (below, above, n_gone) in [(40, 20, 2), (40, 60, 0), (60, 10, 0), (30, 30, 1)] {
        let arguments =
            format!("useDeviationThresholds: true, thresholds: {{cpu: {below}}}, targetThresholds: {{cpu: {above}}}");
        assert_eq!(low(&scene.build(), &arguments).len(), n_gone, "{below} {above}");
    }
}

fn high(cluster: &ClusterState, arguments: &str) -> Vec<String> {
    gone(cluster, "HighNodeUtilization", "balance", arguments, "")
}

/// Others take them up to all that they have, and must be open.
#[test]
fn high_node_utilization_fills_open_nodes() {
    let scene = Scene::new().node("full", "10c99Gi").node("empty", "10c99Gi");
    let scene = web(web(scene, "f", 9, "1c", "full"), "e", 2, "1c", "empty");
    assert_eq!(high(&scene.build(), "thresholds: {cpu: 20}"), ["e-0"], "one core is free");
    let off = |spec: &mut NodeSpec| spec.unschedulable = true;
    let scene = Scene::new().node_with("full", "10c99Gi", off).node("empty", "10c99Gi");
    let scene = web(web(scene, "f", 5, "1c", "full"), "e", 2, "1c", "empty");
    assert_eq!(high(&scene.build(), "thresholds: {cpu: 20}").len(), 0, "the only other one is cordoned");
}

/// Of equal priority: who asks for nothing, then who is not limited to what they ask for; and of these, whoever would rather
/// stay goes last.
#[test]
fn low_node_utilization_takes_classes_of_service_in_order() {
    let kinds: [(&str, QosClass, bool); 4] = [
        ("guaranteed", Guaranteed, false),
        ("reluctant", Burstable, true),
        ("burstable", Burstable, false),
        ("modest", BestEffort, false),
    ];
    let scene = kinds.into_iter().fold(
        Scene::new().node("hot", "10c99Gi").node("cold", "40c99Gi"),
        |scene, (name, qos, reluctant)| {
            scene.job(name, |job| {
                job.running(1, "2c", "hot").each(|pod| {
                    own(pod, name);
                    let mut details = crate::testing::owned_by(name);
                    details.qos = qos;
                    pod.details = Some(Arc::new(details));
                    if reluctant {
                        let key = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
                        Arc::make_mut(&mut pod.shape).annotations.set(key.into(), "".into());
                    }
                })
            })
        },
    );
    let is = low(&scene.build(), "thresholds: {cpu: 20}, targetThresholds: {cpu: 20}");
    assert_eq!(is, ["modest-0", "burstable-0", "reluctant-0"]);
}

/// Pods that choose their nodes go after those that do not.
#[test]
fn topology_spread_leaves_whoever_chooses_nodes() {
    let scene = Scene::new().labelled_node("a", "9c", "disk", "ssd").labelled_node("b", "9c", "disk", "ssd");
    let scene = [("choosy", true), ("plain", false)].into_iter().fold(scene, |scene, (name, chooses)| {
        scene.job(name, |job| {
            let job = job.shape(|shape| {
                labelled(shape, "x");
                shape.spread = vec![by_node(1)];
            });
            let job = if chooses { job.selects("disk", "ssd") } else { job };
            job.running(1, "1c", "a").each(|pod| own(pod, name))
        })
    });
    // Two on one node and none on the other: one goes.
    let is = gone(&scene.build(), "RemovePodsViolatingTopologySpreadConstraint", "balance", "", "");
    assert_eq!(is, ["plain-0"]);
}

/// Who may not go is counted all the same, and another one goes.
#[test]
fn topology_spread_counts_who_may_not_go() {
    let scene = [("daemon", true), ("plain", false)].into_iter().fold(
        Scene::new().node("a", "9c").node("b", "9c"),
        |scene, (name, is_daemon)| {
            scene.job(name, |job| {
                let job = job.shape(|shape| {
                    labelled(shape, "x");
                    shape.spread = vec![by_node(1)];
                });
                job.task_priority(if is_daemon { 1 } else { 9 }).running(1, "1c", "a").each(|pod| {
                    own(pod, name);
                    let mut details = crate::testing::owned_by(name);
                    if is_daemon {
                        details.owners[0].kind = "DaemonSet".into();
                    }
                    pod.details = Some(Arc::new(details));
                })
            })
        },
    );
    let is = gone(&scene.build(), "RemovePodsViolatingTopologySpreadConstraint", "balance", "", "");
    assert_eq!(is, ["plain-0"]);
}
