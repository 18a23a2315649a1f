//! Totals of all nodes that fit, where every plugin with a say looks at single nodes; and the best of them.
//!
//! Cost of a refresh: the nodes that have changed, times the plugins that look at what is on them. If an extreme moves
//! that scores are normalised by, all nodes that fit are scored anew.

use std::collections::BTreeMap;

use ordered_float::OrderedFloat;

use super::classes::Buffers;
use super::shared::Shared;
use super::standings::{Standing, Standings};
use super::{Found, NodeColumns, Query};
use crate::scheduling::cycle_state::CycleState;

/// Nodes of which the best score is kept.
pub(super) const BLOCK: usize = 64;
/// The total of a node that is not scored.
pub(super) const UNSCORED: f64 = f64::NEG_INFINITY;
/// The highest total of a block that is yet to be looked for; above all others, so that it stays until then.
const UNKNOWN: f64 = f64::INFINITY;

/// What makes up a score, in the order in which the plain search adds it up.
pub(super) enum Part {
    /// Every node scores the same; the weight is in it.
    Even(f64),
    /// A shared column.
    Column { column: usize, tally: Tally },
    /// A plugin that looks at what is on the node.
    Node { entry: usize },
}

/// Scores of the nodes that fit, before normalising, with how many have each; and what becomes of each.
#[derive(Default)]
pub(super) struct Tally {
    counts: BTreeMap<OrderedFloat<f64>, u32>,
    /// By place, as it was counted.
    counted: Vec<f64>,
    pub(super) extremes: Option<(f64, f64)>,
    /// Normalised, with the weight in it; sorted.
    finals: Vec<(f64, f64)>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) parts: Vec<Part>,
    /// Which nodes are scored: those that fit now, or else those that fit later.
    pub(super) scored: Standing,
    /// By place in tie order.
    pub(super) totals: Vec<f64>,
    /// The highest total of each block.
    pub(super) highest: Vec<f64>,
    /// A place that was found to pass beside the best one.
    pub(super) second: u32,
}

/// What a refresh goes by.
#[derive(Clone, Copy)]
pub(super) struct Basis<'a> {
    pub(super) query: Query<'a>,
    pub(super) nodes: &'a NodeColumns,
    pub(super) shared: &'a Shared,
    pub(super) state: &'a CycleState,
}

impl Totals {
    /// The best node; `None` if none fits.
    pub(super) fn best(&self, standings: &Standings, nodes: &NodeColumns) -> Option<Found> {
        let n = standings.n(self.scored);
        if n == 0 {
            return None;
        }
        let block = self.best_block();
        let highest = self.highest[block];
        let begin = block * BLOCK;
        let inside = self.totals[begin..].iter().take(BLOCK).position(|total| *total == highest)?;
        let node = nodes.id(u32::try_from(begin + inside).ok()?);
        // The plain search does not score the only node that fits.
        Some(Found::Node { node, room: self.scored.room(), score: if n == 1 { 0.0 } else { highest } })
    }

    /// The first block with the highest total.
    pub(super) fn best_block(&self) -> usize {
        let mut block = 0;
        for (i, highest) in self.highest.iter().enumerate() {
            if *highest > self.highest[block] {
                block = i;
            }
        }
        block
    }

    /// Scores all nodes that fit. `scorers`: plugins with a say, in order.
    pub(super) fn rebuild(
        &mut self,
        basis: Basis<'_>,
        standings: &Standings,
        scorers: &[usize],
        buffers: &mut Buffers,
    ) -> Option<()> {
        let n = basis.nodes.len();
        self.totals = vec![UNSCORED; n];
        self.highest = vec![UNSCORED; n.div_ceil(BLOCK)];
        self.parts = scorers.iter().map(|&entry| Part::of(basis, entry)).collect::<Option<_>>()?;
        self.score_all(basis, standings, buffers)
    }

    /// Scores the nodes at `changed` anew, given where each stood before.
    pub(super) fn refresh(
        &mut self,
        basis: Basis<'_>,
        standings: &Standings,
        changed: &[u32],
        before: &[Standing],
        buffers: &mut Buffers,
    ) -> Option<()> {
        buffers.at.clear();
        for (&place, &before) in changed.iter().zip(before) {
            let is_scored = standings.at(place) == self.scored;
            for part in &mut self.parts {
                if let Part::Column { column, tally } = part {
                    let raw = basis.shared.columns[*column].raw[place as usize];
                    tally.recount(place, before == self.scored, is_scored.then_some(raw));
                }
            }
            match is_scored {
                true => buffers.at.push(place),
                false => self.set_total(place, UNSCORED),
            }
        }
        if self.scored != standings.best() || self.settle_tallies(basis)? {
            return self.score_all(basis, standings, buffers);
        }
        self.score(basis, buffers)?;
        for (&place, &total) in buffers.at.iter().zip(&buffers.totals) {
            self.set_total(place, total);
        }
        self.settle_blocks();
        Some(())
    }

    fn score_all(&mut self, basis: Basis<'_>, standings: &Standings, buffers: &mut Buffers) -> Option<()> {
        self.scored = standings.best();
        buffers.at.clear();
        buffers.at.extend(standings.places(self.scored));
        for part in &mut self.parts {
            if let Part::Column { column, tally } = part {
                let raw = &basis.shared.columns[*column].raw;
                *tally = Tally { counted: vec![0.0; raw.len()], ..Tally::default() };
                buffers.at.iter().for_each(|&place| tally.recount(place, false, Some(raw[place as usize])));
            }
        }
        self.settle_tallies(basis)?;
        self.score(basis, buffers)?;
        self.totals.fill(UNSCORED);
        for (&place, &total) in buffers.at.iter().zip(&buffers.totals) {
            self.totals[place as usize] = total;
        }
        for (highest, totals) in self.highest.iter_mut().zip(self.totals.chunks(BLOCK)) {
            *highest = highest_of(totals);
        }
        Some(())
    }

    /// Totals of the nodes at `buffers.at`, added up as the plain search does. `None` where that is to answer: a score is
    /// out of bounds.
    fn score(&self, basis: Basis<'_>, buffers: &mut Buffers) -> Option<()> {
        let Buffers { at, totals, scores, .. } = buffers;
        totals.clear();
        totals.resize(at.len(), 0.0);
        for part in &self.parts {
            match part {
                Part::Even(score) => totals.iter_mut().for_each(|total| *total += score),
                Part::Column { column, tally } => {
                    let raw = &basis.shared.columns[*column].raw;
                    totals
                        .iter_mut()
                        .zip(&*at)
                        .for_each(|(total, place)| *total += tally.weighed(raw[*place as usize]));
                }
                Part::Node { entry } => {
                    score_nodes(basis, *entry, at, scores)?;
                    totals.iter_mut().zip(&*scores).for_each(|(total, score)| *total += score);
                }
            }
        }
        totals.iter().all(|total| total.is_finite()).then_some(())
    }

    /// Brings what becomes of each score up to date. Answers whether scores that were there before become others.
    fn settle_tallies(&mut self, basis: Basis<'_>) -> Option<bool> {
        let mut moved = false;
        for part in &mut self.parts {
            let Part::Column { column, tally } = part else { continue };
            let known = tally.finals.len() == tally.counts.len()
                && tally.finals.iter().zip(tally.counts.keys()).all(|(known, raw)| known.0 == raw.0);
            if known {
                continue;
            }
            let entry = basis.shared.columns[*column].entry;
            let least_and_most = tally.counts.first_key_value().zip(tally.counts.last_key_value());
            let extremes = least_and_most.map(|((least, _), (most, _))| (least.0, most.0));
            moved |= tally.extremes.is_some()
                && tally.extremes != extremes
                && basis.query.profile.entries[entry].plugin.normalizes();
            tally.extremes = extremes;
            tally.finals.clear();
            for raw in tally.counts.keys() {
                tally.finals.push((raw.0, weighed(basis, entry, raw.0, extremes?)?));
            }
        }
        Some(moved)
    }

    fn set_total(&mut self, place: u32, total: f64) {
        let before = std::mem::replace(&mut self.totals[place as usize], total);
        let highest = &mut self.highest[place as usize / BLOCK];
        if total >= *highest {
            *highest = total;
        } else if before == *highest {
            // It is looked for once all totals are set.
            *highest = UNKNOWN;
        }
    }

    /// Looks for the highest total of each block in which that was lowered.
    fn settle_blocks(&mut self) {
        for (highest, totals) in self.highest.iter_mut().zip(self.totals.chunks(BLOCK)) {
            if *highest == UNKNOWN {
                *highest = highest_of(totals);
            }
        }
    }
}

impl Part {
    fn of(basis: Basis<'_>, entry: usize) -> Option<Self> {
        let columns = &basis.shared.columns;
        Some(match columns.iter().position(|column| column.entry == entry) {
            None => Self::Node { entry },
            Some(column) => match columns[column].even {
                Some(raw) => Self::Even(weighed(basis, entry, raw, (raw, raw))?),
                None => Self::Column { column, tally: Tally::default() },
            },
        })
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

fn highest_of(totals: &[f64]) -> f64 {
    totals.iter().fold(UNSCORED, |highest, &total| if total > highest { total } else { highest })
}

/// What a plugin that looks at what is on the node adds to the totals of the nodes at `at`. `None` if a score is out of
/// bounds.
pub(super) fn score_nodes(basis: Basis<'_>, entry: usize, at: &[u32], scores: &mut Vec<f64>) -> Option<()> {
    let Query { profile, cluster, task, .. } = basis.query;
    let entry = &profile.entries[entry];
    scores.clear();
    entry.plugin.score_nodes(cluster, task, basis.nodes, at, basis.state, scores);
    debug_assert_eq!(scores.len(), at.len(), "{} scores each node", entry.plugin.name());
    if profile.bounds_scores() && !scores.iter().all(|score| (0.0..=100.0).contains(score)) {
        return None;
    }
    scores.iter_mut().for_each(|score| *score *= entry.weight);
    Some(())
}

/// What a plugin's score adds to the total, once normalised. `None` if it is out of bounds.
fn weighed(basis: Basis<'_>, entry: usize, raw: f64, (least, most): (f64, f64)) -> Option<f64> {
    let Query { profile, cluster, .. } = basis.query;
    let entry = &profile.entries[entry];
    let mut scores = [raw, least, most];
    if entry.plugin.normalizes() && !basis.nodes.is_empty() {
        entry.plugin.normalize(cluster, &[basis.nodes.id(0); 3], basis.state, &mut scores);
    }
    let within = !profile.bounds_scores() || (0.0..=100.0).contains(&scores[0]);
    (within && !scores[0].is_nan()).then_some(scores[0] * entry.weight)
}
