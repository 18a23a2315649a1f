//! Selectors in configurations: the text form that `kubectl -l` takes, and LabelSelectors as mappings.

use krafla_model::labels::{Requirement, Selector, Test};

use super::arguments::Value;
use super::names::shown;
use super::plugin_args::PluginArgs;

/// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
pub fn from_text(text: &str) -> Result<Selector, String> {
    let mut requirements = Vec::new();
    for part in split(text)? {
        requirements.push(requirement(part.trim())?);
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

fn requirement(part: &str) -> Result<Requirement, String> {
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
        let mut item = args.item(path.clone(), item, &["key", "operator", "values"]);
        let key = item.text("key").unwrap_or_default().to_owned();
        let operator = item.text("operator").unwrap_or_default().to_owned();
        let values: Vec<_> = item.texts("values").into_iter().map(|(_, value)| value.into()).collect();
        let needs_values = matches!(operator.as_str(), "In" | "NotIn");
        if key.is_empty() {
            item.problem("key", "it has no key; write `key: …`");
        } else if needs_values == values.is_empty() {
            let which = if needs_values { "needs values" } else { "takes no values" };
            item.problem("values", format!("the operator {} {which}", shown(&operator)));
        }
        let test = match operator.as_str() {
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            "Exists" => Test::Exists,
            "DoesNotExist" => Test::DoesNotExist,
            other => {
                let message =
                    format!("there is no operator {}; operators are: In, NotIn, Exists, DoesNotExist", shown(other));
                item.problem("operator", message);
                continue;
            }
        };
        requirements.push(Requirement { key: key.as_str().into(), test });
    }
    Some(Selector(requirements))
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
