//! Nodes.
//!
//! An amount that cannot be read is ignored, so that the node offers none of that resource. The annotation
//! `krafla.io/gpu-devices: "8"` models the node's GPUs one by one, so that pods may share them.

use k8s_openapi::api::core::v1 as core;
use krafla_model::{NodeSpec, Problem};

use crate::converter::Converter;
use crate::duration::shown;
use crate::keys;
use crate::pod::image_name;
use crate::quantities;
use crate::report::{Report, annotation};
use crate::selectors;

impl Converter {
    /// Reads a node.
    pub fn node(&mut self, node: &core::Node) -> (Option<NodeSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("node", &node.metadata);
        let read = self.read_node(node, &mut report);
        (read, report.into_problems())
    }

    fn read_node(&mut self, node: &core::Node, report: &mut Report<'_>) -> Option<NodeSpec> {
        let identity = self.identity(&node.metadata, report)?;
        let names = &mut self.names;
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let (field, stock) = match status.and_then(|status| status.allocatable.as_ref()) {
            Some(allocatable) => ("status.allocatable", Some(allocatable)),
            None => ("status.capacity", status.and_then(|status| status.capacity.as_ref())),
        };
        let (allocatable, _) =
            quantities::reported(stock, format_args!("{field}"), "the node offers none of it", names, report);
        let mut taints = Vec::new();
        for (i, taint) in spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten().enumerate() {
            match selectors::taint(taint, names) {
                Ok(taint) => taints.push(taint),
                Err(why) => report.say(format_args!("taint {i}: {why}; the taint is ignored")),
            }
        }
        let mut images = Vec::new();
        for image in status.and_then(|status| status.images.as_ref()).into_iter().flatten() {
            let size = image.size_bytes.unwrap_or(0).max(0);
            images.extend(image.names.iter().flatten().filter_map(|name| Some((image_name(name, names)?, size))));
        }
        images.sort_unstable();
        images.dedup_by(|a, b| a.0 == b.0);
        Some(NodeSpec {
            name: identity.name,
            labels: selectors::labels(node.metadata.labels.iter().flatten(), names),
            taints,
            unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            allocatable,
            images,
            features: {
                let declared = status.and_then(|status| status.declared_features.as_ref());
                declared.into_iter().flatten().map(|feature| names.intern(feature)).collect()
            },
            gpu_devices: gpu_devices(node, report),
        })
    }
}

fn gpu_devices(node: &core::Node, report: &mut Report<'_>) -> u8 {
    let Some(text) = annotation(&node.metadata, keys::GPU_DEVICES) else { return 0 };
    text.trim().parse().unwrap_or_else(|_| {
        report.say(format_args!(
            "{} is `{}`, not a number of devices from 0 to 255; its GPUs are only counted",
            keys::GPU_DEVICES,
            shown(text)
        ));
        0
    })
}

#[cfg(test)]
mod tests {
    use krafla_model::Amounts;
    use krafla_model::taints::Effect;
    use serde_json::{Value, json};

    use super::*;

    fn read(node: Value) -> (Option<NodeSpec>, Vec<String>) {
        let (node, problems) = Converter::new().node(&serde_json::from_value(node).expect("a node"));
        (node, problems.into_iter().map(|problem| format!("{}: {}", problem.object, problem.message)).collect())
    }

    #[test]
    fn a_node_is_what_it_offers_and_what_it_forbids() {
        let (node, problems) = read(json!({
            "metadata": {"name": "n0", "labels": {"zone": "a"}, "annotations": {"krafla.io/gpu-devices": "8"}},
            "spec": {"unschedulable": true, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "9"},
                "allocatable": {"cpu": "8", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "8"},
                "images": [{"names": ["b", "a:1"], "sizeBytes": 5}, {"names": ["a:1"], "sizeBytes": 5}],
            },
        }));
        let node = node.expect("a node");
        assert_eq!(problems, [""; 0]);
        assert_eq!(
            node.allocatable,
            Amounts::default()
                .with("cpu", 8_000)
                .with("memory", 1 << 30)
                .with("pods", 110)
                .with("nvidia.com/gpu", 8_000)
        );
        assert_eq!(node.taints[0].effect, Effect::NoSchedule);
        assert_eq!(node.images, [("a:1".into(), 5), ("b:latest".into(), 5)]);
        assert!(node.unschedulable);
        assert_eq!(node.gpu_devices, 8);
    }

    #[test]
    fn capacity_stands_in_for_allocatable() {
        let (node, _) = read(json!({"metadata": {"name": "n0"}, "status": {"capacity": {"cpu": 2}}}));
        assert_eq!(node.map(|node| node.allocatable), Some(Amounts::default().with("cpu", 2_000)));
    }

    #[test]
    fn what_cannot_be_read_is_left_out_of_the_node_and_reported() {
        let (node, problems) = read(json!({
            "metadata": {"name": "n0", "annotations": {"krafla.io/gpu-devices": "many"}},
            "spec": {"taints": [{"key": "gpu", "effect": "Never"}]},
            "status": {"allocatable": {"cpu": "8", "memory": "1 GB"}},
        }));
        let node = node.expect("a node");
        assert_eq!(node.allocatable, Amounts::default().with("cpu", 8_000));
        assert_eq!((node.taints.len(), node.gpu_devices), (0, 0));
        assert!(
            problems[0].starts_with("node n0: status.allocatable.memory is `1 GB`: unknown suffix"),
            "{problems:?}"
        );
        assert!(problems[0].ends_with("the node offers none of it"), "{problems:?}");
        assert!(problems[1].contains("taint 0: the effect is `Never`"), "{problems:?}");
        assert!(problems[2].contains("gpu-devices is `many`"), "{problems:?}");
        assert_eq!(read(json!({"metadata": {}})).0, None);
    }
}
