//! The node where making room for one task costs least.
//!
//! Each node is asked once for a shape of tasks; after that only the node that was cheapest is asked again before it is
//! taken, since what one task takes leaves the others less. Cost: nodes times the tasks on each, once a shape; then the
//! tasks on one node for each task. A single task is found its node by bounds, which are kept: then few nodes are asked, as a
//! rule the one that is taken.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{Found, Room, Session, Statement, Verdict};
use krafla_model::{NodeId, Resources, ShapeId, TaskId};

use super::bounds::{Bounds, Place};
use super::plan::{Bundle, may_stay};
use super::shares::Gain;
use super::victims::{Cost, QueueRanks, candidates, is_whole, rest_of_gang};
use super::{ANYWHERE, Against, Beneficiary};

/// What the search for one job has learned.
#[derive(Default)]
pub(crate) struct Search<'b> {
    /// Nodes where room can be made for a shape, cheapest first; among equals in tie order. None until it was asked for.
    nodes: BTreeMap<ShapeId, BTreeSet<Place>>,
    ranks: QueueRanks,
    /// Tasks that could have been evicted.
    pub(crate) candidates: BTreeSet<TaskId>,
    /// What it takes on each node at the very least, if the search goes by that.
    bounds: Option<&'b mut Bounds>,
    /// Whether some nodes were not asked, so that there may be more candidates.
    pub(crate) is_partial: bool,
}

/// Whether a task fits a node and its queue, with what has been evicted gone.
pub(super) fn fits(session: &mut Session<'_>, who: &Beneficiary<'_>, task: TaskId, node: NodeId) -> bool {
    session.plugins().allocatable(session.cluster(), who.queue, task, Room::AfterRelease).is_none()
        && session.verdict(task, node, ANYWHERE).is_ok()
}

/// Tries to evict a task, and with it, if its gang would be broken, everybody of that. `None` if nobody may go.
fn take(
    trial: &mut Statement<'_, '_>,
    who: &Beneficiary<'_>,
    task: TaskId,
    gain: &Gain<'_>,
    victim: TaskId,
) -> Option<Bundle> {
    let cluster = trial.session().cluster();
    // It may have gone with another of its gang.
    let may_go = |session: &Session<'_>, task: TaskId| who.makes_shares_more_equal(session, gain, task);
    if !cluster.task(victim).status().is_allocated() || !may_go(trial.session(), victim) {
        return None;
    }
    let job = cluster.task(victim).job?;
    let mut attempt = trial.nested();
    attempt.evict(victim).ok()?;
    let mut bundle = vec![victim];
    if !matches!(who.against, Against::OwnJob) && !is_whole(attempt.session(), job) {
        for other in rest_of_gang(attempt.session(), who, task, job)? {
            if !may_go(attempt.session(), other) {
                return None;
            }
            attempt.evict(other).ok()?;
            bundle.push(other);
        }
    }
    attempt.merge();
    Some(bundle)
}

impl<'b> Search<'b> {
    pub(crate) fn new(session: &Session<'_>, who: &Beneficiary<'_>) -> Self {
        Self { ranks: QueueRanks::of(session, who), ..Self::default() }
    }

    /// One that goes by bounds; for no two tasks of one shape.
    pub(crate) fn by_bounds(session: &Session<'_>, who: &Beneficiary<'_>, bounds: &'b mut Bounds) -> Self {
        Self { bounds: Some(bounds), ..Self::new(session, who) }
    }

    /// Makes room for a task, as cheaply as can be, and promises it. Answers the node, and who was evicted; nothing for a
    /// task that needs no eviction, if it is to be placed only by one.
    pub(crate) fn place(
        &mut self,
        statement: &mut Statement<'_, '_>,
        who: &Beneficiary<'_>,
        task: TaskId,
        only_by_eviction: bool,
    ) -> Option<(NodeId, Vec<Bundle>)> {
        let now = statement.session_mut();
        if now.plugins().allocatable(now.cluster(), who.queue, task, Room::AfterRelease).is_none()
            && let Found::Node { node, .. } = now.find_node(task, ANYWHERE)
        {
            if only_by_eviction {
                return None;
            }
            statement.pipeline(task, node).ok()?;
            return Some((node, Vec::new()));
        }
        if let Some(bounds) = self.bounds.take() {
            let found = self.cheapest_by_bounds(statement, who, task, bounds);
            self.bounds = Some(bounds);
            let (_, _, node, victims) = found?;
            for &victim in victims.iter().flatten() {
                statement.evict(victim).ok()?;
            }
            statement.pipeline(task, node).ok()?;
            return Some((node, victims));
        }
        let shape = now.cluster().task(task).shape;
        if !self.nodes.contains_key(&shape) {
            let all: Vec<NodeId> = now.cluster().nodes().to_vec();
            let mut known = BTreeSet::new();
            for (rank, node) in (0..).zip(all) {
                if let Some((cost, _)) = self.ask(statement, who, task, node) {
                    known.insert((cost, rank, node));
                }
            }
            self.nodes.insert(shape, known);
        }
        loop {
            let (_, rank, node) = self.nodes.get_mut(&shape)?.pop_first()?;
            let Some((cost, victims)) = self.ask(statement, who, task, node) else { continue };
            let known = self.nodes.get_mut(&shape)?;
            let asked_again = (cost, rank, node);
            let is_cheapest = known.first().is_none_or(|next| asked_again <= *next);
            known.insert(asked_again);
            if !is_cheapest {
                continue;
            }
            for &victim in victims.iter().flatten() {
                statement.evict(victim).ok()?;
            }
            if victims.iter().any(|bundle| bundle.len() > 1) {
                // Whoever goes elsewhere makes other nodes cheaper, and other shapes fit.
                self.nodes.clear();
            }
            statement.pipeline(task, node).ok()?;
            return Some((node, victims));
        }
    }

    /// The cheapest of all nodes, and who would have to go there. Nodes are asked in the order of what they take at the very
    /// least, until that is more than the cheapest so far takes.
    fn cheapest_by_bounds(
        &mut self,
        statement: &mut Statement<'_, '_>,
        who: &Beneficiary<'_>,
        task: TaskId,
        bounds: &mut Bounds,
    ) -> Option<(Cost, u32, NodeId, Vec<Bundle>)> {
        let (mut hopeful, others) = bounds.of(statement.session(), who, &self.ranks, task);
        let mut best: Option<(Cost, u32, NodeId, Vec<Bundle>)> = None;
        while let Some(Reverse((least, rank, node))) = hopeful.pop() {
            if best.as_ref().is_some_and(|(cost, first, ..)| (cost, first) < (&least, &rank)) {
                break;
            }
            let Some((cost, victims)) = self.ask(statement, who, task, node) else { continue };
            debug_assert!(least <= cost, "{least:?} {cost:?}");
            if best.as_ref().is_none_or(|(lowest, first, ..)| (&cost, &rank) < (lowest, first)) {
                best = Some((cost, rank, node, victims));
            }
        }
        self.is_partial |= best.is_some();
        if best.is_none() {
            // They are counted among those who could have been evicted.
            for node in others {
                let asked = self.ask(statement, who, task, node);
                debug_assert!(asked.is_none(), "{asked:?}");
            }
        }
        best
    }

    /// Who would have to go from a node, and what that costs; `None` if room cannot be made there.
    fn ask(
        &mut self,
        statement: &mut Statement<'_, '_>,
        who: &Beneficiary<'_>,
        task: TaskId,
        node: NodeId,
    ) -> Option<(Cost, Vec<Bundle>)> {
        let now = statement.session_mut();
        if let Err(Verdict::Unresolvable(_)) = now.verdict(task, node, ANYWHERE) {
            return None;
        }
        let asked = candidates(now, who, &self.ranks, task, node);
        let cluster = now.cluster();
        let request = cluster.shape_of(task).request.clone();
        let mut most = cluster.node(node).future_idle();
        for &victim in &asked {
            most.add(&cluster.shape_of(victim).request);
        }
        self.candidates.extend(&asked);
        if asked.is_empty() || request.first_over(&Resources::default(), &most).is_some() {
            return None;
        }
        let gain = who.gain(cluster, &request);
        let mut trial = statement.nested();
        let mut bundles: Vec<Bundle> = Vec::with_capacity(asked.len());
        for victim in asked {
            bundles.extend(take(&mut trial, who, task, &gain, victim));
        }
        if bundles.is_empty() || !fits(trial.session_mut(), who, task, node) {
            return None;
        }
        // The dearest are given back first, but none into a gang that stays broken.
        let mut kept: Vec<Bundle> = Vec::with_capacity(bundles.len());
        for bundle in bundles.into_iter().rev() {
            for &victim in &bundle {
                trial.reprieve(victim).ok()?;
            }
            if !may_stay(trial.session().cluster(), &bundle, &kept) || !fits(trial.session_mut(), who, task, node) {
                for &victim in &bundle {
                    trial.evict(victim).ok()?;
                }
                kept.push(bundle);
            }
        }
        kept.reverse();
        // What they are worth is asked as they stood: a task that terminates does not run.
        drop(trial);
        let now = statement.session();
        Some((Cost::of(now, who, &self.ranks, &kept.concat()), kept))
    }
}
