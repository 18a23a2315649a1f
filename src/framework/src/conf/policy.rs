//! The compiled configuration: which actions run, and which plugins they ask, in which order.

use std::collections::BTreeMap;

use super::arguments::Arguments;
use super::switches::Switches;

/// What a scheduler runs by. Everything in it is known to exist and to be of the right type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Actions in the order in which a session runs them; each at most once.
    pub actions: Vec<String>,
    /// Tiers of plugins; an earlier tier decides before a later one. A plugin stands in at most one.
    pub tiers: Vec<Tier>,
    /// Arguments of actions by the action's name.
    pub configurations: BTreeMap<String, Arguments>,
    /// Where load figures come from, for plugins that use them. Empty: nowhere.
    pub metrics: Arguments,
}

/// Plugins that decide together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tier {
    /// In the order in which they are asked.
    pub plugins: Vec<PluginEntry>,
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
            configurations: BTreeMap::new(),
            metrics: Arguments::new(),
        }
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
