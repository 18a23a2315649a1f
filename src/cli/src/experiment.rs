//! `krafla simulate --experiment`: an experiment of the literature, by its own rules.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use krafla_simulator::experiment::fgd;
use krafla_simulator::trace::error::LoadError;

use crate::console;
use crate::progress::Line;
use crate::registry::registry;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Fragmentation of GPUs: six policies on five pod lists of the openb trace, ten seeds each.
    Fgd,
}

/// Plays an experiment on the files of `data`, prints its table, and writes its rows as JSON where asked.
pub(crate) fn run(experiment: Experiment, data: Option<PathBuf>, json: Option<&Path>) -> anyhow::Result<ExitCode> {
    let Experiment::Fgd = experiment;
    let data = data.context("--data: --experiment fgd needs the folder with the openb lists; write --data FOLDER")?;
    let line = Line::new();
    let rows = fgd::run(&data, fgd::SEEDS, registry, |done, of| line.say(format!("{done} of {of} runs")));
    line.done();
    let rows = rows.map_err(|error| match error {
        LoadError::Option { option, message } => anyhow!("--{option}: {message}"),
        other => anyhow!(other),
    })?;
    let text = serde_json::to_string_pretty(&rows)? + "\n";
    match json {
        Some(path) if path == Path::new("-") => return console::print(&text).map(|()| ExitCode::SUCCESS),
        Some(path) => std::fs::write(path, text).with_context(|| path.display().to_string())?,
        None => {}
    }
    let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    console::print(&fgd::table(&rows, width))?;
    Ok(ExitCode::SUCCESS)
}
