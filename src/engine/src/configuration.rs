//! The configuration in force: compiled before it is used, and kept when its successor is wrong.

use krafla_framework::conf::compile::compile;
use krafla_framework::conf::policy::ProfilePolicy;
use krafla_framework::conf::problem::{Problem, Severity};
use krafla_framework::{Action, PluginSet, Policy, Registry};

use crate::engine::Options;

/// A configuration, built.
pub struct Configuration {
    /// What was read.
    pub policy: Policy,
    pub(crate) plugins: PluginSet,
    pub(crate) actions: Vec<Box<dyn Action>>,
    pub(crate) action_names: Vec<&'static str>,
    /// The text it came from; `None` for the built-in one.
    text: Option<String>,
}

/// How the configuration file is doing, for a metric and for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigurationHealth {
    /// Changes that were put in force.
    pub accepted: u64,
    /// Changes that were refused.
    pub refused: u64,
    /// Whether the newest content is the one in force; the alarm rings when it is not.
    pub current: bool,
    /// What was wrong with the newest content, or odd about it, rendered with its place.
    pub problems: Vec<String>,
}

/// With `profile_only` the policy without queues and jobs; one that has no profile gets kube-scheduler's default one.
fn restrict(policy: Policy, registry: &Registry, profile_only: bool) -> Policy {
    if !profile_only {
        return policy;
    }
    let mut policy = policy.one_by_one();
    if policy.profiles.is_empty() {
        policy.profiles.push(ProfilePolicy::default_profile(registry));
    }
    policy
}

impl Configuration {
    /// Builds what a policy names.
    pub fn new(policy: Policy, registry: &Registry) -> Self {
        let plugins = PluginSet::build(&policy, registry);
        let actions: Vec<Box<dyn Action>> = policy
            .actions
            .iter()
            .filter_map(|name| registry.actions.iter().find(|builder| builder.info.name == name))
            .map(|builder| (builder.build)(policy.action_arguments(builder.info.name)))
            .collect();
        let action_names = actions.iter().map(|action| action.name()).collect();
        Self { policy, plugins, actions, action_names, text: None }
    }

    /// What is in force where nothing was written: Volcano's built-in configuration, or kube-scheduler's.
    pub fn builtin(registry: &Registry, profile_only: bool) -> Self {
        Self::new(restrict(Policy::builtin(), registry, profile_only), registry)
    }

    /// Compiles and builds a text. `Err` has every problem, rendered, if there is an error among them.
    pub fn read(
        text: &str,
        file: &str,
        registry: &Registry,
        profile_only: bool,
    ) -> Result<(Self, Vec<String>), Vec<String>> {
        let compiled = compile(text, file, &registry.catalogue());
        let mut rendered: Vec<String> = compiled.problems.iter().map(|problem| problem.render(text)).collect();
        if compiled.policy.as_ref().is_some_and(|policy| !policy.extenders.is_empty())
            && registry.extender_calls.is_none()
        {
            rendered
                .push("extenders are called on a live cluster only; here pods are placed as if there were none".into());
        }
        match compiled.policy {
            Some(policy) if compiled.problems.iter().all(|p: &Problem| p.severity == Severity::Warning) => {
                let policy = restrict(policy, registry, profile_only);
                Ok((Self { text: Some(text.to_owned()), ..Self::new(policy, registry) }, rendered))
            }
            _ => Err(rendered),
        }
    }

    /// The same configuration with new plugins: the old ones may have been left in the middle of something.
    pub(crate) fn rebuild(old: &Self, registry: &Registry) -> Self {
        Self { text: old.text.clone(), ..Self::new(old.policy.clone(), registry) }
    }

    /// Without actions, where nothing is to be scheduled: what is left finds nodes for a descheduler.
    pub(crate) fn for_engine(mut self, options: &Options) -> Self {
        if options.only_deschedules {
            self.actions.clear();
            self.action_names.clear();
        }
        self
    }

    /// Whether this is what `text` makes: a file that was written again without a change.
    pub fn is_from(&self, text: &str) -> bool {
        self.text.as_deref() == Some(text)
    }

    /// Names of the actions, in order.
    pub fn actions(&self) -> &[&'static str] {
        &self.action_names
    }

    /// The plugins.
    pub fn plugins(&self) -> &PluginSet {
        &self.plugins
    }
}
