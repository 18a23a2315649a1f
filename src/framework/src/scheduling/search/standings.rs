//! Where each node stands with one shape: whether filters that look at single nodes let it pass, and when it has room.

use krafla_model::ResourceId;

use super::classes::Plan;
use super::room::room_for;
use super::shared::Shared;
use super::{NodeColumns, Query, Room};
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::plugin::Scope;
use crate::scheduling::verdict::Verdict;

/// Where a node stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    #[default]
    Refused,
    Now,
    AfterRelease,
}

impl Standing {
    pub(super) fn room(self) -> Room {
        if self == Self::Now { Room::Now } else { Room::AfterRelease }
    }
}

/// Of all nodes, by place in tie order.
pub(super) struct Standings {
    /// What nodes are asked for.
    asked: Vec<(ResourceId, i64)>,
    /// Whether it asks for a part of a device.
    shares_device: bool,
    /// Filters that look at what is on the node, in order.
    filters: Vec<usize>,
    of: Vec<Standing>,
    n_now: usize,
    n_later: usize,
}

impl Standings {
    pub(super) fn new(query: Query<'_>, plan: Plan) -> Self {
        let Query { profile, cluster, task, .. } = query;
        let shape = cluster.shape_of(task);
        let filters = profile.filters.iter().copied();
        Self {
            asked: cluster.asked_of_nodes(shape).iter().collect(),
            shares_device: shape.spec.gpu_share_milli > 0,
            filters: filters.filter(|&i| plan.filters(i) && profile.filter_scope(i) == Scope::Node).collect(),
            of: Vec::new(),
            n_now: 0,
            n_later: 0,
        }
    }

    /// Forgets all; there are so many nodes.
    pub(super) fn clear(&mut self, nodes: usize) {
        self.of.clear();
        self.of.resize(nodes, Standing::Refused);
        (self.n_now, self.n_later) = (0, 0);
    }

    pub(super) fn at(&self, place: u32) -> Standing {
        self.of[place as usize]
    }

    /// How many nodes stand so.
    pub(super) fn n(&self, standing: Standing) -> usize {
        match standing {
            Standing::Now => self.n_now,
            Standing::AfterRelease => self.n_later,
            Standing::Refused => self.of.len() - self.n_now - self.n_later,
        }
    }

    /// A node that has room now beats any that must wait.
    pub(super) fn best(&self) -> Standing {
        if self.n_now > 0 { Standing::Now } else { Standing::AfterRelease }
    }

    /// Places of the nodes that stand so, in order.
    pub(super) fn places(&self, standing: Standing) -> impl Iterator<Item = u32> {
        (0..).zip(&self.of).filter(move |(_, one)| **one == standing).map(|(place, _)| place)
    }

    /// Asks a node, as the plain search does. `None` if a plugin fails.
    pub(super) fn ask(
        &mut self,
        query: Query<'_>,
        nodes: &NodeColumns,
        shared: &Shared,
        state: &CycleState,
        place: u32,
    ) -> Option<Standing> {
        let now = self.standing_of(query, nodes, shared, state, place)?;
        let before = std::mem::replace(&mut self.of[place as usize], now);
        for (standing, less, more) in [(before, 1, 0), (now, 0, 1)] {
            let n = match standing {
                Standing::Refused => continue,
                Standing::Now => &mut self.n_now,
                Standing::AfterRelease => &mut self.n_later,
            };
            *n = *n + more - less;
        }
        Some(now)
    }

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
}
