//! `NodePorts`: two pods cannot have one port on one address of a node.

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::{ClusterState, NodeId, TaskId};

use super::domains::promised;

/// See the module.
pub struct NodePorts;

impl NodePlugin for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, _: &mut CycleState) -> PreFilter {
        if cluster.shape_of(task).spec.host_ports.is_empty() { PreFilter::Skip } else { PreFilter::All }
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        let wanted = &cluster.shape_of(task).spec.host_ports;
        let taken = cluster.node(node).books().ports.iter().map(|(port, _)| port);
        // Who was promised room there will want its ports too.
        let promised = promised(cluster, node).filter(|other| *other != task);
        let mut taken = taken.chain(promised.flat_map(|other| &cluster.shape_of(other).spec.host_ports));
        if taken.any(|other| wanted.iter().any(|port| port.conflicts(other))) {
            return Verdict::Unschedulable(Why::Says("node(s) didn't have free ports for the requested pod ports"));
        }
        Verdict::Fits
    }
}
