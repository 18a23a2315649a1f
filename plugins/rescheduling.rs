//! `rescheduling`: pods should leave nodes whose measured load is high, while there are others whose load is low. `shuffle`
//! carries it out.
//!
//! The one strategy is `lowNodeUtilization`. What protects a pod from eviction protects it here too, since `shuffle` asks.
//! The descheduler does the same with a plan: see docs/descheduler.md.

use krafla_framework::conf::arguments::duration_ms;
use krafla_framework::conf::catalogue::ArgumentKind::{Any, Duration, Text};
use krafla_framework::session_plugin::{SessionPlugin, Unwanted};
use krafla_framework::{ArgumentInfo, PluginEntry, PluginInfo, Point, Value};
use krafla_model::{ClusterState, NodeId, ResourceId, TaskId, TaskStatus, Time};

/// Name, arguments and points.
pub const INFO: PluginInfo = PluginInfo {
    name: "rescheduling",
    about: "name pods that should leave busy nodes for idle ones",
    arguments: &[
        ArgumentInfo::new("interval", Duration, "5m", "time between two rounds"),
        ArgumentInfo::new("metricsPeriod", Text, "5m", "accepted; what was measured last counts"),
        ArgumentInfo::new("strategies", Any, "", "list of `name: lowNodeUtilization` and `params:`"),
    ],
    points: &[Point::VictimTasks],
};

const FIVE_MINUTES: u64 = 300_000;
/// What was measured longer ago says nothing, in milliseconds.
const STALE_MS: i64 = 300_000;
const N: usize = 3;

struct Rescheduling {
    interval_ms: i64,
    /// In percent: of CPU, memory and pods.
    strategy: Option<Thresholds>,
    last: Option<Time>,
    due: bool,
}

#[derive(Clone, Copy, Debug)]
struct Thresholds {
    low: [i64; N],
    high: [i64; N],
}

/// What a node uses and has, and by how much the other may change.
struct Load {
    node: NodeId,
    used: [i64; N],
    has: [i64; N],
}

/// Makes the plugin.
pub fn build(entry: &PluginEntry) -> Box<dyn SessionPlugin> {
    let interval = match entry.arguments.get("interval") {
        Some(Value::Text(text)) => duration_ms(text).unwrap_or(FIVE_MINUTES),
        _ => FIVE_MINUTES,
    };
    let strategy = match entry.arguments.get("strategies") {
        Some(Value::List(items)) => items.iter().find_map(strategy),
        _ => None,
    };
    let interval_ms = i64::try_from(interval).unwrap_or(i64::MAX);
    Box::new(Rescheduling { interval_ms, strategy, last: None, due: false })
}

fn strategy(item: &Value) -> Option<Thresholds> {
    let Value::Map(map) = item else { return None };
    if map.get("name") != Some(&Value::Text("lowNodeUtilization".to_owned())) {
        return None;
    }
    let thresholds = |key: &str| {
        let own = match map.get("params") {
            Some(Value::Map(params)) => params.get(key),
            _ => None,
        };
        let of = |names: &[&str]| match own {
            Some(Value::Map(own)) => names.iter().find_map(|name| match own.get(*name) {
                Some(Value::Integer(percent)) => Some(*percent),
                _ => None,
            }),
            _ => None,
        };
        // Volcano's default has `pods`, and its code reads `pod`.
        [&["cpu"][..], &["memory"], &["pods", "pod"]].map(|names| of(names).unwrap_or(100))
    };
    Some(Thresholds { low: thresholds("thresholds"), high: thresholds("targetThresholds") })
}

impl SessionPlugin for Rescheduling {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn points(&self) -> &'static [Point] {
        INFO.points
    }

    /// The first round comes an interval after the start.
    fn open(&mut self, cluster: &ClusterState) {
        let last = *self.last.get_or_insert(cluster.now());
        self.due = cluster.now().0 - last.0 >= self.interval_ms;
        if self.due {
            self.last = Some(cluster.now());
        }
    }

    fn victim_tasks(&self, cluster: &ClusterState, running: &[TaskId]) -> Vec<Unwanted> {
        match self.strategy.filter(|_| self.due) {
            Some(thresholds) => thresholds.victims(cluster, running),
            None => Vec::new(),
        }
    }

    fn wakes_at(&self, _: &ClusterState) -> Time {
        match (self.strategy, self.last) {
            (Some(_), Some(last)) => last + self.interval_ms,
            _ => Time::NEVER,
        }
    }
}

impl Thresholds {
    fn victims(self, cluster: &ClusterState, running: &[TaskId]) -> Vec<Unwanted> {
        let loads: Vec<Load> = cluster.nodes().iter().filter_map(|node| Load::of(cluster, *node)).collect();
        let is_low = |load: &&Load| {
            let idle = (0..N).all(|i| load.used[i] * 100 < load.has[i] * self.low[i] || load.has[i] == 0);
            idle && !cluster.node(load.node).spec.unschedulable
        };
        let (low, rest): (Vec<&Load>, Vec<&Load>) = loads.iter().partition(is_low);
        let mut high: Vec<&Load> = rest.into_iter().filter(|load| self.is_high(load)).collect();
        if low.is_empty() || high.is_empty() || low.len() == loads.len() {
            return Vec::new();
        }
        let mut budget = [0_i64; N];
        for load in &low {
            for (i, left) in budget.iter_mut().enumerate() {
                *left = left.saturating_add(load.has[i] * self.high[i] / 100 - load.used[i]);
            }
        }
        let exists: [bool; N] = [0, 1, 2].map(|i| low.iter().any(|load| load.has[i] > 0));
        let percent = |load: &Load, i: usize| if load.has[i] > 0 { load.used[i] * 100 / load.has[i] } else { 0 };
        high.sort_by_key(|load| (-percent(load, 0) - percent(load, 1), cluster.node_rank(load.node)));
        let mut victims = Vec::new();
        for load in high {
            let mut load = Load { used: load.used, has: load.has, node: load.node };
            let mut pods: Vec<TaskId> = running.to_vec();
            pods.retain(|task| cluster.task(*task).node() == Some(load.node));
            pods.sort_by_key(|task| {
                let qos = cluster.task(*task).details.as_deref().map(|details| details.qos);
                (cluster.task(*task).priority, !cluster.shape_of(*task).best_effort, qos, *task)
            });
            for task in pods {
                let spent = budget.iter().zip(exists).any(|(left, exists)| exists && *left <= 0);
                if spent || !self.is_high(&load) {
                    break;
                }
                let why = format!(
                    "{}% of CPU and {}% of memory are used on the node, {}% and {}% are the targets",
                    percent(&load, 0),
                    percent(&load, 1),
                    self.high[0],
                    self.high[1]
                );
                let request = amounts(&cluster.shape_of(task).request);
                for (i, amount) in request.into_iter().enumerate() {
                    load.used[i] -= amount;
                    budget[i] -= amount;
                }
                victims.push(Unwanted { task, why });
            }
        }
        victims
    }

    fn is_high(self, load: &Load) -> bool {
        (0..N).any(|i| load.has[i] > 0 && load.used[i] * 100 > load.has[i] * self.high[i])
    }
}

fn amounts(of: &krafla_model::Resources) -> [i64; N] {
    [ResourceId::CPU, ResourceId::MEMORY, ResourceId::PODS].map(|id| of.get(id))
}

impl Load {
    /// What a node uses, if that was measured lately. Its pods are counted.
    fn of(cluster: &ClusterState, id: NodeId) -> Option<Self> {
        let usage = cluster.node_usage(id).filter(|usage| cluster.now().0 - usage.at.0 <= STALE_MS)?;
        let node = cluster.node(id);
        let runs = |task: &&TaskId| cluster.task(**task).status() != TaskStatus::Releasing;
        let pods = i64::try_from(node.books().tasks.iter().filter(runs).count()).unwrap_or(i64::MAX);
        let mut used = amounts(&usage.used);
        used[N - 1] = pods;
        Some(Self { node: id, used, has: amounts(&node.allocatable) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use krafla_framework::Arguments;
    use krafla_model::{Amounts, Event, NodeUsageSpec};
    use krafla_testkit::Scene;

    use super::*;

    fn used(node: &str, percent: i64, at: i64) -> Event {
        let used = Amounts::default().with("cpu", percent * 100).with("memory", 1);
        Event::NodeUsage(NodeUsageSpec { node: node.into(), at: Time(at), used, sample_ppm: None })
    }

    fn plugin() -> Box<dyn SessionPlugin> {
        let cpu = |percent: i64| Value::Map(BTreeMap::from([("cpu".to_owned(), Value::Integer(percent))]));
        let params = BTreeMap::from([("thresholds".to_owned(), cpu(20)), ("targetThresholds".to_owned(), cpu(70))]);
        let one = BTreeMap::from([
            ("name".to_owned(), Value::Text("lowNodeUtilization".into())),
            ("params".to_owned(), Value::Map(params)),
        ]);
        let arguments: Arguments = [("strategies", Value::List(vec![Value::Map(one)]))].into_iter().collect();
        build(&PluginEntry { name: "rescheduling".into(), arguments, ..PluginEntry::default() })
    }

    fn victims(hot: i64, cold: i64, at: i64) -> Vec<String> {
        let scene = Scene::new()
            .node("hot", "10c1Gi")
            .node("cold", "10c1Gi")
            .at(1_000_000)
            .event(used("hot", hot, at))
            .event(used("cold", cold, at))
            .job("x", |job| job.task_priority(5).running(3, "1c", "hot"))
            .job("y", |job| job.task_priority(1).running(3, "1c", "hot"));
        let mut cluster = scene.build();
        let running: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
        let mut plugin = plugin();
        plugin.open(&cluster);
        assert!(plugin.victim_tasks(&cluster, &running).is_empty(), "not before an interval has passed");
        assert_eq!(plugin.wakes_at(&cluster), Time(1_300_000));
        cluster.set_now(Time(1_300_000));
        plugin.open(&cluster);
        let victims = plugin.victim_tasks(&cluster, &running);
        victims.into_iter().map(|one| cluster.task(one.task).name.to_string()).collect()
    }

    #[test]
    fn pods_leave_busy_nodes_until_they_are_at_the_target() {
        assert_eq!(victims(90, 5, 1_200_000), ["y-0", "y-1"]);
        assert_eq!(victims(95, 5, 1_200_000), ["y-0", "y-1", "y-2"]);
        assert_eq!(victims(70, 5, 1_200_000), [] as [&str; 0], "just at the target");
        assert_eq!(victims(90, 20, 1_200_000), [] as [&str; 0], "nobody is idle");
        assert_eq!(victims(90, 5, 999_999), [] as [&str; 0], "measured too long ago");
    }
}
