//! `krafla replay`: runs a recorded run again.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use krafla_engine::recording::{Difference, RecordingError, replay};

use crate::console;
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
    if arguments.file.is_dir() {
        bail!("{name}: is a folder; name the file that `krafla simulate --record` wrote");
    }
    let file = File::open(&arguments.file).with_context(|| format!("{name}: cannot be read"))?;
    let replay = replay(BufReader::new(file), registry()).map_err(|error| match error {
        RecordingError::Line { line: 1, message } => {
            anyhow!("{name}:1: {message}; is this a file that `krafla simulate --record` wrote?")
        }
        RecordingError::Line { line, message } => anyhow!("{name}:{line}: {message}"),
        RecordingError::Io(error) => anyhow!("{name}: cannot be read: {error}"),
    })?;
    let (steps, cycles, effects) = (replay.steps, replay.cycles, replay.effects);
    match replay.difference {
        None => {
            console::print(&format!("{name}: {steps} steps, {cycles} cycles, {effects} effects: all the same\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Difference { line, now, recorded, replayed }) => {
            console::print(&format!(
                "{name}:{line}: at {now} the replay decides differently\n  recorded: {recorded}\n  replayed: {replayed}\n"
            ))?;
            Ok(ExitCode::from(1))
        }
    }
}
