//! What does a node of the file come to?

use std::collections::BTreeMap;

use krafla_api::writer;
use krafla_model::resources::GPU_NAME;
use krafla_model::{Event, NodeSpec, quantity};
use serde_json::{Value, json};

use super::super::format::{NodeEntry, TaintEntry};
use super::objects::{manifest_of, one_of};
use super::{Both, Builder};
use crate::world::set_ready;

impl Builder {
    pub(super) fn new_nodes(&mut self, entry: &NodeEntry) -> Result<Both, String> {
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

    pub(super) fn changed_node(&mut self, change: &NodeEntry) -> Result<Both, String> {
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
}

/// A node as its kubelet and the node controller leave it.
fn node_manifest(spec: &NodeSpec, ready: bool) -> Result<Value, String> {
    let mut node = manifest_of(&writer::node(spec))?;
    let (status, reason) = if ready { ("True", "KubeletReady") } else { ("False", "KubeletNotReady") };
    let condition = json!({ "type": "Ready", "status": status, "reason": reason, "message": "the scenario says so" });
    node["status"]["conditions"] = json!([condition]);
    Ok(node)
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
