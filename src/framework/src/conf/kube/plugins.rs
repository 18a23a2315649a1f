//! `plugins` of a profile: what it enables and disables at each point, with names that are known.

use std::collections::{BTreeMap, BTreeSet};

use super::aliases;
use super::fields::{self, Level, get};
use super::merge::{Choice, Chosen};
use super::scalars::{integer, items, required};
use super::upstream::{self, LEGACY, PLUGINS, REMOVED};
use crate::conf::catalogue::Catalogue;
use crate::conf::names::{list, nearest, shown};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span};
use crate::scheduling::point::ExtensionPoint;

/// Points of kube-scheduler's alpha gates, which this build does not have.
const ALPHA_POINTS: [&str; 4] = ["placementGenerate", "placementScore", "placementFeasible", "podGroupPostFilter"];

/// What `plugins` says.
#[derive(Default)]
pub(super) struct Sets {
    pub(super) multi_point: Choice,
    pub(super) points: BTreeMap<ExtensionPoint, Choice>,
    /// Where each set is, and each plugin that it enables; `None` is `multiPoint`.
    places: BTreeMap<Option<ExtensionPoint>, (Span, BTreeMap<String, Span>)>,
}

impl Sets {
    /// Where a point is, if it is written.
    pub(super) fn place(&self, point: ExtensionPoint) -> Option<&Span> {
        self.places.get(&Some(point)).map(|(at, _)| at)
    }

    /// Where a plugin is enabled: at the point, or else at `multiPoint`.
    pub(super) fn place_of(&self, point: ExtensionPoint, name: &str) -> Option<&Span> {
        let at = |set: Option<ExtensionPoint>| self.places.get(&set).and_then(|(_, plugins)| plugins.get(name));
        at(Some(point)).or_else(|| at(None))
    }
}

/// What is known of a plugin.
pub(super) struct Known {
    /// Where kube-scheduler's plugin of that name, or this build's, takes part.
    pub(super) points: BTreeSet<ExtensionPoint>,
    /// Where this build's does.
    pub(super) built: BTreeSet<ExtensionPoint>,
    /// Whether this build has it at all.
    pub(super) is_built: bool,
    /// Whether it takes part in points that this build does not have.
    places_groups: bool,
}

/// What is known of the plugin of that name.
pub(super) fn known(catalogue: &Catalogue, name: &str) -> Option<Known> {
    let (builder, upstream) = (catalogue.node_plugin(name), upstream::plugin(name));
    if builder.is_none() && upstream.is_none() {
        return None;
    }
    let built: BTreeSet<_> = builder.iter().flat_map(|builder| builder.info.points).copied().collect();
    let theirs = upstream.iter().flat_map(|upstream| upstream.points).copied();
    Some(Known {
        points: built.iter().copied().chain(theirs).collect(),
        is_built: builder.is_some(),
        built,
        places_groups: upstream.is_some_and(|upstream| upstream.points.is_empty()),
    })
}

/// Reads `plugins`.
pub(super) fn read(reader: &mut Reader<'_>, above: Option<&Entry>) -> Sets {
    let mut sets = Sets::default();
    let Some(above) = above else { return sets };
    let entries = fields::entries(reader, Level::Plugins, &above.value, Some(&above.at)).unwrap_or_default();
    for entry in entries {
        let point = ExtensionPoint::of_key(&entry.key);
        if ALPHA_POINTS.contains(&entry.key.as_str()) {
            let message = format!("{} is not in this build yet", shown(&entry.key));
            let help = "gangs are placed by the session, and by plugins at `permit`".to_owned();
            reader.warn(&entry.at, message, "no effect", Some(help));
        } else if point.is_some() || entry.key == "multiPoint" {
            let mut places = BTreeMap::new();
            let choice = choice(reader, entry, point, &mut places);
            sets.places.insert(point, (entry.at.clone(), places));
            match point {
                Some(point) => drop(sets.points.insert(point, choice)),
                None => sets.multi_point = choice,
            }
        }
    }
    sets
}

fn choice(
    reader: &mut Reader<'_>,
    entry: &Entry,
    point: Option<ExtensionPoint>,
    places: &mut BTreeMap<String, Span>,
) -> Choice {
    let mut choice = Choice::default();
    let entries = fields::entries(reader, Level::Set, &entry.value, Some(&entry.at)).unwrap_or_default();
    for item in items(reader, get(entries, "enabled"), "write a list of `- name: …`") {
        let Some((written, weight, at)) = plugin(reader, item) else { continue };
        let name = aliases::plugin(reader, &written, &at);
        if !may_be_enabled(reader, &name, point, &at) {
            continue;
        }
        if let Some((weight, weight_at)) = &weight {
            needless_weight(reader, &name, point, *weight, weight_at);
        }
        if let Some(first) = places.get(&name) {
            let help = "a plugin is asked once at a point; keep one of them";
            let thing = format!("the plugin `{name}` at `{}`", entry.key);
            reader.twice(&at, &thing, &first.clone(), Some(help));
            continue;
        }
        places.insert(name.clone(), at);
        choice.enabled.push(Chosen { name, weight: weight.map_or(0, |(weight, _)| weight) });
    }
    for item in items(reader, get(entries, "disabled"), "write a list of `- name: …`") {
        let Some((written, _, at)) = plugin(reader, item) else { continue };
        let name = aliases::plugin(reader, &written, &at);
        if name != "*" && known(reader.catalogue, &name).is_none() && !REMOVED.iter().any(|(old, _)| *old == name) {
            let help = suggestion(reader.catalogue, &name);
            let message = format!("there is no plugin called {} to disable", shown(&name));
            reader.warn(&at, message, "no effect", Some(help));
        }
        choice.disabled.push(name);
    }
    choice
}

/// A weight that is written, and where its key is.
type Weight = Option<(i64, Span)>;

/// Name and weight of an entry, and where the name is.
fn plugin(reader: &mut Reader<'_>, node: &Node) -> Option<(String, Weight, Span)> {
    let entries = fields::entries(reader, Level::Plugin, node, None)?;
    let example = "write `- name: …`";
    let (name, at) = required(reader, get(entries, "name"), "a plugin needs a `name`", &node.at, example)?;
    let weight = get(entries, "weight").and_then(|entry| {
        // Sums of scores stay exact: 100 times this, times any number of plugins, is far below 2^53.
        Some((integer(reader, entry, 0, i64::from(i32::MAX))?, entry.at.clone()))
    });
    Some((name, weight, at))
}

fn needless_weight(reader: &mut Reader<'_>, name: &str, point: Option<ExtensionPoint>, weight: i64, at: &Span) {
    let scores = known(reader.catalogue, name).is_some_and(|known| known.points.contains(&ExtensionPoint::Score));
    if weight != 0 && (point.is_some_and(|point| point != ExtensionPoint::Score) || !scores) {
        let message = format!("the weight of `{name}` has no effect here: only scores have one");
        let help = if scores { "write it under `score:`, or under `multiPoint:`" } else { "take the line out" };
        reader.warn(at, message, "no effect", Some(help.to_owned()));
    }
}

/// Reports a plugin that does not exist, or not at this point (`None`: `multiPoint`).
fn may_be_enabled(reader: &mut Reader<'_>, name: &str, point: Option<ExtensionPoint>, at: &Span) -> bool {
    if let Some((_, help)) = REMOVED.iter().find(|(old, _)| *old == name) {
        let message = format!("{} is a plugin of older versions", shown(name));
        reader.error(at, message, "not in v1", Some((*help).to_owned()));
        return false;
    }
    let Some(known) = known(reader.catalogue, name) else {
        let help = if name == "*" {
            "`*` stands under `disabled` only; name the plugins".to_owned()
        } else if reader.catalogue.plugin(name).is_some() {
            "that is a plugin of sessions: it stands in the tiers of a `scheduler.conf`".to_owned()
        } else {
            suggestion(reader.catalogue, name)
        };
        reader.error(at, format!("there is no plugin called {}", shown(name)), "unknown", Some(help));
        return false;
    };
    aliases::legacy_score(reader, name, at);
    let keys: Vec<&str> = known.points.iter().map(|point| point.key()).collect();
    match point {
        Some(point) if !known.points.contains(&point) => {
            let message = format!("the plugin `{name}` does not take part in `{}`", point.key());
            let help = list("its points", &keys).unwrap_or_else(|| "its points are not in this build".to_owned());
            reader.error(at, message, "not here", Some(help));
            return false;
        }
        None if known.points.is_empty() && !known.places_groups => {
            let message = format!("the plugin `{name}` takes part in no extension point");
            reader.error(at, message, "without effect", Some("take it out".to_owned()));
            return false;
        }
        _ => {}
    }
    let missing = match point {
        Some(point) => !known.built.contains(&point),
        None => !known.is_built,
    };
    if missing {
        let message = match point {
            Some(point) if known.is_built => {
                format!("the plugin `{name}` is not asked at `{}` in this build yet", point.key())
            }
            _ => format!("the plugin `{name}` is not in this build yet"),
        };
        reader.warn(at, message, "no effect", Some("the rest of the profile is in force without it".to_owned()));
    }
    true
}

/// Help for an unknown name of a node-level plugin.
pub(super) fn suggestion(catalogue: &Catalogue, name: &str) -> String {
    let built = catalogue.node_plugins.iter().map(|builder| builder.info.name);
    let theirs = PLUGINS.iter().chain(LEGACY).map(|plugin| plugin.name);
    match nearest(name, built.chain(theirs)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "docs/profiles.md lists the plugins".to_owned(),
    }
}
