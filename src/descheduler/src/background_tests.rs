//! Evictions that somebody else takes on: who is asked, who counts, and for how long.

use std::sync::Arc;

use krafla_framework::{DeschedulerSettings, EVICTION_IN_PROGRESS, Planning, REQUEST_EVICT_ONLY};
use krafla_model::{BudgetSpec, ClusterState, Event, PodSpec, Time};
use krafla_testkit::{Scene, task_named};

use crate::testing::{Came, Rounds, own, policy, settings};

const NOW: i64 = 10_000_000;
const LIFE: &str = "maxPodLifeTimeSeconds: 10";

fn vm(pod: &mut PodSpec, name: &str, annotations: &[&str]) {
    own(pod, name);
    pod.created = Time(1);
    let shape = Arc::make_mut(&mut pod.shape);
    for key in annotations {
        shape.annotations.set((*key).into(), "".into());
    }
}

/// Two on node a with these annotations, and a plain pod of the same age on b.
fn cluster(annotations: &[&str]) -> ClusterState {
    Scene::new()
        .node("a", "9c")
        .node("b", "9c")
        .at(NOW)
        .job("vm", |job| job.running(2, "1c", "a").each(|pod| vm(pod, "vm", annotations)))
        .job("web", |job| job.running(1, "1c", "b").each(|pod| vm(pod, "web", &[])))
        .build()
}

fn round(cluster: &mut ClusterState, in_background: bool, limits: &str) -> Came {
    let text = policy("PodLifeTime", "deschedule", LIFE, limits);
    Rounds::new(&DeschedulerSettings { in_background, dry_run: true, ..settings(&text, Planning::Off) }).next(cluster)
}

#[test]
fn what_is_on_its_way_is_not_asked_again_and_counts() {
    let both = [REQUEST_EVICT_ONLY, EVICTION_IN_PROGRESS];
    for (name, annotations, in_background, limits, gone) in [
        ("the gate is off", &both[..], false, "", &["vm-0", "vm-1", "web-0"][..]),
        ("asked only", &both[..1], true, "", &["vm-0", "vm-1", "web-0"]),
        ("on their way", &both, true, "", &["web-0"]),
        ("in progress says nothing by itself", &both[1..], true, "", &["vm-0", "vm-1", "web-0"]),
        ("they count in all", &both, true, "maxNoOfPodsToEvictTotal: 3\n", &["web-0"]),
        ("they count in all, and it is full", &both, true, "maxNoOfPodsToEvictTotal: 2\n", &[]),
        ("they count on their node alone", &both, true, "maxNoOfPodsToEvictPerNode: 1\n", &["web-0"]),
        ("they count in their namespace", &both, true, "maxNoOfPodsToEvictPerNamespace: 2\n", &[]),
    ] {
        assert_eq!(round(&mut cluster(annotations), in_background, limits).gone(), gone, "{name}");
    }
}

/// Somebody has taken it on and says nothing more: that is believed for a while.
#[test]
fn what_was_taken_on_is_believed_for_a_while() {
    let mut cluster = cluster(&[REQUEST_EVICT_ONLY]);
    let first = task_named(&cluster, "vm-0");
    cluster.eviction_taken_on(first, Time(NOW + 600_000));
    let limit = "maxNoOfPodsToEvictTotal: 2\n";
    for (after, gone) in [(0, &["vm-1"][..]), (599_999, &["vm-1"]), (600_000, &["vm-0", "vm-1"])] {
        cluster.set_now(Time(NOW + after));
        assert_eq!(round(&mut cluster, true, limit).gone(), gone, "{after}");
    }
}

/// Whether one that is only asked may go is for the API server to say, not for a budget.
#[test]
fn budgets_are_not_asked_about_whoever_is_moved_while_it_runs() {
    for (in_background, n_gone) in [(true, 2), (false, 0)] {
        let mut cluster = cluster(&[REQUEST_EVICT_ONLY]);
        let selector = Some(krafla_model::labels::Selector(Vec::new()));
        let (namespace, name) = ("default".into(), "b".into());
        cluster.apply(Event::Budget(BudgetSpec {
            namespace,
            name,
            selector,
            allowed: Some(0),
            ..BudgetSpec::default()
        }));
        let gone = round(&mut cluster, in_background, "").gone();
        assert_eq!(gone.len(), n_gone, "{gone:?}");
    }
}
