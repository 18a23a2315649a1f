//! The annotation and label keys that are read, by who defined them.

/// The PodGroup of a pod: Volcano's binding contract.
pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// The same under the name that Volcano's controllers also read.
pub const VOLCANO_GROUP_NAME: &str = "scheduling.volcano.sh/group-name";
/// Coscheduling's label for the same.
pub const COSCHEDULING_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// Label of the gang of a pod in coscheduling's first form, which needs no PodGroup object.
pub const LABEL_GANG_NAME: &str = "pod-group.scheduling.sigs.k8s.io/name";
/// Label with that gang's minimum.
pub const LABEL_GANG_MIN: &str = "pod-group.scheduling.sigs.k8s.io/min-available";

/// Annotation of a pod: the queue of the PodGroup that is made for it.
pub const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
/// Annotation of an owner: the minimum of the PodGroup that is made for its pods.
pub const GROUP_MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
/// Annotation or label: the role of a pod within its job.
pub const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Annotation: the priority of a pod within its job.
pub const TASK_PRIORITY: &str = "volcano.sh/task-priority";
/// Annotation and label: the index of a pod within its role.
pub const TASK_INDEX: &str = "volcano.sh/task-index";
/// Annotation or label: whether a pod or a PodGroup may be evicted for others.
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// Annotation of a pod whose only scheduling gate has the same name: `true` lets the scheduler take that off once the queue
/// has room for it.
pub const QUEUE_ALLOCATION_GATE: &str = krafla_model::QUEUE_GATE;
/// Label or annotation of a pod: how long after it was given its node it is not evicted.
pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
/// Annotation of a pod: whether it may run in revocable zones; only `*` is a value. Label of a node: its zone.
pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
/// Annotation of a PodGroup: how many of its pods have to stay when some are moved out of a zone.
pub const JDB_MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
/// Annotation of a PodGroup: how many of its pods may be missing when some are moved out of a zone.
pub const JDB_MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
/// Annotation: the longest wait of a PodGroup before `sla` puts it first.
pub const SLA_WAITING_TIME: &str = "volcano.sh/sla-waiting-time";
/// The same in its short form.
pub const SLA_WAITING_TIME_SHORT: &str = "sla-waiting-time";
/// Annotation of a pod: topology mode of the PodGroup that is made for it.
pub const TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
/// Annotation of a pod: highest tier of the PodGroup that is made for it.
pub const TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
/// Annotation of a queue: its limits in single node groups, as JSON.
pub const NODE_GROUP_LIMITS: &str = "volcano.sh/nodegroup-resource-limits";
/// Annotation of a queue: its place in the hierarchy of `drf`, `root/eng/dev`.
pub const HIERARCHY: &str = "volcano.sh/hierarchy";
/// Annotation of a queue: the weight of each level of that place, `100/50/50`.
pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";
/// Annotation and label: the Volcano job of a pod.
pub const JOB_NAME: &str = "volcano.sh/job-name";
/// Label: the namespace of that job.
pub const JOB_NAMESPACE: &str = "volcano.sh/job-namespace";
/// Annotation and label: the queue of that job.
pub const JOB_QUEUE: &str = "volcano.sh/queue-name";
/// Label: the partition of a pod within its role.
pub const PARTITION_ID: &str = "volcano.sh/partition-id";

/// Krafla's annotation of a pod: a share of one GPU, in thousandths, `1` to `999`.
pub const GPU_MILLI: &str = "krafla.io/gpu-milli";
/// Krafla's annotation of a PodGroup, or of the owner of pods without one: what `drf` divides its share by, from 1 on.
pub const WEIGHT: &str = "krafla.io/weight";
/// Krafla's annotation of a node: how many GPU devices are modelled one by one, so that pods may share them.
pub const GPU_DEVICES: &str = "krafla.io/gpu-devices";
/// Krafla's annotation of anything that runs: how long a pod runs in the simulator.
pub const RUNTIME: &str = "krafla.io/runtime";
/// Krafla's annotation of anything that runs, and of a PodGroup: how long its user expects a pod to run. `srsf` goes by it.
pub const ESTIMATE: &str = "krafla.io/estimate";
/// Krafla's annotation of a pod, in seconds: for how long those ran whose work it goes on with, as whoever made it again
/// from a checkpoint knows. `srsf` and `las` go by it.
pub const ATTAINED: &str = "krafla.io/attained-seconds";
/// Krafla's annotation of a pod, milli-CPU and bytes with a comma between them: what resource scores take it for, where that
/// is not to be seen from its containers. Written with pods of a recording.
pub const SCORED_REQUEST: &str = "krafla.io/scored-request";
/// Krafla's annotation of any object: when the simulator submits it.
pub const SUBMIT_AT: &str = "krafla.io/submit-at";

/// Annotations of pods that a descheduler reads: this one may go whatever else is so, this one would rather stay, the eviction of
/// this one is taken on by somebody else, and this one is being moved by them.
pub const OF_DESCHEDULER: [&str; 4] = [
    "descheduler.alpha.kubernetes.io/evict",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    "descheduler.alpha.kubernetes.io/request-evict-only",
    "descheduler.alpha.kubernetes.io/eviction-in-progress",
];

/// Labels that name one pod of a template. A shape leaves them out, since with them no two pods of a StatefulSet or an
/// indexed Job would be alike.
pub const INDEX_LABELS: [&str; 4] = [
    TASK_INDEX,
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    "statefulset.kubernetes.io/pod-name",
];

/// Annotations of a pod that the PodGroup made for it has too.
pub const OF_ITS_GROUP: [&str; 6] =
    [PREEMPTABLE, ESTIMATE, COOLDOWN_TIME, REVOCABLE_ZONE, JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE];
