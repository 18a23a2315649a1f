//! `reclaim`: a queue that holds less than it is due takes back from queues that hold more.
//!
//! Every eviction must make the shares of the queues more equal: see [`krafla_framework::share`]. Beyond that the plugins
//! say which queues may reclaim, and who may go.

use krafla_framework::{Action, ActionInfo, Arguments, Dues, Session};

use crate::eviction::{Against, Beneficiary};
use crate::preempt::starving_by_queue;

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "reclaim",
    about: "evict for starving jobs, from queues that hold more than they are due",
    places: true,
    arguments: &[crate::ERROR_CACHE],
};

struct Reclaim;

/// Makes the action.
pub fn build(_: &Arguments) -> Box<dyn Action> {
    Box::new(Reclaim)
}

impl Action for Reclaim {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        for_each_reclaimer(session, INFO.name, |who, session| who.make_room(session));
    }
}

/// Lets jobs that starve make room in other queues, in order, as long as their own queue is not overused. Nobody does if
/// no plugin says what queues are due.
pub(crate) fn for_each_reclaimer(
    session: &mut Session<'_>,
    action: &'static str,
    make_room: impl Fn(&Beneficiary<'_>, &mut Session<'_>),
) {
    let Some(dues) = Dues::of(session.plugins(), session.cluster()) else { return };
    for (queue, jobs) in starving_by_queue(session) {
        for job in jobs {
            if session.plugins().overused(session.cluster(), queue).is_some() {
                break;
            }
            make_room(&Beneficiary { action, queue, job, against: Against::OtherQueues(&dues) }, session);
        }
    }
}
