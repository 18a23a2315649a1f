//! The compiled configuration: which actions run, and which plugins they ask, in which order.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::{Name, Unchecked};

use super::arguments::{Arguments, Value};
use super::switches::Switches;
use crate::registry::Registry;
use crate::scheduling::point::ExtensionPoint;
use crate::scheduling::profile::{Profile, ProfileEntry};
use crate::scheduling::queue::QueueTimes;
use crate::scheduling::search::FIT;

/// The plugin that makes room for pods that are scheduled one by one.
pub const DEFAULT_PREEMPTION: &str = "DefaultPreemption";

/// The action that schedules pods one by one.
pub const SCHEDULE_ONE: &str = "schedule-one";

/// What a scheduler runs by. Everything in it is known to exist and to be of the right type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Actions in the order in which a session runs them; each at most once.
    pub actions: Vec<String>,
    /// Tiers of plugins; an earlier tier decides before a later one. A plugin stands in at most one.
    pub tiers: Vec<Tier>,
    /// Arguments of actions by the action's name.
    pub configurations: BTreeMap<String, Arguments>,
    /// Profiles of a KubeSchedulerConfiguration; where there are any, they find the nodes instead of the tiers' plugins.
    pub profiles: Vec<ProfilePolicy>,
    /// HTTP services that help the profiles, in the order in which they are asked.
    pub extenders: Vec<ExtenderPolicy>,
    /// Whether pods are scheduled one by one by the queue of kube-scheduler, without queues and jobs.
    pub one_by_one: bool,
    /// Times of that queue.
    pub queue_times: QueueTimes,
    /// Where load figures come from, for plugins that use them. Empty: nowhere.
    pub metrics: Arguments,
}

/// An extender: an HTTP service that takes part in decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtenderPolicy {
    /// Where it is; a verb is appended to it.
    pub url_prefix: String,
    /// What it is asked with the nodes that filters let pass.
    pub filter_verb: Option<String>,
    /// What it is asked with the victims of a preemption.
    pub preempt_verb: Option<String>,
    /// What it is asked for scores from 0 to 10.
    pub prioritize_verb: Option<String>,
    /// What these are multiplied by.
    pub weight: i64,
    /// What it is asked to bind a pod. At most one extender has it.
    pub bind_verb: Option<String>,
    /// Whether it is called with TLS.
    pub enable_https: bool,
    /// With which certificates.
    pub tls: Option<ExtenderTls>,
    /// Longest wait for an answer, in milliseconds.
    pub http_timeout_ms: u64,
    /// Whether it is sent names of nodes instead of whole nodes.
    pub node_cache_capable: bool,
    /// The resources whose pods it is asked about; none: it is asked about all pods.
    pub managed_resources: Vec<ManagedResource>,
    /// Whether pods may be placed without its answer.
    pub ignorable: bool,
}

/// TLS of an extender. Empty texts are not given; `*_data` are base64 and go before files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtenderTls {
    /// Whether its certificate is not checked.
    pub insecure: bool,
    /// The name that its certificate has to have, if not that of the URL.
    pub server_name: String,
    /// The client's certificate.
    pub cert_file: String,
    /// The client's key.
    pub key_file: String,
    /// Who may have signed its certificate.
    pub ca_file: String,
    /// As `cert_file`.
    pub cert_data: String,
    /// As `key_file`.
    pub key_data: String,
    /// As `ca_file`.
    pub ca_data: String,
}

/// A resource that an extender manages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedResource {
    /// Its name.
    pub name: String,
    /// Whether NodeResourcesFit leaves it to the extender.
    pub ignored_by_scheduler: bool,
}

/// Plugins that decide together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tier {
    /// In the order in which they are asked.
    pub plugins: Vec<PluginEntry>,
}

/// One profile: the node-level plugins for pods that name it as their scheduler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfilePolicy {
    /// Its name, which pods have in `spec.schedulerName`.
    pub name: String,
    /// `percentageOfNodesToScore`, 0 to 100; `None` if it is not given.
    pub percentage_of_nodes_to_score: Option<u8>,
    /// For each point its plugins in order, with their weights (1 where a point has none).
    pub points: BTreeMap<ExtensionPoint, Vec<(String, i64)>>,
    /// Arguments by plugin; those without any are left out.
    pub arguments: BTreeMap<String, Value>,
}

/// The name of the profile of a configuration that names none.
pub const DEFAULT_PROFILE: &str = "default-scheduler";

impl ProfilePolicy {
    /// kube-scheduler's profile for when nothing is written: every plugin that is enabled by default, at all of its
    /// points, with its weight.
    #[must_use]
    pub fn default_profile(registry: &Registry) -> Self {
        let mut points: BTreeMap<ExtensionPoint, Vec<(String, i64)>> = BTreeMap::new();
        for info in registry.node_plugins.iter().map(|builder| builder.info) {
            let Some(weight) = info.default_weight else { continue };
            for &point in info.points {
                let weight = if point == ExtensionPoint::Score { weight } else { 1 };
                points.entry(point).or_default().push((info.name.to_owned(), weight));
            }
        }
        Self { name: DEFAULT_PROFILE.to_owned(), points, ..Self::default() }
    }

    /// Builds the plugins. Names that the registry lacks, and arguments that a plugin does not take, were refused by the
    /// compiler.
    #[allow(clippy::cast_precision_loss, reason = "weights of at most a million")]
    pub(crate) fn build(&self, registry: &Registry) -> Profile {
        let names: BTreeSet<&String> = self.points.values().flatten().map(|(name, _)| name).collect();
        let mut entries = Vec::new();
        let mut places: BTreeMap<&String, usize> = BTreeMap::new();
        for name in names {
            let Some(builder) = registry.node_plugins.iter().find(|builder| builder.info.name == name) else {
                continue;
            };
            let arguments = self.arguments.get(name).unwrap_or(&Value::Null);
            let Ok(plugin) = builder.build.run(arguments) else { continue };
            let scorers = self.points.get(&ExtensionPoint::Score);
            let weight =
                scorers.into_iter().flatten().find(|(known, _)| known == name).map_or(0, |(_, weight)| *weight);
            let points = self.points.iter().filter(|(_, members)| members.iter().any(|(known, _)| known == name));
            let points = points.map(|(point, _)| *point).collect();
            places.insert(name, entries.len());
            entries.push(ProfileEntry::at(plugin, points, weight as f64));
        }
        let place = |(name, _): &(String, i64)| places.get(name).copied();
        let order = self.points.iter().map(|(point, members)| (*point, members.iter().filter_map(place).collect()));
        let order = order.collect();
        Profile::ordered(self.name.as_str().into(), self.percentage_of_nodes_to_score, entries, order)
            .with_binding(&registry.binding_plugins)
    }
}

/// One plugin in a tier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginEntry {
    /// Name in the catalogue.
    pub name: String,
    /// Where it is asked.
    pub switches: Switches,
    /// What it was told.
    pub arguments: Arguments,
}

impl Policy {
    /// Volcano's own configuration for when there is no file. (Its helm chart ships another one.)
    #[must_use]
    pub fn builtin() -> Self {
        let tier = |names: &[&str]| Tier { plugins: names.iter().map(|name| PluginEntry::named(name)).collect() };
        Self {
            actions: ["enqueue", "allocate", "backfill"].map(str::to_owned).into(),
            tiers: vec![
                tier(&["priority", "gang", "conformance"]),
                tier(&["overcommit", "drf", "predicates", "proportion", "nodeorder"]),
            ],
            ..Self::default()
        }
    }

    /// The same without queues and jobs: each pod is scheduled by its profile alone, as kube-scheduler does.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { actions: vec![SCHEDULE_ONE.to_owned()], tiers: Vec::new(), one_by_one: true, ..self }
    }

    /// The arguments of an action; none when nothing was written for it.
    #[must_use]
    pub fn action_arguments(&self, action: &str) -> &Arguments {
        const NONE: &Arguments = &Arguments::new();
        self.configurations.get(action).unwrap_or(NONE)
    }

    /// The entry of a plugin, in whichever tier.
    #[must_use]
    pub fn plugin(&self, name: &str) -> Option<&PluginEntry> {
        self.plugins().map(|(_, entry)| entry).find(|entry| entry.name == name)
    }

    /// What nodes are not asked for, by profile: `ignoredResources` and `ignoredResourceGroups` of NodeResourcesFit. Empty
    /// if no profile says so.
    #[must_use]
    pub fn unchecked(&self) -> BTreeMap<Name, Unchecked> {
        let of = |profile: &ProfilePolicy| {
            let texts = |key: &str| -> BTreeSet<Name> {
                let Some(Value::Map(fit)) = profile.arguments.get(FIT) else { return BTreeSet::new() };
                let Some(Value::List(list)) = fit.get(key) else { return BTreeSet::new() };
                list.iter()
                    .filter_map(|value| {
                        if let Value::Text(text) = value { Some(&**text) } else { None }.map(Name::from)
                    })
                    .collect()
            };
            (
                Name::from(&*profile.name),
                Unchecked { names: texts("ignoredResources"), groups: texts("ignoredResourceGroups") },
            )
        };
        let all: BTreeMap<Name, Unchecked> = self.profiles.iter().map(of).collect();
        if all.values().all(|unchecked| *unchecked == Unchecked::default()) { BTreeMap::new() } else { all }
    }

    /// Every plugin with the number of its tier, from 0, in the order of the file.
    pub fn plugins(&self) -> impl Iterator<Item = (usize, &PluginEntry)> {
        self.tiers.iter().enumerate().flat_map(|(tier, plugins)| plugins.plugins.iter().map(move |entry| (tier, entry)))
    }
}

impl PluginEntry {
    /// A plugin with every switch and argument at its default.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}
