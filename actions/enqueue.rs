//! `enqueue`: jobs that stand at the door are let into their queues, as far as the plugins allow.
//!
//! Queues take turns, best first, one job a turn. A job that is not let in does not keep the next of its queue out
//! (Volcano's *traverse*).

use std::collections::BTreeMap;

use krafla_framework::rank::{JobRank, QueueRank};
use krafla_framework::{Action, ActionInfo, Arguments, Freeable, RankedQueue, Reason, Session};
use krafla_model::{JobId, QueueId};

use crate::eviction::FreeableSums;
use crate::promises::is_expected;

/// Name and arguments.
pub const INFO: ActionInfo =
    ActionInfo { name: "enqueue", about: "let jobs into their queues", places: false, arguments: &[] };

struct Enqueue;

/// Makes the action.
pub fn build(_: &Arguments) -> Box<dyn Action> {
    Box::new(Enqueue)
}

impl Action for Enqueue {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let mut doors: BTreeMap<QueueId, RankedQueue<JobId, JobRank>> = BTreeMap::new();
        let at_the_door: Vec<JobId> =
            session.cluster().waiting_jobs().filter(|job| session.cluster().job(*job).is_pending()).collect();
        let mut closed = ClosedQueues::default();
        for job in at_the_door {
            let queue = session.cluster().job(job).queue;
            match queue {
                Some(queue) if closed.turn_away(session, job, queue) => {}
                // It was in, and room is kept for the pods that it lost.
                Some(_) if is_expected(session.cluster(), job) => session.admit(job),
                Some(queue) => {
                    let rank = session.plugins().job_rank(session.cluster(), job);
                    doors.entry(queue).or_default().push(job, rank);
                }
                None => explain_missing_queue(session, job),
            }
        }
        let mut turns: RankedQueue<QueueId, QueueRank> = RankedQueue::default();
        for &queue in doors.keys() {
            turns.push(queue, session.plugins().queue_rank(session.cluster(), queue));
        }
        let mut sums = FreeableSums::default();
        while let Some(queue) = turns.pop() {
            let Some(job) = doors.get_mut(&queue).and_then(RankedQueue::pop) else { continue };
            let admitted = session.plugins().job_enqueueable(session.cluster(), job, &Freeable::default());
            let admitted = admitted.or_else(|reason| {
                // One that may take what it needs is let in to do so.
                let freeable = sums.for_job(session, job);
                match freeable == Freeable::default() {
                    true => Err(reason),
                    false => session.plugins().job_enqueueable(session.cluster(), job, &freeable),
                }
            });
            match admitted {
                Ok(()) => session.admit(job),
                Err(reason) => session.explain_job(job, reason),
            }
            turns.push(queue, session.plugins().queue_rank(session.cluster(), queue));
        }
    }
}

/// What jobs of queues that are not open are told, reckoned once a queue: it counts the jobs that wait there.
#[derive(Default)]
pub(crate) struct ClosedQueues(BTreeMap<QueueId, Reason>);

impl ClosedQueues {
    /// Tells a job whose queue is not open. Answers whether that was so.
    pub(crate) fn turn_away(&mut self, session: &mut Session<'_>, job: JobId, queue: QueueId) -> bool {
        let cluster = session.cluster();
        if cluster.queue(queue).is_open() {
            return false;
        }
        let reason = self.0.entry(queue).or_insert_with(|| Reason::queue_not_open(cluster, queue)).clone();
        session.explain_job(job, reason);
        true
    }
}

/// Says that a job names a queue which does not exist.
pub(crate) fn explain_missing_queue(session: &mut Session<'_>, job: JobId) {
    let cluster = session.cluster();
    let queue = cluster.job(job).spec.queue.clone();
    let queues = cluster.queues().count();
    session.explain_job(job, Reason::QueueNotFound { queue, queues });
}
