//! KubeSchedulerConfiguration, version v1: kube-scheduler's own configuration.
//!
//! The way through: `profiles` reads each profile with its places, `plugins` the sets of its extension points; `merge`
//! has kube-scheduler's rules of who is asked where in which order; `config` checks what plugins are told; `top` and
//! `extenders` read the rest. `upstream` is the default profile, `fields` knows which key belongs where.
//!
//! A file names no actions and tiers: those of [`Policy::builtin`] are in force, and its profiles find the nodes.
//!
//! Deliberately not here: running profiles, and calling extenders.

mod aliases;
pub mod args;
pub(super) mod config;
mod extenders;
pub(super) mod fields;
mod merge;
mod plugins;
pub(super) mod print;
mod profiles;
pub(super) mod scalars;
#[cfg(test)]
mod tests;
mod top;
mod upstream;

use std::collections::BTreeMap;

use fields::{Level, get};

use super::arguments::Value;
use super::names::shown;
use super::policy::{Policy, ProfilePolicy};
use super::reader::Reader;
use super::tree::Node;

/// The `kind` of such a file.
pub(super) const KIND: &str = "KubeSchedulerConfiguration";
const GROUP: &str = "kubescheduler.config.k8s.io";
const VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// Whether a document is one, or was meant to be.
pub(super) fn is_one(node: &Node) -> bool {
    let starts = |key: &str, words: &[&str]| {
        node.get(key).and_then(|entry| entry.value.text()).is_some_and(|text| words.iter().any(|w| text.starts_with(w)))
    };
    starts("kind", &[KIND]) || starts("apiVersion", &[GROUP, "componentconfig"])
}

/// Whether a text, as a value of a ConfigMap, holds one.
pub(super) fn is_named_in(text: &str) -> bool {
    text.lines().any(|line| line.contains(KIND) && line.contains("kind"))
}

/// Reads the whole document. What is wrong is reported; the policy then lacks it.
pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Policy {
    let entries = fields::entries(reader, Level::Top, node, None).unwrap_or_default();
    version(reader, node);
    let top = top::read(reader, entries);
    let extenders = extenders::read(reader, get(entries, "extenders"));
    let mut profiles = profiles::read(reader, node, get(entries, "profiles"), top.percentage_of_nodes_to_score);
    let managed = extenders.iter().flat_map(|extender| &extender.managed_resources);
    let ignored: Vec<&str> = managed.filter(|one| one.ignored_by_scheduler).map(|one| one.name.as_str()).collect();
    for profile in &mut profiles {
        ignore_resources(profile, &ignored);
    }
    Policy { profiles, extenders, queue_times: top.queue_times, ..Policy::builtin() }
}

/// Adds resources that extenders look after to those that NodeResourcesFit does not.
fn ignore_resources(profile: &mut ProfilePolicy, names: &[&str]) {
    const FIT: &str = "NodeResourcesFit";
    let is_used = profile.points.values().flatten().any(|(name, _)| name == FIT);
    if names.is_empty() || !is_used {
        return;
    }
    let arguments = profile.arguments.entry(FIT.to_owned()).or_insert_with(|| Value::Map(BTreeMap::new()));
    let Value::Map(map) = arguments else { return };
    let list = map.entry("ignoredResources".to_owned()).or_insert_with(|| Value::List(Vec::new()));
    let Value::List(list) = list else { return };
    for name in names {
        let value = Value::Text((*name).to_owned());
        if !list.contains(&value) {
            list.push(value);
        }
    }
}

/// Reports a version other than v1, and a kind that is misspelt or missing.
fn version(reader: &mut Reader<'_>, node: &Node) {
    let both = format!("begin the file with `apiVersion: {VERSION}` and `kind: {KIND}`");
    match get(node.entries(), "kind") {
        Some(entry) if entry.value.text() == Some(KIND) => {}
        Some(entry) => {
            reader.error(&entry.value.at, format!("`kind` has to be `{KIND}`"), "unknown", Some(both.clone()));
        }
        None => reader.error(&node.at, "the configuration has no `kind`", "", Some(both.clone())),
    }
    let Some(entry) = get(node.entries(), "apiVersion") else {
        reader.error(&node.at, "the configuration has no `apiVersion`", "", Some(both));
        return;
    };
    let found = entry.value.text().unwrap_or_default();
    if found == VERSION {
        return;
    }
    let help = match found.rsplit('/').next().unwrap_or_default() {
        "v1beta1" | "v1beta2" | "v1beta3" | "v1alpha1" | "v1alpha2" => {
            "write `apiVersion: kubescheduler.config.k8s.io/v1`; the scores NodeResourcesLeastAllocated, \
             NodeResourcesMostAllocated and RequestedToCapacityRatio are strategies of NodeResourcesFit now, \
             SelectorSpread is PodTopologySpread, and `healthzBindAddress` and `metricsBindAddress` are gone"
        }
        _ => "write `apiVersion: kubescheduler.config.k8s.io/v1`",
    };
    let message = format!("the version {} is not read", shown(found));
    reader.error(&entry.value.at, message, "not v1", Some(help.to_owned()));
}
