//! YAML as a tree in which everything knows its place.
//!
//! serde-saphyr has no value type of its own. Duplicate keys are kept here, since a message about the second one should
//! name the line of the first; `reader` reports them.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

/// How many events aliases may add. A configuration has a few hundred in all; this stops an alias bomb early.
const MOST_ALIAS_EVENTS: usize = 20_000;

/// A place in a text: line and column from 1, in characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    pub(super) line: usize,
    pub(super) column: usize,
    /// In characters; 0 for something that has no extent of its own, such as a value that is not there.
    pub(super) length: usize,
    /// The bytes that define the value. For an alias they are those of its anchor, elsewhere in the text.
    pub(super) bytes: Range<usize>,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) tree: Tree,
    pub(super) at: Span,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Span,
    pub(super) value: Node,
}

/// What the parser has against a text.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) at: Span,
}

/// Reads every document of `text`; empty ones are left out.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, Fault> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // 0755 would be 755 here and 493 in Volcano.
        leading_zero_numbers_as_strings: true,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_ALIAS_EVENTS },
    };
    serde_saphyr::from_str_multiple_with_options::<Node, Vec<Node>>(text, options).map_err(|error| {
        let at = error.location().map(|location| span(location, location)).unwrap_or_default();
        let message = error.without_snippet().to_string();
        let place = format!(" at line {}, column {}", at.line, at.column);
        let message = match message.strip_suffix(&place).unwrap_or(&message) {
            key if key.starts_with("expected string scalar") || key.contains("null into string") => {
                "a key has to be text".to_owned()
            }
            other => other.replace('\n', " "),
        };
        Fault { message, at }
    })
}

impl Node {
    /// The entries of a mapping; none for anything else.
    pub(super) fn entries(&self) -> &[Entry] {
        match &self.tree {
            Tree::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value under `key`, if this is a mapping and has it.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The text, if it is text.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.tree {
            Tree::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: tree, referenced, defined } = Spanned::<Tree>::deserialize(deserializer)?;
        let mut at = span(referenced, defined);
        // A block collection has no extent of its own: its first key or item stands for it.
        if at.length == 0 {
            let first = match &tree {
                Tree::Map(entries) => entries.first().map(|entry| &entry.at),
                Tree::List(items) => items.first().map(|item| &item.at),
                _ => None,
            };
            if let Some(first) = first {
                at = Span { bytes: at.bytes, ..first.clone() };
            }
        }
        Ok(Self { tree, at })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(i64::try_from(value).map_or(Tree::Number(value as f64), Tree::Integer))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Tree, E> {
        Ok(Tree::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(Spanned { value: key, referenced, defined }) = entries.next_key::<Spanned<String>>()? {
            let at = span(referenced, defined);
            let mut value: Node = entries.next_value()?;
            // A value that is not there has no place: its key stands for it.
            if value.at.length == 0 && matches!(value.tree, Tree::Null) {
                value.at = Span { bytes: 0..0, ..at.clone() };
            }
            map.push(Entry { key, at, value });
        }
        Ok(Tree::Map(map))
    }
}

fn span(referenced: Location, defined: Location) -> Span {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let bytes = |span: serde_saphyr::Span| {
        let start = size(span.byte_offset().unwrap_or(0));
        start..start + size(span.byte_len().unwrap_or(0))
    };
    Span {
        line: size(referenced.line()),
        column: size(referenced.column()),
        length: size(referenced.span().len()),
        bytes: bytes(defined.span()),
    }
}
