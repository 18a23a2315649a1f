//! Stand-ins for the controllers about a scheduler: they make pods and PodGroups, make lost pods again, and clean up.

use std::sync::Arc;

use krafla_model::dra::PodClaim;
use krafla_model::taints::{Effect, Taint};
use krafla_model::{Event, Name, NodeSpec, PodPhase, PodShape};

use super::World;
use super::agenda::Happening;
use super::objects::{Controller, Submission, Submitted};

/// How long a controller takes to make a lost pod again, in milliseconds.
const RECREATE_MS: i64 = 1_000;
/// The taint of a node that does not answer.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

impl World {
    pub(super) fn submit(&mut self, submission: Submission) {
        let Submission { mut group, announced, joins, goes_with_pods, pods, kind } = submission;
        let existing = self.store.job_named(&group.namespace, &group.name).filter(|job| !self.store.jobs[*job].deleted);
        let job = match existing {
            Some(job) if joins => {
                if announced {
                    self.replace_group(job, group);
                }
                job
            }
            Some(_) => {
                let object = format!("job {}/{}", group.namespace, group.name);
                self.report(krafla_model::Problem {
                    object,
                    message: "is submitted twice; the second is left out".into(),
                });
                return;
            }
            None => {
                group.created = self.now;
                group.uid = format!("{}/{}#{}", group.namespace, group.name, self.store.jobs.len()).into();
                let job = self.store.add_job(&group, announced, kind, self.now);
                self.store.jobs[job].goes_with_pods = goes_with_pods;
                if announced {
                    self.tell(Event::PodGroup(group));
                }
                job
            }
        };
        let namespace = self.store.jobs[job].namespace.clone();
        for plan in pods {
            let existing = if joins { self.store.pod_named(&namespace, &plan.name) } else { None };
            match existing.filter(|pod| !self.store.pods[*pod].is_over() && self.store.pods[*pod].job == job) {
                Some(pod) => self.replace_pod(pod, plan),
                None => {
                    self.make_pod(job, plan);
                }
            }
        }
        self.recount_quotas(&namespace);
    }

    /// Applies a PodGroup over the one that a job has, or as the one that its pods wait for.
    fn replace_group(&mut self, job: usize, new: krafla_model::PodGroupSpec) {
        let uid = format!("{}/{}#{job}", new.namespace, new.name).into();
        let old = self.store.jobs[job].group.take();
        let (created, phase) = old.as_ref().map_or((self.now, new.phase), |old| (old.created, old.phase));
        let new = krafla_model::PodGroupSpec { uid, created, phase, ..new };
        let owner = &mut self.store.jobs[job];
        owner.min_member = new.min_member;
        owner.queue = new.queue.clone();
        owner.group = Some(new.clone());
        self.tell(Event::PodGroup(new));
    }

    /// Applies a pod over one that exists: what it asks for, its priority and its gates become the new ones.
    fn replace_pod(&mut self, index: usize, plan: Submitted) {
        let (priority, shape) = self.admitted(&plan);
        let pod = &mut self.store.pods[index];
        pod.spec.shape = shape;
        pod.spec.gates = plan.gates;
        pod.spec.priority = priority;
        pod.life = plan.life;
        self.tell_of_pod(index);
    }

    /// Takes the gate of its queue off a pod, for the scheduler.
    pub(super) fn open_gate(&mut self, uid: &Name) {
        let Some(index) = self.pod_index(uid).filter(|index| !self.store.pods[*index].gone) else { return };
        self.store.pods[index].spec.gates.retain(|gate| &**gate != krafla_model::QUEUE_GATE);
        self.tell_of_pod(index);
    }

    /// Takes the scheduling gates off a pod, or off all pods of a job.
    pub(super) fn ungate(&mut self, namespace: Option<&Name>, name: &Name, whole_job: bool) {
        let pods: Vec<usize> = if whole_job {
            self.store.find_job(namespace, name).map(|job| self.store.jobs[job].pods.clone()).unwrap_or_default()
        } else {
            self.store.find_pod_named(namespace, name).into_iter().collect()
        };
        let mut ungated = 0;
        for index in pods {
            if !self.store.pods[index].gone && !std::mem::take(&mut self.store.pods[index].spec.gates).is_empty() {
                self.tell_of_pod(index);
                ungated += 1;
            }
        }
        if ungated == 0 {
            let object = format!("{} {name}", if whole_job { "job" } else { "pod" });
            self.report(krafla_model::Problem { object, message: "has no scheduling gate to take off".into() });
        }
    }

    /// Admission's part: a pod without a priority gets that of its class, or Volcano's 1; and whether it may preempt.
    fn admitted(&self, plan: &Submitted) -> (i32, Arc<PodShape>) {
        let class = self.store.priority_classes.get(&plan.shape.priority_class);
        let mut shape = Arc::clone(&plan.shape);
        if class.is_some_and(|class| !class.preempts) && !shape.never_preempts {
            Arc::make_mut(&mut shape).never_preempts = true;
        }
        (plan.priority.or(class.map(|class| class.value)).unwrap_or(1), shape)
    }

    /// Makes a pod.
    pub(super) fn make_pod(&mut self, job: usize, plan: Submitted) -> usize {
        let node = plan.node.clone();
        let (priority, shape) = self.admitted(&plan);
        let plan = Submitted { shape, ..plan };
        let index = self.store.add_pod(job, plan, priority, self.now);
        if !self.store.pods[index].claims.is_empty() {
            let pod = &self.store.pods[index];
            let (claims, uid, shape) = (pod.claims.clone(), pod.spec.uid.clone(), Arc::clone(&pod.spec.shape));
            let ephemeral = |name: &Name| shape.volumes.claims.iter().any(|own| own.ephemeral && own.name == *name);
            self.make_claims(&claims, &uid, ephemeral);
        }
        self.make_claims_of_templates(index);
        match node {
            Some(node) => {
                self.attach(index, node);
                self.starts(index);
            }
            None => self.tell_of_pod(index),
        }
        index
    }

    /// A pod was lost before it ended: its controller makes it again, if it has one.
    pub(super) fn after_loss(&mut self, index: usize) {
        let pod = &self.store.pods[index];
        let owner = &self.store.jobs[pod.job];
        if pod.life.controller == Controller::Recreate && !owner.deleted {
            self.store.awaited_pods.insert(index);
            self.plan(self.now + RECREATE_MS, Happening::Recreate { pod: index });
        } else if owner.goes_with_pods {
            self.forget_group_without_pods(index);
        } else if owner.alive == 0 && owner.finished.is_none() && self.setup.collect_finished {
            self.collect(self.store.pods[index].job);
        }
    }

    /// A pod is gone: a PodGroup that was made for it goes with it.
    pub(super) fn forget_group_without_pods(&mut self, index: usize) {
        let owner = self.store.pods[index].job;
        let job = &self.store.jobs[owner];
        if job.goes_with_pods && !job.deleted && job.pods.iter().all(|pod| self.store.pods[*pod].gone) {
            self.forget_group(owner);
        }
    }

    pub(super) fn recreate(&mut self, index: usize) {
        self.store.awaited_pods.remove(&index);
        let namespace = self.store.pods[index].spec.namespace().clone();
        self.touch_budgets(&namespace);
        let old = &self.store.pods[index];
        let owner = old.job;
        if self.store.jobs[owner].deleted {
            return;
        }
        let again = |one: &PodClaim| PodClaim { claim: one.claim.clone().filter(|_| !one.generated), ..one.clone() };
        let plan = Submitted {
            name: old.spec.name.clone(),
            shape: old.spec.shape.clone(),
            priority: Some(old.spec.priority),
            gates: Vec::new(),
            node: None,
            ours: old.ours,
            life: old.life,
            attained_ms: old.spec.attained_ms,
            details: old.spec.details.clone(),
            restart_ms: old.restart_ms,
            claims: old.claims.clone(),
            device_claims: old.spec.claims.iter().map(again).collect(),
        };
        let revision = old.revision;
        self.store.pods[index].replaced = true;
        let again = self.make_pod(owner, plan);
        self.store.pods[again].revision = revision;
    }

    /// Deletes an ended job from the API.
    pub(super) fn collect(&mut self, owner: usize) {
        let pods = std::mem::take(&mut self.store.jobs[owner].pods);
        for &index in &pods {
            if !self.store.pods[index].gone {
                self.store.remove_pod(index);
                let uid = self.store.pods[index].spec.uid.clone();
                self.tell(Event::PodGone(uid));
            }
        }
        self.store.jobs[owner].pods = pods;
        self.forget_group(owner);
    }

    fn forget_group(&mut self, owner: usize) {
        let job = &mut self.store.jobs[owner];
        job.deleted = true;
        if let Some(group) = job.group.take() {
            self.tell(Event::PodGroupGone { namespace: group.namespace, name: group.name });
        }
    }

    pub(super) fn delete_job(&mut self, namespace: Option<&Name>, name: &Name) {
        let Some(owner) = self.store.find_job(namespace, name) else {
            return self.not_there("job", name);
        };
        self.forget_group(owner);
        for index in self.store.jobs[owner].pods.clone() {
            self.terminate(index);
        }
    }

    pub(super) fn delete_pod(&mut self, namespace: Option<&Name>, name: &Name) {
        match self.store.find_pod_named(namespace, name) {
            Some(index) => self.terminate(index),
            None => self.not_there("pod", name),
        }
    }

    fn not_there(&mut self, kind: &str, name: &Name) {
        let message = format!("cannot be deleted: there is no such {kind}");
        self.report(krafla_model::Problem { object: format!("{kind} {name}"), message });
    }

    /// Applies a change of an object that is neither job nor pod, and what the controllers make of it.
    pub(super) fn change_object(&mut self, event: Event) {
        if self.change_devices(&event).is_some() {
            return;
        }
        match &event {
            Event::Node(spec) => {
                self.store.nodes.insert(spec.name.clone(), spec.clone());
            }
            Event::NodeGone(name) => {
                match self.store.nodes.remove(name) {
                    Some(_) => self.store.former_nodes.insert(name.clone()),
                    None => return self.not_there("node", name),
                };
                self.tell(event.clone());
                return self.collect_pods_of(&name.clone());
            }
            Event::Queue(spec) => {
                self.store.queues.insert(spec.name.clone(), spec.clone());
            }
            Event::QueueGone(name) => {
                if self.store.queues.remove(name).is_none() {
                    return self.not_there("queue", &name.clone());
                }
            }
            Event::PriorityClass(class) => {
                self.store.priority_classes.insert(class.name.clone(), class.clone());
            }
            Event::PriorityClassGone(name) => {
                self.store.priority_classes.remove(name);
            }
            Event::Quota(quota) => {
                let namespace = quota.namespace.clone();
                self.store.quotas.insert((namespace.clone(), quota.name.clone()), quota.clone());
                self.tell(event.clone());
                self.recount_quotas(&namespace);
                return;
            }
            Event::QuotaGone { namespace, name } => {
                self.store.quotas.remove(&(namespace.clone(), name.clone()));
            }
            Event::ElasticQuota(quota) => {
                self.store.elastic_quotas.insert((quota.namespace.clone(), quota.name.clone()), quota.clone());
            }
            Event::ElasticQuotaGone { namespace, name } => {
                self.store.elastic_quotas.remove(&(namespace.clone(), name.clone()));
            }
            Event::Budget(budget) => return self.apply_budget(budget.clone()),
            Event::BudgetGone { namespace, name } => self.remove_budget(&namespace.clone(), &name.clone()),
            Event::Namespace(spec) => {
                self.store.namespaces.insert(spec.name.clone(), spec.clone());
            }
            Event::NamespaceGone(name) => {
                self.store.namespaces.remove(name);
            }
            Event::Workload(spec) => {
                let key = (spec.namespace.clone(), spec.workload.clone());
                self.store.workloads.insert(key, spec.clone());
            }
            Event::WorkloadGone { namespace, workload } => {
                self.store.workloads.remove(&(namespace.clone(), workload.clone()));
            }
            Event::Storage(object) => return self.change_storage(object.clone()),
            Event::StorageGone(key) => return self.remove_storage(&key.clone()),
            Event::PodGroup(spec) => {
                if let Some(owner) = self.store.job_named(&spec.namespace, &spec.name) {
                    let job = &mut self.store.jobs[owner];
                    job.min_member = spec.min_member;
                    job.group = Some(spec.clone());
                }
            }
            Event::Pod(_) | Event::PodGone(_) | Event::PodGroupGone { .. } => {}
            Event::ResourceClaim(_)
            | Event::ResourceClaimGone { .. }
            | Event::ResourceSlice(_)
            | Event::ResourceSliceGone(_)
            | Event::DeviceClass(_)
            | Event::DeviceClassGone(_)
            | Event::NodeUsage(_)
            | Event::PodUsage(_) => {}
        }
        self.tell(event);
    }

    /// Pods of a node that is gone are gone with it.
    fn collect_pods_of(&mut self, node: &Name) {
        let lost: Vec<usize> = (0..self.store.pods.len())
            .filter(|&i| !self.store.pods[i].gone && self.store.pods[i].spec.node.as_ref() == Some(node))
            .filter(|&i| !matches!(self.store.pods[i].spec.phase, PodPhase::Succeeded | PodPhase::Failed))
            .collect();
        for index in lost {
            self.terminated(index);
        }
    }
}

/// Taints a node as the node controller does when it stops or starts answering.
pub fn set_ready(spec: &mut NodeSpec, ready: bool) {
    spec.taints.retain(|taint| taint.key != NOT_READY);
    if !ready {
        let taint = Taint { key: NOT_READY.into(), value: Name::default(), effect: Effect::NoSchedule };
        spec.taints.push(taint);
    }
}
