//! What a configuration may name: the actions and plugins of this build, with their arguments.
//!
//! Plugins and actions write their own tables beside their code; the binary collects them. Nothing here knows a
//! plugin by name.

use super::switches::Point;
use crate::registry::NodePluginBuilder;

/// The actions and plugins that this build has.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Every action, in the order in which help texts list them.
    pub actions: Vec<ActionInfo>,
    /// Every plugin, in the order in which help texts list them.
    pub plugins: Vec<PluginInfo>,
    /// Every node-level plugin; those with a default weight in the order of the default profile.
    pub node_plugins: Vec<NodePluginBuilder>,
    /// Whether a KubeSchedulerConfiguration may only have names that kube-scheduler itself accepts.
    pub strict_upstream: bool,
}

/// One action, as far as a configuration can tell.
#[derive(Clone, Copy, Debug)]
pub struct ActionInfo {
    /// Name in `actions`.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Whether it binds pods; a configuration without such an action would never start anything.
    pub places: bool,
    /// What may stand under its entry in `configurations`.
    pub arguments: &'static [ArgumentInfo],
}

/// One plugin, as far as a configuration can tell.
#[derive(Clone, Copy, Debug)]
pub struct PluginInfo {
    /// Name in a tier.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// What may stand under its `arguments`.
    pub arguments: &'static [ArgumentInfo],
    /// The extension points that it takes part in; a switch for another one has no effect.
    pub points: &'static [Point],
}

/// One argument of a plugin or action.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentInfo {
    /// The key. With a trailing `*` it stands for every key that begins so, such as `binpack.resources.*`.
    pub key: &'static str,
    /// What values it takes.
    pub kind: ArgumentKind,
    /// The value when it is not given, written as in the file; empty when there is none. Only for people to read:
    /// the plugin hands the default to the getter.
    pub default: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
}

/// The values that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentKind {
    /// True or false; also in quotes, as Volcano takes it.
    Bool,
    /// A whole number.
    Integer {
        /// Smallest value.
        min: i64,
        /// Largest value; `i64::MAX` for no limit.
        max: i64,
    },
    /// A number, with or without a fraction.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value; infinite for no limit.
        max: f64,
    },
    /// Any text.
    Text,
    /// A positive duration as Go writes it: `90s`, `1h30m`.
    Duration,
    /// A window that comes back every day: `22:00-06:00`.
    DailyWindow,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Anything, also lists and mappings; the plugin reads it itself.
    Any,
    /// Anything, and nothing reads it: taken from older files with a warning, and left out of the policy.
    Unread,
}

impl Catalogue {
    /// The action of that name.
    #[must_use]
    pub fn action(&self, name: &str) -> Option<&ActionInfo> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// The node-level plugin of that name.
    #[must_use]
    pub fn node_plugin(&self, name: &str) -> Option<&NodePluginBuilder> {
        self.node_plugins.iter().find(|builder| builder.info.name == name)
    }

    /// The plugin of that name.
    #[must_use]
    pub fn plugin(&self, name: &str) -> Option<&PluginInfo> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }
}

impl PluginInfo {
    /// Whether it takes part in `point`.
    #[must_use]
    pub fn takes_part_in(&self, point: Point) -> bool {
        self.points.contains(&point)
    }
}

impl ArgumentInfo {
    /// One line of a table.
    #[must_use]
    pub const fn new(key: &'static str, kind: ArgumentKind, default: &'static str, about: &'static str) -> Self {
        Self { key, kind, default, about }
    }

    /// Whether `key` is this argument.
    #[must_use]
    pub fn covers(&self, key: &str) -> bool {
        match self.key.strip_suffix('*') {
            Some(prefix) => key.len() > prefix.len() && key.starts_with(prefix),
            None => key == self.key,
        }
    }
}

/// The argument that `key` names in `table`: an exact key before a prefix, a longer prefix before a shorter one.
#[must_use]
pub fn argument<'a>(table: &'a [ArgumentInfo], key: &str) -> Option<&'a ArgumentInfo> {
    table.iter().filter(|info| info.covers(key)).max_by_key(|info| (!info.key.ends_with('*'), info.key.len()))
}
