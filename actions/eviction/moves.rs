//! Making room by moves: pods go to other nodes, so that a task that fits nowhere fits on theirs.
//!
//! For each node: the fewest pods whose going would make room, the larger ones first. From the node where the fewest and
//! then the cheapest have to go: each of them must have another node with room for it right now, beside what is promised
//! there, and may take it for its queue's sake. Who has none is left out, and the node asked again. Moved are pods that a
//! controller makes again, of jobs that are whole without them, and that nobody protects.
//!
//! Cost for a task that fits nowhere: the tasks of all nodes, times the plugins that protect; then a node search for each
//! move that is tried.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krafla_framework::search::SearchLimits;
use krafla_framework::{EvictionCertificate, Found, PodRef, Reason, Refusals, Room, Session, Statement, Verdict};
use krafla_model::{ClusterState, JobId, NodeId, Reservation, Resources, ShapeId, TaskId, Time};

use super::fewest::fewer_moves;
use super::search::fits;
use super::victims::{Cost, QueueRanks, is_evictable, is_whole, size};
use super::{ANYWHERE, Beneficiary, waiting};
use crate::placement::{cluster_is_too_full, explain_promises, placed};

/// Room that is free.
pub(super) const NOW: SearchLimits = SearchLimits { may_start: true, may_wait: false };
/// Sets of pods that are tried for one task; each costs a node search for each of its pods.
const MOST_TRIED: usize = 256;

/// Shapes for which no moves were found since the last decision, with the pods that might have been moved.
#[derive(Default)]
pub(crate) struct Futile(BTreeMap<ShapeId, BTreeSet<TaskId>>);

/// Pods with the nodes that they go to.
pub(super) type Moves = Vec<(TaskId, NodeId)>;

/// What is done for a job.
#[derive(Clone, Default)]
pub(super) struct Plan {
    pub(super) moves: Moves,
    pub(super) placements: Vec<(TaskId, NodeId)>,
}

/// What came of looking for moves.
struct Tried {
    plan: Plan,
    /// The job can start with it.
    is_enough: bool,
    /// Of the plan, what makes up the job's minimum: moves, and placements.
    for_minimum: Option<(usize, usize)>,
    /// Members that have a node with it.
    n_placed: u32,
    /// Pods that were asked in vain.
    movable: BTreeSet<TaskId>,
    refused: Option<Refusals>,
}

/// Of one node, who would have to go.
struct Choice {
    /// The fewest first, then the cheapest, then in tie order.
    key: (usize, Cost, u32),
    node: NodeId,
    victims: Vec<TaskId>,
}

impl Tried {
    fn nothing() -> Self {
        let (plan, movable) = (Plan::default(), BTreeSet::new());
        Self { plan, is_enough: false, for_minimum: None, n_placed: 0, movable, refused: None }
    }
}

impl Beneficiary<'_> {
    /// Tries to make room for the job by moves: for its minimum as a whole, then for one member after the other. What is
    /// kept for those who are moved is kept `until` then.
    pub(crate) fn make_room_by_moves(&self, session: &mut Session<'_>, until: Time, futile: &mut Futile) {
        let tried = self.look_for_moves(session, Plan::default(), until, futile);
        self.conclude_moves(session, tried, until, futile);
    }

    /// The same, with the fewest moves for the minimum as a whole, so far as `fewest` finds them.
    pub(crate) fn make_room_by_fewest_moves(&self, session: &mut Session<'_>, until: Time) {
        let futile = &mut Futile::default();
        let waiting = waiting(session, self.job);
        let mut tried = self.look_for_moves(session, Plan::default(), until, futile);
        let (most, needed) = match tried.for_minimum {
            Some((moves, placements)) => {
                (moves, tried.plan.placements[..placements].iter().map(|(task, _)| *task).collect())
            }
            None => {
                let job = session.cluster().job(self.job);
                let missing = job.min_available().saturating_sub(placed(job)) as usize;
                (usize::MAX, waiting.into_iter().take(missing).collect::<Vec<_>>())
            }
        };
        if let Some(plan) = fewer_moves(session, self, &needed, most, until) {
            tried = self.look_for_moves(session, plan, until, futile);
        }
        self.conclude_moves(session, tried, until, futile);
    }

    /// Continues what has `begun` with whoever still waits. Nothing of it stays.
    fn look_for_moves(&self, session: &mut Session<'_>, begun: Plan, until: Time, futile: &mut Futile) -> Tried {
        let begins = |task: &TaskId| !begun.placements.iter().any(|(other, _)| other == task);
        let tasks: Vec<TaskId> = waiting(session, self.job).into_iter().filter(begins).collect();
        let mut plan = begun;
        let (mut failed, mut refused) = (BTreeSet::new(), None);
        let mut movable: BTreeSet<TaskId> = BTreeSet::new();
        let mut statement = match self.replay_moves(session, &plan, until) {
            Some(statement) => statement,
            None => return Tried::nothing(),
        };
        let mut for_minimum = None;
        let note = |session: &Session<'_>, plan: &Plan, for_minimum: &mut Option<(usize, usize)>| {
            let has_minimum = session.plugins().job_pipelined(session.cluster(), self.job);
            if has_minimum {
                for_minimum.get_or_insert((plan.moves.len(), plan.placements.len()));
            }
            has_minimum
        };
        for task in tasks {
            let now = statement.session();
            let cluster = now.cluster();
            if !now.plugins().job_wants_more(cluster, self.job) {
                break;
            }
            let (shape, own) = (cluster.task(task).shape, cluster.shape_of(task));
            let limited = now.plugins().allocatable(cluster, self.queue, task, Room::AfterRelease).is_some();
            if failed.contains(&shape) || own.best_effort || own.spec.never_preempts || limited {
                continue;
            }
            let has_minimum = note(now, &plan, &mut for_minimum);
            match statement.session_mut().find_node(task, ANYWHERE) {
                // Members beyond the minimum that need nobody to go are for `allocate` to place.
                Found::Node { .. } if has_minimum => {}
                Found::Node { node, .. } => {
                    if statement.pipeline(task, node).is_ok() {
                        plan.placements.push((task, node));
                    }
                }
                Found::Nothing(refusals) => match self.place_by_moves(&mut statement, task, until, &plan, futile) {
                    Ok((node, moves)) => {
                        plan.moves.extend(moves);
                        plan.placements.push((task, node));
                    }
                    Err(asked) => {
                        failed.insert(shape);
                        movable.extend(asked);
                        refused.get_or_insert(refusals);
                    }
                },
            }
        }
        let now = statement.session();
        let is_enough = note(now, &plan, &mut for_minimum);
        let n_placed = placed(now.cluster().job(self.job));
        drop(statement);
        Tried { plan, is_enough, for_minimum, n_placed, movable, refused }
    }

    fn conclude_moves(&self, session: &mut Session<'_>, tried: Tried, until: Time, futile: &mut Futile) {
        let Tried { plan, is_enough, n_placed, movable, refused, .. } = tried;
        if is_enough && !plan.moves.is_empty() {
            self.carry_out_moves(session, plan, until);
            futile.0.clear();
        } else if let Some(refusals) = refused.filter(|_| !is_enough && !movable.is_empty()) {
            self.explain_moves(session, n_placed, movable.len(), refusals);
        }
    }

    fn explain_moves(&self, session: &mut Session<'_>, placed: u32, movable: usize, refusals: Refusals) {
        let needed = session.cluster().job(self.job).min_available();
        let movable = u32::try_from(movable).unwrap_or(u32::MAX);
        let refusals = Box::new(refusals);
        session.explain_job(self.job, Reason::MovesWouldNotHelp { placed, needed, movable, refusals });
    }

    /// Makes room for a task and promises it. Answers the node, and who goes where; else whom it has asked.
    fn place_by_moves(
        &self,
        statement: &mut Statement<'_, '_>,
        task: TaskId,
        until: Time,
        before: &Plan,
        futile: &mut Futile,
    ) -> Result<(NodeId, Moves), BTreeSet<TaskId>> {
        let cluster = statement.session().cluster();
        let shape = cluster.task(task).shape;
        if cluster_is_too_full(cluster, &cluster.shape_of(task).request, 1).is_some() {
            return Err(BTreeSet::new());
        }
        if let Some(asked) = futile.0.get(&shape) {
            return Err(asked.clone());
        }
        let mut asked = BTreeSet::new();
        if let Some(found) = self.search_moves(statement, task, until, &mut asked) {
            return Ok(found);
        }
        // Pods of the own job stay, so only who has none knows for all others; and only what nothing was tried before.
        let cluster = statement.session().cluster();
        let has_none = cluster.job(self.job).counts().sum(|status| status.is_allocated()) == 0;
        if has_none && before.placements.is_empty() {
            futile.0.insert(shape, asked.clone());
        }
        Err(asked)
    }

    fn search_moves(
        &self,
        statement: &mut Statement<'_, '_>,
        task: TaskId,
        until: Time,
        asked: &mut BTreeSet<TaskId>,
    ) -> Option<(NodeId, Moves)> {
        let nodes: Vec<NodeId> = statement.session().cluster().nodes().to_vec();
        let mut stuck: BTreeSet<TaskId> = BTreeSet::new();
        let mut choices: BTreeMap<(usize, Cost, u32), Choice> = BTreeMap::new();
        for node in nodes {
            if let Some(choice) = self.choose(statement, task, node, &stuck, asked) {
                choices.insert(choice.key.clone(), choice);
            }
        }
        for _ in 0..MOST_TRIED {
            let (_, choice) = choices.pop_first()?;
            match self.try_moves(statement, task, &choice, until) {
                Ok(moves) => return Some((choice.node, moves)),
                Err(victim) => {
                    stuck.insert(victim);
                    if let Some(choice) = self.choose(statement, task, choice.node, &stuck, asked) {
                        choices.insert(choice.key.clone(), choice);
                    }
                }
            }
        }
        None
    }

    /// The fewest pods of a node, but for `stuck`, whose going would make room for a task.
    fn choose(
        &self,
        statement: &mut Statement<'_, '_>,
        task: TaskId,
        node: NodeId,
        stuck: &BTreeSet<TaskId>,
        asked: &mut BTreeSet<TaskId>,
    ) -> Option<Choice> {
        let now = statement.session_mut();
        if let Err(Verdict::Unresolvable(_)) = now.verdict(task, node, ANYWHERE) {
            return None;
        }
        let mut candidates = self.movable(now, task, node);
        asked.extend(&candidates);
        candidates.retain(|victim| !stuck.contains(victim));
        let cluster = now.cluster();
        let request = &cluster.shape_of(task).request;
        let mut most = cluster.node(node).future_idle();
        for &victim in &candidates {
            most.add(&cluster.shape_of(victim).request);
        }
        if candidates.is_empty() || request.first_over(&Resources::default(), &most).is_some() {
            return None;
        }
        let mut trial = statement.nested();
        let mut victims = Vec::new();
        for victim in candidates {
            if fits(trial.session_mut(), self, task, node) {
                break;
            }
            if evict_spare(&mut trial, victim) {
                victims.push(victim);
            }
        }
        if victims.is_empty() || !fits(trial.session_mut(), self, task, node) {
            return None;
        }
        for i in (0..victims.len()).rev() {
            trial.reprieve(victims[i]).ok()?;
            if fits(trial.session_mut(), self, task, node) {
                victims.remove(i);
            } else {
                trial.evict(victims[i]).ok()?;
            }
        }
        drop(trial);
        let now = statement.session();
        let cost = Cost::of(now, self, &QueueRanks::default(), &victims);
        Some(Choice { key: (victims.len(), cost, now.cluster().node_rank(node)), node, victims })
    }

    /// Pods on a node that may be moved at all, those first that free more of what is needed, then the cheaper.
    pub(super) fn movable(&self, session: &Session<'_>, task: TaskId, node: NodeId) -> Vec<TaskId> {
        let cluster = session.cluster();
        let request = &cluster.shape_of(task).request;
        let mut ranked: Vec<_> = cluster
            .node(node)
            .books()
            .tasks
            .iter()
            .copied()
            .filter(|&victim| is_movable(cluster, self.job, victim))
            .map(|victim| {
                let frees = Reverse(size(&cluster.shape_of(victim).request, request));
                let cost = Cost::of(session, self, &QueueRanks::default(), &[victim]);
                (frees, cost, Reverse(cluster.task(victim).created), victim)
            })
            .collect();
        ranked.sort_unstable();
        let ranked: Vec<TaskId> = ranked.into_iter().map(|(.., victim)| victim).collect();
        session.plugins().evictable(cluster, &ranked)
    }

    /// Moves the pods of a choice and promises the task their node, or says who has nowhere to go.
    fn try_moves(
        &self,
        statement: &mut Statement<'_, '_>,
        task: TaskId,
        choice: &Choice,
        until: Time,
    ) -> Result<Moves, TaskId> {
        let mut trial = statement.nested();
        for &victim in &choice.victims {
            trial.evict(victim).map_err(|_| victim)?;
        }
        trial.pipeline(task, choice.node).map_err(|_| choice.victims[0])?;
        let mut moves = Moves::new();
        for &victim in &choice.victims {
            let Found::Node { node, .. } = trial.session_mut().find_node_for_another(victim, NOW) else {
                return Err(victim);
            };
            if !keep(&mut trial, victim, node, until) {
                return Err(victim);
            }
            moves.push((victim, node));
        }
        trial.merge();
        Ok(moves)
    }

    fn carry_out_moves(&self, session: &mut Session<'_>, mut plan: Plan, until: Time) {
        for i in (0..plan.moves.len()).rev() {
            let mut fewer = plan.clone();
            fewer.moves.remove(i);
            if self.replay_moves(session, &fewer, until).is_some() {
                plan = fewer;
            }
        }
        let destinations: BTreeMap<TaskId, NodeId> = plan.moves.iter().copied().collect();
        let Some(statement) = self.replay_moves(session, &plan, until) else { return };
        let cluster = statement.session().cluster();
        let name = |node: NodeId| cluster.node(node).name().clone();
        let placements: Arc<[_]> =
            plan.placements.iter().map(|&(task, node)| (PodRef::of(cluster, task), name(node))).collect();
        statement.commit(|cluster, victim| {
            let name = |node: NodeId| cluster.node(node).name().clone();
            EvictionCertificate {
                volcano_votes: false,
                action: self.action.to_owned(),
                beneficiary: cluster.job_label(self.job),
                placements: Arc::clone(&placements),
                node: cluster.task(victim).node().map(name).unwrap_or_default(),
                destination: destinations.get(&victim).copied().map(name),
                cause: None,
                grace_seconds: None,
                shares: Vec::new(),
            }
        });
        if let Some(promise) = explain_promises(session, self.job) {
            session.explain_job(self.job, promise);
        }
    }

    /// Does it, if it holds: with those gone who are moved every placement fits, and everybody has another place.
    fn replay_moves<'s, 'a>(
        &self,
        session: &'s mut Session<'a>,
        plan: &Plan,
        until: Time,
    ) -> Option<Statement<'s, 'a>> {
        let mut statement = session.statement();
        for &(victim, _) in &plan.moves {
            statement.evict(victim).ok()?;
        }
        for &(task, node) in &plan.placements {
            if !fits(statement.session_mut(), self, task, node) {
                return None;
            }
            statement.pipeline(task, node).ok()?;
        }
        for &(victim, node) in &plan.moves {
            statement.session_mut().verdict(victim, node, NOW).ok()?;
            if !keep(&mut statement, victim, node, until) {
                return None;
            }
        }
        Some(statement)
    }
}

/// Evicts a pod that its job can do without.
pub(super) fn evict_spare(statement: &mut Statement<'_, '_>, victim: TaskId) -> bool {
    let mut attempt = statement.nested();
    let job = attempt.session().cluster().task(victim).job;
    let whole = attempt.evict(victim).is_ok() && job.is_some_and(|job| is_whole(attempt.session(), job));
    if whole {
        attempt.merge();
    }
    whole
}

/// Keeps room on a node for the pod that replaces `victim`, if its queue may have it there.
pub(super) fn keep(statement: &mut Statement<'_, '_>, victim: TaskId, node: NodeId, until: Time) -> bool {
    let now = statement.session();
    let (cluster, task) = (now.cluster(), now.cluster().task(victim));
    let Some((job, queue)) = task.job.and_then(|job| Some((job, cluster.job(job).queue?))) else { return false };
    let allowed = now.plugins().allocatable(cluster, queue, victim, Room::AfterRelease).is_none();
    // What is kept for others there has to be free as well, and not only once somebody else has gone.
    let host = cluster.node(node);
    let mut taken = host.books().used.clone();
    for kept in cluster.reservations().filter(|kept| kept.node == node) {
        taken.add(&cluster.shape(kept.shape).request);
    }
    let is_free = cluster.shape_of(victim).request.first_over(&taken, &host.allocatable).is_none();
    let shape = task.shape;
    allowed
        && is_free
        && cluster.queue(queue).is_open()
        && statement.reserve(Reservation { job: Some(job), shape, node, until }).is_ok()
}

/// Whether a pod is one that comes back elsewhere, and for which a place can be kept: ports and shares of devices cannot, and
/// whether a place still suits one that looks at other pods is known only when it comes.
fn is_movable(cluster: &ClusterState, beneficiary: JobId, victim: TaskId) -> bool {
    let shape = cluster.shape_of(victim);
    let is_bound_to_others = !shape.spec.host_ports.is_empty() || shape.spec.gpu_share_milli > 0;
    let can_be_kept = !shape.best_effort && !is_bound_to_others && !shape.spec.looks_at_other_pods();
    can_be_kept
        && shape.spec.controlled
        && is_evictable(cluster, victim)
        && cluster.task(victim).job.is_some_and(|job| job != beneficiary)
}
