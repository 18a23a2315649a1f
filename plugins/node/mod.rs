//! Node-level plugins of the Scheduling Framework, each with Kubernetes' formula, in integers where Kubernetes has
//! integers.

mod balanced_allocation;
mod image_locality;
mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod taint_toleration;

pub use balanced_allocation::NodeResourcesBalancedAllocation;
pub use image_locality::ImageLocality;
pub use node_affinity::NodeAffinity;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_resources_fit::{NodeResourcesFit, Strategy};
pub use node_unschedulable::NodeUnschedulable;
pub use taint_toleration::TaintToleration;

/// A weight in a configuration. The upper limit keeps sums of scores exact.
pub const WEIGHT: krafla_framework::ArgumentKind = krafla_framework::ArgumentKind::Integer { min: 0, max: 1_000_000 };
