//! What does a job of the file come to: a PodGroup and its pods?

use std::sync::Arc;

use std::collections::BTreeMap;

use krafla_api::keys;
use krafla_model::Name;
use krafla_model::pod_details::Owner;
use krafla_model::resources::GPU_NAME;
use serde_json::{Value, json};

use super::super::deed::Deed;
use super::super::format::{ControllerEntry, JobEntry, RoleEntry, TopologyEntry, Written};
use super::objects::{VOLCANO, one_of, set, whole_seconds};
use super::{Both, Builder, ms};
use crate::manifest;
use crate::world::{Controller, Happening, Life, Submission, Submitted};

impl Builder {
    pub(super) fn submit(&mut self, job: &JobEntry) -> Result<Both, String> {
        let name = job.job.as_deref().ok_or("a job needs its name: {job: NAME}")?;
        let roles: Vec<RoleEntry> = if job.roles.is_empty() {
            vec![RoleEntry {
                replicas: job.replicas.unwrap_or(1),
                request: job.request.clone(),
                gpu: job.gpu.clone(),
                request_gpu_milli: job.request_gpu_milli,
                ..RoleEntry::default()
            }]
        } else {
            job.roles.clone()
        };
        let minimums: BTreeMap<&str, u32> =
            roles.iter().filter_map(|role| Some((role.name.as_str(), role.min?))).collect();
        let sum: u32 = minimums.values().sum();
        let min_member = job.min_member.unwrap_or(if minimums.is_empty() { 1 } else { sum });
        let mut spec = json!({ "minMember": min_member, "queue": job.queue.as_deref().unwrap_or("default") });
        set(&mut spec, "minTaskMember", (!minimums.is_empty()).then(|| json!(minimums)));
        set(&mut spec, "priorityClassName", job.priority.as_ref().map(|class| json!(class)));
        set(&mut spec, "minResources", job.min_resources.as_ref().map(|list| json!(list)));
        set(&mut spec, "networkTopology", job.topology.as_ref().map(network_topology));
        let mut annotations = job.annotations.clone();
        if let Some(estimate) = &job.estimate {
            annotations.insert(krafla_api::keys::ESTIMATE.to_owned(), estimate.clone());
        }
        let manifest = json!({
            "apiVersion": VOLCANO,
            "kind": "PodGroup",
            "metadata": { "name": name, "namespace": namespace(job), "annotations": annotations, "labels": job.labels },
            "spec": spec,
        });
        let group = krafla_api::json::pod_group(manifest.clone())?;
        let (group, problems) = self.converter.pod_group(&group);
        let group = group.ok_or_else(|| one_of(&problems))?;
        let (mut pods, mut manifests) = (Vec::new(), Vec::new());
        for role in &roles {
            let names = (0..role.replicas).map(|k| match role.name.as_str() {
                "" => format!("{name}-{k}"),
                role => format!("{name}-{role}-{k}"),
            });
            let made = self.pods_of(job, role, names.map(Name::from).collect(), Some(name))?;
            pods.extend(made.pods);
            manifests.extend(made.manifests);
        }
        let happening = Happening::Submit(Box::new(Submission {
            group,
            announced: true,
            joins: false,
            goes_with_pods: false,
            pods,
            kind: String::new(),
        }));
        let recreate = job.controller == ControllerEntry::Recreate;
        Ok(Both::of(happening, Deed::Submit { group: Some(manifest), pods: manifests, recreate }))
    }

    pub(super) fn pod(&mut self, job: &JobEntry) -> Result<Both, String> {
        let name = job.name.as_deref().or(job.job.as_deref()).ok_or("a pod needs its `name`")?;
        let role = RoleEntry {
            request: job.request.clone(),
            gpu: job.gpu.clone(),
            request_gpu_milli: job.request_gpu_milli,
            ..RoleEntry::default()
        };
        let Made { pods, mut manifests, template } = self.pods_of(job, &role, vec![name.into()], None)?;
        let (group, problems) = self.converter.implicit_group(&template, None);
        let mut group = group.ok_or_else(|| one_of(&problems))?;
        if let Some(queue) = &job.queue {
            group.queue = queue.into();
            for manifest in &mut manifests {
                manifest["metadata"]["annotations"][keys::QUEUE_NAME] = json!(queue);
            }
        }
        // Volcano's controller makes PodGroups for pods of its own scheduler only.
        let announced = pods.iter().all(|pod| pod.ours);
        let happening = Happening::Submit(Box::new(Submission {
            group,
            announced,
            joins: false,
            goes_with_pods: true,
            pods,
            kind: String::new(),
        }));
        let recreate = job.controller == ControllerEntry::Recreate;
        Ok(Both::of(happening, Deed::Submit { group: None, pods: manifests, recreate }))
    }

    /// Equal pods under these names, and the pod that they are made from.
    fn pods_of(
        &mut self,
        job: &JobEntry,
        role: &RoleEntry,
        names: Vec<Name>,
        group: Option<&str>,
    ) -> Result<Made, String> {
        let usual = self.schedulers.first().map_or("volcano", String::as_str);
        let manifest = pod_json(job, role, names.first().map_or("pod", |name| name.as_str()), group, usual)?;
        let pod = krafla_api::json::pod(manifest.clone())?;
        let (spec, problems) = self.converter.pod(&pod);
        let mut spec = spec.ok_or_else(|| one_of(&problems))?;
        Arc::make_mut(&mut spec.shape).controlled = job.controller == ControllerEntry::Recreate;
        let details = spec.details.take().map(|details| {
            let mut details = (*details).clone();
            if job.controller == ControllerEntry::Recreate && details.owners.is_empty() {
                let name: Name = job.job.as_deref().or(job.name.as_deref()).unwrap_or_default().into();
                details.owners.push(Owner { kind: "ReplicaSet".into(), uid: name.clone(), name });
            }
            Arc::new(details)
        });
        self.notes.extend(problems.iter().map(|problem| format!("{}: {}", problem.object, problem.message)));
        let read = |text: Option<&Written>, key| text.map_or(Ok(None), |text| ms(text, key).map(Some));
        let life = Life {
            runtime_ms: read(role.runtime.as_ref().or(job.runtime.as_ref()), "runtime")?,
            estimate_ms: read(job.estimate.as_ref(), "estimate")?,
            grace_ms: read(job.grace.as_ref(), "grace")?,
            controller: match job.controller {
                ControllerEntry::None => Controller::None,
                ControllerEntry::Recreate => Controller::Recreate,
            },
        };
        let mut template = manifest;
        // Whoever plays it on a cluster knows the scheduler of pods that name none.
        if let (None, Some(spec)) = (&job.scheduler, template["spec"].as_object_mut()) {
            spec.remove("schedulerName");
        }
        let manifests = names.iter().map(|name| living(&template, name, life, self.evict_grace_ms)).collect();
        let ours = job.scheduler.as_deref().is_none_or(|name| self.schedulers.iter().any(|known| known == name));
        let pods = names
            .into_iter()
            .map(|name| Submitted {
                priority: manifest::own_priority(&pod).then_some(spec.priority),
                gates: spec.gates.clone(),
                details: details.clone(),
                ours,
                ..Submitted::new(name, spec.shape.clone(), life)
            })
            .collect();
        Ok(Made { pods, manifests, template: pod })
    }
}

/// Equal pods.
struct Made {
    pods: Vec<Submitted>,
    manifests: Vec<Value>,
    /// The pod that they are made from.
    template: k8s_openapi::api::core::v1::Pod,
}

/// A pod of a template under its own name, with its life as a kubelet reads it.
fn living(template: &Value, name: &Name, life: Life, evict_grace_ms: i64) -> Value {
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!(name);
    if let Some(ms) = life.runtime_ms {
        pod["metadata"]["annotations"][keys::RUNTIME] = json!(format!("{ms}ms"));
    }
    pod["spec"]["terminationGracePeriodSeconds"] = json!(whole_seconds(life.grace_ms.unwrap_or(evict_grace_ms)));
    pod
}

fn namespace(job: &JobEntry) -> &str {
    job.namespace.as_deref().unwrap_or("default")
}

fn network_topology(topology: &TopologyEntry) -> Value {
    let mut spec = json!({ "mode": topology.mode.as_deref().unwrap_or("hard") });
    set(&mut spec, "highestTierAllowed", topology.highest_tier.map(|tier| json!(tier)));
    set(&mut spec, "highestTierName", topology.highest_tier_name.as_ref().map(|name| json!(name)));
    spec
}

/// A pod as a manifest would have it.
fn pod_json(
    job: &JobEntry,
    role: &RoleEntry,
    name: &str,
    group: Option<&str>,
    usual_scheduler: &str,
) -> Result<Value, String> {
    let mut requests = role.request.clone();
    // A thousand thousandths are a device.
    if role.request_gpu_milli == Some(1000) {
        requests.insert(GPU_NAME.to_owned(), "1".to_owned());
    }
    if let Some(gpu) = &role.gpu {
        requests.insert(GPU_NAME.to_owned(), gpu.clone());
    }
    let mut annotations = job.annotations.clone();
    if let Some(group) = group {
        annotations.insert("scheduling.k8s.io/group-name".to_owned(), group.to_owned());
    }
    if let Some(milli) = role.request_gpu_milli.filter(|milli| !matches!(milli, 0 | 1000)) {
        annotations.insert(krafla_api::keys::GPU_MILLI.to_owned(), milli.to_string());
    }
    if let Some(preemptable) = job.preemptable {
        annotations.insert("volcano.sh/preemptable".to_owned(), preemptable.to_string());
    }
    let mut labels = job.labels.clone();
    labels.extend(role.labels.clone());
    if !role.name.is_empty() {
        annotations.insert("volcano.sh/task-spec".to_owned(), role.name.clone());
    }
    let mut selector = job.node_selector.clone();
    selector.extend(role.node_selector.clone());
    let images = if job.images.is_empty() { vec![String::new()] } else { job.images.clone() };
    let containers: Vec<Value> = images
        .iter()
        .enumerate()
        .map(|(i, image)| {
            let mut container = json!({ "name": format!("c{i}") });
            set(&mut container, "image", (!image.is_empty()).then(|| json!(image)));
            if i == 0 {
                container["resources"] = json!({ "requests": requests });
                let ports: Vec<Value> =
                    job.host_ports.iter().map(|port| json!({ "containerPort": port, "hostPort": port })).collect();
                container["ports"] = json!(ports);
            }
            container
        })
        .collect();
    let mut spec = json!({
        "containers": containers,
        "nodeSelector": selector,
        "tolerations": job.tolerations,
        "topologySpreadConstraints": job.topology_spread,
        "schedulingGates": job.gates.iter().map(|gate| json!({ "name": gate })).collect::<Vec<_>>(),
        "schedulerName": job.scheduler.as_deref().unwrap_or(usual_scheduler),
    });
    set(&mut spec, "affinity", job.affinity.clone());
    set(&mut spec, "priorityClassName", job.priority.as_ref().map(|class| json!(class)));
    set(&mut spec, "priority", role.priority.map(|priority| json!(priority)));
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace(job), "labels": labels, "annotations": annotations },
        "spec": spec,
    }))
}
