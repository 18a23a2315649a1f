//! `reclaim`: a queue that holds less than it is due takes back from queues that hold more.
//!
//! Every eviction must make the shares of the queues more equal: see [`krafla_framework::share`]. Beyond that the plugins
//! say which queues may reclaim, and who may go.

use std::collections::BTreeMap;

use krafla_framework::{Action, ActionInfo, Arguments, Dues, Session, VictimVotes};
use krafla_model::{JobId, QueueId, ShapeId, TaskStatus};

use crate::eviction::{Against, Beneficiary, Bounds, ShareRule, Vain};
use crate::preempt::starving_by_queue;
use crate::victim_votes;

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "reclaim",
    about: "evict for starving jobs, from queues that hold more than they are due",
    places: true,
    arguments: &[crate::ERROR_CACHE, crate::COMPAT],
};

struct Reclaim {
    votes: VictimVotes,
    /// Whether what is known to be in vain is tried all the same.
    blind: bool,
}

/// Which queues may reclaim for which shapes of tasks, as the action begins. With what they gain they may do so for less;
/// one that may do so for more because it has lost something does that in the next session.
#[derive(Default)]
struct Entitled(BTreeMap<(QueueId, ShapeId), bool>);

impl Entitled {
    /// Whether a queue may reclaim for any of a job's tasks that wait.
    fn any_task_of(&mut self, session: &Session<'_>, queue: QueueId, job: JobId) -> bool {
        let (cluster, plugins) = (session.cluster(), session.plugins());
        let mut waiting = cluster.job(job).tasks().filter(|task| cluster.task(*task).status() == TaskStatus::Pending);
        waiting.any(|task| {
            let key = (queue, cluster.task(task).shape);
            *self.0.entry(key).or_insert_with(|| plugins.preemptive(cluster, queue, &[task]))
        })
    }
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(Reclaim { votes: victim_votes(arguments), blind: false })
}

/// Makes an action that tries everything; tests compare the two.
pub fn build_blind(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(Reclaim { votes: victim_votes(arguments), blind: true })
}

impl Action for Reclaim {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let (mut vain, mut bounds) = if self.blind { (Vain::blind(), Bounds::blind()) } else { Default::default() };
        let mut entitled = Entitled::default();
        let may_gain = |session: &Session<'_>, queue, job| entitled.any_task_of(session, queue, job);
        for_each_reclaimer(session, INFO.name, self.votes, may_gain, |who, session| {
            who.make_room(session, &mut vain, &mut bounds)
        });
    }
}

/// Lets jobs that starve make room in other queues, in order, as long as their own queue is not overused. Nobody does if
/// no plugin says what queues are due, or compares their branches.
pub(crate) fn for_each_reclaimer(
    session: &mut Session<'_>,
    action: &'static str,
    votes: VictimVotes,
    mut may_gain: impl FnMut(&Session<'_>, QueueId, JobId) -> bool,
    mut make_room: impl FnMut(&Beneficiary<'_>, &mut Session<'_>),
) {
    let dues = Dues::of(session.plugins(), session.cluster());
    let rule = match &dues {
        Some(dues) => ShareRule::Due(dues),
        None if session.plugins().compares_branches() => ShareRule::Branches,
        None => return,
    };
    for (queue, jobs) in starving_by_queue(session, |queue, job| may_gain(session, queue, job)) {
        for job in jobs {
            if session.plugins().overused(session.cluster(), queue).is_some() {
                break;
            }
            make_room(&Beneficiary { action, queue, job, against: Against::OtherQueues(rule), votes }, session);
        }
    }
}
