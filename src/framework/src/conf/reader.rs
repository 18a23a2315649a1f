//! What all sections of a configuration are read with: the catalogue, the text, and the list of problems.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::catalogue::Catalogue;
use super::names::shown;
use super::problem::{Problem, Severity};
use super::tree::{Entry, Node, Span, Tree};
use super::wrapping::Place;

/// How many problems are reported; a file with more is probably not a configuration at all.
const MOST_PROBLEMS: usize = 100;

/// Longest value that a message repeats; for others it says what they are.
const LONGEST_VALUE: usize = 40;

/// Reads one configuration and collects what is wrong with it.
pub(super) struct Reader<'a> {
    pub(super) catalogue: &'a Catalogue,
    file: &'a str,
    /// The lines of the file.
    lines: Vec<&'a str>,
    /// The text of the configuration: the file, or a part of it.
    text: Cow<'a, str>,
    place: Place,
    problems: Vec<Problem>,
    /// How many more there are.
    n_unlisted: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(catalogue: &'a Catalogue, file: &'a str, text: &'a str) -> Self {
        let lines = text.lines().collect();
        Self {
            catalogue,
            file,
            lines,
            text: Cow::Borrowed(text),
            place: Place::Whole,
            problems: Vec::new(),
            n_unlisted: 0,
        }
    }

    /// From here on, places are in `text`, which is at `place` in the file.
    pub(super) fn enter(&mut self, text: String, place: Place) {
        self.text = Cow::Owned(text);
        self.place = place;
    }

    /// The lines of the file.
    pub(super) fn lines(&self) -> &[&'a str] {
        &self.lines
    }

    pub(super) fn error(&mut self, at: &Span, message: impl Into<String>, label: &str, help: Option<String>) {
        self.report(Severity::Error, at, message.into(), label, help);
    }

    pub(super) fn warn(&mut self, at: &Span, message: impl Into<String>, label: &str, help: Option<String>) {
        self.report(Severity::Warning, at, message.into(), label, help);
    }

    fn report(&mut self, severity: Severity, at: &Span, message: String, label: &str, help: Option<String>) {
        if self.problems.len() == MOST_PROBLEMS {
            self.n_unlisted += 1;
            return;
        }
        let outer = self.place.outer(at);
        let help = match (help, outer.note) {
            (Some(help), Some(note)) => Some(format!("{help}\n({note})")),
            (help, note) => help.or(note),
        };
        // What goes over several lines is shown up to the end of its first.
        let line = self.lines.get(outer.line - 1).copied().unwrap_or_default();
        let length = line.chars().skip(outer.column - 1).take(outer.length).count();
        let (line, column) = (outer.line, outer.column);
        let (file, label) = (self.file.to_owned(), label.to_owned());
        self.problems.push(Problem { severity, message, file, line, column, length, label, help });
    }

    /// Whether there is an error. What is no longer listed counts as one.
    pub(super) fn has_errors(&self) -> bool {
        self.n_unlisted > 0 || self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// The problems from the top of the file down, and last how many more there are.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        if self.n_unlisted > 0
            && let Some(last) = self.problems.last().cloned()
        {
            let message = format!("{} more problems are not shown", self.n_unlisted);
            let (label, help) = (String::new(), None);
            self.problems.push(Problem { severity: Severity::Error, message, label, help, ..last });
        }
        self.problems
    }

    /// Reports each key that a mapping in `node` has twice, at any depth.
    pub(super) fn duplicate_keys(&mut self, node: &Node) {
        match &node.tree {
            Tree::List(items) => items.iter().for_each(|item| self.duplicate_keys(item)),
            Tree::Map(entries) => {
                let mut seen: BTreeMap<&str, &Entry> = BTreeMap::new();
                for entry in entries {
                    if let Some(first) = seen.insert(&entry.key, entry) {
                        self.twice(&entry.at, &format!("the key {}", shown(&entry.key)), &first.at, None);
                    }
                    self.duplicate_keys(&entry.value);
                }
            }
            _ => {}
        }
    }

    /// The line of the file that a place is in.
    pub(super) fn line_of(&self, at: &Span) -> usize {
        self.place.outer(at).line
    }

    /// Reports `thing` as being there a second time.
    pub(super) fn twice(&mut self, at: &Span, thing: &str, first: &Span, help: Option<&str>) {
        let line = self.place.outer(first).line;
        let rest = help.map(|help| format!("; {help}")).unwrap_or_default();
        let help = format!("the first one is at line {line}{rest}");
        self.error(at, format!("{thing} is there twice"), "again", Some(help));
    }

    /// The entries of a mapping. Nothing at all counts as an empty one; anything else is reported.
    pub(super) fn entries<'n>(&mut self, node: &'n Node, what: &str, help: &str) -> Option<&'n [Entry]> {
        match &node.tree {
            Tree::Map(entries) => Some(entries),
            Tree::Null => Some(&[]),
            _ => {
                self.wrong_shape(node, what, "a mapping", help);
                None
            }
        }
    }

    /// The items of a list. Nothing at all counts as an empty one; anything else is reported.
    pub(super) fn items<'n>(&mut self, node: &'n Node, what: &str, help: &str) -> Option<&'n [Node]> {
        match &node.tree {
            Tree::List(items) => Some(items),
            Tree::Null => Some(&[]),
            _ => {
                self.wrong_shape(node, what, "a list", help);
                None
            }
        }
    }

    /// Reports a node that is a list where a mapping should be, and the like.
    pub(super) fn wrong_shape(&mut self, node: &Node, what: &str, wanted: &str, help: &str) {
        let found = self.describe(node);
        let message = format!("{what} has to be {wanted}, but is {found}");
        self.error(&node.at, message, &format!("not {wanted}"), Some(help.to_owned()));
    }

    /// The text of the file that defines a value, quotes included.
    pub(super) fn raw(&self, node: &Node) -> &str {
        self.text.get(node.at.bytes.clone()).unwrap_or_default()
    }

    /// Whether a scalar is in quotes.
    pub(super) fn quoted(&self, node: &Node) -> bool {
        self.raw(node).starts_with(['"', '\''])
    }

    /// What a value is, for a message: «the text `10`», «a list».
    pub(super) fn describe(&self, node: &Node) -> String {
        let kind = match &node.tree {
            Tree::Null => return "empty".to_owned(),
            Tree::List(_) => return "a list".to_owned(),
            Tree::Map(_) => return "a mapping".to_owned(),
            Tree::Text(text) if text.chars().count() > LONGEST_VALUE || text.contains('\n') => {
                return "a long text".to_owned();
            }
            Tree::Text(text) => return format!("the text {}", shown(text)),
            Tree::Bool(_) => "the boolean",
            Tree::Integer(_) => "the integer",
            Tree::Number(_) => "the number",
        };
        format!("{kind} {}", shown(self.raw(node)))
    }
}
