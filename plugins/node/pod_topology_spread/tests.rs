use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_affinity::SpreadConstraint;
use krafla_model::pod_affinity::{Workload, WorkloadSpec};
use krafla_model::{Event, PodShape};
use krafla_testkit::{JobScene, Scene};

use super::ZONE;
use super::filter::{BROKEN, NO_LABEL};
use crate::testing::{objection, run, scores, scores_one_by_one};

const PLUGINS: &[&str] = &["gang", "predicates"];

fn app(app: &str) -> Option<Selector> {
    Some(Selector(vec![Requirement { key: "app".into(), test: Test::In(vec![app.into()]) }]))
}

fn constraint(key: &str, max_skew: u32, must_hold: bool) -> SpreadConstraint {
    SpreadConstraint {
        max_skew,
        topology_key: key.into(),
        must_hold,
        selector: app("web"),
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    }
}

/// A web pod with these constraints.
fn web(constraints: &[SpreadConstraint]) -> impl Fn(&mut PodShape) {
    move |shape| {
        shape.labels.set("app".into(), "web".into());
        shape.spread = constraints.to_vec();
    }
}

/// A node in each of the zones a, b and c.
fn zones() -> Scene {
    ["a", "b", "c"].into_iter().fold(Scene::new(), |scene, zone| {
        scene.node_with(zone, "32c", |node| node.labels.set(ZONE.into(), zone.into()))
    })
}

fn objections(scene: &Scene) -> Vec<Option<&'static str>> {
    ["a", "b", "c"].map(|node| objection(scene, PLUGINS, "p-0", node).map(|(why, _)| why)).into()
}

#[test]
fn ten_over_three_zones_are_four_three_three() {
    let scene = zones().job("p", |job| job.shape(web(&[constraint(ZONE, 1, true)])).pending(10, "1c"));
    let outcome = run(&scene, "allocate", PLUGINS);
    let on = |node: &str| outcome.binds.iter().filter(|bind| bind.ends_with(&format!("-> {node}"))).count();
    assert_eq!([on("a"), on("b"), on("c")], [4, 3, 3]);
}

#[test]
fn a_node_without_the_label_is_out_for_good_and_a_full_domain_until_an_eviction() {
    let scene = zones()
        .node("bare", "8c")
        .job("w", |job| job.shape(web(&[])).running(1, "1c", "a"))
        .job("p", |job| job.shape(web(&[constraint(ZONE, 1, true)])).pending(1, "1c"));
    assert_eq!(objections(&scene), [Some(BROKEN), None, None]);
    assert_eq!(objection(&scene, PLUGINS, "p-0", "a"), Some((BROKEN, true)));
    assert_eq!(objection(&scene, PLUGINS, "p-0", "bare"), Some((NO_LABEL, false)));
}

#[test]
fn too_few_domains_count_as_an_empty_one() {
    let least = |min_domains| SpreadConstraint { min_domains, ..constraint(ZONE, 1, true) };
    let scene = |min_domains| {
        ["a", "b", "c"]
            .into_iter()
            .fold(zones(), |scene, zone| {
                scene.job(&format!("w{zone}"), |job| job.shape(web(&[])).running(1, "1c", zone))
            })
            .job("p", |job| job.shape(web(&[least(min_domains)])).pending(1, "1c"))
    };
    assert_eq!(objections(&scene(3)), [None; 3]);
    assert_eq!(objections(&scene(4)), [Some(BROKEN); 3]);
}

#[test]
fn excluded_nodes_do_not_hold_the_minimum_down() {
    let tainted = || {
        zones().node_with("d", "8c", |node| {
            node.labels.set(ZONE.into(), "d".into());
            node.taints.push(krafla_model::taints::Taint {
                key: "x".into(),
                value: "".into(),
                effect: krafla_model::taints::Effect::NoSchedule,
            });
        })
    };
    let scene = |honors_taints| {
        let one = SpreadConstraint { honors_taints, ..constraint(ZONE, 1, true) };
        ["a", "b", "c"]
            .into_iter()
            .fold(tainted(), |scene, zone| {
                scene.job(&format!("w{zone}"), |job| job.shape(web(&[])).running(1, "1c", zone))
            })
            .job("p", |job| job.shape(web(&[one])).pending(1, "1c"))
    };
    assert_eq!(objections(&scene(false)), [Some(BROKEN); 3], "zone d is empty");
    assert_eq!(objections(&scene(true)), [None; 3], "zone d does not count");
}

#[test]
fn who_terminates_does_not_count() {
    let scene = zones()
        .job("w", |job| job.shape(web(&[])).releasing(1, "1c", "a"))
        .job("p", |job| job.shape(web(&[constraint(ZONE, 1, true)])).pending(1, "1c"));
    assert_eq!(objections(&scene), [None; 3]);
}

const ONLY: &str = "nodeorder podtopologyspread.weight=1 leastrequested.weight=0 balancedresource.weight=0 \
                    tainttoleration.weight=0 imagelocality.weight=0 nodeaffinity.weight=0 podaffinity.weight=0";

#[test]
fn soft_constraints_rank_the_emptiest_domain_first() {
    let scene = |constraints: &[SpreadConstraint]| {
        let twice = |job: JobScene| job.shape(web(&[])).running(2, "1c", "a");
        zones()
            .node("bare", "8c")
            .job("w", twice)
            .job("v", |job| job.shape(web(&[])).running(1, "1c", "b"))
            .job("p", |job| job.shape(web(constraints)).pending(1, "1c"))
    };
    // Weight ln(3 + 2) = 1.609: 3.2, 1.6 and 0 are 3, 2 and 0; then 100 * (3 + 0 - s) / 3. `bare` sorts before `c`.
    assert_eq!(scores(&scene(&[constraint(ZONE, 1, false)]), &[ONLY], "p-0"), [0.0, 33.0, 0.0, 100.0]);
    assert_eq!(scores(&scene(&[]), &[ONLY], "p-0"), [0.0; 4], "nothing selects it, so no default applies");
}

#[test]
fn an_empty_selector_counts_nobody() {
    let all = SpreadConstraint { selector: Some(Selector::default()), ..constraint(ZONE, 1, false) };
    let scene = zones()
        .job("w", |job| job.shape(web(&[])).running(2, "1c", "a"))
        .job("p", |job| job.shape(web(&[all])).pending(1, "1c"));
    assert_eq!(scores_one_by_one(&scene, "PodTopologySpread", "p-0"), [200.0; 3]);
}

#[test]
fn by_default_pods_are_spread_for_their_services_and_their_workload_at_once() {
    let selects = |kind: &str, value: &str| {
        let workload = Workload { kind: kind.into(), name: "w".into() };
        let selector = Selector(vec![Requirement { key: "app".into(), test: Test::In(vec![value.into()]) }]);
        Event::Workload(WorkloadSpec { namespace: "default".into(), workload, selector: Some(selector) })
    };
    let scene = |own: &str| {
        let owned = |shape: &mut PodShape| {
            shape.labels.set("app".into(), "web".into());
            shape.workload = Some(Workload { kind: "ReplicaSet".into(), name: "w".into() });
        };
        zones()
            .event(selects("Service", "web"))
            .event(selects("ReplicaSet", own))
            .job("w", |job| job.shape(web(&[])).running(2, "1c", "a"))
            .job("p", |job| job.shape(owned).pending(1, "1c"))
    };
    let even = [200.0; 3];
    assert_ne!(scores_one_by_one(&scene("web"), "PodTopologySpread", "p-0"), even);
    // A pod is `web` or `db`; nobody is both.
    assert_eq!(scores_one_by_one(&scene("db"), "PodTopologySpread", "p-0"), even);
}
