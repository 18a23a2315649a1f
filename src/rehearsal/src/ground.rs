//! The clusters that scenarios can be played on.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use krafla_cluster::Access;
use krafla_framework::Registry;
use krafla_sandbox::{Assets, ControlPlane, Options};
use kube::api::{GroupVersionKind, Patch, PatchParams};
use kube::discovery::pinned_kind;
use kube::{Api, Client};
use thiserror::Error;
use tokio::time::{Instant, sleep};

/// How long the API server may take to know a custom resource.
const DEFINED_WITHIN: Duration = Duration::from_secs(30);

/// A cluster to play scenarios on.
pub struct Ground {
    pub(crate) client: Client,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    /// A control plane of our own, with Krafla.
    Sandbox { control_plane: Box<ControlPlane>, registry: fn() -> Registry },
    /// A cluster of somebody, with the scheduler that is there.
    Guest(Guest),
}

/// How scenarios are played on a cluster that is there.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The kubeconfig; without one, that of the environment.
    pub kubeconfig: Option<PathBuf>,
    /// The scheduler of pods: what they have as `schedulerName`.
    pub scheduler: String,
    /// Leaves nodes alone and uses those that there are.
    pub use_nodes: bool,
    /// Runs a stand-in for the kubelets of all nodes, for a cluster that has none.
    pub kubelet: bool,
}

/// Why scenarios cannot be played.
#[derive(Debug, Error)]
pub enum GroundError {
    /// There are no programs for a control plane.
    #[error(transparent)]
    Missing(#[from] krafla_sandbox::Missing),
    /// The control plane does not run.
    #[error(transparent)]
    ControlPlane(#[from] krafla_sandbox::Error),
    /// The cluster is not known.
    #[error(transparent)]
    Access(#[from] krafla_cluster::client::AccessError),
    /// A client could not be made, or the server does not answer.
    #[error("the API server does not answer: {0}")]
    Server(#[from] kube::Error),
    /// A custom resource is not known after a while.
    #[error("the API server does not take up the definition of {0}")]
    Definition(String),
}

impl Ground {
    /// Starts a control plane of real parts on this machine, for Krafla.
    pub async fn sandbox(registry: fn() -> Registry) -> Result<Self, GroundError> {
        let control_plane = Box::new(ControlPlane::start(&Assets::find()?, Options::new()).await?);
        let client = control_plane.client()?;
        define(&client).await?;
        Ok(Self { client, kind: Kind::Sandbox { control_plane, registry } })
    }

    /// Finds a cluster with a scheduler of its own.
    pub async fn guest(guest: Guest) -> Result<Self, GroundError> {
        let access = Access { kubeconfig: guest.kubeconfig.clone(), ..Access::default() };
        let client = Client::try_from(access.config().await?)?;
        client.apiserver_version().await?;
        Ok(Self { client, kind: Kind::Guest(guest) })
    }
}

/// Makes the custom resources known.
async fn define(client: &Client) -> Result<(), GroundError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("krafla").force();
    let definitions = krafla_api::definitions();
    for definition in &definitions {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        api.patch(name, &params, &Patch::Apply(definition)).await?;
    }
    let begun = Instant::now();
    for definition in &definitions {
        let name = definition.metadata.name.as_deref().unwrap_or_default();
        loop {
            let status = api.get(name).await?.status;
            let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
            // A moment after it is established, it is among what the server says that it has.
            let established = conditions.into_iter().any(|one| one.type_ == "Established" && one.status == "True");
            if established && is_known(client, definition).await {
                break;
            }
            if begun.elapsed() > DEFINED_WITHIN {
                return Err(GroundError::Definition(name.to_owned()));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

async fn is_known(client: &Client, definition: &CustomResourceDefinition) -> bool {
    let spec = &definition.spec;
    let version = spec.versions.first().map_or("", |version| version.name.as_str());
    pinned_kind(client, &GroupVersionKind::gvk(&spec.group, version, &spec.names.kind)).await.is_ok()
}
