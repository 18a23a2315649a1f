//! `backfill`: places tasks that ask for nothing but a pod slot.
//!
//! They go wherever the filters let them; queue limits on resources do not concern them. A queue that is not open
//! starts nothing, though, and a gang still starts whole or not at all.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::rank::{JobRank, QueueRank};
use krafla_framework::search::SearchLimits;
use krafla_framework::{Action, ActionInfo, Arguments, Found, Point, Reason, Session};
use krafla_model::{JobId, QueueId, ShapeId, TaskStatus};

use crate::enqueue::ClosedQueues;
use crate::placement::minimum_has_nodes;

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "backfill",
    about: "place pods that ask for nothing",
    places: true,
    arguments: &[crate::ERROR_CACHE],
};

struct Backfill;

/// Makes the action.
pub fn build(_: &Arguments) -> Box<dyn Action> {
    Box::new(Backfill)
}

impl Action for Backfill {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let mut queues: BTreeMap<QueueRank, Vec<JobRank>> = BTreeMap::new();
        let mut ranks: BTreeMap<QueueId, QueueRank> = BTreeMap::new();
        let waiting: Vec<JobId> = session.cluster().waiting_jobs().collect();
        let mut closed = ClosedQueues::default();
        for job in waiting {
            let cluster = session.cluster();
            let spec = cluster.job(job);
            if spec.is_pending() || spec.pending_best_effort() == 0 {
                continue;
            }
            let Some(queue) = spec.queue else { continue };
            if closed.turn_away(session, job, queue) {
                continue;
            }
            let cluster = session.cluster();
            if session.plugins().job_valid(cluster, job).is_some() {
                continue;
            }
            let rank = ranks.entry(queue).or_insert_with(|| session.plugins().queue_rank(cluster, queue));
            queues.entry(rank.clone()).or_default().push(session.plugins().job_rank(cluster, job));
        }
        for mut jobs in queues.into_values() {
            jobs.sort_unstable();
            for (.., job) in jobs {
                place_all(session, job);
            }
        }
    }
}

fn place_all(session: &mut Session<'_>, job: JobId) {
    let cluster = session.cluster();
    let mut tasks: Vec<_> = cluster
        .job(job)
        .tasks()
        .filter(|task| cluster.task(*task).status() == TaskStatus::Pending && cluster.shape_of(*task).best_effort)
        .filter(|task| cluster.task(*task).retry_at <= cluster.now())
        .map(|task| session.plugins().task_rank(cluster, task))
        .collect();
    tasks.sort_unstable();
    let mut statement = session.statement();
    let mut failed: BTreeSet<ShapeId> = BTreeSet::new();
    let mut stuck: Option<Reason> = None;
    for (.., task) in tasks {
        let shape = statement.session().cluster().task(task).shape;
        if failed.contains(&shape) {
            continue;
        }
        let limits = SearchLimits { may_start: true, may_wait: false };
        match statement.session_mut().find_node(task, limits) {
            Found::Node { node, .. } => {
                let done = statement.allocate(task, node);
                debug_assert!(done.is_ok(), "the search and the books disagree: {done:?}");
            }
            Found::Nothing(refusals) => {
                failed.insert(shape);
                stuck.get_or_insert(Reason::refused_by_nodes(0, 1, refusals));
            }
        }
    }
    // A member that asks for nothing counts as placed before it is, so a gang may be ready without a node for it:
    // what must hold is that those with a node reach the minimum.
    let gangs = statement.session().plugins().has(Point::JobReady);
    let starts = !gangs || minimum_has_nodes(statement.session().cluster().job(job));
    if starts {
        statement.commit_binds();
    } else {
        drop(statement);
    }
    match stuck {
        Some(reason) => session.explain_job(job, reason),
        None if starts => session.clear_reason(job),
        None => {}
    }
}
