//! The standing invariants I1 to I6, checked after every cycle.

use std::collections::BTreeSet;

use krafla_engine::CycleReport;
use krafla_framework::Decision;
use krafla_model::check::discrepancies;
use krafla_model::devices::WHOLE;
use krafla_model::{JobId, Limit, ResourceId, TaskStatus};

use crate::world::World;

/// Everything that does not hold after a cycle, each with the number of its invariant.
pub(crate) fn broken(world: &World, report: &CycleReport) -> Vec<String> {
    let cluster = world.engine().cluster();
    let mut broken = overdrawn_nodes(world, report);
    broken.extend(queue_limits(world, report));
    broken.extend(partial_gangs(world, report));
    for found in discrepancies(cluster).into_iter().chain(report.healed.iter().cloned()) {
        broken.push(format!("I3: {found}"));
    }
    let plugins = world.engine().configuration().plugins();
    broken.extend(krafla_certificates::broken(cluster, plugins, &report.decisions));
    if !report.unfinished {
        broken.extend(unexplained(world));
    }
    broken
}

/// I1, for nodes and devices that this cycle bound pods to: in the dimensions that those asked for. A node that shrank
/// under its pods, or that others overfilled, is not this scheduler's doing.
fn overdrawn_nodes(world: &World, report: &CycleReport) -> Vec<String> {
    let cluster = world.engine().cluster();
    let mut broken = BTreeSet::new();
    for task in bound_by(report).filter(|task| cluster.get_task(*task).is_some()) {
        let Some(node) = cluster.task(task).node().map(|node| cluster.node(node)) else { continue };
        for (resource, _) in cluster.asked_of_nodes(cluster.shape_of(task)).iter().filter(|(_, asked)| *asked > 0) {
            let (held, has) = (node.books().used.get(resource), node.allocatable.get(resource));
            if held > has {
                let names = cluster.names();
                broken.insert(format!(
                    "I1: node {} has {} of {}, and {} is held",
                    node.name(),
                    names.format(resource, has),
                    names.name(resource),
                    names.format(resource, held)
                ));
            }
        }
        for (device, used) in node.books().devices.used().iter().enumerate().filter(|(_, used)| **used > WHOLE) {
            broken.insert(format!("I1: device {device} of node {} holds {used} of {WHOLE} thousandths", node.name()));
        }
    }
    broken.into_iter().collect()
}

/// I1, for queues that this cycle bound pods of: in the dimensions that those asked for.
fn queue_limits(world: &World, report: &CycleReport) -> Vec<String> {
    let cluster = world.engine().cluster();
    let mut broken = BTreeSet::new();
    for task in bound_by(report) {
        let Some(task) = cluster.get_task(task).map(|_| task) else { continue };
        let Some(queue) = cluster.task(task).job.and_then(|job| cluster.job(job).queue) else { continue };
        for &above in cluster.queue(queue).path() {
            let limited = cluster.queue(above);
            let occupied = limited.held().occupied();
            for (resource, _) in cluster.shape_of(task).request.iter().filter(|(id, _)| *id != ResourceId::PODS) {
                if let Limit::To(limit) = limited.capability.get(resource) {
                    let real = limit > 0 || !matches!(resource, ResourceId::CPU | ResourceId::MEMORY);
                    if real && occupied.get(resource) > limit {
                        let names = cluster.names();
                        broken.insert(format!(
                            "I1: queue {} holds {} of {}, its capability is {}",
                            limited.spec.name,
                            names.format(resource, occupied.get(resource)),
                            names.name(resource),
                            names.format(resource, limit)
                        ));
                    }
                }
            }
        }
    }
    // Only a configuration with a queue plugin enforces limits.
    let enforced = world.engine().configuration().plugins().has(krafla_framework::Point::Allocatable);
    if enforced { broken.into_iter().collect() } else { Vec::new() }
}

/// I2, for jobs that this cycle bound pods of.
fn partial_gangs(world: &World, report: &CycleReport) -> Vec<String> {
    let cluster = world.engine().cluster();
    if world.engine().configuration().policy.plugin("gang").is_none() {
        return Vec::new();
    }
    let jobs: BTreeSet<JobId> =
        bound_by(report).filter_map(|task| cluster.get_task(task)).filter_map(|task| task.job).collect();
    let partial = jobs.into_iter().filter_map(|id| {
        let job = cluster.job(id);
        let bound = job.counts().sum(|s| s.is_committed() || s == TaskStatus::Succeeded);
        let counted = bound + job.pending_best_effort();
        (counted < job.min_available()).then(|| {
            format!(
                "I2: {} has {bound} members bound, fewer than its minimum {}",
                cluster.job_label(id),
                job.min_available()
            )
        })
    });
    partial.collect()
}

/// I6: each pending pod has a reason with a number in it, once a cycle has got to all.
fn unexplained(world: &World) -> Vec<String> {
    let (cluster, reasons) = (world.engine().cluster(), world.engine().reasons());
    let mut broken = Vec::new();
    for (id, task) in cluster.tasks().filter(|(_, task)| task.status().is_waiting()) {
        match reasons.task(id, task.job) {
            None if task.group.is_none() => {} // it names no PodGroup: it is not for this scheduler
            None => broken.push(format!("I6: {} waits without a reason", cluster.task_label(id))),
            Some(standing) => {
                let text = standing.reason.to_string();
                if !text.contains(|c: char| c.is_ascii_digit()) {
                    broken.push(format!("I6: the reason of {} has no number: {text}", cluster.task_label(id)));
                }
            }
        }
    }
    broken
}

fn bound_by(report: &CycleReport) -> impl Iterator<Item = krafla_model::TaskId> {
    report.decisions.iter().filter_map(|decision| match decision {
        Decision::Bind(task) => Some(*task),
        Decision::Evict(..) | Decision::OpenGate(_) | Decision::Deallocate { .. } => None,
    })
}
