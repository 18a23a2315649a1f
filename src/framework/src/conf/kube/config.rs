//! `pluginConfig` of a profile: what plugins are told, checked by the plugins themselves.

use std::collections::BTreeMap;

use super::fields::{self, Level, get};
use super::scalars::{items, required};
use super::{VERSION, aliases, plugins, upstream};
use crate::conf::arguments::Value;
use crate::conf::check::anything;
use crate::conf::names::shown;
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span, Tree};
use crate::registry::ArgumentProblem;

/// What the file says to one plugin.
pub(super) struct Told {
    /// Where its name is.
    pub(super) at: Span,
    /// The value; [`Value::Null`] if there is none, or an empty one.
    pub(super) value: Value,
    /// Whether it was accepted.
    pub(super) is_valid: bool,
}

/// Reads `pluginConfig`, by the plugin's name.
pub(super) fn read(reader: &mut Reader<'_>, entry: Option<&Entry>) -> BTreeMap<String, Told> {
    let mut all: BTreeMap<String, Told> = BTreeMap::new();
    for item in items(reader, entry, "write a list of `- name: …` and `args:`") {
        let Some(entries) = fields::entries(reader, Level::PluginConfig, item, entry.map(|entry| &entry.at)) else {
            continue;
        };
        let what = "an entry of `pluginConfig` needs a `name`";
        let name = get(entries, "name");
        let Some((written, at)) = required(reader, name, what, &item.at, "write `- name: …`") else { continue };
        let name = aliases::plugin(reader, &written, &at);
        if plugins::known(reader.catalogue, &name).is_none() {
            let help = plugins::suggestion(reader.catalogue, &name);
            reader.error(&at, format!("there is no plugin called {}", shown(&name)), "unknown", Some(help));
            continue;
        }
        if let Some(first) = all.get(&name) {
            let first = first.at.clone();
            let help = "put all of its `args` into one entry";
            reader.twice(&at, &format!("the `pluginConfig` of `{name}`"), &first, Some(help));
            continue;
        }
        let told = told(reader, &name, at, get(entries, "args"));
        all.insert(name, told);
    }
    all
}

/// What a plugin without an entry is told: nothing. It may not take that either.
pub(super) fn check_silence(reader: &mut Reader<'_>, name: &str, at: &Span) {
    report(reader, name, check(reader, name, &Value::Null), &Node { tree: Tree::Null, at: at.clone() });
}

fn told(reader: &mut Reader<'_>, name: &str, at: Span, entry: Option<&Entry>) -> Told {
    let nothing = Told { at: at.clone(), value: Value::Null, is_valid: true };
    let Some(entry) = entry else { return Told { is_valid: is_silent(reader, name, &at), ..nothing } };
    let Tree::Map(fields) = &entry.value.tree else {
        reader.wrong_shape(&entry.value, &format!("`args` of `{name}`"), "a mapping", "write one `key: value` a line");
        return Told { is_valid: false, ..nothing };
    };
    let mut kept: Vec<Entry> = Vec::new();
    let mut is_valid = true;
    for field in fields {
        match field.key.as_str() {
            "apiVersion" => is_valid &= has_to_be(reader, name, field, VERSION),
            "kind" => is_valid &= has_to_be(reader, name, field, &format!("{name}Args")),
            _ => {
                let Some(key) = aliases::field(reader, name, field) else { continue };
                if let Some(first) = kept.iter().find(|known| known.key == key && field.key != known.key) {
                    let first = first.at.clone();
                    reader.twice(&field.at, &format!("what `{key}` of `{name}` says"), &first, None);
                    is_valid = false;
                    continue;
                }
                kept.push(Entry { key, ..field.clone() });
            }
        }
    }
    let node = Node { tree: Tree::Map(kept), at: entry.at.clone() };
    let value = if node.entries().is_empty() { Value::Null } else { anything(&node) };
    let problems = check(reader, name, &value);
    is_valid &= problems.is_empty();
    report(reader, name, problems, &node);
    Told { at, value, is_valid }
}

fn is_silent(reader: &mut Reader<'_>, name: &str, at: &Span) -> bool {
    let problems = check(reader, name, &Value::Null);
    let is_valid = problems.is_empty();
    report(reader, name, problems, &Node { tree: Tree::Null, at: at.clone() });
    is_valid
}

/// `apiVersion` and `kind` may stand in the `args` of kube-scheduler's plugins, and then have to match.
fn has_to_be(reader: &mut Reader<'_>, plugin: &str, entry: &Entry, wanted: &str) -> bool {
    let found = entry.value.text().unwrap_or_default();
    if found == wanted || upstream::plugin(plugin).is_none() {
        return true;
    }
    let message = format!("`{}` of `args` has to match the plugin `{plugin}`", entry.key);
    reader.error(&entry.value.at, message, "does not match", Some(format!("write `{wanted}`, or take the line out")));
    false
}

fn check(reader: &Reader<'_>, name: &str, value: &Value) -> Vec<ArgumentProblem> {
    let checked = match (reader.catalogue.node_plugin(name), upstream::plugin(name).and_then(|plugin| plugin.check)) {
        (Some(builder), _) => builder.build.run(value).map(drop),
        (None, Some(check)) => check(value),
        (None, None) => Ok(()),
    };
    checked.err().unwrap_or_default()
}

fn report(reader: &mut Reader<'_>, name: &str, problems: Vec<ArgumentProblem>, node: &Node) {
    for ArgumentProblem { path, message } in problems {
        let (message, help) = match message.split_once("; ") {
            Some((message, help)) => (message.to_owned(), Some(help.to_owned())),
            None => (message, None),
        };
        let at = place(node, &path);
        let of = if path.is_empty() { String::new() } else { format!(", `{path}`") };
        reader.error(&at, format!("`args` of `{name}`{of}: {message}"), "", help);
    }
}

/// Where the field of a path is, or as much of the path as is there.
pub(in crate::conf) fn place(node: &Node, path: &str) -> Span {
    let (mut node, mut at) = (node, node.at.clone());
    for part in path.split('.') {
        let (key, indices) = part.split_once('[').unwrap_or((part, ""));
        let Some(entry) = node.get(key) else { return at };
        (node, at) = (&entry.value, entry.at.clone());
        for index in indices.trim_end_matches(']').split("][").filter_map(|index| index.parse::<usize>().ok()) {
            let Tree::List(items) = &node.tree else { return at };
            let Some(item) = items.get(index) else { return at };
            (node, at) = (item, item.at.clone());
        }
    }
    at
}
