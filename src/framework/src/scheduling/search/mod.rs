//! The node search. `plain` asks every plugin about every node, and defines what is right. Everything else here only
//! leaves out what would be answered as before:
//!
//! - With scorers a *class* (`class`) keeps what each node said to a pod's *signature*, what single nodes may be asked
//!   about it, and asks again those that have changed.
//! - Without scorers the next task of a shape begins where the last one was placed; and where every filter that has
//!   something to say looks at single nodes, a shape that found no node finds none again until some node has more room.

mod class;
mod classes;
mod columns;
mod objections;
mod plain;
mod room;
mod shared;
mod sieve;
mod signature;
mod standings;
mod totals;
mod wide;

use std::any::{Any, TypeId};
use std::collections::BTreeMap;

use krafla_model::{ClusterState, NodeId, ShapeId, TaskId};

use self::classes::Classes;
pub use self::columns::{NodeColumns, ResourceColumn};
use self::plain::Narrowed;
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::profile::Profile;
use crate::scheduling::verdict::Refusals;

/// When a node has room for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// It is free now.
    Now,
    /// It is being released.
    AfterRelease,
}

/// What the search found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The best node.
    Node {
        /// The node.
        node: NodeId,
        /// Whether the task can start there now.
        room: Room,
        /// Its score, 0 if it was the only one.
        score: f64,
    },
    /// None.
    Nothing(Refusals),
}

/// How far a search may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchLimits {
    /// Whether a task may be promised room that is being released.
    pub may_wait: bool,
    /// Whether it may start now.
    pub may_start: bool,
}

/// A choice among scored nodes, best first, that goes before the highest score where it makes one: Volcano's BestNode.
pub type Prefer<'a> = Option<&'a dyn Fn(&[(NodeId, f64)]) -> Option<NodeId>>;

/// What a search for one shape over all nodes learned.
enum Memo {
    /// Nothing was found.
    Nothing(Refusals),
    /// Nodes before this place in tie order have no room.
    Begin(usize),
}

/// The plugin as which the search itself asks whether a node has room.
pub(crate) const FIT: &str = "NodeResourcesFit";

/// Buffers that searches use again, and what they learned. It goes with one configuration.
#[derive(Default)]
pub struct Searcher {
    memos: BTreeMap<(ShapeId, SearchLimits), Memo>,
    /// The state's room version that the memos hold for.
    memos_of: u64,
    state: CycleState,
    now: Vec<NodeId>,
    later: Vec<NodeId>,
    /// Plugins that have nothing to say about the task, by place in the profile.
    skipped: Vec<bool>,
    /// Plugins that narrowed the nodes.
    narrowing: Vec<bool>,
    /// Plugins that have nothing to say about the score.
    silent: Vec<bool>,
    looked_at: usize,
    unschedulable: Vec<NodeId>,
    totals: Vec<f64>,
    scores: Vec<f64>,
    /// Every plugin is to be asked about every node, always.
    is_plain: bool,
    classes: Classes,
    n_kept: u64,
    /// What plugins keep from one pod that fits nowhere to the next, by type.
    pub(crate) kept: BTreeMap<TypeId, Box<dyn Any>>,
}

/// What is looked for.
#[derive(Clone, Copy)]
struct Query<'a> {
    profile: &'a Profile,
    cluster: &'a ClusterState,
    task: TaskId,
    limits: SearchLimits,
}

impl Searcher {
    /// One that asks every plugin about every node, always: what the others are measured by.
    pub fn plain() -> Self {
        Self { is_plain: true, ..Self::default() }
    }

    /// Whether it asks every plugin about every node, always.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The best node for `task` of all nodes; see [`Self::find`].
    pub fn find_anywhere(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        limits: SearchLimits,
        prefer: Prefer<'_>,
    ) -> Found {
        if self.is_plain {
            return self.find(profile, cluster, task, cluster.nodes(), limits, prefer);
        }
        let query = Query { profile, cluster, task, limits };
        let nodes = cluster.nodes();
        let narrowed = self.pre_filter(profile, cluster, task);
        if prefer.is_none()
            && let Some(found) = self.find_among_known(query, &narrowed)
        {
            return found;
        }
        if narrowed.is_err() || self.looks_far(query) {
            return self.find_prepared(query, nodes, usize::MAX, prefer, narrowed);
        }
        if self.memos_of != cluster.room_version() {
            self.memos_of = cluster.room_version();
            self.memos.clear();
        }
        let key = (cluster.task(task).shape, limits);
        // What is being released may make an earlier node one to wait for.
        let may_skip = profile.scorers.is_empty() && (!limits.may_wait || cluster.totals().releasing.is_zero());
        let begin = match self.memos.get(&key) {
            Some(Memo::Nothing(refusals)) => return Found::Nothing(refusals.clone()),
            Some(Memo::Begin(at)) if may_skip => *at,
            _ => 0,
        };
        let found = self.find_prepared(query, &nodes[begin..], usize::MAX, prefer, narrowed);
        match &found {
            Found::Node { node, room: Room::Now, .. } if may_skip => {
                self.memos.insert(key, Memo::Begin(cluster.node_rank(*node) as usize));
            }
            Found::Nothing(_) if begin > 0 => {
                // For its words all nodes are asked once.
                let found = self.find(profile, cluster, task, nodes, limits, prefer);
                if let Found::Nothing(refusals) = &found {
                    self.memos.insert(key, Memo::Nothing(refusals.clone()));
                }
                return found;
            }
            Found::Nothing(refusals) => {
                self.memos.insert(key, Memo::Nothing(refusals.clone()));
            }
            Found::Node { .. } => {}
        }
        found
    }

    /// What all nodes would be found to say, from fewer: from what is kept, or from those that PreFilters left. `None`
    /// where all have to be asked: for words, or because something looks too far.
    fn find_among_known(&mut self, query: Query<'_>, narrowed: &Narrowed) -> Option<Found> {
        match narrowed {
            _ if query.profile.extenders_choose(query.cluster, query.task) => None,
            Ok(None) => {
                let found = self.find_by_class(query);
                self.n_kept += u64::from(found.is_some());
                found
            }
            Ok(Some(only)) => self.find_among_few(query, only),
            Err(_) => None,
        }
    }

    /// Whether some filter looks further than at single nodes, or an extender has a say.
    fn looks_far(&self, query: Query<'_>) -> bool {
        let Query { profile, cluster, task, .. } = query;
        let far = profile.filters.iter().any(|&i| !self.skipped[i] && !profile.filters_by_node(i));
        far || profile.extenders_choose(cluster, task)
    }

    /// The best node for `task` among `candidates`, which are in tie order.
    ///
    /// A node with free room beats any node that must wait for a release, whatever the scores (as in Volcano). Among
    /// equals the first in tie order wins.
    pub fn find(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        candidates: &[NodeId],
        limits: SearchLimits,
        prefer: Prefer<'_>,
    ) -> Found {
        let narrowed = self.pre_filter(profile, cluster, task);
        self.find_prepared(Query { profile, cluster, task, limits }, candidates, usize::MAX, prefer, narrowed)
    }

    /// The best of the first `enough` nodes that fit now, from the one at `start` in tie order on and round; see
    /// [`Self::find`] and [`Self::looked_at`].
    pub fn find_from(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        start: usize,
        enough: usize,
        limits: SearchLimits,
    ) -> Found {
        let query = Query { profile, cluster, task, limits };
        let narrowed = self.pre_filter(profile, cluster, task);
        let (before, from) = cluster.nodes().split_at(start);
        if before.is_empty() {
            if enough >= from.len()
                && !self.is_plain
                && let Some(found) = self.find_among_known(query, &narrowed)
            {
                self.looked_at = from.len();
                return found;
            }
            return self.find_prepared(query, from, enough, None, narrowed);
        }
        let rotated = [from, before].concat();
        self.find_prepared(query, &rotated, enough, None, narrowed)
    }

    /// How many searches were answered from what is kept about each node.
    pub fn n_answered_from_kept(&self) -> u64 {
        self.n_kept
    }

    /// How many of its candidates the last search looked at.
    pub fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// Nodes of the last search that found nothing, whose objection an eviction may lift; in their order.
    pub fn unschedulable(&self) -> &[NodeId] {
        &self.unschedulable
    }

    /// Nodes that fitted now when every plugin was last asked about every node, in their order.
    pub fn feasible(&self) -> &[NodeId] {
        &self.now
    }
}
