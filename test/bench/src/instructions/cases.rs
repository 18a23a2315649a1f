//! The cases whose instructions are counted: one for each way to decide, and small, since counting is fifty times as slow.

use std::hint::black_box;

use krafla_model::{Event, QueueSpec, Time};
use krafla_test_bench::workloads::Workload;

use crate::clock::timed_step;
use crate::scenarios::{beside_running, blocked};
use crate::{Case, FIRST_FIT, Input, SCORED, against_plain, filled, growth, reclaim, run, shapes};

/// A case, and what runs it.
pub(super) struct Counted {
    pub(super) name: &'static str,
    pub(super) run: fn(),
}

const fn counted(name: &'static str, run: fn()) -> Counted {
    Counted { name, run }
}

/// By name.
pub(super) const CASES: [Counted; 17] = [
    counted("affinity", || workload("SchedulingPodAffinity", 4)),
    counted("beside-no-pods", || beside_running::some_rounds(20, false)),
    counted("beside-running-pods", || beside_running::some_rounds(20, true)),
    counted("blocked-by-quota", || blocked::some_seconds(5)),
    counted("device-claims", || workload("SchedulingWithResourceClaimTemplate", 4)),
    counted("equal-pods-first-fit", || place(Case { name: "", pods_each: 2_000, configuration: FIRST_FIT, ..PODS })),
    counted("equal-pods-profile", || _ = black_box(against_plain::rate_of("equal-pods, default profile", 20, 1))),
    counted("equal-pods-scored", || place(Case { pods_each: 2_000, ..PODS })),
    counted("gangs-scored", || place(Case { jobs: 20, pods_each: 100, minimum: 100, shapes: 20, ..PODS })),
    counted("idle-cycles", idle),
    counted("pod-by-pod-on-a-large-cluster", || _ = black_box(growth::cycle(2_000, 1))),
    counted("preemption", || workload("PreemptionBasic", 10)),
    counted("reclaim", || _ = black_box(reclaim::run(10))),
    counted("spread", || workload("TopologySpreading", 4)),
    counted("thousand-shapes-scored", || place(Case { jobs: 2_000, shapes: 1_000, nodes: 100, ..PODS })),
    counted("unschedulable-beside", || workload("Unschedulable", 10)),
    counted("volumes", || workload("SchedulingCSIPVs", 2)),
];

/// What the cases with pods of jobs have in common.
const PODS: Case =
    Case { name: "", nodes: 200, jobs: 1, pods_each: 1, minimum: 1, shapes: 1, running: 0, configuration: SCORED };

fn place(case: Case) {
    let (decisions, _) = run(&case, 100);
    assert_eq!(decisions, case.jobs * case.pods_each, "every pod finds a node");
}

fn workload(name: &str, percent: usize) {
    let workload = Workload::named(name).expect("the workload is there").scaled(percent);
    shapes::seconds(&workload);
}

/// Cycles with something that stirs, and nothing to place: what is left is the audit of a slice of the books.
fn idle() {
    let mut engine = filled(&Case { nodes: 1_000, jobs: 0, pods_each: 0, running: 10_000, ..PODS }, 100);
    for i in 0..100 {
        let queue = QueueSpec { name: "other".into(), weight: 1 + i % 2, ..QueueSpec::default() };
        let now = Time(10_000 + 1_000 * i64::from(i));
        timed_step(&mut engine, now, vec![Input::Event(Event::Queue(queue))]);
    }
}
