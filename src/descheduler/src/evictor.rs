//! `DefaultEvictor`: which pods may be evicted at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_framework::Value;
use krafla_framework::conf::plugin_args::{PluginArgs, read};
use krafla_framework::conf::selectors::label_selector;
use krafla_framework::registry::ArgumentProblem;
use krafla_model::labels::Selector;
use krafla_model::pod_details::{Owner, PodDetails};
use krafla_model::{ClusterState, Name, NodeId, PodPhase, TaskId};

use crate::args::optional;

/// Evict it, whatever else is so.
pub(crate) const EVICT: &str = "descheduler.alpha.kubernetes.io/evict";
/// Rather not.
pub(crate) const PREFER_NO_EVICTION: &str = "descheduler.alpha.kubernetes.io/prefer-no-eviction";
/// From this priority on pods are critical to the system.
const SYSTEM_CRITICAL: i64 = 2_000_000_000;

const DISABLED: [&str; 4] = ["PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods"];
const EXTRA: [&str; 3] = ["PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"];
const FIELDS: [&str; 15] = [
    "nodeSelector",
    "labelSelector",
    "namespaceLabelSelector",
    "priorityThreshold",
    "nodeFit",
    "minReplicas",
    "minPodAge",
    "noEvictionPolicy",
    "podProtections",
    "evictLocalStoragePods",
    "evictDaemonSetPods",
    "evictSystemCriticalPods",
    "ignorePvcPods",
    "ignorePodsWithoutPDB",
    "evictFailedBarePods",
];

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DefaultEvictor {
    node_selector: Option<Selector>,
    selector: Option<Selector>,
    namespace_selector: Option<Selector>,
    threshold: Threshold,
    /// Whether a pod goes only if it fits on some other node.
    pub(crate) node_fit: bool,
    min_replicas: i64,
    min_age_ms: i64,
    prefer_no_eviction_is_law: bool,
    protects: Protects,
    /// Storage classes whose users are protected; all, if empty.
    classes: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq)]
enum Threshold {
    Value(i64),
    Class(Name),
}

/// Kinds of pods that stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Protects {
    local_storage: bool,
    system_critical: bool,
    failed_bare: bool,
    daemon_sets: bool,
    storage_claims: bool,
    without_budget: bool,
    resource_claims: bool,
}

impl DefaultEvictor {
    pub(crate) fn read(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &FIELDS, |args| {
            let (protects, classes) = protections(args);
            Self {
                node_selector: text_selector(args, "nodeSelector"),
                selector: label_selector(args, "labelSelector"),
                namespace_selector: label_selector(args, "namespaceLabelSelector"),
                threshold: threshold(args),
                node_fit: args.bool("nodeFit", false),
                min_replicas: optional(args, "minReplicas", 0).unwrap_or(0),
                min_age_ms: min_age(args),
                prefer_no_eviction_is_law: args.one_of(
                    "noEvictionPolicy",
                    &[("Preferred", false), ("Mandatory", true)],
                    false,
                ),
                protects,
                classes,
            }
        })
    }

    /// What keeps a pod where it is, whoever asks; `None`: it may go.
    pub(crate) fn protection(&self, cluster: &ClusterState, crowd: &Crowd, id: TaskId) -> Option<&'static str> {
        let (task, shape) = (cluster.task(id), &cluster.shape_of(id).spec);
        let details = details(cluster, id);
        if task.deleting {
            return Some("it terminates");
        }
        if shape.annotations.get(EVICT).is_some() {
            return None;
        }
        if self.prefer_no_eviction_is_law && prefers_to_stay(cluster, id) {
            return Some("it is not to be evicted");
        }
        if details.is_static {
            return Some("it is a static pod");
        }
        if self.protects.local_storage && details.local_storage {
            return Some("it has local storage");
        }
        if self.protects.daemon_sets && details.owners.iter().any(|owner| owner.kind == "DaemonSet") {
            return Some("a DaemonSet owns it");
        }
        if self.protects.system_critical && i64::from(task.priority) >= self.threshold_of(cluster) {
            return Some("its priority is too high");
        }
        if is_bare(cluster, id) && (self.protects.failed_bare || task.phase != PodPhase::Failed) {
            return Some("nobody owns it");
        }
        if self.protects.storage_claims && self.has_protected_claims(cluster, id, &details) {
            return Some("it has claims of storage");
        }
        if self.protects.without_budget {
            let mut budgets = cluster.budgets(&shape.namespace);
            if !budgets.any(|budget| budget.protects(cluster, id)) {
                return Some("no disruption budget covers it");
            }
        }
        if self.protects.resource_claims && (details.resource_claims || !task.claims.is_empty()) {
            return Some("it has claims of devices");
        }
        if self.selector.as_ref().is_some_and(|selector| !selector.matches(&shape.labels)) {
            return Some("it is not selected");
        }
        if self.min_replicas > 1
            && let [owner] = details.owners.as_slice()
            && crowd.owned_by(&shape.namespace, owner) < self.min_replicas
        {
            return Some("its owner has too few pods");
        }
        if self.min_age_ms > 0 && cluster.now().0 - task.created.0 < self.min_age_ms {
            return Some("it is too young");
        }
        None
    }

    /// What keeps a pod when it is about to go.
    pub(crate) fn last_objection(&self, cluster: &ClusterState, id: TaskId) -> Option<&'static str> {
        let selector = self.namespace_selector.as_ref()?;
        let labels = cluster.namespace_labels(cluster.namespace_of(id)).cloned().unwrap_or_default();
        (!selector.matches(&labels)).then_some("its namespace is not selected")
    }

    /// Whether a node counts as a place to go.
    pub(crate) fn counts_as_place(&self, cluster: &ClusterState, node: NodeId) -> bool {
        self.node_selector.as_ref().is_none_or(|selector| selector.matches(&cluster.node(node).spec.labels))
    }

    fn threshold_of(&self, cluster: &ClusterState) -> i64 {
        match &self.threshold {
            Threshold::Value(value) => *value,
            Threshold::Class(name) => {
                cluster.priority_classes().get(name).map_or(SYSTEM_CRITICAL, |class| i64::from(class.value))
            }
        }
    }

    fn has_protected_claims(&self, cluster: &ClusterState, id: TaskId, details: &PodDetails) -> bool {
        let namespace = cluster.namespace_of(id);
        let of_volumes = cluster.shape_of(id).spec.volumes.claims.iter().map(|claim| &claim.name);
        let mut claims = details.storage_claims.iter().chain(of_volumes);
        if self.classes.is_empty() {
            return claims.next().is_some();
        }
        claims.any(|name| {
            let class = cluster.storage().claim(namespace, name).map(|claim| &claim.class);
            class.is_some_and(|class| self.classes.contains(class))
        })
    }
}

/// What is known of a pod; little, where nobody reads the rest.
pub(crate) fn details(cluster: &ClusterState, id: TaskId) -> Arc<PodDetails> {
    cluster.task(id).details.clone().unwrap_or_default()
}

/// Whether a pod is owned by nobody.
pub(crate) fn is_bare(cluster: &ClusterState, id: TaskId) -> bool {
    match cluster.task(id).details.as_deref() {
        Some(details) => details.owners.is_empty(),
        None => !cluster.shape_of(id).spec.controlled,
    }
}

/// Whether it says that it would rather stay.
pub(crate) fn prefers_to_stay(cluster: &ClusterState, id: TaskId) -> bool {
    cluster.shape_of(id).spec.annotations.get(PREFER_NO_EVICTION).is_some()
}

/// How many pods an owner has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowd(BTreeMap<(Name, Owner), i64>);

impl Crowd {
    /// Counts all pods that have not ended. Cost: linear in pods.
    pub(crate) fn of(cluster: &ClusterState) -> Self {
        let mut crowd = BTreeMap::new();
        for (id, task) in cluster.tasks().filter(|(_, task)| !task.status().is_finished()) {
            if let Some([owner]) = task.details.as_deref().map(|details| details.owners.as_slice()) {
                *crowd.entry((cluster.namespace_of(id).clone(), owner.clone())).or_default() += 1;
            }
        }
        Self(crowd)
    }

    fn owned_by(&self, namespace: &Name, owner: &Owner) -> i64 {
        self.0.get(&(namespace.clone(), owner.clone())).copied().unwrap_or(0)
    }
}

fn text_selector(args: &mut PluginArgs<'_, '_>, key: &str) -> Option<Selector> {
    let text = args.text(key)?;
    match krafla_framework::conf::selectors::from_text(text) {
        Ok(selector) => Some(selector),
        Err(why) => {
            args.problem(key, format!("it cannot be read: {why}; write for example `pool=a,!reserved`"));
            None
        }
    }
}

fn threshold(args: &mut PluginArgs<'_, '_>) -> Threshold {
    let Some(mut own) = args.map("priorityThreshold", &["value", "name"]) else {
        return Threshold::Value(SYSTEM_CRITICAL);
    };
    let name = own.text("name").map(Name::from);
    if own.get("value").is_some() && name.is_some() {
        own.problem("name", "both `value` and `name` are given; keep one of them");
    }
    match name {
        Some(name) => Threshold::Class(name),
        None => Threshold::Value(own.integer("value", i64::from(i32::MIN)..=SYSTEM_CRITICAL, SYSTEM_CRITICAL)),
    }
}

/// `minPodAge` is a duration; a plain number counts nanoseconds, as Go has it, and is refused.
fn min_age(args: &mut PluginArgs<'_, '_>) -> i64 {
    i64::try_from(args.duration_ms("minPodAge", 0, 0)).unwrap_or(i64::MAX)
}

fn protections(args: &mut PluginArgs<'_, '_>) -> (Protects, Vec<Name>) {
    let mut protects = Protects {
        local_storage: true,
        system_critical: true,
        failed_bare: true,
        daemon_sets: true,
        storage_claims: false,
        without_budget: false,
        resource_claims: false,
    };
    let old: Vec<&str> = FIELDS[9..].iter().copied().filter(|key| args.get(key).is_some()).collect();
    if let (Some(first), true) = (old.first(), args.get("podProtections").is_some()) {
        args.problem(first, "it is an old way to say what `podProtections` says; keep one of them");
    }
    protects.local_storage &= !args.bool("evictLocalStoragePods", false);
    protects.daemon_sets &= !args.bool("evictDaemonSetPods", false);
    protects.system_critical &= !args.bool("evictSystemCriticalPods", false);
    protects.failed_bare &= !args.bool("evictFailedBarePods", false);
    protects.storage_claims |= args.bool("ignorePvcPods", false);
    protects.without_budget |= args.bool("ignorePodsWithoutPDB", false);
    let mut classes = Vec::new();
    if let Some(mut own) = args.map("podProtections", &["defaultDisabled", "extraEnabled", "config"]) {
        for (path, name) in own.texts("defaultDisabled") {
            match name {
                "PodsWithLocalStorage" => protects.local_storage = false,
                "SystemCriticalPods" => protects.system_critical = false,
                "FailedBarePods" => protects.failed_bare = false,
                "DaemonSetPods" => protects.daemon_sets = false,
                _ => own.problem_at(path, format!("there is no `{name}`; they are: {}", DISABLED.join(", "))),
            }
        }
        for (path, name) in own.texts("extraEnabled") {
            match name {
                "PodsWithPVC" => protects.storage_claims = true,
                "PodsWithoutPDB" => protects.without_budget = true,
                "PodsWithResourceClaims" => protects.resource_claims = true,
                _ => own.problem_at(path, format!("there is no `{name}`; they are: {}", EXTRA.join(", "))),
            }
        }
        if let Some(mut config) = own.map("config", &["PodsWithPVC"])
            && let Some(mut claims) = config.map("PodsWithPVC", &["protectedStorageClasses"])
        {
            for (path, item) in claims.list("protectedStorageClasses") {
                let mut item = claims.item(path, item, &["name"]);
                match item.text("name") {
                    Some(name) => classes.push(name.into()),
                    None => item.problem("name", "it has no name; write `name: …`"),
                }
            }
        }
    }
    (protects, classes)
}
