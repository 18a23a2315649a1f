//! `GpuDotProduct`: the node whose rest is least like the pod (Grandl et al., SIGCOMM '14, turned round as in the
//! experiments of Weng et al., ATC '23).
//!
//! The mean over CPU and GPU of what is left times what is asked for, each as a part of the largest node (128 cores, 8
//! devices); 100 times what that lacks of 1, in whole numbers.

use krafla_framework::{CycleState, NodePlugin, Scope};
use krafla_model::{ClusterState, NodeId, TaskId};

use super::best_fit::LARGEST;
use super::{Ask, Left};

/// Its name.
pub const NAME: &str = "GpuDotProduct";

/// See the module.
pub struct DotProduct;

impl NodePlugin for DotProduct {
    fn name(&self) -> &'static str {
        NAME
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    #[allow(clippy::cast_precision_loss, reason = "exact below 2^53")]
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let (left, ask) = (Left::of(cluster.node(node)), Ask::of(cluster.shape_of(task)));
        let cpu = left.cpu_milli as f64 / LARGEST.0 * (ask.cpu_milli as f64 / LARGEST.0);
        let gpu = left.gpu_milli() as f64 / LARGEST.1 * (ask.all_gpu_milli() as f64 / LARGEST.1);
        (100.0 * (1.0 - (cpu + gpu) / 2.0)).trunc()
    }
}
