//! Nodes.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use krafla_model::NodeSpec;
use krafla_model::taints::Taint;

use super::pod::effect;
use super::{amounts, annotations, list, map, text};
use crate::keys;

/// Writes a node. What pods may use of it is also its capacity.
pub fn node(node: &NodeSpec) -> core::Node {
    let images = node
        .images
        .iter()
        .map(|(name, size)| core::ContainerImage { names: Some(vec![name.to_string()]), size_bytes: Some(*size) });
    let allocatable = amounts(&node.allocatable);
    core::Node {
        metadata: ObjectMeta {
            name: text(&node.name),
            labels: map(&node.labels),
            annotations: annotations([(
                keys::GPU_DEVICES,
                (node.gpu_devices > 0).then(|| node.gpu_devices.to_string()),
            )]),
            ..ObjectMeta::default()
        },
        spec: Some(core::NodeSpec {
            taints: list(node.taints.iter().map(taint).collect()),
            unschedulable: node.unschedulable.then_some(true),
            ..core::NodeSpec::default()
        }),
        status: Some(core::NodeStatus {
            capacity: Some(allocatable.clone()),
            allocatable: Some(allocatable),
            images: list(images.collect()),
            declared_features: list(node.features.iter().map(ToString::to_string).collect()),
            ..core::NodeStatus::default()
        }),
    }
}

fn taint(taint: &Taint) -> core::Taint {
    core::Taint {
        key: taint.key.to_string(),
        value: text(&taint.value),
        effect: effect(taint.effect).to_owned(),
        ..core::Taint::default()
    }
}
