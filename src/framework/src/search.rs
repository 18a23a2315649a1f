//! The plain node search: ask every plugin about every node, take the best. It defines what is right.
//!
//! Cost for one task: nodes times filters, then feasible nodes times scorers. Without a scorer the first node with free
//! room ends it.
//!
//! Where every filter looks at single nodes, a shape that found no node finds none again until some node has more room;
//! and without scorers the next task of a shape begins where the last one was placed. Both only leave out what would be
//! refused again.

use std::collections::BTreeMap;

use krafla_model::{ClusterState, NodeId, Shape, ShapeId, TaskId};
use ordered_float::OrderedFloat;

use crate::node_plugin::{CycleState, PreFilter, Profile};
use crate::verdict::{RefusalCount, Refusals, Verdict, Why};

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

/// Buffers that searches use again, and what they learned. It goes with one profile.
#[derive(Default)]
pub struct Searcher {
    memos: BTreeMap<(ShapeId, SearchLimits), Memo>,
    /// The state's room version that the memos hold for.
    memos_of: u64,
    state: CycleState,
    now: Vec<NodeId>,
    later: Vec<NodeId>,
    skipped: Vec<bool>,
    totals: Vec<f64>,
    scores: Vec<f64>,
}

impl Searcher {
    /// The best node for `task` of all nodes; see [`Self::find`].
    pub fn find_anywhere(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        limits: SearchLimits,
        prefer: Prefer<'_>,
    ) -> Found {
        let nodes = cluster.nodes();
        if !profile.filters_by_node() {
            return self.find(profile, cluster, task, nodes, limits, prefer);
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
        let found = self.find(profile, cluster, task, &nodes[begin..], limits, prefer);
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
        let mut refused = RefusalCount::default();
        let narrowed = match self.pre_filter(profile, cluster, task) {
            Ok(narrowed) => narrowed,
            Err(why) => {
                for &node in candidates {
                    refused.add(node, Verdict::Unresolvable(why));
                }
                return Found::Nothing(refused.into_words(cluster));
            }
        };
        self.now.clear();
        self.later.clear();
        let shape = cluster.shape_of(task);
        let first_is_enough = profile.scorers.is_empty();
        for &node in candidates {
            if narrowed.as_ref().is_some_and(|only| only.binary_search(&node).is_err()) {
                refused.add(node, Verdict::Unresolvable(Why::Says("node(s) didn't satisfy plugin(s) [PreFilter]")));
                continue;
            }
            match self.examine(profile, cluster, task, shape, node, limits) {
                Ok(Room::Now) => {
                    self.now.push(node);
                    if first_is_enough {
                        break;
                    }
                }
                Ok(Room::AfterRelease) => self.later.push(node),
                Err(verdict) => refused.add(node, verdict),
            }
        }
        let (nodes, room) =
            if self.now.is_empty() { (&self.later, Room::AfterRelease) } else { (&self.now, Room::Now) };
        match nodes.as_slice() {
            [] => Found::Nothing(refused.into_words(cluster)),
            [only] => Found::Node { node: *only, room, score: 0.0 },
            [first, ..] if profile.scorers.is_empty() => Found::Node { node: *first, room, score: 0.0 },
            _ => {
                let nodes = std::mem::take(if room == Room::Now { &mut self.now } else { &mut self.later });
                let (node, score) = self.best(profile, cluster, task, &nodes, prefer);
                *(if room == Room::Now { &mut self.now } else { &mut self.later }) = nodes;
                Found::Node { node, room, score }
            }
        }
    }

    /// Scores of `nodes`, in their order: what [`Self::find`] chooses by.
    pub fn scores(&mut self, profile: &Profile, cluster: &ClusterState, task: TaskId, nodes: &[NodeId]) -> &[f64] {
        self.totals.clear();
        self.totals.resize(nodes.len(), 0.0);
        for &i in &profile.scorers {
            let entry = &profile.entries[i];
            if !entry.plugin.pre_score(cluster, task, nodes, &mut self.state) {
                continue;
            }
            self.scores.clear();
            self.scores.extend(nodes.iter().map(|&node| entry.plugin.score(cluster, task, node, &self.state)));
            entry.plugin.normalize(&mut self.scores);
            for (total, score) in self.totals.iter_mut().zip(&self.scores) {
                *total += score * entry.weight;
            }
        }
        &self.totals
    }

    /// What one node says about a task: when it has room, or its objection.
    pub fn verdict(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
        limits: SearchLimits,
    ) -> Result<Room, Verdict> {
        let narrowed = self.pre_filter(profile, cluster, task).map_err(Verdict::Unresolvable)?;
        if narrowed.is_some_and(|only| only.binary_search(&node).is_err()) {
            return Err(Verdict::Unresolvable(Why::Says("node(s) didn't satisfy plugin(s) [PreFilter]")));
        }
        self.examine(profile, cluster, task, cluster.shape_of(task), node, limits)
    }

    fn pre_filter(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
    ) -> Result<Option<Vec<NodeId>>, Why> {
        self.state.clear();
        self.skipped.clear();
        self.skipped.resize(profile.entries.len(), false);
        let mut narrowed: Option<Vec<NodeId>> = None;
        for &i in &profile.filters {
            match profile.entries[i].plugin.pre_filter(cluster, task, &mut self.state) {
                PreFilter::All => {}
                PreFilter::Skip => self.skipped[i] = true,
                PreFilter::Reject(why) => return Err(why),
                PreFilter::Narrow(mut nodes) => {
                    nodes.sort_unstable();
                    narrowed = Some(match narrowed {
                        None => nodes,
                        Some(before) => before.into_iter().filter(|node| nodes.binary_search(node).is_ok()).collect(),
                    });
                }
            }
        }
        Ok(narrowed)
    }

    fn examine(
        &self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        shape: &Shape,
        id: NodeId,
        limits: SearchLimits,
    ) -> Result<Room, Verdict> {
        let room = room_for(cluster, shape, id, limits)?;
        for &i in &profile.filters {
            if self.skipped[i] {
                continue;
            }
            let verdict = profile.entries[i].plugin.filter(cluster, task, id, &self.state);
            if verdict != Verdict::Fits {
                return Err(verdict);
            }
        }
        Ok(room)
    }

    fn best(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &[NodeId],
        prefer: Prefer<'_>,
    ) -> (NodeId, f64) {
        let scores = self.scores(profile, cluster, task, nodes);
        if let Some(prefer) = prefer {
            let mut scored: Vec<(NodeId, f64)> = nodes.iter().copied().zip(scores.iter().copied()).collect();
            scored.sort_by_key(|(_, score)| std::cmp::Reverse(OrderedFloat(*score)));
            if let Some(chosen) = prefer(&scored).and_then(|node| scored.iter().find(|(known, _)| *known == node)) {
                return *chosen;
            }
        }
        let mut best = 0;
        for (i, score) in scores.iter().enumerate() {
            if OrderedFloat(*score) > OrderedFloat(scores[best]) {
                best = i;
            }
        }
        (nodes[best], scores[best])
    }
}

/// Whether a node has room for a shape, now or after a release: NodeResourcesFit, and the devices one by one.
fn room_for(cluster: &ClusterState, shape: &Shape, id: NodeId, limits: SearchLimits) -> Result<Room, Verdict> {
    let node = cluster.node(id);
    let books = node.books();
    let short = shape.request.first_over(&books.used, &node.allocatable);
    // Room that is promised to a task that waits is not free, even where it would fit now.
    let unpromised =
        books.pipelined.is_zero() || shape.request.first_over(&Default::default(), &node.future_idle()).is_none();
    let devices = books.devices.choose(node.device_request(shape)).is_some();
    if limits.may_start && short.is_none() && unpromised && devices {
        return Ok(Room::Now);
    }
    // A task that may not start yet, for its queue's sake, may wait anywhere. Devices are not looked at here: which of
    // them will be free is known only then.
    let released = !books.releasing.is_zero() || !limits.may_start;
    if limits.may_wait && released && shape.request.first_over(&Default::default(), &node.future_idle()).is_none() {
        return Ok(Room::AfterRelease);
    }
    match short {
        Some(short) if short.asked > short.limit => Err(Verdict::Unresolvable(Why::Short(short))),
        Some(short) => Err(Verdict::Unschedulable(Why::Short(short))),
        None if !unpromised => {
            Err(Verdict::Unschedulable(Why::Says("node(s) had promised what is free to a waiting pod")))
        }
        None if limits.may_start => {
            Err(Verdict::Unschedulable(Why::Says("node(s) had no GPU device with enough left")))
        }
        None => Err(Verdict::Unschedulable(Why::Says("nothing is being released on the node(s)"))),
    }
}
