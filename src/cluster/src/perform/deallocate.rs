//! Taking back the devices of a claim that nobody uses.
//!
//! It is wished for again whenever a pod fails for want of it, so a call that fails is left at that.

use k8s_openapi::api::resource::v1::ResourceClaim;
use krafla_model::Name;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::timeout;
use tracing::warn;

use super::Means;
use super::answer::CALL;
use super::status::FIELD_MANAGER;

/// Takes a claim's devices back, if it is still the one of this UID and nobody has come to use it meanwhile.
pub(crate) fn deallocate(means: &Means, namespace: Name, name: Name, uid: Name) {
    let means = means.clone();
    tokio::spawn(async move {
        means.clients.throttle.turn().await;
        if !*means.leads.borrow() {
            return;
        }
        let api: Api<ResourceClaim> = Api::namespaced(means.clients.calls.clone(), &namespace);
        let claim = match timeout(CALL, api.get_opt(&name)).await {
            Ok(Ok(Some(claim))) if claim.metadata.uid.as_deref() == Some(&*uid) => claim,
            _ => return,
        };
        let reserved = claim.status.as_ref().and_then(|status| status.reserved_for.as_ref());
        if reserved.is_some_and(|pods| !pods.is_empty()) {
            return;
        }
        // The version makes the server refuse it if somebody has come between.
        let version = claim.metadata.resource_version;
        let patch = json!({ "metadata": { "resourceVersion": version }, "status": { "allocation": null } });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(&patch);
        let call = api.patch_status(&name, &params, &patch);
        if let Ok(Err(error)) = timeout(CALL, call).await {
            warn!(claim = %format!("{namespace}/{name}"), "its devices cannot be taken back: {error}");
        }
    });
}
