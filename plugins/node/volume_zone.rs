//! `VolumeZone`: a volume with labels of a zone or region is used on nodes of it.

use krafla_framework::{CycleState, NodePlugin, PreFilter, Room, Scope, Verdict, Why};
use krafla_model::cluster_event::{ActionType, ClusterEvent, EventResource};
use krafla_model::storage::{ClaimSpec, VolumeSpec};
use krafla_model::{ClusterState, Name, NodeId, TaskId};

use super::volume_claims::{concerns, not_found};

/// Labels of zones and regions, each with the one that took its place.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    (ZONE, ZONE),
    (REGION, REGION),
];
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";

/// What stands between the zones of a volume that is in several.
const SEPARATOR: &str = "__";

/// See the module.
pub struct VolumeZone;

/// Where the volumes of a pod are: places in [`LABELS`], with the values that will do.
struct Zones(Vec<(usize, Vec<Name>)>);

impl NodePlugin for VolumeZone {
    fn name(&self) -> &'static str {
        "VolumeZone"
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Task)
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        let spec = &cluster.shape_of(task).spec;
        let mut zones = Vec::new();
        for claim in spec.volumes.claims.iter().filter(|claim| !claim.ephemeral) {
            let Some(claim) = cluster.storage().claim(&spec.namespace, &claim.name) else {
                return PreFilter::Reject(not_found("persistentvolumeclaim", &claim.name));
            };
            match volume_of(cluster, claim) {
                Ok(volume) => zones.extend(volume.into_iter().flat_map(zones_of)),
                Err(why) => return PreFilter::Reject(why),
            }
        }
        if zones.is_empty() {
            return PreFilter::Skip;
        }
        state.put(Zones(zones));
        PreFilter::All
    }

    /// A node that says nothing of zones takes everything: it is the only one.
    fn filter(&self, cluster: &ClusterState, _: TaskId, node: NodeId, _: Room, state: &CycleState) -> Verdict {
        let labels = &cluster.node(node).spec.labels;
        let Some(Zones(zones)) = state.get() else { return Verdict::Fits };
        if LABELS.iter().all(|(key, _)| labels.get(key).is_none()) {
            return Verdict::Fits;
        }
        let suits = |(label, values): &(usize, Vec<Name>)| {
            let (key, newer) = LABELS[*label];
            labels.get(key).or_else(|| labels.get(newer)).is_some_and(|value| values.contains(value))
        };
        if zones.iter().all(suits) {
            return Verdict::Fits;
        }
        Verdict::Unresolvable(Why::Says("node(s) had no available volume zone"))
    }

    fn events(&self) -> Option<&'static [(EventResource, ActionType)]> {
        const CHANGED: ActionType = ActionType::ADD.and(ActionType::UPDATE);
        const OTHER_LABELS: ActionType = ActionType::ADD.and(ActionType::UPDATE_NODE_LABEL);
        Some(&[
            (EventResource::StorageClass, ActionType::ADD),
            (EventResource::Node, OTHER_LABELS),
            (EventResource::PersistentVolumeClaim, CHANGED),
            (EventResource::PersistentVolume, CHANGED),
        ])
    }

    fn helps(&self, cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
        concerns(cluster, task, event)
    }
}

/// The volume of a claim; none if it waits for a pod.
fn volume_of<'a>(cluster: &'a ClusterState, claim: &ClaimSpec) -> Result<Option<&'a VolumeSpec>, Why> {
    let storage = cluster.storage();
    if !claim.volume.is_empty() {
        let volume = storage.volume(&claim.volume).ok_or_else(|| not_found("persistentvolume", &claim.volume))?;
        return Ok(Some(volume));
    }
    if claim.class.is_empty() {
        return Err(Why::Says("PersistentVolumeClaim had no pv name and storageClass name"));
    }
    match storage.class(&claim.class) {
        None => Err(not_found("storageclass.storage.k8s.io", &claim.class)),
        Some(class) if class.waits_for_consumer => Ok(None),
        Some(_) => Err(Why::Says("PersistentVolume had no name")),
    }
}

/// A label with an empty zone in it says nothing.
fn zones_of(volume: &VolumeSpec) -> impl Iterator<Item = (usize, Vec<Name>)> {
    LABELS.iter().enumerate().filter_map(|(label, (key, _))| {
        let values: Vec<Name> = volume.labels.get(key)?.split(SEPARATOR).map(|zone| zone.trim().into()).collect();
        values.iter().all(|zone: &Name| !zone.is_empty()).then_some((label, values))
    })
}

#[cfg(test)]
mod tests {
    use krafla_model::storage::StorageObject;
    use krafla_testkit::Scene;

    use super::super::volume_scenes::{Stored, bound, claim, named, uses, volume};
    use super::*;
    use crate::testing::{objections_one_by_one, run, run_one_by_one};

    /// A pod whose volume has this label, and a node in zone `a`, one in zone `b` and one that says nothing of zones.
    fn scene(key: &str, value: &str) -> Scene {
        let mut volume = named(volume("v", "", 1, ""), "c");
        volume.labels.set(key.into(), value.into());
        Scene::new()
            .labelled_node("in-a", "4c", ZONE, "a")
            .labelled_node("in-b", "4c", ZONE, "b")
            .has(StorageObject::Claim(bound(claim("c", "", 1), "v")))
            .has(StorageObject::Volume(volume))
            .job("p", |job| job.shape(uses(&["c"])).pending(1, "1c"))
    }

    #[test]
    fn a_volume_is_used_in_its_zone() {
        let old = LABELS[0].0;
        for (key, value, node) in
            [(ZONE, "b", "in-b"), (old, "b", "in-b"), (ZONE, "b__c", "in-b"), (ZONE, "b__", "in-a")]
        {
            assert_eq!(run_one_by_one(&scene(key, value)).binds, [format!("p-0 -> {node}")], "{key} {value}");
        }
        let nowhere = scene(ZONE, "c");
        assert_eq!(objections_one_by_one(&nowhere, "p-0"), [("node(s) had no available volume zone".to_owned(), 2)]);
        assert_eq!(run(&nowhere, "allocate", &["predicates"]).binds, [""; 0]);
        assert_eq!(run_one_by_one(&nowhere.node("plain", "4c")).binds, ["p-0 -> plain"], "it says nothing of zones");
        let off = "predicates predicate.VolumeZoneEnable=false";
        assert_eq!(run(&nowhere_of_regions(), "allocate", &[off]).binds, ["p-0 -> in-a"]);
    }

    fn nowhere_of_regions() -> Scene {
        scene(REGION, "far")
    }
}
