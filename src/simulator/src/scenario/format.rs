//! The scenario format, as it is written. Unknown keys are errors with their place.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::Spanned;

/// A quantity or a number as it is written; read later, with its unit.
pub(super) type Written = String;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Scenario {
    pub(super) scenario: String,
    #[serde(default)]
    #[allow(dead_code, reason = "free text for people who read the files")]
    pub(super) about: String,
    #[serde(default)]
    #[allow(dead_code, reason = "free text for people who search the files")]
    pub(super) covers: Vec<String>,
    /// Why it can only be played on the simulator, if so.
    pub(super) simulator_only: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) period: Option<Spanned<Written>>,
    pub(super) until: Option<Spanned<Written>>,
    pub(super) bind_latency: Option<Spanned<Written>>,
    pub(super) start_latency: Option<Spanned<Written>>,
    pub(super) evict_grace: Option<Spanned<Written>>,
    pub(super) restart_cost: Option<Spanned<Written>>,
    pub(super) config: Option<Spanned<String>>,
    pub(super) config_file: Option<String>,
    pub(super) profiles: Option<String>,
    pub(super) descheduler: Option<Spanned<DeschedulerEntry>>,
    #[serde(default)]
    pub(super) cluster: Cluster,
    #[serde(default)]
    pub(super) timeline: Vec<Spanned<TimelineEntry>>,
    #[serde(default)]
    pub(super) expect: Vec<Spanned<Expectation>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Cluster {
    #[serde(default)]
    pub(super) nodes: Vec<Spanned<NodeEntry>>,
    #[serde(default)]
    pub(super) queues: Vec<Spanned<QueueEntry>>,
    #[serde(default)]
    pub(super) priority_classes: BTreeMap<String, PriorityClassEntry>,
    #[serde(default)]
    pub(super) hypernodes: Vec<HyperNodeEntry>,
    #[serde(default)]
    pub(super) manifests: Vec<Spanned<Value>>,
}

/// A node, or a change of one: what is not given stays as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct NodeEntry {
    pub(super) name: String,
    pub(super) count: Option<u32>,
    pub(super) cpu: Option<Written>,
    pub(super) memory: Option<Written>,
    pub(super) pods: Option<Written>,
    pub(super) gpu: Option<Written>,
    pub(super) gpu_devices: Option<u8>,
    pub(super) capacity: BTreeMap<String, Written>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    pub(super) taints: Option<Vec<TaintEntry>>,
    pub(super) unschedulable: Option<bool>,
    pub(super) images: Option<BTreeMap<String, Written>>,
    pub(super) ready: Option<bool>,
}

/// A taint as Kubernetes writes it in objects, or as `kubectl taint` does: `key=value:NoSchedule`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum TaintEntry {
    Short(String),
    Long {
        key: String,
        #[serde(default)]
        value: String,
        effect: String,
    },
}

/// A queue, or a change of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct QueueEntry {
    pub(super) name: String,
    pub(super) weight: Option<u32>,
    pub(super) parent: Option<String>,
    pub(super) reclaimable: Option<bool>,
    pub(super) priority: Option<i32>,
    pub(super) state: Option<String>,
    pub(super) deserved: Option<BTreeMap<String, Written>>,
    pub(super) capability: Option<BTreeMap<String, Written>>,
    pub(super) guarantee: Option<BTreeMap<String, Written>>,
    pub(super) affinity: Option<Value>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum PriorityClassEntry {
    Value(i32),
    Full(FullPriorityClass),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct FullPriorityClass {
    pub(super) value: i32,
    pub(super) preemption_policy: Option<String>,
    #[serde(default)]
    pub(super) global_default: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read so that its keys are checked; topology is not modelled yet")]
pub(super) struct HyperNodeEntry {
    pub(super) name: String,
    pub(super) tier: u32,
    #[serde(default)]
    pub(super) nodes: Vec<String>,
    #[serde(default)]
    pub(super) hypernodes: Vec<String>,
}

/// One event. Exactly one of the keys beside `at` is given.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct TimelineEntry {
    pub(super) at: Option<Written>,
    pub(super) submit: Option<JobEntry>,
    pub(super) pod: Option<JobEntry>,
    pub(super) delete: Option<Which>,
    pub(super) evict: Option<Which>,
    /// Takes the scheduling gates off a pod, or off the pods of a job.
    pub(super) ungate: Option<Which>,
    /// Replaces the pods of a job by those of a new revision.
    pub(super) rollout: Option<RolloutEntry>,
    pub(super) node: Option<NodeEntry>,
    pub(super) add_node: Option<NodeEntry>,
    pub(super) queue: Option<QueueEntry>,
    pub(super) apply: Option<Value>,
    pub(super) config: Option<String>,
    pub(super) fault: Option<FaultEntry>,
    /// A round of the descheduler, now.
    pub(super) deschedule: Option<bool>,
    /// What a node, a pod, or each pod of a job uses from now on.
    pub(super) usage: Option<UsageEntry>,
}

/// The descheduler of a scenario.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct DeschedulerEntry {
    /// The DeschedulerPolicy, as text.
    pub(super) policy: String,
    pub(super) interval: Option<Written>,
    pub(super) planning: PlanningEntry,
    pub(super) cool_down: Option<Written>,
    pub(super) keep: Option<Written>,
    pub(super) auto_enable: bool,
    pub(super) dry_run: bool,
    pub(super) evictions_in_background: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum PlanningEntry {
    #[default]
    Kept,
    Foreseen,
    Off,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct UsageEntry {
    pub(super) node: Option<String>,
    pub(super) pod: Option<String>,
    pub(super) job: Option<String>,
    pub(super) cpu: Option<Written>,
    pub(super) memory: Option<Written>,
    /// What the policy's query answers for a node, from 0 to 1.
    pub(super) sample: Option<f64>,
}

/// A job with its PodGroup, or one pod without.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct JobEntry {
    /// The job's name (`submit`).
    pub(super) job: Option<String>,
    /// The pod's name (`pod`).
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) replicas: Option<u32>,
    pub(super) min_member: Option<u32>,
    pub(super) request: BTreeMap<String, Written>,
    pub(super) gpu: Option<Written>,
    pub(super) request_gpu_milli: Option<u16>,
    pub(super) priority: Option<String>,
    pub(super) runtime: Option<Written>,
    pub(super) estimate: Option<Written>,
    pub(super) grace: Option<Written>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
    pub(super) tolerations: Vec<Value>,
    pub(super) affinity: Option<Value>,
    pub(super) topology_spread: Vec<Value>,
    pub(super) images: Vec<String>,
    pub(super) host_ports: Vec<u16>,
    pub(super) roles: Vec<RoleEntry>,
    pub(super) topology: Option<TopologyEntry>,
    pub(super) controller: ControllerEntry,
    pub(super) scheduler: Option<String>,
    pub(super) preemptable: Option<bool>,
    pub(super) gates: Vec<String>,
    pub(super) min_resources: Option<BTreeMap<String, Written>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct RoleEntry {
    pub(super) name: String,
    pub(super) replicas: u32,
    pub(super) min: Option<u32>,
    pub(super) request: BTreeMap<String, Written>,
    pub(super) gpu: Option<Written>,
    pub(super) request_gpu_milli: Option<u16>,
    pub(super) runtime: Option<Written>,
    pub(super) priority: Option<i32>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) node_selector: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TopologyEntry {
    #[serde(default)]
    pub(super) mode: Option<String>,
    pub(super) highest_tier: Option<u32>,
    pub(super) highest_tier_name: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ControllerEntry {
    #[default]
    None,
    Recreate,
}

/// Names one object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Which {
    pub(super) job: Option<String>,
    pub(super) pod: Option<String>,
    pub(super) node: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) namespace: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RolloutEntry {
    pub(super) job: String,
    pub(super) namespace: Option<String>,
    pub(super) surge: Option<u32>,
    pub(super) unavailable: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct FaultEntry {
    pub(super) bind: Option<String>,
    pub(super) evict: Option<String>,
    pub(super) watch: Option<String>,
    pub(super) api: Option<String>,
    pub(super) scheduler: Option<String>,
    pub(super) count: Option<u32>,
    pub(super) r#for: Option<Written>,
}

/// What must hold. At most one of `job`, `pod`, `node`, `queue` says of what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct Expectation {
    pub(super) at: Option<Written>,
    pub(super) always: bool,
    pub(super) job: Option<String>,
    pub(super) pod: Option<String>,
    /// A node to look at; or, beside `pod`, the node that the pod must have (`null`: none).
    #[serde(deserialize_with = "given")]
    pub(super) node: Option<Option<String>>,
    pub(super) queue: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) bound: Option<Written>,
    pub(super) ready: Option<Written>,
    pub(super) pending: Option<Written>,
    pub(super) finished: Option<Written>,
    pub(super) evictions: Option<Written>,
    /// Pods that the descheduler evicted, or would have in a dry run, in all rounds so far.
    pub(super) descheduled: Option<Written>,
    pub(super) phase: Option<String>,
    pub(super) on_nodes: Option<Vec<String>>,
    pub(super) distinct: Option<Distinct>,
    pub(super) spread: Option<Spread>,
    pub(super) used_cpu: Option<Written>,
    pub(super) used_gpu: Option<Written>,
    pub(super) deserved: Option<BTreeMap<String, Written>>,
    pub(super) share: Option<Written>,
    pub(super) reason: Option<String>,
    pub(super) reason_contains: Option<String>,
    #[serde(deserialize_with = "given")]
    pub(super) nominated: Option<Option<String>>,
    pub(super) started: Option<Written>,
    pub(super) event: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Distinct {
    pub(super) label: String,
    pub(super) count: Written,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spread {
    pub(super) label: String,
    pub(super) counts: Vec<u32>,
}

/// Tells `key: null` from a key that is not there.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::<String>::deserialize(deserializer).map(Some)
}
