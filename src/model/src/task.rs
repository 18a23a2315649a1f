//! A task: one pod, as the scheduler sees it.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::dra::PodClaim;
use crate::ids::{JobId, NodeId, ShapeId};
use crate::name::Name;
use crate::pod::PodPhase;
use crate::pod_details::PodDetails;
use crate::storage::ClaimChoice;
use crate::task_status::TaskStatus;
use crate::time::Time;

/// A share of one GPU device that a task holds: the device's index on its node, and thousandths of it.
pub type DeviceShare = (u8, u16);

/// How a task stands to the gate of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueGate {
    /// It has none, or others beside it, or does not ask for its removal.
    #[default]
    None,
    /// It is the only gate, and the queue has not let the task through.
    Shut,
    /// The queue has let the task through: its room there is kept until it has a node.
    Open,
}

/// A task. What pods of one template have in common is in its [`Shape`](crate::Shape); the rest is here.
#[derive(Clone, Debug)]
pub struct Task {
    /// The pod's identity.
    pub uid: Name,
    /// The pod's name.
    pub name: Name,
    /// Its signature.
    pub shape: ShapeId,
    /// Its job; `None` while its PodGroup is not known, or it has none.
    pub job: Option<JobId>,
    /// The PodGroup that it names.
    pub group: Option<Name>,
    /// When its pod was made.
    pub created: Time,
    /// Its priority within its job.
    pub priority: i32,
    /// The number at the end of its name, which orders the tasks of a job; `None` if it has none.
    pub ordinal: Option<u32>,
    /// How many scheduling gates it carries.
    pub gates: u32,
    /// How it stands to the gate of its queue.
    pub(crate) queue_gate: QueueGate,
    /// Where it stands. Moved only by the state's own operations.
    pub(crate) status: TaskStatus,
    /// The node that it has, had (if it ended) or will have (if pipelined).
    pub(crate) node: Option<NodeId>,
    /// The GPU devices that it holds there, on nodes that model them.
    pub(crate) devices: SmallVec<[DeviceShare; 1]>,
    /// Its claims of devices.
    pub claims: Box<[PodClaim]>,
    /// What was chosen for its claims there.
    pub(crate) choices: Option<Arc<[ClaimChoice]>>,
    /// The node nominated for it, by name.
    pub nominated: Option<Name>,
    /// The phase that its pod reported last.
    pub phase: PodPhase,
    /// When it began to run, as far as is known.
    pub started: Option<Time>,
    /// For how long those ran whose work it goes on with, in milliseconds; `None`: nobody says, and it has no job yet.
    pub attained_ms: Option<i64>,
    /// What only a descheduler asks; `None` where nobody reads it.
    pub details: Option<Arc<PodDetails>>,
    /// Whether its pod was reported as being deleted.
    pub deleting: bool,
    /// When its pod was given its node, as the API says.
    pub scheduled_at: Option<Time>,
    /// Bind attempts refused so far.
    pub refusals: u32,
    /// Not to be tried before this time.
    pub retry_at: Time,
    /// Until then somebody is believed to move its pod who has taken its eviction on.
    pub evacuates_until: Time,
}

impl Task {
    /// Where it stands.
    pub fn status(&self) -> TaskStatus {
        self.status
    }

    /// How it stands to the gate of its queue.
    pub fn queue_gate(&self) -> QueueGate {
        self.queue_gate
    }

    /// Whether it holds room in its queue, which has let it through its gate, and has no node yet.
    pub fn keeps_room_in_its_queue(&self) -> bool {
        self.queue_gate == QueueGate::Open && matches!(self.status, TaskStatus::Gated | TaskStatus::Pending)
    }

    /// The node that it has, had or will have.
    pub fn node(&self) -> Option<NodeId> {
        self.node
    }

    /// The GPU devices that it holds.
    pub fn devices(&self) -> &[DeviceShare] {
        &self.devices
    }

    /// What was chosen for its claims on its node.
    pub fn choices(&self) -> &[ClaimChoice] {
        self.choices.as_deref().unwrap_or_default()
    }

    /// The order of a job's tasks when no plugin has another: by the number at the end of the name, then by age, then
    /// by UID. Tasks without a number come last, so that the order is total; Volcano compares numbers only pairwise.
    pub fn default_order(&self) -> (u32, Time, &Name) {
        (self.ordinal.unwrap_or(u32::MAX), self.created, &self.uid)
    }
}

/// The number after the last `-` of a pod's name, if the name has at least three parts (Volcano's rule, which makes
/// `job-role-3` ordered and `web-3` not).
pub fn ordinal_of(name: &str) -> Option<u32> {
    let (rest, last) = name.rsplit_once('-')?;
    rest.contains('-').then(|| last.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_needs_three_parts_and_a_number() {
        for (name, ordinal) in
            [("job-worker-12", Some(12)), ("web-3", None), ("a-b-x", None), ("", None), ("a--7", Some(7))]
        {
            assert_eq!(ordinal_of(name), ordinal, "{name}");
        }
    }
}
