//! Which jobs do not fit even into the empty cluster.
//!
//! A necessary condition only, role by role: a job that passes may still be stuck because its roles together do not fit.

use std::collections::BTreeMap;

use super::workload::{GPU_MILLI, GpuSharing, JobShape, NodeShape, PodShape};

/// A label and the values that a job accepts.
type Labels = Option<(String, Vec<String>)>;

/// Number of jobs that can never start. Cost: distinct requests x distinct node shapes, and one look-up a role.
pub(crate) fn n_stuck(nodes: &[NodeShape], jobs: &[JobShape]) -> u64 {
    let mut room: BTreeMap<(PodShape, &Labels), u64> = BTreeMap::new();
    let shapes = distinct(nodes);
    let mut n_stuck = 0;
    for job in jobs {
        let stuck = job.roles.iter().any(|role| {
            let room = *room
                .entry((role.request, &job.node_labels_any))
                .or_insert_with(|| pods_of_cluster(&shapes, &role.request, &job.node_labels_any));
            u64::from(role.replicas) > room
        });
        n_stuck += u64::from(stuck);
    }
    n_stuck
}

/// One node of each shape, and how many there are.
fn distinct(nodes: &[NodeShape]) -> Vec<(&NodeShape, u64)> {
    let mut shapes: Vec<(&NodeShape, u64)> = Vec::new();
    for node in nodes {
        match shapes.iter_mut().find(|(shape, _)| shape.is_like(node)) {
            Some((_, count)) => *count += u64::from(node.count),
            None => shapes.push((node, u64::from(node.count))),
        }
    }
    shapes
}

fn pods_of_cluster(shapes: &[(&NodeShape, u64)], pod: &PodShape, labels: &Labels) -> u64 {
    let allowed = |node: &NodeShape| match labels {
        Some((key, values)) => node.labels.iter().any(|(name, value)| name == key && values.contains(value)),
        None => true,
    };
    let each = |(node, count): &(&NodeShape, u64)| count.saturating_mul(pods_of_node(node, pod));
    shapes.iter().filter(|(node, _)| allowed(node)).map(each).fold(0, u64::saturating_add)
}

fn pods_of_node(node: &NodeShape, pod: &PodShape) -> u64 {
    let times = |has: i64, asks: i64| if asks > 0 { has / asks } else { i64::MAX };
    let by_gpu = match (pod.gpu_milli, node.gpu_sharing) {
        (0, _) => times(node.gpus, pod.gpus),
        (milli, GpuSharing::Shared) => node.gpus.saturating_mul(GPU_MILLI / milli),
        (_, GpuSharing::Whole) => 0,
    };
    let by_rest = times(node.cpu_milli, pod.cpu_milli).min(times(node.memory_bytes, pod.memory_bytes)).min(node.pods);
    u64::try_from(by_gpu.min(by_rest)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    #[test]
    fn what_fits_on_an_empty_node() {
        let whole = testkit::node("n", 1);
        let shared = NodeShape { gpu_sharing: GpuSharing::Shared, ..testkit::node("n", 1) };
        let share = |gpu_milli| PodShape { gpus: 1, gpu_milli, ..PodShape::default() };
        for (node, pod, want) in [
            (&whole, testkit::pod(1), 8),
            (&whole, testkit::pod(3), 2),
            (&whole, testkit::pod(9), 0),
            (&whole, PodShape { cpu_milli: 3_000, ..PodShape::default() }, 2),
            (&whole, PodShape::default(), 110),
            (&whole, share(500), 0),
            (&shared, share(500), 16),
            (&shared, share(501), 8),
        ] {
            assert_eq!(pods_of_node(node, &pod), want, "{pod:?}");
        }
    }

    #[test]
    fn labels_count() {
        let mut node = testkit::node("n", 2);
        node.labels = vec![("model".into(), "T4".into())];
        let job = |model: &str| JobShape {
            node_labels_any: Some(("model".into(), vec![model.into()])),
            ..testkit::job("j", 2, testkit::pod(8))
        };
        assert_eq!(n_stuck(&[node.clone()], &[job("T4")]), 0);
        assert_eq!(n_stuck(&[node], &[job("A10"), testkit::job("k", 3, testkit::pod(8))]), 2);
    }
}
