//! Placing the tasks of one job within a statement, and saying why some could not be.

use std::collections::{BTreeMap, VecDeque};

use krafla_framework::search::SearchLimits;
use krafla_framework::{Found, Reason, Refusals, Room, Session, Shortage, Statement};
use krafla_model::job::Role;
use krafla_model::{ClusterState, Job, JobId, Name, NodeId, QueueId, Resources, ShapeId, TaskId, TaskStatus};

/// What one attempt at a job learned.
#[derive(Default)]
pub(crate) struct Attempt {
    /// Shapes that found no node, with what the nodes said. Within one attempt room only shrinks, so a task of the
    /// same shape would find none either.
    failed: BTreeMap<ShapeId, Refusals>,
    /// The first task that found no node.
    first: Option<(TaskId, Refusals)>,
    /// The first task that its queue had no room for.
    held_back: Option<(TaskId, Reason)>,
}

impl Attempt {
    /// Whether some member that the job needs can run on no node as nodes are now, however empty they may become.
    pub(crate) fn is_impossible(&self) -> bool {
        self.first.as_ref().is_some_and(|(_, refusals)| refusals.nodes > 0 && refusals.unresolvable == refusals.nodes)
    }

    /// Why the job stays, in the words of the first task that could not be placed.
    pub(crate) fn reason(&self, placed: u32, needed: u32) -> Option<Reason> {
        if let Some((_, refusals)) = &self.first {
            return Some(Reason::refused_by_nodes(placed, needed, refusals.clone()));
        }
        self.held_back.as_ref().map(|(_, reason)| reason.clone())
    }
}

/// Tries to place one task; `true` if it was given or promised a node. Room that is kept for it is tried first, and stays
/// kept if it is placed nowhere.
pub(crate) fn place_one(
    statement: &mut Statement<'_, '_>,
    queue: QueueId,
    task: TaskId,
    attempt: &mut Attempt,
) -> bool {
    let mut trial = statement.nested();
    let kept = trial.lift_reservation(task);
    let placed = place(&mut trial, queue, task, attempt, kept);
    if placed {
        trial.merge();
    }
    placed
}

fn place(
    statement: &mut Statement<'_, '_>,
    queue: QueueId,
    task: TaskId,
    attempt: &mut Attempt,
    kept: Option<NodeId>,
) -> bool {
    let shape = statement.session().cluster().task(task).shape;
    if kept.is_none() && attempt.failed.contains_key(&shape) {
        return false;
    }
    let limits = match statement.session().allocatable(queue, task) {
        Ok(Room::Now) => SearchLimits { may_start: true, may_wait: true },
        Ok(Room::AfterRelease) => SearchLimits { may_start: false, may_wait: true },
        Err(reason) => {
            let cluster = statement.session().cluster();
            let request = &cluster.shape_of(task).request;
            let too_full = || cluster_is_too_full(cluster, request, 1);
            let reason = match is_for_its_queue(statement.session(), queue, task, &reason) {
                true => reason,
                false => too_full().unwrap_or(reason),
            };
            attempt.held_back.get_or_insert((task, reason));
            return false;
        }
    };
    let now = statement.session_mut();
    let there =
        kept.and_then(|node| Some(Found::Node { node, room: now.verdict(task, node, limits).ok()?, score: 0.0 }));
    match there.unwrap_or_else(|| now.find_node(task, limits)) {
        Found::Node { node, room, .. } => {
            let done = match room {
                Room::Now => statement.allocate(task, node),
                Room::AfterRelease => statement.pipeline(task, node),
            };
            debug_assert!(done.is_ok(), "the search and the books disagree: {done:?}");
            done.is_ok()
        }
        Found::Nothing(refusals) => {
            attempt.first.get_or_insert_with(|| (task, refusals.clone()));
            // Pods alike in all else may have claims of their own.
            if statement.session().cluster().task(task).claims.is_empty() {
                attempt.failed.insert(shape, refusals);
            }
            false
        }
    }
}

/// Whether a refusal of its queue is what a task waits for, whatever room nodes have: a limit of the queue's own, or of
/// one above it, and not what it is due as things are.
fn is_for_its_queue(session: &Session<'_>, queue: QueueId, task: TaskId, reason: &Reason) -> bool {
    let cluster = session.cluster();
    match (reason, cluster.task(task).job) {
        // Devices that are claimed are not among what is asked of nodes.
        (Reason::QueueLimit { shortage, .. }, Some(job)) if !shortage.resource.contains("deviceclass/") => {
            let request = &cluster.shape_of(task).request;
            let limit = session.plugins().minimum_allocatable(cluster, queue, job, request);
            limit.is_some_and(|limit| limit.is_of_the_queue(cluster))
        }
        _ => reason.is_of_the_queue(cluster),
    }
}

/// Why no placement at all can serve a request of `members`: it is more than all nodes together have free. What one node
/// is overdrawn by takes nothing from the others.
pub(crate) fn cluster_is_too_full(cluster: &ClusterState, request: &Resources, members: u32) -> Option<Reason> {
    too_little(cluster, request, members, cluster.totals().future_idle().plus(&cluster.overdraft()))
}

/// The same for a job, which has besides what is kept for it.
pub(crate) fn cluster_is_too_full_for(
    cluster: &ClusterState,
    job: JobId,
    request: &Resources,
    members: u32,
) -> Option<Reason> {
    let mut free = cluster.totals().future_idle().plus(&cluster.overdraft());
    for kept in cluster.reservations().filter(|kept| kept.job == Some(job)) {
        free.add(&cluster.shape(kept.shape).request);
    }
    too_little(cluster, request, members, free)
}

fn too_little(cluster: &ClusterState, request: &Resources, members: u32, free: Resources) -> Option<Reason> {
    let short = request.first_over(&Resources::default(), &free)?;
    let (total, id) = (&cluster.totals().allocatable, short.resource);
    let shortage = Shortage {
        resource: cluster.names().name(id).clone(),
        asked: short.asked,
        used: total.get(id) - free.get(id),
        limit: total.get(id),
    };
    Some(Reason::ClusterTooFull { shortage, needed: members })
}

/// Whether the job could still reach its minimum with the tasks that are left, after some shapes found no node.
pub(crate) fn can_still_start(session: &Session<'_>, job: JobId, left: &VecDeque<TaskId>, attempt: &Attempt) -> bool {
    let cluster = session.cluster();
    let hopeful = || left.iter().filter(|task| !attempt.failed.contains_key(&cluster.task(**task).shape));
    let job = cluster.job(job);
    let mut by_role: BTreeMap<&Name, u32> = BTreeMap::new();
    let mut n = 0;
    for &task in hopeful() {
        *by_role.entry(&cluster.shape_of(task).spec.role).or_default() += 1;
        n += 1;
    }
    placed(job) + n >= job.min_available()
        && roles_that_count(job).all(|role| has(role) + by_role.get(&role.name).copied().unwrap_or(0) >= role.min)
}

/// Tasks in their order, but those that a role's minimum waits for before the rest: the rest must not take their room.
pub(crate) fn needed_first(
    cluster: &ClusterState,
    job: JobId,
    tasks: impl Iterator<Item = TaskId>,
) -> VecDeque<TaskId> {
    let job = cluster.job(job);
    let mut missing: BTreeMap<&Name, u32> =
        roles_that_count(job).map(|role| (&role.name, role.min.saturating_sub(has(role)))).collect();
    let (mut needed, rest): (VecDeque<TaskId>, VecDeque<TaskId>) = tasks.partition(|task| {
        let left = missing.get_mut(&cluster.shape_of(*task).spec.role).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    });
    needed.extend(rest);
    needed
}

/// Whether a job's minimum has nodes: members that ask for nothing count only once they are placed.
pub(crate) fn minimum_has_nodes(job: &Job) -> bool {
    let with_node = |role: &Role| role.counts.sum(|s| s.is_allocated() || s == TaskStatus::Succeeded);
    job.n_ready() >= job.min_available() && roles_that_count(job).all(|role| with_node(role) >= role.min)
}

/// Roles with a minimum; none if their sum is over the minimum of the job.
fn roles_that_count(job: &Job) -> impl Iterator<Item = &Role> {
    let sum: u32 = job.roles().iter().map(|role| role.min).sum();
    let count = job.min_available() >= sum;
    job.roles().iter().filter(move |role| count && role.min > 0)
}

/// Members of a role that have a node, were promised one, or need none.
fn has(role: &Role) -> u32 {
    role.counts.sum(|s| s.is_allocated() || matches!(s, TaskStatus::Succeeded | TaskStatus::Pipelined))
        + role.pending_best_effort
}

/// Members that have a node, were promised one, or need none.
pub(crate) fn placed(job: &Job) -> u32 {
    job.n_ready() + job.n_pipelined() + job.pending_best_effort()
}

/// Tasks that were promised a node say which. Answers the first such reason.
pub(crate) fn explain_promises(session: &mut Session<'_>, job: JobId) -> Option<Reason> {
    let cluster = session.cluster();
    if cluster.job(job).n_pipelined() == 0 {
        return None;
    }
    let promised: Vec<(TaskId, Reason)> = cluster
        .job(job)
        .tasks()
        .filter(|task| cluster.task(*task).status() == TaskStatus::Pipelined)
        .filter_map(|task| {
            let host = cluster.node(cluster.task(task).node()?);
            let ending = host.books().tasks.iter().filter(|t| cluster.task(**t).status() == TaskStatus::Releasing);
            let terminating = u32::try_from(ending.count()).unwrap_or(u32::MAX);
            Some((task, Reason::WaitingForRelease { node: host.name().clone(), terminating }))
        })
        .collect();
    for (task, reason) in &promised {
        session.explain_promise(*task, reason.clone());
    }
    promised.into_iter().next().map(|(_, reason)| reason)
}
