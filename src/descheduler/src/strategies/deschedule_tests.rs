//! Pods that are wrong by themselves: the facts of each strategy, as tables.

use std::sync::Arc;

use krafla_model::labels::{NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::pod_affinity::{Namespaces, PodTerm};
use krafla_model::pod_details::{ConditionDetails, ContainerDetails, ContainerKind};
use krafla_model::taints::Effect;
use krafla_model::{ClusterState, PodDetails, PodPhase, PodSpec, Time};
use krafla_testkit::Scene;

use crate::testing::{own, owned_by, policy, unplanned};

type Edit<'a> = dyn Fn(&mut PodSpec, &mut PodDetails) + 'a;

/// A pod of 1 core on `a` for each entry, named `p-0` and so on, with changes.
fn pods(edits: &[&Edit<'_>]) -> ClusterState {
    let mut scene = Scene::new().node("a", "99c").node("b", "99c").at(10_000_000);
    for (i, edit) in edits.iter().enumerate() {
        scene = scene.job(&format!("p{i}"), |job| {
            job.running(1, "1c", "a").each(|pod| {
                own(pod, &format!("p{i}"));
                let mut details = owned_by(&format!("p{i}"));
                pod.created = Time(0);
                edit(pod, &mut details);
                pod.details = Some(Arc::new(details));
            })
        });
    }
    scene.build()
}

fn check(cluster: &ClusterState, strategy: &str, cases: &[(&str, &[&str])]) {
    for (arguments, gone) in cases {
        let came = unplanned(cluster.clone(), &policy(strategy, "deschedule", arguments, ""));
        let names: Vec<String> = came.gone().iter().map(|name| name.trim_end_matches("-0").to_owned()).collect();
        assert_eq!(names, *gone, "{strategy} {arguments}");
    }
}

fn container(waiting: &str, terminated: &str, exit_code: Option<i32>, restarts: u32) -> ContainerDetails {
    let (waiting, terminated) = (waiting.into(), terminated.into());
    ContainerDetails { kind: ContainerKind::Main, restarts, waiting, terminated, exit_code }
}

#[test]
fn pod_life_time() {
    let cluster = pods(&[
        &|pod, _| pod.created = Time(9_000_000),
        &|pod, _| pod.created = Time(2_000_000),
        &|pod, details| {
            pod.created = Time(1_000_000);
            details.containers = vec![container("ImagePullBackOff", "", None, 0)];
        },
        &|pod, details| {
            pod.created = Time(3_000_000);
            details.owners[0].kind = "Job".into();
            details.containers =
                vec![ContainerDetails { kind: ContainerKind::Init, ..container("", "OOMKilled", Some(137), 0) }];
        },
        &|pod, details| {
            pod.created = Time(4_000_000);
            let since = Some(Time(9_900_000));
            details.conditions =
                vec![ConditionDetails { kind: "Ready".into(), status: "False".into(), reason: "x".into(), since }];
            Arc::make_mut(&mut pod.shape).namespace = "default".into();
            Arc::make_mut(&mut pod.shape).labels.set("app".into(), "web".into());
        },
    ]);
    check(
        &cluster,
        "PodLifeTime",
        &[
            // Strictly older, the oldest first.
            ("maxPodLifeTimeSeconds: 8000", &["p2"]),
            ("maxPodLifeTimeSeconds: 7999", &["p2", "p1"]),
            ("maxPodLifeTimeSeconds: 0", &["p2", "p1", "p3", "p4", "p0"]),
            ("states: [ImagePullBackOff]", &["p2"]),
            ("states: [Running], maxPodLifeTimeSeconds: 6000", &["p2", "p1", "p3"]),
            ("states: [Pending]", &[]),
            ("states: [OOMKilled]", &[]),
            ("states: [OOMKilled], includingInitContainers: true", &["p3"]),
            ("exitCodes: [137], includingInitContainers: true", &["p3"]),
            ("maxPodLifeTimeSeconds: 6000, ownerKinds: {exclude: [Job]}", &["p2", "p1"]),
            ("maxPodLifeTimeSeconds: 6000, ownerKinds: {include: [Job]}", &["p3"]),
            ("conditions: [{type: Ready, status: \"False\"}]", &["p4"]),
            ("conditions: [{type: Ready, status: \"True\"}]", &[]),
            ("conditions: [{type: Ready, minTimeSinceLastTransitionSeconds: 100}]", &["p4"]),
            ("conditions: [{type: Ready, minTimeSinceLastTransitionSeconds: 101}]", &[]),
            ("maxPodLifeTimeSeconds: 0, labelSelector: {matchLabels: {app: web}}", &["p4"]),
            ("maxPodLifeTimeSeconds: 0, namespaces: {include: [other]}", &[]),
            ("maxPodLifeTimeSeconds: 0, namespaces: {exclude: [default]}", &[]),
        ],
    );
}

#[test]
fn failed_pods() {
    let failed = |pod: &mut PodSpec| pod.phase = PodPhase::Failed;
    let cluster = pods(&[
        &|_, _| {},
        &|pod, details| {
            failed(pod);
            details.reason = "NodeAffinity".into();
        },
        &|pod, details| {
            failed(pod);
            pod.created = Time(7_000_000);
            details.owners[0].kind = "Job".into();
            details.containers = vec![container("", "Error", Some(3), 0)];
        },
    ]);
    check(
        &cluster,
        "RemoveFailedPods",
        &[
            ("", &["p1"]),
            ("minPodLifetimeSeconds: 3000", &["p1", "p2"]),
            ("minPodLifetimeSeconds: 3001", &["p1"]),
            ("minPodLifetimeSeconds: 0, reasons: [NodeAffinity]", &["p1"]),
            ("minPodLifetimeSeconds: 0, reasons: [Error]", &["p2"]),
            ("minPodLifetimeSeconds: 0, exitCodes: [3]", &["p2"]),
            ("minPodLifetimeSeconds: 0, excludeOwnerKinds: [Job]", &["p1"]),
        ],
    );
}

/// What has ended holds no node, and is evicted all the same: so it is deleted, and its controller hears of it.
#[test]
fn a_failed_pod_is_really_evicted() {
    let cluster = pods(&[&|pod, _| pod.phase = PodPhase::Failed]);
    let came = unplanned(cluster, &policy("RemoveFailedPods", "deschedule", "", ""));
    match &came.decisions[..] {
        [krafla_framework::Decision::Evict(_, certificate)] => {
            let cause = certificate.cause.as_ref().expect("a cause");
            assert_eq!((&*cause.plugin, &*certificate.node), ("RemoveFailedPods", "a"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn too_many_restarts() {
    let restarts = |n: u32, init: u32| {
        move |_: &mut PodSpec, details: &mut PodDetails| {
            details.containers = vec![
                container(if n > 100 { "CrashLoopBackOff" } else { "" }, "", None, n),
                ContainerDetails { kind: ContainerKind::Init, ..container("", "", None, init) },
            ];
        }
    };
    let cluster = pods(&[&restarts(4, 9), &restarts(50, 0), &restarts(101, 0), &restarts(5, 0)]);
    check(
        &cluster,
        "RemovePodsHavingTooManyRestarts",
        &[
            // The total counts, and whoever was begun again most often goes first.
            ("podRestartThreshold: 5", &["p2", "p1", "p3"]),
            ("podRestartThreshold: 5, includingInitContainers: true", &["p2", "p1", "p0", "p3"]),
            ("podRestartThreshold: 102", &[]),
            ("podRestartThreshold: 5, states: [CrashLoopBackOff]", &["p2"]),
            ("podRestartThreshold: 5, states: [Running]", &["p2", "p1", "p3"]),
        ],
    );
}

#[test]
fn node_taints() {
    let scene = Scene::new()
        .tainted_node("a", "9c", "hard", Effect::NoSchedule)
        .tainted_node("b", "9c", "soft", Effect::PreferNoSchedule)
        .node("c", "9c")
        .job("h", |job| job.running(1, "1c", "a").each(|pod| own(pod, "h")))
        .job("ok", |job| job.tolerates("hard").running(1, "1c", "a").each(|pod| own(pod, "ok")))
        .job("s", |job| job.running(1, "1c", "b").each(|pod| own(pod, "s")));
    check(
        &scene.build(),
        "RemovePodsViolatingNodeTaints",
        &[
            ("", &["h"]),
            ("includePreferNoSchedule: true", &["h", "s"]),
            ("excludedTaints: [hard]", &[]),
            ("excludedTaints: [hard=x]", &["h"]),
            ("includedTaints: [soft], includePreferNoSchedule: true", &["s"]),
            ("namespaces: {exclude: [default]}", &[]),
        ],
    );
}

#[test]
fn node_affinity() {
    let zone = |value: &str| NodeSelectorTerm {
        labels: vec![Requirement { key: "zone".into(), test: Test::In(vec![value.into()]) }],
        ..NodeSelectorTerm::default()
    };
    let scene = Scene::new()
        .labelled_node("a", "9c", "zone", "a")
        .labelled_node("b", "4c", "zone", "b")
        .job("left", |job| {
            job.shape(|shape| shape.required_affinity = Some(vec![zone("b")]))
                .running(1, "1c", "a")
                .each(|pod| own(pod, "left"))
        })
        .job("large", |job| {
            job.shape(|shape| shape.required_affinity = Some(vec![zone("b")]))
                .running(1, "5c", "a")
                .each(|pod| own(pod, "large"))
        })
        .job("right", |job| {
            job.shape(|shape| shape.required_affinity = Some(vec![zone("a")]))
                .running(1, "1c", "a")
                .each(|pod| own(pod, "right"))
        })
        .job("likes", |job| job.prefers(7, zone("b")).running(1, "1c", "a").each(|pod| own(pod, "likes")))
        .job("content", |job| job.prefers(7, zone("a")).running(1, "1c", "a").each(|pod| own(pod, "content")));
    check(
        &scene.build(),
        "RemovePodsViolatingNodeAffinity",
        &[
            // Who fits nowhere else stays.
            ("nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]", &["left"]),
            ("nodeAffinityType: [preferredDuringSchedulingIgnoredDuringExecution]", &["likes"]),
            (
                "nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution, \
                 preferredDuringSchedulingIgnoredDuringExecution]",
                &["left", "likes"],
            ),
        ],
    );
}

#[test]
fn anti_affinity() {
    let avoid = |shape: &mut krafla_model::PodShape, app: &str| {
        let requirement = Requirement { key: "app".into(), test: Test::In(vec!["x".into()]) };
        shape.labels.set("app".into(), app.into());
        shape.pod_anti_affinity.required.push(PodTerm {
            topology_key: "kubernetes.io/hostname".into(),
            selector: Some(Selector(vec![requirement])),
            namespaces: Namespaces { names: vec!["default".into()], selector: None },
        });
    };
    let scene = |extra: u32| {
        Scene::new()
            .node("a", "9c")
            .node("b", "9c")
            .job("low", |job| {
                job.shape(|shape| avoid(shape, "x")).task_priority(1).running(1, "1c", "a").each(|pod| own(pod, "low"))
            })
            .job("high", |job| {
                job.shape(|shape| avoid(shape, "x")).task_priority(9).running(1, "1c", "a").each(|pod| own(pod, "high"))
            })
            .job("alone", |job| {
                job.shape(|shape| avoid(shape, "y")).running(extra, "1c", "b").each(|pod| own(pod, "alone"))
            })
    };
    // Once the one of low priority is gone, the other has nobody near.
    check(&scene(1).build(), "RemovePodsViolatingInterPodAntiAffinity", &[("", &["low"])]);
}
