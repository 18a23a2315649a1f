//! `gangreclaim`: a queue that holds less than it is due takes it back for a whole job, and gangs go as wholes.

use krafla_framework::{Action, ActionInfo, Arguments, Session, VictimVotes};

use crate::eviction::Beneficiary;
use crate::gangpreempt::{ARGUMENTS, allows_whole};
use crate::reclaim::for_each_reclaimer;
use crate::victim_votes;

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "gangreclaim",
    about: "evict for whole jobs, from queues that hold more than they are due; gangs go as wholes",
    places: true,
    arguments: ARGUMENTS,
};

struct GangReclaim {
    allow_whole: bool,
    votes: VictimVotes,
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    Box::new(GangReclaim { allow_whole: allows_whole(arguments), votes: victim_votes(arguments) })
}

impl Action for GangReclaim {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let make_room =
            |who: &Beneficiary<'_>, session: &mut Session<'_>| who.make_room_by_bundles(session, self.allow_whole);
        for_each_reclaimer(session, INFO.name, self.votes, |_, _, _| true, make_room);
    }
}
