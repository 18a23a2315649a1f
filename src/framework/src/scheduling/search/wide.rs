//! The best node where some plugin looks further than at single nodes: those are asked anew for each task, with what they
//! kept about the pods of each domain; what the others said is kept.
//!
//! Cost: a few steps for each node that fits so far as single nodes say.

use krafla_model::NodeId;
use smallvec::SmallVec;

use super::classes::{Buffers, Plan};
use super::shared::Shared;
use super::standings::{Standing, Standings};
use super::totals::{Basis, score_nodes};
use super::{Found, NodeColumns, Query, Room};
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::plugin::{NodePlugin, PreScore, Scope};
use crate::scheduling::verdict::Verdict;

/// What plugins that look at what is on a node add to its total: a column each, by place in tie order.
#[derive(Default)]
pub(super) struct Columns {
    columns: Vec<(usize, Vec<f64>)>,
}

impl Columns {
    /// Asks about all nodes that fit. `scorers`: plugins with a say that look at single nodes, in order.
    pub(super) fn rebuild(
        &mut self,
        basis: Basis<'_>,
        standings: &Standings,
        scorers: &[usize],
        buffers: &mut Buffers,
    ) -> Option<()> {
        let is_shared = |entry: &usize| basis.shared.columns.iter().any(|column| column.entry == *entry);
        let own = scorers.iter().copied().filter(|entry| !is_shared(entry));
        self.columns = own.map(|entry| (entry, vec![0.0; basis.nodes.len()])).collect();
        buffers.at.clear();
        buffers.at.extend(standings.places(standings.best()));
        self.fill(basis, buffers)
    }

    /// Asks about the nodes at `changed`.
    pub(super) fn refresh(
        &mut self,
        basis: Basis<'_>,
        standings: &Standings,
        changed: &[u32],
        buffers: &mut Buffers,
    ) -> Option<()> {
        buffers.at.clear();
        buffers.at.extend(changed.iter().filter(|place| standings.at(**place) == standings.best()));
        self.fill(basis, buffers)
    }

    fn fill(&mut self, basis: Basis<'_>, buffers: &mut Buffers) -> Option<()> {
        for (entry, column) in &mut self.columns {
            score_nodes(basis, *entry, &buffers.at, &mut buffers.scores)?;
            for (place, score) in buffers.at.iter().zip(&buffers.scores) {
                column[*place as usize] = *score;
            }
        }
        Some(())
    }

    /// The best node; `None` if none fits, or a plugin fails. `silent`: plugins without a say about the score.
    pub(super) fn best(
        &self,
        ask: Ask<'_>,
        standings: &Standings,
        silent: u64,
        state: &mut CycleState,
        buffers: &mut Buffers,
    ) -> Option<Found> {
        let Ask { query, plan, nodes, shared } = ask;
        let Query { profile, cluster, task, .. } = query;
        let standing = standings.best();
        let room = standing.room();
        let Buffers { at, ids, totals, scores, .. } = buffers;
        at.clear();
        ids.clear();
        let filters = WideFilters::new(query, plan, standing);
        for place in standings.places(standing) {
            let id = nodes.id(place);
            if filters.pass(id, state)? {
                at.push(place);
                ids.push(id);
            }
        }
        match ids.as_slice() {
            [] => return None,
            [only] => return Some(Found::Node { node: *only, room, score: 0.0 }),
            _ => {}
        }
        let mut silent = silent;
        for &i in profile.pre_scorers.iter().filter(|&&i| plan.scores_widely(i)) {
            match profile.entries[i].plugin.pre_score(cluster, task, ids, state) {
                PreScore::Score => {}
                PreScore::Skip => silent |= 1 << i,
                PreScore::Error(_) => return None,
            }
        }
        totals.clear();
        totals.resize(ids.len(), 0.0);
        for &i in profile.scorers.iter().filter(|&&i| silent >> i & 1 == 0) {
            let entry = &profile.entries[i];
            if let Some((_, column)) = self.columns.iter().find(|(own, _)| *own == i) {
                totals.iter_mut().zip(&*at).for_each(|(total, place)| *total += column[*place as usize]);
                continue;
            }
            scores.clear();
            if plan.scores_widely(i) {
                scores.extend(ids.iter().map(|&id| entry.plugin.score(cluster, task, id, state)));
            } else if let Some(column) = shared.columns.iter().find(|column| column.entry == i) {
                scores.extend(at.iter().map(|place| column.raw[*place as usize]));
            } else {
                continue;
            }
            entry.plugin.normalize(cluster, ids, state, scores);
            if profile.bounds_scores() && !scores.iter().all(|score| (0.0..=100.0).contains(score)) {
                return None;
            }
            totals.iter_mut().zip(&*scores).for_each(|(total, score)| *total += *score * entry.weight);
        }
        let mut best = 0;
        for (i, total) in totals.iter().enumerate() {
            if *total > totals[best] {
                best = i;
            }
        }
        let is_sound = totals.iter().all(|total| total.is_finite());
        is_sound.then(|| Found::Node { node: ids[best], room, score: totals[best] })
    }
}

/// Who is asked, about what.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) query: Query<'a>,
    pub(super) plan: Plan,
    pub(super) nodes: &'a NodeColumns,
    pub(super) shared: &'a Shared,
}

/// The filters that look further than at single nodes, for one search.
pub(super) struct WideFilters<'a> {
    query: Query<'a>,
    when: Room,
    /// Each with whether it may tell at a glance that it objects.
    filters: SmallVec<[(&'a dyn NodePlugin, bool); 8]>,
}

impl<'a> WideFilters<'a> {
    /// About nodes that stand so.
    pub(super) fn new(query: Query<'a>, plan: Plan, standing: Standing) -> Self {
        let profile = query.profile;
        let wide = profile.filters.iter().filter(|&&i| plan.filters_widely(i));
        let filters = wide.map(|&i| (&*profile.entries[i].plugin, profile.filter_scope(i) == Scope::Task));
        Self { query, when: standing.room(), filters: filters.collect() }
    }

    /// Whether they let a node pass. `None` if one fails.
    pub(super) fn pass(&self, id: NodeId, state: &CycleState) -> Option<bool> {
        let Query { cluster, task, .. } = self.query;
        for (plugin, at_a_glance) in &self.filters {
            if *at_a_glance && plugin.rules_out(cluster, task, id, self.when, state) {
                return Some(false);
            }
            match plugin.filter(cluster, task, id, self.when, state) {
                Verdict::Fits => {}
                Verdict::Unschedulable(_) | Verdict::Unresolvable(_) => return Some(false),
                Verdict::Error(_) => return None,
            }
        }
        Some(true)
    }
}
