//! What default spread constraints and affinity terms ask beside pods: namespaces with their labels, and whose pods
//! services and workloads select.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_affinity::{NamespaceSpec, Workload, WorkloadSpec};
use krafla_model::{Name, Problem};

use crate::converter::Converter;
use crate::report::{Report, namespace_of};
use crate::selectors;

/// The kind of a Service among workloads.
const SERVICE: &str = "Service";

/// A workload, as far as it selects pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Selecting {
    /// Its kind.
    pub kind: &'static str,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its selector; a workload without one selects nothing.
    pub selector: Option<LabelSelector>,
}

impl Converter {
    /// Reads a namespace.
    pub fn namespace(&mut self, namespace: &core::Namespace) -> (Option<NamespaceSpec>, Vec<Problem>) {
        let meta = &namespace.metadata;
        let Some(name) = meta.name.as_deref() else { return (None, Vec::new()) };
        let labels = selectors::labels(meta.labels.iter().flatten(), &mut self.names);
        (Some(NamespaceSpec { name: self.names.intern(name), labels }), Vec::new())
    }

    /// Reads whose pods a service means.
    pub fn service(&mut self, service: &core::Service) -> (Option<WorkloadSpec>, Vec<Problem>) {
        let Some(workload) = self.workload_of(SERVICE, &service.metadata) else { return (None, Vec::new()) };
        let pairs = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let requirement = |(key, value): (&String, &String)| Requirement {
            key: Name::from(&**key),
            test: Test::In(vec![Name::from(&**value)]),
        };
        let selector = pairs.map(|pairs| Selector(pairs.iter().map(requirement).collect()));
        let namespace = self.names.intern(namespace_of(&service.metadata));
        (Some(WorkloadSpec { namespace, workload, selector }), Vec::new())
    }

    /// Reads whose pods a workload means.
    pub fn selecting(&mut self, object: &Selecting) -> (Option<WorkloadSpec>, Vec<Problem>) {
        let mut report = Report::namespaced(object.kind, &object.metadata);
        let Some(workload) = self.workload_of(object.kind, &object.metadata) else { return (None, Vec::new()) };
        let selector = object.selector.as_ref().and_then(|one| match selectors::selector(one, &mut self.names) {
            Ok(selector) => Some(selector),
            Err(why) => {
                report.say(format_args!("selector: {why}; default spread constraints leave it out"));
                None
            }
        });
        let namespace = self.names.intern(namespace_of(&object.metadata));
        (Some(WorkloadSpec { namespace, workload, selector }), report.into_problems())
    }

    /// The workload of this kind that has this metadata.
    pub(crate) fn workload_of(&mut self, kind: &str, meta: &ObjectMeta) -> Option<Workload> {
        Some(Workload { kind: self.names.intern(kind), name: self.names.intern(meta.name.as_deref()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_selects_by_labels_and_one_without_selects_nothing() {
        let mut service = core::Service {
            metadata: ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() },
            ..core::Service::default()
        };
        let (read, _) = Converter::new().service(&service);
        assert_eq!(read.expect("read").selector, None);
        let pairs = [("app".to_owned(), "web".to_owned())];
        service.spec = Some(core::ServiceSpec { selector: Some(pairs.into()), ..core::ServiceSpec::default() });
        let (read, _) = Converter::new().service(&service);
        let read = read.expect("read");
        assert_eq!((&*read.namespace, &*read.workload.kind, &*read.workload.name), ("default", "Service", "web"));
        let labels = krafla_model::labels::Labels::from_iter([("app".into(), "web".into())]);
        assert!(read.selector.expect("it has one").matches(&labels));
    }
}
