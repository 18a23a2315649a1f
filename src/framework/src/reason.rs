//! Why something waits or was refused, as data. The log line, the event, the condition, the command line and the test
//! render the same value.

use std::fmt;

use krafla_model::resources::unit_of;
use krafla_model::time::format_ms;
use krafla_model::{ClusterState, Name, QueueId, Shortfall, Time, quantity};
use serde::{Deserialize, Serialize};

use crate::scheduling::point::ExtensionPoint;
use crate::scheduling::verdict::Refusals;

/// A reason for waiting or for a refusal. Each has a stable code, the numbers behind it, and what would change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Too few members of the gang found a node, at least one for want of a resource.
    NotEnoughResources {
        /// Members that found a node or have one.
        placed: u32,
        /// Members that the gang needs.
        needed: u32,
        /// What the nodes said to the first member that found none.
        refusals: Box<Refusals>,
    },
    /// Too few members found a node, for reasons other than resources.
    NoNodeFits {
        /// Members that found a node or have one.
        placed: u32,
        /// Members that the gang needs.
        needed: u32,
        /// What the nodes said.
        refusals: Box<Refusals>,
    },
    /// The whole cluster has too little free for the gang's minimum, whatever the placement.
    ClusterTooFull {
        /// The resource.
        shortage: Shortage,
        /// Members that the gang still needs.
        needed: u32,
    },
    /// Too few members would find a node even if everyone went who may be evicted for the job.
    EvictionsWouldNotHelp {
        /// Members that would find a node, or have one.
        placed: u32,
        /// Members that the gang needs.
        needed: u32,
        /// Pods that may be evicted for it, or for an earlier job of its queue that may evict at least as many.
        candidates: u32,
    },
    /// There is room enough in all, but not on one node, and no pods can be moved so that there is.
    MovesWouldNotHelp {
        /// Members that would find a node, or have one.
        placed: u32,
        /// Members that the gang needs.
        needed: u32,
        /// Pods that may be moved.
        movable: u32,
        /// What the nodes said to the first member that found none.
        refusals: Box<Refusals>,
    },
    /// Fewer pods exist than the gang needs.
    NotEnoughTasks {
        /// Pods that can count.
        valid: u32,
        /// Pods needed.
        min: u32,
    },
    /// Fewer pods of one role exist than the gang needs.
    NotEnoughPodsOfTask {
        /// The role.
        role: Name,
        /// Pods of it that can count.
        valid: u32,
        /// Pods of it needed.
        min: u32,
    },
    /// The queue does not exist.
    QueueNotFound {
        /// Its name.
        queue: Name,
        /// How many queues there are.
        queues: usize,
    },
    /// The queue takes nothing.
    QueueNotOpen {
        /// Its name.
        queue: Name,
        /// Its state.
        state: String,
        /// Jobs that wait in it.
        jobs: usize,
    },
    /// The queue has no place in the tree: it, or a queue above it, names a parent that does not exist.
    QueueParentNotFound {
        /// The queue that names it.
        queue: Name,
        /// The parent that it names.
        parent: Name,
        /// How many queues there are.
        queues: usize,
    },
    /// The queue has no place in the tree: it, or a queue above it, is its own ancestor.
    QueueCycle {
        /// A queue on the cycle.
        queue: Name,
        /// The parent that it names.
        parent: Name,
        /// How many queues the cycle has.
        length: usize,
    },
    /// The queue divides what it has between queues below it, and starts no jobs of its own.
    QueueNotLeaf {
        /// Its name.
        queue: Name,
        /// How many queues are directly below it.
        below: usize,
        /// The first of them by name.
        first: Name,
    },
    /// The queue uses what it is due, or more.
    QueueOverused {
        /// Its name.
        queue: Name,
        /// What it holds in the dimension that is nearest to its due, and what it is due.
        held: String,
        /// What it is due.
        deserved: String,
    },
    /// The task would take the queue over its limit.
    QueueLimit {
        /// The queue whose limit it is.
        queue: Name,
        /// The limit.
        shortage: Shortage,
    },
    /// Admission: the cluster is promised to others already.
    ClusterOvercommitted {
        /// The dimension.
        shortage: Shortage,
    },
    /// Admission: a ResourceQuota of the namespace has no room.
    ResourceQuota {
        /// The quota's name.
        quota: Name,
        /// The dimension.
        shortage: Shortage,
    },
    /// The pod carries scheduling gates.
    SchedulingGated {
        /// Their names.
        gates: u32,
    },
    /// The pod's room is being released; it waits for that.
    WaitingForRelease {
        /// The node.
        node: Name,
        /// Pods that are terminating there.
        terminating: u32,
    },
    /// The bind was refused; it is tried again later.
    BindRefused {
        /// Refusals so far.
        times: u32,
        /// When it is tried again.
        retry_at: Time,
    },
    /// The pod has its node in memory, and plugins hold it back at Permit.
    WaitingForPermit {
        /// The node.
        node: Name,
        /// Plugins that have not allowed it yet.
        plugins: Vec<String>,
    },
    /// A plugin of the Scheduling Framework sent the pod back to the queue.
    RefusedByPlugin {
        /// The plugin.
        plugin: String,
        /// Where.
        point: String,
        /// Its words.
        message: String,
    },
    /// No node fits a pod that is scheduled by itself.
    Unschedulable {
        /// What the nodes said.
        refusals: Box<Refusals>,
        /// What PostFilter said; may be empty.
        post_filter: String,
    },
    /// A started gang that lost members is repaired first.
    WaitingBehindRepair {
        /// The gang.
        job: String,
        /// Members that it lacks.
        missing: u32,
    },
    /// The job waits for admission, and no `enqueue` decision has been made on it yet.
    NotAdmitted {
        /// Jobs before it in its queue.
        ahead: usize,
    },
    /// The pod names a PodGroup that does not exist.
    PodGroupNotFound {
        /// The PodGroup.
        group: Name,
        /// Pods that name it.
        pods: u32,
    },
    /// No action of the configuration places such a pod.
    NoActionPlacesIt {
        /// How many actions there are.
        actions: usize,
        /// What is missing.
        missing: &'static str,
    },
}

/// A limit that would be passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// The resource.
    pub resource: Name,
    /// What is asked, in its smallest unit.
    pub asked: i64,
    /// What is in use.
    pub used: i64,
    /// What there may be.
    pub limit: i64,
}

impl Shortage {
    /// A shortfall with its resource by name.
    pub fn new(short: Shortfall, cluster: &ClusterState) -> Self {
        Self {
            resource: cluster.names().name(short.resource).clone(),
            asked: short.asked,
            used: short.used,
            limit: short.limit,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |amount: i64| {
            let written = quantity::format(amount.abs(), unit_of(&self.resource));
            if amount < 0 { format!("-{written}") } else { written }
        };
        write!(
            f,
            "insufficient {}: asks for {}, {} of {} in use",
            self.resource,
            text(self.asked),
            text(self.used),
            text(self.limit)
        )
    }
}

impl Reason {
    /// Why members found no node: for want of a resource if any node lacked one, or there is no node at all.
    pub fn refused_by_nodes(placed: u32, needed: u32, refusals: Refusals) -> Self {
        let refusals = Box::new(refusals);
        match refusals.nearest {
            None if refusals.nodes > 0 => Self::NoNodeFits { placed, needed, refusals },
            _ => Self::NotEnoughResources { placed, needed, refusals },
        }
    }

    /// Why a task that had found its node goes back to the queue.
    pub fn refused_by_plugin(plugin: &str, point: ExtensionPoint, message: String) -> Self {
        Self::RefusedByPlugin { plugin: plugin.to_owned(), point: point.to_string(), message }
    }

    /// Why nothing of a queue that is not open starts.
    pub fn queue_not_open(cluster: &ClusterState, id: QueueId) -> Self {
        let queue = cluster.queue(id);
        let waiting = queue.jobs().filter(|job| cluster.job(*job).is_waiting()).count();
        Self::QueueNotOpen {
            queue: queue.spec.name.clone(),
            state: queue.spec.state.as_str().to_owned(),
            jobs: waiting,
        }
    }

    /// Whether it is the queue, or its namespace, that is in the way, so that room on nodes would not help. A limit that is
    /// as large as the whole cluster is none of the queue's own, unless more is promised: there nodes are what is missing.
    pub fn is_of_the_queue(&self, cluster: &ClusterState) -> bool {
        match self {
            // Nodes do not have devices that are claimed.
            Self::QueueLimit { shortage, .. } if shortage.resource.contains("deviceclass/") => true,
            Self::QueueLimit { shortage, .. } => {
                let resource = cluster.names().find(&shortage.resource);
                let total = resource.map_or(0, |id| cluster.totals().allocatable.get(id));
                shortage.limit < total || shortage.used > total
            }
            Self::QueueNotFound { .. }
            | Self::QueueNotOpen { .. }
            | Self::QueueParentNotFound { .. }
            | Self::QueueCycle { .. }
            | Self::QueueNotLeaf { .. }
            | Self::ResourceQuota { .. } => true,
            _ => false,
        }
    }

    /// The stable code, for machines.
    pub const fn code(&self) -> &'static str {
        match self {
            // One code for all: what differs is where the shortage was seen.
            Self::NotEnoughResources { .. }
            | Self::ClusterTooFull { .. }
            | Self::EvictionsWouldNotHelp { .. }
            | Self::MovesWouldNotHelp { .. } => "NotEnoughResources",
            Self::NoNodeFits { .. } => "NoNodeFits",
            Self::NotEnoughTasks { .. } => "NotEnoughTasks",
            Self::NotEnoughPodsOfTask { .. } => "NotEnoughPodsOfTask",
            Self::QueueNotFound { .. } => "QueueNotFound",
            Self::QueueNotOpen { .. } => "QueueNotOpen",
            Self::QueueParentNotFound { .. } => "QueueParentNotFound",
            Self::QueueCycle { .. } => "QueueCycle",
            Self::QueueNotLeaf { .. } => "QueueNotLeaf",
            Self::QueueOverused { .. } => "QueueOverused",
            Self::QueueLimit { .. } => "QueueLimit",
            Self::ClusterOvercommitted { .. } => "ClusterOvercommitted",
            Self::ResourceQuota { .. } => "ResourceQuota",
            Self::SchedulingGated { .. } => "SchedulingGated",
            Self::WaitingForRelease { .. } => "WaitingForRelease",
            Self::BindRefused { .. } => "BindRefused",
            Self::Unschedulable { .. } => "Unschedulable",
            Self::WaitingForPermit { .. } => "WaitingForPermit",
            Self::RefusedByPlugin { .. } => "RefusedByPlugin",
            Self::WaitingBehindRepair { .. } => "WaitingBehindRepair",
            Self::NotAdmitted { .. } => "NotAdmitted",
            Self::PodGroupNotFound { .. } => "PodGroupNotFound",
            Self::NoActionPlacesIt { .. } => "NoActionPlacesIt",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnoughResources { placed, needed, refusals } | Self::NoNodeFits { placed, needed, refusals } => {
                write!(f, "{placed} of {needed} members can be placed; {refusals}")
            }
            Self::ClusterTooFull { shortage, needed } => write!(
                f,
                "the cluster is too full for the {needed} members that the gang needs: {shortage}; waits for running pods to end or for new nodes"
            ),
            Self::EvictionsWouldNotHelp { placed, needed, candidates } => write!(
                f,
                "at most {placed} of {needed} members fit, even with all {candidates} pods gone that may be evicted for it, or for a job before it; nobody is evicted in vain"
            ),
            Self::MovesWouldNotHelp { placed, needed, movable, refusals } => write!(
                f,
                "{placed} of {needed} members can be placed; {refusals}; none of the {movable} pods that may be moved makes enough room there and has another place"
            ),
            Self::NotEnoughTasks { valid, min } => {
                write!(
                    f,
                    "not enough valid tasks for gang-scheduling, valid: {valid}, min: {min}; waits for its pods to be made"
                )
            }
            Self::NotEnoughPodsOfTask { role, valid, min } => {
                write!(f, "not enough valid pods of task `{role}` for gang-scheduling, valid: {valid}, min: {min}")
            }
            Self::QueueNotFound { queue, queues } => {
                write!(f, "queue `{queue}` does not exist among {queues} queues; create it or name another")
            }
            Self::QueueNotOpen { queue, state, jobs } => {
                write!(f, "queue `{queue}` is {state}; {jobs} jobs wait in it until it is opened")
            }
            Self::QueueParentNotFound { queue, parent, queues } => write!(
                f,
                "queue `{queue}` names the parent `{parent}`, which does not exist among {queues} queues; create it or name another"
            ),
            Self::QueueCycle { queue, parent, length } => write!(
                f,
                "queue `{queue}` is below itself: its parent `{parent}` leads back to it over {length} queues; give one of them another parent"
            ),
            Self::QueueNotLeaf { queue, below, first } => write!(
                f,
                "queue `{queue}` has {below} queues below it and starts no jobs of its own; use one of those, such as `{first}`"
            ),
            Self::QueueOverused { queue, held, deserved } => write!(
                f,
                "queue `{queue}` uses what it is due: holds {held}, due {deserved}; waits for its own pods to end or for other queues to want less"
            ),
            Self::QueueLimit { queue, shortage } => write!(f, "limit of queue `{queue}`: {shortage}"),
            Self::ClusterOvercommitted { shortage } if shortage.asked > shortage.limit => write!(
                f,
                "not admitted, its minimum is more than the cluster may promise at all: {shortage}; add nodes, or ask for less"
            ),
            Self::ClusterOvercommitted { shortage } => {
                write!(f, "not admitted, the cluster is promised to others: {shortage}")
            }
            Self::ResourceQuota { quota, shortage } => write!(f, "not admitted, resource quota `{quota}`: {shortage}"),
            Self::SchedulingGated { gates } => write!(f, "waits for the removal of {gates} scheduling gates"),
            Self::WaitingForRelease { node, terminating } => {
                write!(f, "will run on node {node} once {terminating} terminating pods there are gone")
            }
            Self::BindRefused { times, retry_at } => {
                write!(f, "its bind was refused {times} times; tried again at {}", format_ms(retry_at.0))
            }
            Self::Unschedulable { refusals, post_filter } => {
                // Kubernetes' words for it, which tools look for.
                let said = refusals.to_string().replacen("nodes are unavailable", "nodes are available", 1);
                write!(f, "{said}")?;
                if post_filter.is_empty() { Ok(()) } else { write!(f, ". {post_filter}") }
            }
            Self::WaitingForPermit { node, plugins } => {
                write!(f, "has room on node {node} and waits for {} of Permit", plugins.join(", "))
            }
            Self::RefusedByPlugin { plugin, point, message } => write!(f, "rejected by {plugin} at {point}: {message}"),
            Self::WaitingBehindRepair { job, missing } => {
                write!(f, "waiting behind repair of {job}, which lacks {missing} members")
            }
            Self::NotAdmitted { ahead } => write!(f, "waits for admission behind {ahead} jobs of its queue"),
            Self::PodGroupNotFound { group, pods } => {
                write!(f, "PodGroup `{group}`, which {pods} pods name, does not exist; create it")
            }
            Self::NoActionPlacesIt { actions, missing } => {
                write!(f, "none of the {actions} configured actions places it; add `{missing}` to `actions`")
            }
        }
    }
}
