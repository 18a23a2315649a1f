//! SenseTime Helios (Hu et al., SC '21): `cluster_log.csv` of one cluster.
//!
//! Columns: `job_id, user, vc, gpu_num, cpu_num, node_num, state, submit_time, start_time, end_time, duration, queue`. The
//! last is the recorded wait, not a queue. A virtual cluster is a queue; `cluster_gpu_number.csv` beside the log has its
//! GPUs a day, and the day with the most GPUs is taken for the whole trace.

use std::path::Path;

use super::cluster;
use super::draft::Draft;
use super::error::LoadError;
use super::fields::div_ceil;
use super::gang::GPUS_PER_NODE;
use super::joblog::{self, Queues};
use super::names::Names;
use super::table::Table;
use super::workload::NodeShape;

/// A Helios machine: 48 threads and 376 GB in Venus and Earth, by the paper's first table.
const CPU_MILLI: i64 = 48_000;
const MEMORY_BYTES: i64 = 376 << 30;

/// Reads a log.
pub(crate) fn read(path: &Path) -> Result<Draft, LoadError> {
    let mut draft = Draft::default();
    let mut queues = Names::default();
    let occupancy = joblog::read(Table::open(path)?, Queues::ByVirtualCluster, &mut draft, &mut queues)?;
    let machine = NodeShape { cpu_milli: CPU_MILLI, memory_bytes: MEMORY_BYTES, ..cluster::gpu_nodes(1) };
    let listed = match cluster::sibling(path, "cluster_gpu_number.csv") {
        Some(file) => largest_day(&file, &mut draft, &mut queues)?,
        None => None,
    };
    let (count, whence) = match listed {
        Some(n_gpus) => (div_ceil(n_gpus, GPUS_PER_NODE).max(1), "that of the largest day in cluster_gpu_number.csv"),
        None => (i64::from(occupancy.n_nodes(&machine)), "the most ever in use at once, by the recorded times"),
    };
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    cluster::assume(&mut draft, NodeShape { count, ..machine }, whence);
    Ok(draft)
}

/// The most GPUs of a day. That day's GPUs of each virtual cluster become queue weights, in nodes and at least 1.
fn largest_day(file: &Path, draft: &mut Draft, queues: &mut Names) -> Result<Option<i64>, LoadError> {
    let table = Table::open(file)?;
    let total = table.required(&["total"])?;
    let clusters: Vec<_> =
        table.header().iter().filter(|name| !matches!(name.as_str(), "date" | "total" | "")).cloned().collect();
    let columns: Vec<_> = clusters.iter().filter_map(|name| Some((name, table.optional(&[name])?))).collect();
    let mut best: Option<(i64, Vec<(String, u32)>)> = None;
    table.each(&mut draft.problems, |row| {
        let n_gpus = row.integer(total, 0..=1_000_000)?;
        if best.as_ref().is_some_and(|(most, _)| *most >= n_gpus) {
            return Ok(());
        }
        let mut weights = Vec::new();
        for (name, column) in &columns {
            let gpus = row.integer(*column, 0..=1_000_000)?;
            let nodes = u32::try_from(gpus / GPUS_PER_NODE).unwrap_or(u32::MAX).max(1);
            weights.push((queues.of(name), nodes));
        }
        best = Some((n_gpus, weights));
        Ok(())
    })?;
    Ok(best.map(|(n_gpus, weights)| {
        draft.queues.extend(weights);
        draft.note("queue weights are the nodes of each virtual cluster on the day with the most GPUs, at least 1");
        n_gpus
    }))
}

#[cfg(test)]
mod tests {
    use crate::trace::options::Options;
    use crate::trace::{Kind, testkit};

    const LOG: &str = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
        2,u1,vcA,12,24,2,COMPLETED,2020-06-09 18:00:00,2020-06-09 18:00:10,2020-06-09 18:01:10,60,10\n\
        3,u2,vcB,0,5,2,FAILED,2020-06-09 18:00:01,2020-06-09 18:00:01,2020-06-09 18:00:02,1,0\n\
        4,u2,vcB,0,5,2,CANCELLED,2020-06-09 18:00:01,,2020-06-09 18:00:02,0,0\n\
        5,u2,vcB,1,2,1,FAILED,2020-06-09 18:00:01,2020-06-09 18:00:03,2020-06-09 18:00:02,1,0\n\
        6,u2,vcB,-1,2,1,FAILED,2020-06-09 18:00:01,2020-06-09 18:00:01,2020-06-09 18:00:02,1,0\n";

    #[test]
    fn totals_fall_into_pods_and_bad_lines_are_reported() {
        let workload =
            testkit::load_first(Kind::Helios, &[("cluster_log.csv", LOG)], &Options::default()).expect("loads");
        let pods = |at: usize| {
            let roles = workload.jobs[at].roles.iter();
            roles.map(|role| (role.replicas, role.request.gpus, role.request.cpu_milli)).collect::<Vec<_>>()
        };
        assert_eq!(workload.jobs.len(), 2);
        assert_eq!(pods(0), [(1, 8, 16_000), (1, 4, 8_000)]);
        assert_eq!(pods(1), [(1, 0, 3_000), (1, 0, 2_000)]);
        assert_eq!((workload.jobs[0].min_member, workload.jobs[0].runtime_ms), (2, Some(60_000)));
        assert_eq!(
            testkit::problems(&workload),
            ["5: the job ends before it starts", "6: gpu_num: -1 is not in 0 to 8000000"]
        );
        assert!(workload.notes.contains(&"jobs that are left out, as they never started: 1".into()));
        assert_eq!(workload.n_nodes(), 2);
    }

    #[test]
    fn the_largest_day_gives_weights_and_nodes() {
        let days = "date,vcA,vcB,vcOld,total\n2020-04-01,16,8,0,24\n2020-05-01,64,32,0,96\n2020-06-01,32,32,0,64\n";
        let files = [("cluster_log.csv", LOG), ("cluster_gpu_number.csv", days)];
        let workload = testkit::load_first(Kind::Helios, &files, &Options::default()).expect("loads");
        let queues: Vec<_> = workload.queues.iter().map(|queue| (queue.name.as_str(), queue.weight)).collect();
        assert_eq!(queues, [("vca", 8), ("vcb", 4), ("vcold", 1)]);
        assert_eq!(workload.n_nodes(), 12);
    }

    #[test]
    fn a_log_without_virtual_clusters_is_no_helios_log() {
        let text = LOG.replacen(",vc,", ",group,", 1);
        let error = testkit::load_first(Kind::Helios, &[("l.csv", &text)], &Options::default()).expect_err("no vc");
        assert!(error.contains("no column `vc` (or virtual_cluster); the columns are: job_id, user, group"), "{error}");
    }
}
