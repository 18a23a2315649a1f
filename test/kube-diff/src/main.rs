//! The real kube-scheduler and Krafla before the same random nodes and pods: `hack/diff-kube-scheduler`.
//!
//! Each pod is created on a real API server, where kube-scheduler places it. Krafla is asked about it on a model that is
//! told the same objects in the same order, and then of what kube-scheduler did. A difference is printed with its pod and
//! its nodes, and makes the program end with 1.

mod answer;
mod compare;
mod dice;
mod disruption;
mod generate;
mod log;
mod ours;
mod preemption;
mod report;
mod stage;
mod storage;
mod world;

use std::process::ExitCode;

use clap::Parser;

use dice::Dice;
use world::World;

/// Compare Krafla with the real kube-scheduler.
#[derive(Parser)]
struct Arguments {
    /// How many pods are compared.
    #[arg(long, default_value_t = 300)]
    pods: u32,
    /// What the random cluster is made of.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Compares whom pods of all priorities evict on a full cluster, and where.
    #[arg(long)]
    preemption: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let mut world = World::new(Dice::new(arguments.seed), arguments.preemption).await?;
    let (differences, tally) = if arguments.preemption {
        let tally = preemption::run(&mut world, arguments.pods).await?;
        (tally.differences, tally.to_string())
    } else {
        let tally = compare::run(&mut world, arguments.pods).await?;
        (tally.differences, tally.to_string())
    };
    report::clear_progress();
    let mut problems = std::mem::take(&mut world.problems);
    problems.sort();
    problems.dedup();
    for problem in problems.iter().take(10) {
        eprintln!("Krafla says of an object that Kubernetes took: {problem}");
    }
    println!("\nseed: {}\n{tally}", arguments.seed);
    Ok(ExitCode::from(u8::from(differences > 0)))
}
