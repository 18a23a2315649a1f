//! Single values. As in kube-scheduler nothing is converted: `"1"` is no number, and `"true"` no boolean.

use crate::conf::arguments::duration_ms;
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span, Tree};

use crate::conf::names::shown;

/// Reports a value that will not do.
fn wrong<T>(reader: &mut Reader<'_>, entry: &Entry, wanted: &str, label: &str, help: &str) -> Option<T> {
    let found = reader.describe(&entry.value);
    let message = format!("{} has to be {wanted}, but is {found}", shown(&entry.key));
    reader.error(&entry.value.at, message, label, Some(help.to_owned()));
    None
}

/// A whole number from `min` to `max`.
pub(in crate::conf) fn integer(reader: &mut Reader<'_>, entry: &Entry, min: i64, max: i64) -> Option<i64> {
    match &entry.value.tree {
        Tree::Integer(value) if (min..=max).contains(value) => Some(*value),
        Tree::Integer(_) => {
            let range =
                if max >= i64::from(i32::MAX) { format!("at least {min}") } else { format!("from {min} to {max}") };
            let help = if max == i64::from(i32::MAX) {
                format!("write a number from {min} to {max}")
            } else {
                format!("write a number {range}")
            };
            wrong(reader, entry, &range, "out of range", &help)
        }
        Tree::Text(text) if reader.quoted(&entry.value) && text.trim().parse::<i64>().is_ok() => {
            let help = format!("remove the quotes: `{}`", text.trim());
            wrong(reader, entry, "a whole number", "in quotes", &help)
        }
        _ => wrong(reader, entry, "a whole number", "not a whole number", "write a number such as `1`"),
    }
}

/// True or false.
pub(in crate::conf) fn flag(reader: &mut Reader<'_>, entry: &Entry) -> Option<bool> {
    match &entry.value.tree {
        Tree::Bool(value) => Some(*value),
        _ => wrong(reader, entry, "true or false", "not a boolean", "write `true` or `false`, without quotes"),
    }
}

/// A text.
pub(in crate::conf) fn text(reader: &mut Reader<'_>, entry: &Entry) -> Option<String> {
    match &entry.value.tree {
        Tree::Text(text) => Some(text.clone()),
        Tree::Bool(_) | Tree::Integer(_) | Tree::Number(_) => {
            let help = format!("put it in quotes: `\"{}\"`", reader.raw(&entry.value));
            wrong(reader, entry, "a text", "not a text", &help)
        }
        _ => wrong(reader, entry, "a text", "not a text", "write a text"),
    }
}

/// A number with or without a fraction.
pub(in crate::conf) fn number(reader: &mut Reader<'_>, entry: &Entry) -> Option<f64> {
    match &entry.value.tree {
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        Tree::Integer(value) => Some(*value as f64),
        Tree::Number(value) => Some(*value),
        _ => wrong(reader, entry, "a number", "not a number", "write a number such as `50`"),
    }
}

/// A duration as Go writes it, in milliseconds.
pub(in crate::conf) fn duration(reader: &mut Reader<'_>, entry: &Entry) -> Option<u64> {
    match &entry.value.tree {
        Tree::Text(text) if let Some(ms) = duration_ms(text) => Some(ms),
        Tree::Integer(value) if *value > 0 => {
            let help = format!("write a unit: `{value}s` for seconds");
            wrong(reader, entry, "a duration", "without a unit", &help)
        }
        _ => wrong(reader, entry, "a duration", "not a duration", "write it with units, such as `90s` or `1h30m`"),
    }
}

/// The items of a list, and where it is.
pub(in crate::conf) fn items<'n>(reader: &mut Reader<'_>, entry: Option<&'n Entry>, example: &str) -> &'n [Node] {
    let Some(entry) = entry else { return &[] };
    reader.items(&entry.value, &shown(&entry.key), example).unwrap_or_default()
}

/// A text that has to be there.
pub(in crate::conf) fn required(
    reader: &mut Reader<'_>,
    entry: Option<&Entry>,
    what: &str,
    at: &Span,
    example: &str,
) -> Option<(String, Span)> {
    match entry {
        None => {
            reader.error(at, what.to_owned(), "", Some(example.to_owned()));
            None
        }
        Some(entry) => {
            let text = text(reader, entry)?;
            if text.is_empty() {
                reader.error(&entry.value.at, what.to_owned(), "empty", Some(example.to_owned()));
                return None;
            }
            Some((text, entry.value.at.clone()))
        }
    }
}
