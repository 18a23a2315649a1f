//! What a build has: actions and plugins by name. Others add theirs here and call the same `main`.

use std::sync::Arc;

use crate::action::Action;
use crate::conf::arguments::{Arguments, Value};
use crate::conf::catalogue::{ActionInfo, Catalogue, PluginInfo};
use crate::conf::policy::PluginEntry;
use crate::descheduling::BuildDescheduler;
use crate::scheduling::binding::BindingPlugin;
use crate::scheduling::extender::ExtenderCalls;
use crate::scheduling::plugin::NodePlugin;
use crate::scheduling::point::ExtensionPoint;
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

/// A node-level plugin, as far as a KubeSchedulerConfiguration can tell.
#[derive(Clone, Copy, Debug)]
pub struct NodePluginInfo {
    /// Name in a profile.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The points that it takes part in.
    pub points: &'static [ExtensionPoint],
    /// Its place among the plugins of a profile that says nothing, and its weight there; `None` if it is not one of them.
    pub default_weight: Option<i64>,
}

/// How one node-level plugin is made.
#[derive(Clone, Copy, Debug)]
pub struct NodePluginBuilder {
    /// Its name and points.
    pub info: NodePluginInfo,
    /// Makes it.
    pub build: Build,
}

/// A node-level plugin, or what is wrong with its `args`.
pub type Built = Result<Box<dyn NodePlugin>, Vec<ArgumentProblem>>;

/// How a node-level plugin takes its `args`.
#[derive(Clone, Copy, Debug)]
pub enum Build {
    /// It takes none.
    Plain(fn() -> Box<dyn NodePlugin>),
    /// From its `args`, [`Value::Null`] where none are given.
    From(fn(&Value) -> Built),
}

impl Build {
    /// Makes the plugin, or says what is wrong with its `args`.
    pub fn run(self, arguments: &Value) -> Built {
        match self {
            Self::Plain(make) => match arguments {
                Value::Null => Ok(make()),
                _ => Err(vec![ArgumentProblem {
                    path: String::new(),
                    message: "the plugin takes no arguments; take the entry out".into(),
                }]),
            },
            Self::From(make) => make(arguments),
        }
    }
}

/// What is wrong with one field of a plugin's `args`, by its path, such as `scoringStrategy.resources[0].weight`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// The field's path; empty for the whole.
    pub path: String,
    /// What is wrong with it; after `; ` what to write instead.
    pub message: String,
}

/// The actions and plugins of a build.
#[derive(Default)]
pub struct Registry {
    /// Actions.
    pub actions: Vec<ActionBuilder>,
    /// Session-level plugins.
    pub plugins: Vec<PluginBuilder>,
    /// Node-level plugins; those with a default weight in the order of the default profile.
    pub node_plugins: Vec<NodePluginBuilder>,
    /// What plugins do on the way to a bind; each goes with the node-level plugin of its name.
    pub binding_plugins: Vec<Arc<dyn BindingPlugin>>,
    /// Who calls extenders; `None` where nobody does, as in a simulation.
    pub extender_calls: Option<Arc<dyn ExtenderCalls>>,
    /// Annotations of pods that plugins read; others are not kept.
    pub pod_annotations: Vec<&'static str>,
    /// Makes the descheduler; `None` where a build has none.
    pub descheduler: Option<BuildDescheduler>,
    /// Whether a KubeSchedulerConfiguration may only have names that kube-scheduler itself accepts.
    pub strict_upstream: bool,
}

impl Registry {
    /// What the configuration compiler checks names and arguments against.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue {
            actions: self.actions.iter().map(|builder| builder.info).collect(),
            plugins: self.plugins.iter().map(|builder| builder.info).collect(),
            node_plugins: self.node_plugins.clone(),
            strict_upstream: self.strict_upstream,
        }
    }
}
