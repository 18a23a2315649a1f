//! The plain search: every plugin is asked about every node, and the best is taken. It defines what is right.
//!
//! Cost for one task: nodes times filters, then feasible nodes times scorers. Without a scorer the first node with free
//! room ends it.

use std::collections::BTreeSet;

use krafla_model::{ClusterState, NodeId, TaskId};
use ordered_float::OrderedFloat;

use super::room::{held, room_for};
use super::{FIT, Found, Prefer, Query, Room, SearchLimits, Searcher};
use crate::scheduling::extender;
use crate::scheduling::plugin::{PreFilter, PreScore};
use crate::scheduling::profile::Profile;
use crate::scheduling::verdict::{RefusalCount, Verdict, Why};

/// A plugin that is against it, and how.
pub(super) struct Rejection {
    pub(super) plugin: &'static str,
    pub(super) verdict: Verdict,
}

/// What the PreFilters left: nodes that alone can do, by id, or all.
pub(super) type Narrowed = Result<Option<Vec<NodeId>>, Rejection>;

impl Searcher {
    /// The best of the first `enough` nodes among `candidates`, after PreFilter.
    pub(super) fn find_prepared(
        &mut self,
        query: Query<'_>,
        candidates: &[NodeId],
        enough: usize,
        prefer: Prefer<'_>,
        narrowed: Narrowed,
    ) -> Found {
        let Query { profile, cluster, task, .. } = query;
        self.now.clear();
        self.later.clear();
        self.unschedulable.clear();
        self.looked_at = 0;
        let mut refused = RefusalCount::default();
        let narrowed = match narrowed {
            Ok(narrowed) => narrowed,
            Err(rejection) => return self.refused_by_all(query, candidates, rejection),
        };
        let first_will_do = profile.scorers.is_empty() && !profile.extenders_choose(cluster, task);
        let enough = if first_will_do { 1 } else { enough };
        self.ask_nodes(query, candidates, enough, narrowed.as_deref(), &mut refused);
        if let Err(why) = self.ask_extenders(query, &mut refused) {
            refused.error = Some(why);
            return Found::Nothing(refused.into_words(cluster));
        }
        let room = if self.now.is_empty() { Room::AfterRelease } else { Room::Now };
        let fit = if room == Room::Now { &mut self.now } else { &mut self.later };
        match fit.as_slice() {
            [] => Found::Nothing(refused.into_words(cluster)),
            [only] => Found::Node { node: *only, room, score: 0.0 },
            [first, ..] if first_will_do => Found::Node { node: *first, room, score: 0.0 },
            _ => {
                let nodes = std::mem::take(fit);
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

    /// The best of all nodes, where only `few` can do: what the others say is known. `None` if a plugin fails.
    pub(super) fn find_among_few(&mut self, query: Query<'_>, few: &[NodeId]) -> Option<Found> {
        let cluster = query.cluster;
        let mut in_order = few.to_vec();
        in_order.sort_by_key(|node| cluster.node_rank(*node));
        let mut found = self.find_prepared(query, &in_order, usize::MAX, None, Ok(Some(few.to_vec())));
        if let Found::Nothing(refusals) = &mut found {
            if refusals.error.is_some() {
                return None;
            }
            let others = u32::try_from(cluster.nodes().len() - few.len()).unwrap_or(u32::MAX);
            if let Some(why) = self.left_out(query.profile).why().filter(|_| others > 0) {
                refusals.nodes += others;
                refusals.unresolvable += others;
                *refusals.objections.entry(why.text(cluster)).or_default() += others;
            }
        }
        Some(found)
    }

    /// A PreFilter speaks for all nodes.
    fn refused_by_all(&mut self, query: Query<'_>, candidates: &[NodeId], rejection: Rejection) -> Found {
        let Rejection { plugin, verdict } = rejection;
        let mut refused = RefusalCount::default();
        refused.plugins.insert(plugin);
        if let Verdict::Error(why) = &verdict {
            refused.error = Some(failed(plugin, "PreFilter", why, query.cluster));
        }
        for &node in candidates {
            refused.add(node, verdict.clone());
        }
        if matches!(verdict, Verdict::Unschedulable(_)) {
            self.unschedulable.extend(candidates);
        }
        Found::Nothing(refused.into_words(query.cluster))
    }

    /// Sorts nodes into those that fit now, those that fit after a release, and those that object; until `enough` fit now,
    /// or a plugin fails.
    fn ask_nodes(
        &mut self,
        query: Query<'_>,
        candidates: &[NodeId],
        enough: usize,
        narrowed: Option<&[NodeId]>,
        refused: &mut RefusalCount,
    ) {
        let Query { profile, cluster, task, limits } = query;
        let left_out = narrowed.is_some().then(|| self.left_out(profile));
        if narrowed.is_some() {
            refused.plugins.extend(self.narrowing_plugins(profile));
        }
        for &node in candidates {
            self.looked_at += 1;
            if let (Some(only), Some(left_out)) = (narrowed, &left_out)
                && only.binary_search(&node).is_err()
            {
                refused.add(node, left_out.clone());
                continue;
            }
            match self.examine(profile, cluster, task, node, limits) {
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
                Err(rejection) => self.count_objection(query, node, rejection, refused),
            }
        }
    }

    fn count_objection(&mut self, query: Query<'_>, node: NodeId, rejection: Rejection, refused: &mut RefusalCount) {
        let Query { profile, cluster, task, .. } = query;
        let Rejection { plugin, verdict } = rejection;
        refused.plugins.insert(plugin);
        if matches!(verdict, Verdict::Unschedulable(_)) {
            self.unschedulable.push(node);
        }
        if matches!(verdict, Verdict::Unschedulable(Why::Short(_)) | Verdict::Unresolvable(Why::Short(_))) {
            let host = cluster.node(node);
            let held = held(profile, host.books());
            let asked = cluster.asked_of_nodes(cluster.shape_of(task));
            for more in asked.all_over(&held, &host.allocatable).skip(1) {
                refused.also_short(more);
            }
        }
        refused.add(node, verdict);
    }

    /// Extenders are asked about the nodes that fit now; if they leave none of those, about those that fit later.
    fn ask_extenders(&mut self, query: Query<'_>, refused: &mut RefusalCount) -> Result<(), String> {
        let Some(extenders) = &query.profile.extenders else { return Ok(()) };
        let Self { now, later, unschedulable, .. } = self;
        let mut ask = |nodes: &mut Vec<NodeId>| {
            let objection = |node, verdict| extender::count(refused, unschedulable, node, verdict);
            extenders.filter(query.cluster, query.task, nodes, objection)
        };
        ask(now)?;
        if now.is_empty() { ask(later) } else { Ok(()) }
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
        let room = self.verdict_of_plugins(Query { profile, cluster, task, limits }, node)?;
        let mut said = None;
        if let Some(extenders) = &profile.extenders {
            let asked = extenders.filter(cluster, task, &mut vec![node], |_, objection| said = Some(objection));
            asked.map_err(|why| Verdict::Error(Why::Told(why.as_str().into())))?;
        }
        said.map_or(Ok(room), Err)
    }

    /// As [`Self::verdict`], without extenders.
    fn verdict_of_plugins(&mut self, query: Query<'_>, node: NodeId) -> Result<Room, Verdict> {
        let Query { profile, cluster, task, limits } = query;
        let narrowed = self.pre_filter(profile, cluster, task).map_err(|rejection| rejection.verdict)?;
        if narrowed.is_some_and(|only| only.binary_search(&node).is_err()) {
            return Err(self.left_out(profile));
        }
        let said = self.examine(profile, cluster, task, node, limits);
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
        let fits = self.verdict_of_plugins(Query { profile, cluster, task, limits }, node).is_ok();
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
    pub(super) fn pre_filter(&mut self, profile: &Profile, cluster: &ClusterState, task: TaskId) -> Narrowed {
        let pod = cluster.task(task);
        // What is counted for a pod that has, or was promised, a node leaves that out.
        let keeps = !self.is_plain && pod.node().is_none();
        self.state.begin(keeps.then(|| (pod.shape, &cluster.shape(pod.shape).spec)));
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
                    nodes.dedup();
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
        id: NodeId,
        limits: SearchLimits,
    ) -> Result<Room, Rejection> {
        let room = match room_for(profile, cluster, cluster.shape_of(task), id, limits) {
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

fn name(profile: &Profile, entry: usize) -> &'static str {
    profile.entries[entry].plugin.name()
}

pub(super) fn failed(plugin: &str, point: &str, why: &Why, cluster: &ClusterState) -> String {
    format!("running {point} plugin {plugin:?}: {}", why.text(cluster))
}
