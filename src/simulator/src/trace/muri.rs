//! The Philly cuts of the Muri artifact (Zhao et al., SIGCOMM '22): `trace1.csv` to `trace4.csv`.
//!
//! Columns read: `job_id, num_gpu, submit_time` and `duration` in milliseconds, `priority`. The variants that the paper calls
//! trace1' to trace4' are the same jobs with infinite time compression. The cluster is `n8g8.csv` beside the trace, or the
//! same assumed. Stage times are not read: they are for sharing one GPU in time, which pods do not do.

use std::path::Path;

use super::cluster;
use super::draft::{DEFAULT_QUEUE, Draft};
use super::error::LoadError;
use super::gang::{self, GPUS_PER_NODE, Total};
use super::names::Names;
use super::philly::MAX_GPUS;
use super::table::Table;
use super::workload::{JobShape, NodeShape};

/// Milliseconds at most: 10,000 years.
const MAX_MS: i64 = 10_000 * 366 * 86_400_000;

/// Reads a cut.
pub(crate) fn read(path: &Path) -> Result<Draft, LoadError> {
    let table = Table::open(path)?;
    let id = table.required(&["job_id"])?;
    let num_gpu = table.required(&["num_gpu", "num_gpus"])?;
    let submit = table.required(&["submit_time"])?;
    let duration = table.required(&["duration"])?;
    let priority = table.optional(&["priority"]);
    let mut draft = Draft::default();
    let mut names = Names::default();
    let Draft { jobs, problems, priorities, .. } = &mut draft;
    table.each(problems, |row| {
        let total = Total { gpus: row.integer(num_gpu, 1..=MAX_GPUS)?, ..Total::default() };
        let roles = gang::of_gpus(total, GPUS_PER_NODE)?;
        let (submit_ms, runtime_ms) = (row.integer(submit, 0..=MAX_MS)?, row.integer(duration, 0..=MAX_MS)?);
        let class = match priority {
            Some(column) => Some(i32::try_from(row.integer(column, 0..=1_000_000)?).unwrap_or(i32::MAX)),
            None => None,
        };
        let name = names.once(row.text(id))?;
        let priority = class.map(|value| {
            let name = format!("priority-{value}");
            priorities.insert(name.clone(), value);
            name
        });
        jobs.push(JobShape {
            name,
            namespace: DEFAULT_QUEUE.into(),
            queue: DEFAULT_QUEUE.into(),
            user: None,
            submit_ms,
            runtime_ms: Some(runtime_ms),
            estimate_ms: Some(runtime_ms),
            min_member: gang::n_pods(&roles),
            roles,
            priority,
            preemptible: true,
            node_labels_any: None,
        });
        Ok(())
    })?;
    draft.note("a job of up to 8 GPUs is one pod, a larger one pods of 8 and one remainder, all needed at once");
    draft.note("run times are told to the scheduler, exactly, as the paper's policies that know durations assume");
    draft.note("CPU and memory are not in the trace: pods ask for none unless that is derived");
    draft.note("all jobs are in one queue and preemptible; the priority column becomes classes of its own values");
    nodes(path, &mut draft)?;
    Ok(draft)
}

fn nodes(path: &Path, draft: &mut Draft) -> Result<(), LoadError> {
    let Some(file) = cluster::sibling(path, "n8g8.csv") else {
        cluster::assume(draft, cluster::gpu_nodes(8), "that of the paper's testbed");
        return Ok(());
    };
    let table = Table::open(&file)?;
    let switches = table.required(&["num_switch"])?;
    let per_switch = table.required(&["num_node_p_switch"])?;
    let gpus = table.required(&["num_gpu_p_node"])?;
    let cores = table.required(&["num_cpu_p_node"])?;
    let memory = table.required(&["mem_p_node"])?;
    let Draft { nodes, problems, .. } = draft;
    table.each(problems, |row| {
        let count = row.integer(switches, 1..=10_000)? * row.integer(per_switch, 1..=10_000)?;
        nodes.push(NodeShape {
            cpu_milli: row.integer(cores, 0..=100_000)? * 1000,
            memory_bytes: row.integer(memory, 0..=1_000_000)? << 30,
            gpus: row.integer(gpus, 0..=1_000)?,
            ..cluster::gpu_nodes(u32::try_from(count).unwrap_or(u32::MAX))
        });
        Ok(())
    })?;
    draft.note("memory of a node in n8g8.csv is read as GiB; switches are left out");
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::trace::options::Options;
    use crate::trace::{Kind, testkit};

    const JOBS: &str = "job_id,num_gpu,submit_time,iterations,model_name,duration,priority\n\
        0,1,7000,10,dqn,5000,1\n1,12,9000,10,dqn,6000,0\n2,1,x,10,dqn,6000,0\n3,1,9000,10,dqn,6000,0.5\n";

    #[test]
    fn times_are_milliseconds_and_priorities_are_classes() {
        let nodes = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,3,8,92,520";
        let files = [("trace.csv", JOBS), ("n8g8.csv", nodes)];
        let workload = testkit::load_first(Kind::Muri, &files, &Options::default()).expect("loads");
        let jobs: Vec<_> = workload
            .jobs
            .iter()
            .map(|job| (job.submit_ms, job.runtime_ms, job.n_pods(), job.priority.as_deref()))
            .collect();
        assert_eq!(jobs, [(0, Some(5_000), 1, Some("priority-1")), (2_000, Some(6_000), 2, Some("priority-0"))]);
        assert_eq!(workload.priorities, [("priority-0".into(), 0), ("priority-1".into(), 1)]);
        assert_eq!((workload.n_nodes(), workload.nodes[0].cpu_milli), (6, 92_000));
        assert_eq!(
            testkit::problems(&workload),
            ["4: submit_time: `x` is not a whole number", "5: priority: `0.5` is not a whole number"]
        );
    }

    #[test]
    fn infinite_compression_is_the_papers_primed_variant() {
        let options = Options { time_compression: f64::INFINITY, ..Options::default() };
        let workload = testkit::load_first(Kind::Muri, &[("trace.csv", JOBS)], &options).expect("loads");
        assert!(workload.jobs.iter().all(|job| job.submit_ms == 0));
        assert_eq!(workload.n_nodes(), 8);
    }
}
