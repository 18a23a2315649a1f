//! `NodePorts`: two pods cannot have one port on one address of a node.

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::{ClusterState, NodeId, TaskId, TaskStatus};

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

    /// After a release the ports of pods that terminate are free. Those that a pod was promised never are.
    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, room: Room, _: &CycleState) -> Verdict {
        let wanted = &cluster.shape_of(task).spec.host_ports;
        let books = cluster.node(node).books();
        let status = |id: TaskId| cluster.task(id).status();
        let stays = |owner: TaskId| room == Room::Now || status(owner) != TaskStatus::Releasing;
        let held = books.ports.iter().filter(|(_, owner)| stays(*owner)).map(|(port, _)| port);
        let is_promised = |id: &&TaskId| **id != task && status(**id) == TaskStatus::Pipelined;
        let promised = books.tasks.iter().filter(is_promised).flat_map(|id| &cluster.shape_of(*id).spec.host_ports);
        if held.chain(promised).any(|taken| wanted.iter().any(|port| port.conflicts(taken))) {
            return Verdict::Unschedulable(Why::Says("node(s) didn't have free ports for the requested pod ports"));
        }
        Verdict::Fits
    }
}
