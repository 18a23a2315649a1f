//! The workloads: sizes and templates of Kubernetes' scheduler_perf, and gangs.

use serde_json::{Value, json};

/// A workload. Sizes are upstream's.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) nodes: usize,
    /// Pods that are there before anything is counted.
    pub(crate) init: usize,
    /// Pods that are counted.
    pub(crate) measured: usize,
    pub(crate) kind: Kind,
}

/// What its pods are like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Basic,
    NodeAffinity,
    TopologySpreading,
    PreferredTopologySpreading,
    PodAffinity,
    PodAntiAffinity,
    PreferredPodAffinity,
    PreferredPodAntiAffinity,
    Unschedulable,
    Preemption,
    /// So many to a gang. Schedulers without gangs are not asked.
    Gangs(usize),
}

const fn row(name: &'static str, nodes: usize, init: usize, measured: usize, kind: Kind) -> Row {
    Row { name, nodes, init, measured, kind }
}

pub(crate) const ROWS: [Row; 12] = [
    row("SchedulingBasic", 5_000, 1_000, 10_000, Kind::Basic),
    row("SchedulingNodeAffinity", 5_000, 5_000, 10_000, Kind::NodeAffinity),
    row("TopologySpreading", 5_000, 5_000, 5_000, Kind::TopologySpreading),
    row("PreferredTopologySpreading", 5_000, 5_000, 5_000, Kind::PreferredTopologySpreading),
    row("SchedulingPodAffinity", 5_000, 5_000, 5_000, Kind::PodAffinity),
    row("SchedulingPodAntiAffinity", 5_000, 1_000, 2_000, Kind::PodAntiAffinity),
    row("SchedulingPreferredPodAffinity", 5_000, 5_000, 5_000, Kind::PreferredPodAffinity),
    row("SchedulingPreferredPodAntiAffinity", 5_000, 5_000, 5_000, Kind::PreferredPodAntiAffinity),
    row("Unschedulable", 5_000, 100, 10_000, Kind::Unschedulable),
    row("PreemptionBasic", 1_000, 4_000, 1_000, Kind::Preemption),
    row("Gangs-1000Nodes", 1_000, 0, 10_000, Kind::Gangs(500)),
    row("Gangs-5000Nodes", 5_000, 0, 10_000, Kind::Gangs(500)),
];

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";

impl Row {
    /// A part of it, in percent; at least one of everything that it has.
    pub(crate) fn scaled(&self, percent: usize) -> Row {
        let part = |n: usize| if n == 0 { 0 } else { (n * percent / 100).max(1) };
        let kind = match self.kind {
            Kind::Gangs(size) => Kind::Gangs(part(size)),
            kind => kind,
        };
        Row { nodes: part(self.nodes), init: part(self.init), measured: part(self.measured), kind, ..*self }
    }

    /// Whether it needs a scheduler that knows gangs.
    pub(crate) fn has_gangs(&self) -> bool {
        matches!(self.kind, Kind::Gangs(_))
    }

    /// Whether those that are there before are scheduled. Pods that fit nowhere are not.
    pub(crate) fn init_is_scheduled(&self) -> bool {
        self.kind != Kind::Unschedulable
    }

    /// A node: 4 CPU, 32 GiB, 110 pods, of one of three zones.
    pub(crate) fn node(&self, i: usize) -> Value {
        let amounts = match self.kind {
            Kind::Gangs(_) => json!({ "cpu": "32", "memory": "128Gi", "pods": "110" }),
            _ => json!({ "cpu": "4", "memory": "32Gi", "pods": "110" }),
        };
        let zone = match self.kind {
            // Affine pods are to have room: upstream has one zone there.
            Kind::PodAffinity | Kind::PreferredPodAffinity | Kind::NodeAffinity => "zone1".to_owned(),
            _ => format!("zone{}", i % 3),
        };
        let name = format!("node-{i:05}");
        json!({
            "metadata": { "name": name, "labels": { HOSTNAME: name, ZONE: zone } },
            "status": {
                "capacity": amounts, "allocatable": amounts, "conditions": [{ "type": "Ready", "status": "True" }],
            },
        })
    }

    /// A pod that is there before.
    pub(crate) fn init_pod(&self, i: usize) -> Value {
        let mut pod = self.pod(&format!("init-{i:05}"), i);
        match self.kind {
            Kind::Unschedulable => pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("200"),
            Kind::Preemption => {
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("900m");
                pod["spec"]["terminationGracePeriodSeconds"] = json!(0);
            }
            // As upstream: plain pods, and others only where it says so.
            Kind::TopologySpreading | Kind::PreferredTopologySpreading => {
                pod["spec"].as_object_mut().map(|spec| spec.remove("topologySpreadConstraints"));
            }
            _ => {}
        }
        pod
    }

    /// A pod that is counted.
    pub(crate) fn measured_pod(&self, i: usize) -> Value {
        let mut pod = self.pod(&format!("pod-{i:05}"), i);
        if self.kind == Kind::Preemption {
            pod["spec"]["priorityClassName"] = json!("high");
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("3");
        }
        pod
    }

    fn pod(&self, name: &str, i: usize) -> Value {
        let mut pod = json!({
            "metadata": { "name": name, "labels": { "app": "perf", "color": "blue" } },
            "spec": {
                "schedulerName": if self.has_gangs() { "volcano" } else { "default-scheduler" },
                "containers": [{
                    "name": "pause", "image": "registry.example.com/pause:1",
                    "resources": { "requests": { "cpu": "100m", "memory": "500Mi" } },
                }],
            },
        });
        let like = json!({ "matchLabels": { "color": "blue" } });
        let term = |key: &str| json!({ "labelSelector": like, "topologyKey": key });
        let preferred = |key: &str| json!([{ "weight": 1, "podAffinityTerm": term(key) }]);
        let spread = |when: &str| json!([{ "maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": like }]);
        let spec = &mut pod["spec"];
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        match self.kind {
            Kind::Basic | Kind::Unschedulable | Kind::Preemption => {}
            Kind::NodeAffinity => {
                let zones = json!([{ "key": ZONE, "operator": "In", "values": ["zone1", "zone2"] }]);
                spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] =
                    json!([{ "matchExpressions": zones }]);
            }
            Kind::TopologySpreading => spec["topologySpreadConstraints"] = spread("DoNotSchedule"),
            Kind::PreferredTopologySpreading => spec["topologySpreadConstraints"] = spread("ScheduleAnyway"),
            Kind::PodAffinity => spec["affinity"]["podAffinity"][REQUIRED] = json!([term(ZONE)]),
            Kind::PodAntiAffinity => spec["affinity"]["podAntiAffinity"][REQUIRED] = json!([term(HOSTNAME)]),
            Kind::PreferredPodAffinity => spec["affinity"]["podAffinity"][PREFERRED] = preferred(HOSTNAME),
            Kind::PreferredPodAntiAffinity => spec["affinity"]["podAntiAffinity"][PREFERRED] = preferred(HOSTNAME),
            Kind::Gangs(size) => {
                spec["containers"][0]["resources"]["requests"] = json!({ "cpu": "1", "memory": "1Gi" });
                pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = json!(format!("gang-{}", i / size));
            }
        }
        pod
    }

    /// PodGroups: name and size.
    pub(crate) fn groups(&self) -> Vec<(String, usize)> {
        match self.kind {
            Kind::Gangs(size) => (0..self.measured.div_ceil(size))
                .map(|i| (format!("gang-{i}"), size.min(self.measured - i * size)))
                .collect(),
            _ => Vec::new(),
        }
    }
}
