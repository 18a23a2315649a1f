//! `VolumeBinding`: claims that have their volume keep a pod to the nodes that can use it; for those that wait for a node
//! one is chosen with the node, and bound before the pod.
//!
//! The choice is part of the place that a task is given: it is undone with it, and two pods never get one volume. What is
//! written, and how long it is waited for, is in [`bind`].

mod affinity;
pub(super) mod bind;
mod fit;
mod score;

use krafla_framework::conf::kube::args::VolumeBindingArgs;
use krafla_framework::effect::ClaimsToBind;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{CycleState, NodePlugin, PreFilter, PreScore, Room, Scope, Value, Verdict, Why};
use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::storage::ClaimChoice;
use krafla_model::{ClusterState, NodeId, TaskId};

use super::volume_claims::concerns;

/// See the module.
pub struct VolumeBinding {
    timeout_ms: u64,
    /// Score of a node by how much of its storage would be used: points of (percent, score of 0 to 10).
    shape: Vec<(i64, i64)>,
}

impl VolumeBinding {
    /// Its name.
    pub const NAME: &'static str = "VolumeBinding";

    /// As its arguments say.
    pub fn new(args: VolumeBindingArgs) -> Self {
        let timeout_ms = u64::try_from(args.bind_timeout_seconds).unwrap_or(0).saturating_mul(1_000);
        Self { timeout_ms, shape: args.shape }
    }

    /// From its arguments in a profile.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        VolumeBindingArgs::read(args).map(Self::new)
    }
}

impl NodePlugin for VolumeBinding {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// A volume that one pod gets is gone for all others.
    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Task)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Task)
    }

    fn score_scope_for(&self, cluster: &ClusterState, task: TaskId) -> Scope {
        if fit::may_rank(cluster, task) { Scope::Task } else { Scope::Nothing }
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        if cluster.shape_of(task).spec.volumes.claims.is_empty() {
            return PreFilter::Skip;
        }
        match fit::sort(cluster, task) {
            Ok(sorted) if sorted.suits_every_node() => PreFilter::Skip,
            Ok(sorted) => {
                state.put(sorted);
                PreFilter::All
            }
            Err(why) => PreFilter::Reject(why),
        }
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, state: &CycleState) -> Verdict {
        let Some(sorted) = state.get::<fit::Sorted>() else { return Verdict::Fits };
        match fit::fit(cluster, task, sorted, node) {
            Ok(_) => Verdict::Fits,
            Err(misfit) => Verdict::Unresolvable(Why::Says(misfit.says())),
        }
    }

    fn pre_score(&self, _: &ClusterState, _: TaskId, _: &[NodeId], state: &mut CycleState) -> PreScore {
        let waits = state.get::<fit::Sorted>().is_some_and(|sorted| !sorted.waiting.is_empty());
        if waits { PreScore::Score } else { PreScore::Skip }
    }

    /// Where the claims that wait would leave the most storage.
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, state: &CycleState) -> f64 {
        let Some(sorted) = state.get::<fit::Sorted>() else { return 0.0 };
        let Ok(choices) = fit::fit(cluster, task, sorted, node) else { return 0.0 };
        score::score(cluster, task, node, &choices, &self.shape) as f64
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const CHANGED: ActionType = ActionType::ADD.and(ActionType::UPDATE);
        const OTHER_LABELS: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_LABEL);
        // CSINodes are not among them: no volume is looked at in another way because a driver has taken it over.
        Some(&[
            (EventResource::StorageClass, CHANGED),
            (EventResource::PersistentVolumeClaim, CHANGED),
            (EventResource::PersistentVolume, CHANGED),
            (EventResource::Node, OTHER_LABELS),
            (EventResource::CsiDriver, ActionType::UPDATE),
            (EventResource::CsiStorageCapacity, CHANGED),
            // Not in kube-scheduler: what was chosen for a pod that is not bound after all is free again.
            (EventResource::Pod, ActionType::DELETE),
        ])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        match &event.about {
            About::Pod { shape, .. } => !shape.volumes.claims.is_empty(),
            _ => concerns(cluster, task, event),
        }
    }

    fn has_a_say_in_placing(&self, cluster: &ClusterState, task: TaskId) -> bool {
        !cluster.shape_of(task).spec.volumes.claims.is_empty()
    }

    fn choose(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Result<Vec<ClaimChoice>, Why> {
        if cluster.shape_of(task).spec.volumes.claims.is_empty() {
            return Ok(Vec::new());
        }
        let sorted = fit::sort(cluster, task)?;
        fit::fit(cluster, task, &sorted, node).map_err(|misfit| Why::Says(misfit.says()))
    }

    fn claims_to_bind(&self, cluster: &ClusterState, task: TaskId) -> Option<ClaimsToBind> {
        let own = cluster.task(task).choices().iter().filter(|choice| !matches!(choice, ClaimChoice::Devices(_)));
        let choices: Vec<ClaimChoice> = own.cloned().collect();
        let claims = ClaimsToBind { plugin: Self::NAME.into(), timeout_ms: self.timeout_ms, choices };
        (!claims.choices.is_empty()).then_some(claims)
    }

    fn binds_only_claims(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
