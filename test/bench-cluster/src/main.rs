//! Times on a real API server: `hack/bench bind`, `hack/bench start` and `hack/bench perf`.
//!
//! Everything runs on this machine: etcd, kube-apiserver and the scheduler share its cores, so rates say little by
//! themselves. `bind` therefore compares, on equal servers in one run, with a loop that does nothing but bind.

mod bind;
mod budgets;
mod perf;
mod server;
mod start;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Time Krafla on a real API server.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// The scheduler's program.
    #[arg(long, global = true, value_name = "FILE", default_value = "target/release/krafla")]
    krafla: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Pods that wait, drained by Krafla and by a bare loop of binds: the two rates and their ratio.
    Bind(bind::Arguments),
    /// From the start of the process to its first decision, beside many pods that run.
    Start(start::Arguments),
    /// Every budget that needs an API server, beside those that were measured in memory.
    Budgets(budgets::Arguments),
    /// The workloads of scheduler_perf: Krafla and the real kube-scheduler in turn, pods a second and processor time a pod.
    Perf(perf::Arguments),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match arguments.command {
        Command::Bind(bind) => bind::run(&bind, &arguments.krafla).await,
        Command::Start(start) => start::run(&start, &arguments.krafla).await,
        Command::Budgets(budgets) => budgets::run(&budgets, &arguments.krafla).await,
        Command::Perf(perf) => perf::run(&perf, &arguments.krafla).await,
    }
}
