//! The workloads of scheduler_perf on a real API server: Krafla, the real kube-scheduler, and whatever else is named, one
//! after the other on servers of their own.
//!
//! The API server, etcd and the scheduler share this machine, so that pods a second say how much the server lets through
//! beside the scheduler; processor time a pod says what the scheduler itself takes.

pub(crate) mod contenders;
mod counter;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use krafla_test_bench::workloads::{INIT, Kind, MEASURED, WORKLOADS, Workload};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde::Serialize;
use serde_json::Value;

use crate::server::Server;
use contenders::{Contender, Running};
use counter::{AuditLog, Counter, Figures};

/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only workloads whose name contains this.
    #[arg(default_value = "")]
    only: String,
    /// Size of every workload, in percent of upstream's.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    percent: u32,
    /// One more scheduler: NAME=COMMAND, with {kubeconfig} in the command where the file belongs. May be repeated.
    #[arg(long, value_name = "NAME=COMMAND")]
    scheduler: Vec<Contender>,
    /// Leave the real kube-scheduler out.
    #[arg(long)]
    alone: bool,
    /// Write the results as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What one scheduler did with one workload.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Result {
    workload: &'static str,
    scheduler: String,
    nodes: usize,
    pods: usize,
    pub(crate) average: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    pub(crate) cpu_milliseconds_per_pod: f64,
    pub(crate) longest_gap_seconds: f64,
    pub(crate) peak_memory_bytes: u64,
}

pub(crate) async fn run(arguments: &Arguments, krafla: &Path) -> anyhow::Result<()> {
    let mut contenders = vec![Contender::Krafla];
    contenders.extend((!arguments.alone).then_some(Contender::KubeScheduler));
    contenders.extend(arguments.scheduler.iter().cloned());
    contenders.extend((!arguments.alone).then_some(Contender::BareBinds));
    println!(
        "{:<36} {:<15} {:>6} {:>6} {:>9} {:>7} {:>7} {:>7} {:>10} {:>8} {:>8} {:>7}",
        "workload",
        "scheduler",
        "nodes",
        "pods",
        "average/s",
        "p50",
        "p90",
        "p99",
        "cpu ms/pod",
        "gap s",
        "MiB",
        "ratio"
    );
    let mut results: Vec<Result> = Vec::new();
    let wanted = |row: &Workload| row.suits_a_server() && row.name.contains(&arguments.only);
    for row in WORKLOADS.into_iter().filter(wanted) {
        let row = row.scaled(arguments.percent as usize);
        let mut ours = None;
        for contender in contenders.iter().filter(|contender| contender.takes_part(&row)) {
            let result = time(&row, contender, krafla).await;
            let result = result.with_context(|| format!("{} with {}", row.name, contender.name()))?;
            let ratio = *ours.get_or_insert(result.average) / result.average.max(1e-9);
            println!(
                "{:<36} {:<15} {:>6} {:>6} {:>9.0} {:>7.0} {:>7.0} {:>7.0} {:>10.2} {:>8.2} {:>8} {:>7.2}",
                result.workload,
                result.scheduler,
                result.nodes,
                result.pods,
                result.average,
                result.p50,
                result.p90,
                result.p99,
                result.cpu_milliseconds_per_pod,
                result.longest_gap_seconds,
                result.peak_memory_bytes >> 20,
                ratio
            );
            results.push(result);
        }
    }
    println!("ratio: Krafla's average to this one's");
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&results)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) async fn time(row: &Workload, contender: &Contender, krafla: &Path) -> anyhow::Result<Result> {
    let log = AuditLog::new()?;
    let server = Server::start_with(&log.flags()).await?;
    server.create_all::<Node>(row.nodes, |i| row.node(i)).await?;
    for object in row.objects() {
        server.create(&object).await?;
    }
    let mut counter = Counter::of(&log)?;
    let mut scheduler = contender.start(krafla, &server, row.has_gangs())?;
    make_pods(&server, row, scheduler.is_none(), row.init, |i| row.init_pod(i)).await?;
    if row.init_is_scheduled() {
        let init = counter.until(INIT, row.init, PATIENCE).await;
        still_runs(&mut scheduler)?;
        init.context("pods that are there before")?;
    }
    if row.kind == Kind::Deleting {
        // A finalizer holds them.
        let pods: Api<Pod> = Api::default_namespaced(server.client.clone());
        pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    }
    let mut begun = (Timestamp::now(), cpu_of(&scheduler));
    make_pods(&server, row, scheduler.is_none(), row.measured, |i| row.measured_pod(i)).await?;
    if row.has_gangs() {
        // All pods are there before the first may start: what is timed is the scheduler, not who makes them.
        begun = (Timestamp::now(), cpu_of(&scheduler));
        for (name, size) in row.groups() {
            server.make_group(&name, size).await?;
        }
    }
    let (begun, cpu) = begun;
    let done = counter.until(MEASURED, row.measured, PATIENCE).await;
    still_runs(&mut scheduler)?;
    done?;
    let Figures { average, p50, p90, p99, longest_gap } = counter.figures(MEASURED, begun);
    let used = cpu_of(&scheduler) - cpu;
    Ok(Result {
        workload: row.name,
        scheduler: contender.name().to_owned(),
        nodes: row.nodes,
        pods: row.measured,
        average,
        p50,
        p90,
        p99,
        cpu_milliseconds_per_pod: used.as_secs_f64() * 1_000.0 / row.measured as f64,
        longest_gap_seconds: longest_gap.as_secs_f64(),
        peak_memory_bytes: scheduler.as_ref().map_or(0, Running::peak_memory),
    })
}

fn cpu_of(scheduler: &Option<Running>) -> Duration {
    scheduler.as_ref().map_or(Duration::ZERO, Running::cpu)
}

fn still_runs(scheduler: &mut Option<Running>) -> anyhow::Result<()> {
    scheduler.as_mut().map_or(Ok(()), Running::still_runs)
}

/// Makes pods, and binds each at once where no scheduler does.
async fn make_pods(
    server: &Server,
    row: &Workload,
    bind: bool,
    n: usize,
    manifest: impl Fn(usize) -> Value,
) -> anyhow::Result<()> {
    if !bind {
        return server.create_all::<Pod>(n, manifest).await;
    }
    let node = |i: usize| row.node(i % row.nodes)["metadata"]["name"].clone();
    server.create_bound(n, manifest, node).await
}
