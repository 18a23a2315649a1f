//! `krafla replay`: runs a recorded run again.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use krafla_engine::recording::replay;

use crate::registry::registry;

/// Run a recorded run again and compare the decisions.
///
/// Exits 0 if every decision is the same, 1 at the first difference, 2 if the file cannot be read.
#[derive(Args)]
#[command(after_help = "Example:\n  krafla simulate --record day.jsonl\n  krafla replay day.jsonl")]
pub(crate) struct Arguments {
    /// The recording.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let name = arguments.file.display().to_string();
    let file = File::open(&arguments.file).with_context(|| name.clone())?;
    let replay = replay(BufReader::new(file), registry()).with_context(|| name.clone())?;
    let (steps, cycles, effects) = (replay.steps, replay.cycles, replay.effects);
    match replay.difference {
        None => {
            println!("{name}: {steps} steps, {cycles} cycles, {effects} effects: all the same");
            Ok(ExitCode::SUCCESS)
        }
        Some(difference) => {
            println!("{name}:{}: at {} the replay decides differently", difference.line, difference.now);
            println!("  recorded: {}", difference.recorded);
            println!("  replayed: {}", difference.replayed);
            Ok(ExitCode::from(1))
        }
    }
}
