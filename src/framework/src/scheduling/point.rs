//! The extension points of the Scheduling Framework.

use std::fmt;

/// An extension point, in the order in which a pod passes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionPoint {
    /// May the pod enter the queue?
    PreEnqueue,
    /// Which pod is next?
    QueueSort,
    /// Once for a pod: what Filter will need, and which nodes to look at.
    PreFilter,
    /// May the pod run on this node?
    Filter,
    /// No node fits: can something be done about it?
    PostFilter,
    /// Once for a pod: what Score will need.
    PreScore,
    /// How good is this node?
    Score,
    /// The pod has been given a node, in memory only.
    Reserve,
    /// May it be bound now?
    Permit,
    /// What has to happen before the bind.
    PreBind,
    /// The bind.
    Bind,
    /// The pod is bound.
    PostBind,
}

impl ExtensionPoint {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::PreEnqueue,
        Self::QueueSort,
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::PreScore,
        Self::Score,
        Self::Reserve,
        Self::Permit,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
    ];

    /// Its key in a profile's `plugins`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::PreEnqueue => "preEnqueue",
            Self::QueueSort => "queueSort",
            Self::PreFilter => "preFilter",
            Self::Filter => "filter",
            Self::PostFilter => "postFilter",
            Self::PreScore => "preScore",
            Self::Score => "score",
            Self::Reserve => "reserve",
            Self::Permit => "permit",
            Self::PreBind => "preBind",
            Self::Bind => "bind",
            Self::PostBind => "postBind",
        }
    }

    /// The point of this key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.key() == key)
    }
}

impl fmt::Display for ExtensionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
