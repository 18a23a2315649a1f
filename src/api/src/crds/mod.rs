//! Custom resources: Volcano's PodGroup, Queue, HyperNode, Numatopology and Job, coscheduling's and Kubernetes' PodGroup,
//! scheduler-plugins' ElasticQuota.
//!
//! A type stands for two things at once. Reading is lenient: every field may be missing or null, numbers are wider than
//! allowed, texts are not looked into, so that what is wrong is reported by name and not lost with its object. Of the
//! same fields the schema is made that the API server keeps ([`crate::definitions`]); ranges, defaults and rules stand
//! at the field as `schemars` attributes, and only the API server heeds them.
//!
//! Of kinds that are only read, and are somebody else's to define, only the fields that are used stand here.

mod coscheduling;
pub(crate) mod definition;
mod elastic_quota;
mod foreign;
mod hyper_node;
mod numatopology;
mod pod_group;
mod queue;
mod schema;

pub use coscheduling::{CoschedulingFields, CoschedulingGroup, CoschedulingStatusFields};
pub use elastic_quota::{ElasticQuota, ElasticQuotaFields, ElasticQuotaStatusFields};
pub use foreign::{
    KubernetesGangFields, KubernetesGroup, KubernetesGroupFields, KubernetesPolicyFields, PartitionFields, VolcanoJob,
    VolcanoJobFields, VolcanoTaskFields,
};
pub use hyper_node::{
    ConditionFields, ExactMatchFields, HyperNode, HyperNodeFields, HyperNodeStatusFields, MemberFields,
    RegexMatchFields, SelectorFields,
};
pub use numatopology::{
    ContainerAllocationFields, CpuFields, Numatopology, NumatopologyFields, PodAllocationFields, ResourceFields,
};
pub use pod_group::{
    GroupConditionFields, PodGroup, PodGroupFields, PodGroupStatusFields, SubGroupFields, TopologyFields,
};
pub use queue::{
    ClusterFields, GroupLists, GuaranteeField, Queue, QueueAffinity, QueueFields, QueueStatusFields, ReservationFields,
};

/// Declares structs of optional fields with the names that the API uses.
macro_rules! fields {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $(
            $(#[$field_meta])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<$type>,
        )* }
    )* };
}

/// Declares an object of the API, which says its version and kind when it is written: metadata, and optional parts.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $name:ident: $group:literal $version:literal $kind:literal $plural:literal $scope:ident {
            $($(#[$part_meta:meta])* $part:ident: $type:ty,)*
        }
    ) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, schemars::JsonSchema)]
        $(#[$meta])*
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Its metadata.
            #[serde(default)]
            #[schemars(skip)]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            $($(#[$part_meta])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $part: Option<$type>,)*
        }

        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::$scope;
        }

        impl k8s_openapi::Metadata for $name {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use k8s_openapi::Resource;
                use serde::ser::SerializeMap;

                let mut object = serializer.serialize_map(None)?;
                object.serialize_entry("apiVersion", Self::API_VERSION)?;
                object.serialize_entry("kind", Self::KIND)?;
                object.serialize_entry("metadata", &self.metadata)?;
                $(if let Some(part) = &self.$part {
                    object.serialize_entry(stringify!($part), part)?;
                })*
                object.end()
            }
        }
    };
}

use {fields, object};

/// Says in one place which API group and version an object of ours has.
pub(crate) mod groups {
    /// Group of PodGroups and Queues.
    pub(crate) const VOLCANO: &str = "scheduling.volcano.sh/";
    /// Group of coscheduling's PodGroups, and of ElasticQuotas.
    pub(crate) const COSCHEDULING: &str = "scheduling.x-k8s.io/";
    /// Group of Kubernetes' PodGroups.
    pub(crate) const KUBERNETES: &str = "scheduling.k8s.io/";
    /// Group of Volcano's Jobs.
    pub(crate) const VOLCANO_BATCH: &str = "batch.volcano.sh/";
}
