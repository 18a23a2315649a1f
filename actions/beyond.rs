//! Jobs that are beyond the limits of their queue before anything is placed. What the queue holds only grows while jobs are
//! placed, so they need no turn, and it is reckoned once for those that are alike: thousands that wait for a quota cost the
//! others little.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{Reason, Session};
use krafla_model::{JobId, QueueId, TaskId, TaskStatus};

use crate::hopeless::{Plain, beyond_its_queue, hopeless, plain};
use crate::placement::{Attempt, place_one};
use crate::promises::with_promises;

/// What is known of jobs in one session.
pub(crate) struct BeyondTheirQueue {
    /// Why jobs that are alike are beyond their queue, if they are; and whether a member of them can run on no node, however
    /// empty, which one of them tells.
    known: BTreeMap<Plain, Option<(Reason, bool)>>,
    /// What was promised to these was not too much for their queue when it was.
    promised: BTreeSet<JobId>,
}

impl BeyondTheirQueue {
    pub(crate) fn new(session: &Session<'_>) -> Self {
        let promised = with_promises(session).into_iter().map(|(_, job)| job).collect();
        Self { known: BTreeMap::new(), promised }
    }

    /// Whether a job that is alike to others in this, holds nothing, and for which there is room in the cluster, is beyond
    /// its queue; with that of [`Self::known`].
    pub(crate) fn says(&mut self, session: &mut Session<'_>, alike: Plain, job: JobId) -> Option<(Reason, bool)> {
        if self.promised.contains(&job) || !is_as_others(session, job) {
            return None;
        }
        if let Some(known) = self.known.get(&alike) {
            return known.clone();
        }
        let found = judge(session, alike.0, job);
        self.known.insert(alike, found.clone());
        found
    }
}

/// The same for a gang whose turn has come, of which most might find a place and would have to give it up: what others got
/// meanwhile may have filled its queue.
/// To be asked only about one to which nothing was promised.
pub(crate) fn gang_beyond_its_queue(session: &mut Session<'_>, queue: QueueId, job: JobId) -> Option<(Reason, bool)> {
    let cluster = session.cluster();
    let is_kept_room = cluster.reservations().next().is_some();
    if cluster.job(job).min_available() < 2 || is_kept_room || plain(session, queue, job).is_none() {
        return None;
    }
    (is_as_others(session, job) && hopeless(session, job).is_none()).then(|| judge(session, queue, job)).flatten()
}

/// What `sla` lets wait holds on to what it finds; what was let through a gate counts for the queue already.
fn is_as_others(session: &Session<'_>, job: JobId) -> bool {
    let cluster = session.cluster();
    cluster.job(job).held().let_through.is_zero() && !session.plugins().job_pipelined(cluster, job)
}

fn judge(session: &mut Session<'_>, queue: QueueId, job: JobId) -> Option<(Reason, bool)> {
    let reason = beyond_its_queue(session, queue, job)?;
    let cluster = session.cluster();
    let may_be_tried = |task: &TaskId| {
        let own = cluster.task(*task);
        own.status() == TaskStatus::Pending && own.retry_at <= cluster.now() && !cluster.shape_of(*task).best_effort
    };
    let first = cluster.job(job).tasks().find(may_be_tried)?;
    let mut attempt = Attempt::default();
    place_one(&mut session.statement(), queue, first, &mut attempt);
    Some((reason, attempt.is_impossible()))
}
