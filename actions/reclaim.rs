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
        let Some(dues) = Dues::of(session.plugins(), session.cluster()) else { return };
        for (queue, jobs) in starving_by_queue(session) {
            for job in jobs {
                if session.plugins().overused(session.cluster(), queue).is_some() {
                    break;
                }
                let who = Beneficiary { action: INFO.name, queue, job, against: Against::OtherQueues(&dues) };
                who.make_room(session);
            }
        }
    }
}
