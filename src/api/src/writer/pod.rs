//! Pods.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::dra::ClaimSource;
use krafla_model::labels::{NodeSelectorTerm, Test};
use krafla_model::pod::HostPort;
use krafla_model::resources::GPU_NAME;
use krafla_model::taints::{Effect, Match, Toleration};
use krafla_model::{Amounts, Name, PodPhase, PodShape, PodSpec, Time};

use super::{amounts, annotations, condition, list, map, pod_affinity, text, time};
use crate::keys;

/// Writes a pod. Its priority stands in `spec.priority`.
pub fn pod(pod: &PodSpec) -> core::Pod {
    let shape = &*pod.shape;
    core::Pod {
        metadata: ObjectMeta {
            name: text(&pod.name),
            namespace: text(&shape.namespace),
            uid: text(&pod.uid),
            creation_timestamp: time(pod.created),
            deletion_timestamp: if pod.deleting { time(pod.created) } else { None },
            labels: map(&shape.labels),
            annotations: annotations([
                (keys::GROUP_NAME, pod.group.as_ref().map(ToString::to_string)),
                (keys::TASK_SPEC, text(&shape.role)),
                (keys::PREEMPTABLE, shape.protected.then(|| "false".to_owned())),
                (keys::QUEUE_ALLOCATION_GATE, shape.asks_its_queue.then(|| "true".to_owned())),
                (keys::ATTAINED, pod.attained_ms.map(seconds)),
                (keys::SCORED_REQUEST, shape.scored_request.map(|(cpu, memory)| format!("{cpu},{memory}"))),
                (keys::COOLDOWN_TIME, (shape.cooldown_ms > 0).then(|| format!("{}ms", shape.cooldown_ms))),
                (keys::REVOCABLE_ZONE, shape.revocable.then(|| "*".to_owned())),
                (keys::GPU_MILLI, (shape.gpu_share_milli > 0).then(|| shape.gpu_share_milli.to_string())),
            ]),
            owner_references: shape.workload.as_ref().map(|workload| vec![pod_affinity::owner(workload)]),
            ..ObjectMeta::default()
        },
        spec: Some(core::PodSpec {
            resource_claims: list(claims(pod)),
            host_network: needs(shape, "UserNamespacesHostNetworkSupport").then_some(true),
            host_users: needs(shape, "UserNamespacesHostNetworkSupport").then_some(false),
            containers: containers(shape),
            node_name: pod.node.as_ref().and_then(text),
            node_selector: map(&shape.node_selector),
            scheduler_name: text(&shape.scheduler_name),
            affinity: affinity(shape),
            topology_spread_constraints: list(shape.spread.iter().map(pod_affinity::spread).collect()),
            tolerations: list(shape.tolerations.iter().map(toleration).collect()),
            scheduling_gates: list(
                pod.gates.iter().map(|gate| core::PodSchedulingGate { name: gate.to_string() }).collect(),
            ),
            volumes: super::volumes::volumes(&pod.name, &shape.volumes),
            priority: Some(pod.priority),
            priority_class_name: text(&shape.priority_class),
            preemption_policy: shape.never_preempts.then(|| "Never".to_owned()),
            ..core::PodSpec::default()
        }),
        status: Some(core::PodStatus {
            phase: Some(phase(pod.phase).to_owned()),
            start_time: pod.started.and_then(time),
            nominated_node_name: pod.nominated.as_ref().and_then(text),
            conditions: pod.scheduled_at.map(|at| vec![scheduled(at)]),
            resource_claim_statuses: list(claim_statuses(pod)),
            ..core::PodStatus::default()
        }),
    }
}

fn needs(shape: &PodShape, feature: &str) -> bool {
    shape.features.iter().any(|one| *one == feature)
}

/// Its claims, each with its source. A claim that turned out not to be needed has no name any more.
fn claims(pod: &PodSpec) -> Vec<core::PodResourceClaim> {
    let named = |at: usize| pod.claims.get(at).map_or_else(|| format!("claim-{at}"), |claim| claim.name.to_string());
    let write = |(at, source): (usize, &ClaimSource)| match source {
        ClaimSource::Claim(name) => core::PodResourceClaim {
            name: named(at),
            resource_claim_name: Some(name.to_string()),
            ..core::PodResourceClaim::default()
        },
        ClaimSource::Template(name) => core::PodResourceClaim {
            name: named(at),
            resource_claim_template_name: Some(name.to_string()),
            ..core::PodResourceClaim::default()
        },
    };
    pod.shape.claims.iter().enumerate().map(write).collect()
}

/// What has become of claims that are made from templates.
fn claim_statuses(pod: &PodSpec) -> Vec<core::PodResourceClaimStatus> {
    let made = pod.claims.iter().filter(|claim| claim.generated && claim.claim.is_some());
    let status =
        |name: String, claim: Option<String>| core::PodResourceClaimStatus { name, resource_claim_name: claim };
    let made = made.map(|claim| status(claim.name.to_string(), claim.claim.as_ref().map(ToString::to_string)));
    let needless = (pod.claims.len()..pod.shape.claims.len()).map(|at| status(format!("claim-{at}"), None));
    made.chain(needless).collect()
}

/// Milliseconds as seconds, whole ones without a fraction.
fn seconds(ms: i64) -> String {
    let ms = ms.max(0);
    if ms % 1_000 == 0 { (ms / 1_000).to_string() } else { format!("{}.{:03}", ms / 1_000, ms % 1_000) }
}

/// The condition that says when a pod was given its node.
fn scheduled(at: Time) -> core::PodCondition {
    core::PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "True".to_owned(),
        last_transition_time: time(at),
        ..core::PodCondition::default()
    }
}

fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    }
}

/// A container an image; the first has the request and the ports. The others ask for 0, so that they count for nothing in
/// resource scores either.
fn containers(shape: &PodShape) -> Vec<core::Container> {
    let images = shape.images.iter().map(Some).chain(std::iter::repeat(None));
    images
        .take(shape.images.len().max(1))
        .enumerate()
        .map(|(i, image)| core::Container {
            name: format!("c{i}"),
            image: image.map(ToString::to_string),
            resources: if i == 0 { resources(shape) } else { Some(nothing()) },
            restart_policy_rules: (i == 0 && needs(shape, "RestartAllContainersOnContainerExits")).then(|| {
                vec![core::ContainerRestartRule { action: "RestartAllContainers".to_owned(), exit_codes: None }]
            }),
            ports: if i == 0 { list(shape.host_ports.iter().map(port).collect()) } else { None },
            ..core::Container::default()
        })
        .collect()
}

/// An API server wants a limit for what cannot be shared out beyond what there is.
fn resources(shape: &PodShape) -> Option<core::ResourceRequirements> {
    let mut own = Amounts::default();
    // A share of a device is said by its annotation alone.
    for (resource, amount) in shape.request.iter().filter(|(name, _)| **name != GPU_NAME || shape.gpu_share_milli == 0)
    {
        own.set_amount(resource, amount);
    }
    let requests = amounts(&own);
    let limits = requests.iter().filter(|(name, _)| name.contains('/') || name.starts_with("hugepages-"));
    let limits: super::ResourceList = limits.map(|(name, amount)| (name.clone(), amount.clone())).collect();
    (!requests.is_empty()).then(|| core::ResourceRequirements {
        limits: Some(limits).filter(|limits| !limits.is_empty()),
        requests: Some(requests),
        ..core::ResourceRequirements::default()
    })
}

/// A request that names CPU and memory, and asks for none.
fn nothing() -> core::ResourceRequirements {
    let none = amounts(&Amounts::default().with("cpu", 0).with("memory", 0));
    core::ResourceRequirements { requests: Some(none), ..core::ResourceRequirements::default() }
}

fn port(port: &HostPort) -> core::ContainerPort {
    core::ContainerPort {
        container_port: i32::from(port.port),
        host_port: Some(i32::from(port.port)),
        host_ip: text(&port.ip),
        protocol: text(&port.protocol),
        ..core::ContainerPort::default()
    }
}

fn affinity(shape: &PodShape) -> Option<core::Affinity> {
    let required = shape
        .required_affinity
        .as_ref()
        .map(|terms| core::NodeSelector { node_selector_terms: terms.iter().map(term).collect() });
    let preferred = shape.preferred_affinity.iter();
    let preferred =
        preferred.map(|(weight, one)| core::PreferredSchedulingTerm { weight: *weight, preference: term(one) });
    let preferred = list(preferred.collect());
    let node_affinity = (required.is_some() || preferred.is_some()).then_some(core::NodeAffinity {
        required_during_scheduling_ignored_during_execution: required,
        preferred_during_scheduling_ignored_during_execution: preferred,
    });
    let pod_affinity = pod_affinity::affinity(&shape.pod_affinity);
    let pod_anti_affinity = pod_affinity::anti_affinity(&shape.pod_anti_affinity);
    let any = node_affinity.is_some() || pod_affinity.is_some() || pod_anti_affinity.is_some();
    any.then_some(core::Affinity { node_affinity, pod_affinity, pod_anti_affinity })
}

fn term(term: &NodeSelectorTerm) -> core::NodeSelectorTerm {
    let requirement = |key: &Name, test: &Test| {
        let (operator, values) = condition(test);
        core::NodeSelectorRequirement { key: key.to_string(), operator: operator.to_owned(), values }
    };
    let name = Name::from("metadata.name");
    core::NodeSelectorTerm {
        match_expressions: list(term.labels.iter().map(|one| requirement(&one.key, &one.test)).collect()),
        match_fields: list(term.name.iter().map(|test| requirement(&name, test)).collect()),
    }
}

fn toleration(toleration: &Toleration) -> core::Toleration {
    let (operator, value) = match &toleration.test {
        Match::Exists => ("Exists", None),
        Match::Equal(value) => ("Equal", text(value)),
    };
    core::Toleration {
        key: toleration.key.as_ref().map(ToString::to_string),
        operator: Some(operator.to_owned()),
        value,
        effect: toleration.effect.map(|one| effect(one).to_owned()),
        ..core::Toleration::default()
    }
}

pub(super) fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    }
}
