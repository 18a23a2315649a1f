//! Names that are right somewhere else: in Volcano's other plugins, in older versions, in forks.
//!
//! Someone who brings an existing file should read «not in this build» and not «unknown». An entry matters only as long
//! as the catalogue does not have the name.

/// Plugins of Volcano itself.
const VOLCANO_PLUGINS: &[&str] = &[
    "binpack",
    "capacity",
    "cdp",
    "conformance",
    "deviceshare",
    "drf",
    "extender",
    "gang",
    "network-topology-aware",
    "nodegroup",
    "nodeorder",
    "numa-aware",
    "overcommit",
    "pdb",
    "predicates",
    "priority",
    "proportion",
    "rescheduling",
    "resource-strategy-fit",
    "resourcequota",
    "sla",
    "task-topology",
    "tdm",
    "usage",
];

/// Actions of Volcano itself.
const VOLCANO_ACTIONS: &[&str] =
    &["enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle"];

/// Plugin names of forks and older versions, with what to do.
const OTHER_PLUGINS: &[(&str, &str)] = &[
    ("numaaware", "Volcano spells it `numa-aware`"),
    ("networktopologyaware", "Volcano spells it `network-topology-aware`"),
    ("network-topology", "Volcano spells it `network-topology-aware`"),
    ("tasktopology", "Volcano spells it `task-topology`"),
    ("resourcestrategyfit", "Volcano spells it `resource-strategy-fit`"),
    ("node-group", "Volcano spells it `nodegroup`"),
    ("resource-quota", "Volcano spells it `resourcequota`"),
    ("capacity-card", "it is not one of Volcano's 24; `capacity` is the nearest there"),
    ("gpushare", "in Volcano it is a part of `deviceshare`"),
    ("vgpu", "in Volcano it is a part of `deviceshare`"),
    ("hdrf", "in Volcano it is `drf` with `enableHierarchy: true`"),
    ("reservation", "Volcano has dropped it, together with the actions `elect` and `reserve`"),
];

/// Actions of older versions, with what to do.
const OTHER_ACTIONS: &[(&str, &str)] = &[
    ("elect", "Volcano has dropped it, together with the plugin `reservation`"),
    ("reserve", "Volcano has dropped it, together with the plugin `reservation`"),
];

/// Arguments that moved: owner, key, and where they are now.
const MOVED_ARGUMENTS: &[(&str, &str, &str)] = &[
    ("enqueue", "overcommit-factor", "it is now `overcommit-factor` of the plugin `overcommit`"),
    ("sla", "JobWaitingTime", "it is now `sla-waiting-time`"),
    (
        "predicates",
        "predicate.GPUSharingEnable",
        "it is now `deviceshare.GPUSharingEnable` of the plugin `deviceshare`",
    ),
];

/// Entries of `configurations` that belong to no action: name, and who reads it in Volcano.
const NO_ACTIONS: &[(&str, &str)] = &[("init-params", "Ascend's part of `deviceshare`")];

/// What is known about a plugin that this build does not have: the message, and what to do.
pub(super) fn plugin(name: &str) -> Option<(String, &'static str)> {
    of("plugin", name, VOLCANO_PLUGINS, OTHER_PLUGINS)
}

/// What is known about an action that this build does not have.
pub(super) fn action(name: &str) -> Option<(String, &'static str)> {
    of("action", name, VOLCANO_ACTIONS, OTHER_ACTIONS)
}

fn of(
    kind: &str,
    name: &str,
    volcano: &[&str],
    others: &'static [(&'static str, &'static str)],
) -> Option<(String, &'static str)> {
    if volcano.contains(&name) {
        return Some((format!("Volcano's {kind} `{name}` is not in this build yet"), "take it out for now"));
    }
    let (name, advice) = others.iter().find(|(other, _)| other.eq_ignore_ascii_case(name))?;
    Some((format!("the {kind} `{name}` is not in this build"), advice))
}

/// Where an argument of `owner` is now.
pub(super) fn argument(owner: &str, key: &str) -> Option<&'static str> {
    MOVED_ARGUMENTS.iter().find(|(of, old, _)| *of == owner && *old == key).map(|(_, _, advice)| *advice)
}

/// Who reads an entry of `configurations` that names no action.
pub(super) fn configuration(name: &str) -> Option<&'static str> {
    NO_ACTIONS.iter().find(|(other, _)| *other == name).map(|(_, reader)| *reader)
}
