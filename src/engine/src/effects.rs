//! From decisions and changes of the books to effects: what is written, and only when it differs from what was.

use std::collections::BTreeMap;

use krafla_framework::conf::policy::DEFAULT_PREEMPTION;
use krafla_framework::effect::{Cause, Decision, Effect, EvictionCertificate, PodRef, Subject, by_beneficiary};
use krafla_framework::phase::phase_of;
use krafla_framework::session_plugin::JobCondition;
use krafla_framework::{PluginSet, Reasons};
use krafla_model::ids::IdVec;
use krafla_model::{Amounts, ClusterState, JobId, JobPhase, Name, NodeId, QueueId, Resources, TaskId, TaskStatus};
use tracing::{Level, debug};

/// What has been written of each object, so that the same is not written again.
#[derive(Default)]
pub(crate) struct Written {
    jobs: IdVec<JobId, Option<JobRecord>>,
    queues: IdVec<QueueId, Option<(Name, Resources)>>,
    /// Code of the reason that the people behind a waiting pod were told last.
    told: IdVec<TaskId, Option<&'static str>>,
    /// Nodes that were nominated for pods that still wait, by UID.
    nominations: BTreeMap<Name, (PodRef, NodeId)>,
}

#[derive(Clone)]
struct JobRecord {
    uid: Name,
    status: Option<(JobPhase, u32, u32, u32)>,
    condition: Option<(&'static str, String, String)>,
    unschedulable: bool,
}

impl Written {
    fn record(&mut self, cluster: &ClusterState, job: JobId) -> &mut JobRecord {
        let uid = &cluster.job(job).spec.uid;
        let slot = &mut self.jobs[job];
        if slot.as_ref().is_none_or(|record| record.uid != *uid) {
            *slot = Some(JobRecord { uid: uid.clone(), status: None, condition: None, unschedulable: false });
        }
        slot.as_mut().expect("it was just put there")
    }

    /// Brings the phases of `changed` jobs up to date. A phase goes to the API when it or a count differs.
    pub(crate) fn statuses(&mut self, cluster: &mut ClusterState, changed: &[JobId], effects: &mut Vec<Effect>) {
        for &id in changed {
            if cluster.get_job(id).is_none() {
                continue;
            }
            let unschedulable = self.record(cluster, id).unschedulable;
            let job = cluster.job(id);
            let phase = phase_of(job, unschedulable);
            let of = |status| job.counts().of(status);
            let status = (phase, of(TaskStatus::Running), of(TaskStatus::Succeeded), of(TaskStatus::Failed));
            let (namespace, name) = (job.spec.namespace.clone(), job.spec.name.clone());
            let known = (!job.spec.phase_missing).then_some((job.spec.phase, 0, 0, 0));
            if job.phase != phase {
                cluster.set_job_phase(id, phase);
            }
            let record = self.record(cluster, id);
            if record.status.or(known) != Some(status) {
                record.status = Some(status);
                let (phase, running, succeeded, failed) = status;
                effects.push(Effect::JobStatus { namespace, name, phase, running, succeeded, failed });
            }
        }
        if !changed.is_empty() {
            self.queues(cluster, effects);
        }
    }

    /// Brings what queues hold up to date. Cost: linear in queues.
    fn queues(&mut self, cluster: &ClusterState, effects: &mut Vec<Effect>) {
        for (id, queue) in cluster.queues() {
            let (name, held) = (&queue.spec.name, &queue.held().allocated);
            let same = |(known, written): &(Name, Resources)| known == name && written == held;
            if self.queues[id].as_ref().is_some_and(same) {
                continue;
            }
            let mut allocated = Amounts::default();
            for (resource, amount) in held.iter() {
                allocated.set_amount(cluster.names().name(resource), amount);
            }
            self.queues[id] = Some((name.clone(), held.clone()));
            effects.push(Effect::QueueStatus { name: name.clone(), allocated });
        }
    }

    /// Tells of pods whose job waits for another reason than they were told, or that have come since: an event and a
    /// condition each. Cost: linear in the tasks of `jobs`.
    pub(crate) fn waiting_pods(
        &mut self,
        cluster: &ClusterState,
        reasons: &Reasons,
        jobs: impl Iterator<Item = JobId>,
        events: bool,
        effects: &mut Vec<Effect>,
    ) {
        for id in jobs {
            let (Some(job), Some(standing)) = (cluster.get_job(id), reasons.job(id)) else { continue };
            if job.counts().of(TaskStatus::Pending) == 0 {
                continue;
            }
            let (code, mut why) = (standing.reason.code(), None);
            for task in job.tasks().filter(|task| cluster.task(*task).status() == TaskStatus::Pending) {
                if self.told[task] == Some(code) {
                    continue;
                }
                self.told[task] = Some(code);
                let why = why.get_or_insert_with(|| standing.reason.to_string());
                cannot_be_scheduled(cluster, task, "Unschedulable", why, events, effects);
            }
        }
    }

    /// The task is gone; another may have its id.
    pub(crate) fn forget_task(&mut self, task: TaskId) {
        if self.told[task].is_some() {
            self.told[task] = None;
        }
    }

    /// Nominates nodes for tasks that wait for a release, and takes back nominations of tasks that do so no more.
    pub(crate) fn nominations(
        &mut self,
        cluster: &ClusterState,
        nominations: &[(TaskId, NodeId)],
        effects: &mut Vec<Effect>,
    ) {
        let mut old = std::mem::take(&mut self.nominations);
        for &(task, node) in nominations {
            let pod = PodRef::of(cluster, task);
            if old.remove(&pod.uid).is_none_or(|(_, before)| before != node) {
                effects.push(Effect::Nominate { pod: pod.clone(), node: Some(cluster.node(node).name().clone()) });
            }
            self.nominations.insert(pod.uid.clone(), (pod, node));
        }
        for (uid, (pod, _)) in old {
            let waits = cluster.find_task(&uid).is_some_and(|task| cluster.task(task).status().is_waiting());
            if waits {
                effects.push(Effect::Nominate { pod, node: None });
            }
        }
    }

    /// Writes conditions that differ from the last ones written.
    pub(crate) fn conditions(
        &mut self,
        cluster: &ClusterState,
        conditions: Vec<JobCondition>,
        events: bool,
        effects: &mut Vec<Effect>,
    ) {
        for JobCondition { job, kind, reason, message } in conditions {
            let spec = &cluster.job(job).spec;
            let record = self.record(cluster, job);
            record.unschedulable = kind == "Unschedulable";
            let same = |(k, r, m): &(&str, String, String)| *k == kind && *r == reason && *m == message;
            if record.condition.as_ref().is_some_and(same) {
                continue;
            }
            let newly_ready = kind == "Scheduled" && record.condition.as_ref().is_none_or(|(old, ..)| *old != kind);
            if events && newly_ready {
                effects.push(Effect::Event {
                    about: Subject::Job { namespace: spec.namespace.clone(), name: spec.name.clone() },
                    warning: false,
                    reason: kind.to_owned(),
                    message: "pod group is ready".to_owned(),
                });
            }
            record.condition = Some((kind, reason.clone(), message.clone()));
            effects.push(Effect::JobCondition {
                namespace: spec.namespace.clone(),
                name: spec.name.clone(),
                kind: kind.to_owned(),
                reason,
                message,
            });
        }
    }
}

/// Decisions of a session as effects, in order.
pub(crate) fn carry_out(
    cluster: &ClusterState,
    plugins: &PluginSet,
    decisions: &[Decision],
    events: bool,
    effects: &mut Vec<Effect>,
) {
    for decision in decisions {
        match decision {
            Decision::Bind(task) => {
                if let Some(node) = cluster.task(*task).node() {
                    let (plugins, claims) = plugins.profile_for(cluster, *task).way_to_bind(cluster, *task);
                    effects.push(Effect::Bind {
                        pod: PodRef::of(cluster, *task),
                        node: cluster.node(node).name().clone(),
                        plugins,
                        claims,
                    });
                }
            }
            Decision::OpenGate(task) => effects.push(Effect::OpenGate { pod: PodRef::of(cluster, *task) }),
            Decision::Deallocate { namespace, name, uid } => {
                effects.push(Effect::Deallocate { namespace: namespace.clone(), name: name.clone(), uid: uid.clone() })
            }
            Decision::Evict(task, certificate) => {
                let delete = certificate.action == DEFAULT_PREEMPTION;
                let pod = PodRef::of(cluster, *task);
                effects.push(Effect::Evict { pod, certificate: certificate.clone(), delete });
                if events {
                    effects.push(evicted(PodRef::of(cluster, *task), certificate));
                }
            }
        }
    }
    if events {
        let groups = by_beneficiary(decisions);
        effects.extend(groups.into_iter().filter_map(|(certificate, victims)| evicts(cluster, certificate, &victims)));
    }
}

/// Tells the log who gets which node, and who has to go for whom.
pub(crate) fn log(effects: &[Effect]) {
    if !tracing::enabled!(Level::DEBUG) {
        return;
    }
    for effect in effects {
        match effect {
            Effect::Bind { pod, node, .. } => debug!(%pod, %node, "binds"),
            Effect::Evict { pod, certificate, .. } => {
                let EvictionCertificate { action, beneficiary, node, .. } = certificate;
                debug!(%pod, action, beneficiary, %node, "evicts");
            }
            Effect::Nominate { pod, node: Some(node) } => debug!(%pod, %node, "nominates"),
            Effect::Nominate { pod, node: None } => debug!(%pod, "takes a nomination back"),
            _ => {}
        }
    }
}

/// The event of a job for which others were evicted. Names of the first few tell enough.
fn evicts(cluster: &ClusterState, certificate: &EvictionCertificate, victims: &[TaskId]) -> Option<Effect> {
    const NAMED: usize = 5;
    let (namespace, name) = certificate.beneficiary.split_once('/')?;
    let alone = match &certificate.placements[..] {
        [(pod, _)] if *pod.namespace == *namespace && *pod.name == *name => Some(Subject::Pod(pod.clone())),
        _ => None,
    };
    let names: Vec<String> = victims.iter().take(NAMED).map(|task| cluster.task_label(*task)).collect();
    let more = victims.len().saturating_sub(NAMED);
    let and_more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(Effect::Event {
        about: alone.unwrap_or_else(|| Subject::Job { namespace: namespace.into(), name: name.into() }),
        warning: false,
        reason: "Evicting".to_owned(),
        message: format!("{} evicts {} pods for it: {}{and_more}", certificate.action, victims.len(), names.join(", ")),
    })
}

fn evicted(pod: PodRef, certificate: &EvictionCertificate) -> Effect {
    let EvictionCertificate { action, beneficiary, node, cause, destination, .. } = certificate;
    let why = match (cause, destination) {
        (Some(Cause { plugin, why }), _) => format!("{plugin} says that {why}"),
        (None, Some(elsewhere)) => {
            format!(
                "{beneficiary} will run on {node}, and room is kept on {elsewhere} for the pod that replaces this one"
            )
        }
        (None, None) => format!("{beneficiary} will run on {node}"),
    };
    Effect::Event {
        about: Subject::Pod(pod),
        warning: true,
        reason: "Evict".to_owned(),
        message: format!("Pod is evicted, because of {action}: {why}"),
    }
}

/// The event of a pod that has been bound.
pub(crate) fn scheduled(cluster: &ClusterState, task: TaskId) -> Option<Effect> {
    let node = cluster.node(cluster.task(task).node()?).name();
    let message = format!("Successfully assigned {} to {node}", cluster.task_label(task));
    Some(Effect::Event {
        about: Subject::Pod(PodRef::of(cluster, task)),
        warning: false,
        reason: "Scheduled".to_owned(),
        message,
    })
}

/// The event and the condition of a pod whose bind was refused.
pub(crate) fn bind_refused(
    cluster: &ClusterState,
    task: TaskId,
    message: &str,
    events: bool,
    effects: &mut Vec<Effect>,
) {
    let node = cluster.task(task).node().map_or("?", |node| cluster.node(node).name());
    let message = format!("failed to bind to node {node}: {message}");
    cannot_be_scheduled(cluster, task, "SchedulerError", &message, events, effects);
}

/// The event of a pod whose eviction was refused.
pub(crate) fn eviction_refused(cluster: &ClusterState, task: TaskId, message: &str) -> Effect {
    Effect::Event {
        about: Subject::Pod(PodRef::of(cluster, task)),
        warning: true,
        reason: "EvictionRefused".to_owned(),
        message: format!("the eviction was refused, and the pod keeps its node: {message}"),
    }
}

/// Why a pod has no node, as its condition and as an event on it.
fn cannot_be_scheduled(
    cluster: &ClusterState,
    task: TaskId,
    reason: &str,
    message: &str,
    events: bool,
    effects: &mut Vec<Effect>,
) {
    let pod = PodRef::of(cluster, task);
    if events {
        effects.push(Effect::Event {
            about: Subject::Pod(pod.clone()),
            warning: true,
            reason: "FailedScheduling".to_owned(),
            message: message.to_owned(),
        });
    }
    effects.push(Effect::PodCondition { pod, reason: reason.to_owned(), message: message.to_owned() });
}

/// Tells of tasks without a job that wait for another reason than before.
pub(crate) fn waiting_alone(
    cluster: &ClusterState,
    reasons: &Reasons,
    tasks: &[TaskId],
    events: bool,
    effects: &mut Vec<Effect>,
) {
    for &task in tasks {
        if let Some(standing) = reasons.own(task) {
            cannot_be_scheduled(cluster, task, "Unschedulable", &standing.reason.to_string(), events, effects);
        }
    }
}

/// Tells of jobs that wait for another reason than before: one event on the PodGroup.
pub(crate) fn waiting_jobs(cluster: &ClusterState, reasons: &Reasons, jobs: &[JobId], effects: &mut Vec<Effect>) {
    for &id in jobs {
        let (Some(job), Some(standing)) = (cluster.get_job(id), reasons.job(id)) else { continue };
        let pending = job.counts().sum(|s| s.is_waiting());
        let why = standing.reason.to_string();
        effects.push(Effect::Event {
            about: Subject::Job { namespace: job.spec.namespace.clone(), name: job.spec.name.clone() },
            warning: !job.is_pending() && job.n_tasks() > 0,
            reason: "Unschedulable".to_owned(),
            message: match job.n_tasks() {
                0 => why,
                n => format!("{pending}/{n} tasks in gang unschedulable: {why}"),
            },
        });
    }
}
