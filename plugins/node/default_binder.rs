//! `DefaultBinder`: the bind itself, which a shell carries out through the binding subresource.

use krafla_framework::NodePlugin;

/// See the module.
pub struct DefaultBinder;

impl NodePlugin for DefaultBinder {
    fn name(&self) -> &'static str {
        "DefaultBinder"
    }
}
