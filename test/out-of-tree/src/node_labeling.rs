//! `NodeLabeling`: before a pod with GPUs is bound, its node is labelled; if the bind fails, the label goes again.

use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};
use krafla_framework::{BindingPlugin, ExtensionPoint, Later, NodePlugin, ObjectApi, ObjectRef, PodRef};

/// The label.
pub const LABEL: &str = "gpu.example.com/allocated";

const NAME: &str = "NodeLabeling";

/// How a profile gets it.
pub const BUILDER: NodePluginBuilder = NodePluginBuilder {
    info: NodePluginInfo {
        name: NAME,
        about: "labels the node before the bind",
        points: &[ExtensionPoint::PreBind],
        default_weight: None,
    },
    build: Build::Plain(|| Box::new(NodeLabeling)),
};

/// See the module.
pub struct NodeLabeling;

impl NodePlugin for NodeLabeling {
    fn name(&self) -> &'static str {
        NAME
    }
}

impl BindingPlugin for NodeLabeling {
    fn name(&self) -> &'static str {
        NAME
    }

    fn pre_bind<'a>(&'a self, api: &'a dyn ObjectApi, _: &'a PodRef, node: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move { api.patch(ObjectRef::node(node), &label("\"true\"")).await })
    }

    fn undo_pre_bind<'a>(&'a self, api: &'a dyn ObjectApi, _: &'a PodRef, node: &'a str) -> Later<'a, ()> {
        Box::pin(async move {
            // Whether it can be taken back or not, the pod is tried again.
            let _ = api.patch(ObjectRef::node(node), &label("null")).await;
        })
    }
}

fn label(value: &str) -> String {
    format!(r#"{{"metadata": {{"labels": {{"{LABEL}": {value}}}}}}}"#)
}
