//! `preempt`: a job that starves takes the room of others of its queue; then of its own members.
//!
//! Who may go is for the plugins to say: `priority` names those of lower priority, `gang` keeps each gang at its minimum,
//! and so on. A gang is served as a whole or not at all: nobody is evicted for members that could not run.

use krafla_framework::rank::{JobRank, QueueRank};
use krafla_framework::{Action, ActionInfo, ArgumentInfo, ArgumentKind, Arguments, Session, VictimVotes};
use krafla_model::{JobId, QueueId};

use crate::eviction::{Against, Beneficiary, Bounds, Vain, waiting};
use crate::victim_votes;

const COUNT: ArgumentKind = ArgumentKind::Integer { min: 0, max: i64::MAX };

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "preempt",
    about: "evict for starving jobs, within their queue",
    places: true,
    arguments: &[
        crate::ERROR_CACHE,
        crate::COMPAT,
        ArgumentInfo::new(
            "enableTopologyAwarePreemption",
            ArgumentKind::Bool,
            "false",
            "accepted; victims are always the fewest and cheapest, and all nodes are compared",
        ),
        ArgumentInfo::new("topologyAwarePreemptWorkerNum", COUNT, "16", "accepted; nothing to set here"),
        ArgumentInfo::new("minCandidateNodesPercentage", COUNT, "10", "accepted; all nodes are compared"),
        ArgumentInfo::new("minCandidateNodesAbsolute", COUNT, "1", "accepted; all nodes are compared"),
        ArgumentInfo::new("maxCandidateNodesAbsolute", COUNT, "100", "accepted; all nodes are compared"),
    ],
};

struct Preempt {
    votes: VictimVotes,
    /// Whether what is known to be in vain is tried all the same.
    blind: bool,
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(Preempt { votes: victim_votes(arguments), blind: false })
}

/// Makes an action that decides the same and tries everything; tests compare the two.
pub fn build_blind(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(Preempt { votes: victim_votes(arguments), blind: true })
}

impl Action for Preempt {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let (mut vain, mut bounds) = if self.blind { (Vain::blind(), Bounds::blind()) } else { Default::default() };
        for (queue, jobs) in starving_by_queue(session, |_, _| true) {
            for &job in &jobs {
                let who = Beneficiary { action: INFO.name, queue, job, against: Against::OtherJobs, votes: self.votes };
                who.make_room(session, &mut vain, &mut bounds);
            }
            for job in jobs {
                if within(session, queue, job, self.votes) {
                    vain.clear();
                }
            }
        }
    }
}

/// A job's better members take the room of its lesser ones. Answers whether anybody went.
fn within(session: &mut Session<'_>, queue: QueueId, job: JobId, votes: VictimVotes) -> bool {
    let who = Beneficiary { action: INFO.name, queue, job, against: Against::OwnJob, votes };
    let has_none = session.cluster().job(job).counts().sum(|status| status.is_allocated()) == 0;
    let mut made = false;
    for task in waiting(session, job) {
        if has_none || !session.plugins().job_starving(session.cluster(), job) || !who.make_room_for(session, task) {
            break;
        }
        made = true;
    }
    made
}

/// Jobs that starve, or would have more than their minimum, in order, by queue, in order. Not those at the door, of
/// queues that are not open, or that are not valid: for them nobody is evicted. Nor those of which it is known that
/// nothing may be done for them (`may_gain`): of thousands that wait only those are put in order that matter.
pub(crate) fn starving_by_queue(
    session: &Session<'_>,
    mut may_gain: impl FnMut(QueueId, JobId) -> bool,
) -> Vec<(QueueId, Vec<JobId>)> {
    let (cluster, plugins) = (session.cluster(), session.plugins());
    let mut found: Vec<(QueueRank, JobRank)> = Vec::new();
    for id in cluster.waiting_jobs() {
        let job = cluster.job(id);
        let Some(queue) = job.queue.filter(|queue| cluster.queue(*queue).is_open()) else { continue };
        let lacks_nothing = job.is_pending() || !may_gain(queue, id) || !plugins.job_wants_more(cluster, id);
        if lacks_nothing || plugins.job_valid(cluster, id).is_some() {
            continue;
        }
        found.push((plugins.queue_rank(cluster, queue), plugins.job_rank(cluster, id)));
    }
    found.sort_unstable();
    let mut by_queue: Vec<(QueueId, Vec<JobId>)> = Vec::new();
    for ((.., queue), (.., job)) in found {
        match by_queue.last_mut().filter(|(last, _)| *last == queue) {
            Some((_, jobs)) => jobs.push(job),
            None => by_queue.push((queue, vec![job])),
        }
    }
    by_queue
}
