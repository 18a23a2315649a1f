//! What controllers make pods of: Deployments, ReplicaSets, StatefulSets, Jobs, and Volcano's Jobs.
//!
//! A simulation has no controllers; this says which pods they would make, so that one stand-in can act for all. The
//! pods of a Deployment are owned by the Deployment here, without the ReplicaSet between them.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodTemplateSpec, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::crds::{PartitionFields, TopologyFields, VolcanoJob, VolcanoTaskFields};
use crate::keys;
use crate::report::{annotation, namespace_of};
use crate::volumes::ephemeral_claim;

/// The most pods that one workload may have; more are a mistake.
pub const MOST_PODS: u32 = 1_000_000;

/// Kinds of workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` ReplicaSet.
    ReplicaSet,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `batch/v1` Job.
    Job,
    /// `batch.volcano.sh/v1alpha1` Job.
    VolcanoJob,
}

impl WorkloadKind {
    /// The kind's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::Job | Self::VolcanoJob => "Job",
        }
    }

    /// Its group and version in the API.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet => "apps/v1",
            Self::Job => "batch/v1",
            Self::VolcanoJob => "batch.volcano.sh/v1alpha1",
        }
    }

    /// Whether a pod that ended well is made again.
    pub const fn runs_for_ever(self) -> bool {
        matches!(self, Self::Deployment | Self::ReplicaSet | Self::StatefulSet)
    }
}

/// Something that a controller makes pods of.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its pods, by template.
    pub parts: Vec<Part>,
    /// What a Volcano Job says about its PodGroup.
    pub gang: Option<JobGang>,
}

/// Equal pods of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// The task's name in a Volcano Job, else empty.
    pub role: String,
    /// How many pods there are to be, or to end well.
    pub replicas: u32,
    /// How many of them there are at one time.
    pub at_once: u32,
    /// The number of the first pod.
    pub first_index: u32,
    /// How many the job needs to start; of Volcano Jobs.
    pub min_available: u32,
    /// Its partitions, if it has some; of Volcano Jobs.
    pub partition: Option<PartitionFields>,
    /// What the pods are.
    pub template: PodTemplateSpec,
    /// Claims that each pod has for itself; of StatefulSets.
    pub claims: Vec<PersistentVolumeClaim>,
}

/// What a Volcano Job says about its PodGroup.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobGang {
    /// Pods needed to start.
    pub min_available: u32,
    /// Its queue, empty for the default.
    pub queue: String,
    /// Its PriorityClass, perhaps empty.
    pub priority_class: String,
    /// Its constraint on the network.
    pub topology: Option<TopologyFields>,
}

impl Workload {
    /// Its namespace.
    pub fn namespace(&self) -> &str {
        namespace_of(&self.metadata)
    }

    /// How many pods it makes in all.
    pub fn n_pods(&self) -> u32 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.replicas))
    }

    /// All of its pods, as if they were made at once. [`Part::at_once`] says how many the controller would make first.
    pub fn pods(&self) -> impl Iterator<Item = Pod> {
        self.parts.iter().flat_map(move |part| (0..part.replicas).map(move |i| self.pod(part, i)))
    }

    /// Name of pod `i` of `part`, counted from 0: `name-<number>`, in a Volcano Job `name-<task>-<number>`.
    pub fn pod_name(&self, part: &Part, i: u32) -> String {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let number = part.first_index.saturating_add(i);
        match part.role.as_str() {
            "" => format!("{name}-{number}"),
            role => format!("{name}-{role}-{number}"),
        }
    }

    /// Pod `i` of `part`, counted from 0. It has no UID yet: a pod that is made again is another one.
    pub fn pod(&self, part: &Part, i: u32) -> Pod {
        let template = part.template.metadata.as_ref();
        let mut meta = ObjectMeta {
            name: Some(self.pod_name(part, i)),
            namespace: Some(self.namespace().to_owned()),
            labels: template.and_then(|meta| meta.labels.clone()),
            annotations: template.and_then(|meta| meta.annotations.clone()),
            owner_references: Some(vec![self.owner_reference()]),
            ..ObjectMeta::default()
        };
        let mut spec = part.template.spec.clone().unwrap_or_default();
        self.add_claims(part, meta.name.as_deref().unwrap_or_default(), &mut spec);
        if let Some(gang) = &self.gang {
            self.dress_volcano_pod(part, i, gang, &mut meta, &mut spec);
        }
        Pod { metadata: meta, spec: Some(spec), status: None }
    }

    /// The volumes of a pod that has claims for itself.
    fn add_claims(&self, part: &Part, pod: &str, spec: &mut PodSpec) {
        for template in &part.claims {
            let name = template.metadata.name.clone().unwrap_or_default();
            let volumes = spec.volumes.get_or_insert_default();
            volumes.retain(|volume| volume.name != name);
            volumes.push(Volume {
                persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                    claim_name: format!("{name}-{pod}"),
                    read_only: None,
                }),
                name,
                ..Volume::default()
            });
        }
    }

    /// The claims that controllers make for one of its pods: those of its ephemeral volumes, and of its own.
    pub fn claims(&self, part: &Part, pod: &Pod) -> Vec<PersistentVolumeClaim> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let mut claims = ephemeral_claims(pod);
        for template in &part.claims {
            let template_name = template.metadata.name.as_deref().unwrap_or_default();
            let mut claim = template.clone();
            claim.metadata.name = Some(format!("{template_name}-{name}"));
            claim.metadata.namespace = Some(self.namespace().to_owned());
            claims.push(claim);
        }
        claims
    }

    /// The reference by which its pods name it. Its UID is empty if it never met an API server.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.kind.api_version().to_owned(),
            kind: self.kind.as_str().to_owned(),
            name: self.metadata.name.clone().unwrap_or_default(),
            uid: self.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Name of the PodGroup of a Volcano Job: `<job>-<UID>`, or the job's own name where there is no UID.
    pub fn job_group_name(&self) -> String {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        match self.metadata.uid.as_deref().filter(|uid| !uid.is_empty()) {
            Some(uid) => format!("{name}-{uid}"),
            None => name.to_owned(),
        }
    }

    /// What Volcano's job controller writes into its pods.
    fn dress_volcano_pod(&self, part: &Part, i: u32, gang: &JobGang, meta: &mut ObjectMeta, spec: &mut PodSpec) {
        let job = self.metadata.name.clone().unwrap_or_default();
        let queue = if gang.queue.is_empty() { krafla_model::queue::DEFAULT_QUEUE } else { gang.queue.as_str() };
        let annotations = meta.annotations.get_or_insert_default();
        for (key, value) in [
            (keys::TASK_INDEX, i.to_string()),
            (keys::TASK_SPEC, part.role.clone()),
            (keys::GROUP_NAME, self.job_group_name()),
            (keys::JOB_NAME, job.clone()),
            (keys::JOB_QUEUE, queue.to_owned()),
        ] {
            annotations.insert(key.to_owned(), value);
        }
        let preemptable = annotation(&self.metadata, keys::PREEMPTABLE).map(str::to_owned);
        if let Some(text) = &preemptable {
            annotations.insert(keys::PREEMPTABLE.to_owned(), text.clone());
        }
        let labels: &mut BTreeMap<String, String> = meta.labels.get_or_insert_default();
        for (key, value) in [
            (keys::TASK_INDEX, Some(i.to_string())),
            (keys::TASK_SPEC, Some(part.role.clone())),
            (keys::JOB_NAME, Some(job)),
            (keys::JOB_NAMESPACE, Some(self.namespace().to_owned())),
            (keys::JOB_QUEUE, Some(queue.to_owned())),
            (keys::PREEMPTABLE, preemptable),
            (keys::PARTITION_ID, partition_of(part, i)),
        ] {
            if let Some(value) = value {
                labels.insert(key.to_owned(), value);
            }
        }
        if spec.priority_class_name.as_deref().unwrap_or_default().is_empty() && !gang.priority_class.is_empty() {
            spec.priority_class_name = Some(gang.priority_class.clone());
        }
    }

    pub(crate) fn of_deployment(deployment: Deployment) -> (Self, Vec<String>) {
        let spec = deployment.spec;
        let mut counts = Counts::default();
        let replicas = counts.read("spec.replicas", spec.replicas.map(i64::from), 1);
        let part = Part { replicas, at_once: replicas, template: spec.template, ..Part::default() };
        counts.workload(WorkloadKind::Deployment, deployment.metadata, vec![part], None)
    }

    pub(crate) fn of_replica_set(set: ReplicaSet) -> (Self, Vec<String>) {
        let spec = set.spec;
        let mut counts = Counts::default();
        let replicas = counts.read("spec.replicas", spec.replicas.map(i64::from), 1);
        let template = spec.template.unwrap_or_default();
        let part = Part { replicas, at_once: replicas, template, ..Part::default() };
        counts.workload(WorkloadKind::ReplicaSet, set.metadata, vec![part], None)
    }

    pub(crate) fn of_stateful_set(set: StatefulSet) -> (Self, Vec<String>) {
        let spec = set.spec;
        let mut counts = Counts::default();
        let replicas = counts.read("spec.replicas", spec.replicas.map(i64::from), 1);
        let start = spec.ordinals.and_then(|ordinals| ordinals.start).map(i64::from);
        let part = Part {
            replicas,
            // One after the other, unless told otherwise.
            at_once: if spec.pod_management_policy.as_deref() == Some("Parallel") { replicas } else { replicas.min(1) },
            first_index: counts.read("spec.ordinals.start", start, 0),
            template: spec.template,
            claims: spec.volume_claim_templates.unwrap_or_default(),
            ..Part::default()
        };
        counts.workload(WorkloadKind::StatefulSet, set.metadata, vec![part], None)
    }

    pub(crate) fn of_job(job: Job) -> (Self, Vec<String>) {
        let spec = job.spec.unwrap_or_default();
        let mut counts = Counts::default();
        let parallelism = counts.read("spec.parallelism", spec.parallelism.map(i64::from), 1);
        // Without a number of completions the pods share one queue of work, and there are as many as run at once.
        let replicas = counts.read("spec.completions", spec.completions.map(i64::from), parallelism);
        let at_once = if spec.suspend == Some(true) { 0 } else { parallelism.min(replicas) };
        let part = Part { replicas, at_once, template: spec.template, ..Part::default() };
        counts.workload(WorkloadKind::Job, job.metadata, vec![part], None)
    }

    pub(crate) fn of_volcano_job(job: VolcanoJob) -> (Self, Vec<String>) {
        let spec = job.spec.unwrap_or_default();
        let mut counts = Counts::default();
        let mut parts = Vec::new();
        for (i, task) in spec.tasks.unwrap_or_default().into_iter().enumerate() {
            let mut part = counts.task(i, task);
            let scheduler = part.template.spec.get_or_insert_default().scheduler_name.get_or_insert_default();
            if scheduler.is_empty() {
                *scheduler = spec.scheduler_name.clone().unwrap_or_else(|| DEFAULT_SCHEDULER.to_owned());
            }
            parts.push(part);
        }
        let sum = parts.iter().fold(0_u32, |sum, part| sum.saturating_add(part.min_available));
        let gang = JobGang {
            min_available: counts.read("spec.minAvailable", spec.min_available, sum),
            queue: spec.queue.unwrap_or_default(),
            priority_class: spec.priority_class_name.unwrap_or_default(),
            topology: spec.network_topology,
        };
        counts.workload(WorkloadKind::VolcanoJob, job.metadata, parts, Some(gang))
    }
}

/// The claims of a pod's ephemeral volumes, as their controller makes them, but for their owner.
pub fn ephemeral_claims(pod: &Pod) -> Vec<PersistentVolumeClaim> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let claim = |volume: &Volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
        let meta = template.metadata.clone().unwrap_or_default();
        Some(PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(ephemeral_claim(name, volume)),
                namespace: pod.metadata.namespace.clone(),
                labels: meta.labels,
                annotations: meta.annotations,
                ..ObjectMeta::default()
            },
            spec: Some(template.spec.clone()),
            status: None,
        })
    };
    volumes.filter_map(claim).collect()
}

/// The scheduler of a Volcano Job that names none.
const DEFAULT_SCHEDULER: &str = "volcano";

/// The partition of pod `i` of a task, if that has partitions.
fn partition_of(part: &Part, i: u32) -> Option<String> {
    let size = u32::try_from(part.partition.as_ref()?.partition_size?).ok()?;
    Some(i.checked_div(size)?.to_string())
}

/// Reads counts, and collects what is wrong with them.
#[derive(Default)]
struct Counts {
    problems: Vec<String>,
}

impl Counts {
    fn read(&mut self, field: &str, given: Option<i64>, default: u32) -> u32 {
        let Some(given) = given else { return default };
        match u32::try_from(given) {
            Ok(count) if count <= MOST_PODS => count,
            Ok(_) => {
                self.problems.push(format!("{field} is {given}, more than {MOST_PODS}; {MOST_PODS} are made"));
                MOST_PODS
            }
            Err(_) => {
                self.problems.push(format!("{field} is {given}, not a number of pods; it counts as 0"));
                0
            }
        }
    }

    fn task(&mut self, i: usize, task: VolcanoTaskFields) -> Part {
        let replicas = self.read(&format!("spec.tasks[{i}].replicas"), task.replicas, 1);
        let partitions = task.partition_policy.as_ref();
        let product = partitions.and_then(|policy| policy.min_partitions?.checked_mul(policy.partition_size?));
        let product = product.and_then(|product| u32::try_from(product).ok()).filter(|product| *product > 0);
        Part {
            role: task.name.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("default{i}")),
            replicas,
            at_once: replicas,
            first_index: 0,
            min_available: self.read(
                &format!("spec.tasks[{i}].minAvailable"),
                task.min_available,
                product.unwrap_or(replicas),
            ),
            partition: task.partition_policy,
            template: task.template.unwrap_or_default(),
            claims: Vec::new(),
        }
    }

    fn workload(
        self,
        kind: WorkloadKind,
        metadata: ObjectMeta,
        parts: Vec<Part>,
        gang: Option<JobGang>,
    ) -> (Workload, Vec<String>) {
        (Workload { kind, metadata, parts, gang }, self.problems)
    }
}

#[cfg(test)]
#[path = "workload_tests.rs"]
mod tests;
