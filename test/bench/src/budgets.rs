//! Each budget of the design, and each goal that needs no API server: what was measured, and whether it is kept.

use std::path::Path;
use std::process::ExitCode;

use krafla_test_bench::budget::{Budget, at_least, at_most, report};
use krafla_test_bench::memory;

use crate::clock::least;
use crate::{against_plain, case_named, growth, run, scaled, scenarios};

/// Prints a table, and writes it as JSON where asked. The exit code is 1 if a budget is not kept.
pub(crate) fn table(budgets: &[Budget], json: Option<&Path>) -> ExitCode {
    match report(budgets, json) {
        Ok(broken) => ExitCode::from(u8::from(broken > 0)),
        Err(error) => {
            eprintln!("--json: {error}");
            ExitCode::from(2)
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "bytes for people")]
pub(crate) fn measure(percent: u32, runs: u32) -> Vec<Budget> {
    const MIB: f64 = (1 << 20) as f64;
    let idle = "nothing-to-do-beside-150000";
    let held = memory::of_case(idle, percent);
    let pods = f64::from(scaled(case_named(idle).running, percent));
    let seconds = least(runs, || run(case_named(idle), percent).1);
    let equal = against_plain::rate_of("equal-pods, default profile", percent, runs);
    let mut all = vec![
        at_most("session with nothing to do, 5,000 nodes, 150,000 pods", seconds * 1e3, 5.0, "ms"),
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
        at_most("memory, 5,000 nodes, 150,000 pods", held / MIB, 1_024.0, "MiB"),
        at_most("memory a pod, beside 5,000 nodes", held / pods, 4_096.0, "bytes"),
        at_most(
            "twice the cluster, the same change: cost of a cycle",
            growth::ratio(percent, runs, 2, 1),
            1.1,
            "times",
        ),
        at_most("twice the change: cost of a cycle", growth::ratio(percent, runs, 1, 2), 2.2, "times"),
    ];
    all.extend(scenarios::measure(percent, runs));
    all
}
