//! Profiles: which plugins are enabled where, and what they are told.

use std::collections::BTreeMap;

use super::fields::{self, Level, get, items};
use super::{PolicyPoint, PolicyProfile, StrategyInfo};
use crate::conf::arguments::Value;
use crate::conf::check::anything;
use crate::conf::kube::config::place;
use crate::conf::kube::scalars::required;
use crate::conf::names::{shown, suggest};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span, Tree};
use crate::registry::ArgumentProblem;

/// Filters that are always on.
const EVICTOR: &str = "DefaultEvictor";

pub(super) fn read(
    reader: &mut Reader<'_>,
    policy: &Node,
    top: &[Entry],
    strategies: &[StrategyInfo],
    auto_enable: bool,
) -> Vec<PolicyProfile> {
    let Some(entry) = get(top, "profiles") else {
        let help = "write `profiles:` with a list of `- name: …`".to_owned();
        reader.error(&policy.at, "the policy has no `profiles`", "", Some(help));
        return Vec::new();
    };
    let mut profiles = Vec::new();
    let mut names: BTreeMap<String, Span> = BTreeMap::new();
    for item in items(reader, Some(entry), "write a list of `- name: …`") {
        let Some(entries) = fields::entries(reader, Level::Profile, item) else { continue };
        let help = "write `- name: …`";
        let Some((name, at)) = required(reader, get(entries, "name"), "a profile needs a `name`", &item.at, help)
        else {
            continue;
        };
        if let Some(first) = names.insert(name.clone(), at.clone()) {
            reader.twice(&at, &format!("the profile {}", shown(&name)), &first, None);
        }
        let one = Profile { reader, strategies, at };
        profiles.push(one.read(name, entries, auto_enable));
    }
    profiles
}

struct Profile<'r, 'a> {
    reader: &'r mut Reader<'a>,
    strategies: &'r [StrategyInfo],
    at: Span,
}

impl Profile<'_, '_> {
    fn read(mut self, name: String, entries: &[Entry], auto_enable: bool) -> PolicyProfile {
        let mut profile = PolicyProfile { name, ..PolicyProfile::default() };
        let told = self.plugin_config(get(entries, "pluginConfig"));
        let mut enabled: BTreeMap<String, Span> = BTreeMap::new();
        match get(entries, "plugins") {
            Some(entry) => {
                let Some(points) = fields::entries(self.reader, Level::Plugins, &entry.value) else { return profile };
                let points_of = [
                    ("deschedule", Some(PolicyPoint::Deschedule)),
                    ("balance", Some(PolicyPoint::Balance)),
                    ("filter", Some(PolicyPoint::Filter)),
                    ("preevictionfilter", Some(PolicyPoint::PreEvictionFilter)),
                    ("presort", None),
                    ("sort", None),
                ];
                for (key, point) in points_of {
                    let Some(entry) = get(points, key) else { continue };
                    let names = self.set(entry, point);
                    enabled.extend(names.iter().map(|(name, at)| (name.clone(), at.clone())));
                    let names = names.into_iter().map(|(name, _)| name);
                    match point {
                        Some(PolicyPoint::Deschedule) => profile.deschedule = names.collect(),
                        Some(PolicyPoint::Balance) => profile.balance = names.collect(),
                        _ => {}
                    }
                }
            }
            None => self.nothing_enabled(&told, auto_enable, &mut profile, &mut enabled),
        }
        for (plugin, at) in &enabled {
            if plugin != EVICTOR && !told.contains_key(plugin) {
                let help = format!("write `- name: {plugin}` and its `args:` into `pluginConfig`");
                let message = format!("the plugin `{plugin}` is enabled, and has no entry in `pluginConfig`");
                self.reader.error(at, message, "not configured", Some(help));
            }
        }
        for (plugin, (at, _)) in told.iter().filter(|(plugin, _)| *plugin != EVICTOR) {
            let idle = get(entries, "plugins").is_some() && !enabled.contains_key(plugin);
            if idle {
                let message = format!("`{plugin}` is configured, and enabled nowhere in this profile");
                let help = "name it under `deschedule` or `balance` of `plugins`, in `enabled`".to_owned();
                self.reader.warn(at, message, "has no effect", Some(help));
            }
        }
        if profile.balance.iter().any(|name| name == "LowNodeUtilization")
            && profile.balance.iter().any(|name| name == "HighNodeUtilization")
        {
            let message = "LowNodeUtilization and HighNodeUtilization in one policy undo each other's work";
            let help = "spread pods with the one, or pack them with the other".to_owned();
            self.reader.warn(&self.at, message, "", Some(help));
        }
        profile.arguments = told.into_iter().map(|(name, (_, value))| (name, value)).collect();
        profile
    }

    /// A profile without `plugins`: nothing of it runs, unless the caller wants what is configured to run.
    fn nothing_enabled(
        &mut self,
        told: &BTreeMap<String, (Span, Value)>,
        auto_enable: bool,
        profile: &mut PolicyProfile,
        enabled: &mut BTreeMap<String, Span>,
    ) {
        // In the order of the file.
        let mut configured: Vec<_> = told.iter().filter(|(name, _)| *name != EVICTOR).collect();
        configured.sort_by_key(|(_, (at, _))| (at.line, at.column));
        for (name, (at, _)) in configured {
            let Some(known) = self.strategies.iter().find(|known| known.name == *name) else { continue };
            let list = if known.points.contains(&PolicyPoint::Balance) {
                ("balance", &mut profile.balance)
            } else {
                ("deschedule", &mut profile.deschedule)
            };
            if auto_enable {
                list.1.push(name.clone());
                enabled.insert(name.clone(), at.clone());
                let message = format!("the profile has no `plugins`; `{name}` is enabled at `{}`", list.0);
                self.reader.warn(at, message, "enabled", Some("by --auto-enable".to_owned()));
            } else {
                let message = format!("the profile has no `plugins`: `{name}` is configured, and does not run");
                let help = format!("write `plugins: {{{}: {{enabled: [{name}]}}}}`, or give --auto-enable", list.0);
                self.reader.warn(at, message, "does not run", Some(help));
            }
        }
    }

    /// What plugins are told, and where.
    fn plugin_config(&mut self, entry: Option<&Entry>) -> BTreeMap<String, (Span, Value)> {
        let mut all: BTreeMap<String, (Span, Value)> = BTreeMap::new();
        for item in items(self.reader, entry, "write a list of `- name: …` and `args:`") {
            let Some(entries) = fields::entries(self.reader, Level::PluginConfig, item) else { continue };
            let what = "an entry of `pluginConfig` needs a `name`";
            let name = get(entries, "name");
            let Some((name, at)) = required(self.reader, name, what, &item.at, "write `- name: …`") else { continue };
            let Some(known) = self.known(&name, &at) else { continue };
            if let Some((first, _)) = all.get(known.name) {
                let first = first.clone();
                self.reader.twice(&at, &format!("the `pluginConfig` of `{name}`"), &first, None);
                continue;
            }
            let value = self.arguments(&known, &at, get(entries, "args"));
            all.insert(known.name.to_owned(), (at, value));
        }
        all
    }

    fn arguments(&mut self, known: &StrategyInfo, at: &Span, entry: Option<&Entry>) -> Value {
        let silent = Node { tree: Tree::Null, at: at.clone() };
        let (value, node) = match entry {
            Some(entry) => {
                let kept =
                    entry.value.entries().iter().filter(|one| !matches!(one.key.as_str(), "apiVersion" | "kind"));
                let tree = match &entry.value.tree {
                    Tree::Map(_) => Tree::Map(kept.cloned().collect()),
                    other => other.clone(),
                };
                let node = Node { tree, at: entry.at.clone() };
                let empty = matches!(&node.tree, Tree::Map(map) if map.is_empty());
                (if empty { Value::Null } else { anything(&node) }, node)
            }
            None => (Value::Null, silent),
        };
        for ArgumentProblem { path, message } in (known.check)(&value).err().unwrap_or_default() {
            let (message, help) = match message.split_once("; ") {
                Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
                None => (message, None),
            };
            let of = if path.is_empty() { String::new() } else { format!(", `{path}`") };
            let at = place(&node, &path);
            self.reader.error(&at, format!("`args` of `{}`{of}: {message}", known.name), "", help);
        }
        value
    }

    /// The names in `enabled`, but for those in `disabled`.
    fn set(&mut self, entry: &Entry, point: Option<PolicyPoint>) -> Vec<(String, Span)> {
        let Some(entries) = fields::entries(self.reader, Level::Set, &entry.value) else { return Vec::new() };
        let Some(point) = point else {
            if !entries.is_empty() {
                let message = format!("the point {} is used by no plugin", shown(&entry.key));
                self.reader.warn(&entry.at, message, "no effect", None);
            }
            return Vec::new();
        };
        let disabled = self.names(get(entries, "disabled"), point, false);
        let enabled = self.names(get(entries, "enabled"), point, true);
        enabled.into_iter().filter(|(name, _)| !disabled.iter().any(|(off, _)| off == name)).collect()
    }

    fn names(&mut self, entry: Option<&Entry>, point: PolicyPoint, has_to_fit: bool) -> Vec<(String, Span)> {
        let mut names: Vec<(String, Span)> = Vec::new();
        for item in items(self.reader, entry, "write a list of names") {
            let Some(written) = item.text() else {
                self.reader.wrong_shape(item, "an entry", "a name", "write the name alone: `- LowNodeUtilization`");
                continue;
            };
            if written == "*" && !has_to_fit {
                continue;
            }
            let Some(known) = self.known(written, &item.at) else { continue };
            if has_to_fit && !known.points.contains(&point) {
                let places: Vec<String> = known.points.iter().map(|point| format!("`{}`", key_of(*point))).collect();
                let help = format!("it takes part at {}", places.join(" and "));
                let message = format!("`{}` takes no part at `{}`", known.name, key_of(point));
                self.reader.error(&item.at, message, "wrong point", Some(help));
                continue;
            }
            if let Some((_, first)) = names.iter().find(|(name, _)| name == known.name) {
                let first = first.clone();
                self.reader.twice(&item.at, &format!("the plugin `{}`", known.name), &first, None);
                continue;
            }
            names.push((known.name.to_owned(), item.at.clone()));
        }
        names
    }

    /// The plugin of a name, or of another name that people know it by.
    fn known(&mut self, name: &str, at: &Span) -> Option<StrategyInfo> {
        if let Some(known) = self.strategies.iter().find(|known| known.name == name) {
            return Some(*known);
        }
        if let Some(known) = self.strategies.iter().find(|known| known.alias == Some(name)) {
            let message = format!("{} is another name of `{}`", shown(name), known.name);
            self.reader.warn(at, message, "alias", Some(format!("the descheduler itself takes only `{}`", known.name)));
            return Some(*known);
        }
        let help = suggest(name, "plugins", self.strategies.iter().map(|known| known.name));
        self.reader.error(at, format!("there is no plugin called {}", shown(name)), "unknown", help);
        None
    }
}

const fn key_of(point: PolicyPoint) -> &'static str {
    match point {
        PolicyPoint::Deschedule => "deschedule",
        PolicyPoint::Balance => "balance",
        PolicyPoint::Filter => "filter",
        PolicyPoint::PreEvictionFilter => "preevictionfilter",
    }
}
