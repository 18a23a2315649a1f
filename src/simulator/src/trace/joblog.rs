//! The Slurm-like job logs that Helios and Acme share: totals of GPUs and CPUs, nodes, and recorded times.
//!
//! A job with GPUs falls into pods by the rule of `gang`, not by its recorded `node_num`: that was the old scheduler's
//! answer, and often a spread that nobody asked for. A job without GPUs keeps its number of nodes.

use super::cluster::Occupancy;
use super::draft::{DEFAULT_QUEUE, Draft};
use super::error::LoadError;
use super::fields::div_ceil;
use super::gang::{self, GPUS_PER_NODE, MAX_PODS, Total};
use super::names::Names;
use super::philly::MAX_GPUS;
use super::table::{Column, Row, Table};
use super::workload::{JobShape, RoleShape};

/// Cores of a job at most: a million pods of a thousand.
const MAX_CORES: i64 = 1_000_000_000;

/// GiB of a pod at most.
const MAX_MEMORY_GIB: i64 = 1 << 20;

/// Where things stand in a log.
#[derive(Debug)]
pub(crate) struct Columns {
    id: Column,
    user: Option<Column>,
    vc: Option<Column>,
    gpus: Column,
    cores: Column,
    nodes: Option<Column>,
    memory_gib: Option<Column>,
    submit: Column,
    start: Option<Column>,
    end: Option<Column>,
    duration: Column,
}

impl Columns {
    /// Finds the columns by name; those that one of the logs lacks are optional.
    pub(crate) fn of(table: &Table) -> Result<Self, LoadError> {
        Ok(Self {
            id: table.required(&["job_id", "jobid"])?,
            user: table.optional(&["user"]),
            vc: table.optional(&["vc", "virtual_cluster"]),
            gpus: table.required(&["gpu_num", "num_gpu", "num_gpus"])?,
            cores: table.required(&["cpu_num", "num_cpu", "num_cpus"])?,
            nodes: table.optional(&["node_num", "num_node", "num_nodes"]),
            memory_gib: table.optional(&["mem_per_pod_GB", "mem_per_pod"]),
            submit: table.required(&["submit_time"])?,
            start: table.optional(&["start_time"]),
            end: table.optional(&["end_time"]),
            duration: table.required(&["duration"])?,
        })
    }
}

/// How the jobs of a log are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queues {
    /// One queue for each virtual cluster, which each job then has.
    ByVirtualCluster,
    /// One for all.
    Single,
}

/// Reads all lines into a draft; returns what ran when.
pub(crate) fn read(
    table: Table,
    queueing: Queues,
    draft: &mut Draft,
    queues: &mut Names,
) -> Result<Occupancy, LoadError> {
    let columns = Columns::of(&table)?;
    if queueing == Queues::ByVirtualCluster {
        table.required(&["vc", "virtual_cluster"])?;
    }
    let mut names = Names::default();
    let mut occupancy = Occupancy::default();
    let (mut n_never, mut n_endless) = (0, 0);
    let Draft { jobs, problems, .. } = draft;
    table.each(problems, |row| {
        let submit_ms = row.moment(columns.submit)?;
        let Some((start_ms, runtime_ms)) = run(row, &columns, submit_ms)? else {
            n_never += 1;
            return Ok(());
        };
        let roles = roles(row, &columns)?;
        let queue = match (queueing, columns.vc) {
            (Queues::ByVirtualCluster, Some(vc)) => super::philly::queue_of(row.text(vc), queues)?,
            _ => DEFAULT_QUEUE.to_owned(),
        };
        let job = JobShape {
            name: names.once(row.text(columns.id))?,
            namespace: queue.clone(),
            queue,
            user: row.text_in(columns.user).map(str::to_owned),
            submit_ms,
            runtime_ms,
            estimate_ms: None,
            min_member: gang::n_pods(&roles),
            roles,
            priority: None,
            preemptible: true,
            node_labels_any: None,
        };
        n_endless += u64::from(runtime_ms.is_none());
        occupancy.add(&job, start_ms);
        jobs.push(job);
        Ok(())
    })?;
    draft.note(
        "a job of up to 8 GPUs is one pod, a larger one pods of 8 and one remainder, all needed at once; CPU follows",
    );
    draft.note("a job without GPUs is as many pods as it had nodes, its cores spread evenly");
    draft.note(
        "jobs are in whatever their final state was; each is taken to be preemptible; dates without a zone are UTC",
    );
    draft.note_jobs(n_never, "are left out, as they never started");
    draft.note_jobs(n_endless, "have a start and no end, and never end");
    Ok(occupancy)
}

/// When a job started, and for how long it ran; `None`: it never did.
///
/// The recorded start and end decide where there are both: in Acme's Kalos log the duration includes the wait.
fn run(row: &Row<'_>, columns: &Columns, submit_ms: i64) -> Result<Option<(i64, Option<i64>)>, String> {
    let (start_ms, end_ms) = (row.moment_in(columns.start)?, row.moment_in(columns.end)?);
    let duration_ms = match row.text(columns.duration) {
        "" => None,
        _ => Some(row.seconds(columns.duration)?),
    };
    match (start_ms, end_ms, duration_ms) {
        (Some(start_ms), Some(end_ms), _) if end_ms < start_ms => Err("the job ends before it starts".into()),
        (Some(start_ms), Some(end_ms), _) => Ok(Some((start_ms, Some(end_ms - start_ms)))),
        (None, _, None | Some(0)) => Ok(None),
        (start_ms, _, duration_ms) => Ok(Some((start_ms.unwrap_or(submit_ms), duration_ms))),
    }
}

fn roles(row: &Row<'_>, columns: &Columns) -> Result<Vec<RoleShape>, String> {
    let gpus = row.integer(columns.gpus, 0..=MAX_GPUS)?;
    let cores = row.integer(columns.cores, 0..=MAX_CORES)?;
    let nodes = match row.text_in(columns.nodes) {
        Some(_) => columns.nodes.map_or(Ok(1), |column| row.integer(column, 0..=MAX_PODS))?.max(1),
        None => div_ceil(gpus, GPUS_PER_NODE),
    };
    let memory_gib = match columns.memory_gib {
        Some(column) if !row.text(column).is_empty() => row.integer(column, 0..=MAX_MEMORY_GIB)?,
        _ => 0,
    };
    let total = Total { gpus, cpu_milli: cores * 1000, memory_bytes: (memory_gib * nodes).saturating_mul(1 << 30) };
    match (gpus, cores) {
        (0, 0) => Err("the job asks for nothing".into()),
        (0, _) => gang::of_nodes(total, nodes.max(1)),
        _ => gang::of_gpus(total, GPUS_PER_NODE),
    }
}
