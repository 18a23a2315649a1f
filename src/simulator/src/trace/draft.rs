//! From what an importer read to a workload: order, cut, derive, compress, scale.
//!
//! Importers fill a [`Draft`] in the order of their file and in the file's own time. Everything that is the same for all
//! traces happens here, in one order, so that options mean the same whatever the trace.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::LoadError;
use super::options::Options;
use super::problems::Problems;
use super::workload::{JobShape, NodeShape, QueueShape, Scaling, Workload};
use super::{derive, fields, fit, scale};

/// The queue of jobs whose trace has none, and its namespace.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// A workload under construction.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The nodes, in the order of the file.
    pub(crate) nodes: Vec<NodeShape>,
    /// Whether the nodes' CPU and memory may be raised for the sake of the jobs.
    pub(crate) node_sizes: NodeSizes,
    /// Queues and weights.
    pub(crate) queues: BTreeMap<String, u32>,
    /// Priority classes and values.
    pub(crate) priorities: BTreeMap<String, i32>,
    /// The jobs in any order; `submit_ms` in the file's own time.
    pub(crate) jobs: Vec<JobShape>,
    /// Where the workload's clock starts.
    pub(crate) start: Start,
    /// One sentence for each assumption.
    pub(crate) notes: Vec<String>,
    /// What was left out.
    pub(crate) problems: Problems,
}

/// Where the CPU and memory of nodes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeSizes {
    /// From the trace: they stay as they are.
    Known,
    /// Assumed: a node is at least as large as the largest pod.
    Assumed,
}

/// Where the workload's clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// At the first submission.
    FirstSubmission,
    /// Where the file's clock starts.
    OfFile,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            node_sizes: NodeSizes::Known,
            queues: BTreeMap::new(),
            priorities: BTreeMap::new(),
            jobs: Vec::new(),
            start: Start::FirstSubmission,
            notes: Vec::new(),
            problems: Problems::default(),
        }
    }
}

impl Draft {
    /// Adds a note.
    pub(crate) fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Adds a note about a number of jobs, unless there are none. `what` follows «jobs that».
    pub(crate) fn note_jobs(&mut self, n_jobs: u64, what: &str) {
        if n_jobs > 0 {
            self.notes.push(format!("jobs that {what}: {n_jobs}"));
        }
    }
}

/// Finishes a draft. Cost: jobs x log(jobs), and jobs x distinct node shapes.
pub(crate) fn finish(mut draft: Draft, path: &Path, kind: &str, options: &Options) -> Result<Workload, LoadError> {
    if draft.jobs.is_empty() {
        let first = draft.problems.into_vec();
        let first = first.first().map_or(String::new(), |problem| format!("; the first problem is {problem}"));
        return Err(LoadError::NoJobs { path: path.to_path_buf(), first });
    }
    order(&mut draft, options);
    derive::derive(&mut draft, options);
    compress(&mut draft, options);
    if draft.node_sizes == NodeSizes::Assumed {
        raise(&mut draft, options);
    }
    let trace_nodes: u64 = draft.nodes.iter().map(|shape| u64::from(shape.count)).sum();
    if let Some(wanted) = options.nodes
        && u64::from(wanted) != trace_nodes
    {
        draft.nodes = scale::to_count(&draft.nodes, wanted);
        draft.note(format!("the cluster is scaled from {trace_nodes} to {wanted} nodes, the mix of shapes kept"));
    }
    for job in &draft.jobs {
        draft.queues.entry(job.queue.clone()).or_insert(1);
    }
    let deserved = if options.derive.deserved { derive::deserved(&mut draft) } else { BTreeMap::new() };
    let n_stuck = fit::n_stuck(&draft.nodes, &draft.jobs);
    draft.note_jobs(n_stuck, "can never start, as they do not fit into the empty cluster");

    let mut priorities: Vec<(String, i32)> = draft.priorities.into_iter().collect();
    priorities.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let nodes: u64 = draft.nodes.iter().map(|shape| u64::from(shape.count)).sum();
    Ok(Workload {
        name: format!("{kind} {file}"),
        nodes: draft.nodes,
        queues: draft
            .queues
            .into_iter()
            .map(|(name, weight)| QueueShape { deserved: deserved.get(&name).copied(), name, weight })
            .collect(),
        priorities,
        jobs: draft.jobs,
        scaling: Scaling { time_compression: options.time_compression, trace_nodes, nodes },
        notes: draft.notes,
        problems: draft.problems.into_vec(),
    })
}

/// Sorts the jobs, sets the clock, and keeps the first of them.
fn order(draft: &mut Draft, options: &Options) {
    draft.jobs.sort_by(|one, other| (one.submit_ms, &one.name).cmp(&(other.submit_ms, &other.name)));
    let first_ms = draft.jobs.first().map_or(0, |job| job.submit_ms);
    if draft.start == Start::FirstSubmission {
        for job in &mut draft.jobs {
            job.submit_ms -= first_ms;
        }
    }
    if let Some(limit) = options.limit
        && limit < draft.jobs.len()
    {
        let n_jobs = draft.jobs.len();
        draft.jobs.truncate(limit);
        draft.note(format!("only the first {limit} of {n_jobs} jobs are in the workload"));
    }
}

/// Divides the times between submissions, and keeps the first where it is.
fn compress(draft: &mut Draft, options: &Options) {
    let factor = options.time_compression;
    #[expect(clippy::float_cmp, reason = "exactly 1 is the default, and means untouched")]
    if factor == 1.0 {
        return;
    }
    let first_ms = draft.jobs.first().map_or(0, |job| job.submit_ms);
    for job in &mut draft.jobs {
        job.submit_ms = first_ms + fields::divided(job.submit_ms - first_ms, factor);
    }
    // Rounding may have made neighbours equal, and then the name decides.
    draft.jobs.sort_by(|one, other| (one.submit_ms, &one.name).cmp(&(other.submit_ms, &other.name)));
    draft.note(if factor.is_infinite() {
        "all jobs are submitted at the start".into()
    } else {
        format!("the times between submissions are divided by {factor}; run times are the trace's")
    });
}

/// Makes assumed nodes large enough for each pod, so that an assumption does not decide what can run.
fn raise(draft: &mut Draft, options: &Options) {
    let requests = || draft.jobs.iter().flat_map(|job| &job.roles).map(|role| role.request);
    let cpu_milli = requests().map(|pod| pod.cpu_milli).max().unwrap_or(0);
    let memory_bytes = requests().map(|pod| pod.memory_bytes).max().unwrap_or(0);
    let (cpu_per_gpu, memory_per_gpu) =
        (options.derive.cpu_per_gpu.unwrap_or(0), options.derive.memory_per_gpu.unwrap_or(0));
    let mut raised = false;
    for node in &mut draft.nodes {
        let before = (node.cpu_milli, node.memory_bytes);
        node.cpu_milli = node.cpu_milli.max(cpu_milli).max(cpu_per_gpu.saturating_mul(node.gpus));
        node.memory_bytes = node.memory_bytes.max(memory_bytes).max(memory_per_gpu.saturating_mul(node.gpus));
        raised |= before != (node.cpu_milli, node.memory_bytes);
    }
    if raised {
        draft.note(format!(
            "the assumed nodes are raised to {} cores and {} GiB, as the largest pods need it",
            draft.nodes.iter().map(|node| node.cpu_milli).max().unwrap_or(0) / 1000,
            draft.nodes.iter().map(|node| node.memory_bytes).max().unwrap_or(0) >> 30,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    fn draft() -> Draft {
        let mut draft = Draft { nodes: vec![testkit::node("n", 4)], ..Draft::default() };
        for (name, submit_ms) in [("c", 5_000), ("b", 3_000), ("a", 3_000)] {
            draft.jobs.push(JobShape { submit_ms, ..testkit::job(name, 1, testkit::pod(1)) });
        }
        draft
    }

    fn submissions(draft: Draft, options: &Options) -> Vec<(String, i64)> {
        let workload = finish(draft, Path::new("f"), "test", options).expect("a workload");
        workload.jobs.into_iter().map(|job| (job.name, job.submit_ms)).collect()
    }

    #[test]
    fn jobs_come_in_order_from_the_first_submission() {
        let want = [("a".to_owned(), 0), ("b".to_owned(), 0), ("c".to_owned(), 2_000)];
        assert_eq!(submissions(draft(), &Options::default()), want);
        let own = Draft { start: Start::OfFile, ..draft() };
        assert_eq!(submissions(own, &Options { limit: Some(1), ..Options::default() }), [("a".to_owned(), 3_000)]);
    }

    #[test]
    fn compression_divides_the_gaps_and_not_the_start() {
        let own = || Draft { start: Start::OfFile, ..draft() };
        let options = Options { time_compression: 10.0, ..Options::default() };
        assert_eq!(submissions(own(), &options)[2], ("c".to_owned(), 3_200));
        let options = Options { time_compression: f64::INFINITY, ..Options::default() };
        assert_eq!(submissions(own(), &options)[2], ("c".to_owned(), 3_000));
    }

    #[test]
    fn a_job_that_never_fits_and_a_cluster_that_is_scaled_are_noted() {
        let options = Options { nodes: Some(1), ..Options::default() };
        let mut draft = draft();
        draft.jobs.push(testkit::job("wide", 2, testkit::pod(8)));
        let workload = finish(draft, Path::new("f"), "test", &options).expect("a workload");
        assert_eq!(
            workload.notes,
            [
                "the cluster is scaled from 4 to 1 nodes, the mix of shapes kept",
                "jobs that can never start, as they do not fit into the empty cluster: 1"
            ]
        );
        assert_eq!((workload.scaling.trace_nodes, workload.scaling.nodes, workload.n_nodes()), (4, 1, 1));
    }

    #[test]
    fn assumed_nodes_grow_to_the_largest_pod() {
        let mut draft = Draft { node_sizes: NodeSizes::Assumed, ..draft() };
        draft.jobs.push(testkit::job(
            "large",
            1,
            super::super::workload::PodShape { cpu_milli: 96_000, ..testkit::pod(8) },
        ));
        let workload = finish(draft, Path::new("f"), "test", &Options::default()).expect("a workload");
        assert_eq!(workload.nodes[0].cpu_milli, 96_000);
        assert_eq!(workload.notes, ["the assumed nodes are raised to 96 cores and 8 GiB, as the largest pods need it"]);
    }
}
