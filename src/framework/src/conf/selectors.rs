//! Selectors in configurations: the text form that `kubectl -l` takes, LabelSelectors as mappings, and the conditions that
//! these and node affinities are made of.

use krafla_model::Name;
use krafla_model::labels::{Requirement, Selector, Test};

use super::arguments::Value;
use super::names::shown;
use super::plugin_args::PluginArgs;

/// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
pub fn from_text(text: &str) -> Result<Selector, String> {
    let mut requirements = Vec::new();
    for part in split(text)? {
        requirements.push(part_from_text(part.trim())?);
    }
    Ok(Selector(requirements))
}

/// The parts between commas that are not in parentheses.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("a `)` without a `(`")?,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a `(` without a `)`".to_owned());
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.trim().is_empty());
    Ok(parts)
}

fn part_from_text(part: &str) -> Result<Requirement, String> {
    let of = |key: &str, test: Test| {
        let key = key.trim();
        let sound = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || "!=()".contains(c));
        if sound { Ok(Requirement { key: key.into(), test }) } else { Err(format!("{} is not a key", shown(key))) }
    };
    if let Some(key) = part.strip_prefix('!') {
        return of(key, Test::DoesNotExist);
    }
    if let Some((key, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let values = values.split(',').map(|value| value.trim().into()).collect();
        if let Some(key) = key.trim_end().strip_suffix(" notin") {
            return of(key, Test::NotIn(values));
        }
        if let Some(key) = key.trim_end().strip_suffix(" in") {
            return of(key, Test::In(values));
        }
        return Err(format!("{} is neither `in` nor `notin`", shown(part)));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return of(key, Test::NotIn(vec![value.trim().into()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return of(key, Test::In(vec![value.trim().into()]));
    }
    of(part, Test::Exists)
}

/// Fields of a condition.
pub const CONDITION: &[&str] = &["key", "operator", "values"];
/// Operators of a LabelSelector.
pub const LABEL_OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];
/// Operators of a node affinity.
pub const NODE_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// Whether a text can be the key of a label: a name of at most 63 characters, with or without a domain before it.
pub fn is_label_key(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    let ends_well = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let named = name.len() <= 63
        && ends_well(name)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let is_part =
        |part: &str| ends_well(part) && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    named && domain.is_none_or(|domain| domain.len() <= 253 && domain.split('.').all(is_part))
}

/// Reads a LabelSelector: `matchLabels` and `matchExpressions`. `None` if the field is not there.
pub fn label_selector(args: &mut PluginArgs<'_, '_>, key: &str) -> Option<Selector> {
    let mut args = args.map(key, &["matchLabels", "matchExpressions"])?;
    let mut requirements = Vec::new();
    match args.get("matchLabels") {
        Some(Value::Map(labels)) => {
            for (label, value) in labels {
                match value {
                    Value::Text(value) => requirements
                        .push(Requirement { key: label.as_str().into(), test: Test::In(vec![value.as_str().into()]) }),
                    _ => args.problem("matchLabels", format!("the value of {} has to be a text", shown(label))),
                }
            }
        }
        Some(_) => args.problem("matchLabels", "it has to be a mapping of labels to values"),
        None => {}
    }
    for (path, item) in args.list("matchExpressions") {
        requirements.extend(requirement(&mut args.item(path, item, CONDITION), &LABEL_OPERATORS));
    }
    Some(Selector(requirements))
}

/// Reads a condition on a label: its key, and one of these operators with its values. `None` where it is wrong, which is told.
pub fn requirement(args: &mut PluginArgs<'_, '_>, operators: &[&str]) -> Option<Requirement> {
    let key = args.text("key").unwrap_or_default();
    if !is_label_key(key) {
        args.problem("key", format!("`{key}` cannot be the key of a label; write for example `disk`"));
    }
    test(args, operators).map(|test| Requirement { key: key.into(), test })
}

/// Reads one of these operators with its values. `None` where it is wrong, which is told.
pub fn test(args: &mut PluginArgs<'_, '_>, operators: &[&str]) -> Option<Test> {
    let values: Vec<Name> = args.texts("values").into_iter().map(|(_, value)| Name::from(value)).collect();
    let written = args.text("operator").unwrap_or_default();
    let (none, one) = (values.is_empty(), values.len() == 1);
    let test = match written {
        _ if !operators.contains(&written) => {
            let words: Vec<_> = operators.iter().map(|word| (*word, ())).collect();
            match args.get("operator") {
                None | Some(Value::Text(_)) if written.is_empty() => {
                    args.problem("operator", format!("it is missing; operators are {}", operators.join(", ")));
                }
                _ => args.one_of("operator", &words, ()),
            }
            return None;
        }
        "In" if !none => Test::In(values),
        "NotIn" if !none => Test::NotIn(values),
        "Exists" if none => Test::Exists,
        "DoesNotExist" if none => Test::DoesNotExist,
        "In" | "NotIn" => return refused(args, format!("{written} needs at least one value; write `values: [\"…\"]`")),
        "Exists" | "DoesNotExist" => return refused(args, format!("{written} takes no values; take them out")),
        // Gt and Lt.
        _ => match values.first().filter(|_| one).and_then(|value| value.parse().ok()) {
            Some(bound) if written == "Gt" => Test::Gt(bound),
            Some(bound) => Test::Lt(bound),
            None => return refused(args, format!("{written} takes one whole number; write `values: [\"1\"]`")),
        },
    };
    Some(test)
}

fn refused(args: &mut PluginArgs<'_, '_>, message: String) -> Option<Test> {
    args.problem("values", message);
    None
}

#[cfg(test)]
mod tests {
    use krafla_model::labels::Labels;

    use super::*;

    #[test]
    fn a_selector_in_one_line() {
        let labels = Labels::from_iter([("a".into(), "1".into()), ("b".into(), "2".into())]);
        for (text, matches) in [
            ("", true),
            ("a=1", true),
            ("a == 1, b!=3", true),
            ("a in (1,2), b notin (3)", true),
            ("a,!c", true),
            ("a=2", false),
            ("c", false),
            ("!a", false),
            ("b in (3, 4)", false),
            ("c notin (1)", true),
        ] {
            assert_eq!(from_text(text).expect(text).matches(&labels), matches, "{text}");
        }
        for text in ["a in 1)", "a (1)", "=1", "a b", "in (1", "a=1)"] {
            assert!(from_text(text).is_err(), "{text}");
        }
    }
}
