//! PodGroups: Volcano's, coscheduling's, Kubernetes', and the one that a controller makes for pods without any.
//!
//! A PodGroup whose `minResources` or sub-groups cannot be read is left out: its pods wait, rather than being admitted
//! on a guess. A count out of range is reported and read as 0, and a topology mode as `hard`, as Volcano reads it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::budget::{Aim, Share};
use krafla_model::queue::DEFAULT_QUEUE;
use krafla_model::resources::unit_of;
use krafla_model::subgroup::{NetworkTopology, SubGroupPolicy, TopologyMode};
use krafla_model::{Amounts, JobPhase, Name, PodGroupSpec, Problem, quantity};

use crate::converter::{Converter, Identity};
use crate::crds::{CoschedulingGroup, KubernetesGroup, PodGroup, PodGroupFields, SubGroupFields, TopologyFields};
use crate::duration::{parse_duration, shown};
use crate::keys;
use crate::pod::controller_of;
use crate::quantities::{self, ResourceList};
use crate::report::{Report, annotation, namespace_of, preemptable};
use crate::request::request;
use crate::selectors;

/// Said of a PodGroup whose pods belong near each other.
pub(crate) const TOPOLOGY_UNUSED: &str =
    "asks for a network topology or sub-groups, which this version reads but does not act upon";

impl Converter {
    /// Reads Volcano's PodGroup.
    pub fn pod_group(&mut self, group: &PodGroup) -> (Option<PodGroupSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("podgroup", &group.metadata);
        let nothing = PodGroupFields::default();
        let fields = group.spec.as_ref().unwrap_or(&nothing);
        let phase = group.status.as_ref().and_then(|status| status.phase.as_deref());
        let phase_missing = phase.is_none_or(str::is_empty);
        let read = self.read_group(&group.metadata, fields, volcano_phase(phase), &mut report);
        (read.map(|spec| PodGroupSpec { phase_missing, ..spec }), report.into_problems())
    }

    /// Reads coscheduling's PodGroup. Its queue is that of the annotation `scheduling.volcano.sh/queue-name`.
    pub fn coscheduling_group(&mut self, group: &CoschedulingGroup) -> (Option<PodGroupSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("podgroup", &group.metadata);
        let spec = group.spec.clone().unwrap_or_default();
        let fields = PodGroupFields {
            min_member: spec.min_member,
            min_resources: spec.min_resources,
            queue: annotation(&group.metadata, keys::QUEUE_NAME).map(str::to_owned),
            ..PodGroupFields::default()
        };
        let phase = match group.status.as_ref().and_then(|status| status.phase.as_deref()) {
            Some("PreScheduling" | "Scheduling") => JobPhase::Inqueue,
            Some("Scheduled" | "Running") => JobPhase::Running,
            Some("Finished" | "Failed") => JobPhase::Completed,
            Some("Unknown") => JobPhase::Unknown,
            _ => JobPhase::Pending,
        };
        let read = self.read_group(&group.metadata, &fields, phase, &mut report);
        let timeout_ms = spec.schedule_timeout_seconds.filter(|seconds| *seconds > 0).map(|seconds| seconds * 1_000);
        let read = read.map(|read| PodGroupSpec { schedule_timeout_ms: timeout_ms, ..read });
        (read, report.into_problems())
    }

    /// Reads Kubernetes' own PodGroup. Without a gang policy each of its pods stands for itself.
    pub fn kubernetes_group(&mut self, group: &KubernetesGroup) -> (Option<PodGroupSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("podgroup", &group.metadata);
        let spec = group.spec.clone().unwrap_or_default();
        let gang = spec.scheduling_policy.and_then(|policy| policy.gang);
        let fields = PodGroupFields {
            min_member: Some(gang.and_then(|gang| gang.min_count).unwrap_or(1)),
            priority_class_name: spec.priority_class_name,
            queue: annotation(&group.metadata, keys::QUEUE_NAME).map(str::to_owned),
            ..PodGroupFields::default()
        };
        let read = self.read_group(&group.metadata, &fields, JobPhase::Pending, &mut report);
        (read, report.into_problems())
    }

    /// The PodGroup of a pod that names none, as an event; see [`group_for_pod`](Self::group_for_pod).
    pub fn implicit_group(&mut self, pod: &Pod, owner: Option<&ObjectMeta>) -> (Option<PodGroupSpec>, Vec<Problem>) {
        let (group, mut problems) = self.group_for_pod(pod, owner);
        let Some(group) = group else { return (None, problems) };
        let (spec, more) = self.pod_group(&group);
        problems.extend(more);
        (spec, problems)
    }

    /// The PodGroup of a pod that names none, as Volcano's controller makes it: one for all pods of an owner, with the
    /// minimum and the `volcano.sh/` annotations that the owner has, and the queue that the *pod* names. For a gang
    /// that labels declare, that gang's.
    ///
    /// `owner` is the object that controls the pod, if it is known. The pod has to be linked to it by its name.
    pub fn group_for_pod(&mut self, pod: &Pod, owner: Option<&ObjectMeta>) -> (Option<PodGroup>, Vec<Problem>) {
        if let Some((name, min)) = crate::pod::label_gang(pod) {
            return (Some(label_gang_group(pod, name, min)), Vec::new());
        }
        let mut report = Report::namespaced("podgroup of pod", &pod.metadata);
        let group = self.make_group(pod, owner, &mut report);
        (group, report.into_problems())
    }

    fn make_group(&mut self, pod: &Pod, owner: Option<&ObjectMeta>, report: &mut Report<'_>) -> Option<PodGroup> {
        let meta = &pod.metadata;
        let nothing = Default::default();
        let spec = pod.spec.as_ref().unwrap_or(&nothing);
        let request = request(spec, &mut self.names, report)?;
        // Unreadable or negative is 1, as in Volcano; 0 is accepted.
        let min_member = owner
            .and_then(|owner| annotation(owner, keys::GROUP_MIN_MEMBER))
            .and_then(|text| text.parse::<i32>().ok())
            .and_then(|min| u32::try_from(min).ok())
            .unwrap_or(1);
        let inherited = owner.and_then(|owner| owner.annotations.as_ref()).into_iter().flatten();
        let inherited = inherited.filter(|(key, _)| {
            key.starts_with("volcano.sh/") || [keys::WEIGHT, keys::ESTIMATE].contains(&key.as_str())
        });
        let own = meta.annotations.iter().flatten().filter(|(key, _)| keys::OF_ITS_GROUP.contains(&key.as_str()));
        let annotations: BTreeMap<String, String> =
            inherited.chain(own).map(|(key, value)| (key.clone(), value.clone())).collect();
        let min_resources = times(&request, min_member);
        let min_resources = min_resources
            .iter()
            .map(|(resource, amount)| (resource.to_string(), Quantity(quantity::format(amount, unit_of(resource)))));
        Some(PodGroup {
            metadata: ObjectMeta {
                name: Some(implicit_group_name(pod)),
                namespace: Some(namespace_of(meta).to_owned()),
                creation_timestamp: meta.creation_timestamp.clone(),
                annotations: Some(annotations).filter(|all| !all.is_empty()),
                ..ObjectMeta::default()
            },
            spec: Some(PodGroupFields {
                min_member: Some(i64::from(min_member)),
                min_resources: Some(min_resources.collect()),
                queue: annotation(meta, keys::QUEUE_NAME).map(str::to_owned),
                priority_class_name: spec.priority_class_name.clone(),
                network_topology: pod_topology(meta, report),
                ..PodGroupFields::default()
            }),
            status: None,
        })
    }

    /// Reads the fields that PodGroups of all kinds have.
    pub(crate) fn read_group(
        &mut self,
        meta: &ObjectMeta,
        fields: &PodGroupFields,
        phase: JobPhase,
        report: &mut Report<'_>,
    ) -> Option<PodGroupSpec> {
        let Identity { namespace, name, uid, created } = self.identity(meta, report)?;
        let min_task_member = fields.min_task_member.iter().flatten();
        let min_task_member = min_task_member
            .map(|(role, &min)| {
                (self.names.intern(role), count(Some(min), 0, &format!("minTaskMember.{role}"), report))
            })
            .collect();
        let min_resources = match &fields.min_resources {
            None => None,
            Some(list) => Some(self.min_resources(list, report)?),
        };
        let mut sub_groups = Vec::new();
        for (i, policy) in fields.sub_group_policy.iter().flatten().enumerate() {
            sub_groups.push(self.sub_group(i, policy, report)?);
        }
        if fields.network_topology.is_some() || !sub_groups.is_empty() {
            report.say(TOPOLOGY_UNUSED);
        }
        Some(PodGroupSpec {
            uid,
            namespace,
            name,
            queue: self.queue_name(fields.queue.as_deref()),
            created,
            priority_class: self.names.intern(fields.priority_class_name.as_deref().unwrap_or_default()),
            min_member: count(fields.min_member, 0, "minMember", report),
            min_task_member,
            min_resources,
            topology: self.topology(fields.network_topology.as_ref(), "networkTopology", report),
            sub_groups,
            phase,
            phase_missing: false,
            sla_waiting_ms: sla_waiting_ms(meta, report),
            weight: weight(meta, report),
            preemptable: preemptable(meta, report),
            estimate_ms: estimate_ms(meta, report),
            schedule_timeout_ms: None,
            stays: stays(meta, report),
        })
    }

    fn queue_name(&mut self, queue: Option<&str>) -> Name {
        self.names.intern(queue.filter(|queue| !queue.is_empty()).unwrap_or(DEFAULT_QUEUE))
    }

    fn min_resources(&mut self, list: &ResourceList, report: &mut Report<'_>) -> Option<Amounts> {
        // Quota names such as `requests.cpu`, which Volcano's controller writes beside those of nodes, stay: the state
        // leaves them out of what nodes have to give, and quotas are held against them.
        let field = format_args!("spec.minResources");
        let (amounts, complete) =
            quantities::reported(Some(list), field, "the podgroup is left out", &mut self.names, report);
        complete.then_some(amounts)
    }

    fn sub_group(&mut self, i: usize, policy: &SubGroupFields, report: &mut Report<'_>) -> Option<SubGroupPolicy> {
        let selector = policy.label_selector.as_ref().map(|selector| selectors::selector(selector, &mut self.names));
        let selector = match selector.transpose() {
            Ok(selector) => selector,
            Err(why) => {
                report.say(format_args!("subGroupPolicy[{i}].labelSelector: {why}; the podgroup is left out"));
                return None;
            }
        };
        let of_selector = selector.iter().flat_map(|selector| &selector.0).map(|one| one.key.as_str());
        let label_keys = policy.match_label_keys.iter().flatten().map(String::as_str);
        for key in of_selector.chain(label_keys).filter(|key| keys::INDEX_LABELS.contains(key)) {
            report.say(format_args!(
                "subGroupPolicy[{i}] tells pods apart by {key}, which names a single pod and is not looked at"
            ));
        }
        Some(SubGroupPolicy {
            name: self.names.intern(policy.name.as_deref().unwrap_or_default()),
            topology: self.topology(
                policy.network_topology.as_ref(),
                &format!("subGroupPolicy[{i}].networkTopology"),
                report,
            ),
            size: count(policy.sub_group_size, 1, &format!("subGroupPolicy[{i}].subGroupSize"), report),
            min_sub_groups: count(policy.min_sub_groups, 0, &format!("subGroupPolicy[{i}].minSubGroups"), report),
            selector,
            match_label_keys: policy.match_label_keys.iter().flatten().map(|key| self.names.intern(key)).collect(),
        })
    }

    pub(crate) fn topology(
        &mut self,
        fields: Option<&TopologyFields>,
        field: &str,
        report: &mut Report<'_>,
    ) -> Option<NetworkTopology> {
        let fields = fields?;
        let name = fields.highest_tier_name.as_deref().filter(|name| !name.is_empty());
        let tier = fields.highest_tier_allowed;
        if name.is_some() && tier.is_some() {
            report.say(format_args!(
                "{field} has both highestTierAllowed and highestTierName; only highestTierAllowed counts"
            ));
        }
        Some(NetworkTopology {
            mode: mode(fields.mode.as_deref().unwrap_or_default(), field, report),
            highest_tier: tier.map(|tier| count(Some(tier), 0, &format!("{field}.highestTierAllowed"), report)),
            highest_tier_name: name.filter(|_| tier.is_none()).map(|name| self.names.intern(name)),
        })
    }
}

/// Name of the PodGroup that is made for a pod without one: that of its controller's UID, or of the pod's own.
/// Objects that never met an API server have no UID; kind and name stand for it.
pub fn implicit_group_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    match (controller_of(meta), meta.uid.as_deref().filter(|uid| !uid.is_empty())) {
        (Some(owner), _) if owner.uid.is_empty() => {
            format!("podgroup-{}-{}", owner.kind.to_lowercase(), owner.name)
        }
        (Some(owner), _) => format!("podgroup-{}", owner.uid),
        (None, Some(uid)) => format!("podgroup-{uid}"),
        (None, None) => format!("podgroup-{}", meta.name.as_deref().unwrap_or_default()),
    }
}

/// What `n` pods of one request need, with their slots.
pub(crate) fn times(request: &Amounts, n: u32) -> Amounts {
    let mut sum = Amounts::default();
    for (resource, amount) in request.iter() {
        sum.set_amount(resource, amount.saturating_mul(i64::from(n)));
    }
    sum.with("pods", i64::from(n))
}

/// A count; out of range it is 0, and reported.
pub(crate) fn count(given: Option<i64>, default: u32, field: &str, report: &mut Report<'_>) -> u32 {
    let Some(given) = given else { return default };
    u32::try_from(given).unwrap_or_else(|_| {
        report.say(format_args!("{} is {given}, not a number of 0 to {}; it counts as 0", shown(field), u32::MAX));
        0
    })
}

fn mode(text: &str, field: &str, report: &mut Report<'_>) -> TopologyMode {
    match text.to_ascii_lowercase().as_str() {
        "" | "hard" => TopologyMode::Hard,
        "soft" => TopologyMode::Soft,
        _ => {
            report.say(format_args!("{field} has the mode `{}`, neither hard nor soft; it is hard", shown(text)));
            TopologyMode::Hard
        }
    }
}

/// The topology that a pod asks for its PodGroup by annotations.
fn pod_topology(meta: &ObjectMeta, report: &mut Report<'_>) -> Option<TopologyFields> {
    let (text, tier) = (annotation(meta, keys::TOPOLOGY_MODE), annotation(meta, keys::TOPOLOGY_HIGHEST_TIER));
    if text.is_none() && tier.is_none() {
        return None;
    }
    let highest_tier_allowed = tier.and_then(|text| {
        let read = text.parse::<u32>().ok();
        if read.is_none() {
            let key = keys::TOPOLOGY_HIGHEST_TIER;
            report.say(format_args!("{key} is `{}`, not a tier; it is ignored", shown(text)));
        }
        read.map(i64::from)
    });
    let mode = match mode(text.unwrap_or_default(), keys::TOPOLOGY_MODE, report) {
        TopologyMode::Hard => "hard",
        TopologyMode::Soft => "soft",
    };
    Some(TopologyFields { mode: Some(mode.to_owned()), highest_tier_allowed, highest_tier_name: None })
}

/// How many pods have to stay; the minimum goes before the maximum.
fn stays(meta: &ObjectMeta, report: &mut Report<'_>) -> Option<Aim> {
    let keys = [keys::JDB_MIN_AVAILABLE, keys::JDB_MAX_UNAVAILABLE];
    let (key, text) = keys.into_iter().find_map(|key| Some((key, annotation(meta, key)?)))?;
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().map(Share::Percent),
        None => text.parse().ok().map(Share::Count),
    };
    if share.is_none() {
        report.say(format_args!("{key} is `{}`; write a number of pods or a percentage; it is ignored", shown(text)));
    }
    let aim = if key == keys::JDB_MIN_AVAILABLE { Aim::MinAvailable } else { Aim::MaxUnavailable };
    share.map(aim)
}

fn sla_waiting_ms(meta: &ObjectMeta, report: &mut Report<'_>) -> Option<i64> {
    let keys = [keys::SLA_WAITING_TIME, keys::SLA_WAITING_TIME_SHORT];
    let (key, text) = keys.into_iter().find_map(|key| Some((key, annotation(meta, key)?)))?;
    match parse_duration(text) {
        Ok(ms) if ms > 0 => return Some(ms),
        Ok(_) => report.say(format_args!("{key} is `{}`, which is no time at all; it is ignored", shown(text))),
        Err(why) => report.say(format_args!("{key}: {why}; it is ignored")),
    }
    None
}

fn estimate_ms(meta: &ObjectMeta, report: &mut Report<'_>) -> Option<i64> {
    let text = annotation(meta, keys::ESTIMATE)?;
    parse_duration(text).map_err(|why| report.say(format_args!("{}: {why}; it is ignored", keys::ESTIMATE))).ok()
}

fn weight(meta: &ObjectMeta, report: &mut Report<'_>) -> u32 {
    let Some(text) = annotation(meta, keys::WEIGHT) else { return 1 };
    text.trim().parse().ok().filter(|weight| *weight > 0).unwrap_or_else(|| {
        report.say(format_args!("{} is `{}`, not a number from 1 on; it counts as 1", keys::WEIGHT, shown(text)));
        1
    })
}

fn volcano_phase(text: Option<&str>) -> JobPhase {
    match text {
        Some("Inqueue") => JobPhase::Inqueue,
        Some("Running") => JobPhase::Running,
        Some("Unknown") => JobPhase::Unknown,
        Some("Completed") => JobPhase::Completed,
        _ => JobPhase::Pending,
    }
}

/// The PodGroup, in its namespace, of a gang that labels declare; what [`crate::label_gang`] finds.
pub fn label_gang_group(pod: &Pod, name: &str, min: u32) -> PodGroup {
    let meta = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace_of(&pod.metadata).to_owned()),
        creation_timestamp: pod.metadata.creation_timestamp.clone(),
        ..ObjectMeta::default()
    };
    let spec = PodGroupFields {
        min_member: Some(i64::from(min)),
        queue: annotation(&pod.metadata, keys::QUEUE_NAME).map(str::to_owned),
        priority_class_name: pod.spec.as_ref().and_then(|spec| spec.priority_class_name.clone()),
        ..PodGroupFields::default()
    };
    PodGroup { metadata: meta, spec: Some(spec), status: None }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
