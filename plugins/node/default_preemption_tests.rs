use krafla_model::budget::{Aim, BudgetSpec, Share};
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::{Event, PodSpec, Time};
use krafla_testkit::{JobScene, Outcome, Scene};

use crate::testing::run_one_by_one;

fn important(job: JobScene) -> JobScene {
    job.each(|pod| pod.priority = 100)
}

fn labelled(app: &'static str) -> impl Fn(JobScene) -> JobScene {
    move |job| job.shape(|shape| shape.labels.set("app".into(), app.into()))
}

/// A budget for the pods of an app, of whom so many may go.
fn budget(app: &str, allowed: u32) -> Event {
    let selector = Selector(vec![Requirement { key: "app".into(), test: Test::In(vec![app.into()]) }]);
    Event::Budget(BudgetSpec {
        namespace: "default".into(),
        name: app.into(),
        selector: Some(selector),
        aim: Some(Aim::MinAvailable(Share::Count(1))),
        allowed: Some(allowed),
        disrupted: Vec::new(),
    })
}

fn evicted(scene: &Scene) -> Vec<String> {
    let outcome: Outcome = run_one_by_one(scene);
    assert!(outcome.binds.is_empty(), "{:?}", outcome.binds);
    outcome.evictions
}

// A-041.
#[test]
fn only_as_many_go_as_have_to_and_the_least_important_first() {
    let scene = Scene::new()
        .node("n", "4c")
        .job("a", |job| job.running(2, "1c", "n").each(|pod| pod.priority = 5))
        .job("b", |job| job.running(2, "1c", "n").each(|pod| pod.priority = 3))
        .job("p", |job| important(job.pending(1, "1c")));
    assert_eq!(evicted(&scene).len(), 1);
    assert!(evicted(&scene)[0].starts_with('b'), "{:?}", evicted(&scene));
}

// A-015, A-049.
#[test]
fn equals_and_the_never_preempting_take_nothing() {
    let full = |pod: fn(JobScene) -> JobScene| {
        Scene::new()
            .node("n", "1c")
            .job("a", |job| job.running(1, "1c", "n").each(|pod| pod.priority = 100))
            .job("p", |job| pod(job.pending(1, "1c")))
    };
    assert!(evicted(&full(important)).is_empty(), "equal priority");
    let never = |job: JobScene| {
        job.each(|pod| {
            pod.priority = 1_000;
            std::sync::Arc::make_mut(&mut pod.shape).never_preempts = true;
        })
    };
    assert!(evicted(&full(never)).is_empty());
    let more: fn(JobScene) -> JobScene = |job| job.each(|pod| pod.priority = 1_000);
    assert_eq!(evicted(&full(more)), ["a-0"]);
}

#[test]
fn the_smallest_disruption_by_the_criteria_in_their_order() {
    let fill = |scene: Scene, node: &'static str, priorities: &[i32]| {
        let scene = scene.node(node, "2c");
        priorities.iter().enumerate().fold(scene, |scene, (i, &priority)| {
            scene.job(&format!("{node}{i}"), |job| {
                job.running(1, "1c", node).each(move |pod: &mut PodSpec| pod.priority = priority)
            })
        })
    };
    let pod = |scene: Scene| scene.job("p", |job| important(job.pending(1, "2c")));
    // The highest priority of the victims decides before their sum.
    let scene = pod(fill(fill(Scene::new(), "x", &[1, 9]), "y", &[8, 8]));
    assert_eq!(evicted(&scene), ["y0-0", "y1-0"]);
    let scene = pod(fill(fill(Scene::new(), "x", &[8, 7]), "y", &[8, 2]));
    assert_eq!(evicted(&scene), ["y0-0", "y1-0"], "the smaller sum");
    let scene = pod(fill(fill(Scene::new(), "x", &[8, 8]), "y", &[8]));
    assert_eq!(evicted(&scene), ["y0-0"], "fewer victims");
}

#[test]
fn the_later_start_goes_where_all_else_is_equal() {
    let at = |started: i64| move |pod: &mut PodSpec| pod.started = Some(Time(started));
    let scene = Scene::new()
        .node("x", "1c")
        .node("y", "1c")
        .job("a", |job| job.running(1, "1c", "x").each(at(1_000)))
        .job("b", |job| job.running(1, "1c", "y").each(at(2_000)))
        .job("p", |job| important(job.pending(1, "1c")));
    assert_eq!(evicted(&scene), ["b-0"]);
}

#[test]
fn whom_a_budget_protects_goes_only_if_nobody_else_helps() {
    let scene = |allowed| {
        Scene::new()
            .node("n", "2c")
            .job("a", |job| labelled("web")(job).running(1, "1c", "n"))
            .job("b", |job| labelled("db")(job).running(1, "1c", "n"))
            .event(budget("db", allowed))
            .event(budget("web", 0))
    };
    let one = |allowed| scene(allowed).job("p", |job| important(job.pending(1, "1c")));
    assert_eq!(evicted(&one(1)), ["b-0"], "it may be disrupted");
    let both = scene(0).job("p", |job| important(job.pending(1, "2c")));
    assert_eq!(evicted(&both).len(), 2, "budgets are a preference");
}

// A-040.
#[test]
fn nobody_is_taken_from_a_node_that_does_not_suit() {
    let scene = Scene::new()
        .node("n", "1c")
        .job("a", |job| job.running(1, "1c", "n"))
        .job("p", |job| important(job.selects("disk", "ssd").pending(1, "1c")));
    assert!(evicted(&scene).is_empty());
}

#[test]
fn who_was_nominated_counts_even_where_it_does_not_fit() {
    for (priority, binds) in [(0, &[][..]), (100, &["p-0 -> n"][..])] {
        let nominated = |pod: &mut PodSpec| {
            pod.priority = 50;
            pod.nominated = Some("n".into());
        };
        let scene = Scene::new()
            .node("n", "4c")
            .job("r", |job| job.running(1, "3c", "n"))
            .job("a", |job| job.selects("no", "where").pending(1, "3c").each(nominated))
            .job("p", |job| job.pending(1, "1c").each(move |pod: &mut PodSpec| pod.priority = priority));
        assert_eq!(run_one_by_one(&scene).binds, binds, "priority {priority}");
    }
}

#[test]
fn what_terminates_is_not_free_for_others_than_who_waits_for_it() {
    let nominated = |pod: &mut PodSpec| {
        pod.priority = 50;
        pod.nominated = Some("n".into());
    };
    let scene = Scene::new()
        .node("n", "4c")
        .job("r", |job| job.releasing(1, "3c", "n"))
        .job("a", |job| job.selects("no", "where").pending(1, "3c").each(nominated))
        .job("p", |job| job.pending(1, "1c").each(|pod: &mut PodSpec| pod.priority = 0));
    assert!(run_one_by_one(&scene).binds.is_empty());
}
