//! A policy as a `scheduler.conf`, or as a KubeSchedulerConfiguration if it has profiles: what is in force, with what holds where nothing was written.
//!
//! Whatever differs from a default stands there as a value, every other argument of the catalogue as a comment with its
//! default. Compiling the text again gives an equal policy.

use std::fmt::Write as _;

use super::arguments::{Arguments, Value};
use super::catalogue::{ArgumentInfo, ArgumentKind, Catalogue, argument};
use super::kube;
use super::metrics::METRICS;
use super::policy::{PluginEntry, Policy};

impl Policy {
    /// The effective configuration, as a file that compiles to an equal policy.
    #[must_use]
    pub fn to_yaml(&self, catalogue: &Catalogue) -> String {
        if !self.profiles.is_empty() {
            return kube::print::yaml(self, catalogue);
        }
        let mut page = Page::default();
        page.line(0, "# What is in force. A comment with a key shows a default.");
        page.line(0, &format!("actions: {}", quoted(&self.actions.join(", "))));
        page.line(0, "tiers:");
        for tier in &self.tiers {
            page.line(0, "- plugins:");
            for entry in &tier.plugins {
                page.plugin(entry, catalogue);
            }
        }
        page.configurations(self, catalogue);
        if self.metrics.is_empty() {
            page.line(0, "# metrics: none");
        } else {
            page.line(0, "metrics:");
            page.arguments(2, &self.metrics, METRICS);
        }
        page.text
    }
}

/// The text so far.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    pub(super) fn line(&mut self, indent: usize, text: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    fn plugin(&mut self, entry: &PluginEntry, catalogue: &Catalogue) {
        let info = catalogue.plugin(&entry.name);
        match info.map(|info| info.about).filter(|about| !about.is_empty()) {
            Some(about) => self.line(2, &format!("- name: {} # {about}", scalar(&entry.name))),
            None => self.line(2, &format!("- name: {}", scalar(&entry.name))),
        }
        for (key, on) in entry.switches.changed() {
            self.line(4, &format!("{key}: {on}"));
        }
        self.section(4, &entry.arguments, info.map_or(&[], |info| info.arguments));
    }

    fn configurations(&mut self, policy: &Policy, catalogue: &Catalogue) {
        if policy.configurations.is_empty() {
            self.line(0, "# configurations:");
        } else {
            self.line(0, "configurations:");
        }
        for (name, arguments) in &policy.configurations {
            self.line(0, &format!("- name: {}", scalar(name)));
            self.section(2, arguments, catalogue.action(name).map_or(&[], |info| info.arguments));
        }
        for info in &catalogue.actions {
            let runs = policy.actions.iter().any(|action| action == info.name);
            if runs && !policy.configurations.contains_key(info.name) && !info.arguments.is_empty() {
                self.line(0, &format!("# - name: {}", info.name));
                self.line(0, "#   arguments:");
                for argument in info.arguments {
                    self.line(0, &format!("#     {}", default(argument)));
                }
            }
        }
    }

    /// `arguments:` and what is below it; as a comment if nothing was written.
    fn section(&mut self, indent: usize, arguments: &Arguments, table: &[ArgumentInfo]) {
        if !arguments.is_empty() {
            self.line(indent, "arguments:");
        } else if !table.is_empty() {
            self.line(indent, "# arguments:");
        }
        self.arguments(indent + 2, arguments, table);
    }

    /// Each argument of the table, given or not, in its order; then the given ones that the table lacks.
    fn arguments(&mut self, indent: usize, arguments: &Arguments, table: &[ArgumentInfo]) {
        let is = |key: &str, info: &ArgumentInfo| argument(table, key).is_some_and(|found| found.key == info.key);
        for info in table.iter().filter(|info| info.kind != ArgumentKind::Unread) {
            let given: Vec<_> = arguments.iter().filter(|(key, _)| is(key, info)).collect();
            for (key, value) in &given {
                self.line(indent, &format!("{}: {}", scalar(key), flow(value)));
            }
            if given.is_empty() {
                self.line(indent, &format!("# {}", default(info)));
            }
        }
        for (key, value) in arguments.iter().filter(|(key, _)| argument(table, key).is_none()) {
            self.line(indent, &format!("{}: {}", scalar(key), flow(value)));
        }
    }
}

/// An argument that was not given, for a comment.
fn default(info: &ArgumentInfo) -> String {
    let key = info.key.replace('*', "<name>");
    match info.default {
        "" => format!("{key}: (none)"),
        default => format!("{key}: {default}"),
    }
}

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        // With its point or exponent: 10 would come back as an integer.
        Value::Number(value) => format!("{value:?}"),
        Value::Text(text) => quoted(text),
        Value::List(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entries: Vec<_> =
                entries.iter().map(|(key, value)| format!("{}: {}", quoted(key), flow(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A key or name: bare if it cannot be taken for anything else, else in quotes.
pub(super) fn scalar(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
    );
    if plain && !word && text.starts_with(|c: char| c.is_ascii_alphabetic()) { text.to_owned() } else { quoted(text) }
}

/// A text in double quotes, as YAML reads it back.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
