//! Resources that a score looks at, with their weights: from a configuration's names to columns over all nodes.

use krafla_framework::NodeColumns;
use krafla_framework::search::ResourceColumn;
use krafla_model::{ClusterState, Name, ResourceId, Resources};
use smallvec::SmallVec;

/// A resource that is looked at for a pod.
pub(crate) struct Listed {
    pub(crate) id: ResourceId,
    pub(crate) weight: i64,
    /// What the pod asks of it.
    pub(crate) asked: i64,
}

/// Those of `resources`, names with weights, that count for a pod that asks for so much of each.
pub(crate) fn listed(
    resources: &[(Name, i64)],
    cluster: &ClusterState,
    asked: &Resources,
    counts: impl Fn(ResourceId, i64) -> bool,
) -> SmallVec<[Listed; 4]> {
    let listed = resources.iter().filter_map(|(name, weight)| {
        let id = cluster.names().find(name)?;
        let asked = asked.get(id);
        counts(id, asked).then_some(Listed { id, weight: *weight, asked })
    });
    listed.collect()
}

/// Each of them with its column over all nodes, if any node has it.
pub(crate) fn columns<'c>(
    listed: &'c [Listed],
    nodes: &'c NodeColumns,
) -> SmallVec<[(&'c Listed, &'c ResourceColumn); 4]> {
    listed.iter().filter_map(|one| Some((one, nodes.resource(one.id)?))).collect()
}

/// Whether kube-scheduler's scores look at a resource: at CPU and memory always, at others where the pod asks for them.
pub(crate) fn is_natural_or_asked(id: ResourceId, asked: i64) -> bool {
    matches!(id, ResourceId::CPU | ResourceId::MEMORY) || asked != 0
}
