//! What each line allows and the whole does not: plugins and actions that exclude or miss one another.

use super::catalogue::PluginInfo;
use super::names::shown;
use super::policy::Policy;
use super::reader::Reader;
use super::switches::Point;
use super::tiers::Placed;
use super::tree::Span;

/// Plugins that can keep a job out of its queue. (`extender` can too, when it is told to.)
const REJECTING: &[&str] = &["overcommit", "proportion", "capacity", "resourcequota"];

/// Plugins that cannot work together. Asked whether or not there are other errors.
pub(super) fn exclusions(reader: &mut Reader<'_>, plugins: &[Placed]) {
    let find = |name: &str| plugins.iter().find(|placed| placed.entry.name == name);
    let Some(proportion) = find("proportion") else { return };
    if let Some(drf) = find("drf").filter(|drf| drf.entry.switches.hierarchy()) {
        // Volcano looks for this within one tier only.
        let help = "take `proportion` out, or remove `enableHierarchy` from `drf`";
        both(reader, drf, proportion, "`drf` with `enableHierarchy` and `proportion` both divide the cluster", help);
    }
    if let Some(capacity) = find("capacity") {
        let help = "keep `capacity` for queues with `deserved` and `guarantee`, `proportion` for queues with weights";
        both(reader, capacity, proportion, "`capacity` and `proportion` both divide the cluster", help);
    }
}

/// Reports two plugins that exclude each other, at the one that comes later.
fn both(reader: &mut Reader<'_>, one: &Placed, two: &Placed, message: &str, help: &str) {
    let later = if (one.at.line, one.at.column) > (two.at.line, two.at.column) { one } else { two };
    reader.error(&later.at, message, "not together", Some(help.to_owned()));
}

/// Combinations that work, but leave something without effect. Asked only when everything else is right.
pub(super) fn gaps(reader: &mut Reader<'_>, policy: &Policy, plugins: &[Placed], actions: &[(String, Span)]) {
    if policy.actions.iter().any(|action| action == "enqueue") {
        late_sla(reader, plugins);
    } else {
        idle_at_the_door(reader, plugins);
    }
    level_without_a_tree(reader, plugins);
    unfiltered(reader, plugins, actions);
}

/// A level of ancestors, where `capacity` reads no ancestors.
fn level_without_a_tree(reader: &mut Reader<'_>, plugins: &[Placed]) {
    const LEVEL: &str = "ancestorReclaimLevel";
    let flat = |placed: &&Placed| placed.entry.name == "capacity" && !placed.entry.switches.hierarchy();
    if let Some(capacity) = plugins.iter().find(flat).filter(|placed| placed.entry.arguments.integer(LEVEL, 0) > 0) {
        let message = format!("`{LEVEL}` of `capacity` has no effect without `enableHierarchy`");
        let help = "add `enableHierarchy: true` beside `name`, or take the level out".to_owned();
        reader.warn(&capacity.at, message, "queues are not a tree", Some(help));
    }
}

/// `sla` lets a job in by ending the vote after its tier, so whoever rejects in its tier or before wins.
fn late_sla(reader: &mut Reader<'_>, plugins: &[Placed]) {
    let votes = |placed: &Placed| placed.entry.switches.allows(Point::JobEnqueueable);
    let Some(sla) = plugins.iter().find(|placed| placed.entry.name == "sla" && votes(placed)) else { return };
    let rejecting =
        |placed: &&Placed| placed.tier <= sla.tier && REJECTING.contains(&placed.entry.name.as_str()) && votes(placed);
    if let Some(other) = plugins.iter().find(rejecting) {
        let message = format!("`sla` cannot let jobs in: `{}` rejects them first", other.entry.name);
        let help = format!("put `sla` in a tier before that of `{}`", other.entry.name);
        reader.warn(&sla.at, message, "too late", Some(help));
    }
}

/// Plugins that only guard the entry to queues, when nothing is ever held up there.
fn idle_at_the_door(reader: &mut Reader<'_>, plugins: &[Placed]) {
    for placed in plugins {
        let info = reader.catalogue.plugin(&placed.entry.name);
        if info.is_some_and(|info| info.points == [Point::JobEnqueueable]) {
            let message = format!("{} has no effect without the action `enqueue`", shown(&placed.entry.name));
            let help = "add `enqueue` to `actions`, or take the plugin out".to_owned();
            reader.warn(&placed.at, message, "never asked", Some(help));
        }
    }
}

/// Actions that place pods when no plugin says which nodes are fit.
fn unfiltered(reader: &mut Reader<'_>, plugins: &[Placed], actions: &[(String, Span)]) {
    let catalogue = reader.catalogue;
    let filters = |info: &PluginInfo| info.takes_part_in(Point::Predicate);
    let filtering = plugins.iter().any(|placed| {
        placed.entry.switches.allows(Point::Predicate) && catalogue.plugin(&placed.entry.name).is_some_and(filters)
    });
    let placing = actions.iter().find(|(name, _)| catalogue.action(name).is_some_and(|action| action.places));
    if let (false, Some((name, at))) = (filtering, placing) {
        let message = format!("`{name}` places pods, but no plugin filters nodes");
        let help = "add the plugin `predicates`, or pods land on nodes whose taints and affinities forbid it";
        reader.warn(at, message, "any node will do", Some(help.to_owned()));
    }
}
