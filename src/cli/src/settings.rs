//! Settings in layers: defaults, a file, the environment, flags; later ones win.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use config::builder::DefaultState;
use config::{Config, ConfigBuilder, ConfigError, Environment, File, FileStoredFormat, Format, Map, Value, ValueKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::input;

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
    pub(crate) restart_cost: Option<String>,
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

/// A settings file is a few lines.
const MOST_BYTES: u64 = 1 << 20;

/// Puts the layers together: a file if there is one, the environment (`PREFIX_<KEY>`), and `flags` above both.
pub(crate) fn layered<T>(prefix: &str, file: Option<&Path>, flags: &T) -> anyhow::Result<T>
where
    T: Serialize + DeserializeOwned,
{
    let mut settings = serde_json::Map::new();
    if let Some(path) = file {
        let text = input::text(path, MOST_BYTES)?;
        let source = File::from_str(&text, Yaml);
        let read: T = read(Config::builder().add_source(source)).with_context(|| path.display().to_string())?;
        overlay(&mut settings, &read)?;
    }
    // Not parsed here: a number that stands for a text stays one.
    let environment = Environment::with_prefix(prefix).prefix_separator("_");
    let environment: T =
        read(Config::builder().add_source(environment)).with_context(|| format!("environment variables {prefix}_*"))?;
    overlay(&mut settings, &environment)?;
    overlay(&mut settings, flags)?;
    Ok(serde_json::from_value(settings.into())?)
}

fn read<T: DeserializeOwned>(builder: ConfigBuilder<DefaultState>) -> Result<T, ConfigError> {
    builder.build().and_then(Config::try_deserialize)
}

/// Puts what `above` says over what is there.
fn overlay<T: Serialize>(settings: &mut serde_json::Map<String, serde_json::Value>, above: &T) -> anyhow::Result<()> {
    if let serde_json::Value::Object(said) = serde_json::to_value(above)? {
        settings.extend(said.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(())
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
        let read: Option<BTreeMap<String, serde_json::Value>> = serde_saphyr::from_str(text)?;
        // `procs-per-node`, as the flag is written, is as good as `procs_per_node`.
        let entries = read.into_iter().flatten();
        Ok(entries.map(|(key, value)| (key.replace('-', "_"), Value::new(uri, kind_of(value)))).collect())
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
        // `derive: [gangs, priorities]` is as good as `derive: gangs,priorities`.
        serde_json::Value::Array(items) => {
            let words: Vec<String> =
                items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned)).collect();
            ValueKind::String(words.join(","))
        }
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
        let settings = layered("KRAFLA_TEST", Some(&path), &flags).expect("read");
        assert_eq!((settings.nodes, settings.seed), (Some(9), Some(7)));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("settings.yaml");
        std::fs::write(&path, "node: 5\n").expect("written");
        let error = format!("{:#}", layered("KRAFLA_TEST", Some(&path), &Settings::default()).expect_err("refused"));
        assert!(error.contains("node"), "{error}");
    }
}
