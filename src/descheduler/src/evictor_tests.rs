//! Who is protected, as a table, and the limits.

use std::sync::Arc;

use krafla_model::labels::Selector;
use krafla_model::{BudgetSpec, Event, PodDetails, PodPhase, PodSpec, Time};
use krafla_testkit::Scene;

use crate::evictor::{EVICT, PREFER_NO_EVICTION};
use crate::testing::{own, owned_by, policy, unplanned, with_evictor};

type Edit = dyn Fn(&mut PodSpec, &mut PodDetails);

fn scene(edit: &Edit) -> Scene {
    Scene::new().node("a", "9c").node("b", "9c").at(1_000_000).job("x", |job| {
        job.running(1, "1c", "a").each(|pod| {
            own(pod, "x");
            pod.created = Time(0);
            let mut details = owned_by("x");
            edit(pod, &mut details);
            pod.details = Some(Arc::new(details));
        })
    })
}

fn annotate(pod: &mut PodSpec, key: &str) {
    Arc::make_mut(&mut pod.shape).annotations.set(key.into(), "".into());
}

fn goes(scene: &Scene, evictor: &str) -> bool {
    let policy = with_evictor("PodLifeTime", "deschedule", "maxPodLifeTimeSeconds: 10", evictor);
    unplanned(scene.build(), &policy).gone().len() == 1
}

#[test]
fn protections() {
    let plain: &Edit = &|_, _| {};
    let local: &Edit = &|_, details| details.local_storage = true;
    let daemon: &Edit = &|_, details| details.owners[0].kind = "DaemonSet".into();
    let critical: &Edit = &|pod, _| pod.priority = 2_000_000_000;
    let important: &Edit = &|pod, _| pod.priority = 1_000;
    let bare: &Edit = &|_, details| details.owners.clear();
    let failed_bare: &Edit = &|pod, details| {
        details.owners.clear();
        pod.phase = PodPhase::Failed;
    };
    let claims: &Edit = &|_, details| details.storage_claims = vec!["c".into()];
    let devices: &Edit = &|_, details| details.resource_claims = true;
    let is_static: &Edit = &|_, details| details.is_static = true;
    let marked: &Edit = &|pod, details| {
        annotate(pod, EVICT);
        details.local_storage = true;
        details.owners.clear();
    };
    let reluctant: &Edit = &|pod, _| annotate(pod, PREFER_NO_EVICTION);
    for (name, edit, evictor, wanted) in [
        ("plain", plain, "", true),
        ("local storage", local, "", false),
        ("local storage, old way", local, "evictLocalStoragePods: true", true),
        ("local storage, new way", local, "podProtections: {defaultDisabled: [PodsWithLocalStorage]}", true),
        ("a daemon", daemon, "", false),
        ("a daemon, old way", daemon, "evictDaemonSetPods: true", true),
        ("critical", critical, "", false),
        ("critical, old way", critical, "evictSystemCriticalPods: true", true),
        ("important", important, "", true),
        ("important, below the threshold", important, "priorityThreshold: {value: 1001}", true),
        ("important, at the threshold", important, "priorityThreshold: {value: 1000}", false),
        // The threshold counts only while the protection that it belongs to does.
        (
            "important, at the threshold, and critical ones go too",
            important,
            "priorityThreshold: {value: 1000}, podProtections: {defaultDisabled: [SystemCriticalPods]}",
            true,
        ),
        ("bare", bare, "", false),
        ("bare, and only failed ones go", bare, "evictFailedBarePods: true", false),
        ("bare and failed", failed_bare, "", false),
        ("bare and failed, old way", failed_bare, "evictFailedBarePods: true", true),
        ("claims", claims, "", true),
        ("claims, old way", claims, "ignorePvcPods: true", false),
        ("claims, new way", claims, "podProtections: {extraEnabled: [PodsWithPVC]}", false),
        (
            "claims of another class",
            claims,
            "podProtections: {extraEnabled: [PodsWithPVC], config: {PodsWithPVC: {protectedStorageClasses: [{name: s}]}}}",
            true,
        ),
        ("without budget", plain, "podProtections: {extraEnabled: [PodsWithoutPDB]}", false),
        ("devices", devices, "podProtections: {extraEnabled: [PodsWithResourceClaims]}", false),
        ("devices, not protected", devices, "", true),
        ("static", is_static, "", false),
        ("marked", marked, "", true),
        ("reluctant", reluctant, "", true),
        ("reluctant, which is law", reluctant, "noEvictionPolicy: Mandatory", false),
        ("not selected", plain, "labelSelector: {matchLabels: {a: b}}", false),
        ("too few of its owner", plain, "minReplicas: 2", false),
        ("one is enough", plain, "minReplicas: 1", true),
        ("old enough", plain, "minPodAge: 16m", true),
        ("too young", plain, "minPodAge: 17m", false),
        ("namespace not selected", plain, "namespaceLabelSelector: {matchLabels: {a: b}}", false),
    ] {
        assert_eq!(goes(&scene(edit), evictor), wanted, "{name}: {evictor}");
    }
}

#[test]
fn mistakes_in_arguments() {
    for (evictor, wanted) in [
        ("evictDaemonSetPods: true, podProtections: {}", "keep one of them"),
        ("priorityThreshold: {value: 1, name: x}", "both `value` and `name` are given"),
        ("priorityThreshold: {value: 2000000001}", "has to be from"),
        ("podProtections: {defaultDisabled: [Daemons]}", "there is no `Daemons`"),
        ("noEvictionPolicy: Never", "there is no `Never`"),
        ("nodeFits: true", "there is no field `nodeFits`"),
        ("minPodAge: 10", "has to be a duration"),
    ] {
        let text = with_evictor("PodLifeTime", "deschedule", "maxPodLifeTimeSeconds: 10", evictor);
        let settings = crate::testing::settings(&text, krafla_framework::Planning::Off);
        let said = crate::build(&settings).err().unwrap_or_default().join("\n");
        assert!(said.replace("\n", " ").contains(wanted), "{evictor}\n{said}");
    }
}

/// no more than the limits, and who is over one of them is told which.
#[test]
fn limits() {
    let many = Scene::new()
        .node("a", "99c")
        .node("b", "99c")
        .node("c", "99c")
        .at(1_000_000)
        .job("x", |job| {
            job.running(10, "1c", "a").each(|pod| {
                own(pod, "x");
                pod.created = Time(1);
            })
        })
        .job("y", |job| {
            job.namespace("other").running(10, "1c", "b").each(|pod| {
                own(pod, "y");
                pod.created = Time(1);
            })
        });
    for (rest, n_gone, said) in [
        ("", 20, None),
        ("maxNoOfPodsToEvictPerNode: 3\n", 6, Some("per node")),
        ("maxNoOfPodsToEvictPerNamespace: 4\n", 8, Some("per namespace")),
        ("maxNoOfPodsToEvictTotal: 5\n", 5, Some("in the round")),
        ("maxNoOfPodsToEvictTotal: 5\nmaxNoOfPodsToEvictPerNode: 3\n", 5, Some("in the round")),
        ("maxNoOfPodsToEvictTotal: 0\n", 0, Some("in the round")),
    ] {
        let came = unplanned(many.build(), &policy("PodLifeTime", "deschedule", "maxPodLifeTimeSeconds: 10", rest));
        assert_eq!(came.gone().len(), n_gone, "{rest}");
        let refusals = came.refusals().join("\n");
        assert_eq!(said.is_some_and(|said| refusals.contains(said)), said.is_some(), "{rest}: {refusals}");
    }
}

/// a workload that is at its minimum is left alone.
#[test]
fn budgets_are_never_overspent() {
    let scene = |allowed: u32| {
        let budget = BudgetSpec {
            namespace: "default".into(),
            name: "b".into(),
            selector: Some(Selector(Vec::new())),
            allowed: Some(allowed),
            ..BudgetSpec::default()
        };
        Scene::new()
            .node("a", "99c")
            .node("b", "99c")
            .at(1_000_000)
            .job("x", |job| {
                job.running(5, "1c", "a").each(|pod| {
                    own(pod, "x");
                    pod.created = Time(1);
                })
            })
            .event(Event::Budget(budget))
    };
    for allowed in [0, 1, 3] {
        let came =
            unplanned(scene(allowed).build(), &policy("PodLifeTime", "deschedule", "maxPodLifeTimeSeconds: 10", ""));
        assert_eq!(came.gone().len(), allowed as usize);
        assert!(came.refusals()[0].contains("disruption budget"));
    }
}
