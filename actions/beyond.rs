//! Jobs that are beyond the limits of their queue before anything is placed. What the queue holds only grows while jobs are
//! placed, so they need no turn, and it is reckoned once for those that are alike: thousands that wait for a quota cost the
//! others little.

use std::collections::{BTreeMap, BTreeSet};

use krafla_framework::{Reason, Session};
use krafla_model::{JobId, QueueId, TaskId, TaskStatus};

use crate::hopeless::{Plain, beyond_its_queue};
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
        let (cluster, plugins) = (session.cluster(), session.plugins());
        let own = cluster.job(job);
        // What `sla` lets wait holds on to what it finds; what was let through a gate counts for the queue already.
        let is_as_others = own.held().let_through.is_zero() && !self.promised.contains(&job);
        if !is_as_others || plugins.job_pipelined(cluster, job) {
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

fn judge(session: &mut Session<'_>, queue: QueueId, job: JobId) -> Option<(Reason, bool)> {
    let reason = beyond_its_queue(session, queue, job)?;
    let cluster = session.cluster();
    let may_be_tried = |task: &TaskId| {
        let task = cluster.task(*task);
        task.status() == TaskStatus::Pending && task.retry_at <= cluster.now()
    };
    let first = cluster.job(job).tasks().find(may_be_tried)?;
    let mut attempt = Attempt::default();
    place_one(&mut session.statement(), queue, first, &mut attempt);
    Some((reason, attempt.is_impossible()))
}
