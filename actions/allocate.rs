//! `allocate`: gives nodes to the tasks of admitted jobs, gang by gang.
//!
//! Queues take turns, best first; within a queue jobs, best first; both orders are renewed after each turn. Until a
//! job's minimum is placed a turn is the whole minimum; after that it is one task, so that shares are renewed with every
//! task (what makes the task form of DRF exact). A job that cannot reach its minimum gives everything back at once.

use std::collections::{BTreeMap, VecDeque};

use krafla_framework::rank::{JobRank, QueueRank};
use krafla_framework::{Action, ActionInfo, Arguments, RankedQueue, Reason, Session, Shortage};
use krafla_model::{ClusterState, JobId, QueueId, Resources, TaskId, TaskStatus};

use crate::enqueue::explain_missing_queue;
use crate::placement::{Attempt, can_still_start, needed_first, place_one, placed};

/// Name and arguments.
pub const INFO: ActionInfo =
    ActionInfo { name: "allocate", about: "place jobs, gang by gang", places: true, arguments: &[crate::ERROR_CACHE] };

struct Allocate;

/// Makes the action.
pub fn build(_: &Arguments) -> Box<dyn Action> {
    Box::new(Allocate)
}

/// What is left to do.
#[derive(Default)]
struct Work {
    queues: RankedQueue<QueueId, QueueRank>,
    jobs: BTreeMap<QueueId, RankedQueue<JobId, JobRank>>,
    /// Tasks of each job that wait for a node, in order.
    tasks: BTreeMap<JobId, VecDeque<TaskId>>,
    /// See [`overdraft`]; `None` until a job needs it.
    overdraft: Option<Resources>,
}

impl Action for Allocate {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let mut work = collect(session);
        while let Some(queue) = work.queues.pop() {
            if let Some(reason) = session.plugins().overused(session.cluster(), queue) {
                for &job in work.jobs.get(&queue).into_iter().flat_map(RankedQueue::items) {
                    session.explain_job(job, reason.clone());
                }
                continue;
            }
            let Some(job) = work.jobs.get_mut(&queue).and_then(RankedQueue::pop) else { continue };
            let mut tasks = work.tasks.remove(&job).unwrap_or_default();
            let _span = tracing::trace_span!("job", name = %session.cluster().job_label(job)).entered();
            if turn(session, queue, job, &mut tasks, &mut work.overdraft) == Turn::More {
                let rank = session.plugins().job_rank(session.cluster(), job);
                work.jobs.entry(queue).or_default().push(job, rank);
                work.tasks.insert(job, tasks);
            }
            put_back(session, &mut work, queue);
        }
    }
}

/// Jobs that may be placed, with their tasks; the others learn why not.
fn collect(session: &mut Session<'_>) -> Work {
    let mut work = Work::default();
    for job in session.cluster().waiting_jobs().collect::<Vec<_>>() {
        if session.cluster().job(job).is_pending() {
            if session.has_action("enqueue") {
                continue;
            }
            session.let_in(job);
        }
        let Some(queue) = session.cluster().job(job).queue else {
            explain_missing_queue(session, job);
            continue;
        };
        if let Some(reason) = session.plugins().job_valid(session.cluster(), job) {
            session.explain_job(job, reason);
            continue;
        }
        let tasks = ready_to_place(session, job);
        if tasks.is_empty() {
            continue;
        }
        let rank = session.plugins().job_rank(session.cluster(), job);
        work.jobs.entry(queue).or_default().push(job, rank);
        work.tasks.insert(job, tasks);
    }
    for &queue in work.jobs.keys() {
        work.queues.push(queue, session.plugins().queue_rank(session.cluster(), queue));
    }
    work
}

/// Pending tasks that ask for something and may be tried now, in order. Those that ask for nothing are backfill's.
fn ready_to_place(session: &mut Session<'_>, job: JobId) -> VecDeque<TaskId> {
    let cluster = session.cluster();
    let now = cluster.now();
    let mut ranked: Vec<_> = cluster
        .job(job)
        .tasks()
        .filter(|id| cluster.task(*id).status() == TaskStatus::Pending && !cluster.shape_of(*id).best_effort)
        .filter(|id| cluster.task(*id).retry_at <= now)
        .map(|id| session.plugins().task_rank(cluster, id))
        .collect();
    ranked.sort_unstable();
    needed_first(cluster, job, ranked.into_iter().map(|(.., id)| id))
}

/// Puts a queue back in line. Queues that share an ancestor with it move too: what it took counts for both.
fn put_back(session: &Session<'_>, work: &mut Work, queue: QueueId) {
    let cluster = session.cluster();
    work.queues.push(queue, session.plugins().queue_rank(cluster, queue));
    let path = cluster.queue(queue).path();
    if path.len() > 2 {
        let branch = path[1];
        let mut relatives: Vec<QueueId> =
            work.queues.items().copied().filter(|other| cluster.queue(*other).path().contains(&branch)).collect();
        relatives.sort_unstable();
        for other in relatives {
            work.queues.renew(&other, session.plugins().queue_rank(cluster, other));
        }
    }
}

#[derive(PartialEq, Eq)]
enum Turn {
    /// The job took something and has more to place.
    More,
    /// It has nothing left to try in this session.
    Over,
}

/// One turn of one job.
fn turn(
    session: &mut Session<'_>,
    queue: QueueId,
    job: JobId,
    tasks: &mut VecDeque<TaskId>,
    overdraft: &mut Option<Resources>,
) -> Turn {
    if let Some(reason) = hopeless(session, job, tasks, overdraft) {
        session.explain_job(job, reason);
        return Turn::Over;
    }
    let mut attempt = Attempt::default();
    let mut statement = session.statement();
    while let Some(task) = tasks.pop_front() {
        let was_placed = place_one(&mut statement, queue, task, &mut attempt);
        let now = statement.session();
        let ready = now.plugins().job_ready(now.cluster(), job);
        match was_placed {
            true if ready => break,
            // A job that needs no more than it has tries each of its tasks.
            false if !ready && !can_still_start(now, job, tasks, &attempt) => break,
            _ => {}
        }
    }
    let (cluster, plugins) = (statement.session().cluster(), statement.session().plugins());
    let (have, needed) = (placed(cluster.job(job)), cluster.job(job).min_available());
    if plugins.job_ready(cluster, job) {
        let placed_something = !statement.is_empty();
        statement.commit_binds();
        explain_rest(session, job, &attempt);
        return if placed_something && !tasks.is_empty() { Turn::More } else { Turn::Over };
    }
    let waits_for_release = plugins.job_pipelined(cluster, job);
    let reason = attempt.reason(have, needed);
    if waits_for_release {
        statement.hold();
        explain_release(session, job);
    } else {
        drop(statement);
        if let Some(reason) = reason.or_else(|| who_may_not_be_tried(session.cluster(), job)) {
            session.explain_job(job, reason);
        }
    }
    Turn::Over
}

/// Every member that may be tried found a node, and they are too few: what holds back the others.
fn who_may_not_be_tried(cluster: &ClusterState, job: JobId) -> Option<Reason> {
    let tasks = || cluster.job(job).tasks().map(|task| cluster.task(task));
    let gates = tasks().filter(|task| task.status() == TaskStatus::Gated).map(|task| task.gates).sum();
    if gates > 0 {
        return Some(Reason::SchedulingGated { gates });
    }
    let parked = tasks().filter(|task| task.status() == TaskStatus::Pending && task.retry_at > cluster.now());
    parked
        .max_by_key(|task| task.retry_at)
        .map(|task| Reason::BindRefused { times: task.refusals, retry_at: task.retry_at })
}

/// Why no placement at all can complete the gang: its minimum asks for more than the whole cluster has free. A sum over
/// nodes is all it costs, and it spares a full cluster from being searched for every job that waits.
fn hopeless(
    session: &Session<'_>,
    job: JobId,
    tasks: &VecDeque<TaskId>,
    overdraft_once: &mut Option<Resources>,
) -> Option<Reason> {
    let cluster = session.cluster();
    let spec = cluster.job(job);
    if session.plugins().job_ready(cluster, job) {
        return None;
    }
    let needed = spec.min_available().saturating_sub(placed(spec)) as usize;
    if needed == 0 || needed > tasks.len() {
        return None;
    }
    // The least that any choice of `needed` tasks asks for, dimension by dimension.
    let mut least = Resources::default();
    let first = &cluster.shape_of(tasks[0]).request;
    if tasks.iter().all(|task| cluster.task(*task).shape == cluster.task(tasks[0]).shape) {
        least = first.times(i64::try_from(needed).unwrap_or(i64::MAX));
    } else if needed == tasks.len() {
        for &task in tasks {
            least.add(&cluster.shape_of(task).request);
        }
    } else {
        return None;
    }
    let nothing = Resources::default();
    least.first_over(&nothing, &cluster.totals().future_idle())?;
    // What one node is overdrawn by takes nothing from the others.
    let free = cluster.totals().future_idle().plus(overdraft_once.get_or_insert_with(|| overdraft(cluster)));
    let short = least.first_over(&nothing, &free)?;
    let (total, id) = (&cluster.totals().allocatable, short.resource);
    Some(Reason::ClusterTooFull {
        shortage: Shortage {
            resource: cluster.names().name(id).clone(),
            asked: short.asked,
            used: total.get(id) - free.get(id),
            limit: total.get(id),
        },
        needed: spec.min_available().saturating_sub(placed(spec)),
    })
}

/// How much more is held on nodes than they have: nodes that shrank under their pods. A session only ever lessens it.
fn overdraft(cluster: &ClusterState) -> Resources {
    let mut sum = Resources::default();
    for &node in cluster.nodes() {
        for (id, free) in cluster.node(node).future_idle().iter().filter(|(_, free)| *free < 0) {
            sum.set(id, sum.get(id) - free);
        }
    }
    sum
}

/// The job runs. Tasks beyond its minimum that found no node say so; if none is left, the job waits no longer.
fn explain_rest(session: &mut Session<'_>, job: JobId, attempt: &Attempt) {
    let cluster = session.cluster();
    let (have, all) = (placed(cluster.job(job)), u32::try_from(cluster.job(job).n_tasks()).unwrap_or(u32::MAX));
    match attempt.reason(have, all) {
        Some(reason) => session.explain_job(job, reason),
        None => session.clear_reason(job),
    }
}

/// Tasks that were promised a node say which.
fn explain_release(session: &mut Session<'_>, job: JobId) {
    let cluster = session.cluster();
    let promised: Vec<(TaskId, Reason)> = cluster
        .job(job)
        .tasks()
        .filter_map(|task| {
            let node = cluster.task(task).node().filter(|_| !cluster.task(task).status().is_committed())?;
            let host = cluster.node(node);
            let ending = host.books().tasks.iter().filter(|t| cluster.task(**t).status() == TaskStatus::Releasing);
            let terminating = u32::try_from(ending.count()).unwrap_or(u32::MAX);
            Some((task, Reason::WaitingForRelease { node: host.name().clone(), terminating }))
        })
        .collect();
    for (task, reason) in promised {
        session.explain_job(job, reason.clone());
        session.explain_task(task, reason);
    }
}
