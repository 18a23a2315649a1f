//! The ElasticQuota of the CapacityScheduling plugin, in kubernetes-sigs/scheduler-plugins.

use schemars::JsonSchema;

use super::schema::amounts;
use super::{fields, object};
use crate::quantities::ResourceList;

object! {
    /// What a namespace is sure of, and the most that it may hold.
    ElasticQuota: "scheduling.x-k8s.io" "v1alpha1" "ElasticQuota" "elasticquotas" NamespaceResourceScope {
        /// What is wanted.
        spec: ElasticQuotaFields,
        /// What is.
        status: ElasticQuotaStatusFields,
    }
}

fields! {
    /// What is wanted.
    #[derive(JsonSchema)]
    ElasticQuotaFields {
        /// What the namespace is sure of; nothing of what is left out.
        #[schemars(schema_with = "amounts")]
        min: ResourceList,
        /// The most that it may hold; what is left out has no limit.
        #[schemars(schema_with = "amounts")]
        max: ResourceList,
    }

    /// What is.
    #[derive(JsonSchema)]
    ElasticQuotaStatusFields {
        /// What its running pods ask for.
        #[schemars(schema_with = "amounts")]
        used: ResourceList,
    }
}
