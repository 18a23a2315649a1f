//! The budgets that need an API server, beside those that were measured in memory: one table, and whether each is kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use krafla_test_bench::budget::{Budget, at_least, at_most, report};
use krafla_test_bench::workloads::Workload;

use crate::perf::contenders::Contender;
use crate::{bind, perf, start};

#[derive(Args)]
pub(crate) struct Arguments {
    /// What was measured in memory, as JSON; `hack/bench budgets` gives it.
    #[arg(long, value_name = "FILE")]
    in_memory: Option<PathBuf>,
    /// Size of the workloads, in percent.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: u32,
    /// Write all budgets as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) async fn run(arguments: &Arguments, krafla: &Path) -> anyhow::Result<()> {
    let mut budgets: Vec<Budget> = match &arguments.in_memory {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            serde_json::from_str(&text).with_context(|| file.display().to_string())?
        }
        None => Vec::new(),
    };
    measure(arguments, krafla, &mut budgets).await?;
    let broken = report(&budgets, arguments.json.as_deref()).context("--json")?;
    if broken > 0 {
        bail!("{broken} of {} budgets are not kept", budgets.len());
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
async fn measure(arguments: &Arguments, krafla: &Path, budgets: &mut Vec<Budget>) -> anyhow::Result<()> {
    let part = |n: usize| (n * arguments.percent as usize / 100).max(1);
    let row = |name: &str| {
        let row = Workload::named(name).context("a workload")?;
        anyhow::Ok(row.scaled(arguments.percent as usize))
    };
    eprintln!("the first decision ...");
    let first = start::measure(part(150_000), part(5_000), krafla).await?;
    budgets.push(at_most("first decision after the lists, 5,000 nodes, 150,000 pods", first.decided, 10.0, "s"));
    eprintln!("binds beside a bare loop ...");
    let ratio = bind::measure(&bind::Arguments::of(part(10_000), part(1_000)), krafla).await?;
    budgets.push(at_least("binds through an API server, beside a bare loop of them", ratio, 0.95, "of its rate"));
    eprintln!("plain pods, and kube-scheduler ...");
    let basic = row("SchedulingBasic")?;
    let ours = perf::time(&basic, &Contender::Krafla, krafla).await?;
    let theirs = perf::time(&basic, &Contender::KubeScheduler, krafla).await?;
    budgets.push(at_least("plain pods end to end, beside kube-scheduler", ours.average / theirs.average, 3.0, "times"));
    let cpu = ours.cpu_milliseconds_per_pod / theirs.cpu_milliseconds_per_pod;
    budgets.push(at_most("processor time a plain pod, beside kube-scheduler", cpu, 0.1, "times"));
    let in_memory = budgets.iter().find(|budget| budget.name.contains("kube-scheduler's default profile"));
    if let Some(decisions) = in_memory.map(|budget| budget.value / theirs.average) {
        budgets.push(at_least("decisions, beside kube-scheduler end to end", decisions, 100.0, "times"));
    }
    for (name, nodes) in [("Gangs-1000Nodes", "1,000"), ("Gangs-5000Nodes", "5,000")] {
        eprintln!("gangs on {nodes} nodes ...");
        let gangs = perf::time(&row(name)?, &Contender::Krafla, krafla).await?;
        let gap = format!("20 gangs of 500 on {nodes} nodes: longest time between binds");
        budgets.push(at_most(&gap, gangs.longest_gap_seconds, 0.3, "s"));
        let memory = format!("20 gangs of 500 on {nodes} nodes: memory");
        budgets.push(at_most(&memory, gangs.peak_memory_bytes as f64 / 1e6, 150.0, "MB"));
    }
    Ok(())
}
