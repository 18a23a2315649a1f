//! The `krafla` binary: wires the plugins and actions of this build into the engine, and a shell about it.

mod check;
mod example;
mod logging;
mod progress;
mod registry;
mod replay;
mod scenario;
mod settings;
mod simulate;
mod timing;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A batch scheduler for Kubernetes.
///
/// Gangs start whole or not at all, queues share fairly, and whatever waits says why. This build runs it on a simulated
/// cluster, in virtual time.
#[derive(Parser)]
#[command(name = "krafla", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// What is logged to standard error: error, warn, info, debug, trace, or a filter such as `krafla_engine=debug`.
    #[arg(long, global = true, default_value = "error", env = "KRAFLA_LOG", hide_env_values = true)]
    log: String,
}

const EXAMPLES: &str = "\
Examples:
  krafla simulate                                   three teams on a small GPU cluster, with a report
  krafla simulate --trace swf:KTH-SP2.swf           a year of a supercomputer's jobs
  krafla simulate --trace manifests:cluster/        what is in a folder of Kubernetes manifests
  krafla scenario test/scenarios/*.yaml             scheduling stories with their expected ends
  krafla check scheduler.conf                       what is wrong with a configuration, and what it comes to";

#[derive(Subcommand)]
enum Command {
    /// Run a workload on a simulated cluster and show what happened.
    Simulate(Box<simulate::Arguments>),
    /// Run scenarios: scheduling stories with their expected ends.
    Scenario(scenario::Arguments),
    /// Check configuration files and print what they come to.
    Check(check::Arguments),
    /// Run a recorded run again and compare the decisions.
    Replay(replay::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = logging::start(&arguments.log) {
        eprintln!("error: {error:#}");
        return ExitCode::from(2);
    }
    let done = match arguments.command {
        Command::Simulate(arguments) => simulate::run(*arguments),
        Command::Scenario(arguments) => scenario::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
