//! Which keys stand at which level of a policy, and what to say of one that does not belong.

use crate::conf::names::{list, nearest, shown};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Tree};

use Level::{Collector, PluginConfig, Plugins, Profile, Prometheus, Provider, Secret, Set, Token, Top};

pub(super) use crate::conf::kube::fields::get;

/// A level of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Top,
    Profile,
    Plugins,
    Set,
    PluginConfig,
    Collector,
    Provider,
    Prometheus,
    Token,
    Secret,
}

const LEVELS: [Level; 10] = [Top, Profile, Plugins, Set, PluginConfig, Collector, Provider, Prometheus, Token, Secret];

/// Keys that differ from those of the descheduler in one way or another, and what they are there.
const MEANT: &[(&str, &str)] = &[
    ("maxNoOfPodsToEvictPerCycle", "maxNoOfPodsToEvictTotal"),
    ("maxPodsToEvictPerNode", "maxNoOfPodsToEvictPerNode"),
    ("maxPodsToEvictPerNamespace", "maxNoOfPodsToEvictPerNamespace"),
    ("maxPodsToEvictTotal", "maxNoOfPodsToEvictTotal"),
    ("maxNoOfPodsToTotal", "maxNoOfPodsToEvictTotal"),
];

impl Level {
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Top => &[
                "apiVersion",
                "kind",
                "profiles",
                "nodeSelector",
                "maxNoOfPodsToEvictPerNode",
                "maxNoOfPodsToEvictPerNamespace",
                "maxNoOfPodsToEvictTotal",
                "evictionFailureEventNotification",
                "gracePeriodSeconds",
                "metricsCollector",
                "metricsProviders",
            ],
            Profile => &["name", "pluginConfig", "plugins"],
            Plugins => &["presort", "sort", "deschedule", "balance", "filter", "preevictionfilter"],
            Set => &["enabled", "disabled"],
            PluginConfig => &["name", "args"],
            Collector => &["enabled"],
            Provider => &["source", "prometheus"],
            Prometheus => &["url", "authToken"],
            Token => &["secretReference"],
            Secret => &["namespace", "name"],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Top => "the policy",
            Profile => "a profile",
            Plugins => "`plugins`",
            Set => "an extension point",
            PluginConfig => "an entry of `pluginConfig`",
            Collector => "`metricsCollector`",
            Provider => "an entry of `metricsProviders`",
            Prometheus => "`prometheus`",
            Token => "`authToken`",
            Secret => "`secretReference`",
        }
    }

    const fn place(self) -> &'static str {
        match self {
            Top => "at the top of the file, beside `profiles`",
            Profile => "into an entry of `profiles`",
            Plugins => "under `plugins:` of a profile",
            Set => "under an extension point, such as `balance:`, in `plugins:`",
            PluginConfig => "into an entry of `pluginConfig` of a profile",
            Collector => "under `metricsCollector:`",
            Provider => "into an entry of `metricsProviders`",
            Prometheus => "under `prometheus:` of a provider",
            Token => "under `authToken:` of `prometheus`",
            Secret => "under `secretReference:` of `authToken`",
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Top => "write `profiles:`",
            Profile => "write `- name: …`",
            Plugins => "write an extension point, such as `balance:`",
            Set => "write `enabled:` and below it a list of names",
            PluginConfig => "write `- name: …` and `args:`",
            Collector => "write `enabled: true`",
            Provider => "write `- source: KubernetesMetrics`",
            Prometheus => "write `url: …`",
            Token => "write `secretReference:`",
            Secret => "write `namespace: …` and `name: …`",
        }
    }
}

/// The entries of the mapping at a level, once those that do not belong have been reported.
pub(super) fn entries<'n>(reader: &mut Reader<'_>, level: Level, node: &'n Node) -> Option<&'n [Entry]> {
    let entries = reader.entries(node, level.name(), level.example())?;
    for entry in entries.iter().filter(|entry| !level.fields().contains(&entry.key.as_str())) {
        stranger(reader, level, entry);
    }
    Some(entries)
}

fn stranger(reader: &mut Reader<'_>, level: Level, entry: &Entry) {
    let key = shown(&entry.key);
    if let Some((_, meant)) = MEANT.iter().find(|(wrong, _)| *wrong == entry.key && level == Top) {
        let message = format!("{} has no field {key}", level.name());
        reader.error(&entry.at, message, "unknown", Some(format!("did you mean `{meant}`?")));
        return;
    }
    if let Some(home) = LEVELS.into_iter().find(|home| home.fields().contains(&entry.key.as_str())) {
        let message = format!("{key} does not belong to {}", level.name());
        reader.error(&entry.at, message, "wrong depth", Some(format!("it belongs {}", home.place())));
        return;
    }
    let help = if level == Top && entry.key == "strategies" {
        Some("that is version v1alpha1; strategies are plugins of a profile now".to_owned())
    } else if level == PluginConfig {
        Some("what a plugin is told stands under `args:`".to_owned())
    } else {
        let near = nearest(&entry.key, level.fields().iter().copied()).map(|near| format!("did you mean `{near}`?"));
        near.or_else(|| list("fields", level.fields()))
    };
    reader.error(&entry.at, format!("{} has no field {key}", level.name()), "unknown", help);
}

/// The items of a list.
pub(super) fn items<'n>(reader: &mut Reader<'_>, entry: Option<&'n Entry>, example: &str) -> &'n [Node] {
    let Some(entry) = entry.filter(|entry| !matches!(entry.value.tree, Tree::Null)) else { return &[] };
    reader.items(&entry.value, &shown(&entry.key), example).unwrap_or_default()
}
