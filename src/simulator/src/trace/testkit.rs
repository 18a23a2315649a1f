//! Small files and workloads for the tests of this folder.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::options::Options;
use super::workload::{GpuSharing, JobShape, NodeShape, PodShape, RoleShape, Workload};
use super::{Kind, load};

/// A folder with these files, gone with the value.
pub(crate) fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file for the test");
    }
    folder
}

/// Loads the first of these files.
pub(crate) fn load_first(kind: Kind, files: &[(&str, &str)], options: &Options) -> Result<Workload, String> {
    let bytes: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let folder = folder(&bytes);
    let path: PathBuf = folder.path().join(files[0].0);
    load(kind, &path, options).map_err(|error| error.to_string())
}

/// `line: message` of each problem.
pub(crate) fn problems(workload: &Workload) -> Vec<String> {
    let line = |line: Option<u64>| line.map_or("-".to_owned(), |line| line.to_string());
    workload.problems.iter().map(|problem| format!("{}: {}", line(problem.line), problem.message)).collect()
}

/// Nodes of 8 cores, 8 GiB and 8 GPUs.
pub(crate) fn node(name: &str, count: u32) -> NodeShape {
    NodeShape {
        name: name.into(),
        count,
        cpu_milli: 8_000,
        memory_bytes: 8 << 30,
        pods: 110,
        gpus: 8,
        gpu_sharing: GpuSharing::Whole,
        labels: Vec::new(),
    }
}

/// A job of equal pods in queue `default`, submitted at 0, that runs 10 s.
pub(crate) fn job(name: &str, replicas: u32, request: PodShape) -> JobShape {
    JobShape {
        name: name.into(),
        namespace: "default".into(),
        queue: "default".into(),
        user: None,
        submit_ms: 0,
        runtime_ms: Some(10_000),
        estimate_ms: None,
        roles: vec![RoleShape { name: "worker".into(), replicas, request }],
        min_member: replicas,
        priority: None,
        preemptible: false,
        node_labels_any: None,
    }
}

/// A pod of one core and some GPUs.
pub(crate) fn pod(gpus: i64) -> PodShape {
    PodShape { cpu_milli: 1_000, memory_bytes: 1 << 30, gpus, gpu_milli: 0 }
}
