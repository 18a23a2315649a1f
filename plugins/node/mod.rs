//! Node-level plugins of the Scheduling Framework, each with Kubernetes' formula, in integers where Kubernetes has
//! integers.

mod balanced_allocation;
mod coscheduling;
mod default_binder;
mod default_preemption;
mod domains;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod pod_topology_spread;
mod priority_sort;
mod scheduling_gates;
mod taint_toleration;

use krafla_framework::NodePlugin;
use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};

pub use balanced_allocation::NodeResourcesBalancedAllocation;
pub use coscheduling::Coscheduling;
pub use default_binder::DefaultBinder;
pub use default_preemption::DefaultPreemption;
pub use image_locality::ImageLocality;
pub use inter_pod_affinity::InterPodAffinity;
pub use node_affinity::NodeAffinity;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_resources_fit::{NodeResourcesFit, Strategy};
pub use node_unschedulable::NodeUnschedulable;
pub use pod_topology_spread::{Defaults, PodTopologySpread};
pub use priority_sort::PrioritySort;
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::TaintToleration;

/// Every plugin of this folder that a profile may name; those of the default profile in its order.
pub fn all() -> Vec<NodePluginBuilder> {
    use krafla_framework::ExtensionPoint::{Bind, Permit, PostFilter, PreEnqueue, QueueSort, Reserve};
    use krafla_framework::ExtensionPoint::{Filter, PreFilter, PreScore, Score};
    let plain = |name, about, points, default_weight, make: fn() -> Box<dyn NodePlugin>| NodePluginBuilder {
        info: NodePluginInfo { name, about, points, default_weight },
        build: Build::Plain(make),
    };
    vec![
        plain("SchedulingGates", "pods with gates stay out", &[PreEnqueue], Some(0), || Box::new(SchedulingGates)),
        plain("PrioritySort", "the more important first", &[QueueSort], Some(0), || Box::new(PrioritySort)),
        plain("NodeUnschedulable", "cordoned nodes", &[Filter], Some(0), || Box::new(NodeUnschedulable)),
        plain("NodeName", "`spec.nodeName`", &[Filter], Some(0), || Box::new(NodeName)),
        plain("TaintToleration", "taints", &[Filter, PreScore, Score], Some(3), || Box::new(TaintToleration)),
        plain(
            "NodeAffinity",
            "node selector and node affinity",
            &[PreFilter, Filter, PreScore, Score],
            Some(2),
            || Box::new(NodeAffinity),
        ),
        plain("NodePorts", "host ports", &[PreFilter, Filter], Some(0), || Box::new(NodePorts)),
        plain(
            "NodeResourcesFit",
            "room; emptier or fuller nodes",
            &[PreFilter, Filter, PreScore, Score],
            Some(1),
            || Box::new(NodeResourcesFit::new(Strategy::LeastAllocated, &[("cpu", 1), ("memory", 1)])),
        ),
        plain("PodTopologySpread", "even spread over domains", &[PreFilter, Filter, PreScore, Score], Some(2), || {
            Box::new(PodTopologySpread { defaults: Defaults::System, promises_reach_domains: false })
        }),
        plain("InterPodAffinity", "affinity between pods", &[PreFilter, Filter, PreScore, Score], Some(2), || {
            Box::new(InterPodAffinity {
                hard_pod_affinity_weight: 1,
                ignore_preferred_terms_of_existing_pods: false,
                promises_reach_domains: false,
            })
        }),
        plain("DefaultPreemption", "room of the less important", &[PostFilter], Some(0), || {
            Box::new(DefaultPreemption)
        }),
        plain("NodeResourcesBalancedAllocation", "even use of resources", &[PreScore, Score], Some(1), || {
            Box::new(NodeResourcesBalancedAllocation::new(&["cpu", "memory"]))
        }),
        plain("ImageLocality", "nodes that have the images", &[Score], Some(1), || Box::new(ImageLocality)),
        NodePluginBuilder {
            info: NodePluginInfo {
                name: Coscheduling::NAME,
                about: "gangs at Permit",
                points: &[QueueSort, PreFilter, PostFilter, Reserve, Permit],
                default_weight: None,
            },
            build: Build::From(Coscheduling::from_arguments),
        },
        plain("DefaultBinder", "the bind", &[Bind], Some(0), || Box::new(DefaultBinder)),
    ]
}

/// A weight in a configuration. The upper limit keeps sums of scores exact.
pub const WEIGHT: krafla_framework::ArgumentKind = krafla_framework::ArgumentKind::Integer { min: 0, max: 1_000_000 };
