//! What this build has. A crate with plugins of its own adds them here and calls the same commands.

use krafla_framework::Registry;

/// The actions and plugins of this build.
pub(crate) fn registry() -> Registry {
    Registry {
        actions: krafla_actions::all(),
        plugins: krafla_plugins::all(),
        node_plugins: krafla_plugins::node::all(),
    }
}
