//! The classes in use, and what they share. Memory is bounded: what was not used for longest goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_model::NodeId;

use super::class::Class;
use super::shared::{Shared, SharedKey};
use super::signature::{self, Signature, Signatures};
use super::standings::Standing;
use super::totals::Basis;
use super::{Found, NodeColumns, Query, SearchLimits, Searcher};
use crate::scheduling::cycle_state::CycleState;
use crate::scheduling::plugin::{PreScore, Scope};

/// Nodes times classes that are kept at most; each is 11 bytes.
const MOST_ANSWERS: usize = 8 << 20;
/// Classes that are kept at most, on clusters of however few nodes.
const MOST_CLASSES: usize = 4_096;

/// Which plugins have a say about a task, as far as that is known before any node is asked, by place in the profile; and
/// what they look at beside single nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Plan {
    /// Those that look at single nodes.
    filters: u64,
    scores: u64,
    /// Those that look further; they are asked anew for each task.
    wide_filters: u64,
    wide_scores: u64,
    epoch: u64,
}

impl Plan {
    /// `None` where the plain search has to answer.
    fn of(query: Query<'_>, skipped: &[bool], state: &CycleState) -> Option<Self> {
        let Query { profile, cluster, task, .. } = query;
        if profile.entries.len() > 64 {
            return None;
        }
        let mut plan = Self::default();
        for &i in profile.filters.iter().filter(|&&i| !skipped[i]) {
            match profile.filter_scope(i) {
                Scope::Cluster => return None,
                Scope::Domain | Scope::Task if profile.entries[i].plugin.may_fail(cluster, task, state) => return None,
                Scope::Domain | Scope::Task => plan.wide_filters |= 1 << i,
                Scope::Nothing | Scope::Spec | Scope::Node => plan.filters |= 1 << i,
            }
            plan.epoch = plan.epoch.wrapping_add(profile.entries[i].plugin.epoch(cluster));
        }
        for &i in &profile.scorers {
            let plugin = &profile.entries[i].plugin;
            match plugin.score_scope_for(cluster, task) {
                Scope::Nothing => continue,
                Scope::Spec if !plugin.normalizes() || plugin.normalizes_by_extremes() => plan.scores |= 1 << i,
                Scope::Node if !plugin.normalizes() => plan.scores |= 1 << i,
                Scope::Domain | Scope::Task => plan.wide_scores |= 1 << i,
                Scope::Spec | Scope::Node | Scope::Cluster => return None,
            }
            plan.epoch = plan.epoch.wrapping_add(plugin.epoch(cluster));
        }
        // One that only takes part in PreScore may fail, or leave something for others.
        let only_before = profile.pre_scorers.iter().filter(|i| !profile.scorers.contains(i));
        if only_before.into_iter().any(|&i| profile.entries[i].plugin.score_scope_for(cluster, task) > Scope::Node) {
            return None;
        }
        Some(plan)
    }

    /// Whether some filter looks further than at single nodes.
    pub(super) fn has_wide_filters(self) -> bool {
        self.wide_filters != 0
    }

    /// Whether some score does.
    pub(super) fn has_wide_scores(self) -> bool {
        self.wide_scores != 0
    }

    pub(super) fn filters(self, entry: usize) -> bool {
        self.filters >> entry & 1 == 1
    }

    pub(super) fn scores(self, entry: usize) -> bool {
        self.scores >> entry & 1 == 1
    }

    pub(super) fn filters_widely(self, entry: usize) -> bool {
        self.wide_filters >> entry & 1 == 1
    }

    pub(super) fn scores_widely(self, entry: usize) -> bool {
        self.wide_scores >> entry & 1 == 1
    }
}

/// Buffers of refreshes.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) at: Vec<u32>,
    pub(super) ids: Vec<NodeId>,
    pub(super) before: Vec<Standing>,
    pub(super) totals: Vec<f64>,
    pub(super) scores: Vec<f64>,
}

/// Which class answers: the signature, how far to look, and who has a say.
type Key = (Signature, SearchLimits, Plan);

/// See the module.
#[derive(Default)]
pub(super) struct Classes {
    nodes: NodeColumns,
    signatures: Signatures,
    classes: BTreeMap<Key, Class>,
    shared: BTreeMap<u32, Shared>,
    shared_of: BTreeMap<Arc<SharedKey>, u32>,
    next_shared: u32,
    n_uses: u64,
    /// By place, the refresh in which a node was last seen to have changed.
    marks: Vec<u64>,
    changed: Vec<u32>,
    buffers: Buffers,
}

impl Searcher {
    /// What the plain search would find, from what is kept; `None` where that has to be asked: some plugin looks at the
    /// whole cluster, something fails, or no node fits for the sake of one that looks at domains.
    pub(super) fn find_by_class(&mut self, query: Query<'_>) -> Option<Found> {
        let Query { profile, cluster, task, .. } = query;
        let unplaced = cluster.task(task).node().is_none();
        if profile.scorers.is_empty() || !unplaced {
            return None;
        }
        let plan = Plan::of(query, &self.skipped, &self.state)?;
        self.classes.find(query, plan, &mut self.state, &mut self.unschedulable)
    }
}

impl Classes {
    fn find(
        &mut self,
        query: Query<'_>,
        plan: Plan,
        state: &mut CycleState,
        unschedulable: &mut Vec<NodeId>,
    ) -> Option<Found> {
        let cluster = query.cluster;
        self.nodes.follow(cluster);
        let shape = cluster.task(query.task).shape;
        let signature = self.signatures.of(shape, &cluster.shape(shape).spec);
        let key = (signature, query.limits, Plan { epoch: 0, ..plan });
        if !self.classes.get(&key).is_some_and(|class| class.is_of(cluster, plan)) {
            self.forget(&key);
            self.add(query, key, plan, state)?;
        }
        if self.bring_up_to_date(query, &key, state).is_none() {
            self.forget(&key);
            return None;
        }
        let class = self.classes.get_mut(&key)?;
        if let Some(refusals) = class.refusals(query, &self.nodes) {
            unschedulable.clear();
            unschedulable.extend(class.unschedulable(cluster));
            return Some(Found::Nothing(refusals));
        }
        class.best(query, &self.nodes, self.shared.get(&class.shared)?, state, &mut self.buffers)
    }

    fn bring_up_to_date(&mut self, query: Query<'_>, key: &Key, state: &CycleState) -> Option<()> {
        let cluster = query.cluster;
        let Self { nodes, classes, shared, marks, changed, buffers, n_uses, .. } = self;
        let class = classes.get_mut(key)?;
        let shared = shared.get_mut(&class.shared)?;
        *n_uses += 1;
        class.last_used = *n_uses;
        shared.follow(query, nodes, state)?;
        changed.clear();
        marks.resize(nodes.len(), 0);
        let newer = cluster.changed_nodes(class.seen).filter(|_| class.is_fresh(shared));
        let most = nodes.len() / 2;
        let is_few = newer.is_some_and(|newer| {
            for id in newer {
                let place = cluster.node_rank(id);
                if std::mem::replace(&mut marks[place as usize], *n_uses) != *n_uses {
                    changed.push(place);
                }
            }
            changed.len() <= most
        });
        let basis = Basis { query, nodes, shared, state };
        if is_few {
            class.refresh(basis, changed, buffers)?;
        } else {
            class.rebuild(basis, buffers)?;
        }
        class.seen = cluster.version();
        Some(())
    }

    fn add(&mut self, query: Query<'_>, key: Key, plan: Plan, state: &mut CycleState) -> Option<()> {
        let Query { profile, cluster, task, .. } = query;
        let mut silent = 0;
        for &i in profile.pre_scorers.iter().filter(|&&i| plan.scores(i)) {
            match profile.entries[i].plugin.pre_score(cluster, task, &[], state) {
                PreScore::Score => {}
                PreScore::Skip => silent |= 1 << i,
                PreScore::Error(_) => return None,
            }
        }
        self.make_room();
        let of_specs = |i: &usize| profile.score_scope(*i) == Scope::Spec;
        let silent_specs = profile.scorers.iter().filter(|i| of_specs(i)).fold(0, |all, i| all | (silent & (1 << i)));
        let shared_key = Arc::new((signature::of_specs(&cluster.shape_of(task).spec), plan, silent_specs));
        let number = match self.shared_of.get(&shared_key) {
            Some(number) => *number,
            None => {
                self.next_shared += 1;
                self.shared.insert(self.next_shared, Shared::new(query, Arc::clone(&shared_key)));
                self.shared_of.insert(shared_key, self.next_shared);
                self.next_shared
            }
        };
        self.shared.get_mut(&number)?.users += 1;
        self.classes.insert(key, Class::new(query, plan, silent, number));
        Some(())
    }

    /// Forgets those that were not used for longest, a quarter at once, if one more would be too many.
    fn make_room(&mut self) {
        let most = (MOST_ANSWERS / self.nodes.len().max(1)).clamp(1, MOST_CLASSES);
        if self.signatures.len() > 4 * MOST_CLASSES {
            *self = Self { nodes: std::mem::take(&mut self.nodes), n_uses: self.n_uses, ..Self::default() };
        }
        if self.classes.len() < most {
            return;
        }
        let mut uses: Vec<u64> = self.classes.values().map(|class| class.last_used).collect();
        uses.sort_unstable();
        let newest_gone = uses[(most / 4).min(uses.len() - 1)];
        let old = self.classes.iter().filter(|(_, class)| class.last_used <= newest_gone);
        for key in old.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.forget(&key);
        }
    }

    fn forget(&mut self, key: &Key) {
        let Some(class) = self.classes.remove(key) else { return };
        let Some(shared) = self.shared.get_mut(&class.shared) else { return };
        shared.users -= 1;
        if shared.users == 0
            && let Some(shared) = self.shared.remove(&class.shared)
        {
            self.shared_of.remove(&shared.key);
        }
    }
}
