//! The scenarios of scale, L1 to L8, in memory: what was measured, and whether the budget is kept.

pub(crate) mod beside_running;
pub(crate) mod blocked;
mod environment;
mod restart;
mod turnover;

use krafla_engine::Step;
use krafla_framework::Effect;
use krafla_model::{Event, PodPhase, PodSpec};
use krafla_test_bench::budget::{Budget, at_least, at_most};
use krafla_test_bench::memory;

use crate::clock::least;
use crate::{Input, Outcome, case_named, reclaim, run, steady};

/// By this name all of them are asked for.
pub(crate) const NAME: &str = "scenarios";

/// All of them.
pub(crate) fn measure(percent: u32, runs: u32) -> Vec<Budget> {
    let restart = restart::measure(percent);
    let steady = steady::measure(percent);
    let beside_blocked = blocked::measure(percent, runs);
    let gangs = case_named("gangs-first-fit");
    vec![
        at_most("L1: restart, 150,000 pods, 87,000 groups: until the first bind", restart.seconds, 10.0, "s"),
        at_most("L1: pods that the first session skipped", restart.skipped, 0.0, "pods"),
        // All of it is one cycle: no two decisions are further apart.
        at_most("L2: 20 gangs of 500: between two decisions", least(runs, || run(gangs, percent).1) * 1e3, 50.0, "ms"),
        at_most("L3: 3,000 pods beside 80,000, beside none", beside_running::ratio(percent, runs), 1.05, "times"),
        at_least("L4: 500 pods a second beside 50,000 blocked by quota", beside_blocked.rate, 0.95, "of the rate"),
        at_most("L4: time of the engine for that", beside_blocked.time, 1.05, "times"),
        at_most(
            "L5: memory after 200,000 jobs, after the first tenth",
            memory::of_case(turnover::NAME, percent),
            1.05,
            "times",
        ),
        at_most(
            "L6: kept of a pod with 64 KiB of environment",
            memory::of_case(environment::NAME, percent),
            4_096.0,
            "bytes",
        ),
        at_most("L7: reclaim of 200 whole nodes of 1,000", least(runs, || reclaim::run(percent).1), 1.0, "s"),
        at_least("L8: 30,000 nodes, 800,000 pods: sustained", steady.rate, 2_000.0, "decisions/s"),
        at_most("L8: 30,000 nodes, 800,000 pods: longest cycle", steady.longest_ms, 250.0, "ms"),
    ]
}

/// Those that measure memory, in a process of their own: what the one of this name says.
pub(crate) fn of_memory(name: &str, percent: u32) -> Option<f64> {
    match name {
        turnover::NAME => Some(turnover::ratio(percent)),
        environment::NAME => Some(environment::bytes_a_pod(percent)),
        _ => None,
    }
}

/// The pods that a step has bound, as they run then.
fn started(step: &Step, spec_of: impl Fn(&str) -> PodSpec) -> Vec<PodSpec> {
    let running = |effect: &Effect| {
        let Effect::Bind { pod, node, .. } = effect else { return None };
        Some(PodSpec { node: Some(node.clone()), phase: PodPhase::Running, ..spec_of(&pod.uid) })
    };
    step.effects.iter().filter_map(running).collect()
}

/// What the engine is told of a pod that it has bound and that runs since.
fn news_of(pod: PodSpec) -> [Input; 2] {
    [Input::Outcome(Outcome::Bound { pod: pod.uid.clone() }), Input::Event(Event::Pod(pod))]
}
