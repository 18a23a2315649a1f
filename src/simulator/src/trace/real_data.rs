//! The public traces themselves, where a folder with them is at hand: set `KRAFLA_DATA` to it.
//!
//! The folder is the one that the data's own page describes (`swf/`, `philly/`, `openb/`, `muri/`). Without it the test says so
//! on stderr and passes. It checks counts, and prints loads and notes with `--nocapture`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::offered::{self, OfferedLoad};
use super::options::{NodeList, Options};
use super::workload::Workload;
use super::{Kind, load};

pub(crate) fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("KRAFLA_DATA").map(PathBuf::from);
    if folder.is_none() {
        // Not `eprintln!`, which the test harness keeps to itself when a test passes.
        let said = "\nSKIPPED: KRAFLA_DATA is not set to a folder with the public traces; nothing was checked\n";
        std::io::stderr().write_all(said.as_bytes()).expect("stderr");
    }
    folder
}

fn read(folder: &Path, kind: Kind, file: &str, options: &Options) -> (Workload, OfferedLoad) {
    #[allow(clippy::disallowed_methods, reason = "measures the test, never the workload")]
    let start = Instant::now();
    let workload = load(kind, &folder.join(file), options).expect("a public trace loads");
    let took = start.elapsed();
    let load = offered::offered_load(&workload);
    eprintln!(
        "{}: {} jobs, {} pods, {} nodes, {} queues in {took:.0?}\n  {load}",
        workload.name,
        workload.jobs.len(),
        workload.n_pods(),
        workload.n_nodes(),
        workload.queues.len()
    );
    for note in &workload.notes {
        eprintln!("  - {note}");
    }
    for problem in workload.problems.iter().take(5) {
        eprintln!("  ! {problem}");
    }
    (workload, load)
}

#[test]
fn public_traces_have_their_counts() {
    let Some(folder) = data() else { return };
    // Jobs and nodes as the data's page and its files have them.
    for (kind, file, n_jobs, n_nodes) in [
        (Kind::Swf, "swf/KTH-SP2.swf", 28_489, 100),
        (Kind::Swf, "swf/CEA-Curie-sample.swf", 29_998, 5_832),
        (Kind::Philly, "philly/philly_jobs.csv", 82_247, 352),
        (Kind::Openb, "openb/openb_pod_list_default.csv", 8_152, 1_213),
        (Kind::Openb, "openb/openb_pod_list_gpuspec33.csv", 8_152, 1_213),
        (Kind::Openb, "openb/openb_pod_list_gpushare100.csv", 8_152, 1_213),
        (Kind::Openb, "openb/openb_pod_list_multigpu50.csv", 9_061, 1_213),
        (Kind::Openb, "openb/openb_pod_list_cpu250.csv", 9_420, 1_213),
        (Kind::Muri, "muri/trace1.csv", 1_494, 8),
        (Kind::Muri, "muri/trace2.csv", 5_755, 8),
        (Kind::Muri, "muri/trace3.csv", 992, 8),
        (Kind::Muri, "muri/trace4.csv", 2_638, 8),
    ] {
        let (workload, _) = read(&folder, kind, file, &Options::default());
        assert_eq!((workload.jobs.len(), workload.n_nodes()), (n_jobs, n_nodes), "{file}");
        assert_eq!(workload.problems, [], "{file}");
    }
}

#[test]
fn public_traces_have_their_loads() {
    let Some(folder) = data() else { return };
    let close = |found: Option<f64>, want: f64| found.is_some_and(|found| (found - want).abs() < 0.005);
    let (kth, load) = read(&folder, Kind::Swf, "swf/KTH-SP2.swf", &Options::default());
    assert!(close(load.cpu.load, 0.69), "{load}");
    let outlived = kth.jobs.iter().filter(|job| job.estimate_ms < job.runtime_ms).count();
    assert_eq!((outlived, kth.n_pods()), (475, 218_457));
    let (_, load) = read(&folder, Kind::Swf, "swf/CEA-Curie-sample.swf", &Options::default());
    assert!(close(load.cpu.load, 0.63), "{load}");
    let (_, load) = read(&folder, Kind::Philly, "philly/philly_jobs.csv", &Options::default());
    assert!(close(load.gpu.load, 0.13), "{load}");
    let sixth = Options { nodes: Some(59), time_compression: 2.0, ..Options::default() };
    let (_, load) = read(&folder, Kind::Philly, "philly/philly_jobs.csv", &sixth);
    assert!(load.gpu.load.is_some_and(|load| load > 1.5), "{load}");
    let (openb, load) = read(&folder, Kind::Openb, "openb/openb_pod_list_default.csv", &Options::default());
    assert!((load.gpu.requested - 6_086.8).abs() < 0.1 && load.gpu.capacity == 6_212.0, "{load}");
    assert_eq!(openb.jobs.iter().filter(|job| job.roles[0].request.gpu_milli > 0).count(), 3_078);
    let all = Options { node_list: NodeList::All, ..Options::default() };
    let (openb, _) = read(&folder, Kind::Openb, "openb/openb_pod_list_gpuspec33.csv", &all);
    assert_eq!(
        (openb.n_nodes(), openb.jobs.iter().filter(|job| job.node_labels_any.is_some()).count()),
        (1_523, 2_388)
    );
}
