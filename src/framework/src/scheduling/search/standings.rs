//! Where each node stands with one shape: whether filters that look at single nodes let it pass, and when it has room.

use krafla_model::ResourceId;

use super::classes::Plan;
use super::objections::Objections;
use super::room::room_for;
use super::totals::Basis;
use super::{FIT, Query, Room};
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
    /// Filters that look at what is on the node, in order: places among the filters of the profile, and in it.
    filters: Vec<(usize, usize)>,
    pub(super) objections: Objections,
    of: Vec<Standing>,
    n_now: usize,
    n_later: usize,
}

impl Standings {
    pub(super) fn new(query: Query<'_>, plan: Plan) -> Self {
        let Query { profile, cluster, task, .. } = query;
        let shape = cluster.shape_of(task);
        let filters = profile.filters.iter().copied().enumerate();
        Self {
            asked: cluster.asked_of_nodes(shape).iter().collect(),
            shares_device: shape.spec.gpu_share_milli > 0,
            filters: filters.filter(|&(_, i)| plan.filters(i) && profile.filter_scope(i) == Scope::Node).collect(),
            objections: Objections::default(),
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
        self.objections.clear(nodes);
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
    pub(super) fn ask(&mut self, basis: Basis<'_>, place: u32) -> Option<()> {
        let plainly_fits = self.plainly_fits(basis, place);
        if plainly_fits && self.at(place) == Standing::Now {
            return Some(()); // it stands as before, which is the common case
        }
        let examined = if plainly_fits { Ok(Room::Now) } else { self.examine(basis, place)? };
        let now = match examined {
            Ok(room) => {
                self.objections.lift(place);
                if room == Room::Now { Standing::Now } else { Standing::AfterRelease }
            }
            Err((plugin, verdict)) => {
                self.objections.set(basis.query, place, basis.nodes.id(place), plugin, verdict)?;
                Standing::Refused
            }
        };
        let before = std::mem::replace(&mut self.of[place as usize], now);
        for (standing, less, more) in [(before, 1, 0), (now, 0, 1)] {
            let n = match standing {
                Standing::Refused => continue,
                Standing::Now => &mut self.n_now,
                Standing::AfterRelease => &mut self.n_later,
            };
            *n = *n + more - less;
        }
        Some(())
    }

    /// Whether no filter but the room has to be asked, and that is there.
    fn plainly_fits(&self, basis: Basis<'_>, place: u32) -> bool {
        self.filters.is_empty()
            && !self.shares_device
            && basis.query.limits.may_start
            && basis.nodes.is_plain(place)
            && basis.shared.fits(place)
            && basis.nodes.fits(place, &self.asked)
    }

    /// When a node has room, or the plugin that is against it and what it says: the same steps as in the plain search.
    fn examine(&self, basis: Basis<'_>, place: u32) -> Option<Result<Room, (&'static str, Verdict)>> {
        let Query { profile, cluster, task, limits } = basis.query;
        let (nodes, id) = (basis.nodes, basis.nodes.id(place));
        let fits = nodes.is_plain(place) && !self.shares_device && nodes.fits(place, &self.asked);
        let room = match fits {
            true if limits.may_start => Ok(Room::Now),
            true if limits.may_wait => Ok(Room::AfterRelease),
            _ => room_for(profile, cluster, cluster.shape_of(task), id, limits),
        };
        let first = |when: Room, end: usize| self.first_objection(basis, place, when, end);
        let objection = match room {
            Err(verdict) => Some(first(Room::Now, profile.filters_before_fit().len()).unwrap_or((FIT, verdict))),
            Ok(room) => match first(room, usize::MAX) {
                None => return Some(Ok(room)),
                Some((_, Verdict::Unschedulable(_)))
                    if room == Room::Now && limits.may_wait && !cluster.node(id).books().releasing.is_zero() =>
                {
                    match first(Room::AfterRelease, usize::MAX) {
                        None => return Some(Ok(Room::AfterRelease)),
                        objection => objection,
                    }
                }
                objection => objection,
            },
        };
        let objection = objection.filter(|(_, verdict)| !matches!(verdict, Verdict::Error(_)))?;
        Some(Err(objection))
    }

    /// The first objection of the filters before `end`, of those that look at single nodes.
    fn first_objection(&self, basis: Basis<'_>, place: u32, when: Room, end: usize) -> Option<(&'static str, Verdict)> {
        let Query { profile, cluster, task, .. } = basis.query;
        let of_spec = basis.shared.objection(place).filter(|objection| objection.position < end);
        let end = of_spec.map_or(end, |objection| objection.position);
        for &(position, entry) in &self.filters {
            if position >= end {
                break;
            }
            let plugin = &profile.entries[entry].plugin;
            let verdict = plugin.filter(cluster, task, basis.nodes.id(place), when, basis.state);
            if verdict != Verdict::Fits {
                return Some((plugin.name(), verdict));
            }
        }
        of_spec.map(|objection| (objection.plugin, objection.verdict.clone()))
    }
}
