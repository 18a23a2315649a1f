//! Microsoft Philly (Jeon et al., ATC '19): the CSV cut that the Pollux, Sia and ElasticFlow artifacts carry.
//!
//! One line is a finished job: when it came, how long it ran, on how many GPUs, in which virtual cluster. A virtual
//! cluster is a queue, and its nodes are its weight. The original log is JSON and read by `philly_log`.
//!
//! The cluster comes from `philly_vc.csv` beside the trace (`vc,node num`), or from the log's own `cluster_machine_list`
//! (`machineId,number of GPUs,...`), or else it is assumed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cluster::{self, Occupancy};
use super::draft::{Draft, NodeSizes};
use super::error::LoadError;
use super::gang::{self, GPUS_PER_NODE, Total};
use super::lines::Lines;
use super::names::{self, Names};
use super::table::Table;
use super::workload::{JobShape, NodeShape};
use super::{json, philly_log};

/// GPUs of a job at most; far above any, and a gang of a million pods.
pub(crate) const MAX_GPUS: i64 = gang::MAX_PODS * GPUS_PER_NODE;

/// Reads either form.
pub(crate) fn read(path: &Path) -> Result<Draft, LoadError> {
    let mut draft = Draft::default();
    let mut queues = Names::default();
    let mut occupancy = Occupancy::default();
    if starts_as_json(path)? {
        philly_log::read(path, &mut draft, &mut queues, &mut occupancy)?;
    } else {
        read_cut(path, &mut draft, &mut queues, &mut occupancy)?;
    }
    draft.note("a job of up to 8 GPUs is one pod, a larger one pods of 8 and one remainder, all needed at once");
    draft.note("CPU and memory are not in the trace: pods ask for none unless that is derived");
    draft.note("each job is taken to be preemptible; times are read as UTC");
    cluster(path, &mut draft, &mut queues, occupancy)?;
    Ok(draft)
}

fn starts_as_json(path: &Path) -> Result<bool, LoadError> {
    let mut lines = Lines::open(path)?;
    // The JSON may be one long line, which is no line of a table either.
    Ok(match lines.next_line()? {
        Some((_, super::lines::Line::Text(text))) => json::is_array(text) || text.trim().is_empty(),
        Some((_, super::lines::Line::Bad(_))) => true,
        None => false,
    })
}

fn read_cut(path: &Path, draft: &mut Draft, queues: &mut Names, occupancy: &mut Occupancy) -> Result<(), LoadError> {
    let table = Table::open(path)?;
    let submitted = table.required(&["timestamp", "submitted_time", "submit_time"])?;
    let duration = table.required(&["duration"])?;
    let num_gpus = table.required(&["num_gpus", "num_gpu"])?;
    let vc = table.required(&["cluster", "vc"])?;
    let user = table.optional(&["user"]);
    let Draft { jobs, problems, .. } = draft;
    table.each(problems, |row| {
        let total = Total { gpus: row.integer(num_gpus, 1..=MAX_GPUS)?, ..Total::default() };
        let roles = gang::of_gpus(total, GPUS_PER_NODE)?;
        let queue = queue_of(row.text(vc), queues)?;
        // The cut has no ids: a job is named by its line, so that the file is easy to compare.
        let job = JobShape {
            name: names::numbered(row.line),
            namespace: queue.clone(),
            queue,
            user: row.text_in(user).map(str::to_owned),
            submit_ms: row.moment(submitted)?,
            runtime_ms: Some(row.seconds(duration)?),
            estimate_ms: None,
            min_member: gang::n_pods(&roles),
            roles,
            priority: None,
            preemptible: true,
            node_labels_any: None,
        };
        occupancy.add(&job, job.submit_ms);
        jobs.push(job);
        Ok(())
    })?;
    draft.note("jobs are named by their line, as the cut has no ids, and it holds finished jobs only");
    Ok(())
}

/// The queue of a virtual cluster.
pub(crate) fn queue_of(vc: &str, queues: &mut Names) -> Result<String, String> {
    if vc.is_empty() { Err("the job has no virtual cluster".into()) } else { Ok(queues.of(vc)) }
}

fn cluster(path: &Path, draft: &mut Draft, queues: &mut Names, occupancy: Occupancy) -> Result<(), LoadError> {
    let vc_file = cluster::sibling(path, "philly_vc.csv");
    let machines = ["cluster_machine_list", "cluster_machine_list.csv"];
    if let Some(file) = &vc_file {
        weights(file, draft, queues)?;
    }
    let n_nodes: u32 = draft.queues.values().sum();
    if let Some(file) = machines.iter().find_map(|name| cluster::sibling(path, name)) {
        draft.nodes = machine_list(&file, draft)?;
        draft.node_sizes = NodeSizes::Assumed;
    } else if n_nodes > 0 {
        cluster::assume(draft, cluster::gpu_nodes(n_nodes), "the sum over philly_vc.csv");
    } else {
        let count = occupancy.n_nodes(&cluster::gpu_nodes(1));
        cluster::assume(draft, cluster::gpu_nodes(count), "the most that would be in use if no job ever waited");
    }
    let used: BTreeSet<&str> = draft.jobs.iter().map(|job| job.queue.as_str()).collect();
    let unlisted: Vec<String> =
        used.into_iter().filter(|queue| !draft.queues.contains_key(*queue)).map(str::to_owned).collect();
    if vc_file.is_some() && !unlisted.is_empty() {
        draft.note(format!("virtual clusters that philly_vc.csv does not list get weight 1: {}", unlisted.join(", ")));
    }
    Ok(())
}

/// Reads the nodes of each virtual cluster as queue weights.
fn weights(file: &Path, draft: &mut Draft, queues: &mut Names) -> Result<(), LoadError> {
    let table = Table::open(file)?;
    let vc = table.required(&["vc", "cluster"])?;
    let nodes = table.required(&["node num", "node_num", "nodes"])?;
    let Draft { queues: weights, problems, .. } = draft;
    table.each(problems, |row| {
        let count = row.integer(nodes, 1..=100_000)?;
        let queue = queue_of(row.text(vc), queues)?;
        weights.insert(queue, u32::try_from(count).unwrap_or(u32::MAX));
        Ok(())
    })
}

/// Reads the machines of the original log: so many of each number of GPUs.
fn machine_list(file: &Path, draft: &mut Draft) -> Result<Vec<NodeShape>, LoadError> {
    let table = Table::open(file)?;
    let gpus = table.required(&["number of GPUs", "num_gpus"])?;
    let mut counts: BTreeMap<i64, u32> = BTreeMap::new();
    table.each(&mut draft.problems, |row| {
        *counts.entry(row.integer(gpus, 1..=64)?).or_default() += 1;
        Ok(())
    })?;
    draft.note("the machines are those of cluster_machine_list; 8 cores and 64 GiB for each of their GPUs are assumed");
    let node = |(gpus, count): (i64, u32)| {
        let usual = cluster::gpu_nodes(count);
        NodeShape {
            name: format!("gpu{gpus}"),
            cpu_milli: usual.cpu_milli / usual.gpus * gpus,
            memory_bytes: usual.memory_bytes / usual.gpus * gpus,
            gpus,
            ..usual
        }
    };
    Ok(counts.into_iter().rev().map(node).collect())
}

#[cfg(test)]
mod tests {
    use crate::trace::options::Options;
    use crate::trace::{Kind, testkit};

    const CUT: &str = "timestamp,duration,num_gpus,gpu_time,cluster\n\
        2017-10-09 07:01:55,66.0,1,66.0,b1\n\
        2017-10-09 07:00:55,100.0,12,1200.0,a2\n\
        2017-10-09,1.0,1,1.0,a2\n\
        yesterday,1.0,1,1.0,a2\n\
        2017-10-09 07:01:56,1.0,0,0.0,a2\n\
        2017-10-09 07:01:56,1.0,1,1.0,\n\
        2017-10-09 07:01:57,5.5,1,5.5,c3\n";

    #[test]
    fn the_cut_loads_and_bad_lines_are_reported() {
        let files = [("philly.csv", CUT), ("philly_vc.csv", "vc,node num\nb1,2\na2,3\n")];
        let workload = testkit::load_first(Kind::Philly, &files, &Options::default()).expect("loads");
        let jobs: Vec<_> =
            workload.jobs.iter().map(|job| (job.submit_ms, job.queue.as_str(), job.n_pods(), job.runtime_ms)).collect();
        let day = 25_255_000; // 07:00:55, as the third line has no time of day
        assert_eq!(
            jobs,
            [
                (0, "a2", 1, Some(1_000)),
                (day, "a2", 2, Some(100_000)),
                (day + 60_000, "b1", 1, Some(66_000)),
                (day + 62_000, "c3", 1, Some(5_500)),
            ]
        );
        assert_eq!(
            testkit::problems(&workload),
            [
                "5: timestamp: `yesterday` is neither a time such as 2017-10-09 07:01:55 nor a number of seconds",
                "6: num_gpus: 0 is not in 1 to 8000000",
                "7: the job has no virtual cluster",
            ]
        );
        let queues: Vec<_> = workload.queues.iter().map(|queue| (queue.name.as_str(), queue.weight)).collect();
        assert_eq!(queues, [("a2", 3), ("b1", 2), ("c3", 1)]);
        assert_eq!((workload.n_nodes(), workload.nodes[0].gpus), (5, 8));
        assert!(workload.notes.contains(&"virtual clusters that philly_vc.csv does not list get weight 1: c3".into()));
    }

    #[test]
    fn without_a_list_the_cluster_is_what_would_be_in_use() {
        let workload = testkit::load_first(Kind::Philly, &[("p.csv", CUT)], &Options::default()).expect("loads");
        // 12 GPUs for 100 s, and one more after a minute of it.
        assert_eq!(workload.n_nodes(), 2);
    }

    #[test]
    fn a_missing_column_is_one_error() {
        let error = testkit::load_first(Kind::Philly, &[("p.csv", "timestamp,num_gpus\n")], &Options::default());
        let error = error.expect_err("no duration");
        assert!(error.ends_with("p.csv: no column `duration`; the columns are: timestamp, num_gpus"), "{error}");
    }
}
