//! The section `tiers`: which plugins take part, with which switches and arguments.

use std::collections::BTreeMap;

use super::catalogue::{ArgumentInfo, PluginInfo, argument};
use super::check::{self, Owner};
use super::elsewhere;
use super::names::{list, nearest, shown, suggest};
use super::policy::PluginEntry;
use super::reader::Reader;
use super::switches::{Point, SWITCHES, Switch, switch};
use super::tree::{Entry, Node, Span, Tree};

/// What a plugin entry of the right form looks like.
const EXAMPLE: &str = "write each plugin as `- name: gang`";

/// A plugin entry with the place of its name.
pub(super) struct Placed {
    /// Number of its tier, from 0.
    pub(super) tier: usize,
    pub(super) at: Span,
    pub(super) entry: PluginEntry,
}

/// Every plugin entry, in the order of the file, and the number of tiers.
pub(super) fn tiers(reader: &mut Reader<'_>, node: &Node) -> (usize, Vec<Placed>) {
    const SHAPE: &str = "write a list of `- plugins:`, each with a list of `- name: …` below";
    let mut placed = Vec::new();
    let tiers = reader.items(node, "`tiers`", SHAPE);
    let n_tiers = tiers.map_or(0, <[Node]>::len);
    if let Some([]) = tiers {
        reader.error(&node.at, "`tiers` is empty, so no plugin decides anything", "no tier", Some(SHAPE.to_owned()));
    }
    // Names seen so far, in any tier, with their places.
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    for (tier, item) in tiers.unwrap_or_default().iter().enumerate() {
        let Some(entries) = reader.entries(item, "a tier", SHAPE) else { continue };
        if item.get("plugins").is_none() {
            without_plugins(reader, item, tier);
            continue;
        }
        for entry in entries {
            if entry.key == "plugins" {
                plugins(reader, entry, tier, &mut seen, &mut placed);
            } else {
                beside_plugins(reader, entry, item);
            }
        }
    }
    (n_tiers, placed)
}

fn plugins(
    reader: &mut Reader<'_>,
    section: &Entry,
    tier: usize,
    seen: &mut BTreeMap<String, Span>,
    placed: &mut Vec<Placed>,
) {
    let Some(items) = reader.items(&section.value, "`plugins`", EXAMPLE) else { return };
    if items.is_empty() {
        let help = "add plugins, or take the tier out".to_owned();
        reader.error(&section.at, format!("tier {} has no plugins", tier + 1), "empty", Some(help));
    }
    let mut above: Option<&str> = None;
    for item in items {
        if let Some(found) = plugin(reader, item, tier, above, seen) {
            placed.push(found);
        }
        above = item.get("name").and_then(|entry| entry.value.text()).or(above);
    }
}

/// One entry. `above` is the name of the one before it, for help.
fn plugin(
    reader: &mut Reader<'_>,
    item: &Node,
    tier: usize,
    above: Option<&str>,
    seen: &mut BTreeMap<String, Span>,
) -> Option<Placed> {
    if let Tree::Text(name) = &item.tree {
        let message = "a plugin entry has to be a mapping, but is a text";
        reader.error(&item.at, message, "a text", Some(format!("write `- name: {name}`")));
        return None;
    }
    let entries = reader.entries(item, "a plugin entry", EXAMPLE)?;
    if let (None, Some(above), Some(first)) = (item.get("name"), above, entries.first()) {
        let help = format!("if {} belongs to `{above}`, remove the dash before it", shown(&first.key));
        reader.error(&item.at, "a plugin entry has no `name`", "no name", Some(help));
        return None;
    }
    let (name, at) = name_of(reader, item, "a plugin entry", "gang")?;
    let catalogue = reader.catalogue;
    let Some(info) = catalogue.plugin(name) else {
        unknown_plugin(reader, name, at);
        return None;
    };
    if let Some(first) = seen.get(name) {
        let thing = format!("the plugin {}", shown(name));
        reader.twice(at, &thing, first, Some("a plugin may stand in one tier only"));
        return None;
    }
    seen.insert(name.to_owned(), at.clone());
    Some(Placed { tier, at: at.clone(), entry: keys(reader, info, entries) })
}

/// What stands in the entry of a known plugin.
fn keys(reader: &mut Reader<'_>, info: &PluginInfo, entries: &[Entry]) -> PluginEntry {
    let owner = Owner::Plugin(info.name);
    let mut plugin = PluginEntry::named(info.name);
    for entry in entries {
        if entry.key == "arguments" {
            plugin.arguments = check::arguments(reader, owner, &entry.value, info.arguments);
        } else if let Some(known) = switch(&entry.key) {
            if let Some((point, on)) = switched(reader, info, entry, known) {
                plugin.switches = plugin.switches.with(point, on);
            }
        } else if entry.key != "name" && !misplaced(reader, owner, info.arguments, entry) {
            unknown_key(reader, entry);
        }
    }
    plugin
}

fn switched(reader: &mut Reader<'_>, info: &PluginInfo, entry: &Entry, switch: &Switch) -> Option<(Point, bool)> {
    let Tree::Bool(on) = entry.value.tree else {
        let help = match entry.value.text() {
            Some(text @ ("true" | "false")) => format!("remove the quotes: `{text}`"),
            _ => "write `true` or `false`, or take the line out for the default".to_owned(),
        };
        let found = reader.describe(&entry.value);
        let message = format!("`{}` has to be true or false, but is {found}", switch.key);
        reader.error(&entry.value.at, message, "not a boolean", Some(help));
        return None;
    };
    let Some(point) = switch.guards else {
        let message = format!("`{}` has no effect: nothing reads it, in Volcano either", switch.key);
        reader.warn(&entry.at, message, "no effect", Some("take the line out".to_owned()));
        return None;
    };
    if !info.takes_part_in(point) {
        let message = format!("`{}` has no effect on the plugin `{}`", switch.key, info.name);
        let useful: Vec<&str> = info.points.iter().filter_map(|point| point.switch()).collect();
        let help = list("its switches", &useful).unwrap_or_else(|| "take the line out".to_owned());
        reader.warn(&entry.at, message, "no effect", Some(help));
    }
    Some((point, on))
}

/// Reports an argument that stands beside `name` instead of under `arguments`. False if it is nothing of the kind.
pub(super) fn misplaced(reader: &mut Reader<'_>, owner: Owner<'_>, table: &[ArgumentInfo], entry: &Entry) -> bool {
    let (Owner::Plugin(name) | Owner::Action(name)) = owner else { return false };
    let key = shown(&entry.key);
    if argument(table, &entry.key).is_some() {
        let message = format!("{key} is an argument of {owner} and belongs under `arguments`");
        let value = match &entry.value.tree {
            Tree::List(_) | Tree::Map(_) | Tree::Null => "…",
            _ => reader.raw(&entry.value),
        };
        let help = format!("write\n- name: {name}\n  arguments:\n    {}: {value}", entry.key);
        reader.error(&entry.at, message, "one level too far left", Some(help));
        return true;
    }
    let Some(other) = check::owner_of(reader, &entry.key) else { return false };
    let message = format!("{key} is an argument of {other}, not of {owner}");
    let help = format!("move it under `arguments` of {other}");
    reader.error(&entry.at, message, "in the wrong entry", Some(help));
    true
}

fn unknown_key(reader: &mut Reader<'_>, entry: &Entry) {
    let message = format!("there is no switch called {}", shown(&entry.key));
    let help = near_switch(&entry.key)
        .unwrap_or_else(|| "an entry has `name`, `arguments` and switches such as `enableJobOrder`".to_owned());
    reader.error(&entry.at, message, "unknown", Some(help));
}

/// The switch that a key was meant to be: right but for `enable`, `enabled` or `disable`, the name of its extension
/// point, or near in letters.
fn near_switch(key: &str) -> Option<String> {
    let lower = key.to_lowercase();
    if let Some(core) = lower.strip_prefix("disable").map(|core| core.strip_prefix('d').unwrap_or(core))
        && let Some(switch) = by_core(core)
    {
        return Some(format!("write `{}: false`", switch.key));
    }
    let near = by_core(core_of(&lower)).map(|switch| switch.key);
    near.or_else(|| nearest(key, SWITCHES.iter().map(|switch| switch.key).chain(["name", "arguments"])))
        .map(|near| format!("did you mean `{near}`?"))
}

fn by_core(core: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|switch| {
        let point = switch.guards.map(|point| format!("{point:?}").to_lowercase());
        core_of(&switch.key.to_lowercase()) == core || point.as_deref() == Some(core)
    })
}

fn core_of(lower: &str) -> &str {
    lower.strip_prefix("enabled").or_else(|| lower.strip_prefix("enable")).unwrap_or(lower)
}

/// The name in an entry and its place; reported if there is none. `example` is a name for the help.
pub(super) fn name_of<'n>(
    reader: &mut Reader<'_>,
    item: &'n Node,
    what: &str,
    example: &str,
) -> Option<(&'n str, &'n Span)> {
    let help = format!("write `- name: {example}`");
    let Some(entry) = item.get("name") else {
        reader.error(&item.at, format!("{what} has no `name`"), "no name", Some(help));
        return None;
    };
    match &entry.value.tree {
        Tree::Text(name) if !name.is_empty() => Some((name, &entry.value.at)),
        _ => {
            reader.wrong_shape(&entry.value, &format!("the name of {what}"), "a text", &help);
            None
        }
    }
}

fn unknown_plugin(reader: &mut Reader<'_>, name: &str, at: &Span) {
    let names = || reader.catalogue.plugins.iter().map(|plugin| plugin.name);
    if let Some((message, advice)) = elsewhere::plugin(name) {
        reader.error(at, message, "not in this build", Some(advice.to_owned()));
        return;
    }
    let (message, help) = if reader.catalogue.action(name).is_some() {
        let help = "write it in `actions`, and its arguments in `configurations`";
        (format!("{} is an action, not a plugin", shown(name)), Some(help.to_owned()))
    } else {
        (format!("there is no plugin called {}", shown(name)), suggest(name, "plugins", names()))
    };
    reader.error(at, message, "unknown", help);
}

fn without_plugins(reader: &mut Reader<'_>, item: &Node, tier: usize) {
    let near = item.entries().iter().find(|entry| nearest(&entry.key, ["plugins"]).is_some());
    if let Some(entry) = near {
        let message = format!("a tier has no key {}", shown(&entry.key));
        reader.error(&entry.at, message, "unknown", Some("did you mean `plugins`?".to_owned()));
    } else if let Some(name) = item.get("name") {
        let shown = name.value.text().unwrap_or("gang");
        let help = format!("write\n- plugins:\n  - name: {shown}");
        reader.error(&name.at, "a plugin stands where a tier should", "one level too far left", Some(help));
    } else {
        let help = "write `- plugins:` with a list of `- name: …` below".to_owned();
        reader.error(&item.at, format!("tier {} has no plugins", tier + 1), "empty", Some(help));
    }
}

/// Reports a key that stands beside `plugins`.
fn beside_plugins(reader: &mut Reader<'_>, entry: &Entry, tier: &Node) {
    let key = shown(&entry.key);
    if entry.key != "arguments" && entry.key != "name" && switch(&entry.key).is_none() {
        let help = suggest(&entry.key, "keys", ["plugins"]);
        reader.error(&entry.at, format!("a tier has no key {key}"), "unknown", help);
        return;
    }
    let message = format!("{key} stands at the tier, beside `plugins`, and belongs to the entry of a plugin");
    let help = match meant_for(reader, entry, tier) {
        Some(name) if entry.key == "arguments" => {
            let inner = entry.value.entries().first().map_or("…", |first| first.key.as_str());
            format!("indent it, so that it reads\n- name: {name}\n  arguments:\n    {inner}: …")
        }
        Some(name) => format!("indent it, so that it reads\n- name: {name}\n  {}: …", entry.key),
        None => EXAMPLE.to_owned(),
    };
    reader.error(&entry.at, message, "one level too far left", Some(help));
}

/// The plugin of a tier that arguments beside `plugins` were probably meant for: the one that has them, or the last.
fn meant_for<'n>(reader: &Reader<'_>, entry: &Entry, tier: &'n Node) -> Option<&'n str> {
    let Tree::List(items) = &tier.get("plugins")?.value.tree else { return None };
    let names: Vec<&str> = items.iter().filter_map(|item| item.get("name")?.value.text()).collect();
    let first = entry.value.entries().first();
    let having = names.iter().find(|name| {
        let table = reader.catalogue.plugin(name).map_or(&[] as &[ArgumentInfo], |info| info.arguments);
        first.is_some_and(|first| argument(table, &first.key).is_some())
    });
    having.or(names.last()).copied()
}
