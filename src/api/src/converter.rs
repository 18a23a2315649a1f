//! The converter: what is shared between the objects that are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::labels::Labels;
use krafla_model::name::NamePool;
use krafla_model::{Event, Name, PodShape, Problem, Time};

use crate::object::Object;
use crate::report::{Report, namespace_of};
use crate::selectors;

/// Turns Kubernetes objects into events of the model. It keeps one copy of each name and of each pod signature, so that
/// a thousand pods of one template hold one.
///
/// Every question is total: the answer is a value, or none if the object has to be kept out, and what is wrong with the
/// object. An object that is kept out is left as it was before; the rest of the cluster is not touched.
#[derive(Debug, Default)]
pub struct Converter {
    pub(crate) names: NamePool,
    shapes: ShapePool,
    told: BTreeSet<String>,
    made_at: Option<Time>,
    kept_annotations: Vec<&'static str>,
    /// Whether what only a descheduler asks is read.
    pub(crate) reads_details: bool,
}

impl Converter {
    /// A converter that believes the timestamps of objects; one without counts as made at 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on these annotations of pods are kept, for plugins that read them.
    pub fn keep_annotations(&mut self, keys: &[&'static str]) {
        self.kept_annotations = keys.to_vec();
    }

    /// Those annotations of an object that are kept.
    pub(crate) fn annotations(&mut self, meta: &ObjectMeta) -> Labels {
        let kept = &self.kept_annotations;
        let wanted = meta.annotations.iter().flatten().filter(|(key, _)| kept.contains(&key.as_str()));
        selectors::labels(wanted, &mut self.names)
    }

    /// From now on objects count as made at `time`, whatever timestamp they carry: a simulation has its own clock.
    pub fn set_time(&mut self, time: Time) {
        self.made_at = Some(time);
    }

    /// What an object says of the cluster; none if it is kept out, or says nothing by itself, as a Deployment does.
    pub fn event(&mut self, object: &Object) -> (Option<Event>, Vec<Problem>) {
        fn event<T>(
            (value, problems): (Option<T>, Vec<Problem>),
            make: fn(T) -> Event,
        ) -> (Option<Event>, Vec<Problem>) {
            (value.map(make), problems)
        }
        match object {
            Object::Pod(pod) => event(self.pod(pod), Event::Pod),
            Object::Node(node) => event(self.node(node), Event::Node),
            Object::PodGroup(group) => event(self.pod_group(group), Event::PodGroup),
            Object::CoschedulingGroup(group) => event(self.coscheduling_group(group), Event::PodGroup),
            Object::KubernetesGroup(group) => event(self.kubernetes_group(group), Event::PodGroup),
            Object::Queue(queue) => event(self.queue(queue), Event::Queue),
            Object::PriorityClass(class) => event(self.priority_class(class), Event::PriorityClass),
            Object::ResourceQuota(quota) => event(self.quota(quota), Event::Quota),
            Object::ElasticQuota(quota) => event(self.elastic_quota(quota), Event::ElasticQuota),
            Object::DisruptionBudget(budget) => event(self.budget(budget), Event::Budget),
            Object::ResourceClaim(claim) => {
                event(self.resource_claim(claim), |claim| Event::ResourceClaim(Box::new(claim)))
            }
            Object::DeviceClass(class) => event(self.device_class(class), Event::DeviceClass),
            Object::ResourceSlice(slice) => event(self.resource_slice(slice), Event::ResourceSlice),
            Object::Namespace(namespace) => event(self.namespace(namespace), Event::Namespace),
            Object::Service(service) => event(self.service(service), Event::Workload),
            Object::Storage(object) => event(self.storage(object), Event::Storage),
            Object::Selecting(workload) => event(self.selecting(workload), Event::Workload),
            Object::Workload(_) | Object::ClaimTemplate(_) | Object::Other { .. } => (None, Vec::new()),
        }
    }

    /// The event of an object's end; none for objects that have no event.
    pub fn gone(&mut self, object: &Object) -> Option<Event> {
        let meta = object.metadata()?;
        let name = || Some(Name::from(meta.name.as_deref()?));
        let namespace = Name::from(namespace_of(meta));
        Some(match object {
            Object::Pod(_) => Event::PodGone(uid_of(meta, &namespace, &name()?)),
            Object::Node(_) => Event::NodeGone(name()?),
            Object::PodGroup(_) | Object::CoschedulingGroup(_) | Object::KubernetesGroup(_) => {
                Event::PodGroupGone { namespace, name: name()? }
            }
            Object::Queue(_) => Event::QueueGone(name()?),
            Object::PriorityClass(_) => Event::PriorityClassGone(name()?),
            Object::ResourceQuota(_) => Event::QuotaGone { namespace, name: name()? },
            Object::ElasticQuota(_) => Event::ElasticQuotaGone { namespace, name: name()? },
            Object::DisruptionBudget(_) => Event::BudgetGone { namespace, name: name()? },
            Object::ResourceClaim(_) => Event::ResourceClaimGone { namespace, name: name()? },
            Object::DeviceClass(_) => Event::DeviceClassGone(name()?),
            Object::ResourceSlice(_) => Event::ResourceSliceGone(name()?),
            Object::Namespace(_) => Event::NamespaceGone(name()?),
            Object::Service(_) => Event::WorkloadGone { namespace, workload: self.workload_of("Service", meta)? },
            Object::Storage(object) => Event::StorageGone(object.key()?),
            Object::Selecting(one) => Event::WorkloadGone { namespace, workload: self.workload_of(one.kind, meta)? },
            Object::Workload(_) | Object::ClaimTemplate(_) | Object::Other { .. } => return None,
        })
    }

    /// Name, namespace, UID and age; none, and reported, if there is no name.
    pub(crate) fn identity(&mut self, meta: &ObjectMeta, report: &mut Report<'_>) -> Option<Identity> {
        let Some(name) = meta.name.as_deref().filter(|name| !name.is_empty()) else {
            report.say("has no metadata.name; it is left out");
            return None;
        };
        let namespace = self.names.intern(namespace_of(meta));
        let name = Name::from(name);
        let uid = uid_of(meta, &namespace, &name);
        let written = meta.creation_timestamp.as_ref().map(|time| Time(time.0.as_millisecond()));
        let created = self.made_at.or(written).unwrap_or_default();
        Some(Identity { namespace, name, uid, created })
    }

    /// The time at which something happened that an object dates at `written`.
    pub(crate) fn time_of(&self, written: Time) -> Time {
        self.made_at.unwrap_or(written)
    }

    /// The one copy of a pod signature.
    pub(crate) fn share(&mut self, shape: PodShape) -> Arc<PodShape> {
        self.shapes.share(shape)
    }

    /// Whether this is said for the first time.
    pub(crate) fn first_time(&mut self, what: String) -> bool {
        // Repeating a warning now and then is better than remembering every template of a year.
        if self.told.len() >= MOST_TOLD {
            self.told.clear();
        }
        self.told.insert(what)
    }
}

/// How many warnings are remembered as said.
const MOST_TOLD: usize = 10_000;

/// Who an object is.
pub(crate) struct Identity {
    pub(crate) namespace: Name,
    pub(crate) name: Name,
    pub(crate) uid: Name,
    pub(crate) created: Time,
}

/// The UID; `namespace/name` for an object that never met an API server.
fn uid_of(meta: &ObjectMeta, namespace: &str, name: &str) -> Name {
    match meta.uid.as_deref() {
        Some(uid) if !uid.is_empty() => uid.into(),
        _ => format!("{namespace}/{name}").into(),
    }
}

/// One copy of each pod signature in use.
#[derive(Debug, Default)]
struct ShapePool {
    shapes: BTreeSet<Arc<PodShape>>,
    /// Size at which unused shapes are dropped next.
    sweep_at: usize,
}

impl ShapePool {
    fn share(&mut self, shape: PodShape) -> Arc<PodShape> {
        if let Some(known) = self.shapes.get(&shape) {
            return Arc::clone(known);
        }
        if self.shapes.len() >= self.sweep_at.max(1024) {
            self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
            self.sweep_at = self.shapes.len() * 2;
        }
        let shape = Arc::new(shape);
        self.shapes.insert(Arc::clone(&shape));
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_nobody_holds_are_forgotten() {
        let mut pool = ShapePool::default();
        let shape = |i: usize| PodShape { role: i.to_string().into(), ..PodShape::default() };
        let kept = pool.share(shape(0));
        for i in 1..5_000 {
            pool.share(shape(i));
        }
        assert!(pool.shapes.len() < 3_000, "{}", pool.shapes.len());
        assert!(Arc::ptr_eq(&kept, &pool.share(shape(0))));
    }
}
