//! `GpuBestFit`: the node that would have the least CPU and GPU left.
//!
//! Half the CPU left of 128 cores and half the GPU left of 8 devices, taken from 100, in whole numbers; then stretched so
//! that the worst node has 0 and the best 100.

use krafla_framework::{CycleState, NodePlugin, Scope};
use krafla_model::{ClusterState, NodeId, TaskId};

use super::{Ask, Left};

/// Its name.
pub const NAME: &str = "GpuBestFit";
/// The largest node that is reckoned with: thousandths of a core, and of a device.
pub(super) const LARGEST: (f64, f64) = (128_000.0, 8_000.0);

/// See the module.
pub struct BestFit;

/// CPU and GPU that a node would have left, as parts of the largest node.
#[allow(clippy::cast_precision_loss, reason = "exact below 2^53")]
pub(super) fn rest(left: &Left, ask: &Ask) -> (f64, f64) {
    let gpu_milli = left.gpu_milli() - ask.all_gpu_milli();
    ((left.cpu_milli - ask.cpu_milli) as f64 / LARGEST.0, gpu_milli as f64 / LARGEST.1)
}

impl NodePlugin for BestFit {
    fn name(&self) -> &'static str {
        NAME
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let (cpu, gpu) = rest(&Left::of(cluster.node(node)), &Ask::of(cluster.shape_of(task)));
        ((1.0 - (cpu + gpu) / 2.0) * 100.0).trunc()
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn normalize(&self, _: &ClusterState, _: &[NodeId], _: &CycleState, scores: &mut [f64]) {
        let (low, high) = scores
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), score| (low.min(*score), high.max(*score)));
        for score in scores {
            *score = if high > low { ((*score - low) * 100.0 / (high - low)).trunc() } else { 0.0 };
        }
    }
}
