//! Making room by evictions: what `preempt` and `reclaim` have in common.
//!
//! For one job: each of its tasks that waits looks for the node where the cheapest set of victims makes room (evict all
//! who may go, place, give back who was not needed). Who would leave a gang broken goes with all of it or stays, wherever
//! the plugins let that be. All of it is only tried. If the job can start with what was promised to its tasks, the plan is
//! looked over once more for victims that can be spared, and committed as one decision.

mod bounds;
mod bundles;
mod fewest;
mod freeable;
mod moves;
mod plan;
mod search;
mod shares;
mod vain;
mod victims;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use krafla_framework::search::SearchLimits;
use krafla_framework::{EvictionCertificate, PodRef, Reason, Session, Statement, VictimVotes};
use krafla_model::{JobId, Name, QueueId, ShapeId, TaskId, TaskStatus};

use crate::placement::{explain_promises, needed_first, placed};
pub(crate) use bounds::Bounds;
pub(crate) use freeable::FreeableSums;
pub(crate) use moves::Futile;
use plan::Plan;
use search::Search;
pub(crate) use shares::ShareRule;
use shares::Shares;
use vain::Failure;
pub(crate) use vain::Vain;
pub(crate) use victims::{everybody_placed, is_evictable, is_whole};

/// Now, or after a release.
const ANYWHERE: SearchLimits = SearchLimits { may_start: true, may_wait: true };

/// Whose tasks may go.
#[derive(Clone, Copy)]
pub(crate) enum Against<'d> {
    /// Those of other jobs of the queue.
    OtherJobs,
    /// Those of the job itself.
    OwnJob,
    /// Those of other queues, so far as shares let them.
    OtherQueues(ShareRule<'d>),
}

/// A job that makes room for itself.
pub(crate) struct Beneficiary<'d> {
    /// The action, for certificates.
    pub(crate) action: &'static str,
    pub(crate) queue: QueueId,
    pub(crate) job: JobId,
    pub(crate) against: Against<'d>,
    /// How plugins' answers on victims combine.
    pub(crate) votes: VictimVotes,
}

impl Beneficiary<'_> {
    /// Tries to make room for the job: for its minimum as a whole, then for one member after the other. Decides nothing
    /// if the job could not start with what it would get. Nothing is tried that is known to be in `vain`.
    pub(crate) fn make_room(&self, session: &mut Session<'_>, vain: &mut Vain, bounds: &mut Bounds) {
        let tasks = waiting(session, self.job);
        if let Some(failure) = vain.foresees(session, self, &tasks) {
            debug_assert!(!self.plan_anew(session, tasks).0.is_enough, "what one job seeks in vain another finds");
            self.explain_failure(session, failure);
            return;
        }
        let sought = tasks.clone();
        let (mut plan, failure) = self.plan(session, tasks, bounds);
        match (plan.is_enough, plan.evictions.is_empty()) {
            (true, false) => {
                plan.spare(session, self);
                self.carry_out(session, &plan);
                vain.clear();
            }
            // It fits without: that is for `allocate` and `backfill` to do.
            (true, true) => {}
            (false, _) => {
                vain.note(session, self, &sought, failure);
                self.explain_failure(session, failure);
            }
        }
    }

    /// Makes room for a single task, whatever else the job lacks. Answers whether somebody went for it.
    pub(crate) fn make_room_for(&self, session: &mut Session<'_>, task: TaskId) -> bool {
        let (mut plan, _) = self.plan_anew(session, VecDeque::from([task]));
        let made = !plan.evictions.is_empty();
        if made {
            plan.spare(session, self);
            self.carry_out(session, &plan);
        }
        made
    }

    /// What would be done, and how far that comes if it is not enough; nothing of it stays.
    fn plan(&self, session: &mut Session<'_>, tasks: VecDeque<TaskId>, bounds: &mut Bounds) -> (Plan, Failure) {
        if bounds.suit(session, &tasks) {
            let search = Search::by_bounds(session, self, bounds);
            let (plan, search) = self.plan_by(session, tasks.clone(), search);
            if plan.is_enough || !search.is_partial {
                let failure = Failure::of(session.cluster(), &plan, &search);
                return (plan, failure);
            }
        }
        self.plan_anew(session, tasks)
    }

    /// The same, with all nodes asked.
    fn plan_anew(&self, session: &mut Session<'_>, tasks: VecDeque<TaskId>) -> (Plan, Failure) {
        let search = Search::new(session, self);
        let (plan, search) = self.plan_by(session, tasks, search);
        let failure = Failure::of(session.cluster(), &plan, &search);
        (plan, failure)
    }

    fn plan_by<'b>(
        &self,
        session: &mut Session<'_>,
        mut tasks: VecDeque<TaskId>,
        mut search: Search<'b>,
    ) -> (Plan, Search<'b>) {
        let mut plan = Plan::default();
        let mut failed: BTreeSet<ShapeId> = BTreeSet::new();
        let mut statement = session.statement();
        while let Some(task) = tasks.pop_front() {
            let now = statement.session();
            let cluster = now.cluster();
            if !now.plugins().job_wants_more(cluster, self.job) {
                break;
            }
            let shape = cluster.task(task).shape;
            let entitled = match self.against {
                Against::OtherQueues(_) => now.plugins().preemptive(cluster, self.queue, &[task]),
                Against::OtherJobs | Against::OwnJob => true,
            };
            if failed.contains(&shape) || cluster.shape(shape).spec.never_preempts || !entitled {
                continue;
            }
            // Members beyond the minimum that need nobody to go are for `allocate` to place.
            let has_minimum = now.plugins().job_pipelined(cluster, self.job);
            match search.place(&mut statement, self, task, has_minimum) {
                Some((node, victims)) => {
                    plan.evictions.extend(victims);
                    plan.placements.push((task, node));
                }
                None => {
                    failed.insert(shape);
                }
            }
        }
        let now = statement.session();
        plan.is_enough = now.plugins().job_pipelined(now.cluster(), self.job);
        (plan, search)
    }

    /// Commits a plan. One for which nobody has to go after all is left to `allocate` and `backfill`.
    fn carry_out(&self, session: &mut Session<'_>, plan: &Plan) {
        if plan.evictions.is_empty() {
            return;
        }
        let before = self.shares(session, plan);
        let Some(statement) = plan.replay(session, self) else { return };
        let placements: Arc<[_]> = plan
            .placements
            .iter()
            .map(|&(task, node)| {
                let cluster = statement.session().cluster();
                (PodRef::of(cluster, task), cluster.node(node).name().clone())
            })
            .collect();
        let after = self.shares(statement.session(), plan);
        if !self.is_fair(&before, &after) {
            return;
        }
        self.commit(statement, &placements, &before, &after);
        if let Some(promise) = explain_promises(session, self.job) {
            session.explain_job(self.job, promise);
        }
    }

    fn commit(
        &self,
        statement: Statement<'_, '_>,
        placements: &Arc<[(PodRef, Name)]>,
        before: &Shares,
        after: &Shares,
    ) {
        statement.commit(|cluster, victim| EvictionCertificate {
            volcano_votes: self.votes == VictimVotes::Volcano,
            action: self.action.to_owned(),
            beneficiary: cluster.job_label(self.job),
            placements: Arc::clone(placements),
            node: cluster.task(victim).node().map(|node| cluster.node(node).name().clone()).unwrap_or_default(),
            destination: None,
            cause: None,
            grace_seconds: None,
            shares: self.moves_of(cluster, victim, before, after),
        });
    }

    /// Says that evictions would not help, if any could have been made.
    fn explain_failure(&self, session: &mut Session<'_>, Failure { found, candidates }: Failure) {
        let cluster = session.cluster();
        // What its queue may not hold no eviction lets it have.
        let is_of_the_queue =
            session.reasons().job(self.job).is_some_and(|standing| standing.reason.is_of_the_queue(cluster));
        if candidates == 0 || is_of_the_queue {
            return;
        }
        let job = cluster.job(self.job);
        let (placed, needed) = (placed(job) + found, job.min_available());
        session.explain_job(self.job, Reason::EvictionsWouldNotHelp { placed, needed, candidates });
    }
}

/// Tasks of a job that wait for a node and may be tried now, in order.
pub(crate) fn waiting(session: &Session<'_>, job: JobId) -> VecDeque<TaskId> {
    let cluster = session.cluster();
    let now = cluster.now();
    let waits = |id: &TaskId| {
        let task = cluster.task(*id);
        task.status() == TaskStatus::Pending && task.retry_at <= now
    };
    let mut ranked: Vec<_> =
        cluster.job(job).tasks().filter(waits).map(|id| session.plugins().task_rank(cluster, id)).collect();
    ranked.sort_unstable();
    needed_first(cluster, job, ranked.into_iter().map(|(.., id)| id))
}
