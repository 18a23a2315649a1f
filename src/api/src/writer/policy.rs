//! PriorityClasses, ResourceQuotas and ElasticQuotas.

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::priority::PriorityClassSpec;
use krafla_model::{ElasticQuotaSpec, QuotaSpec};

use super::{amounts, text};
use crate::crds::{ElasticQuota, ElasticQuotaFields};

/// Writes a PriorityClass.
pub fn priority_class(class: &PriorityClassSpec) -> PriorityClass {
    PriorityClass {
        metadata: ObjectMeta { name: text(&class.name), ..ObjectMeta::default() },
        value: Some(class.value),
        global_default: class.global_default.then_some(true),
        preemption_policy: (!class.preempts).then(|| "Never".to_owned()),
        ..PriorityClass::default()
    }
}

/// Writes an ElasticQuota.
pub fn elastic_quota(quota: &ElasticQuotaSpec) -> ElasticQuota {
    ElasticQuota {
        metadata: ObjectMeta { name: text(&quota.name), namespace: text(&quota.namespace), ..ObjectMeta::default() },
        spec: Some(ElasticQuotaFields { min: Some(amounts(&quota.min)), max: Some(amounts(&quota.max)) }),
        status: None,
    }
}

/// Writes a ResourceQuota with its use.
pub fn quota(quota: &QuotaSpec) -> ResourceQuota {
    let hard = amounts(&quota.hard);
    ResourceQuota {
        metadata: ObjectMeta { name: text(&quota.name), namespace: text(&quota.namespace), ..ObjectMeta::default() },
        spec: Some(ResourceQuotaSpec { hard: Some(hard.clone()), ..ResourceQuotaSpec::default() }),
        status: Some(ResourceQuotaStatus { hard: Some(hard), used: Some(amounts(&quota.used)) }),
    }
}
