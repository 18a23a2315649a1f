//! The plain node search: ask every plugin about every node, take the best. It defines what is right.
//!
//! Cost for one task: nodes times filters, then feasible nodes times scorers. Without a scorer the first node with free
//! room ends it.
//!
//! Where every filter that has something to say looks at single nodes, a shape that found no node finds none again until
//! some node has more room; and without scorers the next task of a shape begins where the last one was placed. Both only
//! leave out what would be refused again.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use krafla_model::node::NodeBooks;
use krafla_model::{ClusterState, NodeId, Resources, Shape, ShapeId, TaskId};
use ordered_float::OrderedFloat;

use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::extender;
use crate::scheduling::plugin::{PreFilter, PreScore};
use crate::scheduling::profile::Profile;
use crate::scheduling::verdict::{RefusalCount, Refusals, Verdict, Why};

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
        let narrowed = self.pre_filter(profile, cluster, task);
        let by_node = profile.filters.iter().all(|&i| self.skipped[i] || profile.filters_by_node(i))
            && !profile.extenders_choose(cluster, task);
        if narrowed.is_err() || !by_node {
            return self.find_prepared(profile, cluster, task, nodes, limits, usize::MAX, prefer, narrowed);
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
        let found = self.find_prepared(profile, cluster, task, &nodes[begin..], limits, usize::MAX, prefer, narrowed);
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
        self.find_enough(profile, cluster, task, candidates, limits, usize::MAX, prefer)
    }

    /// The best of the first `enough` nodes among `candidates` that fit now; see [`Self::find`] and
    /// [`Self::looked_at`].
    #[allow(clippy::too_many_arguments, reason = "one search; a struct of its inputs would be built at each call")]
    pub fn find_enough(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        candidates: &[NodeId],
        limits: SearchLimits,
        enough: usize,
        prefer: Prefer<'_>,
    ) -> Found {
        let narrowed = self.pre_filter(profile, cluster, task);
        self.find_prepared(profile, cluster, task, candidates, limits, enough, prefer, narrowed)
    }

    /// Forgets what earlier searches learned.
    pub fn forget(&mut self) {
        self.memos.clear();
    }

    /// How many of its candidates the last search looked at.
    pub fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// Nodes of the last search that found nothing, whose objection an eviction may lift; in their order.
    pub fn unschedulable(&self) -> &[NodeId] {
        &self.unschedulable
    }

    /// Nodes of the last search that fit now, in their order.
    pub fn feasible(&self) -> &[NodeId] {
        &self.now
    }

    #[allow(clippy::too_many_arguments, reason = "one search; a struct of its inputs would be built at each call")]
    fn find_prepared(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        candidates: &[NodeId],
        limits: SearchLimits,
        enough: usize,
        prefer: Prefer<'_>,
        narrowed: Result<Option<Vec<NodeId>>, Rejection>,
    ) -> Found {
        let mut refused = RefusalCount::default();
        self.now.clear();
        self.later.clear();
        self.unschedulable.clear();
        self.looked_at = 0;
        let narrowed = match narrowed {
            Ok(narrowed) => narrowed,
            Err(Rejection { plugin, verdict }) => {
                refused.plugins.insert(plugin);
                if let Verdict::Error(why) = &verdict {
                    refused.error = Some(failed(plugin, "PreFilter", why, cluster));
                }
                for &node in candidates {
                    refused.add(node, verdict.clone());
                }
                if matches!(verdict, Verdict::Unschedulable(_)) {
                    self.unschedulable.extend(candidates);
                }
                return Found::Nothing(refused.into_words(cluster));
            }
        };
        let left_out = narrowed.is_some().then(|| self.left_out(profile));
        if narrowed.is_some() {
            refused.plugins.extend(self.narrowing_plugins(profile));
        }
        let shape = cluster.shape_of(task);
        let first_will_do = profile.scorers.is_empty() && !profile.extenders_choose(cluster, task);
        let enough = if first_will_do { 1 } else { enough };
        for &node in candidates {
            self.looked_at += 1;
            if let (Some(only), Some(left_out)) = (&narrowed, &left_out)
                && only.binary_search(&node).is_err()
            {
                refused.add(node, left_out.clone());
                continue;
            }
            match self.examine(profile, cluster, task, shape, node, limits) {
                Ok(Room::Now) => {
                    self.now.push(node);
                    if self.now.len() >= enough {
                        break;
                    }
                }
                Ok(Room::AfterRelease) => self.later.push(node),
                Err(Rejection { plugin, verdict: Verdict::Error(why) }) => {
                    refused.error = Some(failed(plugin, "Filter", &why, cluster));
                    self.now.clear();
                    self.later.clear();
                    break;
                }
                Err(Rejection { plugin, verdict }) => {
                    refused.plugins.insert(plugin);
                    if matches!(verdict, Verdict::Unschedulable(_)) {
                        self.unschedulable.push(node);
                    }
                    if matches!(verdict, Verdict::Unschedulable(Why::Short(_)) | Verdict::Unresolvable(Why::Short(_))) {
                        let host = cluster.node(node);
                        let held = held(profile, host.books());
                        for more in cluster.asked_of_nodes(shape).all_over(&held, &host.allocatable).skip(1) {
                            refused.also_short(more);
                        }
                    }
                    refused.add(node, verdict);
                }
            }
        }
        if let Some(extenders) = &profile.extenders {
            let objection = |node, verdict| extender::count(&mut refused, &mut self.unschedulable, node, verdict);
            let mut asked = extenders.filter(cluster, task, &mut self.now, objection);
            if asked.is_ok() && self.now.is_empty() {
                let objection = |node, verdict| extender::count(&mut refused, &mut self.unschedulable, node, verdict);
                asked = extenders.filter(cluster, task, &mut self.later, objection);
            }
            if let Err(why) = asked {
                refused.error = Some(why);
                return Found::Nothing(refused.into_words(cluster));
            }
        }
        let (nodes, room) =
            if self.now.is_empty() { (&self.later, Room::AfterRelease) } else { (&self.now, Room::Now) };
        match nodes.as_slice() {
            [] => Found::Nothing(refused.into_words(cluster)),
            [only] => Found::Node { node: *only, room, score: 0.0 },
            [first, ..] if first_will_do => Found::Node { node: *first, room, score: 0.0 },
            _ => {
                let nodes = std::mem::take(if room == Room::Now { &mut self.now } else { &mut self.later });
                let best = self.best(profile, cluster, task, &nodes, prefer);
                *(if room == Room::Now { &mut self.now } else { &mut self.later }) = nodes;
                match best {
                    Ok((node, score)) => Found::Node { node, room, score },
                    Err(error) => {
                        refused.error = Some(error);
                        Found::Nothing(refused.into_words(cluster))
                    }
                }
            }
        }
    }

    /// Scores of `nodes`, in their order: what [`Self::find`] chooses by. `Err` says which plugin failed.
    pub fn scores(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &[NodeId],
    ) -> Result<&[f64], String> {
        self.scores_by_plugin(profile, cluster, task, nodes, |_, _| {})
    }

    /// As [`Self::scores`]; `tell` gets what each plugin adds, its weight included.
    pub fn scores_by_plugin(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &[NodeId],
        mut tell: impl FnMut(&'static str, &[f64]),
    ) -> Result<&[f64], String> {
        self.totals.clear();
        self.totals.resize(nodes.len(), 0.0);
        self.silent.clear();
        self.silent.resize(profile.entries.len(), false);
        for &i in &profile.pre_scorers {
            let plugin = &profile.entries[i].plugin;
            match plugin.pre_score(cluster, task, nodes, &mut self.state) {
                PreScore::Score => {}
                PreScore::Skip => self.silent[i] = true,
                PreScore::Error(why) => return Err(failed(plugin.name(), "PreScore", &why, cluster)),
            }
        }
        for &i in &profile.scorers {
            if self.silent[i] {
                continue;
            }
            let entry = &profile.entries[i];
            self.scores.clear();
            self.scores.extend(nodes.iter().map(|&node| entry.plugin.score(cluster, task, node, &self.state)));
            entry.plugin.normalize(cluster, nodes, &self.state, &mut self.scores);
            if profile.bounds_scores()
                && let Some(score) = self.scores.iter().find(|score| !(0.0..=100.0).contains(*score))
            {
                let name = entry.plugin.name();
                return Err(format!("plugin {name} returned the score {score}, which is not between 0 and 100"));
            }
            for (total, score) in self.totals.iter_mut().zip(&mut self.scores) {
                *score *= entry.weight;
                *total += *score;
            }
            tell(entry.plugin.name(), &self.scores);
        }
        if let Some(extenders) = &profile.extenders {
            extenders.prioritize(cluster, task, nodes, &mut self.totals);
        }
        Ok(&self.totals)
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
        let room = self.verdict_of_plugins(profile, cluster, task, node, limits)?;
        let mut said = None;
        if let Some(extenders) = &profile.extenders {
            let asked = extenders.filter(cluster, task, &mut vec![node], |_, objection| said = Some(objection));
            asked.map_err(|why| Verdict::Error(Why::Told(why.as_str().into())))?;
        }
        said.map_or(Ok(room), Err)
    }

    /// As [`Self::verdict`], without extenders.
    fn verdict_of_plugins(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
        limits: SearchLimits,
    ) -> Result<Room, Verdict> {
        let narrowed = self.pre_filter(profile, cluster, task).map_err(|rejection| rejection.verdict)?;
        if narrowed.is_some_and(|only| only.binary_search(&node).is_err()) {
            return Err(self.left_out(profile));
        }
        let said = self.examine(profile, cluster, task, cluster.shape_of(task), node, limits);
        said.map_err(|rejection| rejection.verdict)
    }

    /// Whether a task would fit on a node once those are gone who terminate, or whose eviction is tried. Extenders are not
    /// asked.
    pub(crate) fn would_fit(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        node: NodeId,
        limits: SearchLimits,
    ) -> bool {
        self.state.set_preemption(true);
        let fits = self.verdict_of_plugins(profile, cluster, task, node, limits).is_ok();
        self.state.set_preemption(false);
        fits
    }

    fn narrowing_plugins(&self, profile: &Profile) -> impl Iterator<Item = &'static str> {
        profile.pre_filters.iter().filter(|&&i| self.narrowing[i]).map(|&i| name(profile, i))
    }

    /// The objection to a node that PreFilters left out, in Kubernetes' words.
    fn left_out(&self, profile: &Profile) -> Verdict {
        let plugins: BTreeSet<&str> = self.narrowing_plugins(profile).collect();
        let plugins = plugins.into_iter().collect::<Vec<_>>().join(" ");
        Verdict::Unresolvable(Why::Told(format!("node(s) didn't satisfy plugin(s) [{plugins}]").as_str().into()))
    }

    /// Asks the PreFilters. One that rejects for good ends it; after one that evictions could help the others are still
    /// asked, so that what they leave is complete.
    fn pre_filter(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
    ) -> Result<Option<Vec<NodeId>>, Rejection> {
        self.state.clear();
        self.skipped.clear();
        self.skipped.resize(profile.entries.len(), false);
        self.narrowing.clear();
        self.narrowing.resize(profile.entries.len(), false);
        let mut narrowed: Option<Vec<NodeId>> = None;
        let mut rejected: Option<Rejection> = None;
        for &i in &profile.pre_filters {
            let plugin = name(profile, i);
            match profile.entries[i].plugin.pre_filter(cluster, task, &mut self.state) {
                PreFilter::All => {}
                PreFilter::Skip => self.skipped[i] = true,
                PreFilter::Reject(why) => return Err(Rejection { plugin, verdict: Verdict::Unresolvable(why) }),
                PreFilter::Error(why) => return Err(Rejection { plugin, verdict: Verdict::Error(why) }),
                PreFilter::Unschedulable(why) => {
                    rejected.get_or_insert(Rejection { plugin, verdict: Verdict::Unschedulable(why) });
                }
                PreFilter::Narrow(mut nodes) => {
                    self.narrowing[i] = true;
                    nodes.sort_unstable();
                    narrowed = Some(match narrowed {
                        None => nodes,
                        Some(before) => before.into_iter().filter(|node| nodes.binary_search(node).is_ok()).collect(),
                    });
                }
            }
        }
        rejected.map_or(Ok(narrowed), Err)
    }

    /// A node that has room now is asked as it is. If evictions could lift its objection, or it has no room now, it is
    /// asked as it will be when what terminates is gone.
    fn examine(
        &self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        shape: &Shape,
        id: NodeId,
        limits: SearchLimits,
    ) -> Result<Room, Rejection> {
        let room = match room_for(profile, cluster, shape, id, limits) {
            Ok(room) => room,
            Err(verdict) => {
                // Whoever is asked before NodeResourcesFit in the profile has the first word.
                self.ask(profile, cluster, task, id, Room::Now, profile.filters_before_fit())?;
                return Err(Rejection { plugin: FIT, verdict });
            }
        };
        match self.ask(profile, cluster, task, id, room, &profile.filters) {
            Ok(()) => Ok(room),
            Err(Rejection { verdict: Verdict::Unschedulable(_), .. })
                if room == Room::Now && limits.may_wait && self.someone_leaves(profile, cluster, id) =>
            {
                let later = Room::AfterRelease;
                self.ask(profile, cluster, task, id, later, &profile.filters).map(|()| later)
            }
            Err(rejection) => Err(rejection),
        }
    }

    fn ask(
        &self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        id: NodeId,
        when: Room,
        filters: &[usize],
    ) -> Result<(), Rejection> {
        for &i in filters.iter().filter(|&&i| !self.skipped[i]) {
            let verdict = profile.entries[i].plugin.filter(cluster, task, id, when, &self.state);
            if verdict != Verdict::Fits {
                return Err(Rejection { plugin: name(profile, i), verdict });
            }
        }
        Ok(())
    }

    /// Whether the answers of filters about a node may be others once what terminates is gone.
    fn someone_leaves(&self, profile: &Profile, cluster: &ClusterState, id: NodeId) -> bool {
        let beyond = profile.filters.iter().any(|&i| !self.skipped[i] && !profile.filters_by_node(i));
        !cluster.node(id).books().releasing.is_zero() || (beyond && !cluster.totals().releasing.is_zero())
    }

    fn best(
        &mut self,
        profile: &Profile,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &[NodeId],
        prefer: Prefer<'_>,
    ) -> Result<(NodeId, f64), String> {
        let scores = self.scores(profile, cluster, task, nodes)?;
        if let Some(prefer) = prefer {
            let mut scored: Vec<(NodeId, f64)> = nodes.iter().copied().zip(scores.iter().copied()).collect();
            scored.sort_by_key(|(_, score)| std::cmp::Reverse(OrderedFloat(*score)));
            if let Some(chosen) = prefer(&scored).and_then(|node| scored.iter().find(|(known, _)| *known == node)) {
                return Ok(*chosen);
            }
        }
        let mut best = 0;
        for (i, score) in scores.iter().enumerate() {
            if OrderedFloat(*score) > OrderedFloat(scores[best]) {
                best = i;
            }
        }
        Ok((nodes[best], scores[best]))
    }
}

/// A plugin that is against it, and how.
struct Rejection {
    plugin: &'static str,
    verdict: Verdict,
}

fn name(profile: &Profile, entry: usize) -> &'static str {
    profile.entries[entry].plugin.name()
}

fn failed(plugin: &str, point: &str, why: &Why, cluster: &ClusterState) -> String {
    format!("running {point} plugin {plugin:?}: {}", why.text(cluster))
}

/// What a node holds for others.
fn held<'a>(profile: &Profile, books: &'a NodeBooks) -> Cow<'a, Resources> {
    if books.pipelined.is_zero() || !profile.promises_beside() {
        return Cow::Borrowed(&books.used);
    }
    let mut held = books.used.clone();
    held.add(&books.pipelined);
    Cow::Owned(held)
}

/// Whether a node has room for a shape, now or after a release: NodeResourcesFit, and the devices one by one.
fn room_for(
    profile: &Profile,
    cluster: &ClusterState,
    shape: &Shape,
    id: NodeId,
    limits: SearchLimits,
) -> Result<Room, Verdict> {
    let node = cluster.node(id);
    let books = node.books();
    let request = cluster.asked_of_nodes(shape);
    let short = request.first_over(&held(profile, books), &node.allocatable);
    // Room that is promised to a task that waits is not free, even where it would fit now.
    let unpromised =
        books.pipelined.is_zero() || request.first_over(&Default::default(), &node.future_idle()).is_none();
    let devices = books.devices.choose(node.device_request(shape)).is_some();
    if limits.may_start && short.is_none() && unpromised && devices {
        return Ok(Room::Now);
    }
    // A task that may not start yet, for its queue's sake, may wait anywhere. Devices are not looked at here: which of
    // them will be free is known only then.
    let released = !books.releasing.is_zero() || !limits.may_start;
    if limits.may_wait && released && request.first_over(&Default::default(), &node.future_idle()).is_none() {
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
