//! Which queues may reclaim, and who gives back.

use std::collections::BTreeMap;

use krafla_model::{ClusterState, JobId, QueueId, ResourceId, Resources, TaskId};

use super::Capacity;

/// What is left to queues as victims are chosen.
type Left = BTreeMap<QueueId, Resources>;

impl Capacity {
    /// Whether a queue may reclaim for `request`: with it the queue stays under its ceiling, and within its due of some
    /// resource that is asked for; or a queue above it does, within the levels that are looked at.
    ///
    /// Ceilings above the queue are not asked: a victim below the same ancestor makes room there first.
    pub(super) fn may_reclaim(&self, cluster: &ClusterState, id: QueueId, request: &Resources) -> bool {
        let Some(account) = self.queues.get(&id) else { return false };
        if self.shut(cluster, id).is_some() {
            return false;
        }
        let held = self.claimed(cluster, id);
        if request.first_over(&held, &account.entitled.ceiling).is_some() {
            return false;
        }
        let within_due = |id: QueueId, held: &Resources| {
            let due = self.queues.get(&id).map(|account| &account.entitled.due);
            due.is_some_and(|due| {
                request.iter().any(|(dim, asked)| held.get(dim).saturating_add(asked) <= due.get(dim))
            })
        };
        within_due(id, &held)
            || self
                .tree
                .ancestors(cluster, id, self.levels)
                .any(|above| within_due(above, &self.claimed(cluster, above)))
    }

    /// Who gives back for `reclaimer`, cheapest first as the candidates come; `None` if it may not take at all.
    pub(super) fn victims_for(
        &self,
        cluster: &ClusterState,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        let queue = cluster.job(cluster.task(reclaimer).job?).queue?;
        let entitled = &self.queues.get(&queue)?.entitled;
        if self.shut(cluster, queue).is_some() {
            return None;
        }
        let wanted = &cluster.shape_of(reclaimer).request;
        let is_due_some = have_in_common(wanted, &entitled.due, true);
        let own_ancestors: Vec<QueueId> = self.tree.ancestors(cluster, queue, self.levels).collect();
        let is_relative =
            |other| self.tree.ancestors(cluster, other, self.levels).any(|id| own_ancestors.contains(&id));

        let (mut left, mut victims) = (Left::new(), Vec::new());
        for &candidate in candidates {
            let Some(theirs) = queue_of(cluster, candidate) else { continue };
            let request = &cluster.shape_of(candidate).request;
            if !have_in_common(request, wanted, false) {
                continue;
            }
            let Some(leaf) = self.over_due(cluster, theirs, request, &mut left) else { continue };
            // Relatives that are both due nothing do not take from each other: they share what their ancestor is due.
            if leaf == Over::DueNothing && is_relative(theirs) && !is_due_some {
                continue;
            }
            let above: Vec<QueueId> = self
                .tree
                .ancestors(cluster, theirs, self.levels)
                .filter(|id| !self.tree.path(cluster, queue).contains(id))
                .collect();
            if above.iter().all(|&id| self.is_over(cluster, id, request, &mut left).is_some()) {
                for id in above.into_iter().chain([theirs]) {
                    self.left(cluster, id, &mut left).sub(request);
                }
                victims.push(candidate);
            }
        }
        Some(victims)
    }

    /// Who gives back for a whole job; `None` if it may not take at all.
    pub(super) fn victims_for_gang(
        &self,
        cluster: &ClusterState,
        job: JobId,
        candidates: &[TaskId],
    ) -> Option<Vec<TaskId>> {
        if self.shut(cluster, cluster.job(job).queue?).is_some() {
            return None;
        }
        let (mut left, mut victims) = (Left::new(), Vec::new());
        for &candidate in candidates {
            let Some(theirs) = queue_of(cluster, candidate) else { continue };
            let request = &cluster.shape_of(candidate).request;
            if self.over_due(cluster, theirs, request, &mut left).is_some() {
                self.left(cluster, theirs, &mut left).sub(request);
                victims.push(candidate);
            }
        }
        Some(victims)
    }

    /// Whether a queue can give up `request`: it keeps its guarantee, and is over its due.
    fn over_due(&self, cluster: &ClusterState, id: QueueId, request: &Resources, left: &mut Left) -> Option<Over> {
        let mut rest = self.left(cluster, id, left).clone();
        rest.sub(request);
        self.queues.get(&id).filter(|account| account.entitled.guarantee.within(&rest))?;
        self.is_over(cluster, id, request, left)
    }

    /// How a queue is over its due in what `request` asks for, if it is.
    fn is_over(&self, cluster: &ClusterState, id: QueueId, request: &Resources, left: &mut Left) -> Option<Over> {
        let due = &self.queues.get(&id)?.entitled.due;
        if !have_in_common(request, due, true) {
            return Some(Over::DueNothing);
        }
        let held = self.left(cluster, id, left);
        let over = |dim| names_due(cluster, id, due, dim) && held.get(dim) > due.get(dim);
        request.iter().any(|(dim, _)| dim != ResourceId::PODS && over(dim)).then_some(Over::Due)
    }

    fn left<'a>(&self, cluster: &ClusterState, id: QueueId, left: &'a mut Left) -> &'a mut Resources {
        left.entry(id).or_insert_with(|| self.claimed(cluster, id))
    }
}

/// How a queue is over what it is due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// It is due nothing of what the victim holds.
    DueNothing,
    /// It holds more than its due of something that the victim holds.
    Due,
}

/// Whether a due says how much of a resource it is. What it does not name is nobody's business; 0 of another resource
/// than CPU and memory is said on purpose.
fn names_due(cluster: &ClusterState, id: QueueId, due: &Resources, dim: ResourceId) -> bool {
    let written = || cluster.queue(id).spec.deserved.get(cluster.names().name(dim)).is_some();
    due.get(dim) > 0 || (!matches!(dim, ResourceId::CPU | ResourceId::MEMORY) && written())
}

fn have_in_common(one: &Resources, two: &Resources, pods_count: bool) -> bool {
    one.iter().any(|(dim, _)| two.get(dim) > 0 && (pods_count || dim != ResourceId::PODS))
}

fn queue_of(cluster: &ClusterState, task: TaskId) -> Option<QueueId> {
    cluster.job(cluster.task(task).job?).queue
}
