//! What a node-level plugin answers about one node, and why not.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::{ClusterState, Name, Shortfall};
use serde::{Deserialize, Serialize};

/// Answer to «may this task run on this node?». The codes are those of the Scheduling Framework.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No objection.
    Fits,
    /// No; evicting tasks from the node could change that.
    Unschedulable(Why),
    /// No; and no eviction on this node changes that.
    Unresolvable(Why),
    /// The plugin failed; the whole search ends.
    Error(Why),
}

impl Why {
    /// The sentence, in Kubernetes' words.
    pub fn text(&self, cluster: &ClusterState) -> String {
        match self {
            Self::Says(text) => (*text).to_owned(),
            Self::Told(text) => text.to_string(),
            Self::Short(short) => match cluster.names().name(short.resource).as_str() {
                "pods" => "Too many pods".to_owned(),
                name => format!("Insufficient {name}"),
            },
        }
    }
}

impl Verdict {
    /// Why not, unless it fits.
    pub fn why(self) -> Option<Why> {
        match self {
            Self::Fits => None,
            Self::Unschedulable(why) | Self::Unresolvable(why) | Self::Error(why) => Some(why),
        }
    }
}

/// The objection of one plugin to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// A sentence in Kubernetes' words, such as `node(s) were unschedulable`.
    Says(&'static str),
    /// A sentence that was made for the occasion.
    Told(Name),
    /// The node has not enough of a resource.
    Short(Shortfall),
}

/// Why no node was found: how many nodes made which objection, and how near the best of them came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// Nodes that were asked.
    pub nodes: u32,
    /// Objections in words, with the number of nodes that made them.
    pub objections: BTreeMap<String, u32>,
    /// For a resource that some node lacked: what was asked, and the most that any of those nodes had free.
    pub nearest: Option<Nearest>,
    /// Nodes whose objection no eviction would lift.
    pub unresolvable: u32,
    /// Plugins that objected, by name: what they wait for may change the answer.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub plugins: BTreeSet<String>,
    /// What went wrong, if a plugin failed rather than objected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The node that came nearest to having enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nearest {
    /// The resource that it lacked.
    pub resource: String,
    /// What the task asks for, as written.
    pub asked: String,
    /// What the node has free, as written.
    pub free: String,
    /// The node.
    pub node: String,
}

/// Counts objections while a search goes from node to node; words are made once at the end.
#[derive(Default)]
pub(crate) struct RefusalCount {
    nodes: u32,
    unresolvable: u32,
    says: BTreeMap<&'static str, u32>,
    told: BTreeMap<Name, u32>,
    short: BTreeMap<krafla_model::ResourceId, u32>,
    nearest: Option<(Shortfall, krafla_model::NodeId)>,
    pub(crate) plugins: BTreeSet<&'static str>,
    pub(crate) error: Option<String>,
}

impl RefusalCount {
    pub(crate) fn add(&mut self, node: krafla_model::NodeId, verdict: Verdict) {
        self.nodes += 1;
        let why = match verdict {
            Verdict::Fits => return,
            Verdict::Unschedulable(why) => why,
            Verdict::Unresolvable(why) | Verdict::Error(why) => {
                self.unresolvable += 1;
                why
            }
        };
        match why {
            Why::Says(text) => *self.says.entry(text).or_default() += 1,
            Why::Told(text) => *self.told.entry(text).or_default() += 1,
            Why::Short(short) => {
                *self.short.entry(short.resource).or_default() += 1;
                let free = |s: &Shortfall| s.limit.saturating_sub(s.used);
                if self.nearest.is_none_or(|(best, _)| best.resource == short.resource && free(&short) > free(&best)) {
                    self.nearest = Some((short, node));
                }
            }
        }
    }

    /// A node that lacks one resource lacks another too.
    pub(crate) fn also_short(&mut self, short: Shortfall) {
        *self.short.entry(short.resource).or_default() += 1;
    }

    /// So many nodes that object alike, with something else than that they lack a resource.
    pub(crate) fn add_many(&mut self, n: u32, verdict: Verdict) {
        self.nodes += n;
        self.unresolvable += if matches!(verdict, Verdict::Unschedulable(_)) { 0 } else { n };
        match verdict.why() {
            Some(Why::Says(text)) => *self.says.entry(text).or_default() += n,
            Some(Why::Told(text)) => *self.told.entry(text).or_default() += n,
            Some(Why::Short(_)) | None => {}
        }
    }

    /// So many nodes that lack all of these.
    pub(crate) fn add_short(&mut self, n: u32, unresolvable: bool, over: &[krafla_model::ResourceId]) {
        self.nodes += n;
        self.unresolvable += if unresolvable { n } else { 0 };
        for &resource in over {
            *self.short.entry(resource).or_default() += n;
        }
    }

    /// The node that came nearest to having enough.
    pub(crate) fn set_nearest(&mut self, nearest: Option<(Shortfall, krafla_model::NodeId)>) {
        self.nearest = nearest;
    }

    pub(crate) fn into_words(self, cluster: &ClusterState) -> Refusals {
        let names = cluster.names();
        let mut objections: BTreeMap<String, u32> = BTreeMap::new();
        for (text, n) in self.says {
            *objections.entry(text.to_owned()).or_default() += n;
        }
        for (text, n) in self.told {
            *objections.entry(text.to_string()).or_default() += n;
        }
        for (resource, n) in self.short {
            let text = match names.name(resource).as_str() {
                "pods" => "Too many pods".to_owned(),
                name => format!("Insufficient {name}"),
            };
            *objections.entry(text).or_default() += n;
        }
        let nearest = self.nearest.map(|(short, node)| Nearest {
            resource: names.name(short.resource).to_string(),
            asked: names.format(short.resource, short.asked),
            free: names.format(short.resource, short.limit.saturating_sub(short.used).max(0)),
            node: cluster.node(node).name().to_string(),
        });
        Refusals {
            nodes: self.nodes,
            objections,
            nearest,
            unresolvable: self.unresolvable,
            plugins: self.plugins.into_iter().map(str::to_owned).collect(),
            error: self.error,
        }
    }
}

impl std::fmt::Display for Refusals {
    /// Kubernetes' words, which scripts and autoscalers read: `0/5 nodes are unavailable: 3 Insufficient cpu, 2 ...`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(error) = &self.error {
            return f.write_str(error);
        }
        write!(f, "0/{} nodes are unavailable", self.nodes)?;
        for (i, (text, n)) in self.objections.iter().enumerate() {
            write!(f, "{} {n} {text}", if i == 0 { ":" } else { "," })?;
        }
        if let Some(near) = &self.nearest {
            write!(
                f,
                "; needs {} {}, the nearest node {} has {} free",
                near.asked, near.resource, near.node, near.free
            )?;
        }
        Ok(())
    }
}
