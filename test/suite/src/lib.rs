//! Tests of the whole: scenarios, laws over random workloads, real traces, memory, replay. They are in `tests/it`.

use krafla_framework::Registry;

/// Every action and plugin there is.
pub fn registry() -> Registry {
    Registry {
        actions: krafla_actions::all(),
        plugins: krafla_plugins::all(),
        node_plugins: krafla_plugins::node::all(),
        ..Registry::default()
    }
}
