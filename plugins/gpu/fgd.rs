//! `fgd`, in profiles `GpuFragmentation`: the node and the device where a pod breaks up the least of what is idle
//! (fragmentation gradient descent: Weng et al., ATC '23), with a little best fit.
//!
//! Score of a node: 0.97 times by how much [`UsualPods::lost_on`] falls, in devices, less 0.03 times the CPU left as a part
//! of 128 cores and the GPU left as a part of 8 devices. Without best fit the gradient is nearly flat on an empty cluster,
//! and small pods are strewn over all nodes. A share goes to the device where the score is highest.

use krafla_framework::conf::catalogue::ArgumentKind::Integer;
use krafla_framework::conf::plugin_args::read;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::session_plugin::SessionPlugin;
use krafla_framework::{
    ArgumentInfo, ArgumentKind, CycleState, NodePlugin, PluginEntry, PluginInfo, Point, ProfileEntry, Scope, Value,
};
use krafla_model::{ClusterState, NodeId, TaskId};

use super::best_fit::rest;
use super::fragmentation::UsualPods;
use super::{Ask, Left};
use crate::node::WEIGHT;

/// The name of the node-level plugin.
pub const NAME: &str = "GpuFragmentation";

const PERCENT: ArgumentKind = Integer { min: 0, max: 100 };
/// Part of best fit in the score, in percent.
const BEST_FIT_PERCENT: i64 = 3;

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "fgd",
    about: "place GPU pods where they fragment idle GPUs least",
    arguments: &[
        ArgumentInfo::new("fgd.weight", WEIGHT, "1", "weight of the score; 0 switches it off"),
        ArgumentInfo::new("fgd.bestFitPercent", PERCENT, "3", "part of best fit in it; the rest is fragmentation"),
    ],
    points: &[Point::NodeOrder],
};

struct Fgd {
    weight: i64,
    best_fit_percent: i64,
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let arguments = &entry.arguments;
    Box::new(Fgd {
        weight: arguments.integer("fgd.weight", 1),
        best_fit_percent: arguments.integer("fgd.bestFitPercent", BEST_FIT_PERCENT),
    })
}

impl SessionPlugin for Fgd {
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
        vec![ProfileEntry::score(Box::new(Gradient::new(self.best_fit_percent)), self.weight as f64)]
    }
}

/// See the module.
pub struct Gradient {
    best_fit: f64,
    usual: UsualPods,
    /// Pods, shapes and nodes when the usual pods were counted.
    counted: (usize, usize, usize),
}

impl Gradient {
    /// With this part of best fit, 0 to 100 percent.
    #[allow(clippy::cast_precision_loss, reason = "0 to 100")]
    pub fn new(best_fit_percent: i64) -> Self {
        Self { best_fit: best_fit_percent as f64 / 100.0, usual: UsualPods::default(), counted: (0, 0, 0) }
    }

    /// From its `args`: `bestFitPercent`.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["bestFitPercent"], |args| Self::new(args.integer("bestFitPercent", 0..=100, BEST_FIT_PERCENT)))
    }

    /// The best score, and the device that has it if one serves a share.
    fn best(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> (f64, Option<u8>) {
        let (left, ask) = (Left::of(cluster.node(node)), Ask::of(cluster.shape_of(task)));
        let lost = self.usual.lost_on(node, &left);
        let (cpu, gpu) = rest(&left, &ask);
        let gain = |device| (lost - self.usual.lost_on(node, &left.less(&ask, device))) / 1_000.0;
        let score = |device| (1.0 - self.best_fit) * gain(device) - self.best_fit * (cpu + gpu);
        if !ask.is_share() {
            return (score(None), None);
        }
        let mut best = (f64::NEG_INFINITY, None);
        for device in left.serving(ask.gpu_milli) {
            // Devices with as much left are alike; the first of them serves.
            let like = |other: &u8| left.devices[usize::from(*other)] == left.devices[usize::from(device)];
            if (0..device).any(|other| like(&other)) {
                continue;
            }
            let score = score(Some(device));
            if score > best.0 {
                best = (score, Some(device));
            }
        }
        best
    }
}

impl NodePlugin for Gradient {
    fn name(&self) -> &'static str {
        NAME
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Node)
    }

    /// The usual pods are counted anew when there are other nodes, or a twentieth more or fewer pods or shapes.
    fn open(&mut self, cluster: &ClusterState) -> bool {
        let now = (cluster.n_tasks(), cluster.n_shapes(), cluster.nodes().len());
        let near = |one: usize, other: usize| one.abs_diff(other) * 20 <= other;
        if near(now.0, self.counted.0) && near(now.1, self.counted.1) && now.2 == self.counted.2 {
            return false;
        }
        let usual = UsualPods::of(cluster);
        let changed = usual != self.usual;
        (self.usual, self.counted) = (usual, now);
        changed
    }

    /// 0 to 100: in the middle where nothing changes, and a hundredth of the range is 0.16 devices.
    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &CycleState) -> f64 {
        const HALF_RANGE: f64 = 8.0;
        let (score, _) = self.best(cluster, task, node);
        (50.0 + score * 50.0 / HALF_RANGE).clamp(0.0, 100.0)
    }

    fn choose_device(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Option<u8> {
        self.best(cluster, task, node).1
    }
}

#[cfg(test)]
mod tests {
    use krafla_testkit::Scene;

    use super::*;
    use crate::testing::run;

    /// Pods with one GPU fill the node that pods with two cannot use, and leave the other whole.
    #[test]
    fn what_others_need_stays_whole() {
        let scene = |plugin: &str| {
            let scene = Scene::new()
                .node("a", "64c4g")
                .node("b", "64c4g")
                .job("r", |job| job.running(1, "1c3g", "b"))
                .job("p", |job| job.pending(1, "1c1g"))
                .job("q", |job| job.pending(2, "1c2g"));
            run(&scene, "allocate", &["priority", "gang", "predicates", plugin]).binds
        };
        assert_eq!(scene("fgd"), ["p-0 -> b", "q-0 -> a", "q-1 -> a"]);
        assert_ne!(scene("fgd fgd.weight=0")[0], "p-0 -> b", "it is the plugin that does it");
    }

    #[test]
    fn usual_pods_are_counted_anew_when_there_are_many_others() {
        let with = |pods| Scene::new().node("n", "64c8g").job("p", |job| job.pending(pods, "1c1g")).build();
        let mut plugin = Gradient::new(3);
        assert!(plugin.open(&with(100)), "the first time");
        assert!(!plugin.open(&with(104)));
        let others = Scene::new().node("n", "64c8g").job("p", |job| job.pending(200, "1c2g")).build();
        assert!(plugin.open(&others));
    }
}
