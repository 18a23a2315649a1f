//! The node level: one trait with a hook for each extension point of the Scheduling Framework.
//!
//! Hooks up to Permit are functions of the model alone. What talks to the API, PreBind and Bind, is run by a shell.

use krafla_model::cluster_event::{ActionType, ClusterEvent, EventResource};
use krafla_model::storage::ClaimChoice;
use krafla_model::{ClusterState, JobId, NodeId, TaskId};

use crate::effect::ClaimsToBind;
use crate::rank::Rank;
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::post_filter::{FailedAttempt, PostFilter};
use crate::scheduling::search::{NodeColumns, Room};
use crate::scheduling::verdict::{Verdict, Why};
use crate::scheduling::waiting::WaitingPods;

/// What the answer of a Filter or a Score depends on; the later, the more. The search keeps answers about single nodes,
/// and asks again only where a node has changed, so a plugin must not look further than it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Nothing: it has no say.
    Nothing,
    /// What the pod says of nodes (selector, affinity, tolerations, images, features, annotations, whether it may run on
    /// revocable ones), and the node without what is on it.
    Spec,
    /// That, the pod's requests and ports, and what is on the node. Not its labels: pods that differ in those share answers.
    Node,
    /// The pod's shape, and what is in the node's topology domain.
    Domain,
    /// The task itself, with its claims, and anything in the cluster: it is asked anew for each task, but only about nodes
    /// that pass the others, and not about those that cannot win.
    Task,
    /// The time, or something else for whose sake every node has to be asked about each task.
    Cluster,
}

/// Answer of PreFilter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFilter {
    /// Ask the Filter about every node.
    All,
    /// The Filter has nothing to say about this task.
    Skip,
    /// Only these nodes can do; the Filter is asked about them.
    Narrow(Vec<NodeId>),
    /// No node can do as things are; evictions might change that. Other PreFilters are still asked.
    Unschedulable(Why),
    /// No node can do, whatever is evicted.
    Reject(Why),
    /// The plugin failed; the attempt ends.
    Error(Why),
}

/// Answer of PreScore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreScore {
    /// Ask the Score about every node.
    Score,
    /// The Score has nothing to say about this task.
    Skip,
    /// The plugin failed; the attempt ends.
    Error(Why),
}

impl PreScore {
    /// Score if the plugin has something to say, else skip.
    pub fn when(has_a_say: bool) -> Self {
        if has_a_say { Self::Score } else { Self::Skip }
    }
}

/// Answer of Permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Bind it.
    Approve,
    /// Not this one, and not now.
    Reject(Why),
    /// Hold it back, with its room, until it is allowed or this many milliseconds have passed.
    Wait {
        /// At most [`MAX_PERMIT_WAIT_MS`] count.
        timeout_ms: i64,
    },
}

/// Longest wait at Permit, in milliseconds; kube-scheduler's `maxTimeout`.
pub const MAX_PERMIT_WAIT_MS: i64 = 15 * 60 * 1_000;

/// When a pod was queued, for QueueSort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuedAt {
    /// When it last entered the queue.
    pub entered: krafla_model::Time,
    /// When it was first tried; when it entered, if it was not.
    pub first_attempt: krafla_model::Time,
}

/// A node-level plugin. All hooks have neutral defaults; which of them count is said by the plugin's
/// [`points`](crate::registry::NodePluginInfo::points), and for Filter and Score by the scope that it names.
///
/// Hooks that take `&self` are pure: the same cluster, task and node give the same answer.
#[allow(unused_variables, reason = "names of parameters are part of the documentation")]
pub trait NodePlugin: Send {
    /// Its name, as in Kubernetes.
    fn name(&self) -> &'static str;

    /// A session begins.
    fn open(&mut self, cluster: &ClusterState) {}

    /// What its Filter depends on; `None` if it has none.
    fn filter_scope(&self) -> Option<Scope> {
        None
    }

    /// What its Score depends on; `None` if it has none.
    fn score_scope(&self) -> Option<Scope> {
        None
    }

    /// What its Score depends on for one task: it may have nothing to say about most. PreScore of one that looks at single
    /// nodes gets no nodes, leaves nothing, and answers from the shape alone.
    fn score_scope_for(&self, cluster: &ClusterState, task: TaskId) -> Scope {
        self.score_scope().unwrap_or(Scope::Nothing)
    }

    /// Moves with what its answers about single nodes depend on beside its scope; never goes back.
    fn epoch(&self, cluster: &ClusterState) -> u64 {
        0
    }

    /// Why a task may not enter the queue; asked each time it would.
    fn pre_enqueue(&self, cluster: &ClusterState, task: TaskId) -> Result<(), Why> {
        Ok(())
    }

    /// Key of a task in the queue; the smallest is next. Ties go to who entered first, then by UID.
    fn queue_sort(&self, cluster: &ClusterState, task: TaskId, queued: QueuedAt, rank: &mut Rank) {}

    /// Once for a task, before any node is looked at.
    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        PreFilter::All
    }

    /// What PreFilter left is to be as if `other` were on `node` too.
    fn add_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {}

    /// What PreFilter left is to be as if `other` were not on `node`.
    fn remove_pod(&self, cluster: &ClusterState, task: TaskId, other: TaskId, node: NodeId, state: &mut CycleState) {}

    /// May the task run there? Called for each node that earlier filters let pass. With [`Room::Now`] what terminates
    /// is still there; with [`Room::AfterRelease`] it is gone.
    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, state: &CycleState) -> Verdict {
        Verdict::Fits
    }

    /// Whether it is plain at a glance that [`Self::filter`] objects: asked before it, of those of [`Scope::Task`], where
    /// words are of no account. Where in doubt, it is not.
    fn rules_out(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, state: &CycleState) -> bool {
        false
    }

    /// Whether [`Self::filter`] may fail for a task, after PreFilter: then it is asked about every node, as one failure
    /// ends the search.
    fn may_fail(&self, cluster: &ClusterState, task: TaskId, state: &CycleState) -> bool {
        false
    }

    /// Once for a task, with all nodes that passed.
    fn pre_score(&self, cluster: &ClusterState, task: TaskId, nodes: &[NodeId], state: &mut CycleState) -> PreScore {
        PreScore::Score
    }

    /// How good the node is; larger is better. Kubernetes' own plugins end in 0 to 100.
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, state: &CycleState) -> f64 {
        0.0
    }

    /// [`Self::score`] of many nodes at once, by place in tie order: the very same numbers, in the order of `places`. For
    /// plugins that look at single nodes and can go by columns.
    fn score_nodes(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &NodeColumns,
        places: &[u32],
        state: &CycleState,
        scores: &mut Vec<f64>,
    ) {
        scores.extend(places.iter().map(|&place| self.score(cluster, task, nodes.id(place), state)));
    }

    /// Whether [`Self::normalize`] changes anything: scores then depend on all nodes that passed.
    fn normalizes(&self) -> bool {
        false
    }

    /// Whether what [`Self::normalize`] makes of a score depends on nothing but that score, the lowest and the highest.
    fn normalizes_by_extremes(&self) -> bool {
        false
    }

    /// Brings the scores of all nodes, in the order of `nodes`, to their final range, in place.
    fn normalize(&self, cluster: &ClusterState, nodes: &[NodeId], state: &CycleState, scores: &mut [f64]) {}

    /// No node fits: what may be done about it. Called only then, and only until a plugin has an answer.
    fn post_filter(&self, attempt: &mut FailedAttempt<'_>) -> PostFilter {
        PostFilter::Unschedulable(String::new())
    }

    /// What may let a task in again that this plugin refused: kinds of objects, and what happens to them. `None` is
    /// everything; an empty list is nothing but time.
    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        None
    }

    /// Whether an event of such a kind may help any task at all that this plugin refused. Asked once for all that it
    /// refused, before [`Self::helps`] is asked for each.
    fn may_help(&self, event: &ClusterEvent) -> bool {
        true
    }

    /// Whether one of [`Self::events`] may help a task that this plugin refused. Where in doubt, it may.
    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        true
    }

    /// Which device of the node serves a task that asks for a share of one; `None`: the fullest that has so much left.
    /// Asked of the plugins at Score, before the task is given the node; the first answer counts.
    fn choose_device(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Option<u8> {
        None
    }

    /// What the task's claims get on its node, which it has just been given: part of its place, and gone with it. Asked
    /// before [`Self::reserve`], of plugins that take part in Reserve; an error is as one of Reserve.
    fn choose(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Result<Vec<ClaimChoice>, Why> {
        Ok(Vec::new())
    }

    /// What of the choices for a task that is about to be bound its binding side has to write. For a plugin that answers
    /// nothing, [`Self::binds_only_claims`] says whether there is anything to do at all.
    fn claims_to_bind(&self, cluster: &ClusterState, task: TaskId) -> Option<ClaimsToBind> {
        None
    }

    /// Whether its binding side has nothing to do for tasks without [`Self::claims_to_bind`].
    fn binds_only_claims(&self) -> bool {
        false
    }

    /// Whether it does anything for a task at Reserve, with what it [chooses](Self::choose), or at Permit. Where no plugin
    /// does, what is promised to nominated pods may stand on the books while the task is given its node.
    fn has_a_say_in_placing(&self, cluster: &ClusterState, task: TaskId) -> bool {
        true
    }

    /// The task has been given a node, in memory only.
    fn reserve(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Result<(), Why> {
        Ok(())
    }

    /// Its node is taken away again: something after Reserve, or Reserve itself, went wrong. Called for every plugin in
    /// the opposite order, also for one whose Reserve was never called, so it must do no harm twice.
    fn unreserve(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId, waiting: &mut WaitingPods) {}

    /// The group of a task whose pods are tried together, in one cycle: at least as many as the group needs are placed,
    /// or none. Asked of the plugins at Permit, of pods one by one; sessions place gangs whole by themselves. It goes by
    /// the pod and its group, not by where pods stand.
    fn pod_group(&self, cluster: &ClusterState, task: TaskId) -> Option<JobId> {
        None
    }

    /// May the task be bound now? The plugin may also let go or reject others that wait.
    fn permit(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId, waiting: &mut WaitingPods) -> Permit {
        Permit::Approve
    }

    /// Something has changed in the cluster while pods wait at Permit, which the plugin may now let go or reject. Only
    /// plugins at Permit hear of it.
    fn cluster_changed(&mut self, cluster: &ClusterState, event: &ClusterEvent, waiting: &mut WaitingPods) {}

    /// The task has been bound.
    fn post_bind(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId) {}
}

/// Kubernetes' default normalisation: the highest score becomes 100, the others in proportion, in whole numbers.
/// `reversed`: the lowest raw score is best.
pub fn default_normalize(scores: &mut [f64], reversed: bool) {
    let highest = scores.iter().copied().fold(0.0, f64::max);
    for score in scores {
        let share = if highest > 0.0 { (100.0 * *score / highest).floor() } else { 0.0 };
        *score = if reversed { 100.0 - share } else { share };
    }
}
