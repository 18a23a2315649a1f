//! Shanghai AI Lab Acme (Hu et al., NSDI '24): `trace_seren.csv` and `trace_kalos.csv`.
//!
//! Columns as Helios, without virtual clusters; Kalos adds memory a pod, and its `duration` includes the wait (so that the
//! recorded start and end are used instead). Extra columns are left alone.

use std::path::Path;

use super::cluster;
use super::draft::Draft;
use super::error::LoadError;
use super::joblog::{self, Queues};
use super::names::Names;
use super::table::Table;
use super::workload::NodeShape;

/// An Acme machine: 128 threads, and 1 TB in Seren (2 TB in Kalos), by the paper's first table.
const CPU_MILLI: i64 = 128_000;
const MEMORY_BYTES: i64 = 1 << 40;

/// Reads a log.
pub(crate) fn read(path: &Path) -> Result<Draft, LoadError> {
    let mut draft = Draft::default();
    let table = Table::open(path)?;
    let memory = table.optional(&["mem_per_pod_GB", "mem_per_pod"]);
    let occupancy = joblog::read(table, Queues::Single, &mut draft, &mut Names::default())?;
    draft.note(match memory {
        Some(_) => "memory of a pod is read as GiB; it is given for the recorded pods and follows the GPUs into ours",
        None => "memory is not in the trace: pods ask for none unless that is derived",
    });
    draft.note("all jobs are in one queue: the trace has no groups of users");
    let machine = NodeShape { cpu_milli: CPU_MILLI, memory_bytes: MEMORY_BYTES, ..cluster::gpu_nodes(1) };
    let count = occupancy.n_nodes(&machine);
    cluster::assume(&mut draft, NodeShape { count, ..machine }, "the most ever in use at once, by the recorded times");
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use crate::trace::options::Options;
    use crate::trace::{Kind, testkit};

    #[test]
    fn kalos_runs_from_start_to_end_and_has_memory() {
        let text = "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,\
            start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n\
            dlc1,u1,2,16,64,100,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,\
            2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,288.0\n\
            dlc2,u1,1,8,128,3000,1.0,Other,RUNNING,2023-05-17 11:00:59+00:00,2023-05-17 11:01:08+00:00,,,,,9,0\n\
            dlc3,u1,1,x,128,1,1.0,Other,RUNNING,2023-05-17 11:00:59+00:00,2023-05-17 11:01:08+00:00,,,,,9,0\n";
        let workload =
            testkit::load_first(Kind::Acme, &[("trace_kalos.csv", text)], &Options::default()).expect("loads");
        let job = &workload.jobs[0];
        assert_eq!((job.runtime_ms, job.n_pods(), job.queue.as_str()), (Some(8_000), 2, "default"));
        assert_eq!(job.roles[0].request.memory_bytes, 100 << 30);
        assert_eq!(workload.jobs[1].runtime_ms, None);
        assert_eq!(testkit::problems(&workload), ["4: gpu_num: `x` is not a whole number"]);
        // The assumed machines have 1 TiB; the second job's pod needs three.
        assert_eq!(workload.nodes[0].memory_bytes, 3000 << 30);
    }

    #[test]
    fn seren_has_zones_and_no_memory() {
        let text = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n\
            5,u,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0\n\
            6,u,1,8,128,Other,FAILED,2023-02-28 16:18:23+00:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0\n";
        let workload =
            testkit::load_first(Kind::Acme, &[("trace_seren.csv", text)], &Options::default()).expect("loads");
        let jobs: Vec<_> = workload.jobs.iter().map(|job| (job.submit_ms, job.runtime_ms)).collect();
        assert_eq!(jobs, [(0, Some(117_000)), (1_000, Some(117_000))]);
        assert_eq!(workload.n_nodes(), 2);
    }
}
