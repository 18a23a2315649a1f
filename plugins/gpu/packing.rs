//! `GpuPacking`: devices that are shared already first, then few idle devices of a node in use, then idle nodes.

use krafla_framework::{CycleState, NodePlugin, Scope};
use krafla_model::devices::WHOLE;
use krafla_model::{ClusterState, NodeId, TaskId};

use super::{Ask, Left};

/// Its name.
pub const NAME: &str = "GpuPacking";

/// See the module.
pub struct Packing;

/// From 50 to 100 where shared devices serve, from 33 to 50 where idle ones of a node in use do, up to 33 on an idle node.
fn score(left: &Left, ask: &Ask) -> i64 {
    let idle = left.idle_devices();
    if idle == left.devices.len() {
        let idle = i64::try_from(idle).unwrap_or(0);
        return (33 - idle).max(idle);
    }
    // The fullest that serve.
    let mut serving: Vec<u16> = left.devices.iter().copied().filter(|left| *left >= ask.gpu_milli).collect();
    serving.sort_unstable();
    serving.truncate(usize::from(ask.devices));
    let broken: i64 = serving.iter().map(|left| i64::from(*left == WHOLE)).sum();
    if broken > 0 {
        return (50 - broken).max(33);
    }
    let rests: i64 = serving.iter().map(|left| i64::from(*left) * 100 / i64::from(WHOLE)).sum();
    (100 - rests / 10).max(50)
}

impl NodePlugin for Packing {
    fn name(&self) -> &'static str {
        NAME
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    #[allow(clippy::cast_precision_loss, reason = "0 to 100")]
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let ask = Ask::of(cluster.shape_of(task));
        if ask.devices == 0 { 0.0 } else { score(&Left::of(cluster.node(node)), &ask) as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_devices_go_before_idle_ones_and_those_before_idle_nodes() {
        let left = |devices: &[u16]| Left { cpu_milli: 0, devices: devices.iter().copied().collect() };
        let ask = |devices, gpu_milli| Ask { cpu_milli: 0, devices, gpu_milli };
        for (devices, wanted, expected) in [
            (&[300, 1000][..], ask(1, 300), 97),
            (&[900, 1000], ask(1, 300), 91),
            (&[200, 1000], ask(1, 300), 49),
            (&[0, 1000, 1000], ask(2, 1000), 48),
            (&[1000, 1000], ask(1, 300), 31),
            (&[1000; 8], ask(8, 1000), 25),
        ] {
            assert_eq!(score(&left(devices), &wanted), expected, "{devices:?} {wanted:?}");
        }
    }
}
