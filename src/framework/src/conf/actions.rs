//! The sections about actions: `actions`, the comma-separated list, and `configurations`, their arguments.

use std::collections::BTreeMap;

use super::arguments::Arguments;
use super::check::{self, Owner};
use super::elsewhere;
use super::names::{shown, suggest};
use super::reader::Reader;
use super::tiers::{misplaced, name_of};
use super::tree::{Entry, Node, Span, Tree};

/// Longest list of actions in which each word is shown by itself: finding it costs the length before it.
const LONGEST_POINTED_INTO: usize = 4_096;

/// The actions as written, each with its place. Only those that exist, and each once.
pub(super) fn actions(reader: &mut Reader<'_>, node: &Node) -> Vec<(String, Span)> {
    let catalogue = reader.catalogue;
    let Some(items) = words(reader, node) else { return Vec::new() };
    let n_items = items.len();
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    let mut actions = Vec::new();
    for (word, at) in items {
        if word.is_empty() {
            let help = "remove the comma too many".to_owned();
            reader.error(&at, "an action without a name", "nothing between commas", Some(help));
        } else if let Some(first) = seen.get(word) {
            let thing = format!("the action {}", shown(word));
            reader.twice(&at, &thing, first, Some("an action runs once a session"));
        } else if catalogue.action(word).is_some() {
            seen.insert(word, at.clone());
            actions.push((word.to_owned(), at));
        } else {
            unknown(reader, word, &at);
        }
    }
    if actions.len() == n_items && !actions.iter().any(|(name, _)| catalogue.action(name).is_some_and(|a| a.places)) {
        let placing: Vec<&str> = catalogue.actions.iter().filter(|a| a.places).map(|a| a.name).collect();
        let help = format!("add one of: {}", placing.join(", "));
        reader.error(&node.at, "no action places pods, so nothing would ever start", "only these", Some(help));
    }
    actions
}

/// The words between the commas, trimmed. `None` once a problem was reported.
fn words<'n>(reader: &mut Reader<'_>, node: &'n Node) -> Option<Vec<(&'n str, Span)>> {
    const EXAMPLE: &str = "write for example `actions: \"enqueue, allocate, backfill\"`";
    match &node.tree {
        Tree::Text(text) if !text.trim().is_empty() => {
            let mut offset = 0;
            let mut words = Vec::new();
            for part in text.split(',') {
                let word = part.trim();
                let start = offset + part.find(word).unwrap_or(0);
                words.push((word, within(reader, node, text, start, word)));
                offset += part.len() + 1;
            }
            Some(words)
        }
        Tree::Text(_) | Tree::Null => {
            reader.error(&node.at, "`actions` is empty", "no action", Some(EXAMPLE.to_owned()));
            None
        }
        Tree::List(items) => {
            let names: Option<Vec<&str>> = items.iter().map(Node::text).collect();
            let help = match names {
                Some(names) if !names.is_empty() => format!("write `actions: \"{}\"`", names.join(", ")),
                _ => EXAMPLE.to_owned(),
            };
            let message = "`actions` has to be one text with commas, but is a list";
            reader.error(&node.at, message, "a list", Some(help));
            None
        }
        _ => {
            reader.wrong_shape(node, "`actions`", "a text", EXAMPLE);
            None
        }
    }
}

/// The place of `word`, which begins at byte `start` of `text`, the value of `node`; the place of the whole node when
/// the file does not show the text as it is.
fn within(reader: &Reader<'_>, node: &Node, text: &str, start: usize, word: &str) -> Span {
    let raw = reader.raw(node);
    if raw.len() > LONGEST_POINTED_INTO {
        return node.at.clone();
    }
    let quote = usize::from(reader.quoted(node));
    let as_written = raw.get(quote..raw.len().saturating_sub(quote)) == Some(text);
    if !as_written || text.contains('\n') || raw.chars().count() != node.at.length {
        return node.at.clone();
    }
    let before = text.get(..start).map_or(0, |before| before.chars().count());
    let bytes = node.at.bytes.start + quote + start;
    Span {
        line: node.at.line,
        column: node.at.column + quote + before,
        length: word.chars().count().max(1),
        bytes: bytes..bytes + word.len(),
    }
}

fn unknown(reader: &mut Reader<'_>, word: &str, at: &Span) {
    let names: Vec<&str> = reader.catalogue.actions.iter().map(|action| action.name).collect();
    if let Some((message, advice)) = elsewhere::action(word) {
        reader.error(at, message, "not in this build", Some(advice.to_owned()));
        return;
    }
    let parts: Vec<&str> = word.split([' ', ';', '\n']).filter(|part| !part.is_empty()).collect();
    let help = if parts.len() > 1 && parts.iter().all(|part| names.contains(part)) {
        Some(format!("write commas between actions: `{}`", parts.join(", ")))
    } else {
        suggest(word, "actions", names)
    };
    reader.error(at, format!("there is no action called {}", shown(word)), "unknown", help);
}

/// The arguments of actions, by action. `used` are the actions that run.
pub(super) fn configurations(
    reader: &mut Reader<'_>,
    node: &Node,
    used: &[(String, Span)],
) -> BTreeMap<String, Arguments> {
    let mut configurations = BTreeMap::new();
    let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
    let help = "write `- name: allocate` and its `arguments:` below";
    for item in reader.items(node, "`configurations`", help).unwrap_or_default() {
        let Some(entries) = reader.entries(item, "an entry of `configurations`", help) else { continue };
        let Some((name, at)) = name_of(reader, item, "an entry of `configurations`", "allocate") else { continue };
        if let Some(first) = seen.insert(name, at) {
            reader.twice(at, &format!("the configuration of {}", shown(name)), first, Some("join them"));
            continue;
        }
        if let Some(arguments) = configuration(reader, name, at, entries, used) {
            configurations.insert(name.to_owned(), arguments);
        }
    }
    configurations
}

fn configuration(
    reader: &mut Reader<'_>,
    name: &str,
    at: &Span,
    entries: &[Entry],
    used: &[(String, Span)],
) -> Option<Arguments> {
    let catalogue = reader.catalogue;
    let Some(action) = catalogue.action(name) else {
        unknown_configuration(reader, name, at);
        return None;
    };
    if !used.is_empty() && !used.iter().any(|(used, _)| used == name) {
        let message = format!("the action {} is not in `actions`, so its arguments have no effect", shown(name));
        reader.warn(at, message, "does not run", Some("add it to `actions`, or take this entry out".to_owned()));
    }
    let mut arguments = Arguments::new();
    for entry in entries {
        match entry.key.as_str() {
            "name" => {}
            "arguments" => {
                arguments = check::arguments(reader, Owner::Action(action.name), &entry.value, action.arguments);
            }
            _ if misplaced(reader, Owner::Action(action.name), action.arguments, entry) => {}
            key => {
                let message = format!("an entry of `configurations` has no key {}", shown(key));
                reader.error(&entry.at, message, "unknown", suggest(key, "keys", ["name", "arguments"]));
            }
        }
    }
    Some(arguments)
}

fn unknown_configuration(reader: &mut Reader<'_>, name: &str, at: &Span) {
    let shown = shown(name);
    if let Some(owner) = elsewhere::configuration(name) {
        let message = format!("{shown} is read by {owner}, which is not in this build; it has no effect");
        reader.warn(at, message, "no effect", Some("take this entry out".to_owned()));
    } else if let Some((message, advice)) = elsewhere::action(name) {
        reader.error(at, message, "not in this build", Some(advice.to_owned()));
    } else if reader.catalogue.plugin(name).is_some() {
        let message = format!("{shown} is a plugin, and `configurations` is for actions");
        let help = "write its `arguments:` in its entry in a tier".to_owned();
        reader.error(at, message, "a plugin", Some(help));
    } else {
        let names = reader.catalogue.actions.iter().map(|action| action.name);
        let help = suggest(name, "actions", names);
        reader.error(at, format!("there is no action called {shown}"), "unknown", help);
    }
}
