//! `ImageLocality`: nodes that hold the pod's images are better, the more so the larger the images and the more nodes
//! hold them (so that one node with a rare image does not draw every pod).

use krafla_framework::{CycleState, NodePlugin, PreScore, Scope};
use krafla_model::{ClusterState, NodeId, TaskId};

/// Below this sum an image makes no difference: 23 MiB.
const MIN_BYTES: i64 = 23 << 20;
/// What one container can count for at most: 1000 MiB.
const MAX_BYTES_A_CONTAINER: i64 = 1000 << 20;

/// See the module.
pub struct ImageLocality;

impl NodePlugin for ImageLocality {
    fn name(&self) -> &'static str {
        "ImageLocality"
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Spec)
    }

    fn score_scope_for(&self, cluster: &ClusterState, task: TaskId) -> Scope {
        if lies_somewhere(cluster, task) { Scope::Spec } else { Scope::Nothing }
    }

    /// The spread of an image is over the whole cluster.
    fn epoch(&self, cluster: &ClusterState) -> u64 {
        cluster.specs_version()
    }

    fn pre_score(&self, cluster: &ClusterState, task: TaskId, _: &[NodeId], _: &mut CycleState) -> PreScore {
        PreScore::when(lies_somewhere(cluster, task))
    }

    #[allow(clippy::cast_precision_loss, reason = "0 to 100")]
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let images = &cluster.shape_of(task).spec.images;
        let here = &cluster.node(node).spec.images;
        let nodes = u32::try_from(cluster.nodes().len()).unwrap_or(u32::MAX);
        let sum: i64 = images
            .iter()
            .filter_map(|image| {
                let at = here.binary_search_by(|(name, _)| name.cmp(image)).ok()?;
                Some(spread_size(here[at].1, cluster.nodes_with_image(image), nodes))
            })
            .sum();
        locality(sum, i64::try_from(images.len()).unwrap_or(i64::MAX)) as f64
    }
}

/// Whether any node has an image of the pod; else it scores 0 everywhere.
fn lies_somewhere(cluster: &ClusterState, task: TaskId) -> bool {
    cluster.shape_of(task).spec.images.iter().any(|image| cluster.nodes_with_image(image) > 0)
}

/// The part of an image's size that counts on each of `holders` among `nodes`, cut to a whole number after the same two
/// roundings as in Kubernetes.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "sizes of images, as in Kubernetes")]
fn spread_size(bytes: i64, holders: u32, nodes: u32) -> i64 {
    (bytes as f64 * (f64::from(holders) / f64::from(nodes.max(1)))) as i64
}

/// Score of a weighted size for a pod of so many containers.
fn locality(sum: i64, containers: i64) -> i64 {
    let max = MAX_BYTES_A_CONTAINER.saturating_mul(containers.max(1));
    100 * (sum.clamp(MIN_BYTES, max) - MIN_BYTES) / (max - MIN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_spread_with_kubernetes_roundings() {
        assert_eq!(spread_size(300, 2, 3), 200);
        assert_eq!(spread_size(49, 1, 49), 0, "1/49 is a little less than that");
        assert_eq!(spread_size(7, 0, 0), 0);
    }

    //
    #[test]
    fn the_worked_example_of_three_nodes() {
        // Containers of 500 MiB and 50 MiB; B holds the first, C both, A neither. Two of three nodes hold the first.
        let mb = 1 << 20;
        let first = 500 * mb * 2 / 3;
        for (sum, want) in [(0, 0), (first, 15), (first + 50 * mb / 3, 16)] {
            assert_eq!(locality(sum, 2), want);
        }
    }
}
