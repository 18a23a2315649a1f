//! The journal's law: whatever is tried and undone leaves every book as it was.

use krafla_model::check::discrepancies;
use krafla_model::{ClusterState, NodeId, Reservation, TaskId, Time};
use krafla_testkit::Scene;
use proptest::prelude::*;

fn cluster() -> ClusterState {
    Scene::new()
        .node("n0", "8c16Gi2g")
        .node_with("n1", "4c8Gi2g", |node| node.gpu_devices = 2)
        .queue("q", |queue| queue.with(|spec| spec.parent = "root".into()))
        .queue("root", |queue| queue)
        .job("a", |job| job.min(2).queue("q").pending(4, "1c1Gi").running(2, "2c", "n0"))
        .job("b", |job| job.role("w").pending(3, "2c1g").releasing(1, "1c", "n1").pending(1, ""))
        .build()
}

/// Everything that can be seen of the books.
fn picture(cluster: &ClusterState) -> String {
    let nodes: Vec<_> = cluster.nodes().iter().map(|id| format!("{:?}", cluster.node(*id).books())).collect();
    let jobs: Vec<_> = cluster.jobs().map(|(_, job)| format!("{:?} {:?}", job.counts(), job.held())).collect();
    let queues: Vec<_> = cluster.queues().map(|(_, queue)| format!("{:?}", queue.held())).collect();
    let tasks: Vec<_> =
        cluster.tasks().map(|(_, t)| format!("{:?} {:?} {:?}", t.status(), t.node(), t.devices())).collect();
    format!("{nodes:?}\n{jobs:?}\n{queues:?}\n{tasks:?}\n{:?}\n{:?}", cluster.totals(), cluster.overdraft())
}

#[derive(Clone, Debug)]
enum Try {
    Allocate(usize, usize),
    Pipeline(usize, usize),
    Evict(usize),
    Reserve(usize, usize),
    Lift(usize),
    Undo,
}

fn tries() -> impl Strategy<Value = Vec<Try>> {
    let one = prop_oneof![
        (0..12_usize, 0..2_usize).prop_map(|(t, n)| Try::Allocate(t, n)),
        (0..12_usize, 0..2_usize).prop_map(|(t, n)| Try::Pipeline(t, n)),
        (0..12_usize).prop_map(Try::Evict),
        (0..12_usize, 0..2_usize).prop_map(|(t, n)| Try::Reserve(t, n)),
        (0..12_usize).prop_map(Try::Lift),
        Just(Try::Undo),
    ];
    proptest::collection::vec(one, 0..40)
}

proptest! {
    #[test]
    fn what_is_undone_was_never_there(tries in tries()) {
        let mut cluster = cluster();
        let before = picture(&cluster);
        let tasks: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let nodes: Vec<NodeId> = cluster.nodes().to_vec();
        let start = cluster.savepoint();
        for one in tries {
            // Most of these are refused; a refusal must change nothing either.
            match one {
                Try::Allocate(t, n) => { let _ = cluster.allocate(tasks[t % tasks.len()], nodes[n]); }
                Try::Pipeline(t, n) => { let _ = cluster.pipeline(tasks[t % tasks.len()], nodes[n]); }
                Try::Evict(t) => { let _ = cluster.evict(tasks[t % tasks.len()]); }
                Try::Reserve(t, n) => {
                    let task = tasks[t % tasks.len()];
                    let (job, shape) = (cluster.task(task).job, cluster.task(task).shape);
                    let _ = cluster.reserve(Reservation { job, shape, node: nodes[n], until: Time(1) });
                }
                Try::Lift(t) => { let _ = cluster.lift_reservation(tasks[t % tasks.len()]); }
                Try::Undo => { cluster.undo_one(start); }
            }
            prop_assert_eq!(discrepancies(&cluster), vec![]);
        }
        while cluster.undo_one(start).is_some() {}
        prop_assert_eq!(cluster.reservations().count(), 0);
        prop_assert_eq!(picture(&cluster), before);
        prop_assert_eq!(discrepancies(&cluster), vec![]);
    }
}
