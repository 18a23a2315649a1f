//! Parts of `args` that several plugins have: label keys, and terms of a node affinity.

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::PluginArgs;
use krafla_model::Name;
use krafla_model::labels::{NodeSelectorTerm, Requirement, Test};

const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// Whether a text can be the key of a label: a name of at most 63 characters, with or without a domain before it.
pub(super) fn is_label_key(text: &str) -> bool {
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

/// Terms of which any has to hold: a list of `{matchExpressions, matchFields}`.
pub(super) fn node_selector_terms(args: &mut PluginArgs<'_, '_>, key: &str) -> Vec<NodeSelectorTerm> {
    let items = args.list(key);
    items.into_iter().map(|(path, item)| term(args.item(path, item, TERM))).collect()
}

/// Terms with weights of 1 to 100: a list of `{weight, preference}`.
pub(super) fn preferred_terms(args: &mut PluginArgs<'_, '_>, key: &str) -> Vec<(i32, NodeSelectorTerm)> {
    let mut terms = Vec::new();
    for (path, item) in args.list(key) {
        let mut item = args.item(path, item, &["weight", "preference"]);
        if item.get("weight").is_none() {
            item.problem("weight", "it is missing; write a number from 1 to 100");
        }
        let weight = i32::try_from(item.integer("weight", 1..=100, 1)).unwrap_or(1);
        match item.map("preference", TERM) {
            Some(preference) => terms.push((weight, term(preference))),
            None => item.problem("preference", "it is missing; write `matchExpressions:` below it"),
        }
    }
    terms
}

const TERM: &[&str] = &["matchExpressions", "matchFields"];

fn term(mut args: PluginArgs<'_, '_>) -> NodeSelectorTerm {
    let mut term = NodeSelectorTerm::default();
    for (path, item) in args.list("matchExpressions") {
        let mut item = args.item(path, item, CONDITION);
        let key = item.text("key").unwrap_or_default();
        if !is_label_key(key) {
            item.problem("key", format!("`{key}` cannot be the key of a label; write for example `disk`"));
        }
        term.labels.extend(condition(&mut item).map(|test| Requirement { key: key.into(), test }));
    }
    for (path, item) in args.list("matchFields") {
        let mut item = args.item(path, item, CONDITION);
        let key = item.text("key").unwrap_or_default();
        if key != "metadata.name" {
            item.problem("key", format!("there is no field `{key}` to match; write `metadata.name`"));
        }
        match condition(&mut item) {
            Some(Test::In(values)) if values.len() == 1 => term.name.push(Test::In(values)),
            Some(Test::NotIn(values)) if values.len() == 1 => term.name.push(Test::NotIn(values)),
            Some(_) => {
                item.problem("operator", "a field takes In or NotIn with one value; write one term for each name")
            }
            None => {}
        }
    }
    term
}

const CONDITION: &[&str] = &["key", "operator", "values"];

fn condition(args: &mut PluginArgs<'_, '_>) -> Option<Test> {
    let values: Vec<Name> = args.texts("values").into_iter().map(|(_, value)| Name::from(value)).collect();
    let written = args.text("operator").unwrap_or_default();
    let (none, one) = (values.is_empty(), values.len() == 1);
    let test = match written {
        "In" if !none => Test::In(values),
        "NotIn" if !none => Test::NotIn(values),
        "Exists" if none => Test::Exists,
        "DoesNotExist" if none => Test::DoesNotExist,
        "In" | "NotIn" => return refused(args, format!("{written} needs at least one value; write `values: [\"…\"]`")),
        "Exists" | "DoesNotExist" => return refused(args, format!("{written} takes no values; take them out")),
        "Gt" | "Lt" => match values.first().filter(|_| one).and_then(|value| value.parse().ok()) {
            Some(bound) if written == "Gt" => Test::Gt(bound),
            Some(bound) => Test::Lt(bound),
            None => return refused(args, format!("{written} takes one whole number; write `values: [\"1\"]`")),
        },
        _ => {
            let words = OPERATORS.map(|word| (word, ()));
            match args.get("operator") {
                None | Some(Value::Text(_)) if written.is_empty() => {
                    args.problem("operator", format!("it is missing; operators are {}", OPERATORS.join(", ")));
                }
                _ => args.one_of("operator", &words, ()),
            }
            return None;
        }
    };
    Some(test)
}

fn refused(args: &mut PluginArgs<'_, '_>, message: String) -> Option<Test> {
    args.problem("values", message);
    None
}
