//! `profiles`: each compiled to its points, then held against each other.

use std::collections::{BTreeMap, BTreeSet};

use super::config::{self, Told};
use super::fields::{self, Level, get};
use super::merge::{self, Choice, Chosen};
use super::plugins::{self, Sets, known};
use super::scalars::{items, required};
use super::top::percentage;
use super::upstream::PLUGINS;
use crate::conf::arguments::Value;
use crate::conf::catalogue::Catalogue;
use crate::conf::names::shown;
use crate::conf::policy::{DEFAULT_PROFILE, ProfilePolicy};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span, Tree};
use crate::scheduling::point::ExtensionPoint;

/// A profile with what it says of the queue, which is one for all.
struct Compiled {
    policy: ProfilePolicy,
    at: Span,
    /// Who sorts the queue, and what it is told.
    queue_sort: (Vec<String>, Value),
    queue_sort_at: Span,
}

/// Reads all profiles; one with all defaults if there is none. `percentage` is what the top says for those that say
/// nothing.
pub(super) fn read(
    reader: &mut Reader<'_>,
    document: &Node,
    entry: Option<&Entry>,
    percentage: Option<u8>,
) -> Vec<ProfilePolicy> {
    let nodes = items(reader, entry, "write a list of `- schedulerName: …`");
    let silent = Node { tree: Tree::Null, at: entry.map_or(&document.at, |entry| &entry.at).clone() };
    let nodes = if nodes.is_empty() { std::slice::from_ref(&silent) } else { nodes };
    let mut names: BTreeMap<String, Span> = BTreeMap::new();
    let mut profiles: Vec<Compiled> = Vec::new();
    for node in nodes {
        let above = entry.map(|entry| &entry.at);
        let Some(entries) = fields::entries(reader, Level::Profile, node, above) else { continue };
        let name = name(reader, node, entries, nodes.len() == 1, &mut names);
        profiles.push(profile(reader, node, entries, name, percentage));
    }
    same_queue_sort(reader, &profiles);
    profiles.into_iter().map(|profile| profile.policy).collect()
}

fn name(
    reader: &mut Reader<'_>,
    node: &Node,
    entries: &[Entry],
    is_alone: bool,
    names: &mut BTreeMap<String, Span>,
) -> String {
    let entry = get(entries, "schedulerName");
    if entry.is_none() && is_alone {
        return DEFAULT_PROFILE.to_owned();
    }
    let what = "a profile needs a `schedulerName`";
    let help = "write `schedulerName: …`, the name that pods have in `spec.schedulerName`";
    let Some((name, at)) = required(reader, entry, what, &node.at, help) else { return String::new() };
    match names.get(&name) {
        Some(first) => {
            let first = first.clone();
            reader.twice(&at, &format!("the profile {}", shown(&name)), &first, Some("pods choose a profile by name"));
        }
        None => drop(names.insert(name.clone(), at)),
    }
    name
}

fn profile(reader: &mut Reader<'_>, node: &Node, entries: &[Entry], name: String, for_all: Option<u8>) -> Compiled {
    let percentage = percentage(reader, get(entries, "percentageOfNodesToScore")).or(for_all);
    let sets = plugins::read(reader, get(entries, "plugins"));
    let told = config::read(reader, get(entries, "pluginConfig"));
    let members = members(reader.catalogue, &sets);
    let at = get(entries, "schedulerName").map_or(&node.at, |entry| &entry.value.at).clone();
    queue_sort_and_bind(reader, &name, &at, &sets, &members);
    coscheduling_in_parts(reader, &sets, &members);

    let mut points: BTreeMap<ExtensionPoint, Vec<(String, i64)>> = BTreeMap::new();
    for (&point, chosen) in &members {
        let scores = point == ExtensionPoint::Score;
        let weighted = |chosen: &Chosen| (chosen.name.clone(), if scores { chosen.weight.max(1) } else { 1 });
        let is_built =
            |chosen: &&Chosen| known(reader.catalogue, &chosen.name).is_some_and(|k| k.built.contains(&point));
        let built: Vec<_> = chosen.iter().filter(is_built).map(weighted).collect();
        if !built.is_empty() {
            points.insert(point, built);
        }
    }
    let arguments = arguments(reader, &sets, &members, &points, &told);
    let queue_sort: Vec<String> = names_at(&members, ExtensionPoint::QueueSort).map(str::to_owned).collect();
    let queue_sort_told = queue_sort.first().and_then(|name| told.get(name)).map_or(Value::Null, |t| t.value.clone());
    let queue_sort_at = sets.place(ExtensionPoint::QueueSort).unwrap_or(&at).clone();
    Compiled {
        policy: ProfilePolicy { name, percentage_of_nodes_to_score: percentage, points, arguments },
        at,
        queue_sort: (queue_sort, queue_sort_told),
        queue_sort_at,
    }
}

/// The default profile of this build: kube-scheduler's, with the weights and the further plugins of the catalogue.
pub(super) fn defaults(catalogue: &Catalogue) -> Vec<Chosen> {
    let chosen = |name: &str, weight| Chosen { name: name.to_owned(), weight };
    let theirs = PLUGINS.iter().filter_map(|upstream| {
        let weight = catalogue.node_plugin(upstream.name).and_then(|builder| builder.info.default_weight);
        weight.or(upstream.default_weight).map(|weight| chosen(upstream.name, weight))
    });
    let is_theirs = |name: &str| PLUGINS.iter().any(|upstream| upstream.name == name);
    let ours = catalogue.node_plugins.iter().map(|builder| builder.info).filter(|info| !is_theirs(info.name));
    theirs.chain(ours.filter_map(|info| info.default_weight.map(|weight| chosen(info.name, weight)))).collect()
}

/// For each point who is asked there, whether or not this build has them.
fn members(catalogue: &Catalogue, sets: &Sets) -> BTreeMap<ExtensionPoint, Vec<Chosen>> {
    let multi = merge::multi_point(&defaults(catalogue), &sets.multi_point);
    let silent = Choice::default();
    let at = |point: ExtensionPoint| {
        let takes_part = |chosen: &&Chosen| known(catalogue, &chosen.name).is_some_and(|k| k.points.contains(&point));
        let multi: Vec<Chosen> = multi.iter().filter(takes_part).cloned().collect();
        (point, merge::point(&multi, sets.points.get(&point).unwrap_or(&silent)))
    };
    ExtensionPoint::ALL.map(at).into()
}

fn names_at(members: &BTreeMap<ExtensionPoint, Vec<Chosen>>, point: ExtensionPoint) -> impl Iterator<Item = &str> {
    members.get(&point).into_iter().flatten().map(|chosen| chosen.name.as_str())
}

fn queue_sort_and_bind(
    reader: &mut Reader<'_>,
    profile: &str,
    at: &Span,
    sets: &Sets,
    members: &BTreeMap<ExtensionPoint, Vec<Chosen>>,
) {
    let sorters: Vec<&str> = names_at(members, ExtensionPoint::QueueSort).collect();
    if sorters.len() != 1 {
        let found = if sorters.is_empty() { "none".to_owned() } else { sorters.join(", ") };
        let message =
            format!("the profile {} needs exactly one plugin at `queueSort`, but has: {found}", shown(profile));
        let help = "write under `queueSort:` one plugin in `enabled`, and `- name: \"*\"` in `disabled`";
        let added = sorters.last().and_then(|name| sets.place_of(ExtensionPoint::QueueSort, name));
        let place = sets.place(ExtensionPoint::QueueSort).or(added).unwrap_or(at).clone();
        reader.error(&place, message, "", Some(help.to_owned()));
    }
    if names_at(members, ExtensionPoint::Bind).next().is_none() {
        let message = format!("the profile {} has no plugin that binds pods", shown(profile));
        let help = "enable `DefaultBinder` at `bind`, or leave it enabled";
        let place = sets.place(ExtensionPoint::Bind).unwrap_or(at).clone();
        reader.error(&place, message, "", Some(help.to_owned()));
    }
}

/// Coscheduling that holds pods back without the parts that let go of them again.
fn coscheduling_in_parts(reader: &mut Reader<'_>, sets: &Sets, members: &BTreeMap<ExtensionPoint, Vec<Chosen>>) {
    use ExtensionPoint::{Permit, PostFilter, PreFilter, Reserve};
    const NAME: &str = "Coscheduling";
    let has = |point: &ExtensionPoint| names_at(members, *point).any(|name| name == NAME);
    let lacks: Vec<&str> = [PreFilter, PostFilter, Reserve].iter().filter(|p| !has(p)).map(|p| p.key()).collect();
    if let (Some(at), true, false) = (sets.place_of(Permit, NAME), has(&Permit), lacks.is_empty()) {
        let message = format!("Coscheduling is asked at `permit`, but not at {}", lacks.join(", "));
        let help = "a group that cannot start is then let go of only by its timeout; enable it under `multiPoint:`";
        reader.warn(&at.clone(), message, "a part of it", Some(help.to_owned()));
    }
}

/// What the built plugins are told; and whether each takes what it is told.
fn arguments(
    reader: &mut Reader<'_>,
    sets: &Sets,
    members: &BTreeMap<ExtensionPoint, Vec<Chosen>>,
    points: &BTreeMap<ExtensionPoint, Vec<(String, i64)>>,
    told: &BTreeMap<String, Told>,
) -> BTreeMap<String, Value> {
    let asked: BTreeSet<&str> = members.values().flatten().map(|chosen| chosen.name.as_str()).collect();
    for (name, told) in told {
        if !asked.contains(name.as_str()) {
            let message = format!("the `pluginConfig` of `{name}` has no effect: the profile does not enable it");
            let help = "enable it under `multiPoint:` or at its points, or take the entry out";
            reader.warn(&told.at, message, "no effect", Some(help.to_owned()));
        }
    }
    let mut arguments = BTreeMap::new();
    let built: BTreeMap<&str, ExtensionPoint> =
        points.iter().flat_map(|(point, names)| names.iter().map(|(name, _)| (name.as_str(), *point))).collect();
    for (name, point) in built {
        match told.get(name) {
            Some(told) if told.is_valid && told.value != Value::Null => {
                arguments.insert(name.to_owned(), told.value.clone());
            }
            Some(_) => {}
            None => {
                if let Some(at) = sets.place_of(point, name) {
                    config::check_silence(reader, name, &at.clone());
                }
            }
        }
    }
    arguments
}

/// There is one queue, so all profiles have to sort it by the same plugin, told the same.
fn same_queue_sort(reader: &mut Reader<'_>, profiles: &[Compiled]) {
    let Some((first, others)) = profiles.split_first() else { return };
    for other in others.iter().filter(|other| other.queue_sort != first.queue_sort) {
        let (one, two) = (first.queue_sort.0.join(", "), other.queue_sort.0.join(", "));
        let what = if one == two { format!("what `{one}` is told") } else { format!("it is {one}, and here {two}") };
        let message = format!("the plugin at `queueSort` must be the same for all profiles: {what}");
        let help = format!("the first profile is at line {}; there is one queue for all", reader.line_of(&first.at));
        let what = if one == two { format!("{message} differs") } else { message };
        reader.error(&other.queue_sort_at, what, "another", Some(help));
    }
}
