//! `krafla crds`: the CustomResourceDefinitions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use krafla_api::definitions;
use serde_json::Value;

use crate::{console, input};

/// Far more than all definitions have.
const MOST_BYTES: u64 = 4 << 20;

/// Longer texts, which are descriptions and rules, are folded.
const WIDTH: usize = 100;

/// Print the definitions of the custom resources that Krafla uses.
///
/// PodGroup, Queue, HyperNode and Numatopology are Volcano's, with what its webhooks refuse as rules in the schema; a
/// second PodGroup and ElasticQuota are those of scheduler-plugins. Without an option all of them go to standard output,
/// to be piped to kubectl.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  krafla crds | kubectl apply --server-side -f -\n  krafla crds --out conf/crds\n  krafla crds --check conf/crds"
)]
pub(crate) struct Arguments {
    /// Write one file each into this folder, which is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say which files of this folder are not what --out would write. Exits 1 if there is one.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    check: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let files = files()?;
    if let Some(folder) = &arguments.out {
        write(folder, &files)?;
    } else if let Some(folder) = &arguments.check {
        return check(folder, &files);
    } else {
        let all: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        console::print(&all.concat())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A definition as a file.
struct File {
    name: String,
    text: String,
}

fn files() -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    for definition in definitions() {
        let mut value = serde_json::to_value(&definition).context("a definition as JSON")?;
        whole_numbers(&mut value);
        let options = serde_saphyr::ser_options! { folded_wrap_chars: WIDTH };
        let yaml = serde_saphyr::to_string_with_options(&value, options).context("a definition as YAML")?;
        files.push(File {
            name: format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural),
            text: format!("# Made by `krafla crds`.\n---\n{yaml}"),
        });
    }
    Ok(files)
}

/// Writes 1.0 as 1: the type of a schema has floats for the limits of integers.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(list) => list.iter_mut().for_each(whole_numbers),
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15) {
                #[allow(clippy::cast_possible_truncation, reason = "whole, and far below the largest")]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}

fn write(folder: &Path, files: &[File]) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    for file in files {
        let path = folder.join(&file.name);
        std::fs::write(&path, &file.text).with_context(|| format!("{}: cannot be written", path.display()))?;
        console::say(&format!("{}: written", path.display()));
    }
    Ok(())
}

fn check(folder: &Path, files: &[File]) -> anyhow::Result<ExitCode> {
    let mut wrong = Vec::new();
    for file in files {
        let path = folder.join(&file.name);
        if !path.exists() {
            wrong.push(format!("{}: is missing", path.display()));
            continue;
        }
        let text = input::text(&path, MOST_BYTES)?;
        if let Some(line) = first_difference(&text, &file.text) {
            wrong.push(format!("{}:{line}: is not what this krafla writes", path.display()));
        }
    }
    // A file of a definition that is gone would be applied with the others.
    if folder.is_dir() {
        for path in input::files(folder, &["yaml", "yml"])? {
            let known = path.parent() == Some(folder) && files.iter().any(|file| path.ends_with(&file.name));
            if !known {
                wrong.push(format!("{}: is none of the definitions", path.display()));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    for line in &wrong {
        console::say(line);
    }
    let folder = folder.display();
    console::say(&format!("`krafla crds --out {folder}` writes them anew; what is none of them has to be removed"));
    Ok(ExitCode::from(1))
}

/// The number of the first line in which two texts differ, from 1.
fn first_difference(a: &str, b: &str) -> Option<usize> {
    if a == b {
        return None;
    }
    let same = a.lines().zip(b.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}
