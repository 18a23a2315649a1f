//! Settings of `simulate` in layers: defaults, a file, the environment, flags; later ones win.

use std::path::{Path, PathBuf};

use anyhow::Context;
use config::{Config, Environment, File, FileStoredFormat, Format, Map, Value, ValueKind};
use serde::{Deserialize, Serialize};

/// What a simulation may be told. Every key can stand in a file (`--settings`), in the environment
/// (`KRAFLA_SIMULATE_<KEY>`), or be a flag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    pub(crate) trace: Option<String>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) nodes: Option<u32>,
    pub(crate) seed: Option<u64>,
    pub(crate) warmup: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) period: Option<String>,
    pub(crate) compress: Option<f64>,
    pub(crate) limit: Option<usize>,
    pub(crate) report: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) record: Option<PathBuf>,
    pub(crate) derive: Option<String>,
    pub(crate) procs_per_node: Option<u32>,
    pub(crate) node_list: Option<String>,
    pub(crate) shuffle_ties: Option<u64>,
    pub(crate) strict: Option<bool>,
    pub(crate) timing: Option<bool>,
}

/// Puts the layers together: a file if there is one, the environment, and `flags` above both.
pub(crate) fn layered(file: Option<&Path>, flags: &Settings) -> anyhow::Result<Settings> {
    let mut builder = Config::builder();
    if let Some(path) = file {
        builder = builder.add_source(File::new(&path.display().to_string(), Yaml));
    }
    builder = builder.add_source(Environment::with_prefix("KRAFLA_SIMULATE").prefix_separator("_").try_parsing(true));
    let below: Settings = builder.build().and_then(Config::try_deserialize).context("settings")?;
    Ok(above(flags, below))
}

/// `flags` where they say something, else `below`.
fn above(flags: &Settings, below: Settings) -> Settings {
    let flags = flags.clone();
    Settings {
        trace: flags.trace.or(below.trace),
        config: flags.config.or(below.config),
        nodes: flags.nodes.or(below.nodes),
        seed: flags.seed.or(below.seed),
        warmup: flags.warmup.or(below.warmup),
        until: flags.until.or(below.until),
        period: flags.period.or(below.period),
        compress: flags.compress.or(below.compress),
        limit: flags.limit.or(below.limit),
        report: flags.report.or(below.report),
        json: flags.json.or(below.json),
        record: flags.record.or(below.record),
        derive: flags.derive.or(below.derive),
        procs_per_node: flags.procs_per_node.or(below.procs_per_node),
        node_list: flags.node_list.or(below.node_list),
        shuffle_ties: flags.shuffle_ties.or(below.shuffle_ties),
        strict: flags.strict.or(below.strict),
        timing: flags.timing.or(below.timing),
    }
}

/// YAML for the `config` crate, through the parser that everything else here uses.
#[derive(Clone, Copy, Debug)]
struct Yaml;

impl Format for Yaml {
    fn parse(
        &self,
        uri: Option<&String>,
        text: &str,
    ) -> Result<Map<String, Value>, Box<dyn std::error::Error + Send + Sync>> {
        let read: std::collections::BTreeMap<String, serde_json::Value> = serde_saphyr::from_str(text)?;
        Ok(read.into_iter().map(|(key, value)| (key, Value::new(uri, kind_of(value)))).collect())
    }
}

fn kind_of(value: serde_json::Value) -> ValueKind {
    match value {
        serde_json::Value::Null => ValueKind::Nil,
        serde_json::Value::Bool(value) => ValueKind::Boolean(value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(value) => ValueKind::I64(value),
            None => ValueKind::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => ValueKind::String(text),
        other => ValueKind::String(other.to_string()),
    }
}

impl FileStoredFormat for Yaml {
    fn file_extensions(&self) -> &'static [&'static str] {
        &["yaml", "yml"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings.yaml");
        std::fs::write(&path, "nodes: 5\nseed: 7\n").expect("written");
        let flags = Settings { nodes: Some(9), ..Settings::default() };
        let settings = layered(Some(&path), &flags).expect("read");
        assert_eq!((settings.nodes, settings.seed), (Some(9), Some(7)));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings.yaml");
        std::fs::write(&path, "node: 5\n").expect("written");
        let error = format!("{:#}", layered(Some(&path), &Settings::default()).expect_err("refused"));
        assert!(error.contains("node"), "{error}");
    }
}
