//! Where the configuration is inside its file: bare, or as a text in a Kubernetes ConfigMap.
//!
//! Problems always point into the file that the person edits. Within a literal block (`|`) each line of the text is a
//! line of the file, further to the right; within any other form of text only its beginning is a place in the file, and
//! the problem says the rest in words.

use super::kube;
use super::names::shown;
use super::reader::Reader;
use super::tree::{Entry, Node, Span};

/// The key under which Volcano's manifests keep the configuration.
const USUAL_KEY: &str = "volcano-scheduler.conf";

/// How places in the configuration map to places in the file.
#[derive(Debug)]
pub(super) enum Place {
    /// The file is the configuration.
    Whole,
    /// The configuration is a literal block below line `header`, indented by `indent` characters.
    Block { header: usize, indent: usize },
    /// The configuration is a text at `at`, under `key`, in a form that hides its lines.
    Hidden { at: Span, key: String },
}

/// What a file holds.
pub(super) enum Found {
    /// Nothing but comments.
    Nothing,
    /// The configuration itself.
    Bare(Node),
    /// The text of the configuration, still to be read.
    Wrapped { text: String, place: Place },
}

/// A place in the file.
pub(super) struct Outer {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) length: usize,
    /// Where in the text, when the file has no place for it.
    pub(super) note: Option<String>,
}

impl Place {
    /// Where `at` is in the file.
    pub(super) fn outer(&self, at: &Span) -> Outer {
        let (line, column) = (at.line.max(1), at.column.max(1));
        match self {
            Self::Whole => Outer { line, column, length: at.length, note: None },
            Self::Block { header, indent } => {
                Outer { line: header + line, column: indent + column, length: at.length, note: None }
            }
            Self::Hidden { at, key } => Outer {
                line: at.line,
                column: at.column,
                length: at.length,
                note: Some(format!("this is line {line}, column {column} of the text in {}", shown(key))),
            },
        }
    }
}

/// Finds the one configuration among the documents of a file, or reports why there is not exactly one.
pub(super) fn find(documents: Vec<Node>, reader: &mut Reader<'_>) -> Option<Found> {
    let Some(first) = documents.first().map(|node| (node.get("kind").cloned(), node.at.clone())) else {
        return Some(Found::Nothing);
    };
    let mut found = Vec::new();
    for node in documents {
        reader.duplicate_keys(&node);
        match node.get("kind").map(|kind| kind.value.text()) {
            None | Some(Some(kube::KIND)) => found.push((node.at.clone(), Found::Bare(node))),
            Some(Some("ConfigMap")) => {
                if let Some(entry) = configuration_in(&node, reader)? {
                    found.push((entry.at.clone(), wrapped(entry, reader)?));
                }
            }
            Some(_) => {}
        }
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some((_, only)), None) => Some(only),
        (Some((one, _)), Some((two, _))) => {
            let help = format!("the first one is at line {}; keep one of them", one.line);
            reader.error(&two, "the file has more than one configuration", "second", Some(help));
            None
        }
        (None, _) => {
            nothing_usable(first, reader);
            None
        }
    }
}

/// The entry of a ConfigMap that holds the configuration. `None` once a problem was reported.
fn configuration_in<'a>(node: &'a Node, reader: &mut Reader<'_>) -> Option<Option<&'a Entry>> {
    let data = node.get("data").map_or(&[][..], |data| data.value.entries());
    if let Some(usual) = data.iter().find(|entry| entry.key == USUAL_KEY) {
        return Some(Some(usual));
    }
    let named = |ending: &Entry| ending.key.ends_with(".conf") || ending.value.text().is_some_and(kube::is_named_in);
    let mut named = data.iter().filter(|entry| named(entry));
    let (one, two) = (named.next(), named.next());
    if let (Some(one), Some(two)) = (one, two) {
        let message = format!("the ConfigMap has both {} and {}", shown(&one.key), shown(&two.key));
        reader.error(&two.at, message, "which one?", Some(format!("name the one to use `{USUAL_KEY}`")));
        return None;
    }
    Some(one)
}

fn wrapped(entry: &Entry, reader: &mut Reader<'_>) -> Option<Found> {
    let Some(text) = entry.value.text() else {
        let found = reader.describe(&entry.value);
        let help = format!("write `{}: |` and the configuration indented below it", entry.key);
        let message = format!("{} has to be a text, but is {found}", shown(&entry.key));
        reader.error(&entry.value.at, message, "not a text", Some(help));
        return None;
    };
    let place = block_below(entry.at.line, text, reader.lines())
        .unwrap_or_else(|| Place::Hidden { at: entry.at.clone(), key: entry.key.clone() });
    Some(Found::Wrapped { text: text.to_owned(), place })
}

/// The literal block below line `header`, if each line of `text` is the end of the line of the file there.
fn block_below(header: usize, text: &str, lines: &[&str]) -> Option<Place> {
    let below = lines.get(header..)?;
    let mut indent = None;
    for (n, inner) in text.lines().enumerate() {
        let outer = below.get(n)?;
        if inner.trim().is_empty() {
            continue;
        }
        let before = outer.strip_suffix(inner)?;
        if !before.bytes().all(|byte| byte == b' ') || *indent.get_or_insert(before.len()) != before.len() {
            return None;
        }
    }
    Some(Place::Block { header, indent: indent? })
}

/// Says why none of the documents is a configuration.
fn nothing_usable((kind, at): (Option<Entry>, Span), reader: &mut Reader<'_>) {
    let help = format!("give a bare configuration, or a ConfigMap with it under `{USUAL_KEY}`");
    match kind.as_ref().map(|kind| (&kind.value.at, kind.value.text().unwrap_or_default())) {
        Some((at, "ConfigMap")) => {
            let help = format!("put the configuration under `data`, as `{USUAL_KEY}`");
            reader.error(
                at,
                "the ConfigMap has no key that ends in `.conf`, and no KubeSchedulerConfiguration",
                "no configuration",
                Some(help),
            );
        }
        Some((at, kind)) => {
            reader.error(at, format!("a {} is not a configuration", shown(kind)), "not a configuration", Some(help));
        }
        None => reader.error(&at, "there is no configuration in the file", "", Some(help)),
    }
}
