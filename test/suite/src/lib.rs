//! Tests of the whole: scenarios, laws over random workloads, real traces, memory, replay. They are in `tests/it`.

use krafla_framework::Registry;

/// Every action and plugin there is.
pub fn registry() -> Registry {
    let descheduler = Some(krafla_descheduler::build as krafla_framework::BuildDescheduler);
    krafla_framework::Registry { descheduler, ..krafla_plugins::registry(krafla_actions::all()) }
}
