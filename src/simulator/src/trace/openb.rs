//! Alibaba cluster-trace-gpu-v2023, «openb» (Weng et al., ATC '23): a pod list, and a node list beside it.
//!
//! Each pod is a job of its own. A pod may ask for a share of one device; `gpu_spec` names the models that it accepts. Times
//! are seconds; the multigpu lists have none, and their pods all come at the start and stay, which is also how the FGD
//! experiment plays every list.

use std::path::{Path, PathBuf};

use super::draft::{DEFAULT_QUEUE, Draft};
use super::error::LoadError;
use super::names::Names;
use super::options::{NodeList, Options};
use super::table::{Column, Row, Table};
use super::workload::{GPU_MILLI, GPU_MODEL_LABEL, GpuSharing, JobShape, NodeShape, PodShape, RoleShape};
use super::{PODS_PER_NODE, cluster};

/// Thousandths of a core at most, of a node or a pod.
const MAX_CPU_MILLI: i64 = 100_000_000;

/// MiB at most, of a node or a pod: a PiB.
const MAX_MIB: i64 = 1 << 30;

/// Reads a pod list and its node list.
pub(crate) fn read(path: &Path, options: &Options) -> Result<Draft, LoadError> {
    let mut draft = Draft::default();
    nodes(&node_file(path, options)?, &mut draft)?;
    pods(path, &mut draft)?;
    Ok(draft)
}

fn node_file(path: &Path, options: &Options) -> Result<PathBuf, LoadError> {
    let name = match &options.node_list {
        NodeList::File(file) => return Ok(file.clone()),
        NodeList::WithGpus => "openb_node_list_gpu_node.csv",
        NodeList::All => "openb_node_list_all_node.csv",
    };
    cluster::sibling(path, name)
        .ok_or_else(|| LoadError::NoSibling { path: path.with_file_name(name), needed_for: "a pod list" })
}

fn nodes(file: &Path, draft: &mut Draft) -> Result<(), LoadError> {
    let table = Table::open(file)?;
    let name = table.required(&["sn", "name"])?;
    let cpu = table.required(&["cpu_milli"])?;
    let memory = table.required(&["memory_mib"])?;
    let gpus = table.required(&["gpu"])?;
    let model = table.optional(&["model"]);
    let mut names = Names::default();
    let Draft { nodes, problems, .. } = draft;
    table.each(problems, |row| {
        let model = row.text_in(model);
        nodes.push(NodeShape {
            cpu_milli: row.integer(cpu, 0..=MAX_CPU_MILLI)?,
            memory_bytes: row.integer(memory, 0..=MAX_MIB)? << 20,
            gpus: row.integer(gpus, 0..=1_000)?,
            labels: model.map(|model| (GPU_MODEL_LABEL.into(), model.into())).into_iter().collect(),
            name: names.once(row.text(name))?,
            count: 1,
            pods: PODS_PER_NODE,
            gpu_sharing: GpuSharing::Shared,
        });
        Ok(())
    })
}

/// The columns of times, which some lists lack.
struct Times {
    created: Option<Column>,
    deleted: Option<Column>,
    scheduled: Option<Column>,
}

impl Times {
    /// Submission and run time. A pod that was never scheduled keeps its lifetime as its run time.
    fn of(&self, row: &Row<'_>) -> Result<(i64, Option<i64>), String> {
        let submit_ms = row.moment_in(self.created)?.unwrap_or(0);
        let start_ms = row.moment_in(self.scheduled)?.unwrap_or(submit_ms);
        match row.moment_in(self.deleted)? {
            Some(end_ms) if end_ms < start_ms => Err("the pod ends before it starts".into()),
            Some(end_ms) => Ok((submit_ms, Some(end_ms - start_ms))),
            None => Ok((submit_ms, None)),
        }
    }
}

fn pods(path: &Path, draft: &mut Draft) -> Result<(), LoadError> {
    let table = Table::open(path)?;
    let name = table.required(&["name"])?;
    let cpu = table.required(&["cpu_milli"])?;
    let memory = table.required(&["memory_mib"])?;
    let num_gpu = table.required(&["num_gpu"])?;
    let gpu_milli = table.required(&["gpu_milli"])?;
    let (spec, qos) = (table.optional(&["gpu_spec"]), table.optional(&["qos"]));
    let times = Times {
        created: table.optional(&["creation_time"]),
        deleted: table.optional(&["deletion_time"]),
        scheduled: table.optional(&["scheduled_time"]),
    };
    let (has_times, has_scheduled) = (times.created.is_some() && times.deleted.is_some(), times.scheduled.is_some());
    let mut names = Names::default();
    let (mut n_waiting, mut n_endless) = (0, 0);
    let Draft { jobs, problems, .. } = draft;
    table.each(problems, |row| {
        let (gpus, gpu_milli) = share(row.integer(num_gpu, 0..=1_000)?, row.integer(gpu_milli, 0..=GPU_MILLI)?)?;
        let (submit_ms, runtime_ms) = times.of(row)?;
        let request = PodShape {
            cpu_milli: row.integer(cpu, 0..=MAX_CPU_MILLI)?,
            memory_bytes: row.integer(memory, 0..=MAX_MIB)? << 20,
            gpus,
            gpu_milli,
        };
        n_waiting += u64::from(has_scheduled && row.text_in(times.scheduled).is_none());
        n_endless += u64::from(runtime_ms.is_none());
        jobs.push(JobShape {
            name: names.once(row.text(name))?,
            namespace: DEFAULT_QUEUE.into(),
            queue: DEFAULT_QUEUE.into(),
            user: None,
            submit_ms,
            runtime_ms,
            estimate_ms: None,
            roles: vec![RoleShape { name: "worker".into(), replicas: 1, request }],
            min_member: 1,
            priority: None,
            preemptible: row.text_in(qos) == Some("BE"),
            node_labels_any: models(row, spec),
        });
        Ok(())
    })?;
    draft.note(format!("each pod is a job of its own; gpu_spec selects nodes by the label {GPU_MODEL_LABEL}"));
    draft.note(match qos {
        Some(_) => "pods of class BE are preemptible, others are not; no class has a priority",
        None => "no pod is preemptible: the list has no qos column",
    });
    if has_times {
        draft
            .note("run times are from scheduling to deletion; pods that lived on when the trace was taken end with it");
        draft.note_jobs(n_waiting, "were never scheduled, and run from creation to deletion");
        draft.note_jobs(n_endless, "have no deletion time and never end");
    } else {
        draft.note("the list has no times: all pods are submitted at the start and never end");
    }
    Ok(())
}

/// Devices, and the share of one; a whole device has the share 0.
fn share(num_gpu: i64, gpu_milli: i64) -> Result<(i64, i64), String> {
    match (num_gpu, gpu_milli) {
        (0, _) => Ok((0, 0)),
        (_, 0) => Err("gpu_milli: 0 of a GPU is asked for".into()),
        (gpus, GPU_MILLI) => Ok((gpus, 0)),
        (1, milli) => Ok((1, milli)),
        (gpus, milli) => Err(format!("gpu_milli: {milli} of each of {gpus} GPUs; a share is of one device")),
    }
}

fn models(row: &Row<'_>, spec: Option<Column>) -> Option<(String, Vec<String>)> {
    let mut models: Vec<String> =
        row.text_in(spec)?.split('|').map(str::trim).filter(|model| !model.is_empty()).map(str::to_owned).collect();
    models.sort();
    models.dedup();
    (!models.is_empty()).then(|| (GPU_MODEL_LABEL.into(), models))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::workload::Workload;
    use crate::trace::{Kind, testkit};

    const NODES: &str =
        "sn,cpu_milli,memory_mib,gpu,model\nn-1,32000,1024,2,T4\nn-2,64000,2048,8,G2\nn-3,64000,x,8,G2\n";
    const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
        p-0,12000,16,1,1000,,LS,Running,100,300,150\n\
        p-1,6000,12,1,460,T4|G2|T4,BE,Running,110,120,110\n\
        p-2,6000,12,2,460,,BE,Running,110,120,110\n\
        p-3,6000,12,0,0,,BE,Pending,110,120,\n\
        p-4,6000,12,2,1000,,LS,Failed,130,120,\n";

    fn load(pods: &str, options: &Options) -> Workload {
        let files = [("pods.csv", pods), ("openb_node_list_gpu_node.csv", NODES)];
        testkit::load_first(Kind::Openb, &files, options).expect("loads")
    }

    #[test]
    fn pods_are_jobs_with_shares_models_and_times() {
        let workload = load(PODS, &Options::default());
        let jobs: Vec<_> = workload
            .jobs
            .iter()
            .map(|job| {
                (job.name.as_str(), job.submit_ms, job.runtime_ms, job.roles[0].request.gpu_milli, job.preemptible)
            })
            .collect();
        assert_eq!(
            jobs,
            [
                ("p-0", 0, Some(150_000), 0, false),
                ("p-1", 10_000, Some(10_000), 460, true),
                ("p-3", 10_000, Some(10_000), 0, true),
            ]
        );
        assert_eq!(workload.jobs[1].node_labels_any, Some((GPU_MODEL_LABEL.into(), vec!["G2".into(), "T4".into()])));
        assert_eq!(
            testkit::problems(&workload),
            [
                "4: memory_mib: `x` is not a whole number",
                "4: gpu_milli: 460 of each of 2 GPUs; a share is of one device",
                "6: the pod ends before it starts",
            ]
        );
        assert_eq!(workload.nodes[1].labels, [(GPU_MODEL_LABEL.to_owned(), "G2".to_owned())]);
    }

    #[test]
    fn a_list_without_times_is_all_at_the_start() {
        let workload =
            load("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np-1,1,1,8,1000\np-0,1,1,1,1000\n", &Options::default());
        let jobs: Vec<_> = workload.jobs.iter().map(|job| (job.name.as_str(), job.submit_ms, job.runtime_ms)).collect();
        assert_eq!(jobs, [("p-0", 0, None), ("p-1", 0, None)]);
        assert!(workload.notes.iter().any(|note| note.starts_with("the list has no times")));
    }

    #[test]
    fn the_node_list_is_needed() {
        let options = Options { node_list: NodeList::All, ..Options::default() };
        let error = testkit::load_first(Kind::Openb, &[("pods.csv", PODS)], &options).expect_err("no nodes");
        assert!(error.ends_with("openb_node_list_all_node.csv: not found, and a pod list needs it"), "{error}");
    }
}
