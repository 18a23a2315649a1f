//! `GpuClustering`: nodes that run pods with as many devices, or as well shares; then the fuller ones.

use krafla_framework::{CycleState, NodePlugin, Scope};
use krafla_model::{ClusterState, NodeId, TaskId};

use super::{Ask, Left};

/// Its name.
pub const NAME: &str = "GpuClustering";

/// See the module.
pub struct Clustering;

/// What is alike: shares, or a number of whole devices; `None` without any.
fn class(ask: &Ask) -> Option<u8> {
    match ask {
        Ask { devices: 0, .. } => None,
        ask if ask.is_share() => Some(0),
        ask => Some(ask.devices),
    }
}

impl NodePlugin for Clustering {
    fn name(&self) -> &'static str {
        NAME
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    /// From 75 where there are only pods alike, from 50 where there are others too, from 25 on a node without any, from 0
    /// where all are others; 25 more for one of eight devices that are in use.
    #[allow(clippy::cast_precision_loss, reason = "0 to 100")]
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let Some(own) = class(&Ask::of(cluster.shape_of(task))) else { return 0.0 };
        let host = cluster.node(node);
        let (mut alike, mut unlike) = (false, false);
        for other in &host.books().tasks {
            match class(&Ask::of(cluster.shape_of(*other))) {
                Some(class) if class == own => alike = true,
                Some(_) => unlike = true,
                None => {}
            }
        }
        let base = match (alike, unlike) {
            (true, false) => 75,
            (true, true) => 50,
            (false, false) => 25,
            (false, true) => 0,
        };
        (base + 25 * (8_000 - Left::of(host).gpu_milli()) / 8_000) as f64
    }
}
