//! `consolidate`: a job for which there is room enough, but nowhere in one place, has pods of others moved together.
//!
//! Nobody loses: a pod is moved only to where there is room for it right now, and that room is kept until the pod that
//! takes its place has come. So any queue may be asked, and no share moves but that of the job.

use krafla_framework::{Action, ActionInfo, ArgumentInfo, ArgumentKind, Arguments, Session, VictimVotes};

use crate::eviction::{Against, Beneficiary, Futile};
use crate::preempt::starving_by_queue;

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "consolidate",
    about: "move running pods to other nodes for jobs that fit nowhere in one place",
    places: true,
    arguments: &[ArgumentInfo::new(
        TIMEOUT,
        ArgumentKind::Duration,
        "5m",
        "how long room is kept for a pod that is moved, from the decision on",
    )],
};

const TIMEOUT: &str = "reservationTimeout";
const FIVE_MINUTES: u64 = 300_000;

struct Consolidate {
    timeout_ms: i64,
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    let timeout = arguments.duration_ms(TIMEOUT, FIVE_MINUTES);
    Box::new(Consolidate { timeout_ms: i64::try_from(timeout).unwrap_or(i64::MAX) })
}

impl Action for Consolidate {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let until = session.cluster().now() + self.timeout_ms;
        let mut futile = Futile::default();
        for (queue, jobs) in starving_by_queue(session, |_, _| true) {
            for job in jobs {
                if session.plugins().overused(session.cluster(), queue).is_some() {
                    break;
                }
                let (action, votes) = (INFO.name, VictimVotes::Veto);
                let who = Beneficiary { action, queue, job, against: Against::OtherJobs, votes };
                who.make_room_by_moves(session, until, &mut futile);
            }
        }
    }
}
