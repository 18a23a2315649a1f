//! Text to untyped values: YAML streams and JSON, a document at a time, with the line of each list item.
//!
//! Documents are told apart here and not by the parser, so that a broken one does not take the rest of the stream with
//! it: a line that begins with `---` ends a document wherever it stands.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;

/// How many events aliases may add in one document. This stops an alias bomb early.
const MOST_ALIAS_EVENTS: usize = 1_000_000;

/// Deepest nesting; Kubernetes objects have about twenty levels.
const DEEPEST: usize = 64;

/// A piece of a stream, with the line at which it begins, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

/// A document: what it says, and its `items` if it has such.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    /// Its fields without `items`.
    pub(crate) fields: Map<String, Value>,
    /// The items and the lines at which they begin, counted from the beginning of the text.
    pub(crate) items: Option<Vec<(usize, Value)>>,
    /// The line at which it begins.
    pub(crate) line: usize,
}

/// What the parser has against a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Line from the beginning of the text, from 1.
    pub(crate) line: usize,
    /// Column, from 1.
    pub(crate) column: Option<usize>,
    pub(crate) message: String,
}

/// Cuts a stream into documents. Those with nothing but comments are left out.
pub(crate) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut pieces = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 1, 0);
    let mut keep = |start: usize, end: usize, line: usize| {
        let text = &text[start..end];
        if text.lines().any(has_content) {
            pieces.push(Piece { line, text });
        }
    };
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = offset + line.len();
        if let Some(rest) = marker(line, "---") {
            keep(start, offset, start_line);
            // `--- {a: 1}` begins with its content; a bare marker need not be read again.
            (start, start_line) = if has_content(rest) { (offset, number) } else { (end, number + 1) };
        } else if marker(line, "...").is_some() {
            keep(start, offset, start_line);
            (start, start_line) = (end, number + 1);
        }
        offset = end;
    }
    keep(start, text.len(), start_line);
    pieces
}

/// What follows a marker at the beginning of a line.
fn marker<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(marker)?;
    (rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n'])).then_some(rest)
}

/// Whether a line has more than a comment or a directive.
fn has_content(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#') && !line.starts_with('%')
}

/// Reads one piece: a document, or several in JSON, where they may follow each other without a marker. A fault ends it.
pub(crate) fn documents(text: &str) -> (Vec<Document>, Option<SyntaxError>) {
    if text.trim_start().starts_with('{') {
        let (read, fault) = json(text);
        // Flow mappings of YAML look like JSON, and YAML's complaints are the better ones.
        if fault.is_none() || !read.is_empty() {
            return (read, fault);
        }
    }
    match yaml(text) {
        Ok(document) => (vec![document], None),
        Err(fault) => (Vec::new(), Some(fault)),
    }
}

fn yaml(text: &str) -> Result<Document, SyntaxError> {
    let options = options();
    let read = serde_saphyr::from_str_with_options::<Raw<Spanned<Json>>>(text, options).map_err(syntax_error)?;
    let items = read.items.map(|items| {
        let line = |item: &Spanned<Json>| usize::try_from(item.referenced.line()).unwrap_or(usize::MAX);
        items.into_iter().map(|item| (line(&item), item.value.0)).collect()
    });
    let line = 1 + text.lines().take_while(|line| !has_content(line)).count();
    Ok(Document { fields: read.fields, items, line })
}

/// The parser's options. The size of the text is limited by whoever reads it, so counts are not.
pub(crate) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: DEEPEST,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_ALIAS_EVENTS },
        // As kubectl reads file modes.
        legacy_octal_numbers: true,
        // A node may be called `n`. Where a switch is wanted, `manifests` reads `yes` as one.
        strict_booleans: true,
    }
}

pub(crate) fn syntax_error(error: serde_saphyr::Error) -> SyntaxError {
    let place = error.location();
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (line, column) = place.map_or((1, None), |place| (size(place.line()).max(1), Some(size(place.column()))));
    let message = error.without_snippet().to_string();
    let suffix = format!(" at line {line}, column {}", column.unwrap_or_default());
    let message = message.strip_suffix(&suffix).unwrap_or(&message);
    let message = match message.strip_prefix("duplicate mapping key: ") {
        Some(rest) => format!("the key `{}` is there twice", rest.split(", set ").next().unwrap_or(rest)),
        // The parser's words for it are the names of its limits.
        None if message.starts_with("budget breached") => {
            "this is too large to read: its aliases (`*name`) unfold to more than a file may have".to_owned()
        }
        None => message.replace('\n', " "),
    };
    SyntaxError { line, column, message }
}

fn json(text: &str) -> (Vec<Document>, Option<SyntaxError>) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Raw<Json>>();
    let mut documents = Vec::new();
    let (mut offset, mut line) = (0, 1);
    while let Some(read) = stream.next() {
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                return (
                    documents,
                    Some(SyntaxError { line: error.line().max(1), column: Some(error.column()), message }),
                );
            }
        };
        let end = stream.byte_offset();
        let (own, before) = without_leading_space(&text[offset..end]);
        line += before;
        let items = read.items.map(|items| {
            let lines = item_lines(own);
            let at = |i: usize| lines.get(i).map_or(line, |below| line + below);
            items.into_iter().enumerate().map(|(i, item)| (at(i), item.0)).collect()
        });
        documents.push(Document { fields: read.fields, items, line });
        line += own.matches('\n').count();
        offset = end;
    }
    (documents, None)
}

/// The text without the space before it, and how many lines that was.
fn without_leading_space(text: &str) -> (&str, usize) {
    let own = text.trim_start();
    (own, text[..text.len() - own.len()].matches('\n').count())
}

/// How many lines below the beginning of a JSON object each element of its `items` begins. The text is known to be JSON.
fn item_lines(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let (mut line, mut depth, mut in_items) = (0, 0_usize, false);
    let mut key = "";
    let bytes = text.as_bytes();
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        // An element begins with whatever is first within the list.
        let begins = in_items && depth == 2 && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b']');
        if begins {
            lines.push(line);
        }
        match byte {
            b'\n' => line += 1,
            b'"' => {
                let start = i + 1;
                i = start;
                while !matches!(bytes.get(i), Some(b'"') | None) {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
                if depth == 1 {
                    key = text.get(start..i).unwrap_or_default();
                }
            }
            b'{' | b'[' => {
                in_items |= depth == 1 && key == "items" && byte == b'[';
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                in_items &= depth > 1;
            }
            // Numbers and words go on to the next mark, so that each counts once.
            _ if begins => {
                while !matches!(bytes.get(i + 1), Some(b',' | b']' | b'\n') | None) {
                    i += 1;
                }
            }
            _ => {}
        }
        i += 1;
    }
    lines
}

/// The fields of a document, its items apart; `I` knows or does not know its place.
struct Raw<I> {
    fields: Map<String, Value>,
    items: Option<Vec<I>>,
}

impl<'de, I: Deserialize<'de>> Deserialize<'de> for Raw<I> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor(PhantomData))
    }
}

struct RawVisitor<I>(PhantomData<I>);

impl<'de, I: Deserialize<'de>> Visitor<'de> for RawVisitor<I> {
    type Value = Raw<I>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object, which is a mapping with apiVersion and kind")
    }

    fn visit_unit<E>(self) -> Result<Raw<I>, E> {
        Ok(Raw { fields: Map::new(), items: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw<I>, A::Error> {
        let mut raw = Raw { fields: Map::new(), items: None };
        let mut seen_items = false;
        while let Some(key) = entries.next_key::<String>()? {
            if key != "items" {
                insert(&mut raw.fields, key, &mut entries)?;
            } else if std::mem::replace(&mut seen_items, true) {
                return Err(A::Error::custom("the key `items` is there twice"));
            } else {
                raw.items = entries.next_value()?;
            }
        }
        Ok(raw)
    }
}

/// An untyped value whose keys are unique.
pub(crate) struct Json(pub(crate) Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Self)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Number::from_f64(value as f64).map_or(Value::Null, Value::Number))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Number::from_f64(value as f64).map_or(Value::Null, Value::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            insert(&mut map, key, &mut entries)?;
        }
        Ok(Value::Object(map))
    }
}

fn insert<'de, A: MapAccess<'de>>(map: &mut Map<String, Value>, key: String, entries: &mut A) -> Result<(), A::Error> {
    if map.contains_key(&key) {
        return Err(A::Error::custom(format_args!("the key `{key}` is there twice")));
    }
    let Json(value) = entries.next_value()?;
    map.insert(key, value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_at_its_markers() {
        let text = "# nothing\n---\na: 1\n--- # comment\nb: |\n  ---\n  x\n---   \n# empty\n---\r\nc: 1\r\n...\n%YAML 1.2\n--- {d: 1}\n---x: 1\n";
        let cut: Vec<_> = pieces(text).into_iter().map(|piece| (piece.line, piece.text)).collect();
        assert_eq!(cut, [(3, "a: 1\n"), (5, "b: |\n  ---\n  x\n"), (11, "c: 1\r\n"), (14, "--- {d: 1}\n---x: 1\n")]);
        assert_eq!(pieces("\u{feff}a: 1").len(), 1);
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn items_of_json_know_their_lines() {
        let text = "{\n \"kind\": \"List\", \"x\": [[1], {\"items\": [1]}],\n \"items\": [\n  {\"a\": [\"}\\\"\"]},\n  {\n   \"b\": 1\n  }, 12,\n  null, \"s\"\n ],\n \"y\": [1]\n}";
        let (read, fault) = documents(text);
        assert_eq!(fault, None);
        let lines: Vec<usize> = read[0].items.iter().flatten().map(|(line, _)| *line).collect();
        assert_eq!(lines, [4, 5, 7, 8, 8]);
        assert_eq!(item_lines("{\"items\": []}"), [0; 0]);
    }

    #[test]
    fn json_documents_may_follow_each_other() {
        let (read, fault) = documents("{\"a\": 1}\n\n{\"b\": {\"items\": 2}}{\"c\":\n 1}{\"d\": }\n");
        let lines: Vec<usize> = read.iter().map(|document| document.line).collect();
        assert_eq!(lines, [1, 3, 3]);
        assert_eq!(fault.map(|fault| fault.line), Some(4));
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused_with_its_place() {
        for (text, line) in [("a: 1\nb:\n  c: 1\n  c: 2\n", 4), ("{\"a\": 1,\n\"a\": 2}", 2)] {
            let (read, fault) = documents(text);
            let fault = fault.expect("a fault");
            assert_eq!((read.len(), fault.line), (0, line), "{fault:?}");
            assert!(fault.message.contains("is there twice"), "{fault:?}");
        }
    }
}
