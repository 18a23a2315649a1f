//! `predicates`: Kubernetes' filters. Which of them are asked is configured; what they ask is in [`crate::node`].

use krafla_framework::conf::catalogue::ArgumentKind::{Any, Bool, Integer, Unread};
use krafla_framework::conf::kube::args::VolumeBindingArgs;
use krafla_framework::session_plugin::SessionPlugin;
use krafla_framework::{ArgumentInfo, PluginEntry, PluginInfo, Point};
use krafla_framework::{NodePlugin, ProfileEntry};

use crate::node::{
    DynamicResources, InterPodAffinity, NodeAffinity, NodeName, NodePorts, NodeUnschedulable, NodeVolumeLimits,
    PodTopologySpread, TaintToleration, VolumeBinding, VolumeRestrictions, VolumeZone, WEIGHT,
};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "predicates",
    about: "Kubernetes' filters: which nodes are fit for a pod",
    arguments: &[
        ArgumentInfo::new(NODE_AFFINITY, Bool, "true", "node selector and node affinity"),
        ArgumentInfo::new(NODE_PORTS, Bool, "true", "host ports"),
        ArgumentInfo::new(TAINTS, Bool, "true", "taints"),
        ArgumentInfo::new(POD_AFFINITY, Bool, "true", "affinity between pods"),
        ArgumentInfo::new(VOLUME_LIMITS, Bool, "true", "volumes that a node can attach"),
        ArgumentInfo::new(VOLUME_ZONE, Bool, "true", "zones of volumes"),
        ArgumentInfo::new(SPREAD, Bool, "true", "spread over domains"),
        ArgumentInfo::new(VOLUME_BINDING, Bool, "true", "volumes of claims, and claims that wait for a node"),
        ArgumentInfo::new("predicate.CacheEnable", Bool, "false", "accepted; equal pods are always asked for once"),
        ArgumentInfo::new(
            "predicate.DynamicResourceAllocationEnable",
            Unread,
            "",
            "the feature gate DynamicResourceAllocation decides, in Volcano too",
        ),
        ArgumentInfo::new("volumebinding.weight", WEIGHT, "1", "weight of the score of volumes"),
        ArgumentInfo::new(BIND_TIMEOUT, COUNT, "600", "longest wait for volumes, in seconds"),
        ArgumentInfo::new("volumebinding.shape", Any, "", "list of {utilization, score}"),
        ArgumentInfo::new(DEVICE_SEARCH, COUNT, "10", "longest search for devices on one node, in seconds"),
    ],
    points: &[Point::Predicate, Point::NodeOrder],
};

const DEVICE_SEARCH: &str = "dynamicresources.filterTimeoutSeconds";
const NODE_AFFINITY: &str = "predicate.NodeAffinityEnable";
const NODE_PORTS: &str = "predicate.NodePortsEnable";
const POD_AFFINITY: &str = "predicate.PodAffinityEnable";
const SPREAD: &str = "predicate.PodTopologySpreadEnable";
const TAINTS: &str = "predicate.TaintTolerationEnable";
const VOLUME_BINDING: &str = "predicate.VolumeBindingEnable";
const VOLUME_LIMITS: &str = "predicate.NodeVolumeLimitsEnable";
const VOLUME_ZONE: &str = "predicate.VolumeZoneEnable";
const BIND_TIMEOUT: &str = "volumebinding.bindTimeoutSeconds";
const COUNT: krafla_framework::ArgumentKind = Integer { min: 0, max: i64::MAX };

struct Predicates {
    node_affinity: bool,
    node_ports: bool,
    taints: bool,
    pod_affinity: bool,
    spread: bool,
    volume_limits: bool,
    volume_zone: bool,
    /// The longest search for devices on one node, in milliseconds.
    device_search_ms: u64,
    /// The longest wait for volumes, in seconds; `None` if claims are not looked at.
    volume_binding: Option<i64>,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let enabled = |key| entry.arguments.bool(key, true);
    Box::new(Predicates {
        node_affinity: enabled(NODE_AFFINITY),
        node_ports: enabled(NODE_PORTS),
        taints: enabled(TAINTS),
        pod_affinity: enabled(POD_AFFINITY),
        spread: enabled(SPREAD),
        volume_limits: enabled(VOLUME_LIMITS),
        volume_zone: enabled(VOLUME_ZONE),
        device_search_ms: u64::try_from(entry.arguments.integer(DEVICE_SEARCH, 10)).unwrap_or(0).saturating_mul(1_000),
        volume_binding: enabled(VOLUME_BINDING).then(|| entry.arguments.integer(BIND_TIMEOUT, 600)),
    })
}

impl SessionPlugin for Predicates {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    /// In Volcano's order: what no eviction changes is asked first, ports after it.
    fn node_plugins(&self) -> Vec<ProfileEntry> {
        let mut filters: Vec<Box<dyn NodePlugin>> = vec![Box::new(NodeUnschedulable), Box::new(NodeName)];
        if self.node_affinity {
            filters.push(Box::new(NodeAffinity::default()));
        }
        if self.taints {
            filters.push(Box::new(TaintToleration));
        }
        if self.node_ports {
            filters.push(Box::new(NodePorts));
        }
        if self.pod_affinity {
            filters.push(Box::new(InterPodAffinity::in_a_session(0)));
        }
        if self.volume_limits {
            filters.push(Box::new(NodeVolumeLimits));
        }
        if self.volume_zone {
            filters.push(Box::new(VolumeZone));
        }
        if self.spread {
            filters.push(Box::new(PodTopologySpread::in_a_session()));
        }
        if self.volume_binding.is_some() {
            filters.push(Box::new(VolumeRestrictions));
        }
        use krafla_framework::ExtensionPoint::{Filter, PreBind, PreFilter, Reserve, Score};
        let mut entries: Vec<ProfileEntry> = filters.into_iter().map(ProfileEntry::filter).collect();
        if let Some(seconds) = self.volume_binding {
            let points = [PreFilter, Filter, Reserve, PreBind].into();
            let args = VolumeBindingArgs { bind_timeout_seconds: seconds, shape: Vec::new() };
            entries.push(ProfileEntry::at(Box::new(VolumeBinding::new(args)), points, 0.0));
        }
        let points = [PreFilter, Filter, Score, Reserve, PreBind].into();
        let devices = DynamicResources::with_timeout_ms(self.device_search_ms);
        entries.push(ProfileEntry::at(Box::new(devices), points, 1.0));
        entries
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::NodeSpec;
    use krafla_model::pod::HostPort;
    use krafla_model::taints::{Effect, Taint};
    use krafla_testkit::{JobScene, Scene};

    use crate::testing::{objection, run};

    #[test]
    fn a_node_takes_as_many_pods_as_it_has_slots() {
        let scene = Scene::new().node("n", "8c8Gi2p").job("a", |job| job.pending(3, ""));
        let outcome = run(&scene, "allocate, backfill", &["gang", "predicates"]);
        assert_eq!(outcome.binds, ["a-0 -> n", "a-1 -> n"]);
        assert!(outcome.reasons["a"].1.contains("1 Too many pods"), "{:?}", outcome.reasons);
    }

    fn port() -> HostPort {
        HostPort { ip: "".into(), protocol: "TCP".into(), port: 80 }
    }

    /// A pod with a selector and a port, and a node with everything against it.
    fn hostile(mend: impl Fn(&mut NodeSpec), pod: impl Fn(JobScene) -> JobScene) -> Scene {
        let taint = Taint { key: "a".into(), value: "".into(), effect: Effect::NoSchedule };
        Scene::new()
            .node_with("n", "8c", |node| {
                node.unschedulable = true;
                node.taints.push(taint);
                mend(node);
            })
            .job("web", |job| job.shape(|shape| shape.host_ports.push(port())).running(1, "1c", "n"))
            .job("p", |job| {
                pod(job.selects("disk", "ssd").shape(|shape| shape.host_ports.push(port()))).pending(1, "1c")
            })
    }

    const CORDONED: (&str, bool) = ("node(s) were unschedulable", false);
    const SELECTOR: (&str, bool) = ("node(s) didn't match Pod's node affinity/selector", false);
    const TAINTED: (&str, bool) = ("node(s) had untolerated taint(s)", false);
    const PORTS: (&str, bool) = ("node(s) didn't have free ports for the requested pod ports", true);

    //
    #[test]
    fn objections_come_in_order_those_that_no_eviction_lifts_first() {
        type Mend = fn(&mut NodeSpec);
        let open: Mend = |node| node.unschedulable = false;
        let labelled: Mend = |node| {
            node.unschedulable = false;
            node.labels.set("disk".into(), "ssd".into());
        };
        let mended: Mend = |node| {
            node.unschedulable = false;
            node.labels.set("disk".into(), "ssd".into());
            node.taints.clear();
        };
        let as_it_is = |job: JobScene| job;
        for (mend, want) in [((|_| {}) as Mend, CORDONED), (open, SELECTOR), (labelled, TAINTED), (mended, PORTS)] {
            assert_eq!(objection(&hostile(mend, as_it_is), &["predicates"], "p-0", "n"), Some(want));
        }
        let no_port = |job: JobScene| job.shape(|shape| shape.host_ports.clear());
        assert_eq!(objection(&hostile(mended, no_port), &["predicates"], "p-0", "n"), None);
        let tolerant = |job: JobScene| job.tolerates("node.kubernetes.io/unschedulable").tolerates("a");
        assert_eq!(objection(&hostile(|_| {}, tolerant), &["predicates"], "p-0", "n"), Some(SELECTOR));
    }

    #[test]
    fn each_filter_can_be_switched_off_but_the_cordon() {
        let open = |mend: fn(&mut NodeSpec)| {
            let mend = move |node: &mut NodeSpec| {
                node.unschedulable = false;
                mend(node);
            };
            hostile(mend, |job| job)
        };
        let off = |names: &[&str]| {
            names.iter().fold("predicates".to_owned(), |conf, name| format!("{conf} predicate.{name}Enable=false"))
        };
        let at = |scene: &Scene, names: &[&str]| objection(scene, &[&off(names)], "p-0", "n");
        assert_eq!(at(&open(|_| {}), &["NodeAffinity"]), Some(TAINTED));
        assert_eq!(at(&open(|_| {}), &["NodeAffinity", "TaintToleration"]), Some(PORTS));
        assert_eq!(at(&open(|_| {}), &["NodeAffinity", "TaintToleration", "NodePorts"]), None);
        assert_eq!(at(&hostile(|_| {}, |job| job), &["NodeAffinity", "TaintToleration", "NodePorts"]), Some(CORDONED));
        assert_eq!(objection(&open(|_| {}), &["predicates enablePredicate=false"], "p-0", "n"), None);
    }

    //
    #[test]
    fn a_full_node_may_be_emptied_and_one_that_is_too_small_may_not() {
        let full = Scene::new()
            .node("n", "8c1p")
            .job("a", |job| job.running(1, "1c", "n"))
            .job("p", |job| job.pending(1, "1c"));
        assert_eq!(objection(&full, &["predicates"], "p-0", "n"), Some(("short", true)), "no slot");
        let busy =
            Scene::new().node("n", "2c").job("a", |job| job.running(1, "1c", "n")).job("p", |job| job.pending(1, "2c"));
        assert_eq!(objection(&busy, &["predicates"], "p-0", "n"), Some(("short", true)), "too little free");
        let small = Scene::new().node("n", "1c").job("p", |job| job.pending(1, "2c"));
        assert_eq!(objection(&small, &["predicates"], "p-0", "n"), Some(("short", false)), "too little at all");
    }
}
