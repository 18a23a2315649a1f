//! `gangpreempt`: a job that starves takes the room of lower jobs of its queue, as a whole job, and gangs as wholes.
//!
//! Where `preempt` leaves every gang at its minimum, this may break one, all of it, if pods that can be done without are
//! not enough.

use krafla_framework::{Action, ActionInfo, ArgumentInfo, ArgumentKind, Arguments, Session, VictimVotes};

use crate::eviction::{Against, Beneficiary};
use crate::preempt::starving_by_queue;
use crate::victim_votes;

/// What both gang actions take.
pub(crate) const ARGUMENTS: &[ArgumentInfo] = &[
    crate::COMPAT,
    ArgumentInfo::new(
        "maxDomains",
        ArgumentKind::Integer { min: i64::MIN, max: i64::MAX },
        "8",
        "accepted; the cluster is one domain as long as topologies are not placed by",
    ),
    ArgumentInfo::new(ALLOW_WHOLE, ArgumentKind::Bool, "true", "whether running gangs may be broken, all of one"),
];

const ALLOW_WHOLE: &str = "allowWholeBundle";

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "gangpreempt",
    about: "evict for whole jobs, within their queue; gangs go as wholes",
    places: true,
    arguments: ARGUMENTS,
};

struct GangPreempt {
    allow_whole: bool,
    votes: VictimVotes,
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(GangPreempt { allow_whole: allows_whole(arguments), votes: victim_votes(arguments) })
}

/// Whether running gangs may be broken.
pub(crate) fn allows_whole(arguments: &Arguments) -> bool {
    arguments.bool(ALLOW_WHOLE, true)
}

impl Action for GangPreempt {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        for (queue, jobs) in starving_by_queue(session, |_, _| true) {
            for job in jobs {
                let who = Beneficiary { action: INFO.name, queue, job, against: Against::OtherJobs, votes: self.votes };
                who.make_room_by_bundles(session, self.allow_whole);
            }
        }
    }
}
