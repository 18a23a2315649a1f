//! The commands of `krafla`: wires the plugins and actions of this build into the engine, and a shell about it.
//!
//! A crate with plugins of its own calls [`main_with`], and has all the commands.

mod check;
mod console;
mod crds;
mod example;
mod experiment;
mod input;
mod logging;
mod manifests;
mod progress;
mod registry;
mod replay;
mod scenario;
mod schedule;
mod settings;
mod simulate;
mod spans;
mod timing;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use krafla_framework::Registry;

/// A batch scheduler for Kubernetes.
///
/// Gangs start whole or not at all, queues share fairly, and whatever waits says why. `schedule` runs it on a cluster,
/// in place of Volcano's scheduler; `simulate` on a simulated one, in virtual time.
#[derive(Parser)]
#[command(name = "krafla", version, propagate_version = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// What is logged to standard error: off, error, warn, info, debug, trace, or a filter such as
    /// `krafla_engine=debug`; by default errors; info for `schedule`, and nothing for scenarios, which provoke errors on purpose.
    #[arg(long, global = true, value_name = "LEVEL", env = "KRAFLA_LOG", hide_env_values = true)]
    log: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  krafla schedule --scheduler-conf my.conf     schedule the pods of a cluster
  krafla simulate                              three teams on a small GPU cluster, and a report
  krafla simulate --trace swf:KTH-SP2.swf      a year of a supercomputer's jobs
  krafla simulate --trace manifests:cluster/   what is in a folder of Kubernetes manifests
  krafla scenario test/scenarios               scheduling stories with their expected ends
  krafla check scheduler.conf                  what is wrong with a configuration
  krafla crds | kubectl apply -f -             the custom resources, for a cluster";

// What the commands do stands at their arguments.
#[derive(Subcommand)]
enum Command {
    Schedule(schedule::Arguments),
    Simulate(Box<simulate::Arguments>),
    Scenario(scenario::Arguments),
    Check(check::Arguments),
    Replay(replay::Arguments),
    Crds(crds::Arguments),
}

/// The whole program. `extend` adds actions and plugins to those of this build.
pub fn main_with(extend: fn(&mut Registry)) -> ExitCode {
    registry::extend_by(extend);
    let arguments = Arguments::parse();
    let usual = match arguments.command {
        Command::Scenario(_) => "off",
        Command::Schedule(_) => "info",
        _ => "error",
    };
    let logging = match logging::start(arguments.log.as_deref().unwrap_or(usual)) {
        Ok(logging) => logging,
        Err(error) => {
            console::say(&format!("error: {error:#}"));
            return ExitCode::from(2);
        }
    };
    let done = match arguments.command {
        Command::Schedule(arguments) => schedule::run(&arguments, &logging),
        Command::Simulate(arguments) => simulate::run(*arguments),
        Command::Scenario(arguments) => scenario::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Crds(arguments) => crds::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        console::say(&format!("error: {error:#}"));
        ExitCode::from(2)
    })
}
