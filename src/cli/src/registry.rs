//! What this build has. A crate with plugins of its own adds them through [`main_with`](crate::main_with).

use std::sync::OnceLock;

use krafla_framework::Registry;

static EXTENSION: OnceLock<fn(&mut Registry)> = OnceLock::new();

/// From now on the registry has what `extend` adds. Only the first call counts.
pub(crate) fn extend_by(extend: fn(&mut Registry)) {
    let _ = EXTENSION.set(extend);
}

/// The actions and plugins of this build, and those that were added.
pub(crate) fn registry() -> Registry {
    let mut registry = krafla_plugins::registry(krafla_actions::all());
    registry.descheduler = Some(krafla_descheduler::build);
    if let Some(extend) = EXTENSION.get() {
        extend(&mut registry);
    }
    registry
}
