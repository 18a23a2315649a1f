//! Node-level plugins of the Scheduling Framework, each with Kubernetes' formula, in integers where Kubernetes has
//! integers.

mod arguments;
mod balanced_allocation;
mod capacity_scheduling;
mod coscheduling;
mod default_binder;
mod default_preemption;
mod domains;
mod dynamic_resources;
mod gang_scheduling;
mod hints;
mod image_locality;
mod inter_pod_affinity;
pub(crate) mod node_affinity;
mod node_declared_features;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod node_volume_limits;
mod pod_topology_spread;
mod preemption;
mod priority_sort;
mod scheduling_gates;
mod taint_toleration;
mod volume_binding;
mod volume_claims;
mod volume_restrictions;
#[cfg(test)]
mod volume_scenes;
mod volume_zone;

use std::sync::Arc;

use krafla_framework::conf::kube::args::DefaultPreemptionArgs;
use krafla_framework::registry::{Build, Built, NodePluginBuilder, NodePluginInfo};
use krafla_framework::{BindingPlugin, NodePlugin, Value};

pub use balanced_allocation::NodeResourcesBalancedAllocation;
pub use capacity_scheduling::CapacityScheduling;
pub use coscheduling::Coscheduling;
pub use default_binder::DefaultBinder;
pub use default_preemption::DefaultPreemption;
pub use dynamic_resources::DynamicResources;
pub use gang_scheduling::GangScheduling;
pub use image_locality::ImageLocality;
pub use inter_pod_affinity::InterPodAffinity;
pub use node_affinity::NodeAffinity;
pub use node_declared_features::NodeDeclaredFeatures;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_resources_fit::{NodeResourcesFit, Strategy};
pub use node_unschedulable::NodeUnschedulable;
pub use node_volume_limits::NodeVolumeLimits;
pub use pod_topology_spread::{Defaults, PodTopologySpread};
pub use priority_sort::PrioritySort;
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::TaintToleration;
pub use volume_binding::VolumeBinding;
pub use volume_restrictions::VolumeRestrictions;
pub use volume_zone::VolumeZone;

/// Every plugin of this folder that a profile may name; those of the default profile in its order.
pub fn all() -> Vec<NodePluginBuilder> {
    use krafla_framework::ExtensionPoint::{Bind, Permit, PostFilter, PreBind, PreEnqueue, QueueSort, Reserve};
    use krafla_framework::ExtensionPoint::{Filter, PreFilter, PreScore, Score};
    let builder = |name, about, points, default_weight, build: Build| NodePluginBuilder {
        info: NodePluginInfo { name, about, points, default_weight },
        build,
    };
    let plain = |make: fn() -> Box<dyn NodePlugin>| Build::Plain(make);
    let legacy = |name, about, make: Make| builder(name, about, &[Score], None, Build::From(make));
    vec![
        builder(
            "SchedulingGates",
            "pods with gates stay out",
            &[PreEnqueue],
            Some(0),
            plain(|| Box::new(SchedulingGates)),
        ),
        builder("PrioritySort", "the more important first", &[QueueSort], Some(0), plain(|| Box::new(PrioritySort))),
        builder("NodeUnschedulable", "cordoned nodes", &[Filter], Some(0), plain(|| Box::new(NodeUnschedulable))),
        builder("NodeName", "`spec.nodeName`", &[Filter], Some(0), plain(|| Box::new(NodeName))),
        builder("TaintToleration", "taints", &[Filter, PreScore, Score], Some(3), plain(|| Box::new(TaintToleration))),
        builder(
            "NodeAffinity",
            "node selector and node affinity",
            &[PreFilter, Filter, PreScore, Score],
            Some(2),
            Build::From(|args| Ok(Box::new(NodeAffinity::from_args(args)?))),
        ),
        builder("NodePorts", "host ports", &[PreFilter, Filter], Some(0), plain(|| Box::new(NodePorts))),
        builder(
            "NodeResourcesFit",
            "room; emptier or fuller nodes",
            &[PreFilter, Filter, PreScore, Score],
            Some(1),
            Build::From(|args| Ok(Box::new(NodeResourcesFit::from_args(args)?))),
        ),
        builder(
            "VolumeRestrictions",
            "disks and claims that another pod has",
            &[PreFilter, Filter],
            Some(0),
            plain(|| Box::new(VolumeRestrictions)),
        ),
        builder(
            "NodeVolumeLimits",
            "volumes that a node can attach",
            &[PreFilter, Filter],
            Some(0),
            plain(|| Box::new(NodeVolumeLimits)),
        ),
        builder(
            VolumeBinding::NAME,
            "volumes of claims, and those that wait for a node; nodes by their storage",
            &[PreFilter, Filter, PreScore, Score, Reserve, PreBind],
            Some(1),
            Build::From(|args| Ok(Box::new(VolumeBinding::from_args(args)?))),
        ),
        builder("VolumeZone", "zones of volumes", &[PreFilter, Filter], Some(0), plain(|| Box::new(VolumeZone))),
        builder(
            "PodTopologySpread",
            "even spread over domains",
            &[PreFilter, Filter, PreScore, Score],
            Some(2),
            Build::From(|args| Ok(Box::new(PodTopologySpread::from_args(args)?))),
        ),
        builder(
            "InterPodAffinity",
            "affinity between pods",
            &[PreFilter, Filter, PreScore, Score],
            Some(2),
            Build::From(|args| Ok(Box::new(InterPodAffinity::from_args(args)?))),
        ),
        builder(
            DynamicResources::NAME,
            "devices of claims",
            &[PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind],
            Some(2),
            Build::From(|args| Ok(Box::new(DynamicResources::from_args(args)?))),
        ),
        builder(
            "DefaultPreemption",
            "room of the less important",
            &[PostFilter],
            Some(0),
            // Every node is tried, so the least number of them that the arguments ask for is always reached.
            Build::From(|args| DefaultPreemptionArgs::read(args).map(|_| Box::new(DefaultPreemption) as _)),
        ),
        builder(
            "NodeResourcesBalancedAllocation",
            "even use of resources",
            &[PreScore, Score],
            Some(1),
            Build::From(|args| Ok(Box::new(NodeResourcesBalancedAllocation::from_args(args)?))),
        ),
        builder("ImageLocality", "nodes that have the images", &[Score], Some(1), plain(|| Box::new(ImageLocality))),
        legacy("NodeResourcesLeastAllocated", "emptier nodes; a name of older versions", |args| {
            Ok(Box::new(NodeResourcesFit::legacy("NodeResourcesLeastAllocated", args)?))
        }),
        legacy("NodeResourcesMostAllocated", "fuller nodes; a name of older versions", |args| {
            Ok(Box::new(NodeResourcesFit::legacy("NodeResourcesMostAllocated", args)?))
        }),
        legacy("RequestedToCapacityRatio", "nodes by utilisation; a name of older versions", |args| {
            Ok(Box::new(NodeResourcesFit::legacy("RequestedToCapacityRatio", args)?))
        }),
        builder(
            Coscheduling::NAME,
            "gangs at Permit",
            &[QueueSort, PreFilter, PostFilter, Reserve, Permit],
            None,
            Build::From(|args| Ok(Box::new(Coscheduling::from_args(args)?))),
        ),
        builder(
            "CapacityScheduling",
            "ElasticQuotas of namespaces",
            &[PreFilter, PostFilter, Reserve],
            None,
            plain(|| Box::new(CapacityScheduling)),
        ),
        builder("DefaultBinder", "the bind", &[Bind], Some(0), plain(|| Box::new(DefaultBinder))),
        builder(
            "NodeDeclaredFeatures",
            "features of the kubelet that a pod needs",
            &[PreFilter, Filter],
            Some(0),
            plain(|| Box::new(NodeDeclaredFeatures)),
        ),
        builder(
            GangScheduling::NAME,
            "Kubernetes' own gangs",
            &[PreEnqueue, Permit],
            None,
            plain(|| Box::new(GangScheduling)),
        ),
    ]
}

/// What plugins of this folder do on the way to a bind.
pub fn binding() -> Vec<Arc<dyn BindingPlugin>> {
    vec![Arc::new(volume_binding::bind::VolumeBinder), Arc::new(dynamic_resources::ClaimWriter)]
}

/// Makes a plugin from its `args`.
type Make = fn(&Value) -> Built;

/// A weight in a configuration. The upper limit keeps sums of scores exact.
pub const WEIGHT: krafla_framework::ArgumentKind = krafla_framework::ArgumentKind::Integer { min: 0, max: 1_000_000 };

#[cfg(test)]
mod extender_tests;
#[cfg(test)]
mod hints_tests;
#[cfg(test)]
mod profile_tests;
