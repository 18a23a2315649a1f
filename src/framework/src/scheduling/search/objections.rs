//! What nodes object to one shape: kept by node, so that a refusal costs the nodes that have changed, and its words are
//! those of the plain search.

use krafla_model::{ClusterState, NodeId, ResourceId, Shortfall};
use smallvec::SmallVec;

use super::room::{held, held_of};
use super::{FIT, NodeColumns, Query};
use crate::scheduling::verdict::{RefusalCount, Refusals, Verdict, Why};

/// No objection.
const NONE: u16 = u16::MAX;

/// An objection without the numbers of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Objection {
    /// The node lacks these resources; the first is what it says.
    Short { unresolvable: bool, over: SmallVec<[ResourceId; 4]> },
    /// Something else.
    Other { plugin: &'static str, verdict: Verdict },
}

/// Of all nodes, by place in tie order.
#[derive(Default)]
pub(super) struct Objections {
    of: Vec<u16>,
    /// The different ones, and how many nodes make each.
    table: Vec<(Objection, u32)>,
    /// Words, until an objection changes.
    words: Option<Refusals>,
}

impl Objections {
    /// Forgets all; there are so many nodes.
    pub(super) fn clear(&mut self, nodes: usize) {
        self.of.clear();
        self.of.resize(nodes, NONE);
        self.table.clear();
        self.words = None;
    }

    /// A node has no objection.
    pub(super) fn lift(&mut self, place: u32) {
        self.put(place, NONE);
    }

    /// A node objects. `None` if the plain search has to say it.
    pub(super) fn set(
        &mut self,
        query: Query<'_>,
        place: u32,
        node: NodeId,
        plugin: &'static str,
        verdict: Verdict,
    ) -> Option<()> {
        let Query { profile, cluster, task, .. } = query;
        let objection = match &verdict {
            Verdict::Fits | Verdict::Error(_) => return None,
            Verdict::Unschedulable(Why::Short(_)) | Verdict::Unresolvable(Why::Short(_)) => {
                let host = cluster.node(node);
                let held = held(profile, host.books());
                let asked = cluster.asked_of_nodes(cluster.shape_of(task));
                let over = asked.all_over(&held, &host.allocatable).map(|short| short.resource).collect();
                Objection::Short { unresolvable: matches!(verdict, Verdict::Unresolvable(_)), over }
            }
            _ => Objection::Other { plugin, verdict },
        };
        if matches!(objection, Objection::Short { .. }) && plugin != FIT {
            return None;
        }
        let known = self.table.iter().position(|(known, _)| *known == objection);
        let code = known.unwrap_or_else(|| {
            self.table.push((objection, 0));
            self.table.len() - 1
        });
        self.put(place, u16::try_from(code).ok().filter(|code| *code != NONE)?);
        Some(())
    }

    fn put(&mut self, place: u32, code: u16) {
        let before = std::mem::replace(&mut self.of[place as usize], code);
        if before == NONE && code == NONE {
            return;
        }
        // What is free there may be another amount, even if it objects as before.
        self.words = None;
        if let Some((_, n)) = self.table.get_mut(usize::from(before)) {
            *n -= 1;
        }
        if let Some((_, n)) = self.table.get_mut(usize::from(code)) {
            *n += 1;
        }
    }

    /// All of them in words.
    pub(super) fn words(&mut self, query: Query<'_>, nodes: &NodeColumns) -> Refusals {
        if let Some(words) = &self.words {
            return words.clone();
        }
        let mut refused = RefusalCount::default();
        for (objection, n) in self.table.iter().filter(|(_, n)| *n > 0) {
            match objection {
                Objection::Short { unresolvable, over } => {
                    refused.plugins.insert(FIT);
                    refused.add_short(*n, *unresolvable, over);
                }
                Objection::Other { plugin, verdict } => {
                    refused.plugins.insert(plugin);
                    refused.add_many(*n, verdict.clone());
                }
            }
        }
        refused.set_nearest(self.nearest(query, nodes));
        let words = refused.into_words(query.cluster);
        self.words = Some(words.clone());
        words
    }

    /// Of the nodes that lack what the first of them lacks, the one with most of it; the first of equals.
    fn nearest(&self, query: Query<'_>, nodes: &NodeColumns) -> Option<(Shortfall, NodeId)> {
        let Query { profile, cluster, task, .. } = query;
        let resource = self.of.iter().find_map(|code| self.short_of(usize::from(*code)))?;
        let asked = cluster.asked_of_nodes(cluster.shape_of(task)).get(resource);
        let codes: SmallVec<[bool; 16]> = (0..self.table.len()).map(|i| self.short_of(i) == Some(resource)).collect();
        let column = nodes.resource(resource)?;
        let mut best: Option<(i64, Shortfall, NodeId)> = None;
        for (place, code) in self.of.iter().enumerate().filter(|(_, code)| **code != NONE) {
            if !codes[usize::from(*code)] {
                continue;
            }
            let id = nodes.id(u32::try_from(place).ok()?);
            let limit = column.allocatable[place];
            let used = match nodes.is_plain(u32::try_from(place).ok()?) {
                true => column.used[place],
                false => held_of(profile, cluster.node(id).books(), resource),
            };
            let free = limit.saturating_sub(used);
            if best.as_ref().is_none_or(|(most, ..)| free > *most) {
                best = Some((free, Shortfall { resource, asked, used, limit }, id));
            }
        }
        best.map(|(_, short, node)| (short, node))
    }

    fn short_of(&self, code: usize) -> Option<ResourceId> {
        match self.table.get(code) {
            Some((Objection::Short { over, .. }, _)) => over.first().copied(),
            _ => None,
        }
    }

    /// Nodes whose objection an eviction may lift, in their order.
    pub(super) fn unschedulable(&self, cluster: &ClusterState) -> impl Iterator<Item = NodeId> {
        let liftable = |(objection, _): &(Objection, u32)| match objection {
            Objection::Short { unresolvable, .. } => !unresolvable,
            Objection::Other { verdict, .. } => matches!(verdict, Verdict::Unschedulable(_)),
        };
        let may_go: SmallVec<[bool; 16]> = self.table.iter().map(liftable).collect();
        let all = cluster.nodes().iter().zip(&self.of);
        all.filter(move |(_, code)| may_go.get(usize::from(**code)).copied().unwrap_or(false)).map(|(node, _)| *node)
    }
}
