//! From the start of the process to the end of its first lists, and from there to its first decision.

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

/// What Krafla logs once it knows the cluster.
const LISTED: &str = "all objects have been listed";
/// Pods that wait.
const WAITING: usize = 100;

/// What the start took.
pub(crate) struct Started {
    /// From the start of the process until everything has been listed.
    listed: f64,
    /// From there to the first bind.
    pub(crate) decided: f64,
    cpu: Duration,
    peak_memory: u64,
}

pub(crate) async fn run(arguments: &Arguments, program: &Path) -> anyhow::Result<()> {
    let Started { listed, decided, cpu, peak_memory } = measure(arguments.pods, arguments.nodes, program).await?;
    println!(
        "{} nodes, {} pods: listed within {listed:.2} s, first bind {decided:.2} s later, {:.2} s of its processor time, at most {} MiB",
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

    let mut scheduler = Scheduler::start(program, &server, 100)?;
    let listed = scheduler.until_it_says(LISTED, Duration::from_secs(300)).await?;
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
        listed: (listed - scheduler.begun).as_secs_f64(),
        decided: listed.elapsed().as_secs_f64(),
        cpu: scheduler.cpu(),
        peak_memory: scheduler.peak_memory(),
    })
}
