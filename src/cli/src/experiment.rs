//! `krafla simulate --experiment`: an experiment of the literature by its own rules, or one of ours, side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use krafla_simulator::experiment::{defragment, drift, fgd};
use krafla_simulator::trace::error::LoadError;
use serde::Serialize;

use crate::console;
use crate::progress::Line;
use crate::registry::registry;

const HOUR_MS: i64 = 3_600_000;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// Fragmentation of GPUs: six policies on five pod lists of the openb trace, ten seeds each.
    Fgd,
    /// The descheduler in a day of drifting load, with the scheduler's plan for each move and without it.
    Drift,
    /// Gangs of whole nodes on the openb cluster at 90 %: moves by `defragment`, and as many at random.
    Defragment,
}

/// What an experiment may be told beside its name.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) data: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) nodes: Option<u32>,
    pub(crate) seed: Option<u64>,
    /// `--until`, in ms of virtual time.
    pub(crate) until_ms: Option<i64>,
}

/// Plays an experiment, prints its tables, and writes its numbers as JSON where asked.
pub(crate) fn run(experiment: Experiment, told: &Told) -> anyhow::Result<ExitCode> {
    let takes: &[&str] = match experiment {
        Experiment::Fgd => &["--data"],
        Experiment::Drift => &["--nodes", "--seed", "--until"],
        Experiment::Defragment => &["--data", "--seed"],
    };
    let given = [
        ("--data", told.data.is_some()),
        ("--nodes", told.nodes.is_some()),
        ("--seed", told.seed.is_some()),
        ("--until", told.until_ms.is_some()),
    ];
    let name = experiment.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    if let Some((flag, _)) = given.into_iter().find(|(flag, given)| *given && !takes.contains(flag)) {
        bail!("{flag}: it has no say in --experiment {name}, which takes {}; leave it out", takes.join(", "));
    }
    let line = Line::new();
    let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(120);
    let folder = || {
        let missing =
            || anyhow!("--data: --experiment {name} needs the folder with the openb lists; write --data FOLDER");
        told.data.as_deref().ok_or_else(missing)
    };
    match experiment {
        Experiment::Fgd => {
            let rows = fgd::run(folder()?, fgd::SEEDS, registry, |done, of| line.say(format!("{done} of {of} runs")));
            line.done();
            let rows = rows.map_err(plain)?;
            show(&rows, told.json.as_deref(), || fgd::table(&rows, width))?;
        }
        Experiment::Drift => {
            let options = drift_options(told)?;
            let tell = |done, of| line.say(format!("{done} of {of} virtual hours, of the day with a plan and without"));
            let report = drift::run(options, registry, tell);
            line.done();
            show(&report, told.json.as_deref(), || drift::table(&report, width))?;
            let broken = report.broken();
            if !broken.is_empty() {
                bail!("what must hold of the day with a plan did not\n  {}", broken.join("\n  "));
            }
        }
        Experiment::Defragment => {
            let tell = |done, of| line.say(format!("{done} of {of} gangs, with moves that are chosen and at random"));
            let report = defragment::run(folder()?, told.seed.unwrap_or(0), registry, tell);
            line.done();
            let report = report.map_err(plain)?;
            show(&report, told.json.as_deref(), || defragment::table(&report, width))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn plain(error: LoadError) -> anyhow::Error {
    match error {
        LoadError::Option { option, message } => anyhow!("--{option}: {message}"),
        other => anyhow!(other),
    }
}

fn drift_options(told: &Told) -> anyhow::Result<drift::Options> {
    let usual = drift::Options::default();
    let nodes = told.nodes.unwrap_or(usual.nodes);
    if !(drift::LEAST_NODES..=10_000).contains(&nodes) {
        bail!("--nodes {nodes}: --experiment drift takes {} to 10000 nodes", drift::LEAST_NODES);
    }
    let least = drift::LEAST_HOURS;
    let hours = match told.until_ms {
        None => usual.hours,
        Some(ms) => match u32::try_from(ms / HOUR_MS) {
            Ok(hours) if ms % HOUR_MS == 0 && (least..=1_000).contains(&hours) => hours,
            _ => bail!("--until: --experiment drift takes whole hours from {least}h to 1000h; write for example 24h"),
        },
    };
    Ok(drift::Options { nodes, hours, seed: told.seed.unwrap_or(usual.seed) })
}

/// Prints the tables, and writes the numbers where asked; `-` is standard output, and then no tables are printed.
fn show(numbers: &impl Serialize, json: Option<&Path>, table: impl FnOnce() -> String) -> anyhow::Result<()> {
    let text = || Ok::<_, anyhow::Error>(serde_json::to_string_pretty(numbers)? + "\n");
    match json {
        Some(path) if path == Path::new("-") => return console::print(&text()?),
        Some(path) => std::fs::write(path, text()?).with_context(|| path.display().to_string())?,
        None => {}
    }
    console::print(&table())
}
