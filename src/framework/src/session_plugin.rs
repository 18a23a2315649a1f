//! The session level: Volcano's extension functions, as one trait with neutral defaults.
//!
//! A plugin names the points that it takes part in; tiers and switches of the configuration cut that down. The session
//! combines the answers; the rule stands beside each function.

use krafla_model::subgroup::SubGroupId;
use krafla_model::{ClusterState, JobId, Name, NodeId, QueueId, ResourceId, Resources, TaskId, Time};

use crate::conf::switches::Point;
use crate::rank::Rank;
use crate::reason::Reason;
use crate::reasons::Reasons;
use crate::scheduling::profile::ProfileEntry;
use crate::scheduling::search::Room;
use crate::share::RelativeShare;

/// A vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    /// For it: later tiers are not asked.
    Permit,
    /// No opinion.
    Abstain,
    /// Against it, at once.
    Reject(Box<Reason>),
}

/// Who may be evicted, in the opinion of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Victims {
    /// No opinion.
    Abstain,
    /// These and no others; none at all is a veto.
    Only(Vec<TaskId>),
}

/// A running task that should not be where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwanted {
    /// The task.
    pub task: TaskId,
    /// Why, with the numbers.
    pub why: String,
}

/// What a job that stands at the door could get of others. Without an action that evicts, only what nobody holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freeable {
    /// In its own queue, by preemption.
    pub in_queue: Resources,
    /// In other queues, by reclaim.
    pub elsewhere: Resources,
    /// What admission keeps for lower jobs of its queue that hold nothing yet: nobody has to go for that.
    pub kept_for_lower: Resources,
}

/// For whom victims are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictedFor {
    /// A task, within its queue.
    Queue(TaskId),
    /// A task of another queue.
    OtherQueue(TaskId),
    /// A whole job.
    WholeJob(EvictionKind, JobId),
}

/// How the plugins' answers on victims combine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimVotes {
    /// The first tier that has an opinion decides, also if it agrees on nobody.
    #[default]
    Veto,
    /// As in Volcano: an empty answer ends its tier and hands over to the next, and after two answers that have nobody in
    /// common the next one of the tier begins anew.
    Volcano,
}

/// Since when one job is known to evict nobody whom another may not evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// It is not known.
    Unknown,
    /// As the cluster is now: who else is evicted may change it.
    Now,
    /// Whoever else is evicted.
    Always,
}

/// What an eviction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionKind {
    /// A job against others of its queue.
    GangPreempt,
    /// A job against other queues.
    GangReclaim,
}

/// A domain of the network topology with the nodes below it: Volcano's HyperNode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: Name,
    /// Nodes in it, in tie order.
    pub nodes: Vec<NodeId>,
}

/// What topology domains are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To place pods on what is free.
    Allocate,
    /// To make room by evictions.
    Evict,
}

/// A condition that a plugin wants on a PodGroup when the session closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobCondition {
    /// The job.
    pub job: JobId,
    /// `Unschedulable` or `Scheduled`.
    pub kind: &'static str,
    /// The stable reason.
    pub reason: String,
    /// The sentence.
    pub message: String,
}

/// A session-level plugin.
///
/// State is its own; it changes only in the hooks that take `&mut self`. Everything else is a pure question about the cluster.
#[allow(unused_variables, reason = "the names document the neutral defaults")]
pub trait SessionPlugin: Send {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// The points that it takes part in.
    fn points(&self) -> &'static [Point];

    /// Node-level plugins that it puts into the profile, in order. Called once for each configuration. Filters are
    /// guarded by `enablePredicate`, scores by `enableNodeOrder`.
    fn node_plugins(&self) -> Vec<ProfileEntry> {
        Vec::new()
    }

    /// A session begins.
    fn open(&mut self, cluster: &ClusterState) {}

    /// An action of this name is about to begin; those before it have done their part.
    fn before_action(&mut self, cluster: &ClusterState, action: &str) {}

    /// A session ends. Conditions for PodGroups go to `conditions`; the books are as the session leaves them.
    fn close(
        &mut self,
        cluster: &ClusterState,
        reasons: &Reasons,
        changed: &[JobId],
        conditions: &mut Vec<JobCondition>,
    ) {
    }

    /// A task was given or promised a node, or an eviction was undone. All are called.
    fn on_allocate(&mut self, cluster: &ClusterState, task: TaskId) {}

    /// A task lost its node or its promise. All are called.
    fn on_deallocate(&mut self, cluster: &ClusterState, task: TaskId) {}

    /// Key of a job among those of its queue. First difference over all tiers.
    fn job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {}

    /// Key of a queue. First difference over all tiers.
    fn queue_order(&self, cluster: &ClusterState, queue: QueueId, rank: &mut Rank) {}

    /// Whether what one queue takes may move any other queue in the order; else it moves those below the same top queue.
    fn queues_move_together(&self) -> bool {
        false
    }

    /// Key of a queue as one to take victims from for `preemptor`. First difference over all tiers, then `queue_order`
    /// reversed.
    fn victim_queue_order(&self, cluster: &ClusterState, queue: QueueId, preemptor: QueueId, rank: &mut Rank) {}

    /// Key of a task among those of its job. First difference over all tiers.
    fn task_order(&self, cluster: &ClusterState, task: TaskId, rank: &mut Rank) {}

    /// Why a job cannot be scheduled as it is. The first reason wins.
    fn job_valid(&self, cluster: &ClusterState, job: JobId) -> Option<Reason> {
        None
    }

    /// Whether a job may start. All must agree; without any, it may.
    fn job_ready(&self, cluster: &ClusterState, job: JobId) -> bool {
        true
    }

    /// Whether a job will be able to start with what it was promised. A vote.
    fn job_pipelined(&self, cluster: &ClusterState, job: JobId) -> Vote {
        Vote::Abstain
    }

    /// Whether a job lacks what it should have. Asked of the first tier that has the function; all there must agree.
    fn job_starving(&self, cluster: &ClusterState, job: JobId) -> bool {
        false
    }

    /// Whether a job may be admitted to its queue, given what it may take from others. A vote.
    fn job_enqueueable(&self, cluster: &ClusterState, job: JobId, freeable: &Freeable) -> Vote {
        Vote::Abstain
    }

    /// A job was admitted. All are called.
    fn job_enqueued(&mut self, cluster: &ClusterState, job: JobId) {}

    /// Why a queue is passed over. Any reason is enough.
    fn overused(&self, cluster: &ClusterState, queue: QueueId) -> Option<Reason> {
        None
    }

    /// Why a task may not be placed for its queue's sake: at once, or after a release. The first reason wins.
    fn allocatable(&self, cluster: &ClusterState, queue: QueueId, task: TaskId, room: Room) -> Option<Reason> {
        None
    }

    /// Why a queue may not hold `more`, which is what the minimum of `job` still asks for, once what terminates is gone. It
    /// must hold only where [`allocatable`](Self::allocatable) refuses some member of the minimum. The first reason wins.
    fn minimum_allocatable(
        &self,
        cluster: &ClusterState,
        queue: QueueId,
        job: JobId,
        more: &Resources,
    ) -> Option<Reason> {
        None
    }

    /// Why a task may not be let through the gate of its queue: like [`allocatable`](Self::allocatable) after a release, but
    /// nodes may be yet to come. The first reason wins.
    fn passes_gate(&self, cluster: &ClusterState, queue: QueueId, task: TaskId) -> Option<Reason> {
        self.allocatable(cluster, queue, task, Room::AfterRelease)
    }

    /// Whether a queue may reclaim for these tasks. All must agree.
    fn preemptive(&self, cluster: &ClusterState, queue: QueueId, tasks: &[TaskId]) -> bool {
        true
    }

    /// Who of `candidates` may be evicted for `preemptor`, within a queue. Tiered intersection.
    fn preemptable(&self, cluster: &ClusterState, preemptor: TaskId, candidates: &[TaskId]) -> Victims {
        Victims::Abstain
    }

    /// Whether everybody whom [`preemptable`](Self::preemptable) lets go for a task of `job` would be let go for one of
    /// `than`, of the same shape, too. What an earlier job sought in vain need not be sought again.
    fn preempts_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        Comparison::Unknown
    }

    /// Key of a job among those that `preempt` takes from, where [`preemptable`](Self::preemptable) lets it; smaller goes
    /// first. First difference over all tiers, then priorities decide. It stands still while an action makes room.
    fn victim_job_order(&self, cluster: &ClusterState, job: JobId, rank: &mut Rank) {}

    /// Who of `candidates` may be evicted for `reclaimer`, of another queue. Tiered intersection.
    fn reclaimable(&self, cluster: &ClusterState, reclaimer: TaskId, candidates: &[TaskId]) -> Victims {
        Victims::Abstain
    }

    /// Whether everybody whom [`reclaimable`](Self::reclaimable) lets go for a task of `job` would be let go for one of
    /// `than`, of the same shape and queue, too.
    fn reclaims_no_more(&self, cluster: &ClusterState, job: JobId, than: JobId) -> Comparison {
        Comparison::Unknown
    }

    /// Who of `candidates` may be evicted for a whole job. Tiered intersection; no switch.
    fn unified_evictable(
        &self,
        cluster: &ClusterState,
        kind: EvictionKind,
        job: JobId,
        candidates: &[TaskId],
    ) -> Victims {
        Victims::Abstain
    }

    /// Running tasks that should not be where they are, the first to go first. The first tier that names any wins; their
    /// union.
    fn victim_tasks(&self, cluster: &ClusterState, running: &[TaskId]) -> Vec<Unwanted> {
        Vec::new()
    }

    /// Who of `candidates` may be evicted at all, where nobody takes their room: all who protect must agree.
    fn evictable(&self, cluster: &ClusterState, candidates: &[TaskId]) -> Victims {
        Victims::Abstain
    }

    /// Chooses among scored nodes, best first, instead of the highest score. The first answer wins.
    fn best_node(&self, cluster: &ClusterState, task: TaskId, scored: &[(NodeId, f64)]) -> Option<NodeId> {
        None
    }

    /// What a queue could reclaim from others if it asked for `more` than now; `None` if the plugin divides nothing
    /// between queues. Nothing, if it is not due that much.
    fn could_reclaim(&self, cluster: &ClusterState, queue: QueueId, more: &Resources) -> Option<Resources> {
        None
    }

    /// What a queue is due in this session, for people to read; `None` if the plugin divides nothing between queues.
    fn deserved(&self, queue: QueueId) -> Option<Resources> {
        None
    }

    /// Whose shares are compared when `gainer` takes from `loser`: their own, or those of queues above them, if the plugin
    /// says so.
    fn compared(&self, cluster: &ClusterState, gainer: QueueId, loser: QueueId) -> Option<[QueueId; 2]> {
        None
    }

    /// Whether the plugin divides the cluster between branches of queues without saying what each queue is due.
    fn compares_branches(&self) -> bool {
        false
    }

    /// What the branches of two queues hold of a resource, relative to what they are due of it, where they part: of `one`
    /// with `more`, and of `other`. `None` if they do not part.
    fn branch_shares(
        &self,
        resource: ResourceId,
        one: QueueId,
        more: &Resources,
        other: QueueId,
    ) -> Option<[RelativeShare; 2]> {
        None
    }

    /// Key of a sub-group among those of its job. First difference over all tiers.
    fn sub_job_order(&self, cluster: &ClusterState, sub: SubGroupId, rank: &mut Rank) {}

    /// Whether a sub-group may start. All must agree; for a job without sub-groups `job_ready` is asked.
    fn sub_job_ready(&self, cluster: &ClusterState, sub: SubGroupId) -> bool {
        true
    }

    /// Whether a sub-group will be able to start with what it was promised. A vote; for a job without sub-groups
    /// `job_pipelined` is asked.
    fn sub_job_pipelined(&self, cluster: &ClusterState, sub: SubGroupId) -> Vote {
        Vote::Abstain
    }

    /// How good each domain is for a sub-group, in their order; larger is better. Summed over plugins.
    fn hyper_node_order(&self, cluster: &ClusterState, sub: SubGroupId, domains: &[Domain]) -> Vec<f64> {
        vec![0.0; domains.len()]
    }

    /// Which domains below `start` to try for a job, or for one of its sub-groups: lists in the order in which they are
    /// tried, each of domains that are tried together. The first plugin that answers decides alone.
    fn hyper_node_gradient(
        &self,
        cluster: &ClusterState,
        job: JobId,
        sub: Option<SubGroupId>,
        start: &Domain,
        purpose: Purpose,
    ) -> Option<Vec<Vec<Domain>>> {
        None
    }

    /// When the plugin's answers may change without any event; [`Time::NEVER`] if they do not.
    fn wakes_at(&self, cluster: &ClusterState) -> Time {
        Time::NEVER
    }
}
