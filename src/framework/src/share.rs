//! The one share function: how much a queue uses, relative to what it is due.
//!
//! Queue order, reclaim and the choice of its victims all go by it. A move between queues is made only from a queue that
//! holds more than it is due and whose share gets smaller by it, and only if the queue that gains has, with the gain, a
//! smaller share than the other had before the loss. Then the larger of the two shares gets smaller, and with it the
//! vector of all shares, sorted from the largest down, in lexicographic order. So no sequence of moves comes back to where
//! it began, and a swap that would only mirror the state is not made. The same holds where the gain leaves the gainer's share as it is.

use std::collections::BTreeMap;

use krafla_model::resources::ratio;
use krafla_model::{ClusterState, QueueId, ResourceId, Resources};
use ordered_float::OrderedFloat;
use serde::{Deserialize, Serialize};

use crate::plugin_set::PluginSet;

/// A queue's dominant use relative to its due. What is used where nothing is due weighs more than any use of what is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelativeShare {
    /// The largest part of the cluster that is used of a resource of which nothing is due, 0 to 1.
    #[serde(with = "krafla_model::plain_number")]
    pub unentitled: OrderedFloat<f64>,
    /// The largest use over due, of the resources of which something is due; 1 is exactly what is due.
    #[serde(with = "krafla_model::plain_number")]
    pub entitled: OrderedFloat<f64>,
}

impl RelativeShare {
    /// The share of a queue that holds `held` and is due `due`. `divided` has the cluster's amount of each resource of
    /// which any queue is due something; the others, and pod slots, do not count.
    pub fn of(held: &Resources, due: &Resources, divided: &Resources) -> Self {
        let mut share = Self::default();
        for (id, amount) in held.iter().filter(|(id, amount)| *id != ResourceId::PODS && *amount > 0) {
            match due.get(id) {
                0 if divided.get(id) > 0 => share.unentitled = share.unentitled.max(ratio(amount, divided.get(id))),
                0 => {}
                due => share.entitled = share.entitled.max(ratio(amount, due)),
            }
        }
        share
    }

    /// Whether a queue that would have this share with what it gains may take that from one that has `other` now: from
    /// one that holds more than it is due, and ends above it; and beyond its own due only what the other is not due at
    /// all.
    pub fn may_take_from(&self, other: &Self) -> bool {
        other.is_over() && self < other && (!self.is_over() || self.unentitled < other.unentitled)
    }

    /// Whether a move is made: the loser's share gets smaller, and the gainer may take that much from it or gains without
    /// a larger share, being further over its due in something that it does not ask for. Then the larger of the shares
    /// that change gets smaller, and the sorted vector of all with it. Of each the share before and after.
    pub fn makes_more_equal(gainer: [&Self; 2], loser: [&Self; 2]) -> bool {
        loser[0].is_over() && loser[1] < loser[0] && (gainer[0] == gainer[1] || gainer[1].may_take_from(loser[0]))
    }

    /// Whether more is used than is due of some resource.
    pub fn is_over(&self) -> bool {
        self.unentitled > OrderedFloat(0.0) || self.entitled > OrderedFloat(1.0)
    }
}

impl std::fmt::Display for RelativeShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.unentitled > OrderedFloat(0.0) {
            return write!(f, "{:.3} of the cluster with nothing due", self.unentitled);
        }
        write!(f, "{:.3} of its due", self.entitled)
    }
}

/// What every queue is due in one session.
#[derive(Debug, Default)]
pub struct Dues {
    due: BTreeMap<QueueId, Resources>,
    divided: Resources,
}

impl Dues {
    /// As the first plugin that divides the cluster says; `None` if none does.
    pub fn of(plugins: &PluginSet, cluster: &ClusterState) -> Option<Self> {
        let due: BTreeMap<QueueId, Resources> =
            cluster.queues().filter_map(|(id, _)| Some((id, plugins.deserved(id)?))).collect();
        (!due.is_empty()).then(|| Self { divided: divided(cluster, due.values()), due })
    }

    /// The share that a queue would have if it held `held`.
    pub fn share(&self, queue: QueueId, held: &Resources) -> RelativeShare {
        let nothing = Resources::default();
        RelativeShare::of(held, self.due.get(&queue).unwrap_or(&nothing), &self.divided)
    }
}

/// The cluster's amount of each resource of which any of `dues` has something.
pub fn divided<'a>(cluster: &ClusterState, dues: impl Iterator<Item = &'a Resources>) -> Resources {
    let mut named = Resources::default();
    for due in dues {
        named = named.max(due);
    }
    let mut divided = Resources::default();
    for (id, amount) in cluster.totals().allocatable.iter().filter(|(id, _)| named.get(*id) > 0) {
        divided.set(id, amount);
    }
    divided
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(held: i64, due: i64, total: i64) -> RelativeShare {
        let cpu = |n| Resources::default().with(ResourceId::CPU, n);
        RelativeShare::of(&cpu(held), &cpu(due), &cpu(total))
    }

    #[test]
    fn use_where_nothing_is_due_weighs_more_than_any_other() {
        let ascending = [of(0, 0, 10), of(1, 2, 10), of(9, 2, 10), of(1, 0, 10), of(2, 0, 10)];
        assert!(ascending.is_sorted());
        assert_eq!(ascending.map(|share| share.is_over()), [false, false, true, true, true]);
        assert_eq!(of(5, 0, 0), RelativeShare::default(), "a resource that nobody is due anything of");
        assert_eq!(of(3, 2, 10).to_string(), "1.500 of its due");
        assert_eq!(of(3, 0, 10).to_string(), "0.300 of the cluster with nothing due");
    }

    #[test]
    fn who_may_take_from_whom() {
        let (within, beyond, more, nothing_due) = (of(1, 2, 10), of(3, 2, 10), of(4, 2, 10), of(1, 0, 10));
        for (gainer, loser, may) in [
            (within, beyond, true),
            (within, nothing_due, true),
            (within, within, false),
            (beyond, more, false),
            (beyond, nothing_due, true),
            (nothing_due, more, false),
            (nothing_due, of(2, 0, 10), true),
        ] {
            assert_eq!(gainer.may_take_from(&loser), may, "{gainer} from {loser}");
        }
    }

    #[test]
    fn the_nearest_dimension_decides_and_pod_slots_do_not_count() {
        let amounts = |cpu, memory| Resources::default().with(ResourceId::CPU, cpu).with(ResourceId::MEMORY, memory);
        let share = RelativeShare::of(&amounts(1, 6).with(ResourceId::PODS, 99), &amounts(2, 8), &amounts(4, 16));
        assert_eq!(share.entitled, OrderedFloat(0.75));
        assert_eq!(share.unentitled, OrderedFloat(0.0));
    }

    proptest! {
        /// The whole rule of a move, with two resources.
        #[test]
        fn a_move_that_makes_more_equal_makes_the_sorted_vector_smaller(
            dues in prop::collection::vec((0i64..6, 0i64..6), 2..5),
            held in prop::collection::vec((0i64..12, 0i64..12), 5),
            gain in (0i64..8, 0i64..8),
            loss in (0i64..8, 0i64..8),
        ) {
            let both = |(cpu, memory): (i64, i64)| Resources::default().with(ResourceId::CPU, cpu).with(ResourceId::MEMORY, memory);
            let share = |held, due| RelativeShare::of(&both(held), &both(due), &both((12, 12)));
            let shares = |held: &[(i64, i64)]| -> Vec<_> { dues.iter().zip(held).map(|(due, held)| share(*held, *due)).collect() };
            let mut after = held.clone();
            after[0] = (after[0].0 + gain.0, after[0].1 + gain.1);
            after[1] = ((after[1].0 - loss.0).max(0), (after[1].1 - loss.1).max(0));
            let (mut before, mut after) = (shares(&held), shares(&after));
            if RelativeShare::makes_more_equal([&before[0], &after[0]], [&before[1], &after[1]]) {
                before.sort_unstable_by(|a, b| b.cmp(a));
                after.sort_unstable_by(|a, b| b.cmp(a));
                prop_assert!(after < before);
            }
        }

        /// The rule of a move: with the gain below what the other had before its loss.
        #[test]
        fn a_move_by_the_rule_makes_the_sorted_vector_of_shares_smaller(
            dues in prop::collection::vec(0i64..6, 2..6),
            held in prop::collection::vec(0i64..12, 6),
            gain in 1i64..8,
            loss in 1i64..8,
        ) {
            let shares = |held: &[i64]| {
                let mut all: Vec<_> = dues.iter().zip(held).map(|(due, held)| of(*held, *due, 12)).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                all
            };
            let mut after = held.clone();
            after[0] += gain;
            after[1] = (after[1] - loss).max(0);
            if of(after[0], dues[0], 12).may_take_from(&of(held[1], dues[1], 12)) {
                prop_assert!(shares(&after) < shares(&held));
            }
        }
    }
}
