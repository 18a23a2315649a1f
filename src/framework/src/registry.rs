//! What a build has: actions and plugins by name. Others add theirs here and call the same `main`.

use crate::action::Action;
use crate::conf::arguments::Arguments;
use crate::conf::catalogue::{ActionInfo, Catalogue, PluginInfo};
use crate::conf::policy::PluginEntry;
use crate::session_plugin::SessionPlugin;

/// How one plugin is made.
pub struct PluginBuilder {
    /// Its name, arguments and points.
    pub info: PluginInfo,
    /// Makes it. The arguments have been checked against `info`.
    pub build: fn(&PluginEntry) -> Box<dyn SessionPlugin>,
}

/// How one action is made.
pub struct ActionBuilder {
    /// Its name and arguments.
    pub info: ActionInfo,
    /// Makes it. The arguments have been checked against `info`.
    pub build: fn(&Arguments) -> Box<dyn Action>,
}

/// The actions and plugins of a build.
#[derive(Default)]
pub struct Registry {
    /// Actions.
    pub actions: Vec<ActionBuilder>,
    /// Session-level plugins.
    pub plugins: Vec<PluginBuilder>,
}

impl Registry {
    /// What the configuration compiler checks names and arguments against.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue {
            actions: self.actions.iter().map(|builder| builder.info).collect(),
            plugins: self.plugins.iter().map(|builder| builder.info).collect(),
        }
    }
}
