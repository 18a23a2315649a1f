//! What was sought in vain: with a thousand jobs that wait, most of them are like one that has just found nothing.
//!
//! A job that holds nothing and whose tasks are all of one shape has found room for so many of them, whoever went who may.
//! Another job of its queue that needs more than that, of the same shape, fails as well, if it may evict nobody whom the
//! first may not. That is known of plugins that say so
//! ([`preempts_no_more`](krafla_framework::SessionPlugin::preempts_no_more)); what one of them answers may change with who
//! else goes, and then only the first search of a plan tells: where it found nothing at all. Nothing is known any more
//! once somebody was evicted.

use std::collections::{BTreeMap, VecDeque};

use krafla_framework::{Comparison, Session};
use krafla_model::{ClusterState, JobId, QueueId, ShapeId, TaskId};

use super::plan::Plan;
use super::search::Search;
use super::{Against, Beneficiary, ShareRule};

/// How far a job came that could not start.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    /// Members that found room.
    pub(super) found: u32,
    /// Pods that could have been evicted.
    pub(super) candidates: u32,
}

impl Failure {
    pub(super) fn of(cluster: &ClusterState, plan: &Plan, search: &Search<'_>) -> Self {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        // Who asks for nothing counts as placed before.
        let found = plan.placements.iter().filter(|(task, _)| !cluster.shape_of(*task).best_effort).count();
        Self { found: count(found), candidates: count(search.candidates.len()) }
    }
}

/// Failures since the last decision.
#[derive(Default)]
pub(crate) struct Vain {
    known: BTreeMap<(QueueId, ShapeId), Vec<(JobId, Failure)>>,
    /// Whether everything is tried all the same.
    blind: bool,
}

impl Vain {
    /// One that foresees nothing: what is right, for tests to compare with.
    pub(crate) fn blind() -> Self {
        Self { blind: true, ..Self::default() }
    }

    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    /// Notes that a job found too little for `sought`, its waiting tasks.
    pub(super) fn note(
        &mut self,
        session: &Session<'_>,
        who: &Beneficiary<'_>,
        sought: &VecDeque<TaskId>,
        failure: Failure,
    ) {
        // Who holds something spares it, which others might take.
        let holds = session.cluster().job(who.job).counts().sum(|status| status.is_allocated()) > 0;
        if let Some(shape) = only_shape(session, sought).filter(|_| !holds && depends_on_queues_only(who)) {
            self.known.entry((who.queue, shape)).or_default().push((who.job, failure));
        }
    }

    /// How far a job would come, if that is known to be not far enough; at most.
    pub(super) fn foresees(
        &self,
        session: &Session<'_>,
        who: &Beneficiary<'_>,
        tasks: &VecDeque<TaskId>,
    ) -> Option<Failure> {
        if self.blind || self.known.is_empty() || !depends_on_queues_only(who) {
            return None;
        }
        let known = self.known.get(&(who.queue, only_shape(session, tasks)?))?;
        let (cluster, plugins) = (session.cluster(), session.plugins());
        if plugins.job_pipelined(cluster, who.job) {
            return None;
        }
        let job = cluster.job(who.job);
        let needs = job.min_available().saturating_sub(crate::placement::placed(job));
        let fails = |(than, failure): &&(JobId, Failure)| {
            let least = if failure.found == 0 { Comparison::Now } else { Comparison::Always };
            let comparison = match who.against {
                Against::OtherQueues(_) => plugins.reclaims_no_more(cluster, who.job, *than),
                Against::OtherJobs | Against::OwnJob => plugins.preempts_no_more(cluster, who.job, *than),
            };
            needs > failure.found && comparison >= least
        };
        known.iter().find(fails).map(|(_, failure)| *failure)
    }
}

/// Whether jobs of one queue may take from the same others, so far as the action itself decides that.
fn depends_on_queues_only(who: &Beneficiary<'_>) -> bool {
    matches!(who.against, Against::OtherJobs | Against::OtherQueues(ShareRule::Due(_)))
}

/// The shape of all tasks, if they have one. None that looks at other pods: who goes may be one that it wants to be near.
fn only_shape(session: &Session<'_>, tasks: &VecDeque<TaskId>) -> Option<ShapeId> {
    let shape = |task: &TaskId| session.cluster().task(*task).shape;
    let first = shape(tasks.front()?);
    let is_plain = !session.cluster().shape(first).spec.looks_at_other_pods();
    (is_plain && tasks.iter().all(|task| shape(task) == first)).then_some(first)
}
