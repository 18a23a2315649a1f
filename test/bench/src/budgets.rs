//! Each budget of the design, and each goal that needs no API server: what was measured, and whether it is kept.

use std::path::Path;
use std::process::ExitCode;

use krafla_test_bench::budget::{Budget, at_least, at_most, report};
use krafla_test_bench::memory;

use crate::clock::least;
use crate::{CASES, against_plain, growth, reclaim, run, scaled, steady};

/// Measures, prints a table, and writes it as JSON where asked. The exit code is 1 if a budget is not kept.
pub(crate) fn all(percent: u32, runs: u32, json: Option<&Path>) -> ExitCode {
    match report(&measure(percent, runs), json) {
        Ok(broken) => ExitCode::from(u8::from(broken > 0)),
        Err(error) => {
            eprintln!("--json: {error}");
            ExitCode::from(2)
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "bytes for people")]
fn measure(percent: u32, runs: u32) -> Vec<Budget> {
    let case = |name: &str| CASES.iter().find(|case| case.name == name).expect("the case is there");
    let seconds = |name: &str| least(runs, || run(case(name), percent).1);
    const MIB: f64 = (1 << 20) as f64;
    let idle = "nothing-to-do-beside-150000";
    let held = memory::of_case(idle, percent) as f64;
    let pods = f64::from(scaled(case(idle).running, percent));
    let steady = steady::measure(percent);
    let equal = against_plain::rate_of("equal-pods, default profile", percent, runs);
    vec![
        at_most("session with nothing to do, 5,000 nodes, 150,000 pods", seconds(idle) * 1e3, 5.0, "ms"),
        at_least(
            "10,000 equal pods on 5,000 empty nodes, scored",
            against_plain::rate_of("equal-pods, helm", percent, runs),
            200_000.0,
            "decisions/s",
        ),
        at_least("the same in kube-scheduler's default profile", equal, 200_000.0, "decisions/s"),
        at_least(
            "10,000 pods of 1,000 shapes on 5,000 nodes, every node",
            against_plain::rate_of("thousand-shapes, helm", percent, runs),
            20_000.0,
            "decisions/s",
        ),
        // All of it is one cycle: no two decisions are further apart.
        at_most("20 gangs of 500 on 2,000 nodes: between two decisions", seconds("gangs-first-fit") * 1e3, 50.0, "ms"),
        at_most(
            "reclaim of 200 whole nodes of 1,000 full of small jobs",
            least(runs, || reclaim::run(percent).1),
            1.0,
            "s",
        ),
        at_most("memory, 5,000 nodes, 150,000 pods", held / MIB, 1_024.0, "MiB"),
        at_most("memory a pod, beside 5,000 nodes", held / pods, 4_096.0, "bytes"),
        at_most(
            "twice the cluster, the same change: cost of a cycle",
            growth::ratio(percent, runs, 2, 1),
            1.1,
            "times",
        ),
        at_most("twice the change: cost of a cycle", growth::ratio(percent, runs, 1, 2), 2.2, "times"),
        at_least("30,000 nodes, 800,000 pods: sustained", steady.rate, 2_000.0, "decisions/s"),
        at_most("30,000 nodes, 800,000 pods: longest cycle", steady.longest_ms, 250.0, "ms"),
    ]
}
