//! The facts of the fact sheet on each strategy, as a stranger would try them: small clusters, and who goes.

use std::sync::Arc;

use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_affinity::{Namespaces, PodTerm, SpreadConstraint};
use krafla_model::taints::Effect;
use krafla_model::{ClusterState, NodeSpec, PodPhase, PodShape, PodSpec, Time};
use krafla_testkit::{JobScene, Scene};

use crate::testing::{own, policy, unplanned};

const NOW: i64 = 10_000_000;

/// Who goes in one round without a plan, of a strategy at its point.
fn gone(cluster: &ClusterState, strategy: &str, point: &str, arguments: &str, rest: &str) -> Vec<String> {
    unplanned(cluster.clone(), &policy(strategy, point, arguments, rest)).gone()
}

/// Owned by a ReplicaSet of this name, and so old, in seconds.
fn aged(pod: &mut PodSpec, name: &str, seconds: i64) {
    own(pod, name);
    pod.created = Time(NOW - seconds * 1_000);
}

fn is_app(value: &str) -> Selector {
    Selector(vec![Requirement { key: "app".into(), test: Test::In(vec![value.into()]) }])
}

fn labelled(shape: &mut PodShape, app: &str) {
    shape.labels.set("app".into(), app.into());
}

/// Oldest first over all nodes; a full node is skipped, a full round is the end.
#[test]
fn pod_life_time_takes_the_oldest_of_all_nodes() {
    let scene = [("x", "a", 500), ("y", "b", 400), ("z", "a", 300)]
        .into_iter()
        .fold(Scene::new().node("a", "9c").node("b", "9c").at(NOW), |scene, (name, node, age)| {
            scene.job(name, |job| job.running(1, "1c", node).each(|pod| aged(pod, name, age)))
        });
    let cluster = scene.build();
    for (rest, wanted) in [
        ("", &["x-0", "y-0", "z-0"][..]),
        ("maxNoOfPodsToEvictPerNode: 1\n", &["x-0", "y-0"]),
        ("maxNoOfPodsToEvictTotal: 1\n", &["x-0"]),
    ] {
        assert_eq!(gone(&cluster, "PodLifeTime", "deschedule", "maxPodLifeTimeSeconds: 100", rest), wanted, "{rest}");
    }
}

/// Filters are joined by *and*, what stands in one by *or*.
#[test]
fn pod_life_time_joins_filters() {
    let scene = Scene::new().node("a", "9c").node("b", "9c").at(NOW).job("x", |job| {
        job.running(1, "1c", "a").each(|pod| {
            aged(pod, "x", 100);
            pod.phase = PodPhase::Pending;
        })
    });
    for (arguments, goes) in [
        ("states: [Pending]", true),
        ("states: [Running]", false),
        ("states: [Running, Pending]", true),
        ("states: [Pending], maxPodLifeTimeSeconds: 99", true),
        ("states: [Pending], maxPodLifeTimeSeconds: 100", false),
        ("states: [Pending], exitCodes: [1]", false),
    ] {
        assert_eq!(
            gone(&scene.build(), "PodLifeTime", "deschedule", arguments, "").len(),
            usize::from(goes),
            "{arguments}"
        );
    }
}

#[test]
fn pod_life_time_needs_something_to_go_by() {
    for (arguments, wanted) in [
        ("", "maxPodLifeTimeSeconds"),
        ("states: [Sleeping]", "Sleeping"),
        ("maxPodLifeTimeSeconds: 1, namespaces: {include: [a], exclude: [b]}", "include"),
        ("maxPodLifeTimeSeconds: 1, ownerKinds: {include: [Job], exclude: [Job]}", "include"),
    ] {
        let settings =
            crate::testing::settings(&policy("PodLifeTime", "deschedule", arguments, ""), Default::default());
        let said = crate::build(&settings).err().unwrap_or_default().join("\n");
        assert!(said.contains(wanted), "{arguments}: {said}");
    }
}

/// At least as old as the minimum, an hour by default; reasons and exit codes both have to be met.
#[test]
fn failed_pods_are_an_hour_old() {
    let scene = |age: i64| {
        Scene::new().node("a", "9c").node("b", "9c").at(NOW).job("x", |job| {
            job.running(1, "1c", "a").each(|pod| {
                aged(pod, "x", age);
                pod.phase = PodPhase::Failed;
                let mut details = crate::testing::owned_by("x");
                details.reason = "Evicted".into();
                pod.details = Some(Arc::new(details));
            })
        })
    };
    for (age, arguments, goes) in [
        (3_600, "", true),
        (3_599, "", false),
        (3_600, "reasons: [Evicted]", true),
        (3_600, "reasons: [Evicted], exitCodes: [1]", false),
        (3_600, "reasons: [OutOfcpu]", false),
    ] {
        let is = gone(&scene(age).build(), "RemoveFailedPods", "deschedule", arguments, "");
        assert_eq!(is.len(), usize::from(goes), "{age} {arguments}");
    }
}

fn avoids(shape: &mut PodShape, topology: &str, app: &str, namespaces: &[&str]) {
    shape.pod_anti_affinity.required.push(PodTerm {
        topology_key: topology.into(),
        selector: Some(is_app(app)),
        namespaces: Namespaces { names: namespaces.iter().map(|name| (*name).into()).collect(), selector: None },
    });
}

fn unfriendly(cluster: &ClusterState) -> Vec<String> {
    gone(cluster, "RemovePodsViolatingInterPodAntiAffinity", "deschedule", "", "")
}

/// The one with the term goes, even if it matters more; whoever has none stays.
#[test]
fn anti_affinity_takes_whoever_has_the_term() {
    let scene = Scene::new()
        .node("a", "9c")
        .node("b", "9c")
        .job("plain", |job| {
            job.shape(|shape| labelled(shape, "web"))
                .task_priority(1)
                .running(1, "1c", "a")
                .each(|pod| own(pod, "plain"))
        })
        .job("guard", |job| {
            job.shape(|shape| avoids(shape, "kubernetes.io/hostname", "web", &["default"]))
                .task_priority(9)
                .running(1, "1c", "a")
                .each(|pod| own(pod, "guard"))
        });
    assert_eq!(unfriendly(&scene.build()), ["guard-0"]);
}

/// A domain is what the topology key says, and may have several nodes. Nodes come in order, and only on one node does the
/// least important go first.
#[test]
fn anti_affinity_looks_at_domains() {
    for (topology, wanted) in [("zone", &["high-0"][..]), ("kubernetes.io/hostname", &[])] {
        let job = |job: JobScene, name: &'static str, priority: i32, node: &str| {
            job.shape(|shape| {
                labelled(shape, "web");
                avoids(shape, topology, "web", &["default"]);
            })
            .task_priority(priority)
            .running(1, "1c", node)
            .each(move |pod| own(pod, name))
        };
        let scene = Scene::new()
            .labelled_node("a1", "9c", "zone", "a")
            .labelled_node("a2", "9c", "zone", "a")
            .labelled_node("b1", "9c", "zone", "b")
            .job("high", |scene| job(scene, "high", 9, "a1"))
            .job("low", |scene| job(scene, "low", 1, "a2"));
        assert_eq!(unfriendly(&scene.build()), wanted, "{topology}");
    }
}

/// The list of namespaces in a term is honoured.
#[test]
fn anti_affinity_in_namespaces() {
    for (namespaces, n_gone) in [(&["default"][..], 0), (&["other"], 1), (&["default", "other"], 1)] {
        let scene = Scene::new()
            .node("a", "9c")
            .node("b", "9c")
            .job("far", |job| {
                job.namespace("other")
                    .shape(|shape| labelled(shape, "web"))
                    .running(1, "1c", "a")
                    .each(|pod| own(pod, "far"))
            })
            .job("guard", |job| {
                job.shape(|shape| avoids(shape, "kubernetes.io/hostname", "web", namespaces))
                    .running(1, "1c", "a")
                    .each(|pod| own(pod, "guard"))
            });
        assert_eq!(unfriendly(&scene.build()).len(), n_gone, "{namespaces:?}");
    }
}

/// Of three that avoid one another the most important stays.
#[test]
fn anti_affinity_leaves_one() {
    let scene = [("one", 5), ("two", 1), ("three", 9)].into_iter().fold(
        Scene::new().node("a", "9c").node("b", "9c"),
        |scene, (name, priority)| {
            scene.job(name, |job| {
                job.shape(|shape| {
                    labelled(shape, "web");
                    avoids(shape, "kubernetes.io/hostname", "web", &["default"]);
                })
                .task_priority(priority)
                .running(1, "1c", "a")
                .each(|pod| own(pod, name))
            })
        },
    );
    assert_eq!(unfriendly(&scene.build()), ["two-0", "one-0"]);
}

/// NoExecute is for the taint manager.
#[test]
fn node_taints_of_three_effects() {
    for (effect, arguments, n_gone) in [
        (Effect::NoSchedule, "", 1),
        (Effect::NoExecute, "", 0),
        (Effect::PreferNoSchedule, "", 0),
        (Effect::PreferNoSchedule, "includePreferNoSchedule: true", 1),
        (Effect::NoSchedule, "includedTaints: [other]", 0),
        (Effect::NoSchedule, "includedTaints: [t]", 1),
        (Effect::NoSchedule, "excludedTaints: [other]", 1),
    ] {
        let scene = Scene::new()
            .tainted_node("a", "9c", "t", effect)
            .node("b", "9c")
            .job("x", |job| job.running(1, "1c", "a").each(|pod| own(pod, "x")));
        let is = gone(&scene.build(), "RemovePodsViolatingNodeTaints", "deschedule", arguments, "");
        assert_eq!(is.len(), n_gone, "{effect:?} {arguments}");
    }
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

/// Two nodes at least; one is left out by the policy's selector.
#[test]
fn a_round_needs_two_nodes() {
    let scene = Scene::new()
        .labelled_node("a", "9c", "pool", "x")
        .node("b", "9c")
        .at(NOW)
        .job("x", |job| job.running(1, "1c", "a").each(|pod| aged(pod, "x", 100)));
    let life = |rest: &str| gone(&scene.build(), "PodLifeTime", "deschedule", "maxPodLifeTimeSeconds: 1", rest);
    assert_eq!(life("").len(), 1);
    assert_eq!(life("nodeSelector: pool=x\n").len(), 0);
}
