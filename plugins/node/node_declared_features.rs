//! `NodeDeclaredFeatures`: a pod that needs a feature of the kubelet runs on nodes that declare it. What a pod needs is
//! inferred from its fields, at the edge.

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{ActionType, EventResource};
use krafla_model::{ClusterState, NodeId, TaskId};

/// See the module.
pub struct NodeDeclaredFeatures;

impl NodePlugin for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatures"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, _: &mut CycleState) -> PreFilter {
        if cluster.shape_of(task).spec.features.is_empty() { PreFilter::Skip } else { PreFilter::All }
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        let declared = &cluster.node(node).spec.features;
        let needed = &cluster.shape_of(task).spec.features;
        match needed.iter().find(|feature| !declared.contains(feature)) {
            None => Verdict::Fits,
            Some(lacking) => {
                let why = format!("node(s) didn't match Pod's required features: {lacking} is not declared");
                Verdict::Unresolvable(Why::Told(why.into()))
            }
        }
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const EVENTS: [(EventResource, ActionType); 2] =
            [(EventResource::Node, ActionType::ADD.and(ActionType::UPDATE)), (EventResource::Pod, ActionType::UPDATE)];
        Some(&EVENTS)
    }
}

#[cfg(test)]
mod tests {
    use krafla_testkit::Scene;

    use crate::testing::{objections_one_by_one, run_one_by_one};

    #[test]
    fn a_pod_runs_where_its_features_are_declared() {
        const FEATURE: &str = "UserNamespacesHostNetworkSupport";
        let needs = || {
            Scene::new()
                .node("old", "4c")
                .job("p", |job| job.shape(|shape| shape.features = vec![FEATURE.into()]).pending(1, "1c"))
        };
        let why = format!("node(s) didn't match Pod's required features: {FEATURE} is not declared");
        assert_eq!(objections_one_by_one(&needs(), "p-0"), [(why, 1)]);
        let scene = needs().node_with("new", "4c", |node| node.features = vec!["Other".into(), FEATURE.into()]);
        assert_eq!(run_one_by_one(&scene).binds, ["p-0 -> new"]);
        let other = Scene::new().node("old", "4c").job("p", |job| job.pending(1, "1c"));
        assert_eq!(run_one_by_one(&other).binds, ["p-0 -> old"]);
    }
}
