//! The plugins that kube-scheduler and scheduler-plugins have: the default profile in its order, and what else a file
//! may name although a build lacks it.

use crate::conf::arguments::Value;
use crate::registry::ArgumentProblem;
use crate::scheduling::point::ExtensionPoint::{
    self, Bind, Filter, Permit, PostBind, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve,
    Score,
};

use super::args;

/// Checks a plugin's `args` where this build has nobody else to do it.
pub(super) type Check = fn(&Value) -> Result<(), Vec<ArgumentProblem>>;

/// A plugin of kube-scheduler or of scheduler-plugins.
pub(super) struct Upstream {
    pub(super) name: &'static str,
    pub(super) points: &'static [ExtensionPoint],
    /// Its weight in the default profile, 0 if it does not score; `None` if it is not part of it.
    pub(super) default_weight: Option<i64>,
    pub(super) check: Option<Check>,
}

const FILTERS: &[ExtensionPoint] = &[PreFilter, Filter];
const BOTH: &[ExtensionPoint] = &[PreFilter, Filter, PreScore, Score];

const fn standard(name: &'static str, points: &'static [ExtensionPoint], weight: i64) -> Upstream {
    Upstream { name, points, default_weight: Some(weight), check: None }
}

const fn optional(name: &'static str, points: &'static [ExtensionPoint]) -> Upstream {
    Upstream { name, points, default_weight: None, check: None }
}

/// Those of Kubernetes 1.36, in the order of the default profile with the feature gates at their defaults; then those of
/// alpha gates, then those of scheduler-plugins.
pub(super) const PLUGINS: &[Upstream] = &[
    standard("SchedulingGates", &[PreEnqueue], 0),
    standard("PrioritySort", &[QueueSort], 0),
    standard("NodeUnschedulable", &[Filter], 0),
    standard("NodeName", &[Filter], 0),
    standard("TaintToleration", &[Filter, PreScore, Score], 3),
    standard("NodeAffinity", BOTH, 2),
    standard("NodePorts", FILTERS, 0),
    standard("NodeResourcesFit", BOTH, 1),
    standard("VolumeRestrictions", FILTERS, 0),
    standard("NodeVolumeLimits", FILTERS, 0),
    Upstream { check: Some(args::check_volume_binding), ..standard("VolumeBinding", VOLUME_BINDING, 0) },
    standard("VolumeZone", FILTERS, 0),
    standard("PodTopologySpread", BOTH, 2),
    standard("InterPodAffinity", BOTH, 2),
    // Before DefaultPreemption: a claim that nobody uses is freed before anyone is evicted.
    Upstream { check: Some(args::check_dynamic_resources), ..standard("DynamicResources", DYNAMIC_RESOURCES, 2) },
    Upstream {
        check: Some(args::check_default_preemption),
        ..standard("DefaultPreemption", &[PreEnqueue, PostFilter], 0)
    },
    standard("NodeResourcesBalancedAllocation", &[PreScore, Score], 1),
    standard("ImageLocality", &[Score], 1),
    standard("DefaultBinder", &[Bind], 0),
    standard("NodeDeclaredFeatures", FILTERS, 0),
    optional("GangScheduling", &[PreEnqueue, Permit]),
    optional("TopologyPlacementGenerator", &[]),
    optional("PodGroupPodsCount", &[]),
    Upstream { check: Some(args::check_coscheduling), ..optional("Coscheduling", COSCHEDULING) },
    optional("CapacityScheduling", &[PreFilter, PostFilter, Reserve]),
    optional("LoadVariationRiskBalancing", &[PreScore, Score]),
    optional("LowRiskOverCommitment", &[PreScore, Score]),
    optional("NetworkOverhead", &[PreFilter, Filter, Score]),
    optional("NodeMetadata", &[Score]),
    optional("NodeResourcesAllocatable", &[Score]),
    optional("NodeResourceTopologyMatch", &[PreFilter, Filter, Score, Reserve, PostBind]),
    optional("Peaks", &[Score]),
    optional("PodState", &[Score]),
    optional("PreemptionToleration", &[PostFilter]),
    optional("QOSSort", &[QueueSort]),
    optional("SySched", &[Score]),
    optional("TargetLoadPacking", &[Score]),
    optional("TopologicalSort", &[QueueSort]),
];

/// Scores that older versions had; a build may have them under these names.
pub(super) const LEGACY: &[Upstream] = &[
    optional("NodeResourcesLeastAllocated", &[Score]),
    optional("NodeResourcesMostAllocated", &[Score]),
    optional("RequestedToCapacityRatio", &[Score]),
];

/// It scores behind the gate StorageCapacityScoring, which is on since Kubernetes 1.37.
const VOLUME_BINDING: &[ExtensionPoint] = &[PreFilter, Filter, PreScore, Score, Reserve, PreBind];
const DYNAMIC_RESOURCES: &[ExtensionPoint] = &[PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind];
const COSCHEDULING: &[ExtensionPoint] = &[QueueSort, PreFilter, PostFilter, Reserve, Permit];

/// Plugins that older versions had, and what took their place.
pub(super) const REMOVED: &[(&str, &str)] = &[
    ("AzureDiskLimits", "write `NodeVolumeLimits`"),
    ("CinderLimits", "write `NodeVolumeLimits`"),
    ("EBSLimits", "write `NodeVolumeLimits`"),
    ("GCEPDLimits", "write `NodeVolumeLimits`"),
    ("NodeLabel", "write `NodeAffinity` with `addedAffinity`"),
    ("NodePreferAvoidPods", "use a taint with the effect PreferNoSchedule"),
    ("SelectorSpread", "write `PodTopologySpread`"),
    ("ServiceAffinity", "write `InterPodAffinity`"),
];

/// The plugin of that name.
pub(super) fn plugin(name: &str) -> Option<&'static Upstream> {
    PLUGINS.iter().chain(LEGACY).find(|plugin| plugin.name == name)
}
