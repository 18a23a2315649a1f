//! A class: what every node said to one shape, kept, and asked again where a node has changed.
//!
//! Cost of a refresh: the nodes that have changed, times the plugins that look at what is on them. If an extreme moves
//! that scores are normalised by, all nodes that fit are scored anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_model::{PodShape, ResourceId};
use ordered_float::OrderedFloat;

use super::classes::Plan;
use super::room::room_for;
use super::shared::Shared;
use super::{Found, NodeColumns, Query, Room};
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::plugin::Scope;
use crate::scheduling::verdict::Verdict;

/// Nodes of which the best score is kept.
const BLOCK: usize = 64;
/// The total of a node that is not scored.
const UNSCORED: f64 = f64::NEG_INFINITY;

/// Where a node stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    #[default]
    Refused,
    Now,
    AfterRelease,
}

/// What makes up a score, in the order in which the plain search adds it up.
enum Part {
    /// Every node scores the same; the weight is in it.
    Even(f64),
    /// A shared column.
    Column { column: usize, tally: Tally },
    /// A plugin that looks at what is on the node.
    Node { entry: usize },
}

/// Scores of the nodes that fit, before normalising, with how many have each; and what becomes of each.
#[derive(Default)]
struct Tally {
    counts: BTreeMap<OrderedFloat<f64>, u32>,
    /// By place, as it was counted.
    counted: Vec<f64>,
    extremes: Option<(f64, f64)>,
    /// Normalised, with the weight in it; sorted.
    finals: Vec<(f64, f64)>,
}

/// See the module.
pub(super) struct Class {
    pub(super) shape: Arc<PodShape>,
    pub(super) plan: Plan,
    pub(super) nodes_version: u64,
    /// The state's version at the last refresh; 0 before the first.
    pub(super) seen: u64,
    pub(super) last_used: u64,
    pub(super) shared: u32,
    shared_version: u64,
    /// Plugins without a say about the score, beside those that the plan leaves out.
    silent: u64,
    /// What nodes are asked for.
    asked: Vec<(ResourceId, i64)>,
    /// Whether it asks for a part of a device.
    shares_device: bool,
    /// Filters that look at what is on the node, in order.
    filters: Vec<usize>,
    parts: Vec<Part>,
    standing: Vec<Standing>,
    n_now: usize,
    n_later: usize,
    /// Which nodes are scored: those that fit now, or else those that fit later.
    scored: Standing,
    totals: Vec<f64>,
    /// The highest total of each block.
    highest: Vec<f64>,
}

/// Buffers of refreshes.
#[derive(Default)]
pub(super) struct Buffers {
    at: Vec<u32>,
    totals: Vec<f64>,
    scores: Vec<f64>,
}

impl Class {
    pub(super) fn new(query: Query<'_>, plan: Plan, silent: u64, shared: u32) -> Self {
        let Query { profile, cluster, task, .. } = query;
        let shape = cluster.shape_of(task);
        let filters = profile.filters.iter().copied();
        let filters = filters.filter(|&i| plan.filters(i) && profile.filter_scope(i) == Scope::Node).collect();
        Self {
            shape: Arc::clone(&shape.spec),
            plan,
            nodes_version: cluster.nodes_version(),
            seen: 0,
            last_used: 0,
            shared,
            shared_version: 0,
            silent,
            asked: cluster.asked_of_nodes(shape).iter().collect(),
            shares_device: shape.spec.gpu_share_milli > 0,
            filters,
            parts: Vec::new(),
            standing: Vec::new(),
            n_now: 0,
            n_later: 0,
            scored: Standing::Now,
            totals: Vec::new(),
            highest: Vec::new(),
        }
    }

    /// Whether what is kept holds but for nodes that have changed.
    pub(super) fn is_fresh(&self, shared: &Shared) -> bool {
        self.seen > 0 && self.shared_version == shared.version
    }

    /// The best node; `None` if none fits.
    pub(super) fn best(&self, nodes: &NodeColumns) -> Option<Found> {
        let (n, room) = match self.scored {
            Standing::Now => (self.n_now, Room::Now),
            _ => (self.n_later, Room::AfterRelease),
        };
        if n == 0 {
            return None;
        }
        let mut block = 0;
        for (i, highest) in self.highest.iter().enumerate() {
            if *highest > self.highest[block] {
                block = i;
            }
        }
        let highest = self.highest[block];
        let begin = block * BLOCK;
        let inside = self.totals[begin..].iter().take(BLOCK).position(|total| *total == highest)?;
        let place = u32::try_from(begin + inside).ok()?;
        // The plain search does not score the only node that fits.
        Some(Found::Node { node: nodes.id(place), room, score: if n == 1 { 0.0 } else { highest } })
    }

    /// Asks all nodes.
    pub(super) fn rebuild(
        &mut self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &CycleState,
        buffers: &mut Buffers,
    ) -> Option<()> {
        self.standing = vec![Standing::Refused; nodes.len()];
        self.totals = vec![UNSCORED; nodes.len()];
        self.highest = vec![UNSCORED; nodes.len().div_ceil(BLOCK)];
        (self.n_now, self.n_later) = (0, 0);
        self.parts = self.make_parts(query, shared, nodes, state)?;
        self.shared_version = shared.version;
        for place in 0..u32::try_from(nodes.len()).ok()? {
            let standing = self.standing_of(query, nodes, shared, state, place)?;
            self.set_standing(place, standing);
        }
        self.score_all(query, nodes, shared, state, buffers)
    }

    /// Asks the nodes at `changed`.
    pub(super) fn refresh(
        &mut self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &CycleState,
        changed: &[u32],
        buffers: &mut Buffers,
    ) -> Option<()> {
        buffers.at.clear();
        for &place in changed {
            let was_scored = self.standing[place as usize] == self.scored;
            let standing = self.standing_of(query, nodes, shared, state, place)?;
            self.set_standing(place, standing);
            let is_scored = standing == self.scored;
            for part in &mut self.parts {
                if let Part::Column { column, tally } = part {
                    let raw = shared.columns[*column].raw[place as usize];
                    tally.recount(place, was_scored, is_scored.then_some(raw));
                }
            }
            match is_scored {
                true => buffers.at.push(place),
                false => self.set_total(place, UNSCORED),
            }
        }
        if self.scored != self.to_be_scored() || self.settle_tallies(query, nodes, shared, state)? {
            return self.score_all(query, nodes, shared, state, buffers);
        }
        self.score(query, nodes, shared, state, buffers)?;
        for (&place, &total) in buffers.at.iter().zip(&buffers.totals) {
            self.set_total(place, total);
        }
        Some(())
    }

    fn to_be_scored(&self) -> Standing {
        if self.n_now > 0 { Standing::Now } else { Standing::AfterRelease }
    }

    fn score_all(
        &mut self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &CycleState,
        buffers: &mut Buffers,
    ) -> Option<()> {
        self.scored = self.to_be_scored();
        buffers.at.clear();
        buffers.at.extend((0..).zip(&self.standing).filter(|(_, one)| **one == self.scored).map(|(place, _)| place));
        for part in &mut self.parts {
            if let Part::Column { column, tally } = part {
                let raw = &shared.columns[*column].raw;
                *tally = Tally { counted: vec![0.0; raw.len()], ..Tally::default() };
                buffers.at.iter().for_each(|&place| tally.recount(place, false, Some(raw[place as usize])));
            }
        }
        self.settle_tallies(query, nodes, shared, state)?;
        self.score(query, nodes, shared, state, buffers)?;
        self.totals.fill(UNSCORED);
        for (&place, &total) in buffers.at.iter().zip(&buffers.totals) {
            self.totals[place as usize] = total;
        }
        for (highest, totals) in self.highest.iter_mut().zip(self.totals.chunks(BLOCK)) {
            *highest = totals.iter().copied().fold(UNSCORED, f64::max);
        }
        Some(())
    }

    /// Totals of the nodes at `buffers.at`, added up as the plain search does. `None` where that is to answer: a score is
    /// out of bounds.
    fn score(
        &self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &CycleState,
        buffers: &mut Buffers,
    ) -> Option<()> {
        let Query { profile, cluster, task, .. } = query;
        let Buffers { at, totals, scores } = buffers;
        totals.clear();
        totals.resize(at.len(), 0.0);
        for part in &self.parts {
            match part {
                Part::Even(score) => totals.iter_mut().for_each(|total| *total += score),
                Part::Column { column, tally } => {
                    let raw = &shared.columns[*column].raw;
                    totals
                        .iter_mut()
                        .zip(&*at)
                        .for_each(|(total, place)| *total += tally.weighed(raw[*place as usize]));
                }
                Part::Node { entry } => {
                    let entry = &profile.entries[*entry];
                    scores.clear();
                    entry.plugin.score_nodes(cluster, task, nodes, at, state, scores);
                    debug_assert_eq!(scores.len(), at.len(), "{} scores each node", entry.plugin.name());
                    for (total, score) in totals.iter_mut().zip(&*scores) {
                        if profile.bounds_scores() && !(0.0..=100.0).contains(score) {
                            return None;
                        }
                        *total += *score * entry.weight;
                    }
                }
            }
        }
        totals.iter().all(|total| !total.is_nan()).then_some(())
    }

    /// Brings what becomes of each score up to date. Answers whether scores that were there before become others.
    fn settle_tallies(
        &mut self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &CycleState,
    ) -> Option<bool> {
        let mut moved = false;
        for part in &mut self.parts {
            let Part::Column { column, tally } = part else { continue };
            let known = tally.finals.len() == tally.counts.len()
                && tally.finals.iter().zip(tally.counts.keys()).all(|(known, raw)| known.0 == raw.0);
            if known {
                continue;
            }
            let entry = shared.columns[*column].entry;
            let least_and_most = tally.counts.first_key_value().zip(tally.counts.last_key_value());
            let extremes = least_and_most.map(|((least, _), (most, _))| (least.0, most.0));
            moved |= tally.extremes.is_some()
                && tally.extremes != extremes
                && query.profile.entries[entry].plugin.normalizes();
            tally.extremes = extremes;
            tally.finals.clear();
            for raw in tally.counts.keys() {
                tally.finals.push((raw.0, weighed(query, nodes, state, entry, raw.0, extremes?)?));
            }
        }
        Some(moved)
    }

    fn make_parts(
        &self,
        query: Query<'_>,
        shared: &Shared,
        nodes: &NodeColumns,
        state: &CycleState,
    ) -> Option<Vec<Part>> {
        let profile = query.profile;
        let mut parts = Vec::new();
        for &entry in profile.scorers.iter().filter(|&&i| self.plan.scores(i) && self.silent >> i & 1 == 0) {
            let column = shared.columns.iter().position(|column| column.entry == entry);
            parts.push(match column {
                None => Part::Node { entry },
                Some(column) => match shared.columns[column].even {
                    Some(raw) => Part::Even(weighed(query, nodes, state, entry, raw, (raw, raw))?),
                    None => Part::Column { column, tally: Tally::default() },
                },
            });
        }
        Some(parts)
    }

    /// Where one node stands, as the plain search would find it. `None` if a plugin fails.
    fn standing_of(
        &self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &CycleState,
        place: u32,
    ) -> Option<Standing> {
        let Query { profile, cluster, task, limits } = query;
        if !shared.fits[place as usize] {
            return Some(Standing::Refused);
        }
        let id = nodes.id(place);
        let room = if nodes.is_plain(place) && !self.shares_device {
            match nodes.fits(place, &self.asked) {
                true if limits.may_start => Some(Room::Now),
                true if limits.may_wait => Some(Room::AfterRelease),
                _ => None,
            }
        } else {
            room_for(profile, cluster, cluster.shape_of(task), id, limits).ok()
        };
        let Some(room) = room else { return Some(Standing::Refused) };
        let ask = |room: Room| {
            let verdicts =
                self.filters.iter().map(|&i| profile.entries[i].plugin.filter(cluster, task, id, room, state));
            verdicts.into_iter().find(|verdict| *verdict != Verdict::Fits).unwrap_or(Verdict::Fits)
        };
        let leaves = || room == Room::Now && limits.may_wait && !cluster.node(id).books().releasing.is_zero();
        let (room, verdict) = match ask(room) {
            Verdict::Unschedulable(_) if leaves() => (Room::AfterRelease, ask(Room::AfterRelease)),
            verdict => (room, verdict),
        };
        match (verdict, room) {
            (Verdict::Fits, Room::Now) => Some(Standing::Now),
            (Verdict::Fits, Room::AfterRelease) => Some(Standing::AfterRelease),
            (Verdict::Unschedulable(_) | Verdict::Unresolvable(_), _) => Some(Standing::Refused),
            (Verdict::Error(_), _) => None,
        }
    }

    fn set_standing(&mut self, place: u32, to: Standing) {
        let before = std::mem::replace(&mut self.standing[place as usize], to);
        for (standing, less, more) in [(before, 1, 0), (to, 0, 1)] {
            let n = match standing {
                Standing::Refused => continue,
                Standing::Now => &mut self.n_now,
                Standing::AfterRelease => &mut self.n_later,
            };
            *n = *n + more - less;
        }
    }

    fn set_total(&mut self, place: u32, total: f64) {
        let before = std::mem::replace(&mut self.totals[place as usize], total);
        let block = place as usize / BLOCK;
        let highest = &mut self.highest[block];
        if total >= *highest {
            *highest = total;
        } else if before == *highest {
            *highest = self.totals[block * BLOCK..].iter().take(BLOCK).copied().fold(UNSCORED, f64::max);
        }
    }
}

impl Tally {
    /// A node was counted, and is to be counted with this score, or neither.
    fn recount(&mut self, place: u32, was_counted: bool, raw: Option<f64>) {
        let counted = &mut self.counted[place as usize];
        if was_counted && let Some(count) = self.counts.get_mut(&OrderedFloat(*counted)) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&OrderedFloat(*counted));
            }
        }
        if let Some(raw) = raw {
            *counted = raw;
            *self.counts.entry(OrderedFloat(raw)).or_default() += 1;
        }
    }

    fn weighed(&self, raw: f64) -> f64 {
        let at = self.finals.partition_point(|(known, _)| *known < raw);
        self.finals[at].1
    }
}

/// What a plugin's score adds to the total, once normalised. `None` if it is out of bounds.
fn weighed(
    query: Query<'_>,
    nodes: &NodeColumns,
    state: &CycleState,
    entry: usize,
    raw: f64,
    (least, most): (f64, f64),
) -> Option<f64> {
    let entry = &query.profile.entries[entry];
    let mut scores = [raw, least, most];
    if entry.plugin.normalizes() && !nodes.is_empty() {
        entry.plugin.normalize(query.cluster, &[nodes.id(0); 3], state, &mut scores);
    }
    let within = !query.profile.bounds_scores() || (0.0..=100.0).contains(&scores[0]);
    (within && !scores[0].is_nan()).then_some(scores[0] * entry.weight)
}
