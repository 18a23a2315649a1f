//! `reclaim`: a queue that holds less than it is due takes back from queues that hold more.
//!
//! Every eviction must make the shares of the queues more equal: see [`krafla_framework::share`]. Beyond that the plugins
//! say which queues may reclaim, and who may go.

use krafla_framework::{Action, ActionInfo, Arguments, Dues, Session, VictimVotes};

use crate::eviction::{Against, Beneficiary, ShareRule, Vain};
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
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(Reclaim { votes: victim_votes(arguments) })
}

impl Action for Reclaim {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        for_each_reclaimer(session, INFO.name, self.votes, |who, session| who.make_room(session, &mut Vain::default()));
    }
}

/// Lets jobs that starve make room in other queues, in order, as long as their own queue is not overused. Nobody does if
/// no plugin says what queues are due, or compares their branches.
pub(crate) fn for_each_reclaimer(
    session: &mut Session<'_>,
    action: &'static str,
    votes: VictimVotes,
    make_room: impl Fn(&Beneficiary<'_>, &mut Session<'_>),
) {
    let dues = Dues::of(session.plugins(), session.cluster());
    let rule = match &dues {
        Some(dues) => ShareRule::Due(dues),
        None if session.plugins().compares_branches() => ShareRule::Branches,
        None => return,
    };
    for (queue, jobs) in starving_by_queue(session) {
        for job in jobs {
            if session.plugins().overused(session.cluster(), queue).is_some() {
                break;
            }
            make_room(&Beneficiary { action, queue, job, against: Against::OtherQueues(rule), votes }, session);
        }
    }
}
