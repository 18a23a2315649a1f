//! The gate of a queue: pods that carry Volcano's scheduling gate, and ask for its removal, are let through once their
//! queue has room for them, whatever room nodes have. Autoscalers see them then, and not before. What they ask for is kept
//! for them in the queue until they have a node.
//!
//! The minimum of a gang is let through as a whole or not at all: two gangs that each hold half of a queue would wait for
//! ever.

use std::collections::BTreeSet;

use krafla_framework::{Reason, Session};
use krafla_model::{ClusterState, JobId, QueueGate, QueueId, Resources, ShapeId, TaskId, TaskStatus};

use crate::placement::{needed_first, placed};

/// Whether a task of the job has not been let through yet.
pub(crate) fn waits_at_its_gate(cluster: &ClusterState, job: JobId) -> bool {
    at_the_gate(cluster, job, QueueGate::Shut).next().is_some()
}

/// Tasks of a job that carry only the gate of their queue. Cost: the job's tasks, if any of them has a gate.
fn at_the_gate(cluster: &ClusterState, job: JobId, gate: QueueGate) -> impl Iterator<Item = TaskId> {
    let job = cluster.job(job);
    let any = job.counts().of(TaskStatus::Gated) > 0;
    job.tasks().filter(move |id| {
        let task = cluster.task(*id);
        any && task.status() == TaskStatus::Gated && task.queue_gate() == gate
    })
}

/// Lets through whom the queue has room for. Answers what the job is to be told: nothing, if nobody of it was at the gate.
pub(crate) fn let_through(session: &mut Session<'_>, queue: QueueId, id: JobId) -> Option<Reason> {
    let cluster = session.cluster();
    let mut ranked: Vec<_> =
        at_the_gate(cluster, id, QueueGate::Shut).map(|task| session.plugins().task_rank(cluster, task)).collect();
    if ranked.is_empty() {
        return None;
    }
    ranked.sort_unstable();
    let shut = needed_first(cluster, id, ranked.into_iter().map(|(.., task)| task));
    let job = cluster.job(id);
    let asking = job.counts().of(TaskStatus::Pending) - job.pending_best_effort();
    let through = u32::try_from(at_the_gate(cluster, id, QueueGate::Open).count()).unwrap_or(u32::MAX);
    let missing = job.min_available().saturating_sub(placed(job) + asking + through) as usize;
    if missing > shut.len() {
        // Others of the gang are held back elsewhere.
        let gates = job.tasks().map(|task| cluster.task(task).gates).sum();
        return Some(Reason::SchedulingGated { gates });
    }
    let mut least: Resources = job.held().let_through.clone();
    for &task in shut.iter().take(missing) {
        least.add(&cluster.shape_of(task).request);
    }
    let (mut opened, mut full) = (Vec::new(), BTreeSet::<ShapeId>::new());
    let mut refused: Option<Reason> = None;
    for task in shut {
        let cluster = session.cluster();
        let shape = cluster.task(task).shape;
        if full.contains(&shape) {
            continue;
        }
        match session.plugins().passes_gate(cluster, queue, task) {
            None => {
                session.set_queue_gate(task, QueueGate::Open);
                opened.push(task);
            }
            Some(reason) => {
                full.insert(shape);
                refused.get_or_insert(reason);
            }
        }
    }
    if opened.len() < missing {
        for &task in &opened {
            session.set_queue_gate(task, QueueGate::Shut);
        }
        // With all that is asked for, where that is known.
        refused = session.plugins().minimum_allocatable(session.cluster(), queue, id, &least).or(refused);
        explain_who_stays(session, id, refused.as_ref());
        return refused;
    }
    let gates = u32::try_from(opened.len()).unwrap_or(u32::MAX);
    for task in opened {
        session.open_gate(task);
    }
    explain_who_stays(session, id, refused.as_ref());
    refused.or(Some(Reason::SchedulingGated { gates }))
}

/// Tells those at the gate why they stay there: others of their job may wait for something else.
fn explain_who_stays(session: &mut Session<'_>, job: JobId, why: Option<&Reason>) {
    let Some(why) = why else { return };
    for task in at_the_gate(session.cluster(), job, QueueGate::Shut).collect::<Vec<_>>() {
        session.explain_promise(task, why.clone());
    }
}
