//! The kinds of objects that are read.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ResourceQuota, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::crds::{CoschedulingGroup, ElasticQuota, KubernetesGroup, PodGroup, Queue, VolcanoJob, groups};
use crate::fault::{Fault, typed};
use crate::spread::Selecting;
use crate::storage_object::StorageManifest;
use crate::workload::Workload;

/// A Kubernetes object.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A pod.
    Pod(Box<Pod>),
    /// A node.
    Node(Box<Node>),
    /// Volcano's PodGroup.
    PodGroup(Box<PodGroup>),
    /// Coscheduling's PodGroup.
    CoschedulingGroup(Box<CoschedulingGroup>),
    /// Kubernetes' own PodGroup.
    KubernetesGroup(Box<KubernetesGroup>),
    /// A queue.
    Queue(Box<Queue>),
    /// A PriorityClass.
    PriorityClass(Box<PriorityClass>),
    /// A ResourceQuota.
    ResourceQuota(Box<ResourceQuota>),
    /// An ElasticQuota.
    ElasticQuota(Box<ElasticQuota>),
    /// A PodDisruptionBudget.
    DisruptionBudget(Box<PodDisruptionBudget>),
    /// A claim of devices.
    ResourceClaim(Box<ResourceClaim>),
    /// What claims of pods are made from.
    ClaimTemplate(Box<ResourceClaimTemplate>),
    /// A class of devices.
    DeviceClass(Box<DeviceClass>),
    /// Devices that a driver offers.
    ResourceSlice(Box<ResourceSlice>),
    /// A namespace.
    Namespace(Box<Namespace>),
    /// A service.
    Service(Box<Service>),
    /// A claim, a volume or another object of storage.
    Storage(StorageManifest),
    /// A workload, as far as it selects pods.
    Selecting(Box<Selecting>),
    /// Something that a controller makes pods of.
    Workload(Box<Workload>),
    /// Anything else, which scheduling does not depend on.
    Other {
        /// Its group and version.
        api_version: String,
        /// Its kind.
        kind: String,
    },
}

/// Kinds that are read, to guess what a misspelled one should be.
const KINDS: [&str; 25] = [
    "Pod",
    "Node",
    "PodGroup",
    "Queue",
    "PriorityClass",
    "Namespace",
    "Service",
    "ResourceQuota",
    "ElasticQuota",
    "PodDisruptionBudget",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceClass",
    "ResourceSlice",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "Job",
];

impl Object {
    /// Its metadata, if it is of a kind that is read.
    pub fn metadata(&self) -> Option<&ObjectMeta> {
        Some(match self {
            Self::Pod(pod) => &pod.metadata,
            Self::Node(node) => &node.metadata,
            Self::PodGroup(group) => &group.metadata,
            Self::CoschedulingGroup(group) => &group.metadata,
            Self::KubernetesGroup(group) => &group.metadata,
            Self::Queue(queue) => &queue.metadata,
            Self::PriorityClass(class) => &class.metadata,
            Self::ResourceQuota(quota) => &quota.metadata,
            Self::ElasticQuota(quota) => &quota.metadata,
            Self::DisruptionBudget(budget) => &budget.metadata,
            Self::ResourceClaim(object) => &object.metadata,
            Self::ClaimTemplate(object) => &object.metadata,
            Self::DeviceClass(object) => &object.metadata,
            Self::ResourceSlice(object) => &object.metadata,
            Self::Namespace(namespace) => &namespace.metadata,
            Self::Service(service) => &service.metadata,
            Self::Storage(object) => object.metadata(),
            Self::Selecting(object) => &object.metadata,
            Self::Workload(workload) => &workload.metadata,
            Self::Other { .. } => return None,
        })
    }

    /// The same, to be changed.
    pub fn metadata_mut(&mut self) -> Option<&mut ObjectMeta> {
        Some(match self {
            Self::Pod(pod) => &mut pod.metadata,
            Self::Node(node) => &mut node.metadata,
            Self::PodGroup(group) => &mut group.metadata,
            Self::CoschedulingGroup(group) => &mut group.metadata,
            Self::KubernetesGroup(group) => &mut group.metadata,
            Self::Queue(queue) => &mut queue.metadata,
            Self::PriorityClass(class) => &mut class.metadata,
            Self::ResourceQuota(quota) => &mut quota.metadata,
            Self::ElasticQuota(quota) => &mut quota.metadata,
            Self::DisruptionBudget(budget) => &mut budget.metadata,
            Self::ResourceClaim(object) => &mut object.metadata,
            Self::ClaimTemplate(object) => &mut object.metadata,
            Self::DeviceClass(object) => &mut object.metadata,
            Self::ResourceSlice(object) => &mut object.metadata,
            Self::Namespace(namespace) => &mut namespace.metadata,
            Self::Service(service) => &mut service.metadata,
            Self::Storage(object) => object.metadata_mut(),
            Self::Selecting(object) => &mut object.metadata,
            Self::Workload(workload) => &mut workload.metadata,
            Self::Other { .. } => return None,
        })
    }

    /// Reads an object, with what is wrong with it and can be lived with.
    pub(crate) fn read(value: &Value) -> Result<(Self, Vec<String>), Fault> {
        let text = |key: &str| match value.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
            Some(Value::Null) | None => Err(Fault::whole(format!("has no {key}; a Kubernetes object has one"))),
            Some(_) => Err(Fault::whole(format!("{key} is not a text"))),
        };
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        let of = |group: &str| api_version.starts_with(group);
        let sound = |object: Self| Ok((object, Vec::new()));
        let workload = |(workload, problems): (Workload, Vec<String>)| (Self::Workload(Box::new(workload)), problems);
        if let Some(object) = StorageManifest::read(api_version, kind, value)? {
            return sound(Self::Storage(object));
        }
        match (api_version, kind) {
            ("v1", "Pod") => sound(Self::Pod(typed(value)?)),
            ("v1", "Node") => sound(Self::Node(typed(value)?)),
            ("v1", "ResourceQuota") => sound(Self::ResourceQuota(typed(value)?)),
            ("v1", "Namespace") => sound(Self::Namespace(typed(value)?)),
            ("v1", "Service") => sound(Self::Service(typed(value)?)),
            ("policy/v1", "PodDisruptionBudget") => sound(Self::DisruptionBudget(typed(value)?)),
            ("resource.k8s.io/v1", "ResourceClaim") => sound(Self::ResourceClaim(typed(value)?)),
            ("resource.k8s.io/v1", "ResourceClaimTemplate") => sound(Self::ClaimTemplate(typed(value)?)),
            ("resource.k8s.io/v1", "DeviceClass") => sound(Self::DeviceClass(typed(value)?)),
            ("resource.k8s.io/v1", "ResourceSlice") => sound(Self::ResourceSlice(typed(value)?)),
            ("scheduling.k8s.io/v1", "PriorityClass") => sound(Self::PriorityClass(typed(value)?)),
            ("apps/v1", "Deployment") => Ok(workload(Workload::of_deployment(*typed::<Deployment>(value)?))),
            ("apps/v1", "ReplicaSet") => Ok(workload(Workload::of_replica_set(*typed::<ReplicaSet>(value)?))),
            ("apps/v1", "StatefulSet") => Ok(workload(Workload::of_stateful_set(*typed::<StatefulSet>(value)?))),
            ("batch/v1", "Job") => Ok(workload(Workload::of_job(*typed::<Job>(value)?))),
            (_, "Job") if of(groups::VOLCANO_BATCH) => {
                Ok(workload(Workload::of_volcano_job(*typed::<VolcanoJob>(value)?)))
            }
            (_, "PodGroup") if of(groups::VOLCANO) => sound(Self::PodGroup(typed(value)?)),
            (_, "PodGroup") if of(groups::COSCHEDULING) => sound(Self::CoschedulingGroup(typed(value)?)),
            (_, "ElasticQuota") if of(groups::COSCHEDULING) => sound(Self::ElasticQuota(typed(value)?)),
            (_, "PodGroup") if of(groups::KUBERNETES) => sound(Self::KubernetesGroup(typed(value)?)),
            (_, "Queue") if of(groups::VOLCANO) => sound(Self::Queue(typed(value)?)),
            _ => sound(Self::Other { api_version: api_version.to_owned(), kind: kind.to_owned() }),
        }
    }
}

/// The kind that `kind` is probably meant to be: one that differs in case or by an `s`.
pub(crate) fn nearest_kind(kind: &str) -> Option<&'static str> {
    let bare = kind.strip_suffix(['s', 'S']).unwrap_or(kind);
    KINDS
        .into_iter()
        .find(|known| *known != kind && (known.eq_ignore_ascii_case(kind) || known.eq_ignore_ascii_case(bare)))
}
