//! Between two scenarios: everything goes.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ResourceQuota};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::serde::de::DeserializeOwned;
use krafla_api::crds::{PodGroup, Queue};
use kube::api::{DeleteParams, DynamicObject, ListParams, PropagationPolicy};
use kube::{Api, Client, Error, Resource};
use tokio::time::sleep;

use crate::hands::Made;

/// How long a cluster may take to become empty.
const WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
/// Namespaces that every cluster has.
const STANDARD: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Deletes what a scenario made, the newest first. What cannot be deleted is told at the end.
pub(crate) async fn made(client: &Client, made: &[Made]) -> Result<(), String> {
    let mut stay = Vec::new();
    for one in made.iter().rev() {
        let api: Api<DynamicObject> = match &one.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &one.resource),
            None => Api::all_with(client.clone(), &one.resource),
        };
        let propagation_policy = Some(PropagationPolicy::Background);
        let mut params = DeleteParams { propagation_policy, ..DeleteParams::default() };
        if one.resource.kind == "Pod" {
            params = params.grace_period(0);
        }
        if let Err(error) = forgive(api.delete(&one.name, &params).await.map(drop)) {
            stay.push(format!("{} {}: {error}", one.resource.kind.to_lowercase(), one.name));
        }
    }
    if stay.is_empty() { Ok(()) } else { Err(format!("not deleted: {}", stay.join("; "))) }
}

/// Deletes everything of a test cluster that scenarios make or that is made for them, and waits until it is gone. Of
/// namespaces the end is only begun: it takes seconds, and who needs one of that name waits for it.
pub(crate) async fn everything(client: &Client) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let mut left = 0;
        left += all_of::<Pod>(client).await?;
        left += all_of::<PodGroup>(client).await?;
        left += all_of::<ResourceQuota>(client).await?;
        left += all_of::<PodDisruptionBudget>(client).await?;
        left += whole::<Queue>(client, |_| true).await?;
        left += whole::<Node>(client, |_| true).await?;
        left += whole::<PriorityClass>(client, |name| !name.starts_with("system-")).await?;
        whole::<Namespace>(client, |name| !STANDARD.contains(&name)).await?;
        if left == 0 {
            return Ok(());
        }
        if begun.elapsed() > WITHIN {
            return Err(format!("{left} objects are still there {} s after their deletion", WITHIN.as_secs()));
        }
        sleep(PAUSE).await;
    }
}

/// Deletes all objects of a kind that has namespaces; how many there are still.
async fn all_of<K>(client: &Client) -> Result<usize, String>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let list = Api::<K>::all(client.clone()).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    for object in &list.items {
        let meta = object.meta();
        let (Some(namespace), Some(name)) = (&meta.namespace, &meta.name) else { continue };
        let api: Api<K> = Api::namespaced(client.clone(), namespace);
        let deleted = api.delete(name, &DeleteParams::default().grace_period(0)).await.map(drop);
        forgive(deleted).map_err(|error| error.to_string())?;
    }
    Ok(list.items.len())
}

/// The same for a kind without namespaces.
async fn whole<K>(client: &Client, which: impl Fn(&str) -> bool) -> Result<usize, String>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let mut left = 0;
    for object in &list.items {
        let meta = object.meta();
        let Some(name) = meta.name.as_deref().filter(|name| which(name)) else { continue };
        left += 1;
        if meta.deletion_timestamp.is_none() {
            let deleted = api.delete(name, &DeleteParams::default()).await.map(drop);
            forgive(deleted).map_err(|error| error.to_string())?;
        }
    }
    Ok(left)
}

fn forgive(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => other,
    }
}
