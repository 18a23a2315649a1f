//! Sub-groups of a job: parts that are placed together, each within one topology domain.

use serde::{Deserialize, Serialize};

use crate::ids::JobId;
use crate::labels::Selector;
use crate::name::Name;

/// A sub-group of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubGroupId {
    /// The job.
    pub job: JobId,
    /// Counts the job's sub-groups; 0 is that of the pods which no policy takes.
    pub index: u32,
}

/// How strictly a topology constraint holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TopologyMode {
    /// Placed within the constraint or not at all.
    #[default]
    Hard,
    /// Placed within the constraint if that is possible.
    Soft,
}

/// `networkTopology` of a PodGroup or of one of its sub-group policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkTopology {
    /// Hard or soft.
    pub mode: TopologyMode,
    /// The highest tier that the pods may span.
    pub highest_tier: Option<u32>,
    /// The same by the tier's name; only one of the two is given.
    pub highest_tier_name: Option<Name>,
}

/// One `subGroupPolicy` of a PodGroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubGroupPolicy {
    /// Its name.
    pub name: Name,
    /// The constraint that each sub-group keeps.
    pub topology: Option<NetworkTopology>,
    /// Pods that a sub-group needs to start.
    pub size: u32,
    /// Sub-groups that the job needs to start.
    pub min_sub_groups: u32,
    /// Which pods it takes; `None` takes all.
    pub selector: Option<Selector>,
    /// Labels whose values tell the sub-groups apart.
    pub match_label_keys: Vec<Name>,
}
