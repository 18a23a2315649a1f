//! Each budget of the design, and each goal that needs no API server: what was measured, and whether it is kept.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use crate::{CASES, against_plain, growth, memory, reclaim, run, scaled, steady};

/// A budget, and what was measured.
#[derive(Serialize)]
pub(crate) struct Budget {
    name: &'static str,
    value: f64,
    budget: f64,
    unit: &'static str,
    ok: bool,
}

fn at_least(name: &'static str, value: f64, budget: f64, unit: &'static str) -> Budget {
    Budget { name, value, budget, unit, ok: value >= budget }
}

fn at_most(name: &'static str, value: f64, budget: f64, unit: &'static str) -> Budget {
    Budget { name, value, budget, unit, ok: value <= budget }
}

/// Measures, prints a table, and writes it as JSON where asked. The exit code is 1 if a budget is not kept.
pub(crate) fn all(percent: u32, runs: u32, json: Option<&Path>) -> ExitCode {
    let budgets = measure(percent, runs);
    println!("{:<60} {:>14} {:>14} {:<12} kept", "budget", "measured", "budget", "unit");
    for Budget { name, value, budget, unit, ok } in &budgets {
        println!("{name:<60} {value:>14.2} {budget:>14.2} {unit:<12} {}", if *ok { "yes" } else { "NO" });
    }
    let written = json.map(|path| {
        let text = serde_json::to_string_pretty(&budgets).expect("plain values");
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    });
    if let Some(Err(error)) = written {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    ExitCode::from(u8::from(budgets.iter().any(|budget| !budget.ok)))
}

#[allow(clippy::cast_precision_loss, reason = "bytes for people")]
fn measure(percent: u32, runs: u32) -> Vec<Budget> {
    let case = |name: &str| CASES.iter().find(|case| case.name == name).expect("the case is there");
    // The fastest of some runs: nothing makes a run faster than it is.
    let seconds = |name: &str| {
        let case = case(name);
        (0..runs.max(1)).map(|_| run(case, percent).1).fold(f64::INFINITY, f64::min)
    };
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
            (0..runs.max(1)).map(|_| reclaim::run(percent).1).fold(f64::INFINITY, f64::min),
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
