//! The same cluster with another number of nodes.

use super::workload::NodeShape;

/// A cluster of `wanted` nodes whose shapes have the proportions of `nodes`, by largest remainders; of equal remainders
/// the shape that comes first gains. The first nodes of each shape stay, under their names.
pub(crate) fn to_count(nodes: &[NodeShape], wanted: u32) -> Vec<NodeShape> {
    let groups = group(nodes);
    let counts: Vec<u64> = groups.iter().map(|group| group.iter().map(|node| u64::from(node.count)).sum()).collect();
    let targets = apportion(&counts, wanted);
    let mut scaled = Vec::new();
    for (group, mut left) in groups.into_iter().zip(targets) {
        for node in &group {
            let count = node.count.min(left);
            left -= count;
            if count > 0 {
                scaled.push(NodeShape { count, ..(*node).clone() });
            }
        }
        if let Some(first) = group.first()
            && left > 0
        {
            scaled.push(NodeShape { name: format!("{}-more", first.name), count: left, ..(*first).clone() });
        }
    }
    scaled
}

impl NodeShape {
    /// Whether two shapes differ in name and count only.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let Self { name: _, count: _, cpu_milli, memory_bytes, pods, gpus, gpu_sharing, labels } = self;
        (*cpu_milli, *memory_bytes, *pods, *gpus, *gpu_sharing)
            == (other.cpu_milli, other.memory_bytes, other.pods, other.gpus, other.gpu_sharing)
            && *labels == other.labels
    }
}

fn group(nodes: &[NodeShape]) -> Vec<Vec<&NodeShape>> {
    let mut groups: Vec<Vec<&NodeShape>> = Vec::new();
    for node in nodes {
        match groups.iter_mut().find(|group| group[0].is_like(node)) {
            Some(group) => group.push(node),
            None => groups.push(vec![node]),
        }
    }
    groups
}

fn apportion(counts: &[u64], wanted: u32) -> Vec<u32> {
    let total: u128 = counts.iter().copied().map(u128::from).sum::<u128>().max(1);
    let exact = |count: u64| u128::from(count) * u128::from(wanted);
    let whole = |count: u64| u32::try_from(exact(count) / total).unwrap_or(wanted);
    let mut targets: Vec<u32> = counts.iter().map(|&count| whole(count)).collect();
    let left = wanted - targets.iter().sum::<u32>();
    let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
    by_remainder.sort_by_key(|&at| (std::cmp::Reverse(exact(counts[at]) % total), at));
    for at in by_remainder.into_iter().cycle().take(if counts.is_empty() { 0 } else { left as usize }) {
        targets[at] += 1;
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    #[test]
    fn largest_remainders() {
        assert_eq!(apportion(&[10, 20, 30], 6), [1, 2, 3]);
        assert_eq!(apportion(&[1, 1, 1], 2), [1, 1, 0]);
        assert_eq!(apportion(&[99, 1], 10), [10, 0]);
        assert_eq!(apportion(&[1, 3], 400), [100, 300]);
    }

    #[test]
    fn the_first_nodes_stay_and_more_are_named_so() {
        let cluster =
            [testkit::node("a", 1), NodeShape { cpu_milli: 1, ..testkit::node("b", 2) }, testkit::node("c", 1)];
        let names = |n| to_count(&cluster, n).iter().map(|node| (node.name.clone(), node.count)).collect::<Vec<_>>();
        assert_eq!(names(2), [("a".into(), 1), ("b".into(), 1)]);
        assert_eq!(names(4), [("a".into(), 1), ("c".into(), 1), ("b".into(), 2)]);
        assert_eq!(
            names(8),
            [("a".into(), 1), ("c".into(), 1), ("a-more".into(), 2), ("b".into(), 2), ("b-more".into(), 2)]
        );
    }
}
