//! Real traces, where they are: `KRAFLA_DATA` names the folder that holds them. Without it these tests say so and pass.

use std::path::PathBuf;

use krafla_simulator::play::{Play, play};
use krafla_simulator::report::summary::{Summary, summarize};
use krafla_simulator::trace::{Kind, load, options::Options};
use krafla_simulator::world::{Restart, Setup};
use krafla_test_suite::registry;

const FIFO: &str = include_str!("../../../../conf/presets/fifo.conf");

/// A file of the traces; `None`, with a word to the reader, if it is not there.
pub(crate) fn data(path: &str) -> Option<PathBuf> {
    let file =
        std::env::var_os("KRAFLA_DATA").map(|folder| PathBuf::from(folder).join(path)).filter(|file| file.exists());
    if file.is_none() {
        eprintln!("NOT TESTED: {path} is not there; set KRAFLA_DATA to the folder of traces");
    }
    file
}

fn simulate(kind: Kind, path: &str, conf: &str, warmup: f64) -> Option<Summary> {
    let workload = load(kind, &data(path)?, &Options::default()).expect("the trace loads");
    let mut setup = Setup {
        configuration: Some(("test.conf".to_owned(), conf.to_owned())),
        collect_finished: true,
        ..Setup::default()
    };
    setup.engine.events = false;
    let played = play(Play::Trace(workload), setup, None, registry, |_| {}, &mut |_| {});
    assert_eq!(played.broken, Vec::<String>::new());
    Some(summarize(&played.record, warmup))
}

/// First come, first served, skipping what does not fit: a mean wait of 96.7 minutes and a mean bounded slowdown of
/// 71.9, as an independent simulation of the same log found.
#[test]
fn kth_sp2_waits_as_long_as_in_an_independent_simulation() {
    let Some(summary) = simulate(Kind::Swf, "swf/KTH-SP2.swf", FIFO, 0.01) else { return };
    let near = |is: f64, wanted: f64| (is / wanted - 1.0).abs() < 0.02;
    assert_eq!((summary.jobs, summary.finished), (28_489, 28_489));
    assert!(near(summary.mean_wait_seconds / 60.0, 96.7), "{} minutes", summary.mean_wait_seconds / 60.0);
    assert!(near(summary.mean_bounded_slowdown, 71.9), "{}", summary.mean_bounded_slowdown);
}

#[test]
fn philly_runs_to_its_end_with_virtual_clusters_as_queues() {
    let conf = include_str!("../../../../conf/presets/volcano-builtin.conf");
    let Some(summary) = simulate(Kind::Philly, "philly/philly_jobs.csv", conf, 0.0) else { return };
    assert_eq!((summary.jobs, summary.finished, summary.pending), (82_247, 82_247, 0));
}

/// The first jobs of a cut of Philly, preemptive: who knows what is left is ahead of who knows what was had, and that of
/// who knows nothing. Restarts from checkpoints, 30 s each.
#[test]
fn knowing_more_makes_jobs_end_sooner() {
    let Some(path) = data("muri/trace3.csv") else { return };
    let run = |conf: &str| {
        let options = Options { limit: Some(250), nodes: Some(3), ..Options::default() };
        let workload = load(Kind::Muri, &path, &options).expect("the trace loads");
        let mut setup = Setup {
            configuration: Some(("test.conf".to_owned(), conf.to_owned())),
            restart: Restart::FromCheckpoint { cost_ms: 30_000 },
            collect_finished: true,
            ..Setup::default()
        };
        setup.engine.events = false;
        let played = play(Play::Trace(workload), setup, None, registry, |_| {}, &mut |_| {});
        assert_eq!(played.broken, Vec::<String>::new());
        summarize(&played.record, 0.0)
    };
    let srsf = run(include_str!("../../../../conf/presets/srsf.conf"));
    let las = run(include_str!("../../../../conf/presets/las.conf"));
    let fifo = run(FIFO);
    let ended = |summary: &Summary| (summary.finished, summary.pending);
    assert_eq!([&srsf, &las, &fifo].map(ended), [(fifo.finished, fifo.pending); 3]);
    let [first, second, third] = [&srsf, &las, &fifo].map(|summary| summary.mean_jct_seconds);
    assert!(first <= second && second <= third, "srsf {first}, las {second}, fifo {third}");
    assert!(srsf.evictions > 0 && las.evictions > 0, "nothing was tried");
    assert!(srsf.lost_gpu_hours > 0.0 && las.lost_gpu_hours > 0.0, "every restart costs");
    assert_eq!(fifo.lost_gpu_hours, 0.0);
}
