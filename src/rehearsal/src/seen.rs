//! What is seen of a cluster while a scenario is played: the place that expectations ask.
//!
//! Everything here comes from watches, but for what the player itself does and says: which jobs it submits and deletes,
//! and which pods it evicts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_api::crds::{PodGroup, Queue};
use krafla_api::{Converter, DEFAULT_NAMESPACE, group_of, implicit_group_name};
use krafla_model::queue::{DEFAULT_QUEUE, ROOT_QUEUE};
use krafla_model::{Amounts, JobPhase, NodeSpec, PodGroupSpec, PodPhase, PodSpec};
use krafla_simulator::scenario::{About, Holder, JobFacts, PodFacts, Stage};

use crate::admission::LABEL;
use crate::invariants::{Overfilled, Suspicions};
use crate::names::Names;

/// Reasons of the condition `DisruptionTarget` that are no scheduler's doing.
const OTHERS_DISRUPT: [&str; 4] =
    ["DeletionByPodGC", "DeletionByTaintManager", "DeletionByDeviceTaintManager", "TerminationByKubelet"];
/// Reasons of events by which schedulers tell of an eviction: Krafla and Volcano, and kube-scheduler.
const EVICTED: [&str; 2] = ["Evict", "Preempted"];

/// Namespace and name.
pub(crate) type Key = (String, String);

/// A pod that came while the scenario was played.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) spec: PodSpec,
    pub(crate) job: usize,
    pub(crate) gone: bool,
    pub(crate) evicted: bool,
    /// When it is over by itself, once it runs.
    pub(crate) ends: Option<Instant>,
    runtime: Option<std::time::Duration>,
    /// Lost before it ended.
    lost: bool,
}

impl Pod {
    fn over(&self) -> bool {
        self.gone || matches!(self.spec.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// Whether it holds its node.
    pub(crate) fn holds(&self) -> bool {
        self.spec.node.is_some() && !self.over()
    }
}

/// A job: a PodGroup of a time, and its pods.
#[derive(Debug, Default)]
pub(crate) struct Job {
    pub(crate) key: Key,
    pub(crate) pods: Vec<usize>,
    pub(crate) group: Option<PodGroupSpec>,
    queue: String,
    deleted: bool,
}

/// What is seen.
#[derive(Default)]
pub(crate) struct Seen {
    names: Names,
    /// On a cluster of somebody, the label of what is the scenario's.
    label: Option<String>,
    converter: Converter,
    pub(crate) pods: Vec<Pod>,
    by_uid: BTreeMap<String, usize>,
    /// Pods that were there before: whose node, and what they hold of it.
    strangers: BTreeMap<String, Option<(String, Amounts)>>,
    listed: BTreeSet<String>,
    pub(crate) jobs: Vec<Job>,
    /// The newest job of a PodGroup's name.
    job_of: BTreeMap<Key, usize>,
    pub(crate) nodes: BTreeMap<String, NodeSpec>,
    former_nodes: BTreeSet<String>,
    queues: BTreeMap<String, String>,
    events: BTreeMap<String, BTreeSet<String>>,
    /// Pods that the player evicts or deletes itself.
    own: BTreeSet<String>,
    lost: Vec<usize>,
    pub(crate) suspicions: Suspicions,
    /// When a pod, a PodGroup or a node last changed.
    changed: Option<Instant>,
    /// Whether what comes from now on is the scenario's.
    begun: bool,
}

impl Seen {
    /// Nothing is seen yet.
    pub(crate) fn new(names: Names, label: Option<String>) -> Self {
        Self { names, label, ..Self::default() }
    }

    /// What is there is not the scenario's; what comes from now on is.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
        self.changed = None;
    }

    /// When something of a pod, a PodGroup or a node last changed.
    pub(crate) fn last_change(&self) -> Option<Instant> {
        self.changed
    }

    /// The player submits a job: what comes under its name is a new one.
    pub(crate) fn submitted(&mut self, key: &Key, queue: &str) {
        let job = self.open_job(key);
        self.jobs[job].queue = queue.to_owned();
    }

    /// The player deletes a job.
    pub(crate) fn deleted(&mut self, key: &Key) {
        if let Some(&job) = self.job_of.get(key) {
            self.jobs[job].deleted = true;
        }
    }

    /// What becomes of this pod is the player's doing, no scheduler's.
    pub(crate) fn hands_on(&mut self, uid: &str) {
        self.own.insert(uid.to_owned());
    }

    /// The newest live pod of a name; if none lives, the newest that is there.
    pub(crate) fn find_pod(&self, namespace: Option<&str>, name: &str) -> Option<&Pod> {
        let fits = |pod: &&Pod| {
            !pod.gone && *pod.spec.name == *name && namespace.is_none_or(|wanted| *pod.spec.namespace() == *wanted)
        };
        let fitting = || self.pods.iter().rev().filter(fits);
        fitting().find(|pod| !pod.over()).or_else(|| fitting().next())
    }

    /// The newest job of a name that was not deleted.
    pub(crate) fn find_job(&self, namespace: Option<&str>, name: &str) -> Option<&Job> {
        let fits = |job: &&Job| !job.deleted && job.key.1 == name && namespace.is_none_or(|wanted| job.key.0 == wanted);
        self.jobs.iter().rev().find(fits)
    }

    /// Pods that are in the API.
    pub(crate) fn live_pods<'a>(&'a self, of: &'a [usize]) -> impl Iterator<Item = &'a Pod> {
        of.iter().map(|&i| &self.pods[i]).filter(|pod| !pod.gone)
    }

    /// The phase of a PodGroup.
    pub(crate) fn phase_of(&self, key: &Key) -> Option<JobPhase> {
        self.jobs[*self.job_of.get(key)?].group.as_ref().map(|group| group.phase)
    }

    /// Pods that were lost since the last time that this was asked, with their jobs' names and whether those still are.
    pub(crate) fn take_lost(&mut self) -> Vec<(Key, String)> {
        let lost = std::mem::take(&mut self.lost);
        let alive = lost.into_iter().map(|i| &self.pods[i]).filter(|pod| !self.jobs[pod.job].deleted);
        alive.map(|pod| (self.jobs[pod.job].key.clone(), pod.spec.name.to_string())).collect()
    }

    /// Whether a pod that runs ends by itself before `end`.
    pub(crate) fn something_ends_before(&self, end: Instant) -> bool {
        self.pods.iter().any(|pod| pod.holds() && pod.ends.is_some_and(|at| at < end))
    }

    fn is_ours(&self, meta: &ObjectMeta) -> bool {
        let label = || meta.labels.as_ref().and_then(|labels| labels.get(LABEL));
        self.label.as_ref().is_none_or(|own| label() == Some(own))
    }

    fn open_job(&mut self, key: &Key) -> usize {
        match self.job_of.get(key) {
            Some(&job) if !self.jobs[job].deleted => job,
            _ => {
                self.jobs.push(Job { key: key.clone(), queue: DEFAULT_QUEUE.to_owned(), ..Job::default() });
                self.job_of.insert(key.clone(), self.jobs.len() - 1);
                self.jobs.len() - 1
            }
        }
    }

    /// A list of pods begins.
    pub(crate) fn list_begins(&mut self) {
        self.listed.clear();
    }

    /// A list of pods has ended: what was not in it is gone.
    pub(crate) fn list_ends(&mut self) {
        let known = self.by_uid.keys().chain(self.strangers.keys());
        let gone: Vec<String> = known.filter(|uid| !self.listed.contains(*uid)).cloned().collect();
        for uid in gone {
            self.pod_gone(&uid);
        }
    }

    /// A pod is new, or has changed.
    pub(crate) fn pod(&mut self, pod: core::Pod) {
        let pod = &self.names.pod(pod);
        let Some(uid) = pod.metadata.uid.clone() else { return };
        self.listed.insert(uid.clone());
        let Some(spec) = self.converter.pod(pod).0 else { return };
        if !self.begun || !self.is_ours(&pod.metadata) || self.strangers.contains_key(&uid) {
            let over = matches!(spec.phase, PodPhase::Succeeded | PodPhase::Failed);
            let node = spec.node.as_ref().filter(|_| !over).map(ToString::to_string);
            self.strangers.insert(uid, node.map(|node| (node, spec.shape.request.clone())));
            return;
        }
        self.changed = Some(Instant::now());
        let index = match self.by_uid.get(&uid) {
            Some(&index) => index,
            None => self.first_sight(pod, uid.clone(), spec.clone()),
        };
        let before = &self.pods[index];
        let (was_bound, was_over, was_running) =
            (before.spec.node.is_some(), before.over(), before.spec.phase == PodPhase::Running);
        let was_deleting = before.spec.deleting;
        let here = &mut self.pods[index];
        here.spec = spec;
        let disrupted = pod.status.iter().flat_map(|status| status.conditions.iter().flatten()).any(|condition| {
            let others = condition.reason.as_deref().is_some_and(|reason| OTHERS_DISRUPT.contains(&reason));
            condition.type_ == "DisruptionTarget" && condition.status == "True" && !others
        });
        here.evicted |= disrupted && !self.own.contains(&uid);
        here.lost |= here.spec.deleting && !was_deleting && !was_over;
        let running = here.spec.phase == PodPhase::Running;
        if running && !was_running {
            here.ends = here.runtime.map(|runtime| Instant::now() + runtime);
        }
        let (job, ended_badly) = (here.job, here.over() && !was_over && here.spec.phase == PodPhase::Failed);
        if here.spec.node.is_some() && !was_bound {
            self.bound(index);
        }
        if ended_badly || (self.pods[index].spec.deleting && !was_deleting) {
            self.suspicions.lost(job);
        }
    }

    fn first_sight(&mut self, pod: &core::Pod, uid: String, spec: PodSpec) -> usize {
        let namespace = spec.namespace().to_string();
        let implicit = implicit_group_name(pod);
        let own_group = group_of(pod).filter(|group| *group != implicit);
        // The simulator calls the job of a lone pod by the pod's name; its PodGroup is called by the UID.
        let is_owned = pod.metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true));
        let name = match own_group {
            Some(group) => group.to_owned(),
            None if is_owned => implicit.clone(),
            None => format!("podgroup-{}", spec.name),
        };
        let job = self.open_job(&(namespace.clone(), name));
        if own_group.is_none() {
            self.job_of.insert((namespace, implicit), job);
        }
        let index = self.pods.len();
        let runtime = krafla_api::Hints::read(&pod.metadata).0.runtime_ms;
        let runtime = runtime.and_then(|ms| u64::try_from(ms).ok()).map(std::time::Duration::from_millis);
        let spec = PodSpec { node: None, phase: PodPhase::Pending, deleting: false, ..spec };
        self.pods.push(Pod { spec, job, gone: false, evicted: false, ends: None, runtime, lost: false });
        self.jobs[job].pods.push(index);
        self.by_uid.insert(uid, index);
        index
    }

    fn bound(&mut self, index: usize) {
        self.suspicions.bound(self.pods[index].job);
        let Some(name) = self.pods[index].spec.node.clone() else { return };
        let Some(node) = self.nodes.get(&*name) else { return };
        let request = &self.pods[index].spec.shape.request;
        let asked = request.iter().map(|(resource, _)| resource.to_string()).chain(["pods".to_owned()]);
        for resource in asked {
            let held = self.held_on(&name, &resource);
            if held > node.allocatable.get(&resource).unwrap_or(0) {
                self.suspicions.overfilled(Overfilled { node: name.to_string(), resource, held });
            }
        }
    }

    /// A pod is gone.
    pub(crate) fn pod_gone(&mut self, uid: &str) {
        self.strangers.remove(uid);
        let Some(&index) = self.by_uid.get(uid) else { return };
        let pod = &mut self.pods[index];
        if pod.gone {
            return;
        }
        self.changed = Some(Instant::now());
        // The stand-in of kubelets says of a pod that it stops that it failed, which is no end of its own.
        pod.lost |= !pod.over();
        pod.gone = true;
        let (lost, job) = (pod.lost, pod.job);
        self.suspicions.lost(job);
        if lost {
            self.lost.push(index);
        }
    }

    /// A PodGroup is new, or has changed.
    pub(crate) fn group(&mut self, group: PodGroup) {
        let ours = self.is_ours(&group.metadata);
        let Some(spec) = self.converter.pod_group(&self.names.group(group)).0 else { return };
        let key = (spec.namespace.to_string(), spec.name.to_string());
        if !self.begun || !(ours || self.job_of.contains_key(&key)) {
            return;
        }
        self.changed = Some(Instant::now());
        // News of one that has been deleted meanwhile is no news of the one that came after it.
        let known = self.jobs.iter().position(|job| job.group.as_ref().is_some_and(|known| known.uid == spec.uid));
        let job = known.unwrap_or_else(|| self.open_job(&key));
        self.jobs[job].queue = spec.queue.to_string();
        self.jobs[job].group = Some(spec);
    }

    /// A PodGroup is gone.
    pub(crate) fn group_gone(&mut self, group: &PodGroup) {
        let uid = group.metadata.uid.as_deref().unwrap_or_default();
        let is_it = |job: &&mut Job| job.group.as_ref().is_some_and(|known| *known.uid == *uid);
        if let Some(job) = self.jobs.iter_mut().find(is_it) {
            self.changed = Some(Instant::now());
            (job.group, job.deleted) = (None, true);
        }
    }

    /// A node is new, or has changed.
    pub(crate) fn node(&mut self, node: core::Node) {
        let Some(spec) = self.converter.node(&self.names.node(node)).0 else { return };
        if self.nodes.get(&*spec.name) != Some(&spec) {
            self.changed = Some(Instant::now());
            self.nodes.insert(spec.name.to_string(), spec);
        }
    }

    /// A node is gone.
    pub(crate) fn node_gone(&mut self, node: core::Node) {
        let name = self.names.node(node).metadata.name.unwrap_or_default();
        self.changed = Some(Instant::now());
        self.nodes.remove(&name);
        self.former_nodes.insert(name);
    }

    /// A queue is new, or has changed.
    pub(crate) fn queue(&mut self, queue: Queue) {
        let queue = self.names.queue(queue);
        let Some(name) = queue.metadata.name.clone() else { return };
        let parent = queue.spec.as_ref().and_then(|spec| spec.parent.clone()).filter(|parent| !parent.is_empty());
        self.queues.insert(name, parent.unwrap_or_else(|| ROOT_QUEUE.to_owned()));
    }

    /// A queue is gone.
    pub(crate) fn queue_gone(&mut self, queue: Queue) {
        self.queues.remove(&self.names.queue(queue).metadata.name.unwrap_or_default());
    }

    /// A Kubernetes event.
    pub(crate) fn event(&mut self, event: &core::Event) {
        let (Some(uid), Some(reason)) = (&event.involved_object.uid, &event.reason) else { return };
        if EVICTED.contains(&reason.as_str())
            && let Some(&index) = self.by_uid.get(uid)
        {
            self.pods[index].evicted |= !self.own.contains(uid);
        }
        self.events.entry(uid.clone()).or_default().insert(reason.clone());
    }

    fn held_on(&self, node: &str, resource: &str) -> i64 {
        let amount = |request: &Amounts| if resource == "pods" { 1 } else { request.get(resource).unwrap_or(0) };
        let own = self.pods.iter().filter(|pod| pod.holds() && pod.spec.node.as_deref() == Some(node));
        let strangers = self.strangers.values().flatten().filter(|(on, _)| on == node);
        own.map(|pod| amount(&pod.spec.shape.request)).sum::<i64>()
            + strangers.map(|(_, request)| amount(request)).sum::<i64>()
    }

    /// Whether `queue` is `above`, or below it.
    fn is_within(&self, queue: &str, above: &str) -> bool {
        let mut at = queue;
        // No deeper than there are queues: they may name each other in a ring.
        for _ in 0..=self.queues.len() {
            if at == above {
                return true;
            }
            match self.queues.get(at) {
                Some(parent) if parent != at => at = parent,
                _ => return false,
            }
        }
        false
    }
}

impl Stage for Seen {
    fn n_pods(&self) -> usize {
        self.pods.len()
    }

    fn pod(&self, index: usize) -> PodFacts<'_> {
        let pod = &self.pods[index];
        let (job, over, gone, evicted) = (pod.job, pod.over(), pod.gone, pod.evicted);
        PodFacts { job, over, gone, evicted, ..PodFacts::of(&pod.spec) }
    }

    fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    fn job(&self, index: usize) -> JobFacts<'_> {
        let job = &self.jobs[index];
        JobFacts { namespace: &job.key.0, name: &job.key.1, queue: &job.queue, pods: &job.pods, started: None }
    }

    fn phase(&self, job: usize) -> Option<String> {
        self.jobs[job].group.as_ref().map(|group| group.phase.as_str().to_owned())
    }

    fn had_node(&self, name: &str) -> bool {
        self.nodes.contains_key(name) || self.former_nodes.contains(name)
    }

    fn node_label(&self, node: &str, label: &str) -> Option<String> {
        self.nodes.get(node)?.labels.get(label).map(ToString::to_string)
    }

    fn has_queue(&self, name: &str) -> bool {
        self.queues.contains_key(name)
    }

    fn used(&self, holder: Holder<'_>, resource: &str) -> Option<i64> {
        Some(match holder {
            Holder::Node(name) => self.held_on(name, resource),
            Holder::Queue(name) => {
                let held = self.pods.iter().filter(|pod| pod.holds());
                let within = held.filter(|pod| self.is_within(&self.jobs[pod.job].queue, name));
                within.map(|pod| pod.spec.shape.request.get(resource).unwrap_or(0)).sum()
            }
        })
    }

    fn events(&self, about: About) -> Vec<String> {
        let uid = match about {
            About::Pod(pod) => Some(&self.pods[pod].spec.uid),
            About::Job(job) => self.jobs[job].group.as_ref().map(|group| &group.uid),
        };
        let reasons = uid.and_then(|uid| self.events.get(&**uid));
        reasons.into_iter().flatten().cloned().collect()
    }
}

/// Namespace and name of an object.
pub(crate) fn key_of(manifest: &serde_json::Value) -> Key {
    let text = |key: &str| manifest["metadata"][key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    (text("namespace").unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()), text("name").unwrap_or_default())
}
