//! The workloads of Kubernetes' scheduler_perf, and gangs: sizes, and the manifests of what is in them.
//!
//! One table for the clusters in memory and for those of a real API server. Sizes and thresholds are upstream's.

mod objects;
mod pods;

use serde_json::{Value, json};

/// A workload.
#[derive(Clone, Copy)]
pub struct Workload {
    /// Upstream's name.
    pub name: &'static str,
    /// Nodes.
    pub nodes: usize,
    /// Pods that are there before anything is counted.
    pub init: usize,
    /// Pods that are counted.
    pub measured: usize,
    /// Pods a second that upstream asks of kube-scheduler beside its API server; 0 where it asks for none.
    pub threshold: u32,
    /// What is in it.
    pub kind: Kind,
}

/// What the pods of a workload are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain pods.
    Basic,
    /// All for one node, by its name.
    Daemonset,
    /// Pods of high priority, on nodes full of others.
    Preemption,
    /// Plain pods, beside some that fit nowhere.
    Unschedulable,
    /// Plain pods for one node, beside some that are held back by a gate.
    WhileGated,
    /// The same, with an affinity between pods.
    GatedAffinity,
    /// Plain pods, beside some that are deleted and held by a finalizer.
    Deleting,
    /// Each asks for a device of which a node has one.
    ExtendedResource,
    /// Not on a node with its kind.
    PodAntiAffinity,
    /// Plain pods that others do not want on their node.
    MatchingAntiAffinity,
    /// In the zone of its kind.
    PodAffinity,
    /// On a node of its kind, if possible.
    PreferredPodAffinity,
    /// Not on a node of its kind, if possible.
    PreferredPodAntiAffinity,
    /// In one of two zones.
    NodeAffinity,
    /// Plain pods, beside some of five other kinds.
    Mixed,
    /// A term between pods that selects namespaces by label.
    AcrossNamespaces {
        /// Whether it wants the others away.
        anti: bool,
        /// Whether it must hold.
        required: bool,
    },
    /// Spread over zones, strictly.
    TopologySpreading,
    /// Spread over zones, if possible.
    PreferredTopologySpreading,
    /// Pods of a service, spread by default.
    DefaultTopologySpreading,
    /// Spread over nodes, of which tainted ones do not count.
    NodeInclusion,
    /// With a secret as a volume.
    Secrets,
    /// With a disk of its own, of a volume plugin that is part of Kubernetes.
    InTreeVolumes,
    /// With a volume of its own, of a CSI driver with a limit for each node.
    CsiVolumes,
    /// With a claim of a device of its own.
    DeviceClaims,
    /// Kubernetes' own gangs of so many.
    NativeGangs(usize),
    /// Each takes the same port of its host.
    HostPorts,
    /// Volcano's gangs of so many. Schedulers without gangs are not asked.
    Gangs(usize),
}

const fn workload(name: &'static str, [nodes, init, measured]: [usize; 3], threshold: u32, kind: Kind) -> Workload {
    Workload { name, nodes, init, measured, threshold, kind }
}

/// All of them.
pub const WORKLOADS: [Workload; 35] = [
    workload("SchedulingBasic", [5_000, 1_000, 10_000], 680, Kind::Basic),
    workload("SchedulingBasic-50000Pods", [5_000, 5_000, 50_000], 810, Kind::Basic),
    workload("SchedulingDaemonset", [15_001, 0, 30_000], 1_100, Kind::Daemonset),
    workload("PreemptionBasic", [1_000, 4_000, 1_000], 0, Kind::Preemption),
    workload("Preemption-5000Nodes", [5_000, 20_000, 5_000], 0, Kind::Preemption),
    workload("Unschedulable", [5_000, 100, 10_000], 590, Kind::Unschedulable),
    workload("Unschedulable-20000Init", [5_000, 20_000, 10_000], 600, Kind::Unschedulable),
    workload("SchedulingWhileGated", [1, 10_000, 20_000], 910, Kind::WhileGated),
    workload("SchedulingDeletedPodsWithFinalizers", [5_000, 5_000, 5_000], 830, Kind::Deleting),
    workload("SchedulingWithExtendedResource", [5_000, 0, 5_000], 180, Kind::ExtendedResource),
    workload("SchedulingPodAntiAffinity", [5_000, 1_000, 2_000], 180, Kind::PodAntiAffinity),
    workload("SchedulingPodMatchingAntiAffinity", [5_000, 1_000, 5_000], 600, Kind::MatchingAntiAffinity),
    workload("SchedulingPodAffinity", [5_000, 5_000, 5_000], 70, Kind::PodAffinity),
    workload("SchedulingPreferredPodAffinity", [5_000, 5_000, 5_000], 160, Kind::PreferredPodAffinity),
    workload("SchedulingPreferredPodAntiAffinity", [5_000, 5_000, 5_000], 190, Kind::PreferredPodAntiAffinity),
    workload("SchedulingNodeAffinity", [5_000, 5_000, 10_000], 540, Kind::NodeAffinity),
    workload("MixedSchedulingBasePod", [5_000, 10_000, 5_000], 540, Kind::Mixed),
    workload(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        [6_000, 4_000, 2_000],
        140,
        Kind::AcrossNamespaces { anti: true, required: true },
    ),
    workload(
        "SchedulingPreferredAntiAffinityWithNSSelector",
        [5_000, 4_000, 2_000],
        180,
        Kind::AcrossNamespaces { anti: true, required: false },
    ),
    workload(
        "SchedulingRequiredPodAffinityWithNSSelector",
        [5_000, 5_000, 2_000],
        180,
        Kind::AcrossNamespaces { anti: false, required: true },
    ),
    workload(
        "SchedulingPreferredAffinityWithNSSelector",
        [5_000, 5_000, 5_000],
        190,
        Kind::AcrossNamespaces { anti: false, required: false },
    ),
    workload("SchedulingGatedPodsWithPodAffinity", [1, 10_000, 20_000], 750, Kind::GatedAffinity),
    workload("TopologySpreading", [5_000, 5_000, 5_000], 460, Kind::TopologySpreading),
    workload("PreferredTopologySpreading", [5_000, 5_000, 5_000], 340, Kind::PreferredTopologySpreading),
    workload("DefaultTopologySpreading", [5_000, 0, 10_000], 160, Kind::DefaultTopologySpreading),
    workload("SchedulingWithNodeInclusionPolicy", [5_000, 0, 4_000], 270, Kind::NodeInclusion),
    workload("SchedulingSecrets", [5_000, 1_000, 10_000], 790, Kind::Secrets),
    workload("SchedulingInTreePVs", [5_000, 1_000, 2_000], 290, Kind::InTreeVolumes),
    workload("SchedulingCSIPVs", [5_000, 5_000, 5_000], 100, Kind::CsiVolumes),
    workload("SchedulingWithResourceClaimTemplate", [500, 2_500, 2_500], 40, Kind::DeviceClaims),
    workload("gangscheduling-3000Gangs", [5_000, 0, 9_000], 0, Kind::NativeGangs(3)),
    workload("gangscheduling-9GangsOf1000", [5_000, 0, 9_000], 0, Kind::NativeGangs(1_000)),
    workload("HostPortConflict", [20_000, 0, 20_000], 0, Kind::HostPorts),
    workload("Gangs-1000Nodes", [1_000, 0, 10_000], 0, Kind::Gangs(500)),
    workload("Gangs-5000Nodes", [5_000, 0, 10_000], 0, Kind::Gangs(500)),
];

/// Prefix of the names of pods that are there before.
pub const INIT: &str = "init-";
/// Prefix of the names of pods that are counted.
pub const MEASURED: &str = "pod-";

impl Workload {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        WORKLOADS.into_iter().find(|workload| workload.name == name)
    }

    /// A part of it, in percent; at least one of everything that it has.
    #[must_use]
    pub fn scaled(self, percent: usize) -> Self {
        let part = |n: usize| if n == 0 { 0 } else { (n * percent / 100).max(1) };
        let kind = match self.kind {
            Kind::Gangs(size) => Kind::Gangs(part(size)),
            Kind::NativeGangs(size @ 100..) => Kind::NativeGangs(part(size)),
            kind => kind,
        };
        Self { nodes: part(self.nodes), init: part(self.init), measured: part(self.measured), kind, ..self }
    }

    /// Whether it needs a scheduler that knows Volcano's gangs.
    #[must_use]
    pub fn has_gangs(&self) -> bool {
        matches!(self.kind, Kind::Gangs(_))
    }

    /// Whether a plain API server has what it takes: no alpha API, no controller, and no more nodes than it bears here.
    #[must_use]
    pub fn suits_a_server(&self) -> bool {
        !matches!(
            self.kind,
            Kind::NativeGangs(_) | Kind::HostPorts | Kind::DeviceClaims | Kind::InTreeVolumes | Kind::CsiVolumes
        )
    }

    /// Whether those that are there before are scheduled.
    #[must_use]
    pub fn init_is_scheduled(&self) -> bool {
        !matches!(self.kind, Kind::Unschedulable | Kind::WhileGated | Kind::GatedAffinity)
    }

    /// The node of this number.
    #[must_use]
    pub fn node(&self, i: usize) -> Value {
        objects::node(self, i)
    }

    /// What has to be there besides, before any pod.
    #[must_use]
    pub fn objects(&self) -> Vec<Value> {
        objects::objects(self)
    }

    /// What a pod of this name has to itself: volumes and claims.
    #[must_use]
    pub fn objects_of(&self, pod: &str) -> Vec<Value> {
        objects::objects_of(self, pod)
    }

    /// The pod of this number that is there before.
    #[must_use]
    pub fn init_pod(&self, i: usize) -> Value {
        pods::init(self, i)
    }

    /// The pod of this number that is counted.
    #[must_use]
    pub fn measured_pod(&self, i: usize) -> Value {
        pods::measured(self, i)
    }

    /// Gangs: name and size.
    #[must_use]
    pub fn groups(&self) -> Vec<(String, usize)> {
        let (Kind::Gangs(size) | Kind::NativeGangs(size)) = self.kind else { return Vec::new() };
        let gang = |i: usize| (format!("gang-{i}"), size.min(self.measured - i * size));
        (0..self.measured.div_ceil(size)).map(gang).collect()
    }

    /// Kubernetes' own PodGroup.
    #[must_use]
    pub fn native_group(name: &str, size: usize) -> Value {
        json!({
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
            "metadata": { "name": name, "namespace": "default", "uid": name },
            "spec": { "schedulingPolicy": { "gang": { "minCount": size } } },
        })
    }
}
