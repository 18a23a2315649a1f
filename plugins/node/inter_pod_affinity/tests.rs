use krafla_model::PodShape;
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_affinity::{Namespaces, PodTerm};
use krafla_testkit::{JobScene, Scene};

use super::{AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY};
use crate::testing::{objection, run, scores};

const PLUGINS: &[&str] = &["gang", "predicates"];

/// Two zones of two nodes.
fn zones() -> Scene {
    [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")].into_iter().fold(Scene::new(), |scene, (name, zone)| {
        scene.node_with(name, "8c", |node| {
            node.labels.set("zone".into(), zone.into());
            node.labels.set("host".into(), name.into());
        })
    })
}

/// Pods with `app: <app>` in the domains of `key`.
fn app(app: &str, key: &str) -> PodTerm {
    let is = Requirement { key: "app".into(), test: Test::In(vec![app.into()]) };
    PodTerm {
        topology_key: key.into(),
        selector: Some(Selector(vec![is])),
        namespaces: Namespaces { names: vec!["default".into()], selector: None },
    }
}

fn labelled(app: &'static str) -> impl Fn(&mut PodShape) {
    move |shape| shape.labels.set("app".into(), app.into())
}

fn objections(scene: &Scene) -> Vec<Option<&'static str>> {
    ["a1", "a2", "b1", "b2"].map(|node| objection(scene, PLUGINS, "p-0", node).map(|(why, _)| why)).into()
}

#[test]
fn affinity_wants_a_matching_pod_in_the_domain() {
    let scene = zones()
        .job("w", |job| job.shape(labelled("web")).running(1, "1c", "a1"))
        .job("p", |job| job.shape(|s| s.pod_affinity.required.push(app("web", "zone"))).pending(1, "1c"));
    assert_eq!(objections(&scene), [None, None, Some(AFFINITY), Some(AFFINITY)]);
    assert_eq!(objection(&scene, PLUGINS, "p-0", "b1"), Some((AFFINITY, false)), "no eviction helps");
}

#[test]
fn a_pod_has_to_match_all_terms_to_count() {
    let both = |s: &mut PodShape| s.pod_affinity.required.extend([app("web", "zone"), app("db", "zone")]);
    let scene = zones()
        .job("w", |job| job.shape(labelled("web")).running(1, "1c", "a1"))
        .job("d", |job| job.shape(labelled("db")).running(1, "1c", "a1"))
        .job("p", |job| job.shape(both).pending(1, "1c"));
    assert_eq!(objections(&scene), [Some(AFFINITY); 4]);
}

#[test]
fn the_first_of_its_kind_may_go_anywhere_where_there_are_domains() {
    let own = |s: &mut PodShape| {
        labelled("web")(s);
        s.pod_affinity.required.push(app("web", "zone"));
    };
    let scene = zones().node("bare", "8c").job("p", |job| job.shape(own).pending(3, "1c"));
    assert_eq!(objections(&scene), [None; 4]);
    assert_eq!(objection(&scene, PLUGINS, "p-0", "bare"), Some((AFFINITY, false)));
    let outcome = run(&scene, "allocate", PLUGINS);
    assert_eq!(outcome.binds, ["p-0 -> a1", "p-1 -> a1", "p-2 -> a1"], "the rest follow the first");
}

#[test]
fn anti_affinity_keeps_away_both_ways() {
    let away = |s: &mut PodShape| s.pod_anti_affinity.required.push(app("web", "zone"));
    let web = |job: JobScene| job.shape(labelled("web"));
    let scene =
        zones().job("w", |job| web(job).running(1, "1c", "a1")).job("p", |job| job.shape(away).pending(1, "1c"));
    assert_eq!(objections(&scene), [Some(ANTI_AFFINITY), Some(ANTI_AFFINITY), None, None]);
    assert_eq!(objection(&scene, PLUGINS, "p-0", "a1"), Some((ANTI_AFFINITY, true)), "an eviction helps");
    let scene =
        zones().job("w", |job| job.shape(away).running(1, "1c", "a1")).job("p", |job| web(job).pending(1, "1c"));
    assert_eq!(objections(&scene), [Some(EXISTING_ANTI_AFFINITY), Some(EXISTING_ANTI_AFFINITY), None, None]);
}

#[test]
fn one_of_a_kind_a_node() {
    let alone = |s: &mut PodShape| {
        labelled("web")(s);
        s.pod_anti_affinity.required.push(app("web", "host"));
    };
    let scene = zones().job("p", |job| job.shape(alone).min(4).pending(4, "1c"));
    assert_eq!(run(&scene, "allocate", PLUGINS).binds, ["p-0 -> a1", "p-1 -> a2", "p-2 -> b1", "p-3 -> b2"]);
    let scene = zones().job("p", |job| job.shape(alone).min(5).pending(5, "1c"));
    let outcome = run(&scene, "allocate", PLUGINS);
    assert!(outcome.binds.is_empty(), "a gang is whole or not at all");
    assert!(outcome.reasons["p"].1.contains("4 node(s) didn't match pod anti-affinity rules"), "{:?}", outcome.reasons);
}

#[test]
fn namespaces_are_those_named_or_those_selected() {
    let elsewhere = |s: &mut PodShape| {
        let mut term = app("web", "zone");
        term.namespaces.names = vec!["other".into()];
        s.pod_anti_affinity.required.push(term);
    };
    let everywhere = |s: &mut PodShape| {
        let mut term = app("web", "zone");
        term.namespaces = Namespaces { names: Vec::new(), selector: Some(Selector::default()) };
        s.pod_anti_affinity.required.push(term);
    };
    let with = |terms: fn(&mut PodShape)| {
        zones()
            .job("w", |job| job.shape(labelled("web")).running(1, "1c", "a1"))
            .job("p", |job| job.shape(terms).pending(1, "1c"))
    };
    assert_eq!(objections(&with(elsewhere)), [None; 4]);
    assert_eq!(objections(&with(everywhere)), [Some(ANTI_AFFINITY), Some(ANTI_AFFINITY), None, None]);
}

//
#[test]
fn preferences_of_both_sides_add_up_by_domain() {
    let only = "nodeorder podaffinity.weight=1 leastrequested.weight=0 balancedresource.weight=0 \
                tainttoleration.weight=0 imagelocality.weight=0 nodeaffinity.weight=0 podtopologyspread.weight=0";
    let prefers = |s: &mut PodShape| {
        labelled("new")(s);
        s.pod_affinity.preferred.push((10, app("web", "zone")));
        s.pod_anti_affinity.preferred.push((5, app("db", "host")));
    };
    let likes_new = |s: &mut PodShape| {
        labelled("db")(s);
        s.pod_affinity.preferred.push((20, app("new", "host")));
    };
    let scene = zones()
        .job("w", |job| job.shape(labelled("web")).running(1, "1c", "a1"))
        .job("d", |job| job.shape(likes_new).running(1, "1c", "b1"))
        .job("p", |job| job.shape(prefers).pending(1, "1c"));
    // Raw sums: 10 in zone a; 20 - 5 on b1; 0 on b2. From 0 to 15 onto 0 to 100.
    assert_eq!(scores(&scene, &[only], "p-0"), [66.0, 66.0, 100.0, 0.0]);
    let indifferent = zones().job("p", |job| job.pending(1, "1c"));
    assert_eq!(scores(&indifferent, &[only], "p-0"), [0.0; 4]);
}
