//! DeschedulerPolicy, version v1alpha2: the configuration of the Kubernetes descheduler.
//!
//! The way through: `fields` knows which key belongs where, `profiles` reads profiles with their plugins and `args`,
//! `providers` the sources of usage. What a strategy takes as `args` is the strategy's own affair: it comes with the
//! [`StrategyInfo`] that the caller hands in.

mod fields;
mod profiles;
mod providers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use krafla_model::labels::Selector;

use super::arguments::Value;
use super::catalogue::Catalogue;
use super::compile::{LARGEST, parse};
use super::kube::scalars::{flag, integer, text};
use super::names::shown;
use super::problem::{Problem, Severity};
use super::reader::Reader;
use super::selectors;
use super::tree::{Node, Span};
use crate::registry::ArgumentProblem;
use fields::{Level, get};

/// The `kind` of such a file.
pub const KIND: &str = "DeschedulerPolicy";
const VERSION: &str = "descheduler/v1alpha2";
/// Largest number that the descheduler itself reads, for counts.
const UINT32: i64 = u32::MAX as i64;

/// When a plugin takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyPoint {
    /// Before all `Balance` plugins of all profiles: pods that are wrong by themselves.
    Deschedule,
    /// Pods that are wrong beside others.
    Balance,
    /// Whether a pod may be evicted at all.
    Filter,
    /// Whether it may just before it is.
    PreEvictionFilter,
}

/// A plugin that a policy may name.
#[derive(Clone, Copy)]
pub struct StrategyInfo {
    /// Its name.
    pub name: &'static str,
    /// Another name that people know it by.
    pub alias: Option<&'static str>,
    /// When it takes part.
    pub points: &'static [PolicyPoint],
    /// Checks its `args`, [`Value::Null`] where there are none.
    pub check: fn(&Value) -> Result<(), Vec<ArgumentProblem>>,
}

/// A policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeschedulerPolicy {
    /// Its profiles, in order.
    pub profiles: Vec<PolicyProfile>,
    /// Only nodes with these labels are looked at.
    pub node_selector: Option<Selector>,
    /// Most evictions from one node in a round.
    pub most_per_node: Option<u32>,
    /// Most evictions from one namespace in a round.
    pub most_per_namespace: Option<u32>,
    /// Most evictions in a round.
    pub most_in_all: Option<u32>,
    /// How long an evicted pod may take to end, in seconds; `None`: as it says itself.
    pub grace_seconds: Option<u32>,
    /// Whether an event tells of each eviction that failed.
    pub tell_of_failures: bool,
    /// Whether the metrics server is a source.
    pub metrics_server: bool,
    /// Address of Prometheus, and the secret with the token, if it is a source.
    pub prometheus: Option<(String, Option<(String, String)>)>,
}

/// A profile of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyProfile {
    /// Its name.
    pub name: String,
    /// Plugins that are enabled at `deschedule`, in order.
    pub deschedule: Vec<String>,
    /// Plugins that are enabled at `balance`, in order.
    pub balance: Vec<String>,
    /// What plugins are told.
    pub arguments: BTreeMap<String, Value>,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledPolicy {
    /// The policy; `None` if there is any error.
    pub policy: Option<DeschedulerPolicy>,
    /// What is wrong or odd, from the top of the file down.
    pub problems: Vec<Problem>,
}

/// Whether a text is a policy, or was meant to be.
#[must_use]
pub fn is_one(text: &str) -> bool {
    let of = |line: &str, key: &str| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix(':')?.trim();
        Some(value.trim_matches(['"', '\'']).to_owned())
    };
    text.lines().any(|line| {
        of(line, "kind").is_some_and(|kind| kind == KIND)
            || of(line, "apiVersion").is_some_and(|version| version.starts_with("descheduler/"))
    })
}

/// Compiles `text`, which came from `file`. With `auto_enable`, plugins that have an entry in `pluginConfig` and are
/// enabled nowhere in a profile without `plugins` are enabled where they take part.
#[must_use]
pub fn compile(text: &str, file: &str, strategies: &[StrategyInfo], auto_enable: bool) -> CompiledPolicy {
    let catalogue = Catalogue::default();
    let mut reader = Reader::new(&catalogue, file, text);
    let policy = read(&mut reader, text, strategies, auto_enable);
    let policy = policy.filter(|_| !reader.has_errors());
    CompiledPolicy { policy, problems: reader.into_problems() }
}

impl CompiledPolicy {
    /// Whether it can be used.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }
}

fn read(
    reader: &mut Reader<'_>,
    text: &str,
    strategies: &[StrategyInfo],
    auto_enable: bool,
) -> Option<DeschedulerPolicy> {
    if text.len() > LARGEST {
        let message = format!("the file has {} bytes, more than the {LARGEST} that are read", text.len());
        reader.error(&Span::default(), message, "", Some("is this the right file?".to_owned()));
        return None;
    }
    let documents = parse(reader, text)?;
    let node = match documents.as_slice() {
        [] => {
            let help = format!("begin the file with `apiVersion: {VERSION}` and `kind: {KIND}`");
            reader.error(&Span::default(), "the policy is empty", "", Some(help));
            return None;
        }
        [node] => node,
        [_, second, ..] => {
            let help = "remove the `---` and what is below it".to_owned();
            reader.error(&second.at, "there is more than one policy", "second", Some(help));
            return None;
        }
    };
    reader.duplicate_keys(node);
    let entries = fields::entries(reader, Level::Top, node)?;
    version(reader, node);
    let count = |reader: &mut Reader<'_>, key: &str| {
        let entry = get(entries, key)?;
        u32::try_from(integer(reader, entry, 0, UINT32)?).ok()
    };
    let mut policy = DeschedulerPolicy {
        most_per_node: count(reader, "maxNoOfPodsToEvictPerNode"),
        most_per_namespace: count(reader, "maxNoOfPodsToEvictPerNamespace"),
        most_in_all: count(reader, "maxNoOfPodsToEvictTotal"),
        grace_seconds: count(reader, "gracePeriodSeconds"),
        ..DeschedulerPolicy::default()
    };
    if let Some(entry) = get(entries, "evictionFailureEventNotification") {
        policy.tell_of_failures = flag(reader, entry).unwrap_or(false);
    }
    if let Some(entry) = get(entries, "nodeSelector")
        && let Some(written) = self::text(reader, entry)
    {
        match selectors::from_text(&written) {
            Ok(selector) => policy.node_selector = Some(selector),
            Err(why) => {
                let help = "write for example `pool=a,!reserved`".to_owned();
                let message = format!("`nodeSelector` cannot be read: {why}");
                reader.error(&entry.value.at, message, "not a selector", Some(help));
            }
        }
    }
    providers::read(reader, entries, &mut policy);
    policy.profiles = profiles::read(reader, node, entries, strategies, auto_enable);
    Some(policy)
}

fn version(reader: &mut Reader<'_>, node: &Node) {
    let both = format!("begin the file with `apiVersion: {VERSION}` and `kind: {KIND}`");
    match get(node.entries(), "kind") {
        Some(entry) if entry.value.text() == Some(KIND) => {}
        Some(entry) => {
            reader.error(&entry.value.at, format!("`kind` has to be `{KIND}`"), "unknown", Some(both.clone()))
        }
        None => reader.error(&node.at, "the policy has no `kind`", "", Some(both.clone())),
    }
    let Some(entry) = get(node.entries(), "apiVersion") else {
        reader.error(&node.at, "the policy has no `apiVersion`", "", Some(both));
        return;
    };
    match entry.value.text().unwrap_or_default() {
        VERSION => {}
        "descheduler/v1alpha1" => {
            let help = "write `apiVersion: descheduler/v1alpha2`; what stood under `strategies` are plugins of a profile \
                        now, and their `params` are `args` in `pluginConfig`";
            reader.error(&entry.value.at, "the version v1alpha1 is not read", "not v1alpha2", Some(help.to_owned()));
        }
        found => {
            let help = format!("write `apiVersion: {VERSION}`");
            reader.error(&entry.value.at, format!("the version {} is not read", shown(found)), "unknown", Some(help));
        }
    }
}
