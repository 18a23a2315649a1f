//! A day of drifting load, with a descheduler: what must hold of it. `krafla simulate --experiment drift` prints the whole.

use krafla_simulator::experiment::drift::{Options, Report, run, table};
use krafla_test_suite::registry;

fn day(options: Options) -> Report {
    let report = run(options, registry, |_, _| {});
    assert_eq!(report.broken(), Vec::<String>::new(), "{}", table(&report, 120));
    report
}

/// with a plan, nothing goes in circles, the fullest node gets less full, and on constant load all comes to
/// rest. Without one it goes in circles, so what is counted does occur.
#[test]
fn a_day_with_a_plan_comes_to_rest() {
    let report = day(Options { nodes: 60, hours: 16, seed: 0 });
    assert!(report.unplanned.moves_in(0..16) > report.planned.moves_in(0..16));
    assert!(report.unplanned.ping_pongs > 0 && report.unplanned.returned > 0);
    assert_eq!(report, day(report.options), "the same day again");
}

/// the same on 500 nodes and 24 hours.
#[test]
#[ignore = "a minute"]
fn a_day_on_five_hundred_nodes() {
    day(Options::default());
}
