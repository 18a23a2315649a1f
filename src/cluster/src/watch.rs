//! Watching one kind of object: a list, then what changes, and a list again whenever the thread is lost.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, ReplicationController, ResourceQuota, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use krafla_api::{Object, Selecting, StorageManifest};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;
use tracing::{info, warn};

use crate::pauses::Pauses;
use crate::thin_pod::ThinPod;

const STORAGE: &str = "storage.k8s.io";
const DEVICES: &str = "resource.k8s.io";

/// Pauses after errors of a watch: short, since until it is open again nothing is seen of the cluster.
const ERRORS: Pauses = Pauses::new(Duration::from_millis(200), Duration::from_secs(5));

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Pods.
    Pod,
    /// Nodes.
    Node,
    /// PriorityClasses.
    PriorityClass,
    /// ResourceQuotas.
    ResourceQuota,
    /// PodDisruptionBudgets.
    DisruptionBudget,
    /// Volcano's queues.
    Queue,
    /// Volcano's PodGroups.
    PodGroup,
    /// Coscheduling's PodGroups.
    CoschedulingGroup,
    /// scheduler-plugins' ElasticQuotas.
    ElasticQuota,
    /// Kubernetes' own PodGroups.
    KubernetesGroup,
    /// Namespaces.
    Namespace,
    /// Services.
    Service,
    /// ReplicaSets.
    ReplicaSet,
    /// ReplicationControllers.
    ReplicationController,
    /// StatefulSets.
    StatefulSet,
    /// StorageClasses.
    StorageClass,
    /// CSIDrivers.
    CsiDriver,
    /// CSINodes.
    CsiNode,
    /// CSIStorageCapacities.
    CsiStorageCapacity,
    /// PersistentVolumes.
    PersistentVolume,
    /// PersistentVolumeClaims.
    PersistentVolumeClaim,
    /// VolumeAttachments.
    VolumeAttachment,
    /// DeviceClasses.
    DeviceClass,
    /// ResourceSlices.
    ResourceSlice,
    /// ResourceClaims.
    ResourceClaim,
    /// Volcano's commands, with which `vcctl` opens and closes queues.
    Command,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 26] = [
        Self::Namespace,
        Self::Service,
        Self::ReplicaSet,
        Self::ReplicationController,
        Self::StatefulSet,
        Self::StorageClass,
        Self::CsiDriver,
        Self::CsiNode,
        Self::CsiStorageCapacity,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::VolumeAttachment,
        Self::DeviceClass,
        Self::ResourceSlice,
        Self::ResourceClaim,
        Self::Pod,
        Self::Node,
        Self::PriorityClass,
        Self::ResourceQuota,
        Self::ElasticQuota,
        Self::DisruptionBudget,
        Self::Queue,
        Self::PodGroup,
        Self::CoschedulingGroup,
        Self::KubernetesGroup,
        Self::Command,
    ];

    /// The kinds that a scheduler watches: all of them, or without Volcano's PodGroups and queues the others.
    pub(crate) fn watched(profile_only: bool) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |kind| !profile_only || !kind.is_of_groups())
    }

    /// Whether it is about Volcano's PodGroups and queues.
    const fn is_of_groups(self) -> bool {
        matches!(self, Self::Queue | Self::PodGroup | Self::Command)
    }

    /// Whether the scheduler may well do without.
    const fn is_optional(self) -> bool {
        matches!(self, Self::CoschedulingGroup | Self::KubernetesGroup | Self::ElasticQuota | Self::Command)
            || self.unseen().is_some()
    }

    /// What does not work while a role does not show a kind that every cluster has. It must not keep the scheduler from
    /// starting.
    const fn unseen(self) -> Option<&'static str> {
        Some(match self {
            Self::DisruptionBudget => "they protect no pod",
            Self::Namespace => "affinity terms that select namespaces by label match none",
            Self::Service | Self::ReplicaSet | Self::ReplicationController | Self::StatefulSet => {
                "their pods are not spread by default"
            }
            Self::PersistentVolumeClaim => "pods with claims wait",
            Self::PersistentVolume => "pods with claims that have their volume wait",
            Self::StorageClass => "claims that wait for a node get none",
            Self::CsiDriver | Self::CsiStorageCapacity => "how much storage there is does not count",
            Self::DeviceClass | Self::ResourceSlice | Self::ResourceClaim => "pods with claims of devices wait",
            Self::CsiNode | Self::VolumeAttachment => "how many volumes a node can attach does not count",
            _ => return None,
        })
    }

    /// The resource of kinds that are read leniently, because a schema of another version may have let them in.
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Node => ("", "v1", "Node", "nodes"),
            Self::PriorityClass => ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses"),
            Self::ResourceQuota => ("", "v1", "ResourceQuota", "resourcequotas"),
            Self::DisruptionBudget => ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
            Self::Queue => ("scheduling.volcano.sh", "v1beta1", "Queue", "queues"),
            Self::PodGroup => ("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups"),
            Self::CoschedulingGroup => ("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups"),
            Self::ElasticQuota => ("scheduling.x-k8s.io", "v1alpha1", "ElasticQuota", "elasticquotas"),
            Self::KubernetesGroup => ("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups"),
            Self::Namespace => ("", "v1", "Namespace", "namespaces"),
            Self::Service => ("", "v1", "Service", "services"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet", "replicasets"),
            Self::ReplicationController => ("", "v1", "ReplicationController", "replicationcontrollers"),
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::StorageClass => (STORAGE, "v1", "StorageClass", "storageclasses"),
            Self::CsiDriver => (STORAGE, "v1", "CSIDriver", "csidrivers"),
            Self::CsiNode => (STORAGE, "v1", "CSINode", "csinodes"),
            Self::CsiStorageCapacity => (STORAGE, "v1", "CSIStorageCapacity", "csistoragecapacities"),
            Self::PersistentVolume => ("", "v1", "PersistentVolume", "persistentvolumes"),
            Self::PersistentVolumeClaim => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::VolumeAttachment => (STORAGE, "v1", "VolumeAttachment", "volumeattachments"),
            Self::DeviceClass => (DEVICES, "v1", "DeviceClass", "deviceclasses"),
            Self::ResourceSlice => (DEVICES, "v1", "ResourceSlice", "resourceslices"),
            Self::ResourceClaim => (DEVICES, "v1", "ResourceClaim", "resourceclaims"),
            Self::Command => ("bus.volcano.sh", "v1alpha1", "Command", "commands"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    /// Its name for people: `podgroups.scheduling.volcano.sh`.
    pub(crate) fn label(self) -> String {
        let resource = self.resource();
        if resource.group.is_empty() { resource.plural } else { format!("{}.{}", resource.plural, resource.group) }
    }

    /// Whether a UID tells its objects apart; of the others the state knows one by its name.
    const fn goes_by_uid(self) -> bool {
        matches!(self, Self::Pod)
    }
}

/// Who an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    /// Its namespace, empty if it has none.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its UID.
    pub(crate) uid: String,
}

impl Identity {
    /// That of an object with this metadata.
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        Self { namespace: text(&meta.namespace), name: text(&meta.name), uid: text(&meta.uid) }
    }
}

/// What a watch has seen.
#[derive(Debug)]
pub(crate) enum Change {
    /// An object is new or has changed.
    Applied(Kind, Box<Seen>),
    /// An object is gone.
    Gone(Kind, Identity),
    /// All objects of the kind have been listed; from now on what is known of it is complete.
    Listed(Kind),
}

/// An object as a watch has seen it.
#[derive(Debug)]
pub(crate) enum Seen {
    /// One that is read.
    Object(Object),
    /// One that has to be looked at field by field.
    Raw(Box<DynamicObject>),
}

/// Watches one kind for ever, and tells of it.
pub(crate) async fn watch(client: Client, kind: Kind, out: Sender<Change>) {
    let of = |kind: Kind| kind.resource();
    match kind {
        Kind::Pod => {
            follow(Api::<ThinPod>::all(client), kind, out, |ThinPod(pod)| Object::Pod(Box::new(pod)).into()).await;
        }
        Kind::Node => follow(Api::<Node>::all(client), kind, out, |node| Object::Node(Box::new(node)).into()).await,
        Kind::PriorityClass => {
            follow(Api::<PriorityClass>::all(client), kind, out, |one| Object::PriorityClass(Box::new(one)).into())
                .await;
        }
        Kind::ResourceQuota => {
            follow(Api::<ResourceQuota>::all(client), kind, out, |one| Object::ResourceQuota(Box::new(one)).into())
                .await;
        }
        Kind::DisruptionBudget => {
            let wrap = |one| Object::DisruptionBudget(Box::new(one)).into();
            follow(Api::<PodDisruptionBudget>::all(client), kind, out, wrap).await;
        }
        Kind::Namespace => {
            follow(Api::<Namespace>::all(client), kind, out, |one| Object::Namespace(Box::new(one)).into()).await;
        }
        Kind::Service => {
            follow(Api::<Service>::all(client), kind, out, |one| Object::Service(Box::new(one)).into()).await;
        }
        Kind::ReplicaSet => {
            let thin = |one: ReplicaSet| selecting("ReplicaSet", one.metadata, Some(one.spec.selector));
            follow(Api::<ReplicaSet>::all(client), kind, out, thin).await;
        }
        Kind::StatefulSet => {
            let thin = |one: StatefulSet| selecting("StatefulSet", one.metadata, Some(one.spec.selector));
            follow(Api::<StatefulSet>::all(client), kind, out, thin).await;
        }
        Kind::DeviceClass => {
            follow(Api::<DeviceClass>::all(client), kind, out, |one| Object::DeviceClass(Box::new(one)).into()).await;
        }
        Kind::ResourceSlice => {
            follow(Api::<ResourceSlice>::all(client), kind, out, |one| Object::ResourceSlice(Box::new(one)).into())
                .await;
        }
        Kind::ResourceClaim => {
            follow(Api::<ResourceClaim>::all(client), kind, out, |one| Object::ResourceClaim(Box::new(one)).into())
                .await;
        }
        Kind::StorageClass => follow(Api::<StorageClass>::all(client), kind, out, |one| one.into()).await,
        Kind::CsiDriver => follow(Api::<CSIDriver>::all(client), kind, out, |one| one.into()).await,
        Kind::CsiNode => follow(Api::<CSINode>::all(client), kind, out, |one| one.into()).await,
        Kind::CsiStorageCapacity => {
            follow(Api::<CSIStorageCapacity>::all(client), kind, out, |one| one.into()).await;
        }
        Kind::PersistentVolume => follow(Api::<PersistentVolume>::all(client), kind, out, |one| one.into()).await,
        Kind::PersistentVolumeClaim => {
            follow(Api::<PersistentVolumeClaim>::all(client), kind, out, |one| one.into()).await;
        }
        Kind::VolumeAttachment => follow(Api::<VolumeAttachment>::all(client), kind, out, |one| one.into()).await,
        Kind::ReplicationController => {
            let thin = |one: ReplicationController| {
                let labels = one.spec.and_then(|spec| spec.selector);
                let selector =
                    labels.map(|labels| LabelSelector { match_labels: Some(labels), match_expressions: None });
                selecting("ReplicationController", one.metadata, selector)
            };
            follow(Api::<ReplicationController>::all(client), kind, out, thin).await;
        }
        Kind::Queue
        | Kind::PodGroup
        | Kind::CoschedulingGroup
        | Kind::KubernetesGroup
        | Kind::ElasticQuota
        | Kind::Command => {
            follow(Api::<DynamicObject>::all_with(client, &of(kind)), kind, out, |raw| Seen::Raw(Box::new(raw))).await;
        }
    }
}

/// Objects of storage, as they are seen.
macro_rules! seen_storage {
    ($($object:ty => $variant:ident),* $(,)?) => {$(
        impl From<$object> for Seen {
            fn from(object: $object) -> Self {
                Object::Storage(StorageManifest::$variant(Box::new(object))).into()
            }
        }
    )*};
}

seen_storage! {
    PersistentVolumeClaim => Claim,
    PersistentVolume => Volume,
    StorageClass => Class,
    CSINode => Node,
    CSIDriver => Driver,
    CSIStorageCapacity => Capacity,
    VolumeAttachment => Attachment,
}

impl From<Object> for Seen {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

/// What scheduling needs of a workload: whose pods it selects.
fn selecting(kind: &'static str, metadata: ObjectMeta, selector: Option<LabelSelector>) -> Seen {
    let metadata = ObjectMeta { name: metadata.name, namespace: metadata.namespace, ..ObjectMeta::default() };
    Object::Selecting(Box::new(Selecting { kind, metadata, selector })).into()
}

async fn follow<K>(api: Api<K>, kind: Kind, out: Sender<Change>, wrap: fn(K) -> Seen)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut stream = watcher(api, watcher::Config::default()).backoff(ERRORS).boxed();
    // What is known, by what tells objects apart; and while a list comes in, what it has brought so far.
    let mut known: BTreeMap<Key, Identity> = BTreeMap::new();
    let mut listing: Option<BTreeMap<Key, Identity>> = None;
    let (mut absent, mut was_listed) = (false, false);
    while let Some(event) = stream.next().await {
        let sent = match event {
            Ok(watcher::Event::Init) => {
                listing = Some(BTreeMap::new());
                Ok(())
            }
            Ok(watcher::Event::InitApply(object)) => {
                let identity = Identity::of(object.meta());
                if let Some(listing) = &mut listing {
                    listing.insert(key_of(kind, &identity), identity);
                }
                out.send(Change::Applied(kind, Box::new(wrap(object)))).await
            }
            Ok(watcher::Event::InitDone) => {
                (absent, was_listed) = (false, true);
                let listed = listing.take().unwrap_or_default();
                let before = std::mem::replace(&mut known, listed);
                let gone = before.into_iter().filter(|(key, _)| !known.contains_key(key)).map(|(_, identity)| identity);
                conclude(kind, gone.collect(), &out).await
            }
            Ok(watcher::Event::Apply(object)) => {
                let identity = Identity::of(object.meta());
                known.insert(key_of(kind, &identity), identity);
                out.send(Change::Applied(kind, Box::new(wrap(object)))).await
            }
            Ok(watcher::Event::Delete(object)) => {
                let identity = Identity::of(object.meta());
                known.remove(&key_of(kind, &identity));
                out.send(Change::Gone(kind, identity)).await
            }
            Err(error) if is_absent(kind, &error, was_listed) => {
                if std::mem::replace(&mut absent, true) {
                    continue;
                }
                if let Some(loss) = kind.unseen() {
                    warn!("{} cannot be listed: until they can, {loss}", kind.label());
                } else if kind.is_optional() {
                    info!("the cluster has no {}; looked for again from time to time", kind.label());
                } else {
                    warn!("the cluster has no {}: run `krafla crds | kubectl apply -f -`", kind.label());
                }
                conclude(kind, std::mem::take(&mut known).into_values().collect(), &out).await
            }
            Err(error) => {
                warn!("watching {}: {error}", kind.label());
                Ok(())
            }
        };
        if sent.is_err() {
            return; // nobody listens any more: the process ends
        }
    }
}

type Key = (String, String);

fn key_of(kind: Kind, identity: &Identity) -> Key {
    if kind.goes_by_uid() {
        return (identity.uid.clone(), String::new());
    }
    (identity.namespace.clone(), identity.name.clone())
}

async fn conclude(
    kind: Kind,
    gone: Vec<Identity>,
    out: &Sender<Change>,
) -> Result<(), tokio::sync::mpsc::error::SendError<Change>> {
    for identity in gone {
        out.send(Change::Gone(kind, identity)).await?;
    }
    out.send(Change::Listed(kind)).await
}

/// Whether the server does not know the kind, or keeps an optional one from us. A server that has just started may say
/// so for a moment of everything, so what has been listed before is not absent for that.
fn is_absent(kind: Kind, error: &watcher::Error, was_listed: bool) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code,
        _ => return false,
    };
    code == 404 || (code == 403 && kind.is_optional() && !was_listed)
}
