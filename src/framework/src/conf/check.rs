//! Arguments against the catalogue: known keys, right types, values in range.

use std::fmt;

use super::arguments::{Arguments, Value, duration_ms, go_bool};
use super::catalogue::{ArgumentInfo, ArgumentKind, argument};
use super::elsewhere;
use super::names::{shown, suggest};
use super::reader::Reader;
use super::switches::switch;
use super::tree::{Entry, Node, Tree};
use super::window::DailyWindow;

/// Whose arguments they are.
#[derive(Clone, Copy)]
pub(super) enum Owner<'a> {
    Plugin(&'a str),
    Action(&'a str),
    Metrics,
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin(name) => write!(f, "the plugin `{name}`"),
            Self::Action(name) => write!(f, "the action `{name}`"),
            Self::Metrics => f.write_str("the section `metrics`"),
        }
    }
}

impl Owner<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Plugin(name) | Self::Action(name) => name,
            Self::Metrics => "metrics",
        }
    }
}

/// Reads the arguments in `node`. What is wrong is reported and left out.
pub(super) fn arguments(reader: &mut Reader<'_>, owner: Owner<'_>, node: &Node, table: &[ArgumentInfo]) -> Arguments {
    let help = "write one `key: value` a line";
    let entries = reader.entries(node, &format!("what {owner} is told"), help).unwrap_or_default();
    let mut arguments = Arguments::new();
    for entry in entries {
        match argument(table, &entry.key) {
            None => unknown(reader, owner, entry, table),
            Some(ArgumentInfo { kind: ArgumentKind::Unread, about, .. }) => {
                let message = format!("{} of {owner} has no effect: {about}", shown(&entry.key));
                reader.warn(&entry.at, message, "no effect", Some("take the line out".to_owned()));
            }
            Some(info) => match value(reader, &entry.value, info.kind) {
                Ok(value) => arguments.set(entry.key.clone(), value),
                Err(wrong) => {
                    let found = reader.describe(&entry.value);
                    let message = format!("{} of {owner} {}, but is {found}", shown(&entry.key), wrong.wanted);
                    reader.error(&entry.value.at, message, wrong.label, Some(wrong.help));
                }
            },
        }
    }
    arguments
}

/// Who in the catalogue, other than `owner`, has the argument `key`.
pub(super) fn owner_of(reader: &Reader<'_>, key: &str) -> Option<Owner<'static>> {
    let catalogue = reader.catalogue;
    let plugin = catalogue.plugins.iter().find(|plugin| argument(plugin.arguments, key).is_some());
    let action = catalogue.actions.iter().find(|action| argument(action.arguments, key).is_some());
    plugin.map(|plugin| Owner::Plugin(plugin.name)).or(action.map(|action| Owner::Action(action.name)))
}

fn unknown(reader: &mut Reader<'_>, owner: Owner<'_>, entry: &Entry, table: &[ArgumentInfo]) {
    let key = shown(&entry.key);
    if switch(&entry.key).is_some() && matches!(owner, Owner::Plugin(_)) {
        let help = "move it one level to the left, beside `name` and outside `arguments`".to_owned();
        reader.error(&entry.at, format!("{key} is a switch, not an argument"), "one level too deep", Some(help));
        return;
    }
    let message = if table.is_empty() {
        format!("{owner} takes no arguments, so {key} has no effect")
    } else if matches!(owner, Owner::Metrics) {
        format!("{owner} has no key {key}")
    } else {
        format!("{owner} has no argument {key}")
    };
    let help = elsewhere::argument(owner.name(), &entry.key)
        .map(str::to_owned)
        .or_else(|| flattened(entry, table))
        .or_else(|| owner_of(reader, &entry.key).map(|other| format!("it is an argument of {other}")))
        .or_else(|| suggest(&entry.key, "arguments", table.iter().map(|info| info.key)))
        .or_else(|| table.is_empty().then(|| "take it out".to_owned()));
    reader.error(&entry.at, message, "unknown", help);
}

/// Help for `binpack: {weight: 1}` where the key is `binpack.weight`.
fn flattened(entry: &Entry, table: &[ArgumentInfo]) -> Option<String> {
    let inner = entry.value.entries().first()?;
    let joined = format!("{}.{}", entry.key, inner.key);
    argument(table, &joined).map(|_| format!("write it as one key: `{joined}`"))
}

/// Why a value will not do.
struct Wrong {
    /// «has to be an integer».
    wanted: String,
    label: &'static str,
    help: String,
}

fn wrong<T>(wanted: impl Into<String>, label: &'static str, help: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { wanted: wanted.into(), label, help: help.into() })
}

fn value(reader: &Reader<'_>, node: &Node, kind: ArgumentKind) -> Result<Value, Wrong> {
    match kind {
        ArgumentKind::Any | ArgumentKind::Unread => Ok(anything(node)),
        ArgumentKind::Bool => boolean(node),
        ArgumentKind::Integer { min, max } => integer(reader, node, min, max),
        ArgumentKind::Number { min, max } => number(reader, node, min, max),
        ArgumentKind::Text => text(reader, node).map(|text| Value::Text(text.to_owned())),
        ArgumentKind::OneOf(words) => one_of(reader, node, words),
        ArgumentKind::Duration => duration(node),
        ArgumentKind::DailyWindow => daily_window(node),
    }
}

fn boolean(node: &Node) -> Result<Value, Wrong> {
    match &node.tree {
        Tree::Bool(value) => Ok(Value::Bool(*value)),
        Tree::Text(text) if let Some(value) = go_bool(text) => Ok(Value::Bool(value)),
        _ => wrong("has to be true or false", "not a boolean", "write `true` or `false`"),
    }
}

fn integer(reader: &Reader<'_>, node: &Node, min: i64, max: i64) -> Result<Value, Wrong> {
    let wanted = "has to be an integer";
    match &node.tree {
        Tree::Integer(value) if (min..=max).contains(value) => Ok(Value::Integer(*value)),
        Tree::Integer(_) => {
            let range = range((min > i64::MIN).then_some(min), (max < i64::MAX).then_some(max));
            wrong(format!("has to be {range}"), "out of range", format!("write an integer {range}"))
        }
        Tree::Number(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
            wrong(wanted, "not an integer", format!("write `{value}`"))
        }
        Tree::Number(_) => wrong(wanted, "not an integer", "write it without a fraction"),
        Tree::Text(text) if reader.quoted(node) && text.trim().parse::<i64>().is_ok() => {
            wrong(wanted, "in quotes", format!("remove the quotes: `{}`", text.trim()))
        }
        _ => wrong(wanted, "not an integer", "write a number such as `1`"),
    }
}

fn number(reader: &Reader<'_>, node: &Node, min: f64, max: f64) -> Result<Value, Wrong> {
    let wanted = "has to be a number";
    let value = match &node.tree {
        Tree::Integer(value) => *value as f64,
        Tree::Number(value) => *value,
        Tree::Text(text) if reader.quoted(node) && text.trim().parse::<f64>().is_ok_and(f64::is_finite) => {
            return wrong(wanted, "in quotes", format!("remove the quotes: `{}`", text.trim()));
        }
        _ => return wrong(wanted, "not a number", "write a number such as `1.5`"),
    };
    if value >= min && value <= max {
        return Ok(Value::Number(value));
    }
    let range = range(min.is_finite().then_some(min), max.is_finite().then_some(max));
    wrong(format!("has to be {range}"), "out of range", format!("write a number {range}"))
}

/// «at least 1», «at most 5», «from 1 to 5».
fn range<T: fmt::Display>(min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "of 64 bits".to_owned(),
    }
}

fn text<'n>(reader: &Reader<'_>, node: &'n Node) -> Result<&'n str, Wrong> {
    match &node.tree {
        Tree::Text(text) => Ok(text),
        Tree::Bool(_) | Tree::Integer(_) | Tree::Number(_) => {
            wrong("has to be a text", "not a text", format!("put it in quotes: `\"{}\"`", reader.raw(node)))
        }
        _ => wrong("has to be a text", "not a text", "write a text, in quotes when in doubt"),
    }
}

fn one_of(reader: &Reader<'_>, node: &Node, words: &[&str]) -> Result<Value, Wrong> {
    let text = text(reader, node)?;
    if words.contains(&text) {
        return Ok(Value::Text(text.to_owned()));
    }
    let help = suggest(text, "words", words.iter().copied());
    wrong(
        format!("has to be one of {}", words.join(", ")),
        "unknown",
        help.unwrap_or_else(|| "write one of them".to_owned()),
    )
}

fn duration(node: &Node) -> Result<Value, Wrong> {
    let wanted = "has to be a positive duration";
    match &node.tree {
        Tree::Text(text) if duration_ms(text).is_some_and(|ms| ms > 0) => Ok(Value::Text(text.clone())),
        Tree::Integer(value) if *value > 0 => {
            wrong(wanted, "without a unit", format!("write a unit: `{value}s` for seconds"))
        }
        _ => wrong(wanted, "not a duration", "write it with units, such as `90s` or `1h30m`"),
    }
}

fn daily_window(node: &Node) -> Result<Value, Wrong> {
    match &node.tree {
        Tree::Text(text) if DailyWindow::parse(text).is_some() => Ok(Value::Text(text.clone())),
        _ => wrong("has to be a window of the day", "not a window", "write it as `22:00-06:00`"),
    }
}

/// A value as it is written.
pub(super) fn anything(node: &Node) -> Value {
    match &node.tree {
        Tree::Null => Value::Null,
        Tree::Bool(value) => Value::Bool(*value),
        Tree::Integer(value) => Value::Integer(*value),
        Tree::Number(value) => Value::Number(*value),
        Tree::Text(text) => Value::Text(text.clone()),
        Tree::List(items) => Value::List(items.iter().map(anything).collect()),
        Tree::Map(entries) => {
            Value::Map(entries.iter().map(|entry| (entry.key.clone(), anything(&entry.value))).collect())
        }
    }
}
