//! Alibaba cluster-trace-v2026-spot-gpu (Duan et al., ASPLOS '26): `job_info_df.csv`, with `node_info_df.csv` beside it.
//!
//! The one public job list with tenant, gang size, GPU model and preemptible class in one table. An organisation is a queue.
//! Requests are for each worker. `HP` jobs have a high priority and stay, `Spot` jobs have a low one and may be evicted.

use std::collections::BTreeMap;
use std::path::Path;

use super::cluster::{self, Occupancy};
use super::draft::{Draft, NodeSizes};
use super::error::LoadError;
use super::fields;
use super::gang::MAX_PODS;
use super::names::Names;
use super::options::{NodeList, Options};
use super::table::{Column, Row, Table};
use super::workload::{GPU_MILLI, GPU_MODEL_LABEL, GpuSharing, JobShape, NodeShape, PodShape, RoleShape};

/// The classes and their values: any order-preserving pair would do.
const CLASSES: [(&str, i32); 2] = [("spot", 0), ("hp", 1000)];

/// GPUs or thousandths of a core of one worker at most.
const MAX_MILLI: i64 = 100_000_000;

struct Columns {
    id: Column,
    organization: Column,
    model: Option<Column>,
    cpu: Option<Column>,
    gpu: Column,
    workers: Column,
    submit: Column,
    duration: Column,
    class: Column,
}

/// Reads the job list and the node list.
pub(crate) fn read(path: &Path, options: &Options) -> Result<Draft, LoadError> {
    let table = Table::open(path)?;
    let columns = Columns {
        id: table.required(&["job_name", "job_id", "name"])?,
        organization: table.required(&["organization", "organisation", "org"])?,
        model: table.optional(&["gpu_model", "gpu_type"]),
        cpu: table.optional(&["cpu_request", "cpu_num"]),
        gpu: table.required(&["gpu_request", "gpu_num"])?,
        workers: table.required(&["worker_num", "instance_num", "workers"])?,
        submit: table.required(&["submit_time"])?,
        duration: table.required(&["duration"])?,
        class: table.required(&["job_type", "type"])?,
    };
    let mut draft = Draft::default();
    let (mut names, mut queues) = (Names::default(), Names::default());
    let mut by_model: BTreeMap<String, Occupancy> = BTreeMap::new();
    let Draft { jobs, problems, .. } = &mut draft;
    table.each(problems, |row| {
        let job = job(row, &columns, &mut names, &mut queues)?;
        let model = row.text_in(columns.model).unwrap_or_default().to_owned();
        by_model.entry(model).or_default().add(&job, job.submit_ms);
        jobs.push(job);
        Ok(())
    })?;
    draft.priorities = CLASSES.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    draft.note(
        "requests are for each worker, and a job needs all of its workers; an organisation is a queue of weight 1",
    );
    draft.note("memory is not in the trace: pods ask for none unless that is derived");
    draft.note("HP jobs have the class hp (1000), Spot jobs the class spot (0) and are preemptible");
    let listed = match &options.node_list {
        NodeList::File(file) => Some(file.clone()),
        NodeList::WithGpus | NodeList::All => cluster::sibling(path, "node_info_df.csv"),
    };
    match listed {
        Some(file) => nodes(&file, &mut draft)?,
        None => assume(by_model, &mut draft),
    }
    Ok(draft)
}

fn job(row: &Row<'_>, columns: &Columns, names: &mut Names, queues: &mut Names) -> Result<JobShape, String> {
    let class = match row.text(columns.class) {
        text if text.eq_ignore_ascii_case("hp") => 1,
        text if text.eq_ignore_ascii_case("spot") => 0,
        other => return Err(format!("job_type: `{}` is neither HP nor Spot", fields::cut(other))),
    };
    let organization = row.text(columns.organization);
    if organization.is_empty() {
        return Err("the job has no organization".into());
    }
    let replicas = u32::try_from(row.integer(columns.workers, 1..=MAX_PODS)?).unwrap_or(u32::MAX);
    let (gpus, gpu_milli) = devices(row.milli(columns.gpu)?)?;
    let cpu_milli = match columns.cpu {
        Some(column) if !row.text(column).is_empty() => row.milli(column)?,
        _ => 0,
    };
    if cpu_milli > MAX_MILLI {
        return Err(format!("cpu_request: {} cores", cpu_milli / 1000));
    }
    let runtime_ms = match row.text(columns.duration) {
        "" => None,
        _ => Some(row.seconds(columns.duration)?),
    };
    let queue = queues.of(&format!("org-{organization}"));
    let request = PodShape { cpu_milli, memory_bytes: 0, gpus, gpu_milli };
    Ok(JobShape {
        submit_ms: row.moment(columns.submit)?,
        name: names.once(row.text(columns.id))?,
        namespace: queue.clone(),
        queue,
        user: None,
        runtime_ms,
        estimate_ms: None,
        roles: vec![RoleShape { name: "worker".into(), replicas, request }],
        min_member: replicas,
        priority: Some(CLASSES[class].0.into()),
        preemptible: class == 0,
        node_labels_any: row.text_in(columns.model).map(|model| (GPU_MODEL_LABEL.into(), vec![label_value(model)])),
    })
}

/// Whole devices and the share of one, of a request in thousandths.
fn devices(milli: i64) -> Result<(i64, i64), String> {
    match milli {
        0 => Ok((0, 0)),
        1..GPU_MILLI => Ok((1, milli)),
        _ if milli % GPU_MILLI == 0 && milli <= MAX_MILLI => Ok((milli / GPU_MILLI, 0)),
        _ => Err(format!("gpu_request: {milli} thousandths are neither a share of one GPU nor whole GPUs")),
    }
}

/// A model as the value of a label: what Kubernetes does not accept becomes a dash.
fn label_value(model: &str) -> String {
    let value: String =
        model.chars().take(63).map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    value.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

fn nodes(file: &Path, draft: &mut Draft) -> Result<(), LoadError> {
    let table = Table::open(file)?;
    let name = table.required(&["node_name", "name"])?;
    let model = table.required(&["gpu_model", "gpu_type"])?;
    let gpus = table.required(&["gpu_capacity_num", "gpu_num"])?;
    let cores = table.required(&["cpu_num"])?;
    let mut names = Names::default();
    let Draft { nodes, problems, .. } = draft;
    table.each(problems, |row| {
        let gpus = row.integer(gpus, 0..=1_000)?;
        let cpu_milli = row.integer(cores, 0..=MAX_MILLI / 1000)? * 1000;
        let name = names.once(&format!("node-{:0>6}", row.text(name)))?;
        nodes.push(node(name, 1, (row.text(model), gpus, cpu_milli)));
        Ok(())
    })?;
    draft.note("memory of the nodes is not in the trace: 512 GiB are assumed");
    Ok(())
}

fn node(name: String, count: u32, (model, gpus, cpu_milli): (&str, i64, i64)) -> NodeShape {
    let labels = if model.is_empty() { Vec::new() } else { vec![(GPU_MODEL_LABEL.to_owned(), label_value(model))] };
    NodeShape { name, cpu_milli, gpus, labels, gpu_sharing: GpuSharing::Shared, ..cluster::gpu_nodes(count) }
}

/// Nodes of eight GPUs for each model that jobs ask for.
fn assume(by_model: BTreeMap<String, Occupancy>, draft: &mut Draft) {
    let usual = cluster::gpu_nodes(1);
    let mut names = Names::default();
    for (model, occupancy) in by_model {
        let count = occupancy.n_nodes(&usual);
        let name = names.of(&format!("node-{model}"));
        draft.nodes.push(node(name, count, (&model, usual.gpus, usual.cpu_milli)));
    }
    draft.node_sizes = NodeSizes::Assumed;
    draft.note(
        "there is no node list: machines of 8 GPUs and 64 cores are assumed for each model, as many as would be in use if no \
         job ever waited",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Kind, testkit};

    const JOBS: &str = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n\
        239,13,A10,20,1,1,0,100,HP\n\
        437,57,A100-SXM4-80GB,15,1.0,16,50,41,Spot\n\
        438,57,A10,7.5,0.5,1,50,41,spot\n\
        439,57,A10,15,1.5,1,50,41,Spot\n\
        440,57,A10,15,1,0,50,41,Spot\n\
        441,57,A10,15,1,1,50,41,Reserved\n";

    #[test]
    fn tenants_gangs_models_and_classes() {
        let nodes = "node_name,gpu_model,gpu_capacity_num,cpu_num\n0,A10,4,192\n3,A100-SXM4-80GB,8,128\n";
        let files = [("job_info_df.csv", JOBS), ("node_info_df.csv", nodes)];
        let workload = testkit::load_first(Kind::Spot, &files, &Options::default()).expect("loads");
        let jobs: Vec<_> = workload
            .jobs
            .iter()
            .map(|job| {
                (
                    job.queue.as_str(),
                    job.n_pods(),
                    job.roles[0].request.gpu_milli,
                    job.preemptible,
                    job.priority.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            jobs,
            [
                ("org-13", 1, 0, false, Some("hp")),
                ("org-57", 16, 0, true, Some("spot")),
                ("org-57", 1, 500, true, Some("spot")),
            ]
        );
        assert_eq!(workload.jobs[1].min_member, 16);
        assert_eq!(workload.jobs[1].node_labels_any, Some((GPU_MODEL_LABEL.into(), vec!["A100-SXM4-80GB".into()])));
        assert_eq!(workload.nodes[1].name, "node-000003");
        assert_eq!(
            testkit::problems(&workload),
            [
                "5: gpu_request: 1500 thousandths are neither a share of one GPU nor whole GPUs",
                "6: worker_num: 0 is not in 1 to 1000000",
                "7: job_type: `Reserved` is neither HP nor Spot",
            ]
        );
        assert!(
            workload.notes.contains(&"jobs that can never start, as they do not fit into the empty cluster: 1".into())
        );
    }

    #[test]
    fn without_a_node_list_each_model_gets_its_machines() {
        let workload = testkit::load_first(Kind::Spot, &[("jobs.csv", JOBS)], &Options::default()).expect("loads");
        let nodes: Vec<_> = workload.nodes.iter().map(|node| (node.name.as_str(), node.count)).collect();
        assert_eq!(nodes, [("node-a10", 1), ("node-a100-sxm4-80gb", 4)]);
    }
}
