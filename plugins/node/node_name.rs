//! `NodeName`: a pod that asks for a node by name gets that one or none.

use krafla_framework::{CycleState, NodePlugin, PreFilter, Scope};
use krafla_model::cluster_event::{ActionType, EventResource};
use krafla_model::{ClusterState, TaskId};

/// See the module. The API binds a pod that names its node at creation, so such a pod never waits here; the plugin
/// exists to be named in configurations.
pub struct NodeName;

impl NodePlugin for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    fn pre_filter(&self, _: &ClusterState, _: TaskId, _: &mut CycleState) -> PreFilter {
        PreFilter::Skip
    }
    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        Some(&[(EventResource::Node, ActionType::ADD)])
    }
}
