//! From the start of the process to its first decision.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;

use crate::server::{Scheduler, Server};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Pods, all but the last hundred of which have a node.
    #[arg(long, default_value_t = 50_000)]
    pods: usize,
    /// Nodes.
    #[arg(long, default_value_t = 5_000)]
    nodes: usize,
}

/// Pods that wait.
const WAITING: usize = 100;

/// What the start took.
pub(crate) struct Started {
    /// From the start of the process to its first bind.
    pub(crate) seconds: f64,
    cpu: Duration,
    peak_memory: u64,
}

pub(crate) async fn run(arguments: &Arguments, program: &Path) -> anyhow::Result<()> {
    let Started { seconds, cpu, peak_memory } = measure(arguments.pods, arguments.nodes, program).await?;
    println!(
        "{} nodes, {} pods: first bind {seconds:.2} s after the start of the process, {:.2} s of its processor time, at most {} MiB",
        arguments.nodes,
        arguments.pods,
        cpu.as_secs_f64(),
        peak_memory >> 20,
    );
    Ok(())
}

pub(crate) async fn measure(pods: usize, nodes: usize, program: &Path) -> anyhow::Result<Started> {
    let server = Server::start().await?;
    eprintln!("making {} nodes and {} pods ...", nodes, pods);
    let begun = Instant::now();
    server.make_nodes(nodes).await?;
    server.make_groups(pods.div_ceil(WAITING), WAITING).await?;
    let placed = pods.saturating_sub(WAITING);
    let node = |i: usize| (i < placed).then(|| format!("node-{}", i % nodes));
    server.make_pods(pods, WAITING, node).await?;
    eprintln!("made in {:.0} s", begun.elapsed().as_secs_f64());

    let scheduler = Scheduler::start(program, &server, 100)?;
    loop {
        if scheduler.bound().await > 0 {
            break;
        }
        if scheduler.begun.elapsed() > Duration::from_secs(300) {
            bail!("no decision within 5 minutes");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Started {
        seconds: scheduler.begun.elapsed().as_secs_f64(),
        cpu: scheduler.cpu(),
        peak_memory: scheduler.peak_memory(),
    })
}
