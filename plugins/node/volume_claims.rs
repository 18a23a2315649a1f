//! The claims of a pod, found, for the plugins that look at volumes.

use krafla_framework::Why;
use krafla_model::cluster_event::{About, ClusterEvent, EventResource};
use krafla_model::storage::{ClaimSpec, PodClaim, StorageKind};
use krafla_model::{ClusterState, TaskId};

/// In Kubernetes' words.
pub(super) fn not_found(kind: &str, name: &str) -> Why {
    Why::Told(format!("{kind} {name:?} not found").into())
}

/// Claims of a task's pod, in the order of its volumes. `Err`: one is not there, or belongs to another pod.
pub(super) fn claims(cluster: &ClusterState, task: TaskId) -> impl Iterator<Item = Result<&ClaimSpec, Why>> {
    let shape = &cluster.shape_of(task).spec;
    shape.volumes.claims.iter().map(move |claim| find(cluster, task, claim))
}

fn find<'a>(cluster: &'a ClusterState, task: TaskId, claim: &PodClaim) -> Result<&'a ClaimSpec, Why> {
    let namespace = cluster.namespace_of(task);
    let Some(found) = cluster.storage().claim(namespace, &claim.name) else {
        return Err(match claim.ephemeral {
            false => not_found("persistentvolumeclaim", &claim.name),
            true => Why::Told(
                format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {:?}",
                    claim.name.as_str()
                )
                .into(),
            ),
        });
    };
    let pod = cluster.task(task);
    if claim.ephemeral && found.owner.as_ref() != Some(&pod.uid) {
        let (claim, pod) = (&claim.name, &pod.name);
        let told = format!("PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)");
        return Err(Why::Told(told.into()));
    }
    Ok(found)
}

/// Whether an event is about something of storage that a task may wait for: one of its claims, or what all may need.
pub(super) fn concerns(cluster: &ClusterState, task: TaskId, event: &ClusterEvent) -> bool {
    let (EventResource::PersistentVolumeClaim, About::Storage(key)) = (event.resource, &event.about) else {
        return true;
    };
    let spec = &cluster.shape_of(task).spec;
    key.kind == StorageKind::Claim
        && key.namespace == spec.namespace
        && spec.volumes.claims.iter().any(|claim| claim.name == key.name)
}
