//! Manifests: everything that is in a YAML or JSON file, and what is wrong with it, each with its line.
//!
//! A broken document, or a list item that does not fit its kind, is reported and left out; the rest is read. Lists
//! (`kind: List`, as `kubectl get -o yaml` prints them, and `PodList` and the like) are taken apart.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::fault::{Fault, Step, mend_switch};
use crate::hints::Hints;
use crate::object::{Object, nearest_kind};
use crate::places::{Cursor, item_text, place};
use crate::report::namespace_of;
use crate::yaml::{self, Document, Piece};

/// How many problems are listed; a file with more is probably not what it was taken for.
const MOST_PROBLEMS: usize = 1_000;

/// How manifests are read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// The largest text that is read, in bytes. A pod has some 500 bytes as people write it, and several thousand with
    /// the status and the `managedFields` that an API server adds.
    pub max_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_bytes: 256 << 20 }
    }
}

/// Something and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// What it is.
    pub value: T,
    /// The file, as the caller named it.
    pub file: Arc<str>,
    /// The line at which it begins, from 1.
    pub line: usize,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is not used, which may be as it should.
    Note,
    /// Something is used, but not as it is written.
    Warning,
    /// Something is left out.
    Error,
}

/// Something wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocatedProblem {
    /// How bad it is.
    pub severity: Severity,
    /// The file, as the caller named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, where it is known.
    pub column: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for LocatedProblem {
    /// On one line: `file:line:column: error: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}: {}", self.severity, self.message)
    }
}

/// What is in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifests {
    /// The objects, in order. Those of kinds that are not read are here too, as [`Object::Other`].
    pub objects: Vec<Located<Object>>,
    /// What is wrong, in order; at the end, a note for each kind that is not read.
    pub problems: Vec<LocatedProblem>,
}

/// Reads all objects of a text. `file` is its name in messages.
pub fn read_manifests(text: &str, file: &str, options: &ReadOptions) -> Manifests {
    let mut reader = Reader::new(file);
    if text.len() > options.max_bytes {
        let (size, most) = (text.len() >> 20, options.max_bytes >> 20);
        reader.report(
            Severity::Error,
            1,
            None,
            format!("the file has {size} MiB, more than the {most} MiB that are read; split it, or leave out managedFields and status"),
        );
        return reader.finish();
    }
    for piece in yaml::pieces(text) {
        let (documents, fault) = yaml::documents(piece.text);
        for document in documents {
            reader.document(piece, document);
        }
        if let Some(fault) = fault {
            reader.report(Severity::Error, piece.line + fault.line - 1, fault.column, fault.message);
        }
    }
    reader.finish()
}

struct Reader {
    file: Arc<str>,
    read: Manifests,
    n_unlisted: usize,
    /// Kinds that are not read: the first line and how many there are.
    others: BTreeMap<(String, String), (usize, usize)>,
    /// How many names have been made of each `generateName`.
    generated: BTreeMap<String, usize>,
}

impl Reader {
    fn new(file: &str) -> Self {
        Self {
            file: file.into(),
            read: Manifests::default(),
            n_unlisted: 0,
            others: BTreeMap::new(),
            generated: BTreeMap::new(),
        }
    }

    fn document(&mut self, piece: Piece<'_>, document: Document) {
        let Document { mut fields, items, line } = document;
        let first = piece.line + line - 1;
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        let Some(items) = items else {
            if !fields.is_empty() {
                self.object(Value::Object(fields), first, |fault| found(piece, &fault.path));
            }
            return;
        };
        let Some(item_kind) = kind.strip_suffix("List").map(str::to_owned) else {
            fields.insert("items".to_owned(), items.into_iter().map(|(_, item)| item).collect());
            self.object(Value::Object(fields), first, |fault| found(piece, &fault.path));
            return;
        };
        let mut cursor = Cursor::new(piece.text);
        for (below, mut item) in items {
            let line = piece.line + below - 1;
            if let Value::Object(item) = &mut item {
                fill_in(item, &item_kind, &fields);
            }
            let from_here = cursor.down_to(below);
            self.object(item, line, |fault| {
                // An item's text is a list of one.
                let path: Vec<Step> = std::iter::once(Step::Item(0)).chain(fault.path.iter().cloned()).collect();
                found(Piece { line, text: item_text(from_here?)? }, &path).filter(|_| !fault.path.is_empty())
            });
        }
    }

    /// Reads one object. `place_of` finds a fault in its text, if that can be told from the rest.
    fn object(&mut self, mut value: Value, line: usize, place_of: impl Fn(&Fault) -> Option<(usize, usize)>) {
        if let Some(Value::Object(meta)) = value.get_mut("metadata") {
            meta.remove("managedFields");
        }
        let mut read = Object::read(&value);
        while let Err(fault) = &read {
            if !mend_switch(&mut value, fault) {
                break;
            }
            read = Object::read(&value);
        }
        match read {
            Ok((object, problems)) => self.keep(object, problems, line),
            Err(fault) => {
                let place = if self.n_unlisted == 0 { place_of(&fault) } else { None };
                let (line, column) = place.map_or((line, None), |(line, column)| (line, Some(column)));
                self.report(Severity::Error, line, column, format!("{}{fault}", name_of(&value)));
            }
        }
    }

    fn keep(&mut self, mut object: Object, mut problems: Vec<String>, line: usize) {
        let mut name = String::new();
        if let Object::Other { api_version, kind } = &object {
            self.others.entry((kind.clone(), api_version.clone())).or_insert((line, 0)).1 += 1;
        }
        if let Some(meta) = object.metadata_mut() {
            if let (None | Some(""), Some(prefix)) = (meta.name.as_deref(), meta.generate_name.clone()) {
                let n = self.generated.entry(prefix.clone()).or_insert(0);
                meta.name = Some(format!("{prefix}{n}"));
                *n += 1;
            }
            name = format!("{}/{}", namespace_of(meta), meta.name.as_deref().unwrap_or_default());
            problems.extend(Hints::read(meta).1);
        }
        for problem in problems {
            self.report(Severity::Warning, line, None, format!("{name}: {problem}"));
        }
        self.read.objects.push(Located { value: object, file: Arc::clone(&self.file), line });
    }

    fn report(&mut self, severity: Severity, line: usize, column: Option<usize>, message: String) {
        if self.read.problems.len() >= MOST_PROBLEMS {
            self.n_unlisted += 1;
            return;
        }
        let file = Arc::clone(&self.file);
        self.read.problems.push(LocatedProblem { severity, file, line, column, message });
    }

    fn finish(mut self) -> Manifests {
        if self.n_unlisted > 0 {
            let message = format!("{} more problems are not listed", self.n_unlisted);
            let file = Arc::clone(&self.file);
            self.read.problems.push(LocatedProblem { severity: Severity::Error, file, line: 1, column: None, message });
        }
        let mut notes: Vec<_> = self.others.iter().map(|(names, (line, n))| (*line, names, *n)).collect();
        notes.sort();
        for (line, (kind, api_version), n) in notes.into_iter().take(MOST_PROBLEMS) {
            let objects = if n == 1 { "is".to_owned() } else { format!("({n} of them) are") };
            let guess = nearest_kind(kind).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            self.read.problems.push(LocatedProblem {
                severity: Severity::Note,
                file: Arc::clone(&self.file),
                line,
                column: None,
                message: format!("{kind} of {api_version} {objects} not read{guess}"),
            });
        }
        self.read
    }
}

/// The place of a field of a piece, in the file.
fn found(piece: Piece<'_>, path: &[Step]) -> Option<(usize, usize)> {
    let (line, column) = place(piece.text, path)?;
    Some((piece.line + line - 1, column))
}

/// Items of a `PodList` need not say that they are pods.
fn fill_in(item: &mut Map<String, Value>, item_kind: &str, list: &Map<String, Value>) {
    if item_kind.is_empty() {
        return;
    }
    item.entry("kind").or_insert_with(|| item_kind.into());
    if let Some(version) = list.get("apiVersion") {
        item.entry("apiVersion").or_insert_with(|| version.clone());
    }
}

/// `Pod default/name: `, of an object that cannot be read.
fn name_of(value: &Value) -> String {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let meta = value.get("metadata");
    let name = text(meta.and_then(|meta| meta.get("name")));
    match (text(value.get("kind")), name, text(meta.and_then(|meta| meta.get("namespace")))) {
        (Some(kind), Some(name), Some(namespace)) => format!("{kind} {namespace}/{name}: "),
        (Some(kind), Some(name), None) => format!("{kind} {name}: "),
        (Some(kind), None, _) => format!("{kind}: "),
        _ => String::new(),
    }
}

#[cfg(test)]
#[path = "manifests_tests.rs"]
mod tests;
