//! What only a descheduler asks about a pod. Read where somebody will ask: it changes with every restart of a container.

use k8s_openapi::api::core::v1 as core;
use krafla_model::name::NamePool;
use krafla_model::pod_details::{ConditionDetails, ContainerDetails, ContainerKind, Owner, PodDetails, QosClass};
use krafla_model::{Name, Time, quantity, resources};

use crate::converter::Converter;
use crate::pod::image_name;
use crate::report::annotation;

/// Annotation that a kubelet puts on a pod: where it has it from.
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";
/// Annotation of the object that stands for a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

impl Converter {
    /// From now on what a descheduler asks of pods is read too.
    pub fn read_details(&mut self) {
        self.reads_details = true;
    }

    /// What only a descheduler asks; `None` if nobody will.
    pub(crate) fn details(&mut self, pod: &core::Pod) -> Option<PodDetails> {
        if !self.reads_details {
            return None;
        }
        let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref());
        let names = &mut self.names;
        let mut images: Vec<Name> =
            spec.containers.iter().filter_map(|one| image_name(one.image.as_deref()?, names)).collect();
        images.sort_unstable();
        images.dedup();
        let volumes = || spec.volumes.iter().flatten();
        let claims = volumes().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        Some(PodDetails {
            owners: pod
                .metadata
                .owner_references
                .iter()
                .flatten()
                .map(|owner| Owner {
                    kind: names.intern(&owner.kind),
                    name: names.intern(&owner.name),
                    uid: names.intern(&owner.uid),
                })
                .collect(),
            qos: qos(spec, status),
            is_static: annotation(&pod.metadata, CONFIG_SOURCE).is_some_and(|source| source != "api")
                || annotation(&pod.metadata, MIRROR).is_some(),
            local_storage: volumes().any(|volume| volume.empty_dir.is_some() || volume.host_path.is_some()),
            limits: (limit(spec, "cpu"), limit(spec, "memory")),
            storage_claims: claims.map(|claim| names.intern(&claim.claim_name)).collect(),
            resource_claims: spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty()),
            images,
            reason: names.intern(status.and_then(|status| status.reason.as_deref()).unwrap_or_default()),
            containers: status.map(|status| containers(status, names)).unwrap_or_default(),
            conditions: status.map(|status| conditions(status, names)).unwrap_or_default(),
        })
    }
}

/// The class that the API server has worked out, else the one that follows from requests and limits.
fn qos(spec: &core::PodSpec, status: Option<&core::PodStatus>) -> QosClass {
    match status.and_then(|status| status.qos_class.as_deref()) {
        Some("Guaranteed") => return QosClass::Guaranteed,
        Some("Burstable") => return QosClass::Burstable,
        Some("BestEffort") => return QosClass::BestEffort,
        _ => {}
    }
    let containers = || spec.init_containers.iter().flatten().chain(&spec.containers);
    let of = |one: &core::Container, which: fn(&core::ResourceRequirements) -> Option<&Amounts>, key: &str| {
        one.resources.as_ref().and_then(which).and_then(|list| list.get(key)).map(|amount| amount.0.clone())
    };
    let says_something = |one: &core::Container| {
        ["cpu", "memory"].iter().any(|key| of(one, requests, key).is_some() || of(one, limits, key).is_some())
    };
    let is_limited = |one: &core::Container| {
        ["cpu", "memory"].iter().all(|key| {
            let limit = of(one, limits, key);
            limit.is_some() && of(one, requests, key).is_none_or(|asked| Some(asked) == limit)
        })
    };
    match () {
        () if !containers().any(says_something) => QosClass::BestEffort,
        () if containers().all(is_limited) => QosClass::Guaranteed,
        () => QosClass::Burstable,
    }
}

type Amounts = std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>;

fn requests(resources: &core::ResourceRequirements) -> Option<&Amounts> {
    resources.requests.as_ref()
}

fn limits(resources: &core::ResourceRequirements) -> Option<&Amounts> {
    resources.limits.as_ref()
}

/// The sum of the limits of the containers, in milli-CPU or bytes; 0 as soon as one has none, or none that can be read.
fn limit(spec: &core::PodSpec, resource: &str) -> i64 {
    let mut sum: i64 = 0;
    for one in &spec.containers {
        let written = one.resources.as_ref().and_then(limits).and_then(|list| list.get(resource));
        let amount = written.and_then(|written| quantity::parse(&written.0, resources::unit_of(resource)).ok());
        let Some(amount) = amount else { return 0 };
        sum = sum.saturating_add(amount);
    }
    sum
}

fn containers(status: &core::PodStatus, names: &mut NamePool) -> Vec<ContainerDetails> {
    let lists = [
        (ContainerKind::Init, &status.init_container_statuses),
        (ContainerKind::Main, &status.container_statuses),
        (ContainerKind::Ephemeral, &status.ephemeral_container_statuses),
    ];
    let mut read = Vec::new();
    for (kind, list) in lists {
        for one in list.iter().flatten() {
            let state = one.state.as_ref();
            let waiting = state.and_then(|state| state.waiting.as_ref()?.reason.as_deref());
            let ended = state.and_then(|state| state.terminated.as_ref());
            read.push(ContainerDetails {
                kind,
                restarts: u32::try_from(one.restart_count).unwrap_or(0),
                waiting: names.intern(waiting.unwrap_or_default()),
                terminated: names.intern(ended.and_then(|ended| ended.reason.as_deref()).unwrap_or_default()),
                exit_code: ended.map(|ended| ended.exit_code),
            });
        }
    }
    read
}

fn conditions(status: &core::PodStatus, names: &mut NamePool) -> Vec<ConditionDetails> {
    let one = |one: &core::PodCondition| ConditionDetails {
        kind: names.intern(&one.type_),
        status: names.intern(&one.status),
        reason: names.intern(one.reason.as_deref().unwrap_or_default()),
        since: one.last_transition_time.as_ref().map(|time| Time(time.0.as_millisecond())),
    };
    status.conditions.iter().flatten().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pod: serde_json::Value) -> PodDetails {
        let mut converter = Converter::new();
        converter.read_details();
        let pod = crate::json::pod(pod).expect("a pod");
        let (spec, problems) = converter.pod(&pod);
        assert!(problems.is_empty(), "{problems:?}");
        spec.expect("a pod").details.map(|details| (*details).clone()).expect("details")
    }

    #[test]
    fn a_pod_with_all_of_it() {
        let details = read(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "p", "namespace": "n", "annotations": {"kubernetes.io/config.source": "file"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}],
            },
            "spec": {
                "containers": [
                    {"name": "a", "image": "x", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
                    {"name": "b", "image": "x", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}}],
            },
            "status": {
                "phase": "Running", "reason": "Shutdown",
                "containerStatuses": [{
                    "name": "a", "restartCount": 7, "ready": false, "image": "", "imageID": "",
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                }],
                "initContainerStatuses": [{
                    "name": "i", "restartCount": 1, "ready": false, "image": "", "imageID": "",
                    "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                }],
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:00:07Z"}],
            },
        }));
        assert_eq!((&*details.owners[0].kind, &*details.owners[0].uid), ("ReplicaSet", "u"));
        assert_eq!((details.qos, details.is_static, details.local_storage), (QosClass::Guaranteed, true, true));
        assert_eq!(details.limits, (1_500, 2 << 30));
        assert_eq!((details.storage_claims.len(), details.images.len(), &*details.reason), (1, 1, "Shutdown"));
        assert_eq!((details.containers[0].exit_code, details.containers[1].restarts), (Some(137), 7));
        assert_eq!(&*details.containers[1].waiting, "CrashLoopBackOff");
        assert_eq!(details.conditions[0].since, Some(Time(7_000)));
    }

    #[test]
    fn classes_of_service() {
        for (resources, wanted) in [
            (json!({}), QosClass::BestEffort),
            (json!({"requests": {"cpu": "1"}}), QosClass::Burstable),
            (json!({"limits": {"cpu": "1"}}), QosClass::Burstable),
            (json!({"limits": {"cpu": "1", "memory": "1"}}), QosClass::Guaranteed),
            (json!({"limits": {"cpu": "2", "memory": "1"}, "requests": {"cpu": "1"}}), QosClass::Burstable),
        ] {
            let details = read(json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"containers": [{"name": "a", "resources": resources}]},
            }));
            assert_eq!(details.qos, wanted, "{resources}");
        }
    }

    #[test]
    fn nobody_reads_it_unless_asked_to() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}});
        let pod = crate::json::pod(pod).expect("a pod");
        assert!(Converter::new().pod(&pod).0.expect("a pod").details.is_none());
    }
}
