//! What is planned, in order of time; what is planned for one instant keeps the order of planning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use krafla_framework::effect::ClaimsToBind;
use krafla_model::dra::ResourceClaimSpec;
use krafla_model::{Event, Name, Time};

use super::faults::Fault;
use super::objects::Submission;
use super::rollout::Pace;
use super::usage::Use;

/// Something that will happen.
pub enum Happening {
    /// A job is submitted.
    Submit(Box<Submission>),
    /// A bind takes effect.
    BindLands {
        /// The pod.
        pod: usize,
        /// The node.
        node: Name,
        /// What is written for its claims first.
        claims: Vec<ClaimsToBind>,
    },
    /// A bind call fails.
    BindRefused {
        /// The pod.
        pod: usize,
        /// What the API says.
        message: String,
    },
    /// A pod's containers start.
    Starts {
        /// The pod.
        pod: usize,
    },
    /// A pod ends by itself.
    Ends {
        /// The pod.
        pod: usize,
    },
    /// A terminating pod is gone.
    Terminated {
        /// The pod.
        pod: usize,
    },
    /// A controller makes an evicted pod again.
    Recreate {
        /// The pod that it was.
        pod: usize,
    },
    /// Someone else evicts a pod.
    EvictFrom {
        /// Its namespace; `None`: any.
        namespace: Option<Name>,
        /// The pod's name.
        name: Name,
    },
    /// An object that is neither job nor pod changes.
    Object(Box<Event>),
    /// A template of claims of devices is new, or has changed.
    ClaimTemplate(Box<ResourceClaimSpec>),
    /// A job is deleted with its pods.
    DeleteJob {
        /// Its namespace; `None`: any.
        namespace: Option<Name>,
        /// Its name.
        name: Name,
    },
    /// A pod is deleted.
    DeletePod {
        /// Its namespace; `None`: any.
        namespace: Option<Name>,
        /// Its name.
        name: Name,
    },
    /// Someone takes the scheduling gates off pods.
    Ungate {
        /// Their namespace; `None`: any.
        namespace: Option<Name>,
        /// The pod's name, or the job's.
        name: Name,
        /// Whether it is the name of a job.
        whole_job: bool,
    },
    /// Somebody changes what the pods of a job are made from, and they are replaced.
    Rollout {
        /// Its namespace; `None`: any.
        namespace: Option<Name>,
        /// Its name.
        name: Name,
        /// How fast.
        pace: Pace,
    },
    /// The controller of a rollout sees that something has changed.
    RolloutSees {
        /// The job.
        job: usize,
    },
    /// The configuration file changes.
    Configure {
        /// Its name.
        file: String,
        /// Its content.
        text: String,
    },
    /// Something goes wrong from now on.
    Fault(Fault),
    /// A watch that was down is up again.
    WatchReturns,
    /// The scheduler is restarted.
    Restart,
    /// A node or a pod uses more or less from now on.
    Use(Use),
    /// Somebody measures what is used.
    Measure,
    /// The descheduler is told to have a round.
    Deschedule,
    /// Nothing; time stops here for whoever looks.
    Nothing,
}

struct Planned {
    key: Reverse<(Time, u64)>,
    happening: Happening,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// The plan.
#[derive(Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Planned>,
    added: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Time, happening: Happening) {
        self.added += 1;
        self.heap.push(Planned { key: Reverse((at, self.added)), happening });
    }

    pub(super) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |planned| planned.key.0.0)
    }

    pub(super) fn take(&mut self, now: Time) -> Option<Happening> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|planned| planned.happening)
    }
}
