//! `binpack`: the fullest node that still fits is best.
//!
//! Score of a node: the weighted mean over the requested resources of (used + asked) / allocatable, times 100 times
//! `binpack.weight`. A node that a listed resource would overfill scores 0. A resource that the node lacks adds nothing,
//! but its weight still divides.

use krafla_framework::conf::catalogue::ArgumentKind::{Integer, Text};
use krafla_framework::session_plugin::SessionPlugin;
use krafla_framework::{
    ArgumentInfo, CycleState, NodeColumns, NodePlugin, PluginEntry, PluginInfo, Point, ProfileEntry, Scope, Value,
};
use krafla_model::resources::ratio;
use krafla_model::{ClusterState, Name, NodeId, TaskId};
use smallvec::SmallVec;

use crate::listed::{Listed, columns, listed};
use crate::node::WEIGHT;

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "binpack",
    about: "prefer the fullest node that still fits",
    arguments: &[
        ArgumentInfo::new("binpack.weight", WEIGHT, "1", "weight of the whole score; 0 switches it off"),
        ArgumentInfo::new("binpack.cpu", PART, "1", "weight of CPU within it; below 0 counts as 1"),
        ArgumentInfo::new("binpack.memory", PART, "1", "weight of memory within it; below 0 counts as 1"),
        ArgumentInfo::new("binpack.resources", Text, "", "further resources, with commas between"),
        ArgumentInfo::new(
            "binpack.resources.*",
            PART,
            "1",
            "weight of one of the further resources; below 0 counts as 1",
        ),
    ],
    points: &[Point::NodeOrder],
};

/// Volcano takes a negative weight of one resource for 1.
const PART: krafla_framework::ArgumentKind = Integer { min: -1_000_000, max: 1_000_000 };

struct Binpack {
    weight: i64,
    resources: Vec<(Name, i64)>,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let arguments = &entry.arguments;
    let part = |key: &str| Some(arguments.integer(key, 1)).filter(|weight| *weight >= 0).unwrap_or(1);
    let mut resources = vec![(Name::from("cpu"), part("binpack.cpu")), (Name::from("memory"), part("binpack.memory"))];
    for name in arguments.text("binpack.resources", "").split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let weight = match arguments.get(&format!("binpack.resources.{name}")) {
            Some(Value::Integer(weight)) if *weight >= 0 => *weight,
            _ => 1,
        };
        resources.push((name.into(), weight));
    }
    Box::new(Binpack { weight: arguments.integer("binpack.weight", 1), resources })
}

impl SessionPlugin for Binpack {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    #[allow(clippy::cast_precision_loss, reason = "a weight of at most a million")]
    fn node_plugins(&self) -> Vec<ProfileEntry> {
        if self.weight == 0 {
            return Vec::new();
        }
        let score = Fullness { resources: self.resources.clone() };
        vec![ProfileEntry::score(Box::new(score), self.weight as f64)]
    }
}

/// The score before `binpack.weight`, 0 to 100.
struct Fullness {
    resources: Vec<(Name, i64)>,
}

impl Fullness {
    /// The resources that a pod asks for.
    fn listed(&self, cluster: &ClusterState, task: TaskId) -> SmallVec<[Listed; 4]> {
        listed(&self.resources, cluster, &cluster.shape_of(task).request, |_, asked| asked != 0)
    }
}

impl NodePlugin for Fullness {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let node = cluster.node(node);
        let listed = self.listed(cluster, task);
        fullness(listed.iter().map(|one| (one, node.allocatable.get(one.id), node.books().used.get(one.id))))
    }

    fn score_nodes(
        &self,
        cluster: &ClusterState,
        task: TaskId,
        nodes: &NodeColumns,
        places: &[u32],
        _: &CycleState,
        scores: &mut Vec<f64>,
    ) {
        let listed = self.listed(cluster, task);
        let columns = columns(&listed, nodes);
        scores.extend(places.iter().map(|&place| {
            let at = place as usize;
            fullness(columns.iter().map(|(one, column)| (*one, column.allocatable[at], column.used[at])))
        }));
    }
}

/// The score from each resource with its capacity and what is used of it.
#[allow(clippy::cast_precision_loss, reason = "weights of at most a million")]
fn fullness<'l>(resources: impl Iterator<Item = (&'l Listed, i64, i64)>) -> f64 {
    let (mut sum, mut weights) = (0.0, 0);
    for (one, allocatable, used) in resources {
        weights += one.weight;
        if allocatable == 0 || one.weight == 0 {
            continue;
        }
        if used + one.asked > allocatable {
            return 0.0;
        }
        sum += ratio(used + one.asked, allocatable).into_inner() * one.weight as f64;
    }
    if weights == 0 { 0.0 } else { sum / weights as f64 * 100.0 }
}

#[cfg(test)]
mod tests {
    use krafla_testkit::Scene;

    use crate::testing::{compiles, scores};

    fn scene() -> Scene {
        Scene::new()
            .node("n1", "2c4Gi")
            .node("n2", "4c16Gi4g")
            .node("n3", "2c4Gi,example.com/foo=16")
            .job("r1", |job| job.running(1, "1c1Gi", "n1"))
            .job("r3", |job| job.running(1, "1500m", "n3"))
            .job("p", |job| {
                job.pending(1, "1c1Gi").pending(1, "1500m").pending(1, "2c10Gi2g").pending(1, "3c4Gi,example.com/foo=3")
            })
            .job("q", |job| job.pending(1, "500m,example.com/foo=8"))
    }

    const WEIGHTY: &str = "binpack binpack.weight=10 binpack.cpu=2 binpack.memory=3 \
        binpack.resources=nvidia.com/gpu,example.com/foo binpack.resources.nvidia.com/gpu=7 \
        binpack.resources.example.com/foo=8";
    const PLAIN: &str = "binpack binpack.resources=nvidia.com/gpu binpack.resources.nvidia.com/gpu=23";

    #[test]
    fn the_fullest_node_that_still_fits_scores_highest() {
        for (plugin, pod, want) in [
            (WEIGHTY, "p-0", [700.0, 137.5, 0.0]),
            (WEIGHTY, "p-1", [0.0, 375.0, 0.0]),
            (WEIGHTY, "p-2", [0.0, 531.25, 0.0]),
            (WEIGHTY, "p-3", [0.0, 2.25 / 13.0 * 1000.0, 0.0]),
            (PLAIN, "p-0", [75.0, 15.625, 0.0]),
            (PLAIN, "p-1", [0.0, 37.5, 0.0]),
            (PLAIN, "p-2", [0.0, 50.5, 0.0]),
            (PLAIN, "p-3", [0.0, 50.0, 0.0]),
            ("binpack binpack.weight=0", "p-0", [0.0, 0.0, 0.0]),
            ("binpack binpack.cpu=0 binpack.memory=0", "p-0", [0.0, 0.0, 0.0]),
        ] {
            for (score, want) in scores(&scene(), &[plugin], pod).into_iter().zip(want) {
                assert!((score - want).abs() < 1e-9, "{plugin}, {pod}: {score} instead of {want}");
            }
        }
    }

    #[test]
    fn a_negative_part_counts_as_one() {
        let foo = |weight: &str| {
            let list = "binpack.resources=example.com/foo binpack.resources.example.com/foo";
            scores(&scene(), &[&format!("binpack binpack.cpu=5 {list}={weight}")], "q-0")
        };
        assert_eq!(foo("-3"), foo("1"));
        assert_ne!(foo("-3"), foo("2"));
        let cpu = |weight: i64| scores(&scene(), &[&format!("binpack binpack.cpu={weight} binpack.memory=2")], "p-0");
        assert_eq!(cpu(-3), cpu(1));
    }

    #[test]
    fn a_weight_in_quotes_is_refused() {
        // Volcano takes a text for 1, without a word.
        assert!(!compiles("binpack binpack.weight=\"10\""));
        assert!(compiles("binpack binpack.weight=10"));
    }
}
