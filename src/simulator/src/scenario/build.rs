//! From a scenario as written to what will happen in the world, in order of time.

use std::collections::BTreeMap;

use krafla_api::{Converter, parse_duration};
use krafla_model::priority::PriorityClassSpec;
use krafla_model::resources::GPU_NAME;
use krafla_model::{Event, Name, NodeSpec, QueueSpec, Time, quantity};
use serde_json::{Value, json};
use serde_saphyr::Spanned;

use super::format::{
    ControllerEntry, FaultEntry, JobEntry, NodeEntry, PriorityClassEntry, QueueEntry, RoleEntry, Scenario, TaintEntry,
    TimelineEntry, TopologyEntry, Which, Written,
};
use crate::manifest::{self, SCHEDULER_NAMES};
use crate::world::{Controller, Fault, Happening, Life, Setup, Submission, Submitted, Verb, set_ready};

/// A scenario, ready to run.
pub(super) struct Built {
    pub(super) setup: Setup,
    /// In order of time; those of one time in the order of the file.
    pub(super) happenings: Vec<(Time, Happening)>,
    /// When the run ends, if the file says.
    pub(super) until: Option<Time>,
    /// When the last event of the file happens.
    pub(super) last_event: Time,
    /// What cannot be done as it is written, but harms nothing else.
    pub(super) notes: Vec<String>,
}

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
pub(super) fn build(scenario: &Scenario, config_file: Option<(String, String)>) -> Result<Built, Wrong> {
    let mut builder =
        Builder { converter: Converter::new(), nodes: BTreeMap::new(), queues: BTreeMap::new(), notes: Vec::new() };
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
    let own = scenario.config.as_ref().map(|text| ("config".to_owned(), text.value.clone()));
    setup.configuration = own.or(config_file);
    let until = duration(&scenario.until, "until")?.map(Time);

    let mut happenings = builder.cluster(scenario)?;
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
        happenings.extend(what.into_iter().map(|(after, happening)| (Time(when) + after, happening)));
    }
    happenings.sort_by_key(|(at, _)| *at);
    Ok(Built { setup, happenings, until, last_event, notes: builder.notes })
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
    notes: Vec<String>,
}

type Planned = Vec<(i64, Happening)>;

impl Builder {
    fn cluster(&mut self, scenario: &Scenario) -> Result<Vec<(Time, Happening)>, Wrong> {
        let mut events = Vec::new();
        for (name, class) in &scenario.cluster.priority_classes {
            events.push(Event::PriorityClass(priority_class(name, class)));
        }
        for name in ["root", "default"] {
            let named = scenario.cluster.queues.iter().any(|queue| queue.value.name == name);
            if !named {
                events.push(Event::Queue(self.queue(&QueueEntry { name: name.to_owned(), ..QueueEntry::default() })?));
            }
        }
        for (i, queue) in scenario.cluster.queues.iter().enumerate() {
            let spec = self.queue(&queue.value).map_err(|why| at(queue, &format!("cluster.queues[{i}]"), &why))?;
            events.push(Event::Queue(spec));
        }
        for (i, node) in scenario.cluster.nodes.iter().enumerate() {
            let nodes = self.new_nodes(&node.value).map_err(|why| at(node, &format!("cluster.nodes[{i}]"), &why))?;
            events.extend(nodes.into_iter().map(Event::Node));
        }
        let mut happenings: Vec<(Time, Happening)> =
            events.into_iter().map(|event| (Time(0), Happening::Object(Box::new(event)))).collect();
        let manifests: Vec<Value> = scenario.cluster.manifests.iter().map(|manifest| manifest.value.clone()).collect();
        for (i, manifest) in scenario.cluster.manifests.iter().enumerate() {
            readable(&manifest.value).map_err(|why| at(manifest, &format!("cluster.manifests[{i}]"), &why))?;
        }
        let assembled = manifest::assemble(&manifests, &mut self.converter);
        self.notes.extend(assembled.problems);
        happenings.extend(assembled.happenings);
        Ok(happenings)
    }

    fn event(&mut self, entry: &TimelineEntry) -> Result<Planned, String> {
        let mut found: Vec<(&str, Planned)> = Vec::new();
        if let Some(job) = &entry.submit {
            found.push(("submit", vec![(0, self.submit(job)?)]));
        }
        if let Some(pod) = &entry.pod {
            found.push(("pod", vec![(0, self.pod(pod)?)]));
        }
        if let Some(which) = &entry.delete {
            found.push(("delete", vec![(0, delete(which)?)]));
            if let Some(node) = &which.node {
                self.nodes.remove(node);
            }
        }
        if let Some(which) = &entry.evict {
            let name = which.pod.as_deref().ok_or("`evict` names a pod: {pod: NAME}")?;
            found
                .push(("evict", vec![(0, Happening::EvictFrom { namespace: namespace_of(which), name: name.into() })]));
        }
        if let Some(which) = &entry.ungate {
            found.push(("ungate", vec![(0, ungate(which)?)]));
        }
        if let Some(node) = &entry.node {
            found.push(("node", vec![(0, object(Event::Node(self.changed_node(node)?)))]));
        }
        if let Some(node) = &entry.add_node {
            let nodes = self.new_nodes(node)?;
            found.push(("addNode", nodes.into_iter().map(|spec| (0, object(Event::Node(spec)))).collect()));
        }
        if let Some(queue) = &entry.queue {
            found.push(("queue", vec![(0, object(Event::Queue(self.queue(queue)?)))]));
        }
        if let Some(manifest) = &entry.apply {
            readable(manifest)?;
            let assembled = manifest::assemble(std::slice::from_ref(manifest), &mut self.converter);
            self.notes.extend(assembled.problems);
            found.push(("apply", assembled.happenings.into_iter().map(|(at, what)| (at.0, what)).collect()));
        }
        if let Some(text) = &entry.config {
            let happening = Happening::Configure { file: "config".to_owned(), text: text.clone() };
            found.push(("config", vec![(0, happening)]));
        }
        if let Some(entry) = &entry.fault {
            found.push(("fault", vec![(0, Happening::Fault(fault(entry)?))]));
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

    fn new_nodes(&mut self, entry: &NodeEntry) -> Result<Vec<NodeSpec>, String> {
        if entry.name.is_empty() {
            return Err("a node needs a `name`".to_owned());
        }
        let names: Vec<String> = match entry.count {
            None => vec![entry.name.clone()],
            Some(n) if n > 100_000 => return Err(format!("`count: {n}` is more than 100000")),
            Some(n) => (0..n).map(|i| format!("{}-{i}", entry.name)).collect(),
        };
        names
            .into_iter()
            .map(|name| {
                if self.nodes.contains_key(&name) {
                    return Err(format!("there is a node `{name}` already; to change it, use node"));
                }
                let own = NodeEntry { name: name.clone(), count: None, ..entry.clone() };
                let spec = self.node(&own);
                self.nodes.insert(name, own);
                spec
            })
            .collect()
    }

    fn node(&mut self, entry: &NodeEntry) -> Result<NodeSpec, String> {
        let node = krafla_api::json::node(node_json(entry)?)?;
        let (spec, problems) = self.converter.node(&node);
        let mut spec = spec.ok_or_else(|| one_of(&problems))?;
        if let Some(problem) = problems.first() {
            return Err(problem.message.clone());
        }
        set_ready(&mut spec, entry.ready.unwrap_or(true));
        Ok(spec)
    }

    fn changed_node(&mut self, change: &NodeEntry) -> Result<NodeSpec, String> {
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
        let spec = self.node(&merged)?;
        self.nodes.insert(change.name.clone(), merged);
        Ok(spec)
    }

    /// A queue, or a change of one that exists.
    fn queue(&mut self, change: &QueueEntry) -> Result<QueueSpec, String> {
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
        let queue = json!({
            "metadata": { "name": merged.name, "annotations": merged.annotations.clone().unwrap_or_default() },
            "spec": spec,
            "status": { "state": merged.state.clone().unwrap_or_else(|| "Open".to_owned()) },
        });
        let queue = krafla_api::json::queue(queue)?;
        let (spec, problems) = self.converter.queue(&queue);
        let spec = spec.ok_or_else(|| one_of(&problems))?;
        self.notes.extend(problems.iter().map(|problem| format!("{}: {}", problem.object, problem.message)));
        self.queues.insert(change.name.clone(), merged);
        Ok(spec)
    }

    fn submit(&mut self, job: &JobEntry) -> Result<Happening, String> {
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
        let group = json!({
            "metadata": { "name": name, "namespace": namespace(job), "annotations": job.annotations, "labels": job.labels },
            "spec": spec,
        });
        let group = krafla_api::json::pod_group(group)?;
        let (group, problems) = self.converter.pod_group(&group);
        let group = group.ok_or_else(|| one_of(&problems))?;
        let mut pods = Vec::new();
        for role in &roles {
            let names = (0..role.replicas).map(|k| match role.name.as_str() {
                "" => format!("{name}-{k}"),
                role => format!("{name}-{role}-{k}"),
            });
            pods.extend(self.pods_of(job, role, names.map(Name::from).collect(), Some(name))?.0);
        }
        Ok(Happening::Submit(Box::new(Submission {
            group,
            announced: true,
            joins: false,
            goes_with_pods: false,
            pods,
            kind: String::new(),
        })))
    }

    fn pod(&mut self, job: &JobEntry) -> Result<Happening, String> {
        let name = job.name.as_deref().or(job.job.as_deref()).ok_or("a pod needs its `name`")?;
        let role = RoleEntry {
            request: job.request.clone(),
            gpu: job.gpu.clone(),
            request_gpu_milli: job.request_gpu_milli,
            ..RoleEntry::default()
        };
        let (pods, template) = self.pods_of(job, &role, vec![name.into()], None)?;
        let (group, problems) = self.converter.implicit_group(&template, None);
        let mut group = group.ok_or_else(|| one_of(&problems))?;
        if let Some(queue) = &job.queue {
            group.queue = queue.into();
        }
        // Volcano's controller makes PodGroups for pods of its own scheduler only.
        let announced = pods.iter().all(|pod| pod.ours);
        Ok(Happening::Submit(Box::new(Submission {
            group,
            announced,
            joins: false,
            goes_with_pods: true,
            pods,
            kind: String::new(),
        })))
    }

    /// Equal pods under these names, and the pod that they are made from.
    fn pods_of(
        &mut self,
        job: &JobEntry,
        role: &RoleEntry,
        names: Vec<Name>,
        group: Option<&str>,
    ) -> Result<(Vec<Submitted>, k8s_openapi::api::core::v1::Pod), String> {
        let template = pod_json(job, role, names.first().map_or("pod", |name| name.as_str()), group)?;
        let pod = krafla_api::json::pod(template)?;
        let (spec, problems) = self.converter.pod(&pod);
        let spec = spec.ok_or_else(|| one_of(&problems))?;
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
        let ours = job.scheduler.as_deref().is_none_or(|name| SCHEDULER_NAMES.contains(&name));
        let pods = names
            .into_iter()
            .map(|name| Submitted {
                name,
                shape: spec.shape.clone(),
                priority: manifest::own_priority(&pod).then_some(spec.priority),
                gates: spec.gates.clone(),
                node: None,
                ours,
                life,
            })
            .collect();
        Ok((pods, pod))
    }
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

fn ungate(which: &Which) -> Result<Happening, String> {
    let namespace = namespace_of(which);
    match which {
        Which { job: Some(name), pod: None, node: None, queue: None, .. } => {
            Ok(Happening::Ungate { namespace, name: name.into(), whole_job: true })
        }
        Which { pod: Some(name), job: None, node: None, queue: None, .. } => {
            Ok(Happening::Ungate { namespace, name: name.into(), whole_job: false })
        }
        _ => Err("`ungate` names one thing: {job: NAME} or {pod: NAME}".to_owned()),
    }
}

fn delete(which: &Which) -> Result<Happening, String> {
    let namespace = namespace_of(which);
    match which {
        Which { job: Some(name), pod: None, node: None, queue: None, .. } => {
            Ok(Happening::DeleteJob { namespace, name: name.into() })
        }
        Which { pod: Some(name), job: None, node: None, queue: None, .. } => {
            Ok(Happening::DeletePod { namespace, name: name.into() })
        }
        Which { node: Some(name), job: None, pod: None, queue: None, .. } => Ok(object(Event::NodeGone(name.into()))),
        Which { queue: Some(name), job: None, pod: None, node: None, .. } => Ok(object(Event::QueueGone(name.into()))),
        _ => Err("`delete` names one thing: {job: NAME}, {pod: NAME}, {node: NAME} or {queue: NAME}".to_owned()),
    }
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
