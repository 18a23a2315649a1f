//! `CustomGangScheduling`: pods of a gang take their nodes and wait at Permit until enough of them are together.
//!
//! A pod names its gang by the label `gang.example.com/name`, and how many it needs by the annotation
//! `gang.example.com/min-available`. Gangs of two namespaces have nothing to do with each other.

use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};
use krafla_framework::{ExtensionPoint, NodePlugin, Permit, WaitingPods, Why};
use krafla_model::{ClusterState, Name, NodeId, TaskId};

/// The label that names a pod's gang.
pub const GANG: &str = "gang.example.com/name";
/// The annotation that says how many pods the gang needs.
pub const MIN_AVAILABLE: &str = "gang.example.com/min-available";

const NAME: &str = "CustomGangScheduling";
const TIMEOUT_MS: i64 = 60_000;

/// How a profile gets it.
pub const BUILDER: NodePluginBuilder = NodePluginBuilder {
    info: NodePluginInfo {
        name: NAME,
        about: "gangs by a label and an annotation",
        points: &[ExtensionPoint::Reserve, ExtensionPoint::Permit],
        default_weight: None,
    },
    build: Build::Plain(|| Box::new(CustomGangScheduling)),
};

/// See the module. It keeps no table: who is together is read from the cluster, so that nobody can be counted twice.
pub struct CustomGangScheduling;

impl NodePlugin for CustomGangScheduling {
    fn name(&self) -> &'static str {
        NAME
    }

    fn permit(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) -> Permit {
        let Some(gang) = gang_of(cluster, task) else { return Permit::Approve };
        let spec = &cluster.shape_of(task).spec;
        let Some(min) = spec.annotations.get(MIN_AVAILABLE).and_then(|text| text.parse::<usize>().ok()) else {
            return Permit::Reject(Why::Says("annotation gang.example.com/min-available is missing, or no number"));
        };
        let members: Vec<TaskId> = members(cluster, gang).collect();
        let together = members.iter().filter(|member| cluster.task(**member).status().is_allocated()).count();
        if together < min {
            return Permit::Wait { timeout_ms: TIMEOUT_MS };
        }
        for member in members {
            if let Some(pod) = waiting.get_mut(&cluster.task(member).uid) {
                pod.allow(NAME);
            }
        }
        Permit::Approve
    }

    fn unreserve(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) {
        let Some(gang) = gang_of(cluster, task) else { return };
        for member in members(cluster, gang) {
            if let Some(pod) = waiting.get_mut(&cluster.task(member).uid) {
                pod.reject(NAME, Why::Says("Gang member unreserved or timed out"));
            }
        }
    }
}

/// Namespace and name of a pod's gang.
fn gang_of(cluster: &ClusterState, task: TaskId) -> Option<(&Name, &Name)> {
    let spec = &cluster.shape_of(task).spec;
    Some((&spec.namespace, spec.labels.get(GANG)?))
}

fn members<'c>(cluster: &'c ClusterState, gang: (&'c Name, &'c Name)) -> impl Iterator<Item = TaskId> + 'c {
    cluster.tasks().map(|(id, _)| id).filter(move |id| gang_of(cluster, *id) == Some(gang))
}
