//! A class: what every node said to pods of one signature, kept, and asked again where a node has changed.

use krafla_model::{ClusterState, NodeId};

use super::classes::{Buffers, Plan};
use super::shared::Shared;
use super::sieve::Sieved;
use super::standings::{Standing, Standings};
use super::totals::{Basis, Totals};
use super::wide::{Ask, Columns, WideFilters};
use super::{Found, NodeColumns, Query};
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::verdict::Refusals;

/// See the module.
pub(super) struct Class {
    plan: Plan,
    nodes_version: u64,
    /// The state's version at the last refresh; 0 before the first.
    pub(super) seen: u64,
    pub(super) last_used: u64,
    pub(super) shared: u32,
    shared_version: u64,
    /// Plugins that the plan lets score, and that have nothing to say.
    silent: u64,
    /// Plugins with a say about the score that look at single nodes, in order.
    scorers: Vec<usize>,
    standings: Standings,
    /// Where all that make up the total look at single nodes.
    totals: Option<Totals>,
    /// Where some look further, or where totals did not do for once.
    columns: Option<Columns>,
}

impl Class {
    pub(super) fn new(query: Query<'_>, plan: Plan, silent: u64, shared: u32) -> Self {
        let scorers = query.profile.scorers.iter().copied();
        Self {
            plan,
            nodes_version: query.cluster.nodes_version(),
            seen: 0,
            last_used: 0,
            shared,
            shared_version: 0,
            silent,
            scorers: scorers.filter(|&i| plan.scores(i) && silent >> i & 1 == 0).collect(),
            standings: Standings::new(query, plan),
            totals: (!plan.has_wide_scores()).then(Totals::default),
            columns: plan.has_wide_scores().then(Columns::default),
        }
    }

    /// Whether the nodes are the same, and what plugins look at beside them.
    pub(super) fn is_of(&self, cluster: &ClusterState, plan: Plan) -> bool {
        self.plan == plan && self.nodes_version == cluster.nodes_version()
    }

    /// Whether what is kept holds but for nodes that have changed.
    pub(super) fn is_fresh(&self, shared: &Shared) -> bool {
        self.seen > 0 && self.shared_version == shared.version
    }

    /// Asks all nodes. `None` where the plain search has to answer.
    pub(super) fn rebuild(&mut self, basis: Basis<'_>, buffers: &mut Buffers) -> Option<()> {
        let Self { standings, scorers, .. } = self;
        self.shared_version = basis.shared.version;
        standings.clear(basis.nodes.len());
        for place in 0..u32::try_from(basis.nodes.len()).ok()? {
            standings.ask(basis, place)?;
        }
        if let Some(totals) = &mut self.totals {
            totals.rebuild(basis, standings, scorers, buffers)?;
        }
        if let Some(columns) = &mut self.columns {
            columns.rebuild(basis, standings, scorers, buffers)?;
        }
        Some(())
    }

    /// Asks the nodes at `changed`. `None` where the plain search has to answer.
    pub(super) fn refresh(&mut self, basis: Basis<'_>, changed: &[u32], buffers: &mut Buffers) -> Option<()> {
        let Self { standings, scorers, totals, columns, .. } = self;
        let best = standings.best();
        let mut before = std::mem::take(&mut buffers.before);
        before.clear();
        before.extend(changed.iter().map(|&place| standings.at(place)));
        for &place in changed {
            standings.ask(basis, place)?;
        }
        if let Some(totals) = totals {
            totals.refresh(basis, standings, changed, &before, buffers)?;
        }
        buffers.before = before;
        match columns {
            None => Some(()),
            Some(columns) if best == standings.best() => columns.refresh(basis, standings, changed, buffers),
            Some(columns) => columns.rebuild(basis, standings, scorers, buffers),
        }
    }

    /// Why no node fits; `None` if one may, so far as is kept.
    pub(super) fn refusals(&mut self, query: Query<'_>, nodes: &NodeColumns) -> Option<Refusals> {
        let none = self.standings.n(Standing::Now) + self.standings.n(Standing::AfterRelease) == 0;
        (none && !self.plan.has_wide_filters()).then(|| self.standings.objections.words(query, nodes))
    }

    /// Nodes whose objection an eviction may lift, in their order.
    pub(super) fn unschedulable(&self, cluster: &ClusterState) -> impl Iterator<Item = NodeId> {
        self.standings.objections.unschedulable(cluster)
    }

    /// The best node; `None` where the plain search has to answer.
    pub(super) fn best(
        &mut self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &mut CycleState,
        buffers: &mut Buffers,
    ) -> Option<Found> {
        let Self { plan, standings, scorers, totals, columns, .. } = self;
        let standing = standings.best();
        // Nodes that do not pass now are outdone by one that does; but if none does, what is yet to be released may let
        // one pass later.
        let releases = query.limits.may_wait && !query.cluster.totals().releasing.is_zero();
        if plan.has_wide_filters() && releases && standing != Standing::Now {
            return None;
        }
        let basis = Basis { query, nodes, shared, state: &*state };
        if let Some(totals) = totals {
            if !plan.has_wide_filters() {
                return totals.best(standings, nodes);
            }
            let filters = WideFilters::new(query, *plan, standing);
            match totals.best_that_passes(basis, standings, |node| filters.pass(node, basis.state))? {
                Sieved::Node(found) => return Some(found),
                Sieved::OtherExtremes => {}
            }
        }
        if columns.is_none() {
            let mut fresh = Columns::default();
            fresh.rebuild(basis, standings, scorers, buffers)?;
            *columns = Some(fresh);
        }
        let ask = Ask { query, plan: *plan, nodes, shared };
        columns.as_ref()?.best(ask, standings, self.silent, state, buffers)
    }
}
