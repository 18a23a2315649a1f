//! What is to be done for one job: who goes, and who will run where.

use krafla_framework::{Session, Statement};
use krafla_model::{ClusterState, NodeId, TaskId};

use super::Beneficiary;
use super::search::fits;

/// Tasks that go together or stay together: one, or everybody of a gang that would be broken otherwise.
pub(crate) type Bundle = Vec<TaskId>;

/// Whether a bundle may stay while `gone` goes: not if that is the gang of the same job.
pub(super) fn may_stay(cluster: &ClusterState, bundle: &[TaskId], gone: &[Bundle]) -> bool {
    let job = |tasks: &[TaskId]| tasks.first().and_then(|task| cluster.task(*task).job);
    !gone.iter().any(|other| other.len() > 1 && job(other) == job(bundle))
}

/// Evictions, and the placements that they are for.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// Who goes, in the order in which it was decided.
    pub(crate) evictions: Vec<Bundle>,
    /// Who is promised which node.
    pub(crate) placements: Vec<(TaskId, NodeId)>,
    /// Whether the job can start with that.
    pub(crate) is_enough: bool,
}

impl Plan {
    /// Does it, if it holds: every placement fits, with the evicted gone.
    pub(crate) fn replay<'s, 'a>(
        &self,
        session: &'s mut Session<'a>,
        who: &Beneficiary<'_>,
    ) -> Option<Statement<'s, 'a>> {
        let mut statement = session.statement();
        for &victim in self.evictions.iter().flatten() {
            statement.evict(victim).ok()?;
        }
        for &(task, node) in &self.placements {
            if !fits(statement.session_mut(), who, task, node) {
                return None;
            }
            statement.pipeline(task, node).ok()?;
        }
        Some(statement)
    }

    /// Drops evictions that the placements turn out not to need, the dearest first: what made room for one member may
    /// be in excess once others have been served.
    pub(crate) fn spare(&mut self, session: &mut Session<'_>, who: &Beneficiary<'_>) {
        let suspects = self.suspects(session, who);
        for bundle in suspects.into_iter().rev() {
            let mut fewer = self.clone();
            fewer.evictions.retain(|other| *other != bundle);
            if may_stay(session.cluster(), &bundle, &fewer.evictions) && fewer.replay(session, who).is_some() {
                *self = fewer;
            }
        }
    }

    /// Evicted tasks for which their node would still have room in the end, whole bundles of them. The others are needed
    /// for sure.
    fn suspects(&self, session: &mut Session<'_>, who: &Beneficiary<'_>) -> Vec<Bundle> {
        let Some(done) = self.replay(session, who) else { return Vec::new() };
        let cluster = done.session().cluster();
        let could_stay = |victim: &TaskId| {
            let task = cluster.task(*victim);
            task.node().is_some_and(|node| {
                let left = cluster.node(node).future_idle();
                cluster.shape_of(*victim).request.fits(&left)
            })
        };
        self.evictions.iter().filter(|bundle| bundle.iter().all(could_stay)).cloned().collect()
    }
}
