//! A scheduler of one's own: Krafla with three more plugins, built on what it publishes.

pub mod custom_gang;
pub mod linked_devices;
pub mod node_labeling;

use std::sync::Arc;

use krafla_framework::Registry;

/// Adds the plugins to a build.
pub fn extend(registry: &mut Registry) {
    registry.node_plugins.push(custom_gang::BUILDER);
    registry.node_plugins.push(linked_devices::BUILDER);
    registry.node_plugins.push(node_labeling::BUILDER);
    registry.binding_plugins.push(Arc::new(node_labeling::NodeLabeling));
    registry.pod_annotations.push(custom_gang::MIN_AVAILABLE);
}
