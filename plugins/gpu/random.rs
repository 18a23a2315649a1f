//! `RandomNode`: any of the nodes that fit, and any of its devices that serve.
//!
//! The draw goes by a seed and the pod, so that the same input gives the same node.

use std::hash::{DefaultHasher, Hash, Hasher};

use krafla_framework::conf::plugin_args::read;
use krafla_framework::registry::ArgumentProblem;
use krafla_framework::{CycleState, NodePlugin, PreScore, Scope, Value};
use krafla_model::{ClusterState, NodeId, TaskId};

use super::{Ask, Left};

/// Its name.
pub const NAME: &str = "RandomNode";

/// See the module.
pub struct Random {
    seed: u64,
}

/// The node that was drawn.
struct Drawn(NodeId);

impl Random {
    /// From its `args`: `seed`, 0 if it is missing.
    pub fn from_args(args: &Value) -> Result<Self, Vec<ArgumentProblem>> {
        read(args, &["seed"], |args| {
            let seed = args.integer("seed", 0..=i64::MAX, 0);
            Self { seed: u64::try_from(seed).unwrap_or(0) }
        })
    }

    /// One of `n`.
    fn draw(&self, what: &str, cluster: &ClusterState, task: TaskId, n: usize) -> usize {
        // With fixed keys: the same everywhere.
        let mut hasher = DefaultHasher::new();
        (self.seed, what, &*cluster.task(task).uid).hash(&mut hasher);
        let drawn = (u128::from(hasher.finish()) * n as u128) >> 64;
        usize::try_from(drawn).unwrap_or(0)
    }
}

impl NodePlugin for Random {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Which node is drawn depends on all that fit.
    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn pre_score(&self, cluster: &ClusterState, task: TaskId, nodes: &[NodeId], state: &mut CycleState) -> PreScore {
        if nodes.is_empty() {
            return PreScore::Skip;
        }
        state.put(Drawn(nodes[self.draw("node", cluster, task, nodes.len())]));
        PreScore::Score
    }

    fn score(&self, _: &ClusterState, _: TaskId, node: NodeId, state: &CycleState) -> f64 {
        let drawn = state.get::<Drawn>().is_some_and(|drawn| drawn.0 == node);
        if drawn { 100.0 } else { 0.0 }
    }

    fn choose_device(&self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Option<u8> {
        let milli = Ask::of(cluster.shape_of(task)).gpu_milli;
        let left = Left::of(cluster.node(node));
        let serving: Vec<u8> = left.serving(milli).collect();
        serving.get(self.draw("device", cluster, task, serving.len())).copied()
    }
}
