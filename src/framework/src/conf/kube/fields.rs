//! Which keys stand at which level, and what to say of one that does not belong.

use crate::conf::names::{list, nearest, shown};
use crate::conf::reader::Reader;
use crate::conf::tree::{Entry, Node, Span, Tree};

use Level::{
    ClientConnection, Extender, LeaderElection, ManagedResource, Plugin, PluginConfig, Plugins, Profile, Set, Tls, Top,
};

/// A level of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Top,
    LeaderElection,
    ClientConnection,
    Profile,
    Plugins,
    Set,
    Plugin,
    PluginConfig,
    Extender,
    Tls,
    ManagedResource,
}

/// Every level; where a key may stand at several, the first is named.
const LEVELS: [Level; 11] = [
    Top,
    Profile,
    Plugins,
    Set,
    Plugin,
    PluginConfig,
    Extender,
    LeaderElection,
    ClientConnection,
    Tls,
    ManagedResource,
];

impl Level {
    /// The keys that may stand there.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Top => &[
                "apiVersion",
                "kind",
                "profiles",
                "extenders",
                "parallelism",
                "percentageOfNodesToScore",
                "podInitialBackoffSeconds",
                "podMaxBackoffSeconds",
                "leaderElection",
                "clientConnection",
                "enableProfiling",
                "enableContentionProfiling",
                "delayCacheUntilActive",
            ],
            LeaderElection => &[
                "leaderElect",
                "leaseDuration",
                "renewDeadline",
                "retryPeriod",
                "resourceLock",
                "resourceName",
                "resourceNamespace",
            ],
            ClientConnection => &["kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"],
            Profile => &["schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"],
            Plugins => &[
                "multiPoint",
                "preEnqueue",
                "queueSort",
                "preFilter",
                "filter",
                "postFilter",
                "preScore",
                "score",
                "reserve",
                "permit",
                "preBind",
                "bind",
                "postBind",
                "placementGenerate",
                "placementScore",
                "placementFeasible",
                "podGroupPostFilter",
            ],
            Set => &["enabled", "disabled"],
            Plugin => &["name", "weight"],
            PluginConfig => &["name", "args"],
            Extender => &[
                "urlPrefix",
                "filterVerb",
                "preemptVerb",
                "prioritizeVerb",
                "weight",
                "bindVerb",
                "enableHTTPS",
                "tlsConfig",
                "httpTimeout",
                "nodeCacheCapable",
                "managedResources",
                "ignorable",
            ],
            Tls => &["insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"],
            ManagedResource => &["name", "ignoredByScheduler"],
        }
    }

    /// What has them: «a profile».
    pub(super) const fn name(self) -> &'static str {
        match self {
            Top => "the configuration",
            LeaderElection => "`leaderElection`",
            ClientConnection => "`clientConnection`",
            Profile => "a profile",
            Plugins => "`plugins`",
            Set => "an extension point",
            Plugin => "an entry of `enabled` or `disabled`",
            PluginConfig => "an entry of `pluginConfig`",
            Extender => "an extender",
            Tls => "`tlsConfig`",
            ManagedResource => "an entry of `managedResources`",
        }
    }

    /// Where that is, for advice: «it belongs …».
    const fn place(self) -> &'static str {
        match self {
            Top => "at the top of the file, beside `profiles`",
            LeaderElection => "under `leaderElection:`",
            ClientConnection => "under `clientConnection:`",
            Profile => "into an entry of `profiles`, beside `plugins`",
            Plugins => "under `plugins:` of a profile",
            Set => "under an extension point, such as `score:`, in `plugins:`",
            Plugin => "into an entry of `enabled`, under an extension point in `plugins:`",
            PluginConfig => "into an entry of `pluginConfig` of a profile",
            Extender => "into an entry of `extenders`",
            Tls => "under `tlsConfig:` of an extender",
            ManagedResource => "into an entry of `managedResources` of an extender",
        }
    }

    /// The key under which this level is, where a file may have it beside a key that belongs there.
    const fn key(self) -> Option<&'static str> {
        match self {
            LeaderElection => Some("leaderElection"),
            ClientConnection => Some("clientConnection"),
            Plugins => Some("plugins"),
            Tls => Some("tlsConfig"),
            PluginConfig => Some("pluginConfig"),
            Profile => Some("profiles"),
            Extender => Some("extenders"),
            Set | Plugin | Top | ManagedResource => None,
        }
    }

    /// What to write where something else stands.
    const fn example(self) -> &'static str {
        match self {
            Top => "write `profiles:`",
            LeaderElection => "write `leaderElect: true`",
            ClientConnection => "write `qps: 50`",
            Profile => "write `- schedulerName: …`",
            Plugins => "write an extension point, such as `score:`",
            Set => "write `enabled:` and below it a list of `- name: …`",
            Plugin => "write `name: …`",
            PluginConfig => "write `- name: …` and `args:`",
            Extender => "write `- urlPrefix: …`",
            Tls => "write `caFile: …`",
            ManagedResource => "write `- name: …`",
        }
    }
}

/// Fields that went with an older version, and what to do instead.
const GONE: &[(&str, &str)] = &[
    ("algorithmSource", "take it out, and write `profiles`"),
    ("bindTimeoutSeconds", "it is an argument of VolumeBinding, in `pluginConfig`"),
    ("disablePreemption", "disable `DefaultPreemption` at `postFilter`"),
    ("hardPodAffinitySymmetricWeight", "it is `hardPodAffinityWeight` of InterPodAffinity, in `pluginConfig`"),
    ("healthzBindAddress", "take it out; the flag is --healthz-address"),
    ("metricsBindAddress", "take it out; the flag is --listen-address"),
    ("unreserve", "it is part of `reserve`"),
];

/// The entries of the mapping at a level, once those that do not belong have been reported. `above` is the key that it
/// stands under.
pub(super) fn entries<'n>(
    reader: &mut Reader<'_>,
    level: Level,
    node: &'n Node,
    above: Option<&Span>,
) -> Option<&'n [Entry]> {
    let Tree::Map(entries) = &node.tree else {
        if matches!(node.tree, Tree::Null) {
            return Some(&[]);
        }
        reader.wrong_shape(node, level.name(), "a mapping", level.example());
        return None;
    };
    for entry in entries.iter().filter(|entry| !level.fields().contains(&entry.key.as_str())) {
        stranger(reader, level, node, entry, above);
    }
    Some(entries)
}

/// A value of a mapping; `null` is none.
pub(in crate::conf) fn get<'n>(entries: &'n [Entry], key: &str) -> Option<&'n Entry> {
    entries.iter().find(|entry| entry.key == key).filter(|entry| !matches!(entry.value.tree, Tree::Null))
}

fn stranger(reader: &mut Reader<'_>, level: Level, node: &Node, entry: &Entry, above: Option<&Span>) {
    let key = shown(&entry.key);
    if let Some((_, help)) = GONE.iter().find(|(gone, _)| *gone == entry.key && matches!(level, Top | Plugins)) {
        let message = format!("{key} is a field of older versions");
        reader.error(&entry.at, message, "not in v1", Some((*help).to_owned()));
        return;
    }
    if let Some(home) = LEVELS.into_iter().find(|home| home.fields().contains(&entry.key.as_str())) {
        let (message, mut help) = (format!("{key} does not belong to {}", level.name()), String::new());
        let beside = home.key().and_then(|key| node.get(key)).map(|entry| &entry.at);
        match (level, home) {
            (Profile, Plugin) => help.push_str("the name of a profile is its `schedulerName`"),
            (Plugins | Set | Plugin | PluginConfig, Profile) if let Some(above) = above => {
                let line = reader.line_of(above);
                help = format!("it belongs to the profile, one level to the left of here: beside line {line}");
            }
            _ => {
                help = format!("it belongs {}", home.place());
                if let Some(at) = beside {
                    help.push_str(&format!(" (line {})", reader.line_of(at)));
                }
            }
        }
        reader.error(&entry.at, message, "wrong depth", Some(help));
        return;
    }
    let fields = level.fields();
    let near = nearest(&entry.key, fields.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let elsewhere = || {
        let in_level = |home: &Level| nearest(&entry.key, home.fields().iter().copied()).is_some();
        LEVELS.into_iter().find(in_level).and_then(|home| {
            nearest(&entry.key, home.fields().iter().copied())
                .map(|near| format!("if `{near}` is meant, it belongs {}", home.place()))
        })
    };
    let help = near.or_else(elsewhere).or_else(|| match level {
        PluginConfig => Some("what a plugin is told stands under `args:`".to_owned()),
        Plugins => {
            Some("write `multiPoint` or an extension point, such as `preFilter`, `filter` or `score`".to_owned())
        }
        _ => list("fields", fields),
    });
    reader.error(&entry.at, format!("{} has no field {key}", level.name()), "unknown", help);
}
