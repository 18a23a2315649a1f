//! What `LowNodeUtilization` and `HighNodeUtilization` have in common.

use std::collections::BTreeMap;

use krafla_framework::conf::plugin_args::PluginArgs;
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use crate::args::names;
use crate::evictor::{details, prefers_to_stay};
use crate::load::{Loads, Source};
use crate::round::Round;

/// Resources that always count, so that a place is not filled beyond what it has.
const ALWAYS: [&str; 3] = ["cpu", "memory", "pods"];

/// What a resource is compared with, in millionths; by name.
pub(super) type Thresholds = BTreeMap<Name, i64>;

/// Namespaces whose pods stay: `evictableNamespaces.exclude`.
pub(super) fn excluded_namespaces(args: &mut PluginArgs<'_, '_>) -> Vec<Name> {
    let Some(mut own) = args.map("evictableNamespaces", &["exclude"]) else { return Vec::new() };
    names(&mut own, "exclude")
}

/// Names of the resources that are looked at: those of the thresholds first, then those that always count.
pub(super) fn looked_at(thresholds: &Thresholds, source: &Source) -> Vec<Name> {
    let mut all: Vec<Name> = thresholds.keys().cloned().collect();
    if !matches!(source, Source::Prometheus { .. }) {
        all.extend(ALWAYS.into_iter().map(Name::from).filter(|name| !thresholds.contains_key(name)));
    }
    all
}

/// Pods of a node that may go, in order: those of low priority first, then by class of service, then those that do not
/// mind, then the larger ones, so that fewer have to go.
pub(super) fn in_order(
    round: &Round<'_, '_, '_>,
    loads: &Loads,
    node: NodeId,
    excluded: &[Name],
    largest_first: bool,
) -> Vec<TaskId> {
    let cluster = round.cluster();
    let mut pods = round.pods_on(node);
    pods.retain(|task| !excluded.contains(cluster.namespace_of(*task)) && round.is_evictable(*task));
    pods.sort_by_cached_key(|task| {
        let size = share_of_pod(cluster, loads, *task, node);
        let size = if largest_first { -size } else { size };
        (cluster.task(*task).priority, details(cluster, *task).qos, prefers_to_stay(cluster, *task), size, *task)
    });
    pods
}

/// The largest part that a pod has of its node, in millionths; what nobody can say counts as nothing.
fn share_of_pod(cluster: &ClusterState, loads: &Loads, task: TaskId, node: NodeId) -> i64 {
    let Some(uses) = loads.of_pod(cluster, task) else { return 0 };
    let of = crate::load::Load { used: uses, capacity: loads.of(node).capacity.clone() };
    (0..of.used.len()).map(|i| of.share(i)).max().unwrap_or(0)
}

/// Shares in percent, for people.
pub(super) fn percent(ppm: i64) -> String {
    let tenths = ppm / 1_000;
    if tenths % 10 == 0 { format!("{}%", tenths / 10) } else { format!("{}.{}%", tenths / 10, tenths % 10) }
}
