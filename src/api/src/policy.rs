//! PriorityClasses and ResourceQuotas.

use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use krafla_model::priority::PriorityClassSpec;
use krafla_model::{ElasticQuotaSpec, Problem, QuotaSpec};

use crate::converter::Converter;
use crate::crds::ElasticQuota;
use crate::quantities;
use crate::report::Report;

impl Converter {
    /// Reads a PriorityClass.
    pub fn priority_class(&mut self, class: &PriorityClass) -> (Option<PriorityClassSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("priorityclass", &class.metadata);
        let read = self.identity(&class.metadata, &mut report).map(|identity| PriorityClassSpec {
            name: identity.name,
            value: class.value.unwrap_or(0),
            global_default: class.global_default.unwrap_or(false),
            preempts: class.preemption_policy.as_deref() != Some("Never"),
        });
        (read, report.into_problems())
    }

    /// Reads a ResourceQuota. The limits are those that Kubernetes enforces (`status.hard`), else those that are wanted.
    /// Names stay as written: `requests.cpu` is not `cpu`. What cannot be read is not limited here; the API server
    /// still does.
    pub fn quota(&mut self, quota: &ResourceQuota) -> (Option<QuotaSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("resourcequota", &quota.metadata);
        let read = self.read_quota(quota, &mut report);
        (read, report.into_problems())
    }

    /// Reads an ElasticQuota. What cannot be read of its minimum it is not sure of, and of its maximum is not limited.
    pub fn elastic_quota(&mut self, quota: &ElasticQuota) -> (Option<ElasticQuotaSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("elasticquota", &quota.metadata);
        let read = self.identity(&quota.metadata, &mut report).map(|identity| {
            let (spec, names) = (quota.spec.as_ref(), &mut self.names);
            let min = spec.and_then(|spec| spec.min.as_ref());
            let (min, _) = quantities::reported(min, format_args!("spec.min"), "it counts as 0", names, &mut report);
            let max = spec.and_then(|spec| spec.max.as_ref());
            let (max, _) = quantities::reported(max, format_args!("spec.max"), "it is not limited", names, &mut report);
            ElasticQuotaSpec { namespace: identity.namespace, name: identity.name, min, max }
        });
        (read, report.into_problems())
    }

    fn read_quota(&mut self, quota: &ResourceQuota, report: &mut Report<'_>) -> Option<QuotaSpec> {
        let identity = self.identity(&quota.metadata, report)?;
        let status = quota.status.as_ref();
        let (field, hard) = match status.and_then(|status| status.hard.as_ref()) {
            Some(hard) => ("status.hard", Some(hard)),
            None => ("spec.hard", quota.spec.as_ref().and_then(|spec| spec.hard.as_ref())),
        };
        let names = &mut self.names;
        let (hard, _) = quantities::reported(hard, format_args!("{field}"), "it is not limited", names, report);
        let used = status.and_then(|status| status.used.as_ref());
        let (used, _) = quantities::reported(used, format_args!("status.used"), "it counts as unused", names, report);
        let spec = quota.spec.as_ref();
        if spec.is_some_and(|spec| spec.scope_selector.is_some() || spec.scopes.iter().flatten().count() > 0) {
            let key = format!("scopes {}/{}", identity.namespace, identity.name);
            if self.first_time(key) {
                report.say("has scopes, which this version does not look at; it is left out");
            }
            return None;
        }
        Some(QuotaSpec { namespace: identity.namespace, name: identity.name, hard, used })
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::Amounts;
    use serde_json::{Value, json};

    use super::*;

    fn quota(value: Value) -> (Option<QuotaSpec>, Vec<String>) {
        let (quota, problems) = Converter::new().quota(&serde_json::from_value(value).expect("a quota"));
        (quota, problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn quotas_keep_their_names_and_the_units_of_the_bare_ones() {
        let (read, problems) = quota(json!({
            "metadata": {"name": "q", "namespace": "ns"},
            "spec": {"hard": {"requests.cpu": "1"}},
            "status": {"hard": {"requests.cpu": "2", "limits.memory": "1Gi", "pods": 5}, "used": {"requests.cpu": "500m"}},
        }));
        let read = read.expect("a quota");
        assert_eq!(problems, [""; 0]);
        assert_eq!(read.namespace.as_str(), "ns");
        assert_eq!(
            read.hard,
            Amounts::default().with("requests.cpu", 2_000).with("limits.memory", 1 << 30).with("pods", 5)
        );
        assert_eq!(read.used, Amounts::default().with("requests.cpu", 500));
        let (wanted, _) = quota(json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}}));
        assert_eq!(wanted.map(|quota| quota.hard), Some(Amounts::default().with("pods", 3)));
    }

    #[test]
    fn what_cannot_be_read_of_a_quota_is_reported() {
        let (read, problems) = quota(json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "x", "cpu": 1}}}));
        assert_eq!(read.map(|quota| quota.hard), Some(Amounts::default().with("cpu", 1_000)));
        assert!(problems[0].starts_with("spec.hard.pods is `x`"), "{problems:?}");
        let (read, problems) = quota(json!({"metadata": {"name": "q"}, "spec": {"scopes": ["BestEffort"]}}));
        assert!(read.is_none() && problems[0].contains("has scopes"), "{problems:?}");
    }

    #[test]
    fn priority_classes() {
        let class: PriorityClass = serde_json::from_value(
            json!({"metadata": {"name": "high"}, "value": 1000, "globalDefault": true, "preemptionPolicy": "Never"}),
        )
        .expect("a class");
        let (class, _) = Converter::new().priority_class(&class);
        let class = class.expect("a class");
        assert_eq!((class.value, class.global_default, class.preempts), (1000, true, false));
    }
}
