//! The facts that hold in every state, recomputed from the live pods. An empty list is the only good answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{Id, JobId, NodeId, TaskId};
use crate::ledger::Discrepancy;
use crate::state::{ClusterState, Totals};
use crate::storage::ledger::VolumeLedger;
use crate::task_status::TaskStatus;

/// How many nodes, and how many jobs, a cycle recounts at least.
const AUDITED: usize = 64;
/// A node or job with so many pods or more is recounted in one of several rounds, so that what a cycle recounts is about so
/// many pods for each of [`AUDITED`]: these pods are in nobody's cache, and each costs as much as a tenth of a decision.
const PODS_A_ROUND: usize = 16;

/// Every book that is not what the live pods say. Cost: linear in tasks, jobs, nodes, and queues times jobs.
pub fn discrepancies(state: &ClusterState) -> Vec<Discrepancy> {
    let mut found = Vec::new();
    let mut by_node: BTreeMap<NodeId, Vec<TaskId>> = BTreeMap::new();
    for (id, task) in state.tasks.iter() {
        if let Some(node) = task.node {
            by_node.entry(node).or_default().push(id);
        }
    }
    let mut totals = Totals::default();
    for (id, node) in state.nodes.iter() {
        let recounted = state.recount_node(id, by_node.get(&id).map_or(&[], Vec::as_slice));
        totals.allocatable.add(&node.allocatable);
        totals.used.add(&recounted.used);
        totals.releasing.add(&recounted.releasing);
        totals.pipelined.add(&recounted.pipelined);
        if recounted != node.books {
            found.push(discrepancy(format!("node {}", node.spec.name), &node.books, &recounted));
        }
    }
    if totals != state.totals {
        found.push(discrepancy("cluster".to_owned(), &state.totals, &totals));
    }
    let placed = state.tasks.iter().filter(|(_, task)| task.status.holds_node());
    let placed = placed.filter_map(|(_, task)| Some((task.uid.clone(), task.choices.clone()?)));
    if let Some((kept, recounted)) = state.dynamic_resources.recount(placed) {
        found.push(Discrepancy { object: "devices of claims".to_owned(), kept, recounted });
    }
    let mut volumes = VolumeLedger::default();
    for (id, task) in state.tasks.iter() {
        volumes.charge(id, task, state.shapes.get(task.shape));
    }
    if volumes != state.volume_ledger {
        found.push(discrepancy("claims".to_owned(), &state.volume_ledger, &volumes));
    }
    let waiters = state.tasks.iter().filter(|(_, task)| {
        task.status == TaskStatus::Pending && !state.shapes.get(task.shape).spec.volumes.is_empty()
    });
    let waiters: BTreeSet<TaskId> = waiters.map(|(id, _)| id).collect();
    if waiters != state.volume_waiters {
        found.push(discrepancy("tasks with volumes that wait".to_owned(), &state.volume_waiters, &waiters));
    }
    let releasing = state.tasks.iter().filter(|(_, task)| task.status == TaskStatus::Releasing).map(|(id, _)| id);
    let releasing: BTreeSet<TaskId> = releasing.collect();
    if releasing != state.releasing {
        found.push(discrepancy("tasks that terminate".to_owned(), &state.releasing, &releasing));
    }
    for (id, job) in state.jobs.iter() {
        let recounted = state.recount_job(id);
        if recounted != job.books {
            found.push(discrepancy(format!("job {}", state.job_label(id)), &job.books, &recounted));
        }
        let waits = job.is_waiting();
        if waits != state.waiting_jobs.contains(&id) {
            found.push(discrepancy(format!("job {} among the waiting", state.job_label(id)), &!waits, &waits));
        }
    }
    if !state.elastic_quotas.is_empty() {
        let held = state.recount_elastic_use();
        for (namespace, quota) in &state.elastic_quotas {
            let recounted = held.get(namespace).cloned().unwrap_or_default();
            if recounted != quota.used {
                found.push(discrepancy(format!("elastic quota of {namespace}"), &quota.used, &recounted));
            }
        }
    }
    for (id, queue) in state.queues.iter() {
        let recounted = state.recount_queue(id);
        if recounted != queue.held {
            found.push(discrepancy(format!("queue {}", queue.spec.name), &queue.held, &recounted));
        }
    }
    found
}

impl ClusterState {
    /// Recounts all jobs and nodes, heals what is off, and says what it was. Cost: linear in jobs, nodes and tasks.
    pub fn audit(&mut self) -> Vec<Discrepancy> {
        let (nodes, jobs) = (self.nodes.ids().collect(), self.jobs.ids().collect());
        self.audit_these(nodes, jobs)
    }

    /// As [`Self::audit`], of some jobs and nodes. Called each cycle with a moving `turn`, it goes round everything. Cost: 64
    /// of each with some thousand pods on average, whatever the size of the cluster; more only beyond a thousand times as
    /// many.
    pub fn audit_slice(&mut self, turn: u64) -> Vec<Discrepancy> {
        let round = turn / slices(self.nodes.capacity());
        let pods_on = |id: &NodeId| self.nodes.get(*id).map(|node| node.books.tasks.len());
        let is_due = |id: &NodeId| pods_on(id).is_some_and(|pods| has_its_round(round, id.index(), pods));
        let nodes = slice(turn, self.nodes.capacity()).map(Id::from_index).filter(is_due);
        let round = turn / slices(self.jobs.capacity());
        let is_due = |id: &JobId| self.jobs.get(*id).is_some_and(|job| has_its_round(round, id.index(), job.n_tasks()));
        let jobs = slice(turn, self.jobs.capacity()).map(Id::from_index).filter(is_due);
        let (nodes, jobs) = (nodes.collect(), jobs.collect());
        self.audit_these(nodes, jobs)
    }

    fn audit_these(&mut self, nodes: Vec<NodeId>, jobs: Vec<JobId>) -> Vec<Discrepancy> {
        let mut found = Vec::new();
        for id in nodes {
            let tasks = self.nodes[id].books.tasks.clone();
            let recounted = self.recount_node(id, &tasks);
            let node = &mut self.nodes[id];
            if recounted != node.books {
                found.push(discrepancy(format!("node {}", node.spec.name), &node.books, &recounted));
                self.totals.used.sub(&node.books.used);
                self.totals.used.add(&recounted.used);
                self.totals.releasing.sub(&node.books.releasing);
                self.totals.releasing.add(&recounted.releasing);
                self.totals.pipelined.sub(&node.books.pipelined);
                self.totals.pipelined.add(&recounted.pipelined);
                node.books = recounted;
                self.touch_node(id);
            }
        }
        for id in jobs {
            let recounted = self.recount_job(id);
            if recounted != self.jobs[id].books {
                found.push(discrepancy(format!("job {}", self.job_label(id)), &self.jobs[id].books, &recounted));
                self.jobs[id].books = recounted;
                self.refresh_waiting(id);
            }
        }
        if !found.is_empty() {
            let queues: Vec<_> = self.queues.ids().collect();
            for id in queues {
                let recounted = self.recount_queue(id);
                self.queues[id].held = recounted;
            }
        }
        found
    }
}

/// The part of so many slots whose turn it is.
fn slice(turn: u64, slots: usize) -> std::ops::Range<usize> {
    let size = size_of_slices(slots);
    let first = usize::try_from(turn % slices(slots)).unwrap_or(0) * size;
    first..(first + size).min(slots)
}

fn size_of_slices(slots: usize) -> usize {
    AUDITED.max(slots / 1024)
}

/// Turns of a round.
fn slices(slots: usize) -> u64 {
    slots.div_ceil(size_of_slices(slots)).max(1) as u64
}

/// Whether a node or job of so many pods is recounted in this round: each in its own of the rounds that it lets pass.
fn has_its_round(round: u64, slot: usize, pods: usize) -> bool {
    (round + slot as u64).is_multiple_of((pods / PODS_A_ROUND) as u64 + 1)
}

fn discrepancy(object: String, kept: &impl std::fmt::Debug, recounted: &impl std::fmt::Debug) -> Discrepancy {
    Discrepancy { object, kept: format!("{kept:?}"), recounted: format!("{recounted:?}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_turns_go_round_every_slot_once() {
        for slots in [0_usize, 1, 63, 64, 65, 1_000, 100_000] {
            let turns = slices(slots);
            let all: Vec<usize> = (0..turns).flat_map(|turn| slice(turn, slots)).collect();
            assert_eq!(all.len(), slots, "once");
            assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), (0..slots).collect(), "all of {slots}");
            assert_eq!(slice(turns, slots), slice(0, slots), "and round");
        }
    }

    #[test]
    fn what_has_many_pods_has_one_of_several_rounds() {
        let rounds = |pods| (0..100).filter(|round| has_its_round(*round, 3, pods)).count();
        assert_eq!([rounds(10), rounds(PODS_A_ROUND), rounds(9 * PODS_A_ROUND + 5)], [100, 50, 10]);
    }
}
