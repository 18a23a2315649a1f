//! A pod as the watch reads it: what scheduling asks of one, and nothing else.
//!
//! Most of a pod (who managed which field, environments, probes, mounts) is of no use here. Skipping it while it is read,
//! rather than dropping it afterwards, halves what an event costs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Container, ContainerPort, ContainerRestartRule, ContainerStatus, Pod, PodCondition, PodResourceClaim,
    PodResourceClaimStatus, PodSchedulingGate, PodSchedulingGroup, PodSpec, PodStatus, ResourceRequirements,
    Toleration, TopologySpreadConstraint, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// A pod without what scheduling does not ask for.
#[derive(Clone, Debug)]
pub(crate) struct ThinPod(pub(crate) Pod);

impl<'de> Deserialize<'de> for ThinPod {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Parts { metadata, spec, status } = Parts::deserialize(from)?;
        Ok(Self(Pod { metadata: metadata.into(), spec: spec.map(PodSpec::from), status: status.map(PodStatus::from) }))
    }
}

impl Resource for ThinPod {
    type DynamicType = ();
    type Scope = <Pod as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<Status>,
}

/// Fields that are kept of a type of Kubernetes.
macro_rules! kept {
    ($name:ident of $whole:ident { $($field:ident: $type:ty),* $(,)? }) => {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct $name {
            $($field: $type,)*
        }

        impl From<$name> for $whole {
            fn from(kept: $name) -> Self {
                Self { $($field: kept.$field.into_whole(),)* ..Self::default() }
            }
        }
    };
}

kept!(Metadata of ObjectMeta {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
});

kept!(Spec of PodSpec {
    affinity: Option<Affinity>,
    containers: List<ThinContainer>,
    host_network: Option<bool>,
    host_users: Option<bool>,
    init_containers: Option<List<ThinContainer>>,
    node_name: Option<String>,
    node_selector: Option<BTreeMap<String, String>>,
    overhead: Option<BTreeMap<String, Quantity>>,
    preemption_policy: Option<String>,
    priority: Option<i32>,
    priority_class_name: Option<String>,
    resource_claims: Option<Vec<PodResourceClaim>>,
    resources: Option<ResourceRequirements>,
    scheduler_name: Option<String>,
    scheduling_gates: Option<Vec<PodSchedulingGate>>,
    scheduling_group: Option<PodSchedulingGroup>,
    tolerations: Option<Vec<Toleration>>,
    topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    volumes: Option<Vec<Volume>>,
});

kept!(ThinContainer of Container {
    image: Option<String>,
    name: String,
    ports: Option<Vec<ContainerPort>>,
    resources: Option<ResourceRequirements>,
    restart_policy: Option<String>,
    restart_policy_rules: Option<Vec<ContainerRestartRule>>,
});

kept!(Status of PodStatus {
    conditions: Option<Vec<PodCondition>>,
    container_statuses: Option<Vec<ContainerStatus>>,
    ephemeral_container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
    nominated_node_name: Option<String>,
    phase: Option<String>,
    qos_class: Option<String>,
    reason: Option<String>,
    resize: Option<String>,
    resource_claim_statuses: Option<Vec<PodResourceClaimStatus>>,
    start_time: Option<Time>,
});

/// A list that may be null.
#[derive(Default)]
struct List<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<Vec<T>>::deserialize(from)?.unwrap_or_default()))
    }
}

/// From what is read to what Kubernetes' type has.
trait IntoWhole<W> {
    fn into_whole(self) -> W;
}

impl<T> IntoWhole<T> for T {
    fn into_whole(self) -> T {
        self
    }
}

impl<T> IntoWhole<Vec<Container>> for List<T>
where
    Container: From<T>,
{
    fn into_whole(self) -> Vec<Container> {
        self.0.into_iter().map(Container::from).collect()
    }
}

impl<T> IntoWhole<Option<Vec<Container>>> for Option<List<T>>
where
    Container: From<T>,
{
    fn into_whole(self) -> Option<Vec<Container>> {
        self.map(List::into_whole)
    }
}

#[cfg(test)]
mod tests {
    use krafla_api::Converter;
    use serde_json::{Value, json};

    use super::*;

    /// A pod with everything that the API knows, as far as it has a say in scheduling.
    fn whole() -> Value {
        let term = json!({ "matchExpressions": [{ "key": "pool", "operator": "In", "values": ["a"] }] });
        let like = json!({ "labelSelector": { "matchLabels": { "app": "x" } }, "topologyKey": "zone" });
        let container = json!({
            "name": "main", "image": "registry.example.com/train:1", "command": ["train"], "args": ["--all"],
            "env": [{ "name": "RANK", "value": "1" }], "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            "ports": [{ "containerPort": 80, "hostPort": 8080, "protocol": "TCP" }],
            "resources": {
                "requests": { "cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1" },
                "limits": { "cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1" },
                "claims": [{ "name": "device" }],
            },
            "restartPolicyRules": [{ "action": "RestartAllContainers", "exitCodes": { "operator": "In", "values": [1] } }],
            "livenessProbe": { "httpGet": { "path": "/", "port": 80 } },
        });
        let mut sidecar = container.clone();
        sidecar["name"] = json!("sidecar");
        sidecar["restartPolicy"] = json!("Always");
        let state = json!([{
            "name": "main", "restartCount": 3, "ready": false, "image": "x", "imageID": "y",
            "state": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
            "lastState": { "waiting": { "reason": "CrashLoopBackOff" } },
        }]);
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 2,
                "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
                "finalizers": ["example.com/keep"], "labels": { "app": "x" },
                "annotations": { "scheduling.k8s.io/group-name": "g", "volcano.sh/preemptable": "true" },
                "managedFields": [{ "manager": "m", "operation": "Update", "fieldsV1": { "f:spec": {} } }],
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": true,
                }],
            },
            "spec": {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] },
                        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 2, "preference": term }],
                    },
                    "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [like] },
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 3, "podAffinityTerm": like }],
                    },
                },
                "containers": [container], "initContainers": [sidecar],
                "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "serviceAccountName": "default",
                "hostNetwork": true, "hostUsers": false, "nodeName": "node-1", "nodeSelector": { "disk": "ssd" },
                "overhead": { "cpu": "10m" }, "preemptionPolicy": "Never", "priority": 7, "priorityClassName": "high",
                "resourceClaims": [{ "name": "device", "resourceClaimTemplateName": "t" }],
                "resources": { "requests": { "cpu": "3" } },
                "schedulerName": "volcano", "schedulingGates": [{ "name": "gate" }],
                "schedulingGroup": { "podGroupName": "native" },
                "tolerations": [{ "key": "gpu", "operator": "Exists" }],
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": { "matchLabels": { "app": "x" } },
                }],
                "volumes": [
                    { "name": "data", "persistentVolumeClaim": { "claimName": "claim" } },
                    { "name": "scratch", "emptyDir": {} },
                ],
            },
            "status": {
                "phase": "Running", "reason": "Why", "nominatedNodeName": "node-2", "qosClass": "Burstable",
                "startTime": "2026-01-01T00:00:05Z", "resize": "Infeasible", "podIP": "10.0.0.1",
                "conditions": [
                    { "type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:04Z" },
                ],
                "containerStatuses": state, "initContainerStatuses": state, "ephemeralContainerStatuses": state,
                "resourceClaimStatuses": [{ "name": "device", "resourceClaimName": "device-1" }],
            },
        })
    }

    /// The paths of all fields below `value`, parents too.
    fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    found.push(path.clone());
                    paths(value, &path, found);
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    paths(item, &format!("{at}/{i}"), found);
                }
            }
            _ => {}
        }
    }

    fn removed(mut value: Value, path: &str) -> Value {
        let (parent, key) = path.rsplit_once('/').expect("a path");
        let key = key.replace("~1", "/").replace("~0", "~");
        value.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object").remove(&key);
        value
    }

    /// What the scheduler and the descheduler know of the pod.
    fn read(pod: &Pod) -> String {
        let mut converter = Converter::new();
        converter.read_details();
        converter.keep_annotations(&["example.com/kept"]);
        format!("{:?} {:?} {:?}", converter.pod(pod), krafla_api::group_of(pod), krafla_api::implicit_group_name(pod))
    }

    #[test]
    fn nothing_is_lost_that_scheduling_asks_for() {
        // Whole, with and without a node, and without each of its fields: wherever that changes what the whole pod says,
        // it changes what the thin one says.
        let whole = whole();
        let waiting = removed(removed(whole.clone(), "/spec/nodeName"), "/metadata/deletionTimestamp");
        let mut compared = 0;
        for base in [whole, waiting] {
            let mut all = Vec::new();
            paths(&base, "", &mut all);
            let without = all.iter().map(|path| removed(base.clone(), path));
            for value in std::iter::once(base.clone()).chain(without) {
                let Ok(pod) = serde_json::from_value::<Pod>(value.clone()) else { continue };
                let thin: ThinPod = serde_json::from_value(value.clone()).expect("what the whole can be, the thin can");
                assert_eq!(read(&thin.0), read(&pod), "{value}");
                compared += 1;
            }
        }
        assert!(compared > 200, "{compared}");
    }

    #[test]
    fn what_is_of_no_use_is_skipped() {
        let ThinPod(pod) = serde_json::from_value(whole()).expect("a pod");
        assert!(pod.metadata.managed_fields.is_none());
        let container = &pod.spec.expect("a spec").containers[0];
        assert!(container.env.is_none() && container.liveness_probe.is_none() && container.volume_mounts.is_none());
    }

    #[test]
    fn lists_may_be_null() {
        let value = json!({ "metadata": { "name": "p", "labels": null }, "spec": { "containers": null, "initContainers": null } });
        let ThinPod(pod) = serde_json::from_value(value).expect("a pod");
        assert!(pod.spec.expect("a spec").containers.is_empty());
    }
}
