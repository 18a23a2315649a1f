//! The `krafla` binary: wires the plugins and actions of this build into the engine, and a shell about it.

mod check;
mod console;
mod example;
mod input;
mod logging;
mod manifests;
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
    /// What is logged to standard error: off, error, warn, info, debug, trace, or a filter such as
    /// `krafla_engine=debug`; by default errors, and nothing for scenarios, which provoke errors on purpose.
    #[arg(long, global = true, value_name = "LEVEL", env = "KRAFLA_LOG", hide_env_values = true)]
    log: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  krafla simulate                              three teams on a small GPU cluster, and a report
  krafla simulate --trace swf:KTH-SP2.swf      a year of a supercomputer's jobs
  krafla simulate --trace manifests:cluster/   what is in a folder of Kubernetes manifests
  krafla scenario test/scenarios               scheduling stories with their expected ends
  krafla check scheduler.conf                  what is wrong with a configuration";

// What the commands do stands at their arguments.
#[derive(Subcommand)]
enum Command {
    Simulate(Box<simulate::Arguments>),
    Scenario(scenario::Arguments),
    Check(check::Arguments),
    Replay(replay::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let usual = if matches!(arguments.command, Command::Scenario(_)) { "off" } else { "error" };
    if let Err(error) = logging::start(arguments.log.as_deref().unwrap_or(usual)) {
        console::say(&format!("error: {error:#}"));
        return ExitCode::from(2);
    }
    let done = match arguments.command {
        Command::Simulate(arguments) => simulate::run(*arguments),
        Command::Scenario(arguments) => scenario::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        console::say(&format!("error: {error:#}"));
        ExitCode::from(2)
    })
}
