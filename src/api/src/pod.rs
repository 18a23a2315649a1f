//! Pods.
//!
//! Decided here, for what cannot be read:
//! - an amount, a share of a GPU, a condition that placement depends on: the pod is left out, since it could only be
//!   placed on a guess. A pod that has a node already stays in if its amounts can be read;
//! - a preference, a toleration, a priority: it is left out of the pod.
//!
//! Beside Kubernetes' and Volcano's fields, the annotation `krafla.io/gpu-milli: "500"` asks for a share of one GPU
//! device in thousandths, `1` to `999`. The same amount is added to the request as `nvidia.com/gpu`, so that queues and
//! quotas count it; a pod that has it asks for no whole devices.
//!
//! Labels that name one pod of a template ([`keys::INDEX_LABELS`]) are left out, so that the pods of a StatefulSet are
//! alike.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::labels::NodeSelectorTerm;
use krafla_model::name::NamePool;
use krafla_model::pod::HostPort;
use krafla_model::resources::GPU_NAME;
use krafla_model::taints::Toleration;
use krafla_model::{Amounts, Name, PodPhase, PodShape, PodSpec, Problem, Time};

use crate::converter::Converter;
use crate::devices::claims_of;
use crate::duration::{parse_duration, shown};
use crate::keys;
use crate::pod_affinity::neighbours;
use crate::report::{Report, annotation, annotation_or_label, label, preemptable};
use crate::request::{is_restartable, request, scored_request};
use crate::selectors;
use crate::volumes::volumes;

/// The scheduler of a pod that names none, as the API server fills it in.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// Priority of a pod that has none, as in Volcano.
const DEFAULT_PRIORITY: i32 = 1;

/// `krafla.io/attained-seconds`, in milliseconds.
fn attained_ms(meta: &ObjectMeta, report: &mut Report<'_>) -> Option<i64> {
    let text = annotation(meta, keys::ATTAINED)?;
    let read = parse_duration(&format!("{}s", text.trim())).ok();
    if read.is_none() {
        report.say(format_args!("{} is `{}`, not a number of seconds; it is ignored", keys::ATTAINED, shown(text)));
    }
    read
}

/// The PodGroup that a pod names: Volcano's annotations, coscheduling's labels, Kubernetes' own field, in this order.
pub fn group_of(pod: &core::Pod) -> Option<&str> {
    let meta = &pod.metadata;
    [
        annotation(meta, keys::GROUP_NAME),
        annotation(meta, keys::VOLCANO_GROUP_NAME),
        label(meta, keys::COSCHEDULING_GROUP),
        label(meta, keys::LABEL_GANG_NAME),
        pod.spec.as_ref().and_then(|spec| spec.scheduling_group.as_ref()?.pod_group_name.as_deref()),
    ]
    .into_iter()
    .flatten()
    .find(|name| !name.is_empty())
}

/// Name and minimum of a gang that is declared by labels alone, as in coscheduling's first form. Nobody makes its
/// PodGroup but the reader. None if a label is missing or the minimum cannot be read, which [`Converter::pod`] reports.
pub fn label_gang(pod: &core::Pod) -> Option<(&str, u32)> {
    let name = label(&pod.metadata, keys::LABEL_GANG_NAME).filter(|name| !name.is_empty())?;
    Some((name, label(&pod.metadata, keys::LABEL_GANG_MIN)?.parse().ok()?))
}

/// Whether the scheduler may take the gate of its queue off a pod. Only `true` says so, as in Volcano.
fn asks_its_queue(meta: &ObjectMeta, report: &mut Report<'_>) -> bool {
    let Some(text) = annotation(meta, keys::QUEUE_ALLOCATION_GATE) else { return false };
    if text != "true" && text != "false" {
        let (key, text) = (keys::QUEUE_ALLOCATION_GATE, shown(text));
        report.say(format_args!("{key} is `{text}`, which is neither true nor false; it counts as false"));
    }
    text == "true"
}

impl Converter {
    /// Reads a pod.
    pub fn pod(&mut self, pod: &core::Pod) -> (Option<PodSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("pod", &pod.metadata);
        let read = self.read_pod(pod, &mut report);
        (read, report.into_problems())
    }

    /// Reads what the pods of a template ask for.
    pub fn request(&mut self, spec: &core::PodSpec, owner: &ObjectMeta) -> (Option<Amounts>, Vec<Problem>) {
        let mut report = Report::namespaced("template of", owner);
        let read = request(spec, &mut self.names, &mut report);
        (read, report.into_problems())
    }

    fn read_pod(&mut self, pod: &core::Pod, report: &mut Report<'_>) -> Option<PodSpec> {
        let identity = self.identity(&pod.metadata, report)?;
        let Some(spec) = &pod.spec else {
            report.say("has no spec; it is left out");
            return None;
        };
        let status = pod.status.as_ref();
        let node = spec.node_name.as_deref().filter(|node| !node.is_empty());
        let shape = self.shape(pod, spec, identity.namespace.clone(), report)?;
        if let Some(text) = label(&pod.metadata, keys::LABEL_GANG_MIN).filter(|text| text.parse::<u32>().is_err()) {
            report.say(format_args!("label {} is `{}`, not a number of pods", keys::LABEL_GANG_MIN, shown(text)));
        }
        let (_, claims) = claims_of(pod, &mut self.names);
        let details = self.details(pod).map(Arc::new);
        Some(PodSpec {
            uid: identity.uid,
            name: identity.name,
            group: group_of(pod).map(|name| self.names.intern(name)),
            shape: self.share(shape),
            created: identity.created,
            priority: priority(&pod.metadata, spec, report),
            gates: spec.scheduling_gates.iter().flatten().map(|gate| self.names.intern(&gate.name)).collect(),
            node: node.map(|node| self.names.intern(node)),
            nominated: status
                .and_then(|status| status.nominated_node_name.as_deref())
                .filter(|node| !node.is_empty())
                .map(|node| self.names.intern(node)),
            phase: phase(status.and_then(|status| status.phase.as_deref())),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            started: status
                .and_then(|status| status.start_time.as_ref())
                .map(|time| self.time_of(Time(time.0.as_millisecond()))),
            attained_ms: attained_ms(&pod.metadata, report),
            details,
            claims,
            scheduled_at: status.and_then(scheduled_at).map(|time| self.time_of(time)),
        })
    }

    fn shape(
        &mut self,
        pod: &core::Pod,
        spec: &core::PodSpec,
        namespace: Name,
        report: &mut Report<'_>,
    ) -> Option<PodShape> {
        let meta = &pod.metadata;
        let names = &mut self.names;
        let mut request = request(spec, names, report)?;
        let scored_request = scored_request(spec, meta, &request, names);
        let gpu_share_milli = gpu_share(meta, &mut request, report)?;
        let placed = spec.node_name.as_deref().is_some_and(|node| !node.is_empty());
        let constraints = self.constraints(spec, report);
        // Where a pod is already, its constraints have done their work.
        let constraints = if placed { constraints.unwrap_or_default() } else { constraints? };
        let neighbours = neighbours(spec, meta, &mut self.names, report);
        let neighbours = if placed { neighbours.unwrap_or_default() } else { neighbours? };
        let may_be_evicted = preemptable(meta, report);
        let annotations = self.annotations(meta);
        let names = &mut self.names;
        let of_template = |key: &str| !keys::INDEX_LABELS.contains(&key);
        let containers = || spec.init_containers.iter().flatten().chain(&spec.containers);
        let mut images: Vec<Name> = containers().filter_map(|one| image_name(one.image.as_deref()?, names)).collect();
        images.sort_unstable();
        Some(PodShape {
            namespace,
            scheduler_name: names.intern(spec.scheduler_name.as_deref().unwrap_or(DEFAULT_SCHEDULER)),
            labels: selectors::labels(meta.labels.iter().flatten().filter(|(key, _)| of_template(key)), names),
            annotations,
            request,
            scored_request,
            role: names.intern(annotation_or_label(meta, keys::TASK_SPEC).unwrap_or_default()),
            node_selector: selectors::labels(spec.node_selector.iter().flatten(), names),
            required_affinity: constraints.required,
            preferred_affinity: preferred(spec, names, report),
            tolerations: tolerations(spec, names, report),
            pod_affinity: neighbours.affinity,
            pod_anti_affinity: neighbours.anti_affinity,
            spread: neighbours.spread,
            workload: neighbours.workload,
            host_ports: constraints.ports,
            claims: claims_of(pod, names).0,
            features: features(spec, names),
            images,
            gpu_share_milli,
            protected: may_be_evicted == Some(false),
            asks_its_queue: asks_its_queue(meta, report),
            never_preempts: spec.preemption_policy.as_deref() == Some("Never"),
            priority_class: names.intern(spec.priority_class_name.as_deref().unwrap_or_default()),
            cooldown_ms: cooldown_ms(meta, report),
            revocable: revocable(meta, may_be_evicted, report),
            controlled: controller_of(meta).is_some(),
            volumes: volumes(meta.name.as_deref().unwrap_or_default(), spec, names),
        })
    }

    /// Reads what a node must satisfy, beside labels and room. `None` if some of it cannot be read.
    fn constraints(&mut self, spec: &core::PodSpec, report: &mut Report<'_>) -> Option<Constraints> {
        let names = &mut self.names;
        let mut sound = true;
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
        let required = required.map(|required| {
            let terms = required.node_selector_terms.iter().enumerate();
            terms
                .filter_map(|(i, term)| match selectors::node_term(term, names) {
                    Ok(term) => Some(term),
                    Err(why) => {
                        report.say(format_args!("required node affinity, term {i}: {why}; the pod is left out"));
                        sound = false;
                        None
                    }
                })
                .collect()
        });
        let sidecars = spec.init_containers.iter().flatten().filter(|container| is_restartable(container));
        let mut ports: Vec<HostPort> = Vec::new();
        for port in spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten()) {
            let number = match port.host_port {
                Some(number) if number != 0 => number,
                // On the host's network a container's port is the host's.
                _ if spec.host_network == Some(true) => port.container_port,
                _ => continue,
            };
            let Ok(number @ 1..) = u16::try_from(number) else {
                report.say(format_args!("host port {number} is not between 1 and 65535; the pod is left out"));
                sound = false;
                continue;
            };
            ports.push(HostPort {
                ip: names.intern(port.host_ip.as_deref().unwrap_or_default()),
                protocol: names.intern(port.protocol.as_deref().filter(|p| !p.is_empty()).unwrap_or("TCP")),
                port: number,
            });
        }
        ports.sort_unstable();
        ports.dedup();
        sound.then_some(Constraints { required, ports })
    }
}

#[derive(Default)]
struct Constraints {
    required: Option<Vec<NodeSelectorTerm>>,
    ports: Vec<HostPort>,
}

/// Features of the kubelet that a pod needs, by the fields that it uses: those of Kubernetes 1.36.
fn features(spec: &core::PodSpec, names: &mut NamePool) -> Vec<Name> {
    let containers = || spec.init_containers.iter().flatten().chain(&spec.containers);
    let mut rules = containers().flat_map(|one| one.restart_policy_rules.iter().flatten());
    let needed = [
        ("RestartAllContainersOnContainerExits", rules.any(|rule| rule.action == "RestartAllContainers")),
        ("UserNamespacesHostNetworkSupport", spec.host_network == Some(true) && spec.host_users == Some(false)),
    ];
    needed.into_iter().filter(|(_, needs)| *needs).map(|(name, _)| names.intern(name)).collect()
}

/// The owner that made a pod.
pub(crate) fn controller_of(
    meta: &ObjectMeta,
) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Reads the share of a GPU and adds it to the request; 0 if there is none, `None` if it cannot be read.
fn gpu_share(meta: &ObjectMeta, request: &mut Amounts, report: &mut Report<'_>) -> Option<u16> {
    let Some(text) = annotation(meta, keys::GPU_MILLI) else { return Some(0) };
    let Ok(share @ 1..=999) = text.trim().parse::<u16>() else {
        report.say(format_args!(
            "{} is `{}`; write thousandths of one device, 1 to 999; the pod is left out",
            keys::GPU_MILLI,
            shown(text)
        ));
        return None;
    };
    if request.get(GPU_NAME).is_some() {
        report.say(format_args!(
            "asks for a share of a GPU ({}) and for whole ones ({GPU_NAME}); ask for one of the two; the pod is left out",
            keys::GPU_MILLI
        ));
        return None;
    }
    request.set_amount(&GPU_NAME.into(), i64::from(share));
    Some(share)
}

fn preferred(spec: &core::PodSpec, names: &mut NamePool, report: &mut Report<'_>) -> Vec<(i32, NodeSelectorTerm)> {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = affinity.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref());
    let mut read = Vec::new();
    for (i, term) in terms.into_iter().flatten().enumerate() {
        match selectors::node_term(&term.preference, names) {
            _ if !(1..=100).contains(&term.weight) => {
                let weight = term.weight;
                report.say(format_args!(
                    "preferred node affinity, term {i}: weight {weight} is not in 1 to 100; the term is ignored"
                ));
            }
            // Kubernetes skips empty preferences.
            Ok(compiled) if compiled.is_empty() => {}
            Ok(compiled) => read.push((term.weight, compiled)),
            Err(why) => report.say(format_args!("preferred node affinity, term {i}: {why}; the term is ignored")),
        }
    }
    read
}

fn tolerations(spec: &core::PodSpec, names: &mut NamePool, report: &mut Report<'_>) -> Vec<Toleration> {
    let mut read = Vec::new();
    for (i, toleration) in spec.tolerations.iter().flatten().enumerate() {
        match selectors::toleration(toleration, names) {
            Ok(toleration) => read.push(toleration),
            Err(why) => report.say(format_args!("toleration {i}: {why}; it tolerates nothing")),
        }
    }
    read
}

fn priority(meta: &ObjectMeta, spec: &core::PodSpec, report: &mut Report<'_>) -> i32 {
    let given = spec.priority.unwrap_or(DEFAULT_PRIORITY);
    let Some(text) = annotation(meta, keys::TASK_PRIORITY) else { return given };
    text.parse().unwrap_or_else(|_| {
        report.say(format_args!("{} is `{}`, not an integer; it is ignored", keys::TASK_PRIORITY, shown(text)));
        given
    })
}

/// When a pod was given its node, if its status says so.
fn scheduled_at(status: &core::PodStatus) -> Option<Time> {
    let is_it = |one: &&core::PodCondition| one.type_ == "PodScheduled" && one.status == "True";
    let condition = status.conditions.iter().flatten().find(is_it)?;
    condition.last_transition_time.as_ref().map(|time| Time(time.0.as_millisecond()))
}

/// How long a pod is left in peace, label before annotation; 0 if it says nothing, or nothing that can be read.
fn cooldown_ms(meta: &ObjectMeta, report: &mut Report<'_>) -> i64 {
    let Some(text) = label(meta, keys::COOLDOWN_TIME).or_else(|| annotation(meta, keys::COOLDOWN_TIME)) else {
        return 0;
    };
    parse_duration(text).unwrap_or_else(|why| {
        report.say(format_args!("{}: {why}; it protects nothing", keys::COOLDOWN_TIME));
        0
    })
}

/// Whether a pod may run in revocable zones: it says so, or says nothing but that it may be evicted.
fn revocable(meta: &ObjectMeta, may_be_evicted: Option<bool>, report: &mut Report<'_>) -> bool {
    let Some(text) = annotation(meta, keys::REVOCABLE_ZONE) else { return may_be_evicted == Some(true) };
    if text != "*" {
        report.say(format_args!("{} is `{}`; the only value is `*`", keys::REVOCABLE_ZONE, shown(text)));
    }
    text == "*"
}

fn phase(text: Option<&str>) -> PodPhase {
    match text {
        None | Some("" | "Pending") => PodPhase::Pending,
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(_) => PodPhase::Unknown,
    }
}

/// An image's name with a tag: `latest` if it has none. Digests stay.
pub(crate) fn image_name(image: &str, names: &mut NamePool) -> Option<Name> {
    if image.is_empty() {
        return None;
    }
    // A colon before the last slash is a registry's port.
    let tagged = image.rfind(':').is_some_and(|colon| image.rfind('/').is_none_or(|slash| colon > slash));
    Some(if tagged { names.intern(image) } else { names.intern(&format!("{image}:latest")) })
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
