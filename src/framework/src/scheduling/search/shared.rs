//! What shapes share that differ in their requests only: answers that read neither those nor what is on a node.

use std::sync::Arc;

use krafla_model::{NodeId, PodShape};

use super::classes::Plan;
use super::{NodeColumns, Query, Room};
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::plugin::Scope;
use crate::scheduling::verdict::Verdict;

/// What the answers depend on: the part of the shape, who has a say, and who of these has nothing to say about the score.
pub(super) type SharedKey = (PodShape, Plan, u64);

/// Answers to all such shapes, by place in tie order.
pub(super) struct Shared {
    pub(super) key: Arc<SharedKey>,
    /// Whether every such filter lets the pod pass.
    fits: Vec<bool>,
    /// The first that objects: its place among the filters, its name, and what it says.
    objections: Vec<Option<SpecObjection>>,
    pub(super) columns: Vec<SpecColumn>,
    /// Moves when a column becomes even, or uneven, or another even one.
    pub(super) version: u64,
    /// Classes that read it.
    pub(super) users: u32,
    seen: u64,
    nodes_version: u64,
}

/// The objection of a filter.
#[derive(Clone, Debug)]
pub(super) struct SpecObjection {
    /// Its place among the filters of the profile.
    pub(super) position: usize,
    pub(super) plugin: &'static str,
    pub(super) verdict: Verdict,
}

/// Scores of one plugin before normalising.
pub(super) struct SpecColumn {
    /// The plugin, by place in the profile.
    pub(super) entry: usize,
    pub(super) raw: Vec<f64>,
    /// What all of them are, if they are the same.
    pub(super) even: Option<f64>,
}

impl Shared {
    /// Nothing is known yet.
    pub(super) fn new(query: Query<'_>, key: Arc<SharedKey>) -> Self {
        let (profile, (_, plan, silent)) = (query.profile, &*key);
        let scores = |i: &usize| plan.scores(*i) && silent >> *i & 1 == 0 && profile.score_scope(*i) == Scope::Spec;
        let column = |entry: usize| SpecColumn { entry, raw: Vec::new(), even: None };
        let columns = profile.scorers.iter().copied().filter(scores).map(column).collect();
        Self { key, fits: Vec::new(), objections: Vec::new(), columns, version: 0, users: 0, seen: 0, nodes_version: 0 }
    }

    /// Asks about the nodes that have changed. `None` if a plugin fails.
    pub(super) fn follow(&mut self, query: Query<'_>, nodes: &NodeColumns, state: &CycleState) -> Option<()> {
        let cluster = query.cluster;
        let known = self.nodes_version == cluster.nodes_version();
        if known && self.seen >= cluster.specs_version() {
            return Some(());
        }
        match cluster.changed_specs(self.seen).filter(|_| known) {
            Some(changed) => {
                for id in changed {
                    self.ask(query, cluster.node_rank(id) as usize, id, state)?;
                }
            }
            None => {
                self.fits = vec![false; nodes.len()];
                self.objections = vec![None; nodes.len()];
                for column in &mut self.columns {
                    column.raw = vec![0.0; nodes.len()];
                }
                for place in 0..nodes.len() {
                    self.ask(query, place, cluster.nodes()[place], state)?;
                }
            }
        }
        for column in &mut self.columns {
            let even = column.raw.first().copied().filter(|first| column.raw.iter().all(|raw| raw == first));
            if column.even != even {
                self.version += 1;
            }
            column.even = even;
        }
        self.seen = cluster.version();
        self.nodes_version = cluster.nodes_version();
        Some(())
    }

    /// Whether nothing is against any such shape at a place.
    pub(super) fn fits(&self, place: u32) -> bool {
        self.fits[place as usize]
    }

    /// The objection to all such shapes at a place.
    pub(super) fn objection(&self, place: u32) -> Option<&SpecObjection> {
        if self.fits(place) { None } else { self.objections[place as usize].as_ref() }
    }

    fn ask(&mut self, query: Query<'_>, place: usize, node: NodeId, state: &CycleState) -> Option<()> {
        let Query { profile, cluster, task, .. } = query;
        self.objections[place] = None;
        let filters = profile.filters.iter().copied().enumerate();
        for (position, i) in filters.filter(|&(_, i)| self.key.1.filters(i) && profile.filter_scope(i) == Scope::Spec) {
            let plugin = &profile.entries[i].plugin;
            let verdict = plugin.filter(cluster, task, node, Room::Now, state);
            match verdict {
                Verdict::Fits => {}
                Verdict::Error(_) => return None,
                Verdict::Unschedulable(_) | Verdict::Unresolvable(_) => {
                    self.objections[place] = Some(SpecObjection { position, plugin: plugin.name(), verdict });
                    break;
                }
            }
        }
        self.fits[place] = self.objections[place].is_none();
        for column in &mut self.columns {
            let raw = profile.entries[column.entry].plugin.score(cluster, task, node, state);
            if raw.is_nan() {
                return None;
            }
            column.raw[place] = raw;
        }
        Some(())
    }
}
