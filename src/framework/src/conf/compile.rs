//! From the text of a configuration to a policy, or to a list of what is wrong with it.

use super::actions;
use super::catalogue::Catalogue;
use super::combinations;
use super::kube;
use super::metrics;
use super::names::{shown, suggest};
use super::policy::{Policy, Tier};
use super::problem::{Problem, Severity};
use super::reader::Reader;
use super::tiers;
use super::tree::{self, Fault, Node, Span, Tree};
use super::wrapping::{self, Found};

/// Largest text that is read, in bytes: the size that Kubernetes allows a ConfigMap.
pub const LARGEST: usize = 1 << 20;

/// The sections of a configuration.
const SECTIONS: &[&str] = &["actions", "tiers", "configurations", "metrics"];

/// What became of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The policy; `None` if there is any error.
    pub policy: Option<Policy>,
    /// What is wrong, from the top of the file down.
    pub problems: Vec<Problem>,
}

impl Compiled {
    /// The problems that keep the text from being used.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error)
    }

    /// The problems with which it can be used all the same.
    pub fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.severity == Severity::Warning)
    }
}

/// Compiles `text`, which came from `file`: Volcano's `scheduler.conf` or a KubeSchedulerConfiguration, bare or in a
/// ConfigMap.
///
/// Never fails and reads nothing else. A text without content yields the built-in policy and a warning. Cost: linear in
/// the text, and for an unknown name the number of valid ones.
#[must_use]
pub fn compile(text: &str, file: &str, catalogue: &Catalogue) -> Compiled {
    let mut reader = Reader::new(catalogue, file, text);
    let policy = read(&mut reader, text);
    let policy = policy.filter(|_| !reader.has_errors());
    Compiled { policy, problems: reader.into_problems() }
}

fn read(reader: &mut Reader<'_>, text: &str) -> Option<Policy> {
    if text.len() > LARGEST {
        let message = format!("the file has {} bytes, more than the {LARGEST} that are read", text.len());
        let help = "a configuration has a few thousand; is this the right file?".to_owned();
        reader.error(&Span::default(), message, "", Some(help));
        return None;
    }
    let documents = parse(reader, text)?;
    match wrapping::find(documents, reader)? {
        Found::Nothing => Some(nothing(reader, &Span::default())),
        Found::Bare(node) => configuration(reader, &node),
        Found::Wrapped { text, place } => {
            reader.enter(text.clone(), place);
            let documents = parse(reader, &text)?;
            match documents.as_slice() {
                [] => Some(nothing(reader, &Span::default())),
                [node] => {
                    reader.duplicate_keys(node);
                    configuration(reader, node)
                }
                [_, second, ..] => {
                    let help = "remove the `---` and what is below it".to_owned();
                    reader.error(&second.at, "there is more than one configuration", "second", Some(help));
                    None
                }
            }
        }
    }
}

fn configuration(reader: &mut Reader<'_>, node: &Node) -> Option<Policy> {
    if kube::is_one(node) { Some(kube::read(reader, node)) } else { sections(reader, node) }
}

pub(super) fn parse(reader: &mut Reader<'_>, text: &str) -> Option<Vec<Node>> {
    match tree::documents(text) {
        Ok(documents) => Some(documents),
        Err(Fault { message, at }) => {
            let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or("");
            let indent = &line[..line.len() - line.trim_start().len()];
            let next = text.lines().nth(at.line).unwrap_or("");
            let help = if line.contains("{{") {
                Some("this is a template; give what `helm template` makes of it")
            } else if indent.contains('\t') || next.starts_with('\t') || message.contains("tab") {
                Some("indent with spaces; YAML takes no tabs")
            } else if message.starts_with("mapping values are not allowed") {
                Some("look for a missing `:` above, a line indented too far, or a text that needs quotes")
            } else {
                None
            };
            // A limit of the parser: nesting, nodes, aliases.
            let limit = message.contains("limit") || message.contains("budget");
            let what = if limit { "this is too large or too deep to read" } else { "this is not YAML" };
            reader.error(&at, format!("{what}: {message}"), "", help.map(str::to_owned));
            None
        }
    }
}

fn nothing(reader: &mut Reader<'_>, at: &Span) -> Policy {
    let help = "the built-in configuration is used: \"enqueue, allocate, backfill\" with Volcano's default plugins";
    reader.warn(at, "the configuration is empty", "", Some(help.to_owned()));
    Policy::builtin()
}

fn sections(reader: &mut Reader<'_>, node: &Node) -> Option<Policy> {
    if !matches!(node.tree, Tree::Map(_)) {
        reader.wrong_shape(node, "a configuration", "a mapping", "write `actions:` and `tiers:`");
        return None;
    }
    for entry in node.entries().iter().filter(|entry| !SECTIONS.contains(&entry.key.as_str())) {
        let help = match entry.key.as_str() {
            "profiles" => Some(
                "for profiles, the file begins with `apiVersion: kubescheduler.config.k8s.io/v1` and `kind: \
                 KubeSchedulerConfiguration`"
                    .to_owned(),
            ),
            "plugins" => Some("write `- plugins:` below `tiers:`".to_owned()),
            "arguments" | "name" => Some("it belongs to an entry in a tier or in `configurations`".to_owned()),
            key => suggest(key, "sections", SECTIONS.iter().copied()),
        };
        let message = format!("a configuration has no section called {}", shown(&entry.key));
        reader.error(&entry.at, message, "unknown", help);
    }
    let actions = match node.get("actions") {
        Some(entry) => actions::actions(reader, &entry.value),
        None => {
            missing(reader, node, "actions", "write for example `actions: \"enqueue, allocate, backfill\"`");
            Vec::new()
        }
    };
    let (n_tiers, plugins) = match node.get("tiers") {
        Some(entry) => tiers::tiers(reader, &entry.value),
        None => {
            missing(reader, node, "tiers", "write a list of `- plugins:`, each with a list of `- name: …` below");
            (0, Vec::new())
        }
    };
    let mut policy = Policy {
        actions: actions.iter().map(|(name, _)| name.clone()).collect(),
        tiers: vec![Tier::default(); n_tiers],
        ..Policy::default()
    };
    for placed in &plugins {
        policy.tiers[placed.tier].plugins.push(placed.entry.clone());
    }
    if let Some(entry) = node.get("configurations") {
        policy.configurations = actions::configurations(reader, &entry.value, &actions);
    }
    if let Some(entry) = node.get("metrics") {
        policy.metrics = metrics::metrics(reader, entry);
    }
    combinations::exclusions(reader, &plugins);
    if !reader.has_errors() {
        combinations::gaps(reader, &policy, &plugins, &actions);
    }
    Some(policy)
}

/// Reports a section that is not there, unless a misspelt one is.
fn missing(reader: &mut Reader<'_>, node: &Node, section: &str, help: &str) {
    let misspelt = |key: &str| super::names::nearest(key, SECTIONS.iter().copied()) == Some(section);
    if !node.entries().iter().any(|entry| misspelt(&entry.key)) {
        reader.error(&node.at, format!("the configuration has no `{section}`"), "", Some(help.to_owned()));
    }
}
