//! `nodeorder`: Kubernetes' scores, each with its weight. The formulas are in [`crate::node`].

use krafla_framework::session_plugin::SessionPlugin;
use krafla_framework::{ArgumentInfo, PluginEntry, PluginInfo, Point};
use krafla_framework::{NodePlugin, ProfileEntry};

use crate::node::{
    ImageLocality, InterPodAffinity, NodeAffinity, NodeResourcesBalancedAllocation, NodeResourcesFit,
    PodTopologySpread, Strategy, TaintToleration, WEIGHT,
};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "nodeorder",
    about: "Kubernetes' scores: which of the fit nodes is best",
    arguments: &[
        ArgumentInfo::new("nodeaffinity.weight", WEIGHT, "2", "preferred node affinity"),
        ArgumentInfo::new("podaffinity.weight", WEIGHT, "2", "preferred affinity between pods"),
        ArgumentInfo::new("leastrequested.weight", WEIGHT, "1", "emptier nodes"),
        ArgumentInfo::new("mostrequested.weight", WEIGHT, "0", "fuller nodes"),
        ArgumentInfo::new("balancedresource.weight", WEIGHT, "1", "nodes whose resources are used evenly"),
        ArgumentInfo::new("tainttoleration.weight", WEIGHT, "3", "nodes without untolerated soft taints"),
        ArgumentInfo::new("imagelocality.weight", WEIGHT, "1", "nodes that have the image"),
        ArgumentInfo::new("podtopologyspread.weight", WEIGHT, "2", "soft spread over domains"),
    ],
    points: &[Point::NodeOrder],
};

/// Makes one of the scores.
type Make = fn() -> Box<dyn NodePlugin>;

struct NodeOrder {
    weights: [(i64, Make); 8],
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let weight = |key, default| entry.arguments.integer(key, default);
    Box::new(NodeOrder {
        weights: [
            (weight("imagelocality.weight", 1), || Box::new(ImageLocality)),
            (weight("leastrequested.weight", 1), || {
                Box::new(NodeResourcesFit::new(Strategy::LeastAllocated, &[("cpu", 50), ("memory", 50)]))
            }),
            (weight("mostrequested.weight", 0), || {
                Box::new(NodeResourcesFit::new(Strategy::MostAllocated, &[("cpu", 1), ("memory", 1)]))
            }),
            (weight("balancedresource.weight", 1), || {
                Box::new(NodeResourcesBalancedAllocation::new(&["cpu", "memory", "nvidia.com/gpu"]))
            }),
            // Volcano hands no arguments to it, so what existing pods require of new ones scores nothing.
            (weight("podaffinity.weight", 2), || Box::new(InterPodAffinity::in_a_session(0))),
            (weight("podtopologyspread.weight", 2), || Box::new(PodTopologySpread::in_a_session())),
            (weight("nodeaffinity.weight", 2), || Box::new(NodeAffinity::default())),
            (weight("tainttoleration.weight", 3), || Box::new(TaintToleration)),
        ],
    })
}

impl SessionPlugin for NodeOrder {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    #[allow(clippy::cast_precision_loss, reason = "weights of at most a million")]
    fn node_plugins(&self) -> Vec<ProfileEntry> {
        let wanted = self.weights.iter().filter(|(weight, _)| *weight > 0);
        wanted.map(|(weight, make)| ProfileEntry::score(make(), *weight as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::labels::{NodeSelectorTerm, Requirement, Test};
    use krafla_model::taints::{Effect, Taint};
    use krafla_testkit::Scene;

    use crate::testing::{run, scores};

    /// `n1` is half full, short of CPU rather than memory; it has a soft taint. `n2` is larger, empty, has an SSD and
    /// the image.
    fn scene() -> Scene {
        let taint = Taint { key: "old".into(), value: "".into(), effect: Effect::PreferNoSchedule };
        let ssd = Requirement { key: "disk".into(), test: Test::In(vec!["ssd".into()]) };
        Scene::new()
            .node_with("n1", "4c8Gi", |node| node.taints.push(taint))
            .node_with("n2", "8c16Gi", |node| {
                node.labels.set("disk".into(), "ssd".into());
                node.images.push(("app:1.0".into(), 1000 << 20));
            })
            .job("r", |job| job.running(1, "1c4Gi", "n1"))
            .job("p", |job| {
                job.prefers(10, NodeSelectorTerm { labels: vec![ssd], name: Vec::new() })
                    .shape(|shape| shape.images.push("app:1.0".into()))
                    .pending(1, "1c1Gi")
            })
    }

    const WEIGHTS: [&str; 6] =
        ["nodeaffinity", "leastrequested", "mostrequested", "balancedresource", "tainttoleration", "imagelocality"];

    fn only(component: &str, weight: u32) -> String {
        WEIGHTS.into_iter().fold("nodeorder".to_owned(), |conf, name| {
            format!("{conf} {name}.weight={}", if name == component { weight } else { 0 })
        })
    }

    // A-063, A-064.
    #[test]
    fn each_component_alone_prefers_its_node_and_weights_scale() {
        for (component, want) in [
            // (4 - 2) / 4 and (8 - 5) / 8, against (8 - 1) / 8 and (16 - 1) / 16.
            ("leastrequested", [43.0, 90.0]),
            ("mostrequested", [56.0, 9.0]),
            // The pod brings n1 nearer to even use, and n2 away from it.
            ("balancedresource", [78.0, 73.0]),
            ("nodeaffinity", [0.0, 100.0]),
            ("tainttoleration", [0.0, 100.0]),
            // On one node of two: (500 - 23) / (1000 - 23).
            ("imagelocality", [0.0, 48.0]),
            ("none of them", [0.0, 0.0]),
        ] {
            assert_eq!(scores(&scene(), &[&only(component, 1)], "p-0"), want, "{component}");
            assert_eq!(scores(&scene(), &[&only(component, 3)], "p-0"), want.map(|score| score * 3.0), "{component}");
            let best = if want[0] > want[1] || want == [0.0, 0.0] { "p-0 -> n1" } else { "p-0 -> n2" };
            assert_eq!(run(&scene(), "allocate", &[&only(component, 1)]).binds, [best], "{component}");
        }
    }

    // A-063.
    #[test]
    fn the_default_is_the_weighted_sum() {
        // 2 affinity + 1 least + 0 most + 1 balanced + 3 taint + 1 image.
        assert_eq!(scores(&scene(), &["nodeorder"], "p-0"), [43.0 + 78.0, 200.0 + 90.0 + 73.0 + 300.0 + 48.0]);
        assert_eq!(scores(&scene(), &["nodeorder enableNodeOrder=false"], "p-0"), [0.0, 0.0]);
    }

    #[test]
    fn a_pod_that_leaves_the_balance_as_it_is_scores_75() {
        let scene = Scene::new()
            .node("n", "4c8Gi")
            .job("r", |job| job.running(1, "1c2Gi", "n"))
            .job("p", |job| job.pending(1, "1c2Gi").pending(1, "").pending(1, "1c2Gi"));
        let balanced = only("balancedresource", 1);
        assert_eq!(scores(&scene, &[&balanced], "p-0"), [75.0]);
        assert_eq!(scores(&scene, &[&balanced], "p-1"), [0.0], "a pod that asks for nothing is not scored");
    }
}
