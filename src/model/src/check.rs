//! The facts that hold in every state, recomputed from the live pods. An empty list is the only good answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{NodeId, TaskId};
use crate::ledger::Discrepancy;
use crate::state::{ClusterState, Totals};
use crate::storage::ledger::VolumeLedger;
use crate::task_status::TaskStatus;

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
    /// Recounts a slice of the jobs and nodes, heals what is off, and says what it was. Called each cycle with a
    /// moving `turn`, it goes round everything in `1 / fraction` cycles. Cost: linear in the slice.
    pub fn audit_slice(&mut self, turn: u64, slices: u64) -> Vec<Discrepancy> {
        let mut found = Vec::new();
        let mine = |index: usize| index as u64 % slices.max(1) == turn % slices.max(1);
        let nodes: Vec<NodeId> = self.nodes.ids().filter(|id| mine(crate::ids::Id::index(*id))).collect();
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
        let jobs: Vec<_> = self.jobs.ids().filter(|id| mine(crate::ids::Id::index(*id))).collect();
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

fn discrepancy(object: String, kept: &impl std::fmt::Debug, recounted: &impl std::fmt::Debug) -> Discrepancy {
    Discrepancy { object, kept: format!("{kept:?}"), recounted: format!("{recounted:?}") }
}
