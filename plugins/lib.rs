//! The plugins: a file or folder each at the session level, and under `node` those of the Scheduling Framework.
//!
//! Whoever adds one touches its own file and one line of [`all`].

pub mod admission;
pub mod binpack;
pub mod capacity;
pub mod cdp;
pub mod conformance;
pub mod drf;
mod drf_hierarchy;
#[cfg(test)]
mod drf_properties;
pub mod gang;
#[cfg(test)]
mod gang_properties;
pub mod gpu;
pub mod las;
mod listed;
pub mod node;
pub mod nodegroup;
pub mod nodeorder;
pub mod overcommit;
pub mod pdb;
pub mod predicates;
pub mod priority;
pub mod proportion;
pub mod queue_limits;
pub mod rescheduling;
pub mod resourcequota;
pub mod sla;
pub mod srsf;
pub mod tdm;
#[cfg(test)]
mod testing;
pub mod usage;
pub mod water_filling;

use krafla_framework::{ActionBuilder, PluginBuilder, Registry};

/// A registry with every plugin of this crate and these actions.
pub fn registry(actions: Vec<ActionBuilder>) -> Registry {
    Registry {
        actions,
        plugins: all(),
        node_plugins: node::all().into_iter().chain(gpu::all()).collect(),
        binding_plugins: node::binding(),
        ..Registry::default()
    }
}

/// Every plugin of this crate, in the order in which help texts list them.
pub fn all() -> Vec<PluginBuilder> {
    vec![
        PluginBuilder { info: priority::INFO, build: priority::build },
        PluginBuilder { info: gang::INFO, build: gang::build },
        PluginBuilder { info: conformance::INFO, build: conformance::build },
        PluginBuilder { info: pdb::INFO, build: pdb::build },
        PluginBuilder { info: cdp::INFO, build: cdp::build },
        PluginBuilder { info: tdm::INFO, build: tdm::build },
        PluginBuilder { info: drf::INFO, build: drf::build },
        PluginBuilder { info: proportion::INFO, build: proportion::build },
        PluginBuilder { info: capacity::INFO, build: capacity::build },
        PluginBuilder { info: overcommit::INFO, build: overcommit::build },
        PluginBuilder { info: resourcequota::INFO, build: resourcequota::build },
        PluginBuilder { info: sla::INFO, build: sla::build },
        PluginBuilder { info: srsf::INFO, build: srsf::build },
        PluginBuilder { info: las::INFO, build: las::build },
        PluginBuilder { info: gpu::fgd::INFO, build: gpu::fgd::build },
        PluginBuilder { info: predicates::INFO, build: predicates::build },
        PluginBuilder { info: nodeorder::INFO, build: nodeorder::build },
        PluginBuilder { info: binpack::INFO, build: binpack::build },
        PluginBuilder { info: usage::INFO, build: usage::build },
        PluginBuilder { info: rescheduling::INFO, build: rescheduling::build },
        PluginBuilder { info: nodegroup::INFO, build: nodegroup::build },
    ]
}
