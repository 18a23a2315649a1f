//! `gangreclaim`: a queue that holds less than it is due takes it back for a whole job, and gangs go as wholes.

use krafla_framework::{Action, ActionInfo, Arguments, Dues, Session};

use crate::eviction::{Against, Beneficiary};
use crate::gangpreempt::{ARGUMENTS, allows_whole};
use crate::preempt::starving_by_queue;

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "gangreclaim",
    about: "evict for whole jobs, from queues that hold more than they are due; gangs go as wholes",
    places: true,
    arguments: ARGUMENTS,
};

struct GangReclaim {
    allow_whole: bool,
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(GangReclaim { allow_whole: allows_whole(arguments) })
}

impl Action for GangReclaim {
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
                if session.plugins().job_starving(session.cluster(), job) {
                    let who = Beneficiary { action: INFO.name, queue, job, against: Against::OtherQueues(&dues) };
                    who.make_room_by_bundles(session, self.allow_whole);
                }
            }
        }
    }
}
