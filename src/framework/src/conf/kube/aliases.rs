//! Names that older versions and other texts use, and what they are here. Each is a warning, or an error where only
//! kube-scheduler's own names may stand.

use crate::conf::names::shown;
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Span};

/// Score plugins of `v1beta1` that became strategies of NodeResourcesFit. A build has them as plugins of their own, which
/// only score.
pub(super) const LEGACY_SCORES: &[(&str, &str)] = &[
    ("NodeResourcesLeastAllocated", "LeastAllocated"),
    ("NodeResourcesMostAllocated", "MostAllocated"),
    ("RequestedToCapacityRatio", "RequestedToCapacityRatio"),
];

/// Plugin names that mean another plugin.
const RENAMED: &[(&str, &str)] = &[("DefaultBind", "DefaultBinder")];

/// Fields of `args`: the plugin, the name in the file, and the one that is meant. `None`: nothing reads it any more.
const FIELDS: &[(&str, &str, Option<&str>)] = &[
    ("Coscheduling", "permittedWaitingTimeSeconds", Some("permitWaitingTimeSeconds")),
    ("Coscheduling", "deniedWaitingTimeSeconds", Some("podGroupBackoffSeconds")),
    ("Coscheduling", "deniedPGExpirationTimeSeconds", Some("podGroupBackoffSeconds")),
    ("Coscheduling", "podGroupGCIntervalSeconds", None),
    ("Coscheduling", "podGroupExpirationTimeSeconds", None),
];

/// Says that a name is an alias: a warning, or an error where aliases are refused.
fn alias(reader: &mut Reader<'_>, at: &Span, name: &str, meaning: &str, help: String) {
    if reader.catalogue.strict_upstream {
        let message = format!("{name} is not a name of kube-scheduler");
        reader.error(at, message, "unknown", Some(help));
    } else {
        reader.warn(at, format!("{name} {meaning}"), "an alias", Some(help));
    }
}

/// The plugin that `name` means.
pub(super) fn plugin(reader: &mut Reader<'_>, name: &str, at: &Span) -> String {
    let Some((old, new)) = RENAMED.iter().find(|(old, _)| *old == name) else { return name.to_owned() };
    alias(reader, at, &shown(old), &format!("is taken for `{new}`"), format!("write `{new}`"));
    (*new).to_owned()
}

/// Says that a legacy score plugin was enabled.
pub(super) fn legacy_score(reader: &mut Reader<'_>, name: &str, at: &Span) {
    let Some((_, strategy)) = LEGACY_SCORES.iter().find(|(legacy, _)| *legacy == name) else { return };
    let help = format!("write `NodeResourcesFit`, and in its `args`: `scoringStrategy: {{type: {strategy}}}`");
    alias(reader, at, &shown(name), "is a name of older versions; here it scores by itself, and filters nothing", help);
}

/// The field of a plugin's `args` that an entry means; `None` to leave it out.
pub(super) fn field(reader: &mut Reader<'_>, plugin: &str, entry: &Entry) -> Option<String> {
    let Some((_, old, new)) = FIELDS.iter().find(|(owner, old, _)| *owner == plugin && *old == entry.key) else {
        return Some(entry.key.clone());
    };
    let name = format!("{} of `{plugin}`", shown(old));
    let (meaning, help) = match new {
        Some(new) => (format!("is taken for `{new}`"), format!("write `{new}`")),
        None => {
            ("has no effect: groups are forgotten when their pods are gone".to_owned(), "take the line out".to_owned())
        }
    };
    alias(reader, &entry.at, &name, &meaning, help);
    new.map(str::to_owned)
}
