//! The objects of the model API server.

use std::collections::{BTreeMap, BTreeSet};

use krafla_model::dra::{DeviceClassSpec, ResourceClaimSpec, ResourceSliceSpec};
use krafla_model::ids::Lookup;
use krafla_model::pod_affinity::{NamespaceSpec, Workload, WorkloadSpec};
use krafla_model::priority::PriorityClassSpec;
use krafla_model::resources::GPU_NAME;
use krafla_model::storage::{ClaimSpec, Storage};
use krafla_model::{
    BudgetSpec, ElasticQuotaSpec, Event, JobPhase, Name, NodeSpec, PodGroupSpec, PodPhase, PodSpec, QueueSpec,
    QuotaSpec, Time,
};

use super::objects::{Life, Submitted};
use super::rollout::Rollout;

/// A pod of the world.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The pod as the API has it.
    pub spec: PodSpec,
    /// Index of its job.
    pub job: usize,
    /// What its life will be.
    pub life: Life,
    /// When it was bound.
    pub bound: Option<Time>,
    /// When it started.
    pub started: Option<Time>,
    /// Whether it is gone from the API.
    pub gone: bool,
    /// Whether the scheduler is told of it before it has a node.
    pub ours: bool,
    /// Whether the scheduler evicted it.
    pub evicted: bool,
    /// How long it does again what was done before, before it goes on from its checkpoint, in milliseconds.
    pub restart_ms: i64,
    /// Claims that are made with it.
    pub claims: Vec<ClaimSpec>,
    /// Whether a pod was made in its place.
    pub replaced: bool,
    /// The revision of its job that it is of.
    pub(super) revision: u32,
}

impl Pod {
    /// What it holds of GPUs in so many milliseconds: thousandths of a device times milliseconds.
    pub(super) fn gpu_time(&self, ms: i64) -> i64 {
        self.spec.shape.request.get(GPU_NAME).unwrap_or(0).saturating_mul(ms)
    }

    /// Whether it has ended or is gone.
    pub fn is_over(&self) -> bool {
        self.gone || matches!(self.spec.phase, PodPhase::Succeeded | PodPhase::Failed)
    }
}

/// A job of the world.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its queue.
    pub queue: Name,
    /// What kind of application it is.
    pub kind: String,
    /// Pods needed to start.
    pub min_member: u32,
    /// Indices of its pods; those made again are appended.
    pub pods: Vec<usize>,
    /// When it was submitted.
    pub submitted: Time,
    /// When its minimum had nodes for the first time.
    pub placed: Option<Time>,
    /// When its first pod ran.
    pub started: Option<Time>,
    /// When its last pod ended.
    pub finished: Option<Time>,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Pods that have a node and have not ended.
    pub holding: u32,
    /// Pods that are neither ended nor gone.
    pub alive: u32,
    /// Pods that were evicted by the scheduler.
    pub evictions: u32,
    /// GPU time in which its pods did not get on, since they had been evicted or lost: thousandths of a device times
    /// milliseconds.
    pub lost_gpu: i64,
    /// Whether it was deleted.
    pub deleted: bool,
    /// How often what its pods are made from has changed.
    pub(super) revision: u32,
    /// The change that is under way.
    pub(super) rollout: Option<Rollout>,
    /// Whether its PodGroup goes with the last of its pods.
    pub(super) goes_with_pods: bool,
    /// Whether its PodGroup is in the API.
    pub(super) group: Option<PodGroupSpec>,
}

impl Job {
    /// Whether it has not been let into its queue.
    pub(super) fn is_at_the_door(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.phase == JobPhase::Pending)
    }
}

/// Everything in the API.
#[derive(Default)]
pub(super) struct Store {
    pub(super) pods: Vec<Pod>,
    pub(super) jobs: Vec<Job>,
    pub(super) nodes: BTreeMap<Name, NodeSpec>,
    /// Claims of devices, by namespace and name.
    pub(super) claims: BTreeMap<(Name, Name), ResourceClaimSpec>,
    /// What claims are made from, by namespace and name.
    pub(super) claim_templates: BTreeMap<(Name, Name), ResourceClaimSpec>,
    /// Classes of devices.
    pub(super) device_classes: BTreeMap<Name, DeviceClassSpec>,
    /// Devices that there are.
    pub(super) slices: BTreeMap<Name, ResourceSliceSpec>,
    /// How many claims of devices were ever made.
    pub(super) n_claims: usize,
    /// Names of nodes that are gone.
    pub(super) former_nodes: BTreeSet<Name>,
    pub(super) queues: BTreeMap<Name, QueueSpec>,
    pub(super) priority_classes: BTreeMap<Name, PriorityClassSpec>,
    pub(super) quotas: BTreeMap<(Name, Name), QuotaSpec>,
    pub(super) elastic_quotas: BTreeMap<(Name, Name), ElasticQuotaSpec>,
    pub(super) namespaces: BTreeMap<Name, NamespaceSpec>,
    pub(super) workloads: BTreeMap<(Name, Workload), WorkloadSpec>,
    pub(super) storage: Storage,
    pub(super) budgets: BTreeMap<(Name, Name), BudgetSpec>,
    /// Budgets that came without a status, which is counted here.
    pub(super) counted_budgets: BTreeSet<(Name, Name)>,
    /// Pods that are gone and will be made again.
    pub(super) awaited_pods: BTreeSet<usize>,
    pub(super) n_finished: usize,
    by_uid: Lookup<Name, usize>,
    by_name: Lookup<(Name, Name), usize>,
    job_by_name: Lookup<(Name, Name), usize>,
}

impl Store {
    pub(super) fn find_pod(&self, uid: &Name) -> Option<usize> {
        self.by_uid.get(uid).copied()
    }

    pub(super) fn pod_named(&self, namespace: &Name, name: &Name) -> Option<usize> {
        let index = self.by_name.get(&(namespace.clone(), name.clone())).copied()?;
        (!self.pods[index].gone).then_some(index)
    }

    /// The newest pod of a name, in a namespace or in any; one that lives before one that has ended.
    pub(super) fn find_pod_named(&self, namespace: Option<&Name>, name: &Name) -> Option<usize> {
        let fits = |pod: &Pod| {
            !pod.gone && pod.spec.name == *name && namespace.is_none_or(|namespace| pod.spec.namespace() == namespace)
        };
        let fitting = || (0..self.pods.len()).rev().filter(|&i| fits(&self.pods[i]));
        fitting().find(|&i| !self.pods[i].is_over()).or_else(|| fitting().next())
    }

    /// The newest job of a name that was not deleted, in a namespace or in any.
    pub(super) fn find_job(&self, namespace: Option<&Name>, name: &Name) -> Option<usize> {
        let here = |job: &Job| namespace.is_none_or(|namespace| job.namespace == *namespace);
        (0..self.jobs.len()).rev().find(|&i| !self.jobs[i].deleted && self.jobs[i].name == *name && here(&self.jobs[i]))
    }

    pub(super) fn job_named(&self, namespace: &Name, name: &Name) -> Option<usize> {
        self.job_by_name.get(&(namespace.clone(), name.clone())).copied()
    }

    pub(super) fn add_job(&mut self, group: &PodGroupSpec, announced: bool, kind: String, now: Time) -> usize {
        let index = self.jobs.len();
        self.job_by_name.insert((group.namespace.clone(), group.name.clone()), index);
        self.jobs.push(Job {
            namespace: group.namespace.clone(),
            name: group.name.clone(),
            queue: group.queue.clone(),
            kind,
            min_member: group.min_member,
            pods: Vec::new(),
            submitted: now,
            placed: None,
            started: None,
            finished: None,
            succeeded: 0,
            holding: 0,
            alive: 0,
            evictions: 0,
            lost_gpu: 0,
            deleted: false,
            revision: 0,
            rollout: None,
            goes_with_pods: false,
            group: announced.then(|| group.clone()),
        });
        index
    }

    /// Makes a pod of a job. The number of pods ever made is in its UID, so a name that comes back is a new pod.
    pub(super) fn add_pod(&mut self, job: usize, plan: Submitted, priority: i32, now: Time) -> usize {
        let index = self.pods.len();
        let owner = &mut self.jobs[job];
        let (group, revision) = (Some(owner.name.clone()), owner.revision);
        owner.pods.push(index);
        owner.alive += 1;
        let spec = PodSpec {
            uid: format!("{}/{}#{index}", plan.shape.namespace, plan.name).into(),
            name: plan.name,
            group,
            shape: plan.shape,
            created: now,
            priority,
            gates: plan.gates,
            node: None,
            nominated: None,
            phase: PodPhase::Pending,
            deleting: false,
            started: None,
            attained_ms: plan.attained_ms,
            details: plan.details,
            scheduled_at: None,
            claims: plan.device_claims,
        };
        self.by_uid.insert(spec.uid.clone(), index);
        self.by_name.insert((spec.namespace().clone(), spec.name.clone()), index);
        self.pods.push(Pod {
            spec,
            job,
            life: plan.life,
            bound: None,
            started: None,
            gone: false,
            ours: plan.ours,
            evicted: false,
            restart_ms: plan.restart_ms,
            claims: plan.claims,
            replaced: false,
            revision,
        });
        index
    }

    pub(super) fn remove_pod(&mut self, index: usize) {
        let pod = &mut self.pods[index];
        pod.gone = true;
        let uid = pod.spec.uid.clone();
        self.by_uid.remove(&uid);
    }

    pub(super) fn set_phase(&mut self, namespace: &Name, name: &Name, phase: JobPhase) {
        if let Some(index) = self.job_named(namespace, name)
            && let Some(group) = &mut self.jobs[index].group
        {
            group.phase = phase;
        }
    }

    /// Every object that there is, as a list would give them.
    pub(super) fn list(&self) -> impl Iterator<Item = Event> {
        let classes = self.priority_classes.values().cloned().map(Event::PriorityClass);
        let queues = self.queues.values().cloned().map(Event::Queue);
        let nodes = self.nodes.values().cloned().map(Event::Node);
        let quotas = self.quotas.values().cloned().map(Event::Quota);
        let elastic_quotas = self.elastic_quotas.values().cloned().map(Event::ElasticQuota);
        let namespaces = self.namespaces.values().cloned().map(Event::Namespace);
        let workloads = self.workloads.values().cloned().map(Event::Workload);
        let storage = self.storage.objects().map(Event::Storage);
        let device_classes = self.device_classes.values().cloned().map(Event::DeviceClass);
        let slices = self.slices.values().cloned().map(Event::ResourceSlice);
        let claims = self.claims.values().cloned().map(|claim| Event::ResourceClaim(Box::new(claim)));
        let groups = self.jobs.iter().filter_map(|job| job.group.clone()).map(Event::PodGroup);
        let pods = self.pods.iter().filter(|pod| !pod.gone && (pod.ours || pod.spec.node.is_some()));
        let pods = pods.map(|pod| Event::Pod(pod.spec.clone()));
        // After the pods: a status includes those that are known to terminate.
        let budgets = self.budgets.values().cloned().map(Event::Budget);
        classes
            .chain(queues)
            .chain(nodes)
            .chain(quotas)
            .chain(elastic_quotas)
            .chain(namespaces)
            .chain(workloads)
            .chain(device_classes)
            .chain(slices)
            .chain(claims)
            .chain(storage)
            .chain(groups)
            .chain(pods)
            .chain(budgets)
    }
}
