//! From a scenario as written to what will happen, in order of time: in the world, and on a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_api::{Converter, Hints, keys, parse_duration, writer};
use krafla_model::priority::PriorityClassSpec;
use krafla_model::resources::GPU_NAME;
use krafla_model::{Event, Name, NodeSpec, Time, quantity};
use serde_json::{Value, json};
use serde_saphyr::Spanned;

use super::deed::{Deed, Target, TargetKind};
use super::format::{
    ControllerEntry, FaultEntry, JobEntry, NodeEntry, PriorityClassEntry, QueueEntry, RoleEntry, Scenario, TaintEntry,
    TimelineEntry, TopologyEntry, Which, Written,
};
use super::story::Plan;
use crate::manifest::{self, SCHEDULER_NAMES};
use crate::world::{Controller, Fault, Happening, Life, Restart, Setup, Submission, Submitted, Verb, set_ready};

/// A part of the file that cannot be used: where it is, if that is known, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Line and column, from 1.
    pub(super) at: Option<(u64, u64)>,
    pub(super) why: String,
}

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self { at: None, why }
    }
}

/// Gives an error the place of the part of the file that it is about, and that part's name.
pub(super) fn at<T>(part: &Spanned<T>, name: &str, why: &str) -> Wrong {
    let place = part.referenced;
    Wrong { at: (place.line() > 0).then(|| (place.line(), place.column())), why: format!("{name}: {why}") }
}

/// Builds a scenario.
pub(super) fn build(scenario: &Scenario, config_file: Option<(String, String)>) -> Result<Plan, Wrong> {
    let mut builder = Builder {
        converter: Converter::new(),
        nodes: BTreeMap::new(),
        queues: BTreeMap::new(),
        evict_grace_ms: 0,
        notes: Vec::new(),
    };
    if scenario.profiles.is_some() {
        return Err("`profiles`: KubeSchedulerConfiguration is not read by this version; use `config`"
            .to_owned()
            .into());
    }
    if !scenario.cluster.hypernodes.is_empty() {
        builder.notes.push("`cluster.hypernodes`: network topology is not modelled by this version".to_owned());
    }
    let mut setup = Setup::default();
    let duration = |text: &Option<Spanned<Written>>, key: &str| {
        let read =
            |text: &Spanned<Written>| parse_duration(&text.value).map_err(|why| at(text, &format!("`{key}`"), &why));
        text.as_ref().map(read).transpose()
    };
    if let Some(period) = duration(&scenario.period, "period")? {
        setup.engine.period_ms = period.max(1);
    }
    // The default, 1, leaves equal nodes in the order of their names; any other seed orders them by a hash.
    setup.engine.tie_seed = scenario.seed.filter(|seed| *seed != 1);
    setup.bind_latency_ms = duration(&scenario.bind_latency, "bindLatency")?.unwrap_or(0);
    setup.start_latency_ms = duration(&scenario.start_latency, "startLatency")?.unwrap_or(0);
    setup.evict_grace_ms = duration(&scenario.evict_grace, "evictGrace")?.unwrap_or(0);
    builder.evict_grace_ms = setup.evict_grace_ms;
    if let Some(cost_ms) = duration(&scenario.restart_cost, "restartCost")? {
        setup.restart = Restart::FromCheckpoint { cost_ms };
    }
    let own = scenario.config.as_ref().map(|text| ("config".to_owned(), text.value.clone()));
    setup.configuration = own.or(config_file);
    let until = duration(&scenario.until, "until")?.map(Time);

    let Both { mut happenings, mut deeds } = builder.cluster(scenario)?;
    let mut timeline: Vec<(i64, usize, &Spanned<TimelineEntry>)> = Vec::new();
    for (i, entry) in scenario.timeline.iter().enumerate() {
        let name = format!("timeline[{i}]");
        let when = entry.value.at.as_deref().ok_or_else(|| at(entry, &name, "says not when; give `at: 10s`"))?;
        timeline.push((ms(when, "at").map_err(|why| at(entry, &name, &why))?, i, entry));
    }
    timeline.sort_by_key(|(when, i, _)| (*when, *i));
    let mut last_event = Time(0);
    for (when, i, entry) in timeline {
        last_event = Time(when);
        let what = builder.event(&entry.value).map_err(|why| at(entry, &format!("timeline[{i}]"), &why))?;
        happenings.extend(what.happenings.into_iter().map(|(after, happening)| (Time(when) + after.0, happening)));
        deeds.extend(what.deeds.into_iter().map(|(after, deed)| (Time(when) + after.0, deed)));
    }
    happenings.sort_by_key(|(at, _)| *at);
    deeds.sort_by_key(|(at, _)| *at);
    Ok(Plan { setup, happenings, deeds, until, last_event, notes: builder.notes })
}

/// Reads a duration, naming the key.
pub(super) fn ms(text: &str, key: &str) -> Result<i64, String> {
    parse_duration(text).map_err(|why| format!("`{key}`: {why}"))
}

struct Builder {
    converter: Converter,
    /// Nodes as they stand, so that a change can leave the rest as it is.
    nodes: BTreeMap<String, NodeEntry>,
    queues: BTreeMap<String, QueueEntry>,
    /// Of pods that have no grace period of their own.
    evict_grace_ms: i64,
    notes: Vec<String>,
}

/// What one part of the file comes to: for the simulator, and for a cluster. Times count from the part's own.
#[derive(Default)]
struct Both {
    happenings: Vec<(Time, Happening)>,
    deeds: Vec<(Time, Deed)>,
}

impl Both {
    fn of(happening: Happening, deed: Deed) -> Self {
        Self { happenings: vec![(Time(0), happening)], deeds: vec![(Time(0), deed)] }
    }

    fn object(event: Event, manifest: Value) -> Self {
        Self::of(object(event), Deed::Put(manifest))
    }

    fn extend(&mut self, other: Self) {
        self.happenings.extend(other.happenings);
        self.deeds.extend(other.deeds);
    }
}

impl Builder {
    fn cluster(&mut self, scenario: &Scenario) -> Result<Both, Wrong> {
        let mut all = Both::default();
        for (name, class) in &scenario.cluster.priority_classes {
            let class = priority_class(name, class);
            let manifest = manifest_of(&writer::priority_class(&class))?;
            all.extend(Both::object(Event::PriorityClass(class), manifest));
        }
        for name in ["root", "default"] {
            let named = scenario.cluster.queues.iter().any(|queue| queue.value.name == name);
            if !named {
                all.extend(self.queue(&QueueEntry { name: name.to_owned(), ..QueueEntry::default() })?);
            }
        }
        for (i, queue) in scenario.cluster.queues.iter().enumerate() {
            all.extend(self.queue(&queue.value).map_err(|why| at(queue, &format!("cluster.queues[{i}]"), &why))?);
        }
        for (i, node) in scenario.cluster.nodes.iter().enumerate() {
            all.extend(self.new_nodes(&node.value).map_err(|why| at(node, &format!("cluster.nodes[{i}]"), &why))?);
        }
        let mut manifests = Vec::new();
        for (i, manifest) in scenario.cluster.manifests.iter().enumerate() {
            readable(&manifest.value).map_err(|why| at(manifest, &format!("cluster.manifests[{i}]"), &why))?;
            manifests.push(manifest.value.clone());
        }
        all.extend(self.manifests(&manifests));
        Ok(all)
    }

    fn manifests(&mut self, manifests: &[Value]) -> Both {
        let assembled = manifest::assemble(manifests, &mut self.converter);
        self.notes.extend(assembled.problems);
        let objects = manifests.iter().flat_map(|manifest| match manifest.get("items").and_then(Value::as_array) {
            Some(items) => items.clone(),
            None => vec![manifest.clone()],
        });
        Both { happenings: assembled.happenings, deeds: objects.map(|object| self.put(object)).collect() }
    }

    /// An object of the file, at the time that it gives itself. A pod has the grace period of the scenario.
    fn put(&self, mut object: Value) -> (Time, Deed) {
        let meta = serde_json::from_value(object.get("metadata").cloned().unwrap_or_default()).unwrap_or_default();
        let at = Hints::read(&meta).0.submit_at_ms.unwrap_or(0);
        if object["kind"] == "Pod"
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.entry("terminationGracePeriodSeconds").or_insert_with(|| json!(whole_seconds(self.evict_grace_ms)));
        }
        (Time(at), Deed::Put(object))
    }

    fn event(&mut self, entry: &TimelineEntry) -> Result<Both, String> {
        let mut found: Vec<(&str, Both)> = Vec::new();
        if let Some(job) = &entry.submit {
            found.push(("submit", self.submit(job)?));
        }
        if let Some(pod) = &entry.pod {
            found.push(("pod", self.pod(pod)?));
        }
        if let Some(which) = &entry.delete {
            found.push(("delete", delete(which)?));
            if let Some(node) = &which.node {
                self.nodes.remove(node);
            }
        }
        if let Some(which) = &entry.evict {
            let name = which.pod.as_deref().ok_or("`evict` names a pod: {pod: NAME}")?;
            let happening = Happening::EvictFrom { namespace: namespace_of(which), name: name.into() };
            found.push(("evict", Both::of(happening, Deed::Evict(target(which, TargetKind::Pod, name)))));
        }
        if let Some(which) = &entry.ungate {
            found.push(("ungate", ungate(which)?));
        }
        if let Some(node) = &entry.node {
            found.push(("node", self.changed_node(node)?));
        }
        if let Some(node) = &entry.add_node {
            found.push(("addNode", self.new_nodes(node)?));
        }
        if let Some(queue) = &entry.queue {
            found.push(("queue", self.queue(queue)?));
        }
        if let Some(manifest) = &entry.apply {
            readable(manifest)?;
            found.push(("apply", self.manifests(std::slice::from_ref(manifest))));
        }
        if let Some(text) = &entry.config {
            let happening = Happening::Configure { file: "config".to_owned(), text: text.clone() };
            found.push(("config", Both::of(happening, Deed::Configure(text.clone()))));
        }
        if let Some(entry) = &entry.fault {
            let fault = fault(entry)?;
            found.push(("fault", Both::of(Happening::Fault(fault.clone()), Deed::Fault(fault))));
        }
        match found.len() {
            1 => Ok(found.swap_remove(0).1),
            0 => Err("says nothing that happens; give one of submit, pod, delete, evict, ungate, node, addNode, queue, apply, config, fault".to_owned()),
            _ => {
                let keys: Vec<&str> = found.iter().map(|(key, _)| *key).collect();
                Err(format!("has {} at once; give each an entry of its own", keys.join(" and ")))
            }
        }
    }

    fn new_nodes(&mut self, entry: &NodeEntry) -> Result<Both, String> {
        if entry.name.is_empty() {
            return Err("a node needs a `name`".to_owned());
        }
        let names: Vec<String> = match entry.count {
            None => vec![entry.name.clone()],
            Some(n) if n > 100_000 => return Err(format!("`count: {n}` is more than 100000")),
            Some(n) => (0..n).map(|i| format!("{}-{i}", entry.name)).collect(),
        };
        let mut all = Both::default();
        for name in names {
            if self.nodes.contains_key(&name) {
                return Err(format!("there is a node `{name}` already; to change it, use node"));
            }
            let own = NodeEntry { name: name.clone(), count: None, ..entry.clone() };
            all.extend(self.node(&own)?);
            self.nodes.insert(name, own);
        }
        Ok(all)
    }

    fn node(&mut self, entry: &NodeEntry) -> Result<Both, String> {
        let node = krafla_api::json::node(node_json(entry)?)?;
        let (spec, problems) = self.converter.node(&node);
        let mut spec = spec.ok_or_else(|| one_of(&problems))?;
        if let Some(problem) = problems.first() {
            return Err(problem.message.clone());
        }
        let ready = entry.ready.unwrap_or(true);
        set_ready(&mut spec, ready);
        let manifest = node_manifest(&spec, ready)?;
        Ok(Both::object(Event::Node(spec), manifest))
    }

    fn changed_node(&mut self, change: &NodeEntry) -> Result<Both, String> {
        let Some(old) = self.nodes.get(&change.name) else {
            return Err(format!("there is no node `{}` to change; use addNode", change.name));
        };
        let mut capacity = old.capacity.clone();
        capacity.extend(change.capacity.clone());
        let merged = NodeEntry {
            name: change.name.clone(),
            count: None,
            cpu: change.cpu.clone().or_else(|| old.cpu.clone()),
            memory: change.memory.clone().or_else(|| old.memory.clone()),
            pods: change.pods.clone().or_else(|| old.pods.clone()),
            gpu: change.gpu.clone().or_else(|| old.gpu.clone()),
            gpu_devices: change.gpu_devices.or(old.gpu_devices),
            capacity,
            labels: change.labels.clone().or_else(|| old.labels.clone()),
            taints: change.taints.clone().or_else(|| old.taints.clone()),
            unschedulable: change.unschedulable.or(old.unschedulable),
            images: change.images.clone().or_else(|| old.images.clone()),
            ready: change.ready.or(old.ready),
        };
        let both = self.node(&merged)?;
        self.nodes.insert(change.name.clone(), merged);
        Ok(both)
    }

    /// A queue, or a change of one that exists.
    fn queue(&mut self, change: &QueueEntry) -> Result<Both, String> {
        if change.name.is_empty() {
            return Err("a queue needs a `name`".to_owned());
        }
        let old = self.queues.get(&change.name).cloned().unwrap_or_default();
        let merged = QueueEntry {
            name: change.name.clone(),
            weight: change.weight.or(old.weight),
            parent: change.parent.clone().or(old.parent),
            reclaimable: change.reclaimable.or(old.reclaimable),
            priority: change.priority.or(old.priority),
            state: change.state.clone().or(old.state),
            deserved: change.deserved.clone().or(old.deserved),
            capability: change.capability.clone().or(old.capability),
            guarantee: change.guarantee.clone().or(old.guarantee),
            affinity: change.affinity.clone().or(old.affinity),
            annotations: change.annotations.clone().or(old.annotations),
        };
        let mut spec = json!({
            "weight": merged.weight.unwrap_or(1),
            "reclaimable": merged.reclaimable.unwrap_or(merged.name != "root"),
        });
        set(&mut spec, "parent", merged.parent.as_ref().map(|parent| json!(parent)));
        set(&mut spec, "priority", merged.priority.map(|priority| json!(priority)));
        set(&mut spec, "deserved", merged.deserved.as_ref().map(|list| json!(list)));
        set(&mut spec, "capability", merged.capability.as_ref().map(|list| json!(list)));
        set(&mut spec, "guarantee", merged.guarantee.as_ref().map(|list| json!({ "resource": list })));
        set(&mut spec, "affinity", merged.affinity.clone());
        let manifest = json!({
            "apiVersion": VOLCANO,
            "kind": "Queue",
            "metadata": { "name": merged.name, "annotations": merged.annotations.clone().unwrap_or_default() },
            "spec": spec,
            "status": { "state": merged.state.clone().unwrap_or_else(|| "Open".to_owned()) },
        });
        let queue = krafla_api::json::queue(manifest.clone())?;
        let (spec, problems) = self.converter.queue(&queue);
        let spec = spec.ok_or_else(|| one_of(&problems))?;
        self.notes.extend(problems.iter().map(|problem| format!("{}: {}", problem.object, problem.message)));
        self.queues.insert(change.name.clone(), merged);
        Ok(Both::object(Event::Queue(spec), manifest))
    }

    fn submit(&mut self, job: &JobEntry) -> Result<Both, String> {
        let name = job.job.as_deref().ok_or("a job needs its name: {job: NAME}")?;
        let roles: Vec<RoleEntry> = if job.roles.is_empty() {
            vec![RoleEntry {
                replicas: job.replicas.unwrap_or(1),
                request: job.request.clone(),
                gpu: job.gpu.clone(),
                request_gpu_milli: job.request_gpu_milli,
                ..RoleEntry::default()
            }]
        } else {
            job.roles.clone()
        };
        let minimums: BTreeMap<&str, u32> =
            roles.iter().filter_map(|role| Some((role.name.as_str(), role.min?))).collect();
        let sum: u32 = minimums.values().sum();
        let min_member = job.min_member.unwrap_or(if minimums.is_empty() { 1 } else { sum });
        let mut spec = json!({ "minMember": min_member, "queue": job.queue.as_deref().unwrap_or("default") });
        set(&mut spec, "minTaskMember", (!minimums.is_empty()).then(|| json!(minimums)));
        set(&mut spec, "priorityClassName", job.priority.as_ref().map(|class| json!(class)));
        set(&mut spec, "minResources", job.min_resources.as_ref().map(|list| json!(list)));
        set(&mut spec, "networkTopology", job.topology.as_ref().map(network_topology));
        let mut annotations = job.annotations.clone();
        if let Some(estimate) = &job.estimate {
            annotations.insert(krafla_api::keys::ESTIMATE.to_owned(), estimate.clone());
        }
        let manifest = json!({
            "apiVersion": VOLCANO,
            "kind": "PodGroup",
            "metadata": { "name": name, "namespace": namespace(job), "annotations": annotations, "labels": job.labels },
            "spec": spec,
        });
        let group = krafla_api::json::pod_group(manifest.clone())?;
        let (group, problems) = self.converter.pod_group(&group);
        let group = group.ok_or_else(|| one_of(&problems))?;
        let (mut pods, mut manifests) = (Vec::new(), Vec::new());
        for role in &roles {
            let names = (0..role.replicas).map(|k| match role.name.as_str() {
                "" => format!("{name}-{k}"),
                role => format!("{name}-{role}-{k}"),
            });
            let made = self.pods_of(job, role, names.map(Name::from).collect(), Some(name))?;
            pods.extend(made.pods);
            manifests.extend(made.manifests);
        }
        let happening = Happening::Submit(Box::new(Submission {
            group,
            announced: true,
            joins: false,
            goes_with_pods: false,
            pods,
            kind: String::new(),
        }));
        let recreate = job.controller == ControllerEntry::Recreate;
        Ok(Both::of(happening, Deed::Submit { group: Some(manifest), pods: manifests, recreate }))
    }

    fn pod(&mut self, job: &JobEntry) -> Result<Both, String> {
        let name = job.name.as_deref().or(job.job.as_deref()).ok_or("a pod needs its `name`")?;
        let role = RoleEntry {
            request: job.request.clone(),
            gpu: job.gpu.clone(),
            request_gpu_milli: job.request_gpu_milli,
            ..RoleEntry::default()
        };
        let Made { pods, mut manifests, template } = self.pods_of(job, &role, vec![name.into()], None)?;
        let (group, problems) = self.converter.implicit_group(&template, None);
        let mut group = group.ok_or_else(|| one_of(&problems))?;
        if let Some(queue) = &job.queue {
            group.queue = queue.into();
            for manifest in &mut manifests {
                manifest["metadata"]["annotations"][keys::QUEUE_NAME] = json!(queue);
            }
        }
        // Volcano's controller makes PodGroups for pods of its own scheduler only.
        let announced = pods.iter().all(|pod| pod.ours);
        let happening = Happening::Submit(Box::new(Submission {
            group,
            announced,
            joins: false,
            goes_with_pods: true,
            pods,
            kind: String::new(),
        }));
        let recreate = job.controller == ControllerEntry::Recreate;
        Ok(Both::of(happening, Deed::Submit { group: None, pods: manifests, recreate }))
    }

    /// Equal pods under these names, and the pod that they are made from.
    fn pods_of(
        &mut self,
        job: &JobEntry,
        role: &RoleEntry,
        names: Vec<Name>,
        group: Option<&str>,
    ) -> Result<Made, String> {
        let manifest = pod_json(job, role, names.first().map_or("pod", |name| name.as_str()), group)?;
        let pod = krafla_api::json::pod(manifest.clone())?;
        let (spec, problems) = self.converter.pod(&pod);
        let mut spec = spec.ok_or_else(|| one_of(&problems))?;
        Arc::make_mut(&mut spec.shape).controlled = job.controller == ControllerEntry::Recreate;
        self.notes.extend(problems.iter().map(|problem| format!("{}: {}", problem.object, problem.message)));
        let read = |text: Option<&Written>, key| text.map_or(Ok(None), |text| ms(text, key).map(Some));
        let life = Life {
            runtime_ms: read(role.runtime.as_ref().or(job.runtime.as_ref()), "runtime")?,
            estimate_ms: read(job.estimate.as_ref(), "estimate")?,
            grace_ms: read(job.grace.as_ref(), "grace")?,
            controller: match job.controller {
                ControllerEntry::None => Controller::None,
                ControllerEntry::Recreate => Controller::Recreate,
            },
        };
        let mut template = manifest;
        // Whoever plays it on a cluster knows the scheduler of pods that name none.
        if let (None, Some(spec)) = (&job.scheduler, template["spec"].as_object_mut()) {
            spec.remove("schedulerName");
        }
        let manifests = names.iter().map(|name| living(&template, name, life, self.evict_grace_ms)).collect();
        let ours = job.scheduler.as_deref().is_none_or(|name| SCHEDULER_NAMES.contains(&name));
        let pods = names
            .into_iter()
            .map(|name| Submitted {
                priority: manifest::own_priority(&pod).then_some(spec.priority),
                gates: spec.gates.clone(),
                ours,
                ..Submitted::new(name, spec.shape.clone(), life)
            })
            .collect();
        Ok(Made { pods, manifests, template: pod })
    }
}

/// Equal pods.
struct Made {
    pods: Vec<Submitted>,
    manifests: Vec<Value>,
    /// The pod that they are made from.
    template: k8s_openapi::api::core::v1::Pod,
}

const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";

/// A pod of a template under its own name, with its life as a kubelet reads it.
fn living(template: &Value, name: &Name, life: Life, evict_grace_ms: i64) -> Value {
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!(name);
    if let Some(ms) = life.runtime_ms {
        pod["metadata"]["annotations"][keys::RUNTIME] = json!(format!("{ms}ms"));
    }
    pod["spec"]["terminationGracePeriodSeconds"] = json!(whole_seconds(life.grace_ms.unwrap_or(evict_grace_ms)));
    pod
}

/// As an API server counts grace periods; a part of one counts as a whole one.
fn whole_seconds(ms: i64) -> i64 {
    (ms.max(0) + 999) / 1_000
}

fn manifest_of(object: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(object).map_err(|why| why.to_string())
}

/// A node as its kubelet and the node controller leave it.
fn node_manifest(spec: &NodeSpec, ready: bool) -> Result<Value, String> {
    let mut node = manifest_of(&writer::node(spec))?;
    let (status, reason) = if ready { ("True", "KubeletReady") } else { ("False", "KubeletNotReady") };
    let condition = json!({ "type": "Ready", "status": status, "reason": reason, "message": "the scenario says so" });
    node["status"]["conditions"] = json!([condition]);
    Ok(node)
}

fn object(event: Event) -> Happening {
    Happening::Object(Box::new(event))
}

fn set(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[key] = value;
    }
}

fn namespace(job: &JobEntry) -> &str {
    job.namespace.as_deref().unwrap_or("default")
}

fn one_of(problems: &[krafla_model::Problem]) -> String {
    problems.first().map_or_else(|| "cannot be read".to_owned(), |problem| problem.message.clone())
}

fn network_topology(topology: &TopologyEntry) -> Value {
    let mut spec = json!({ "mode": topology.mode.as_deref().unwrap_or("hard") });
    set(&mut spec, "highestTierAllowed", topology.highest_tier.map(|tier| json!(tier)));
    set(&mut spec, "highestTierName", topology.highest_tier_name.as_ref().map(|name| json!(name)));
    spec
}

/// A pod as a manifest would have it.
fn pod_json(job: &JobEntry, role: &RoleEntry, name: &str, group: Option<&str>) -> Result<Value, String> {
    let mut requests = role.request.clone();
    // A thousand thousandths are a device.
    if role.request_gpu_milli == Some(1000) {
        requests.insert(GPU_NAME.to_owned(), "1".to_owned());
    }
    if let Some(gpu) = &role.gpu {
        requests.insert(GPU_NAME.to_owned(), gpu.clone());
    }
    let mut annotations = job.annotations.clone();
    if let Some(group) = group {
        annotations.insert("scheduling.k8s.io/group-name".to_owned(), group.to_owned());
    }
    if let Some(milli) = role.request_gpu_milli.filter(|milli| !matches!(milli, 0 | 1000)) {
        annotations.insert(krafla_api::keys::GPU_MILLI.to_owned(), milli.to_string());
    }
    if let Some(preemptable) = job.preemptable {
        annotations.insert("volcano.sh/preemptable".to_owned(), preemptable.to_string());
    }
    let mut labels = job.labels.clone();
    labels.extend(role.labels.clone());
    if !role.name.is_empty() {
        annotations.insert("volcano.sh/task-spec".to_owned(), role.name.clone());
    }
    let mut selector = job.node_selector.clone();
    selector.extend(role.node_selector.clone());
    let images = if job.images.is_empty() { vec![String::new()] } else { job.images.clone() };
    let containers: Vec<Value> = images
        .iter()
        .enumerate()
        .map(|(i, image)| {
            let mut container = json!({ "name": format!("c{i}") });
            set(&mut container, "image", (!image.is_empty()).then(|| json!(image)));
            if i == 0 {
                container["resources"] = json!({ "requests": requests });
                let ports: Vec<Value> =
                    job.host_ports.iter().map(|port| json!({ "containerPort": port, "hostPort": port })).collect();
                container["ports"] = json!(ports);
            }
            container
        })
        .collect();
    let mut spec = json!({
        "containers": containers,
        "nodeSelector": selector,
        "tolerations": job.tolerations,
        "topologySpreadConstraints": job.topology_spread,
        "schedulingGates": job.gates.iter().map(|gate| json!({ "name": gate })).collect::<Vec<_>>(),
        "schedulerName": job.scheduler.as_deref().unwrap_or("volcano"),
    });
    set(&mut spec, "affinity", job.affinity.clone());
    set(&mut spec, "priorityClassName", job.priority.as_ref().map(|class| json!(class)));
    set(&mut spec, "priority", role.priority.map(|priority| json!(priority)));
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace(job), "labels": labels, "annotations": annotations },
        "spec": spec,
    }))
}

/// A node as the API would show it.
fn node_json(entry: &NodeEntry) -> Result<Value, String> {
    let mut allocatable = entry.capacity.clone();
    for (resource, given, default) in [
        ("cpu", &entry.cpu, Some("8")),
        ("memory", &entry.memory, Some("1Ti")),
        ("pods", &entry.pods, Some("110")),
        (GPU_NAME, &entry.gpu, None),
    ] {
        if let Some(text) = given.as_deref().or(default) {
            allocatable.insert(resource.to_owned(), text.to_owned());
        }
    }
    let mut labels = entry.labels.clone().unwrap_or_default();
    labels.entry("kubernetes.io/hostname".to_owned()).or_insert_with(|| entry.name.clone());
    let mut annotations = BTreeMap::new();
    if let Some(devices) = entry.gpu_devices {
        annotations.insert(krafla_api::keys::GPU_DEVICES, devices.to_string());
    }
    let taints = entry.taints.iter().flatten().map(taint_json).collect::<Result<Vec<_>, _>>()?;
    let mut images = Vec::new();
    for (image, size) in entry.images.iter().flatten() {
        let bytes =
            quantity::parse(size, quantity::Unit::One).map_err(|why| format!("image {image} `{size}`: {why}"))?;
        images.push(json!({ "names": [image], "sizeBytes": bytes }));
    }
    Ok(json!({
        "metadata": { "name": entry.name, "labels": labels, "annotations": annotations },
        "spec": { "taints": taints, "unschedulable": entry.unschedulable.unwrap_or(false) },
        "status": { "allocatable": allocatable, "images": images },
    }))
}

fn taint_json(taint: &TaintEntry) -> Result<Value, String> {
    let (key, value, effect) = match taint {
        TaintEntry::Long { key, value, effect } => (key.as_str(), value.as_str(), effect.as_str()),
        TaintEntry::Short(text) => {
            let (left, effect) = text
                .rsplit_once(':')
                .ok_or_else(|| format!("taint `{text}`: write key=value:NoSchedule, or {{key: ..., effect: ...}}"))?;
            let (key, value) = left.split_once('=').unwrap_or((left, ""));
            (key, value, effect)
        }
    };
    if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
        return Err(format!("taint effect `{effect}`: use NoSchedule, PreferNoSchedule or NoExecute"));
    }
    Ok(json!({ "key": key, "value": value, "effect": effect }))
}

fn priority_class(name: &str, entry: &PriorityClassEntry) -> PriorityClassSpec {
    match entry {
        PriorityClassEntry::Value(value) => {
            PriorityClassSpec { name: name.into(), value: *value, global_default: false, preempts: true }
        }
        PriorityClassEntry::Full(full) => PriorityClassSpec {
            name: name.into(),
            value: full.value,
            global_default: full.global_default,
            preempts: full.preemption_policy.as_deref() != Some("Never"),
        },
    }
}

/// The namespace that is named; `None`: any.
fn namespace_of(which: &Which) -> Option<Name> {
    which.namespace.as_deref().map(Name::from)
}

/// Whether a manifest is an object of a kind, with a name.
fn readable(manifest: &Value) -> Result<(), String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let named = text(manifest.get("metadata").and_then(|metadata| metadata.get("name")));
    let is_list = manifest.get("items").is_some();
    match (text(manifest.get("apiVersion")), text(manifest.get("kind")), named || is_list) {
        (true, true, true) => Ok(()),
        (false, ..) => Err("an object needs its `apiVersion`".to_owned()),
        (_, false, _) => Err("an object needs its `kind`".to_owned()),
        _ => Err("an object needs its `metadata.name`".to_owned()),
    }
}

fn target(which: &Which, kind: TargetKind, name: &str) -> Target {
    Target { kind, namespace: which.namespace.clone(), name: name.to_owned() }
}

fn ungate(which: &Which) -> Result<Both, String> {
    let namespace = namespace_of(which);
    let (kind, name) = match which {
        Which { job: Some(name), pod: None, node: None, queue: None, .. } => (TargetKind::Job, name),
        Which { pod: Some(name), job: None, node: None, queue: None, .. } => (TargetKind::Pod, name),
        _ => return Err("`ungate` names one thing: {job: NAME} or {pod: NAME}".to_owned()),
    };
    let happening = Happening::Ungate { namespace, name: name.into(), whole_job: kind == TargetKind::Job };
    Ok(Both::of(happening, Deed::Ungate(target(which, kind, name))))
}

fn delete(which: &Which) -> Result<Both, String> {
    let namespace = namespace_of(which);
    let (kind, name, happening) = match which {
        Which { job: Some(name), pod: None, node: None, queue: None, .. } => {
            (TargetKind::Job, name, Happening::DeleteJob { namespace, name: name.into() })
        }
        Which { pod: Some(name), job: None, node: None, queue: None, .. } => {
            (TargetKind::Pod, name, Happening::DeletePod { namespace, name: name.into() })
        }
        Which { node: Some(name), job: None, pod: None, queue: None, .. } => {
            (TargetKind::Node, name, object(Event::NodeGone(name.into())))
        }
        Which { queue: Some(name), job: None, pod: None, node: None, .. } => {
            (TargetKind::Queue, name, object(Event::QueueGone(name.into())))
        }
        _ => {
            return Err("`delete` names one thing: {job: NAME}, {pod: NAME}, {node: NAME} or {queue: NAME}".to_owned());
        }
    };
    Ok(Both::of(happening, Deed::Delete(target(which, kind, name))))
}

fn fault(entry: &FaultEntry) -> Result<Fault, String> {
    let count = entry.count.unwrap_or(1);
    let for_ms = entry.r#for.as_deref().map_or(Ok(10_000), |text| ms(text, "for"))?;
    let call = |verb, manner: &str| match manner {
        "refuse" => Ok(Fault::Refuse { verb, count }),
        "hang" => Ok(Fault::Hang { verb, count }),
        "lost" => Ok(Fault::Lose { verb, count }),
        other => Err(format!("fault `{other}`: use refuse, hang or lost")),
    };
    match entry {
        FaultEntry { bind: Some(manner), .. } => call(Verb::Bind, manner),
        FaultEntry { evict: Some(manner), .. } => call(Verb::Evict, manner),
        FaultEntry { watch: Some(what), .. } if what == "drop" => Ok(Fault::WatchDrops { for_ms }),
        FaultEntry { api: Some(what), .. } if what == "down" => Ok(Fault::ApiDown { for_ms }),
        FaultEntry { scheduler: Some(what), .. } if what == "restart" => Ok(Fault::Restart),
        _ => Err("a fault is one of {bind: refuse|hang|lost}, {evict: refuse}, {watch: drop}, {api: down, for: 10s}, {scheduler: restart}".to_owned()),
    }
}
