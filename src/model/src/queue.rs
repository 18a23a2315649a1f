//! Queues: who may use how much, as a tree.

use std::collections::BTreeSet;

use ordered_float::OrderedFloat;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::ids::{JobId, QueueId};
use crate::job::Held;
use crate::name::Name;
use crate::resources::{Amounts, Limits, Resources};
use crate::time::Time;

/// Name of the queue above all others.
pub const ROOT_QUEUE: &str = "root";
/// Name of the queue of jobs that name none.
pub const DEFAULT_QUEUE: &str = "default";

/// State of a queue. A queue whose state nobody has written counts as open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueState {
    /// Takes jobs and runs them.
    #[default]
    Open,
    /// Takes no jobs; what runs may end.
    Closing,
    /// Takes no jobs, and none run.
    Closed,
    /// Contradictory.
    Unknown,
}

impl QueueState {
    /// The state's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::Closing => "Closing",
            Self::Closed => "Closed",
            Self::Unknown => "Unknown",
        }
    }
}

/// Which node groups a queue may and would use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroupAffinity {
    /// Groups that it may use.
    pub required: Vec<Name>,
    /// Groups that it would rather use; best first.
    pub preferred: Vec<Name>,
    /// Groups that it may not use.
    pub anti_required: Vec<Name>,
    /// Groups that it would rather not use.
    pub anti_preferred: Vec<Name>,
}

/// One level of a place in the hierarchy of `drf`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HierarchyLevel {
    /// The level's name; levels of equal names below the same level are one.
    pub name: Name,
    /// What its share is divided by; at least 1.
    #[serde(with = "crate::plain_number")]
    pub weight: OrderedFloat<f64>,
}

/// A queue as the edge reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSpec {
    /// Its name, which is its identity.
    pub name: Name,
    /// When it was made.
    pub created: Time,
    /// Its part of what is shared by weight.
    pub weight: u32,
    /// Its parent's name; empty is `root`.
    pub parent: Name,
    /// Order among queues; larger first.
    pub priority: i32,
    /// Whether others may take back what it uses beyond its due.
    pub reclaimable: bool,
    /// Its state.
    pub state: QueueState,
    /// What it may use at most; a resource that is not named is unlimited.
    pub capability: Amounts,
    /// What it is due.
    pub deserved: Amounts,
    /// What is kept for it even when it does not use it.
    pub guarantee: Amounts,
    /// Its node groups; `None` if it has no affinity at all.
    pub node_groups: Option<NodeGroupAffinity>,
    /// Limits in single node groups: group, then amounts.
    pub node_group_limits: Vec<(Name, Amounts)>,
    /// Why the limits in node groups cannot be read, if they cannot.
    pub node_group_limits_error: Option<String>,
    /// Its place in the hierarchy of `drf`, from the root to itself; empty if nobody has said.
    pub hierarchy: Vec<HierarchyLevel>,
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self {
            name: Name::default(),
            created: Time::default(),
            weight: 1,
            parent: Name::default(),
            priority: 0,
            reclaimable: true,
            state: QueueState::Open,
            capability: Amounts::default(),
            deserved: Amounts::default(),
            guarantee: Amounts::default(),
            node_groups: None,
            node_group_limits: Vec::new(),
            node_group_limits_error: None,
            hierarchy: Vec::new(),
        }
    }
}

/// A queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The queue as it arrived.
    pub spec: QueueSpec,
    /// `capability`, interned.
    pub capability: Limits,
    /// `deserved`, interned.
    pub deserved: Resources,
    /// `guarantee`, interned.
    pub guarantee: Resources,
    /// Limits in single node groups, interned.
    pub node_group_limits: Vec<(Name, Limits)>,
    pub(crate) jobs: BTreeSet<JobId>,
    pub(crate) held: Held,
    pub(crate) path: SmallVec<[QueueId; 4]>,
}

impl Queue {
    /// Whether it takes jobs and places their pods.
    pub fn is_open(&self) -> bool {
        self.spec.state == QueueState::Open
    }

    /// Jobs that name it, by id.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().copied()
    }

    /// How many jobs name it.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// What the tasks of its jobs hold and ask for; jobs of queues below it included.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Its ancestors and itself, from the top. A queue whose parent is missing, or that is its own ancestor, has only
    /// itself here.
    pub fn path(&self) -> &[QueueId] {
        &self.path
    }
}
