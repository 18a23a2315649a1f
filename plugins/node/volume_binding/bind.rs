//! What is written for the claims of a pod before it is bound, and the wait until they have their volumes.
//!
//! A volume that was chosen is named on its claim (`spec.claimRef`); a claim whose volume has to be made says for which
//! node (`volume.kubernetes.io/selected-node`). Kubernetes' controllers and the driver do the rest. Nothing of it is taken
//! back when the pod is not bound after all, as in kube-scheduler: the claim may have its volume a moment later, and the
//! next attempt begins with it.

use krafla_framework::effect::ClaimsToBind;
use krafla_framework::{BindingPlugin, Later, ObjectApi, ObjectRef, PodRef};
use krafla_model::storage::ClaimChoice;
use serde_json::{Value, json};

use super::{VolumeBinding, affinity};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// The longest pause between two looks at the claims, in milliseconds, if no watch tells of a change.
const LOOK_MS: u64 = 5_000;

/// The side of [`VolumeBinding`] that talks to the API.
pub(crate) struct VolumeBinder;

impl BindingPlugin for VolumeBinder {
    fn name(&self) -> &'static str {
        VolumeBinding::NAME
    }

    fn pre_bind<'a>(&'a self, api: &'a dyn ObjectApi, pod: &'a PodRef, node: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move {
            match api.claims(VolumeBinding::NAME) {
                Some(claims) => bind(api, pod, node, claims).await,
                None => Ok(()),
            }
        })
    }
}

async fn bind(api: &dyn ObjectApi, pod: &PodRef, node: &str, claims: &ClaimsToBind) -> Result<(), String> {
    for choice in &claims.choices {
        api.changed(ObjectRef::claim(&pod.namespace, choice.claim()), 0).await;
        match choice {
            ClaimChoice::Volume { claim, volume } => name_claim(api, pod, claim, volume).await?,
            ClaimChoice::Provision { claim } => select_node(api, pod, claim, node).await?,
            ClaimChoice::Devices(_) => {}
        }
    }
    let mut waited_ms = 0;
    for choice in &claims.choices {
        let object = ObjectRef::claim(&pod.namespace, choice.claim());
        while let Some(lacks) = is_bound(api, pod, node, choice).await? {
            if waited_ms >= claims.timeout_ms {
                return Err(format!("binding volumes: {lacks} after {} s", claims.timeout_ms / 1_000));
            }
            waited_ms += api.changed(object, LOOK_MS.min(claims.timeout_ms - waited_ms)).await;
            stays(api, pod).await?;
        }
    }
    Ok(())
}

async fn read(api: &dyn ObjectApi, object: ObjectRef<'_>) -> Result<Option<Value>, String> {
    match api.get(object).await? {
        Some(text) => serde_json::from_str(&text).map(Some).map_err(|error| error.to_string()),
        None => Ok(None),
    }
}

async fn read_claim(api: &dyn ObjectApi, pod: &PodRef, claim: &str) -> Result<Value, String> {
    let found = read(api, ObjectRef::claim(&pod.namespace, claim)).await?;
    found.ok_or_else(|| format!("persistentvolumeclaim {claim:?} not found"))
}

async fn read_volume(api: &dyn ObjectApi, volume: &str) -> Result<Value, String> {
    read(api, ObjectRef::volume(volume)).await?.ok_or_else(|| format!("persistentvolume {volume:?} not found"))
}

/// Nobody waits for a pod that is gone.
async fn stays(api: &dyn ObjectApi, pod: &PodRef) -> Result<(), String> {
    let found = read(api, ObjectRef::pod(pod)).await?;
    let same = found.is_some_and(|found| {
        text(&found, "/metadata/uid") == &*pod.uid && found.pointer("/metadata/deletionTimestamp").is_none()
    });
    if same { Ok(()) } else { Err("pod does not exist any more".to_owned()) }
}

/// Names a claim on the volume that was chosen for it, unless the volume has changed meanwhile.
async fn name_claim(api: &dyn ObjectApi, pod: &PodRef, claim: &str, volume: &str) -> Result<(), String> {
    let own = read_claim(api, pod, claim).await?;
    let found = read_volume(api, volume).await?;
    let (uid, named) = (text(&own, "/metadata/uid"), text(&found, "/spec/claimRef/uid"));
    let is_named = found.pointer("/spec/claimRef").is_some_and(|named| !named.is_null());
    if is_named {
        let (namespace, name) = (text(&found, "/spec/claimRef/namespace"), text(&found, "/spec/claimRef/name"));
        if (namespace, name) != (&pod.namespace, claim) || !(named.is_empty() || named == uid) {
            return Err(format!("persistentvolume {volume:?} is for the claim {namespace}/{name} by now"));
        }
        if named == uid {
            return Ok(());
        }
    }
    let mut metadata = json!({ "resourceVersion": text(&found, "/metadata/resourceVersion") });
    if !is_named {
        metadata["annotations"] = json!({ BOUND_BY_CONTROLLER: "yes" });
    }
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": pod.namespace, "name": claim, "uid": uid,
        "resourceVersion": text(&own, "/metadata/resourceVersion"),
    });
    let patch = json!({ "metadata": metadata, "spec": { "claimRef": reference } });
    api.patch(ObjectRef::volume(volume), &patch.to_string()).await
}

/// Says for which node the volume of a claim is to be made.
async fn select_node(api: &dyn ObjectApi, pod: &PodRef, claim: &str, node: &str) -> Result<(), String> {
    let own = read_claim(api, pod, claim).await?;
    match annotation(&own, SELECTED_NODE) {
        Some(selected) if selected == node => return Ok(()),
        Some(selected) => {
            return Err(format!("the volume of persistentvolumeclaim {claim:?} is being made for node {selected}"));
        }
        None => {}
    }
    let version = text(&own, "/metadata/resourceVersion");
    let patch = json!({ "metadata": { "resourceVersion": version, "annotations": { SELECTED_NODE: node } } });
    api.patch(ObjectRef::claim(&pod.namespace, claim), &patch.to_string()).await
}

/// What a claim still lacks; `Err` if it cannot come right any more.
async fn is_bound(
    api: &dyn ObjectApi,
    pod: &PodRef,
    node: &str,
    choice: &ClaimChoice,
) -> Result<Option<String>, String> {
    let claim = choice.claim().as_str();
    let own = read_claim(api, pod, claim).await?;
    let volume = text(&own, "/spec/volumeName");
    if volume.is_empty() || annotation(&own, BIND_COMPLETED).is_none() {
        match choice {
            ClaimChoice::Provision { .. } => match annotation(&own, SELECTED_NODE) {
                Some(selected) if selected == node => {}
                _ => return Err(format!("provisioning failed for PVC {claim:?}")),
            },
            ClaimChoice::Devices(_) => return Ok(None),
            ClaimChoice::Volume { volume, .. } => {
                if text(&read_volume(api, volume).await?, "/spec/claimRef/uid").is_empty() {
                    return Err(format!("ClaimRef got reset for pv {:?}", volume.as_str()));
                }
            }
        }
        return Ok(Some(format!("persistentvolumeclaim {claim:?} has no volume")));
    }
    let found = read_volume(api, volume).await?;
    let host = read(api, ObjectRef::node(node)).await?.ok_or_else(|| format!("node {node:?} not found"))?;
    match affinity::suits(&found, &host) {
        true => Ok(None),
        false => Err(format!("pv {volume:?} node affinity doesn't match node {node:?}")),
    }
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

#[cfg(test)]
#[path = "bind_tests.rs"]
mod tests;
