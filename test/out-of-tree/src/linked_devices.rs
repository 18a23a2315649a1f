//! `LinkedDevices`: two pods that work over one link each need a device, and the devices have to be neighbours. A pod that
//! has got its device waits at Permit until the neighbour is its partner's.
//!
//! Pods of a pair carry the label [`PAIR`]. Devices are neighbours if they are of one pool and their names end in the
//! numbers 2k and 2k + 1.

use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};
use krafla_framework::{ExtensionPoint, NodePlugin, Permit, WaitingPods};
use krafla_model::dra::{AllocatedDevice, device_choices};
use krafla_model::{ClusterState, Name, NodeId, TaskId};

/// Label with the name of a pod's pair.
pub const PAIR: &str = "example.com/pair";

/// How long a pod waits for its partner, in milliseconds.
const WAIT_MS: i64 = 60_000;

/// How the plugin is made.
pub const BUILDER: NodePluginBuilder = NodePluginBuilder {
    info: NodePluginInfo {
        name: "LinkedDevices",
        about: "pairs of pods on neighbouring devices",
        points: &[ExtensionPoint::Permit],
        default_weight: None,
    },
    build: Build::Plain(|| Box::new(LinkedDevices)),
};

struct LinkedDevices;

impl NodePlugin for LinkedDevices {
    fn name(&self) -> &'static str {
        BUILDER.info.name
    }

    fn permit(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) -> Permit {
        let Some(pair) = pair_of(cluster, task) else { return Permit::Approve };
        let own = place_of(cluster, task);
        let partner = waiting.iter().map(|pod| pod.task).find(|other| {
            *other != task
                && pair_of(cluster, *other) == Some(pair)
                && own.is_some()
                && place_of(cluster, *other) == own
        });
        let Some(partner) = partner else { return Permit::Wait { timeout_ms: WAIT_MS } };
        if let Some(pod) = waiting.get_mut(&cluster.task(partner).uid) {
            pod.allow(BUILDER.info.name);
        }
        Permit::Approve
    }
}

fn pair_of(cluster: &ClusterState, task: TaskId) -> Option<&Name> {
    cluster.shape_of(task).spec.labels.get(PAIR)
}

/// The pool and the link of the device that a pod was given.
fn place_of(cluster: &ClusterState, task: TaskId) -> Option<(&Name, u32)> {
    let chosen = device_choices(cluster.task(task).choices()).next()?;
    let AllocatedDevice { pool, device, .. } = chosen.allocation.devices.first()?;
    let number: u32 = device.rsplit('-').next()?.parse().ok()?;
    Some((pool, number / 2))
}
