//! `defragment`: pods of others are moved together so that one named job fits, the fewest that serve the job as a whole.
//!
//! It does for one job what `consolidate` does for every one that starves: nobody loses, since a pod is moved only to
//! where there is room for it right now, and that room is kept until the pod that takes its place has come.

use krafla_framework::{Action, ActionInfo, ArgumentInfo, ArgumentKind, Arguments, Session, VictimVotes};
use krafla_model::{JobId, Name};

use crate::eviction::{Against, Beneficiary};

/// Name and arguments.
pub const INFO: ActionInfo = ActionInfo {
    name: "defragment",
    about: "move running pods to other nodes so that a named job fits",
    places: true,
    arguments: &[
        ArgumentInfo::new(JOB, ArgumentKind::Text, "", "the job, as `namespace/name` of its PodGroup"),
        ArgumentInfo::new(
            TIMEOUT,
            ArgumentKind::Duration,
            "5m",
            "how long room is kept for a pod that is moved, from the decision on",
        ),
    ],
};

const JOB: &str = "job";
const TIMEOUT: &str = "reservationTimeout";
const FIVE_MINUTES: u64 = 300_000;

struct Defragment {
    job: Option<(Name, Name)>,
    timeout_ms: i64,
}

/// Makes the action.
pub fn build(arguments: &Arguments) -> Box<dyn Action> {
    let job = arguments.text(JOB, "").split_once('/').map(|(namespace, name)| (namespace.into(), name.into()));
    let timeout = arguments.duration_ms(TIMEOUT, FIVE_MINUTES);
    Box::new(Defragment { job, timeout_ms: i64::try_from(timeout).unwrap_or(i64::MAX) })
}

impl Defragment {
    /// The job, if it waits and is let in.
    fn waiting(&self, session: &Session<'_>) -> Option<JobId> {
        let (cluster, (namespace, name)) = (session.cluster(), self.job.as_ref()?);
        let job = cluster.find_job(namespace, name)?;
        let waits = session.plugins().job_starving(cluster, job) && !cluster.job(job).is_pending();
        (waits && session.plugins().job_valid(cluster, job).is_none()).then_some(job)
    }
}

impl Action for Defragment {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn execute(&mut self, session: &mut Session<'_>) {
        let Some(job) = self.waiting(session) else { return };
        let Some(queue) = session.cluster().job(job).queue else { return };
        if session.plugins().overused(session.cluster(), queue).is_some() {
            return;
        }
        let until = session.cluster().now() + self.timeout_ms;
        let (action, votes) = (INFO.name, VictimVotes::Veto);
        let who = Beneficiary { action, queue, job, against: Against::OtherJobs, votes };
        who.make_room_by_fewest_moves(session, until);
    }
}
