//! What does a queue lack at this moment, and why?

use std::collections::BTreeMap;

use krafla_model::{ClusterState, Job, JobId, Name, Queue, ResourceId, Resources, TaskStatus};

use super::NOTHING;
use crate::world::World;

/// A job that waits: its name, and the code and the words of its reason.
type Oldest = (String, String, String);

/// How a queue stands.
pub(super) struct Moment {
    pub(super) queue: Name,
    pub(super) held: f64,
    pub(super) due: f64,
    /// Whether pods of it wait.
    pub(super) waits: bool,
    pub(super) gap: f64,
    /// Whether the gap exceeds the largest waiting job that its due could hold.
    pub(super) is_short: bool,
    /// Whether some waiting job would fit into the gap.
    pub(super) is_usable: bool,
    /// What is asked for in vain, by the code of the reason: parts of 1.
    pub(super) reasons: BTreeMap<&'static str, f64>,
    /// The job that has waited longest; only while it is short.
    pub(super) oldest: Option<Oldest>,
}

/// Every queue with jobs that is due something, as a plugin says, by id.
pub(super) fn moments(world: &World) -> impl Iterator<Item = Moment> {
    let cluster = world.engine().cluster();
    let plugins = world.engine().configuration().plugins();
    let total = &cluster.totals().allocatable;
    cluster.queues().filter(|(_, queue)| queue.n_jobs() > 0).filter_map(move |(id, queue)| {
        let due = share(&plugins.deserved(id)?, total);
        Some(moment(world, queue, due, total))
    })
}

fn moment(world: &World, queue: &Queue, due: f64, total: &Resources) -> Moment {
    let held = share(&queue.held().allocated, total);
    let asked = share(&queue.held().allocated.plus(&queue.held().pending), total);
    let waits = !queue.held().pending.is_zero();
    let gap = if waits { (due.min(asked) - held).max(0.0) } else { 0.0 };
    let mut moment = Moment {
        queue: queue.spec.name.clone(),
        held,
        due,
        waits,
        gap,
        is_short: false,
        is_usable: false,
        reasons: BTreeMap::new(),
        oldest: None,
    };
    if gap > NOTHING {
        look_closer(&mut moment, world, queue, total);
    }
    moment
}

/// Looks at each waiting job of a queue that has a gap.
fn look_closer(moment: &mut Moment, world: &World, queue: &Queue, total: &Resources) {
    let (cluster, reasons) = (world.engine().cluster(), world.engine().reasons());
    let waiting = |id: &JobId| !cluster.job(*id).held().pending.is_zero();
    let (mut largest, mut smallest, mut asked) = (0.0_f64, f64::INFINITY, 0.0);
    let mut oldest: Option<JobId> = None;
    for id in queue.jobs().filter(waiting) {
        let job = cluster.job(id);
        let size = share(&next_piece(cluster, job), total);
        if size <= moment.due + NOTHING {
            largest = largest.max(size);
        }
        smallest = smallest.min(size);
        let wants = share(&job.held().pending, total);
        asked += wants;
        let code = reasons.job(id).map_or("Unexplained", |standing| standing.reason.code());
        *moment.reasons.entry(code).or_default() += wants;
        let age = |id: JobId| (cluster.job(id).spec.created, cluster.job(id).spec.name.clone());
        if oldest.is_none_or(|other| age(id) < age(other)) {
            oldest = Some(id);
        }
    }
    for part in moment.reasons.values_mut() {
        *part /= asked;
    }
    moment.is_usable = smallest <= moment.gap + NOTHING;
    // Where no waiting job fits into the due, the due gives no right to any.
    moment.is_short = largest > 0.0 && moment.gap > largest + NOTHING;
    if moment.is_short {
        moment.oldest = oldest.map(|id| {
            let (code, text) = reasons.job(id).map_or_else(
                || ("Unexplained".to_owned(), String::new()),
                |standing| (standing.reason.code().to_owned(), standing.reason.to_string()),
            );
            (cluster.job(id).spec.name.to_string(), code, text)
        });
    }
}

/// What a job takes at once: the members that it lacks to start, the largest of those that wait, or one pod.
fn next_piece(cluster: &ClusterState, job: &Job) -> Resources {
    let missing = usize::try_from(job.min_available().saturating_sub(job.n_ready())).unwrap_or(usize::MAX).max(1);
    let total = &cluster.totals().allocatable;
    let mut pending: Vec<&Resources> = job
        .tasks()
        .filter(|id| cluster.task(*id).status() == TaskStatus::Pending)
        .map(|id| &cluster.shape_of(id).request)
        .collect();
    if pending.len() <= missing {
        return job.held().pending.clone();
    }
    pending.sort_by(|one, other| share(other, total).total_cmp(&share(one, total)));
    pending.into_iter().take(missing).fold(Resources::default(), |sum, request| sum.plus(request))
}

/// A dominant share; pod slots are no resource that people reckon shares in.
pub(crate) fn share(amounts: &Resources, total: &Resources) -> f64 {
    amounts.clone().with(ResourceId::PODS, 0).dominant_share(total).into_inner()
}
