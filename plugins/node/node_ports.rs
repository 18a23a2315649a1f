//! `NodePorts`: two pods cannot have one port on one address of a node.

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{ActionType, ClusterEvent, EventResource};
use krafla_model::{ClusterState, NodeId, PodShape, TaskId, TaskStatus};

use super::domains::promised;
use super::hints;

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
    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, when: Room, _: &CycleState) -> Verdict {
        let wanted = &cluster.shape_of(task).spec.host_ports;
        let leaves = |task: TaskId| cluster.task(task).status() == TaskStatus::Releasing;
        let taken = cluster.node(node).books().ports.iter();
        let taken = taken.filter(|(_, task)| when == Room::Now || !leaves(*task)).map(|(port, _)| port);
        // Who was promised room there will want its ports too.
        let promised = promised(cluster, node).filter(|other| *other != task);
        let mut taken = taken.chain(promised.flat_map(|other| &cluster.shape_of(other).spec.host_ports));
        if taken.any(|other| wanted.iter().any(|port| port.conflicts(other))) {
            return Verdict::Unschedulable(Why::Says("node(s) didn't have free ports for the requested pod ports"));
        }
        Verdict::Fits
    }
    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        Some(&[(EventResource::Pod, ActionType::DELETE), (EventResource::Node, ActionType::ADD)])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        let wanted = &cluster.shape_of(task).spec.host_ports;
        let had_one = |gone: &PodShape| wanted.iter().any(|port| gone.host_ports.iter().any(|had| port.conflicts(had)));
        event.resource == EventResource::Node || hints::holder(event).is_some_and(had_one)
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::PodSpec;
    use krafla_model::pod::HostPort;
    use krafla_testkit::{JobScene, Scene};

    use crate::testing::run_one_by_one;

    /// A job whose pods, which `pods` adds, want port 80.
    fn web(job: JobScene, priority: i32, pods: impl FnOnce(JobScene) -> JobScene) -> JobScene {
        let port = HostPort { ip: "".into(), protocol: "TCP".into(), port: 80 };
        pods(job.shape(|shape| shape.host_ports = vec![port])).each(move |pod: &mut PodSpec| pod.priority = priority)
    }

    #[test]
    fn an_eviction_frees_ports() {
        let scene = Scene::new()
            .node("n", "4c")
            .job("a", |job| web(job, 1, |job| job.running(1, "1c", "n")))
            .job("p", |job| web(job, 100, |job| job.pending(1, "1c")));
        assert_eq!(run_one_by_one(&scene).evictions, ["a-0"]);
    }

    #[test]
    fn who_was_nominated_will_want_its_ports() {
        for (priority, binds) in [(0, &[][..]), (100, &["p-0 -> n"][..])] {
            let nominated = |pod: &mut PodSpec| pod.nominated = Some("n".into());
            let scene = Scene::new()
                .node("n", "4c")
                .job("a", |job| web(job, 50, |job| job.selects("no", "where").pending(1, "1c")).each(nominated))
                .job("p", |job| web(job, priority, |job| job.pending(1, "1c")));
            assert_eq!(run_one_by_one(&scene).binds, binds, "priority {priority}");
        }
    }
}
