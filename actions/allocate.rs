//! `allocate`: gives nodes to the tasks of admitted jobs, gang by gang.
//!
//! Queues take turns, best first; within a queue jobs, best first; both orders are renewed after each turn. Until a
//! job's minimum is placed a turn is the whole minimum; after that it is one task, so that shares are renewed with every
//! task (what makes the task form of DRF exact). A job that cannot reach its minimum gives everything back at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use krafla_framework::rank::{JobRank, QueueRank};
use krafla_framework::{Action, ActionInfo, Arguments, RankedQueue, Reason, Session};
use krafla_model::queue::ROOT_QUEUE;
use krafla_model::{ClusterState, JobId, QueueId, ShapeId, TaskId, TaskStatus};

use crate::beyond::{BeyondTheirQueue, gang_beyond_its_queue};
use crate::enqueue::{ClosedQueues, explain_missing_queue};
use crate::gates::{let_through, waits_at_its_gate};
use crate::hopeless::{Plain, beyond_its_queue, hopeless, is_more_than_the_cluster, plain, refuse_the_hopeless};
use crate::placement::{Attempt, can_still_start, explain_promises, needed_first, place_one, placed};
use crate::promises::{give_up_what_may_not_be_had, is_expected, is_nominated, with_promises};

/// Name and arguments.
pub const INFO: ActionInfo =
    ActionInfo { name: "allocate", about: "place jobs, gang by gang", places: true, arguments: &[crate::ERROR_CACHE] };

struct Allocate {
    /// Whether what is known to be in vain is tried all the same.
    blind: bool,
}

/// Makes the action.
pub fn build(_: &Arguments) -> Box<dyn Action> {
    Box::new(Allocate { blind: false })
}

/// Makes an action that decides the same and tries jobs beyond the limits of their queue; tests compare the two.
pub fn build_blind(_: &Arguments) -> Box<dyn Action> {
    Box::new(Allocate { blind: true })
}

/// What is left to do.
#[derive(Default)]
struct Work {
    queues: RankedQueue<QueueId, QueueRank>,
    jobs: BTreeMap<QueueId, RankedQueue<JobId, JobRank>>,
    /// Tasks of each job that wait for a node, in order; known once it has had a turn.
    tasks: BTreeMap<JobId, VecDeque<TaskId>>,
    /// Started gangs that lacked members when the session began, by queue, with how many. What is refused behind one of
    /// them waits for its repair, also when that has just been made.
    repairs: BTreeMap<QueueId, Vec<(JobId, u32)>>,
    /// Jobs that no placement could serve when the session began, or that were beyond their queue, with what they ask for
    /// alike. Room only shrinks while jobs are placed, so they need no turn: of thousands that wait only the others are put
    /// in order.
    hopeless: Vec<(JobId, Plain, Reason)>,
    /// Whether jobs beyond the limits of their queue are tried all the same.
    blind: bool,
}

impl Action for Allocate {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        give_up_what_may_not_be_had(session);
        let mut work = collect(session, self.blind);
        for (queue, job) in with_promises(session) {
            // What was promised was not too much for the queue when it was. More than that is taken in line.
            while work.jobs.get_mut(&queue).is_some_and(|jobs| jobs.remove(&job)) {
                take_turn(session, &mut work, queue, job, Turn::Promised);
                let cluster = session.cluster();
                let next = work.tasks.get(&job).and_then(VecDeque::front);
                if !is_expected(cluster, job) && !next.is_some_and(|next| is_nominated(cluster, *next)) {
                    break;
                }
            }
            put_back(session, &mut work, queue);
        }
        while let Some(queue) = work.queues.pop() {
            if let Some(reason) = session.plugins().overused(session.cluster(), queue) {
                let passed_over: BTreeSet<JobId> =
                    work.jobs.get(&queue).into_iter().flat_map(RankedQueue::items).copied().collect();
                for job in passed_over {
                    session.explain_job(job, reason.clone());
                }
                continue;
            }
            let Some(job) = work.jobs.get_mut(&queue).and_then(RankedQueue::pop) else { continue };
            take_turn(session, &mut work, queue, job, Turn::InLine);
            put_back(session, &mut work, queue);
        }
        refuse_the_hopeless(session, &work.hopeless, &work.repairs);
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// That of a job to which something was promised: until it starts it gets what that was, and no more.
    Promised,
    /// That of the job that is best.
    InLine,
}

/// One turn of a job; what is left of it goes back in line.
fn take_turn(session: &mut Session<'_>, work: &mut Work, queue: QueueId, job: JobId, kind: Turn) {
    let known = work.tasks.remove(&job);
    let _span = tracing::trace_span!("job", name = %session.cluster().job_label(job)).entered();
    let repairs = work.repairs.get(&queue).map_or(&[][..], Vec::as_slice);
    // What was promised was not too much for the queue when it was.
    if kind == Turn::InLine
        && !work.blind
        && known.is_none()
        && n_asking(session.cluster(), job) > 0
        && let Some((reason, is_impossible)) = gang_beyond_its_queue(session, queue, job)
    {
        session.set_unplaceable(job, is_impossible);
        refuse(session, job, reason, repairs);
        return;
    }
    if let Some(left) = turn(session, queue, job, known, repairs, kind) {
        let rank = session.plugins().job_rank(session.cluster(), job);
        work.jobs.entry(queue).or_default().push(job, rank);
        work.tasks.insert(job, left);
    }
}

/// Jobs that may be placed; the others learn why not.
fn collect(session: &mut Session<'_>, blind: bool) -> Work {
    let (mut work, mut closed) = (Work { blind, ..Work::default() }, ClosedQueues::default());
    // Whoever room is kept for has more than the others.
    let nothing_is_kept = session.cluster().reservations().next().is_none();
    let mut beyond = BeyondTheirQueue::new(session);
    let mut none_fits: BTreeMap<(ShapeId, u32), Option<Reason>> = BTreeMap::new();
    for job in session.cluster().waiting_jobs().collect::<Vec<_>>() {
        let (lacks, queue) = (lacking(session.cluster(), job), session.cluster().job(job).queue);
        if let Some(queue) = queue.filter(|_| lacks > 0) {
            work.repairs.entry(queue).or_default().push((job, lacks));
        }
        if session.cluster().job(job).is_pending() {
            continue;
        }
        let Some(queue) = queue else {
            explain_missing_queue(session, job);
            continue;
        };
        if closed.turn_away(session, job, queue) {
            continue;
        }
        if let Some(reason) = session.plugins().job_valid(session.cluster(), job) {
            session.explain_job(job, reason);
            continue;
        }
        if n_asking(session.cluster(), job) == 0 && !waits_at_its_gate(session.cluster(), job) {
            continue;
        }
        if let Some(alike @ (_, shape, n)) = plain(session, queue, job).filter(|_| nothing_is_kept) {
            if let Some(reason) = none_fits.entry((shape, n)).or_insert_with(|| hopeless(session, job)) {
                session.set_unplaceable(job, is_more_than_the_cluster(reason));
                work.hopeless.push((job, alike, reason.clone()));
                continue;
            }
            if !blind && let Some((reason, is_impossible)) = beyond.says(session, alike, job) {
                session.set_unplaceable(job, is_impossible);
                work.hopeless.push((job, alike, reason));
                continue;
            }
        }
        let rank = session.plugins().job_rank(session.cluster(), job);
        work.jobs.entry(queue).or_default().push(job, rank);
    }
    for &queue in work.jobs.keys() {
        work.queues.push(queue, session.plugins().queue_rank(session.cluster(), queue));
    }
    work
}

/// How many pending tasks ask for something; they may not all be tried now.
pub(crate) fn n_asking(cluster: &ClusterState, job: JobId) -> u32 {
    let job = cluster.job(job);
    job.counts().of(TaskStatus::Pending).saturating_sub(job.pending_best_effort())
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

/// The tasks for which nodes have been nominated before the others: the promise was made to them.
fn promised_first(cluster: &ClusterState, tasks: VecDeque<TaskId>) -> VecDeque<TaskId> {
    let (mut promised, rest): (VecDeque<TaskId>, VecDeque<TaskId>) =
        tasks.into_iter().partition(|task| is_nominated(cluster, *task));
    promised.extend(rest);
    promised
}

/// Puts a queue back in line. Queues that share an ancestor with it move too: what it took counts for both.
fn put_back(session: &Session<'_>, work: &mut Work, queue: QueueId) {
    let cluster = session.cluster();
    work.queues.push(queue, session.plugins().queue_rank(cluster, queue));
    if session.plugins().queues_move_together() {
        let mut others: Vec<QueueId> = work.queues.items().copied().collect();
        others.sort_unstable();
        for other in others {
            work.queues.renew(&other, session.plugins().queue_rank(cluster, other));
        }
        return;
    }
    // Below the root, if there is one: everybody is related through that.
    let mut path = cluster.queue(queue).path().iter().copied();
    let branch = path.find(|above| cluster.queue(*above).spec.name != ROOT_QUEUE);
    if let Some(branch) = branch.filter(|branch| *branch != queue) {
        let mut relatives: Vec<QueueId> =
            work.queues.items().copied().filter(|other| cluster.queue(*other).path().contains(&branch)).collect();
        relatives.sort_unstable();
        for other in relatives {
            work.queues.renew(&other, session.plugins().queue_rank(cluster, other));
        }
    }
}

/// One turn of one job, with the tasks that earlier turns left. Answers what is left for another turn; `None` if there
/// is nothing more to try in this session.
fn turn(
    session: &mut Session<'_>,
    queue: QueueId,
    job: JobId,
    known: Option<VecDeque<TaskId>>,
    repairs: &[(JobId, u32)],
    kind: Turn,
) -> Option<VecDeque<TaskId>> {
    let nobody_asks = n_asking(session.cluster(), job) == 0;
    // An earlier turn has seen to that.
    if known.is_none()
        && let Some(reason) = let_through(session, queue, job)
        && nobody_asks
    {
        session.explain_job(job, reason);
    }
    if nobody_asks {
        return None;
    }
    if let Some(reason) = hopeless(session, job) {
        session.set_unplaceable(job, is_more_than_the_cluster(&reason));
        let reason = beyond_its_queue(session, queue, job).unwrap_or(reason);
        refuse(session, job, reason, repairs);
        return None;
    }
    let mut tasks = known.unwrap_or_else(|| ready_to_place(session, job));
    if kind == Turn::Promised {
        tasks = promised_first(session.cluster(), tasks);
    }
    let tasks = &mut tasks;
    let mut attempt = Attempt::default();
    let mut statement = session.statement();
    while let Some(task) = tasks.pop_front() {
        let was_placed = place_one(&mut statement, queue, task, &mut attempt);
        let now = statement.session();
        let ready = now.plugins().job_ready(now.cluster(), job);
        // Others were promised what is released besides.
        let has_what_was_promised = || {
            let next_is_too = tasks.front().is_some_and(|next| is_nominated(now.cluster(), *next));
            kind == Turn::Promised && !next_is_too && now.plugins().job_pipelined(now.cluster(), job)
        };
        match was_placed {
            true if ready || has_what_was_promised() => break,
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
        explain_promises(session, job);
        return (placed_something && !tasks.is_empty()).then(|| std::mem::take(tasks));
    }
    let waits_for_release = plugins.job_pipelined(cluster, job);
    let reason = attempt.reason(have, needed);
    if waits_for_release {
        statement.hold();
        // `sla` may hold a gang to which nothing was promised: it waits for what the nodes said.
        if let Some(reason) = explain_promises(session, job).or(reason) {
            session.explain_job(job, reason);
        }
    } else {
        drop(statement);
        session.set_unplaceable(job, attempt.is_impossible());
        let reason = beyond_its_queue(session, queue, job).or(reason);
        if let Some(reason) = reason.or_else(|| who_may_not_be_tried(session.cluster(), job)) {
            refuse(session, job, reason, repairs);
        }
    }
    None
}

/// Members that a started gang lacks; 0 if it is whole, or has not started.
fn lacking(cluster: &ClusterState, job: JobId) -> u32 {
    let job = cluster.job(job);
    if job.needs_repair() { job.min_available().saturating_sub(placed(job)) } else { 0 }
}

/// Tells a job why it stays. One that found too little room behind a started gang that is being repaired, or has just
/// been, waits for that.
pub(crate) fn refuse(session: &mut Session<'_>, job: JobId, reason: Reason, repairs: &[(JobId, u32)]) {
    let cluster = session.cluster();
    let own = cluster.job(job);
    let ahead = repairs.iter().find(|(id, _)| *id != job && cluster.job(*id).priority >= own.priority);
    let reason = match ahead {
        Some(&(id, missing)) if reason.code() == "NotEnoughResources" && !own.needs_repair() => {
            Reason::WaitingBehindRepair { job: cluster.job_label(id), missing }
        }
        _ => reason,
    };
    session.explain_job(job, reason);
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

/// The job runs. Tasks beyond its minimum that found no node say so; if none is left, the job waits no longer.
fn explain_rest(session: &mut Session<'_>, job: JobId, attempt: &Attempt) {
    let cluster = session.cluster();
    let (have, all) = (placed(cluster.job(job)), u32::try_from(cluster.job(job).n_tasks()).unwrap_or(u32::MAX));
    match attempt.reason(have, all) {
        Some(reason) => session.explain_job(job, reason),
        None => session.clear_reason(job),
    }
}
