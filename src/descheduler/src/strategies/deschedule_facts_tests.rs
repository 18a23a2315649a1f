//! The facts of the fact sheet on each strategy at `deschedule`, as a stranger would try them: small clusters, and who goes.

use std::sync::Arc;

use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_affinity::{Namespaces, PodTerm};
use krafla_model::pod_details::{ContainerDetails, ContainerKind};
use krafla_model::taints::Effect;
use krafla_model::{ClusterState, PodPhase, PodShape, PodSpec, Time};
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

/// Whoever was begun again most often goes first, node by node.
#[test]
fn restarts_within_the_limit_of_a_node() {
    let scene = [("x", "a", 7), ("y", "a", 9), ("z", "b", 6)].into_iter().fold(
        Scene::new().node("a", "9c").node("b", "9c"),
        |scene, (name, node, restarts)| {
            scene.job(name, |job| {
                job.running(1, "1c", node).each(|pod| {
                    own(pod, name);
                    let mut details = crate::testing::owned_by(name);
                    let half = |restarts| ContainerDetails {
                        kind: ContainerKind::Main,
                        restarts,
                        waiting: "".into(),
                        terminated: "".into(),
                        exit_code: None,
                    };
                    // All containers count together.
                    details.containers = vec![half(restarts / 2), half(restarts - restarts / 2)];
                    pod.details = Some(Arc::new(details));
                })
            })
        },
    );
    let cluster = scene.build();
    for (threshold, rest, wanted) in [
        (6, "", &["y-0", "x-0", "z-0"][..]),
        (7, "", &["y-0", "x-0"]),
        (6, "maxNoOfPodsToEvictPerNode: 1\n", &["y-0", "z-0"]),
        (6, "maxNoOfPodsToEvictTotal: 1\n", &["y-0"]),
        (10, "", &[]),
    ] {
        let arguments = format!("podRestartThreshold: {threshold}");
        let is = gone(&cluster, "RemovePodsHavingTooManyRestarts", "deschedule", &arguments, rest);
        assert_eq!(is, wanted, "{threshold} {rest}");
    }
}
