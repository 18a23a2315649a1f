//! `usage`: nodes whose measured load is high get no more pods, and of the others the least loaded is best.
//!
//! Score of a node, before `usage.weight`: the weighted mean over CPU and memory of the part that is not used, in percent.
//! What a pod that was placed a moment ago will use is not measured yet, so it is estimated and added. Without a fresh
//! measurement, a node passes and scores 0.

use krafla_framework::conf::catalogue::ArgumentKind::{Any, Integer};
use krafla_framework::session_plugin::SessionPlugin;
use krafla_framework::{
    ArgumentInfo, CycleState, NodePlugin, PluginEntry, PluginInfo, Point, ProfileEntry, Room, Scope, Value, Verdict,
    Why,
};
use krafla_model::{ClusterState, NodeId, ResourceId, TaskId, TaskStatus};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "usage",
    about: "avoid nodes with a high measured load",
    arguments: &[
        ArgumentInfo::new("usage.weight", PART, "5", "weight of the whole score; below 0 counts as 5"),
        ArgumentInfo::new("cpu.weight", PART, "1", "weight of CPU within it; below 0 counts as 1"),
        ArgumentInfo::new("memory.weight", PART, "1", "weight of memory within it; below 0 counts as 1"),
        ArgumentInfo::new("thresholds", Any, "{cpu: 80, mem: 80}", "percent of use above which a node takes no pod"),
        ArgumentInfo::new(
            "estimator",
            Any,
            "{request_ratio: 0.7, burst_ratio: 0, risk_threshold: 0.6, risk_factor: 1.2, be_cpu: 250m, be_mem: 200Mi}",
            "what pods that are not measured yet are taken to use",
        ),
    ],
    points: &[Point::Predicate, Point::NodeOrder],
};

const PART: krafla_framework::ArgumentKind = Integer { min: -1_000_000, max: 1_000_000 };
/// What was measured longer ago says nothing, in milliseconds.
const STALE_MS: i64 = 300_000;
/// How long a pod runs before its use is measured, in milliseconds.
const DELAY_MS: i64 = 30_000;
const DIMENSIONS: [ResourceId; 2] = [ResourceId::CPU, ResourceId::MEMORY];

struct UsagePlugin {
    weight: i64,
    load: Load,
}

/// CPU first, then memory.
#[derive(Clone, Debug)]
struct Load {
    weights: [i64; 2],
    /// In percent.
    thresholds: [i64; 2],
    estimator: Estimator,
}

#[derive(Clone, Debug)]
struct Estimator {
    request_ratio: f64,
    burst_ratio: f64,
    risk_threshold: f64,
    risk_factor: f64,
    best_effort: [i64; 2],
}

/// Makes the plugin. As in Volcano, a value that is out of range leaves the default.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let arguments = &entry.arguments;
    let weight = |key: &str, default: i64| Some(arguments.integer(key, default)).filter(|w| *w >= 0).unwrap_or(default);
    let inner = |key: &str, field: &str| match arguments.get(key) {
        Some(Value::Map(map)) => map.get(field).cloned(),
        _ => None,
    };
    let percent = |field: &str| match inner("thresholds", field) {
        Some(Value::Integer(percent @ 0..=100)) => percent,
        _ => 80,
    };
    #[allow(clippy::cast_precision_loss, reason = "a number that somebody wrote")]
    let ratio = |field: &str, range: std::ops::RangeInclusive<f64>, default: f64| match inner("estimator", field) {
        Some(Value::Number(value)) if range.contains(&value) => value,
        Some(Value::Integer(value)) if range.contains(&(value as f64)) => value as f64,
        _ => default,
    };
    let amount = |field: &str, resource: &str, unit: i64, default: i64| match inner("estimator", field) {
        Some(Value::Integer(n @ 0..)) => n.saturating_mul(unit),
        Some(Value::Text(text)) => {
            krafla_model::quantity::parse(&text, krafla_model::resources::unit_of(resource)).unwrap_or(default)
        }
        _ => default,
    };
    let estimator = Estimator {
        request_ratio: ratio("request_ratio", 0.0..=1.0, 0.7),
        burst_ratio: ratio("burst_ratio", 0.0..=1.0, 0.0),
        risk_threshold: ratio("risk_threshold", 0.0..=1.0, 0.6),
        risk_factor: ratio("risk_factor", 1.0..=f64::MAX, 1.2),
        best_effort: [amount("be_cpu", "cpu", 1, 250), amount("be_mem", "memory", 1 << 20, 200 << 20)],
    };
    let load = Load {
        weights: [weight("cpu.weight", 1), weight("memory.weight", 1)],
        thresholds: [percent("cpu"), percent("mem")],
        estimator,
    };
    Box::new(UsagePlugin { weight: weight("usage.weight", 5), load })
}

impl SessionPlugin for UsagePlugin {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    #[allow(clippy::cast_precision_loss, reason = "a weight of at most a million")]
    fn node_plugins(&self) -> Vec<ProfileEntry> {
        vec![ProfileEntry::both(Box::new(self.load.clone()), self.weight as f64)]
    }
}

impl NodePlugin for Load {
    fn name(&self) -> &'static str {
        INFO.name
    }

    /// What counts as measured a moment ago changes with the time alone.
    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn filter(&self, cluster: &ClusterState, _: TaskId, node: NodeId, _: Room, _: &CycleState) -> Verdict {
        let Some(used) = measured(cluster, node) else { return Verdict::Fits };
        let says = [
            "the CPU load of the node exceeds the upper limit.",
            "the memory load of the node exceeds the upper limit.",
        ];
        for (i, id) in DIMENSIONS.into_iter().enumerate() {
            let whole = cluster.node(node).allocatable.get(id);
            if i128::from(used[i]) * 100 > i128::from(whole) * i128::from(self.thresholds[i]) && whole > 0 {
                return Verdict::Unresolvable(Why::Says(says[i]));
            }
        }
        Verdict::Fits
    }

    #[allow(clippy::cast_precision_loss, reason = "weights of at most a million")]
    fn score(&self, cluster: &ClusterState, _: TaskId, node: NodeId, _: &CycleState) -> f64 {
        let Some(used) = measured(cluster, node) else { return 0.0 };
        let weights = self.weights.map(|weight| weight as f64);
        let sum = weights[0] + weights[1];
        if sum == 0.0 {
            return 0.0;
        }
        let parts = self.composite(cluster, node, used);
        ((1.0 - parts[0]) * weights[0] + (1.0 - parts[1]) * weights[1]) / sum * 100.0
    }
}

/// What a node uses, if that was measured lately.
fn measured(cluster: &ClusterState, node: NodeId) -> Option<[i64; 2]> {
    let usage = cluster.node_usage(node)?;
    let fresh = cluster.now().0 - usage.at.0 <= STALE_MS;
    fresh.then(|| DIMENSIONS.map(|id| usage.used.get(id)))
}

impl Load {
    /// The parts of a node that are used or will be, from 0 to 1. Pods are added in the order of their ids, so that what
    /// one of them counts as more because of the risk does not depend on chance.
    #[allow(clippy::cast_precision_loss, reason = "amounts for ranking only")]
    fn composite(&self, cluster: &ClusterState, node: NodeId, used: [i64; 2]) -> [f64; 2] {
        let host = cluster.node(node);
        let whole = DIMENSIONS.map(|id| host.allocatable.get(id) as f64);
        let mut used = used.map(|amount| amount as f64);
        let part =
            |used: &[f64; 2]| [0, 1].map(|i| if whole[i] > 0.0 { (used[i] / whole[i]).clamp(0.0, 1.0) } else { 0.0 });
        let weights = self.weights.map(|weight| weight as f64);
        let mut tasks = host.books().tasks.clone();
        tasks.sort_unstable();
        for task in tasks.into_iter().filter(|task| is_not_measured(cluster, *task)) {
            let now = part(&used);
            let mean = (now[0] * weights[0] + now[1] * weights[1]) / (weights[0] + weights[1]).max(1.0);
            let risk = if mean >= self.estimator.risk_threshold { self.estimator.risk_factor } else { 1.0 };
            let more = self.estimator.of(cluster, task, risk);
            used = [used[0] + more[0], used[1] + more[1]];
        }
        part(&used)
    }
}

/// Whether what a pod uses cannot be seen in what was measured yet.
fn is_not_measured(cluster: &ClusterState, task: TaskId) -> bool {
    let own = cluster.task(task);
    match own.status() {
        TaskStatus::Allocated | TaskStatus::Binding | TaskStatus::Bound => true,
        TaskStatus::Running => own.started.is_none_or(|since| cluster.now().0 - since.0 < DELAY_MS),
        _ => false,
    }
}

impl Estimator {
    #[allow(clippy::cast_precision_loss, reason = "amounts for ranking only")]
    fn of(&self, cluster: &ClusterState, task: TaskId, risk: f64) -> [f64; 2] {
        let shape = cluster.shape_of(task);
        if shape.best_effort {
            return self.best_effort.map(|amount| amount as f64 * risk);
        }
        let limits = cluster.task(task).details.as_deref().map_or((0, 0), |details| details.limits);
        let limits = [limits.0, limits.1];
        [0, 1].map(|i| {
            let asked = shape.request.get(DIMENSIONS[i]);
            let limit = limits[i].max(asked) as f64;
            let asked = asked as f64;
            ((asked * self.request_ratio + (limit - asked) * self.burst_ratio) * risk).clamp(0.0, limit)
        })
    }
}

#[cfg(test)]
mod tests {
    use krafla_framework::Verdict;
    use krafla_model::{Amounts, Event, NodeUsageSpec, Time};
    use krafla_testkit::{Scene, scores, verdict};

    use crate::testing::{conf, registry};

    fn used(node: &str, cpu: i64, memory: i64, at: i64) -> Event {
        let used = Amounts::default().with("cpu", cpu * 100).with("memory", memory << 20);
        Event::NodeUsage(NodeUsageSpec { node: node.into(), at: Time(at), used, sample_ppm: None })
    }

    fn scene(cpu: i64, memory: i64, at: i64) -> Scene {
        Scene::new()
            .at(1_000_000)
            .node("n", "10c100Mi")
            .event(used("n", cpu, memory, at))
            .job("p", |job| job.pending(1, "1c"))
    }

    #[test]
    fn the_less_is_used_the_better() {
        for (cpu, memory, arguments, wanted) in [
            (30, 50, "", 300.0),
            (60, 50, "", 225.0),
            (60, 80, "", 150.0),
            (30, 50, " cpu.weight=2 memory.weight=8", 270.0),
            (60, 50, " cpu.weight=2 memory.weight=8", 240.0),
            (60, 80, " cpu.weight=2 memory.weight=8", 120.0),
            (60, 80, " cpu.weight=0 memory.weight=0", 0.0),
            (0, 0, " usage.weight=1", 100.0),
        ] {
            let conf = conf("allocate", &[&[&format!("usage{arguments}")]]);
            let score = scores(&scene(cpu, memory, 1_000_000).build(), &registry(), &conf, "p-0")[0];
            assert!((score - wanted).abs() < 1e-6, "{cpu} {memory}{arguments}: {score}");
        }
    }

    #[test]
    fn a_node_over_the_limit_is_out_while_that_is_known() {
        let conf = conf("allocate", &[&["usage"]]);
        for (cpu, memory, at, wanted) in [
            (80, 80, 1_000_000, ""),
            (81, 0, 1_000_000, "the CPU load of the node exceeds the upper limit."),
            (0, 81, 1_000_000, "the memory load of the node exceeds the upper limit."),
            (99, 99, 699_999, ""),
        ] {
            let cluster = scene(cpu, memory, at).build();
            let said = match verdict(&cluster, &registry(), &conf, "p-0", "n") {
                Ok(_) => String::new(),
                Err(Verdict::Unresolvable(why)) => why.text(&cluster),
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(said, wanted, "{cpu} {memory} at {at}");
        }
        let stale = scores(&scene(10, 10, 699_999).build(), &registry(), &conf, "p-0")[0];
        assert!(stale.abs() < 1e-9, "what is old scores nothing");
    }

    #[test]
    fn what_is_not_measured_yet_is_estimated() {
        let conf = conf("allocate", &[&["usage usage.weight=1 memory.weight=0"]]);
        let with = |ran: i64| {
            let scene = Scene::new().at(1_000_000).node("n", "10c100Mi").event(used("n", 10, 0, 1_000_000));
            scene
                .job("q", |job| job.running(1, "5c", "n").each(|pod| pod.started = Some(Time(1_000_000 - ran))))
                .job("p", |job| job.pending(1, "1c"))
        };
        // 10 percent, and 0.7 of 5 cores; an old pod is in what was measured.
        for (ran, wanted) in [(0, 55.0), (29_999, 55.0), (30_000, 90.0)] {
            let score = scores(&with(ran).build(), &registry(), &conf, "p-0")[0];
            assert!((score - wanted).abs() < 1e-6, "{ran}: {score}");
        }
    }
}
