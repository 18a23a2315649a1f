//! `krafla scenario`: runs scheduling stories and checks their ends.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use krafla_simulator::scenario::{self, Verdict};

use crate::registry::registry;
use crate::{console, input};

/// A scenario is written by hand: a few kilobytes.
const MOST_BYTES: u64 = 16 << 20;

/// Run scenarios: scheduling stories with their expected ends.
///
/// Prints one line a scenario, and what was wanted and what came instead for each miss. Exits 0 if all held, 1 if one
/// missed, 2 if a file could not be read.
#[derive(Args)]
#[command(
    after_help = "Example:\n  krafla scenario test/scenarios\n\nA scenario:\n  scenario: a-gang-waits\n  cluster: {nodes: [{name: n, count: 2, cpu: 4}]}\n  timeline:\n  - {at: 0s, submit: {job: a, replicas: 3, minMember: 3, request: {cpu: 4}, runtime: 60s}}\n  expect:\n  - {at: 0s, job: a, bound: 0, reason: NotEnoughResources}"
)]
pub(crate) struct Arguments {
    /// Scenario files, or folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut files = Vec::new();
    for path in &arguments.files {
        files.extend(input::files(path, &["yaml", "yml"])?);
    }
    let (mut passed, mut missed, mut unreadable) = (0, 0, 0);
    for file in &files {
        let name = file.display().to_string();
        let verdict = input::text(file, MOST_BYTES).and_then(|text| Ok(scenario::run(&text, &name, registry)?));
        match verdict {
            Ok(verdict) if verdict.passed() => {
                let Verdict { name, checks, cycles, .. } = verdict;
                console::print(&format!("ok      {name} ({checks} checks, {cycles} cycles)\n"))?;
                passed += 1;
            }
            Ok(verdict) => {
                let mut text = format!("MISSED  {} ({name})\n", verdict.name);
                text.extend(verdict.misses.iter().map(|miss| format!("          {miss}\n")));
                text.extend(verdict.notes.iter().map(|note| format!("          note: {note}\n")));
                console::print(&text)?;
                missed += 1;
            }
            Err(error) => {
                console::print(&format!("UNREAD  {error:#}\n"))?;
                unreadable += 1;
            }
        }
    }
    console::print(&format!("{passed} passed, {missed} missed, {unreadable} could not be read\n"))?;
    Ok(ExitCode::from(match (missed, unreadable) {
        (0, 0) => 0,
        (_, 0) => 1,
        _ => 2,
    }))
}
