//! What emptying a node costs: how many pods have to go from it so that some of a gang fit there, and which.
//!
//! Here only amounts are compared. Whether the rest of a node's conditions hold is asked of the session for each plan.

use krafla_framework::{Session, Verdict};
use krafla_model::{JobId, NodeId, Resources, ShapeId, TaskId};

use super::super::victims::{Cost, QueueRanks};
use super::super::{ANYWHERE, Beneficiary};

/// Sets of pods that are looked at for one node and one part of the gang.
const MOST_SETS: usize = 4_096;
/// Parts of a gang that are looked at for one node.
const MOST_PARTS: usize = 128;

/// Which sets of pods are looked at on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sets {
    /// Those of which nobody could stay.
    Needed,
    /// All that make room.
    Any,
}

/// Equal pods of the gang.
pub(super) struct Group {
    pub(super) tasks: Vec<TaskId>,
    pub(super) request: Resources,
}

/// Pods on a node that may be moved and are alike: of one shape and one job, the cheapest first.
struct Kind {
    pods: Vec<TaskId>,
    request: Resources,
}

/// A node that the gang might run on.
pub(super) struct Host {
    pub(super) node: NodeId,
    /// Free once all that terminates is gone, less what is promised.
    free: Resources,
    kinds: Vec<Kind>,
    /// By how many pods of the gang: no fewer than so many have to go for them. Ends where no more fit.
    pub(super) least: Vec<usize>,
    /// What could be done here, the fewest moves first; `None` until somebody asks.
    options: Option<Vec<Choice>>,
}

/// Some of the gang on one node, and who has to go for them.
#[derive(Clone)]
pub(super) struct Choice {
    pub(super) node: NodeId,
    /// How many of each group.
    pub(super) part: Vec<usize>,
    pub(super) victims: Vec<TaskId>,
}

impl Host {
    /// `None` for a node on which none of the gang could ever run.
    pub(super) fn new(
        session: &mut Session<'_>,
        who: &Beneficiary<'_>,
        node: NodeId,
        groups: &[Group],
        smallest: &Resources,
    ) -> Option<Self> {
        let ever =
            |group: &Group| !matches!(session.verdict(group.tasks[0], node, ANYWHERE), Err(Verdict::Unresolvable(_)));
        if !groups.iter().any(ever) {
            return None;
        }
        let movable = who.movable(session, groups[0].tasks[0], node);
        let cluster = session.cluster();
        let mut kinds: Vec<((ShapeId, Option<JobId>), Kind)> = Vec::new();
        for pod in movable {
            let key = (cluster.task(pod).shape, cluster.task(pod).job);
            match kinds.iter_mut().find(|(other, _)| *other == key) {
                Some((_, kind)) => kind.pods.push(pod),
                None => {
                    let request = cluster.asked_of_nodes(cluster.shape_of(pod)).into_owned();
                    kinds.push((key, Kind { pods: vec![pod], request }));
                }
            }
        }
        let free = cluster.node(node).future_idle();
        let kinds: Vec<Kind> = kinds.into_iter().map(|(_, kind)| kind).collect();
        let most = groups.iter().map(|group| group.tasks.len()).sum();
        let least = least(&free, &kinds, smallest, most);
        (least.len() > 1).then_some(Self { node, free, kinds, least, options: None })
    }

    /// Pods that may be moved from here.
    pub(super) fn n_movable(&self) -> usize {
        self.kinds.iter().map(|kind| kind.pods.len()).sum()
    }

    /// What could be done here with at most so many moves, the fewest first. Cost: at most [`MOST_PARTS`] times
    /// [`MOST_SETS`], once.
    pub(super) fn options(
        &mut self,
        session: &Session<'_>,
        who: &Beneficiary<'_>,
        groups: &[Group],
        sets: Sets,
        most: usize,
    ) -> &[Choice] {
        if self.options.is_none() {
            let mut ranked = Vec::new();
            for part in parts(groups, self.least.len() - 1) {
                let mut need = Resources::default();
                for (group, n) in groups.iter().zip(&part) {
                    need.add(&group.request.times(i64::try_from(*n).unwrap_or(i64::MAX)));
                }
                for victims in self.sets(&need, sets, most) {
                    let cost = Cost::of(session, who, &QueueRanks::default(), &victims);
                    ranked.push((victims.len(), cost, std::cmp::Reverse(part.clone()), victims));
                }
            }
            ranked.sort();
            let choice = |(_, _, part, victims): (_, _, std::cmp::Reverse<Vec<usize>>, _)| Choice {
                node: self.node,
                part: part.0,
                victims,
            };
            self.options = Some(ranked.into_iter().map(choice).collect());
        }
        self.options.as_deref().unwrap_or_default()
    }

    /// What was looked at with other sets or bounds.
    pub(super) fn forget_options(&mut self) {
        self.options = None;
    }

    /// Sets of fewer than `most` pods whose going makes room for `need`. Cost: at most [`MOST_SETS`].
    fn sets(&self, need: &Resources, sets: Sets, most: usize) -> Vec<Vec<TaskId>> {
        let mut found = Vec::new();
        let (mut taken, mut left) = (vec![0; self.kinds.len()], most.saturating_sub(1));
        for _ in 0..MOST_SETS {
            let fits = need.fits(&self.free_without(&taken));
            if fits && (sets == Sets::Any || !self.could_stay(need, &mut taken)) {
                let of = |(kind, n): (&Kind, &usize)| kind.pods[..*n].to_vec();
                found.push(self.kinds.iter().zip(&taken).flat_map(of).collect());
            }
            // Whoever comes on top of what is enough could stay.
            let full = left == 0 || (fits && sets == Sets::Needed);
            if !self.next(&mut taken, &mut left, full) {
                break;
            }
        }
        found
    }

    /// The next set: one more of the first kind, or, where that cannot be, none of the first and one more of the second ...
    /// `full`: with one more on top it would be no set that is asked for.
    fn next(&self, taken: &mut [usize], left: &mut usize, full: bool) -> bool {
        let mut full = full;
        for (kind, n) in self.kinds.iter().zip(taken.iter_mut()) {
            if !full && *n < kind.pods.len() {
                *n += 1;
                *left -= 1;
                return true;
            }
            // Taking these back makes room for one of a later kind.
            full &= *n == 0;
            *left += std::mem::take(n);
        }
        false
    }

    /// Whether one of a set that is enough could stay.
    fn could_stay(&self, need: &Resources, taken: &mut [usize]) -> bool {
        (0..taken.len()).any(|i| {
            if taken[i] == 0 {
                return false;
            }
            taken[i] -= 1;
            let fits = need.fits(&self.free_without(taken));
            taken[i] += 1;
            fits
        })
    }

    fn free_without(&self, taken: &[usize]) -> Resources {
        let mut free = self.free.clone();
        for (kind, n) in self.kinds.iter().zip(taken) {
            free.add(&kind.request.times(i64::try_from(*n).unwrap_or(i64::MAX)));
        }
        free
    }
}

/// For one pod of the gang, two, three ...: no fewer than so many have to go, in the dimension where it takes most. In each
/// that is: as many of the largest as make up for what is missing.
fn least(free: &Resources, kinds: &[Kind], smallest: &Resources, most: usize) -> Vec<usize> {
    let mut least = vec![0];
    for n in 1..=most {
        let need = smallest.times(i64::try_from(n).unwrap_or(i64::MAX));
        let of_dimension = |(id, asked): (krafla_model::ResourceId, i64)| {
            let mut missing = asked - free.get(id);
            let mut sizes: Vec<(i64, usize)> = kinds
                .iter()
                .map(|kind| (kind.request.get(id), kind.pods.len()))
                .filter(|(size, _)| *size > 0)
                .collect();
            sizes.sort_unstable();
            let mut go = 0;
            while missing > 0 {
                let (size, n) = sizes.pop()?;
                let takes = usize::try_from((missing + size - 1) / size).unwrap_or(usize::MAX).min(n);
                go += takes;
                missing -= size * i64::try_from(takes).unwrap_or(i64::MAX);
            }
            Some(go)
        };
        let Some(go) = need.iter().map(of_dimension).try_fold(0, |all, one| Some(one?.max(all))) else { break };
        least.push(go);
    }
    least
}

/// Parts of the gang that one node might take, with at most so many pods; the largest first.
fn parts(groups: &[Group], most: usize) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    for group in groups {
        let longer = |part: &Vec<usize>| {
            let left = most - part.iter().sum::<usize>();
            let with = |n: usize| [part.as_slice(), &[n]].concat();
            (0..=group.tasks.len().min(left)).rev().map(with).collect::<Vec<_>>()
        };
        parts = parts.iter().flat_map(longer).take(MOST_PARTS).collect();
    }
    parts.retain(|part| part.iter().any(|n| *n > 0));
    parts
}
