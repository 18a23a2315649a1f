//! Terms of a node affinity in `args`.

use krafla_framework::conf::plugin_args::PluginArgs;
use krafla_framework::conf::selectors::{CONDITION, NODE_OPERATORS, requirement, test};
use krafla_model::labels::{NodeSelectorTerm, Test};

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
        term.labels.extend(requirement(&mut args.item(path, item, CONDITION), &NODE_OPERATORS));
    }
    for (path, item) in args.list("matchFields") {
        let mut item = args.item(path, item, CONDITION);
        let key = item.text("key").unwrap_or_default();
        if key != "metadata.name" {
            item.problem("key", format!("there is no field `{key}` to match; write `metadata.name`"));
        }
        match test(&mut item, &NODE_OPERATORS) {
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
