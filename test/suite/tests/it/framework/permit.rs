//! Plugins of one's own at Permit that hold pods back until something is free.

use krafla_engine::{Engine, Input, Outcome};
use krafla_framework::conf::policy::ProfilePolicy;
use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};
use krafla_framework::{ExtensionPoint, NodePlugin, Permit, Registry, WaitingPods};
use krafla_model::cluster_event::ClusterEvent;
use krafla_model::{ClusterState, Event, Name, NodeId, TaskId, Time};
use krafla_test_suite::registry;
use krafla_testkit::Scene;

use super::traced::{binds, engine_of, tell};

/// At most so many pods of a namespace at once.
const QUOTA: usize = 2;

/// Holds pods back whose namespace is full.
struct NamespaceQuota;

impl NamespaceQuota {
    /// Pods of a namespace that have a node and are not held back.
    fn in_use(cluster: &ClusterState, namespace: &Name, waiting: &WaitingPods) -> usize {
        let holds = |task: TaskId| cluster.task(task).status().is_allocated();
        let counts = |task: &TaskId| {
            holds(*task) && cluster.namespace_of(*task) == namespace && waiting.get(&cluster.task(*task).uid).is_none()
        };
        cluster.tasks().map(|(task, _)| task).filter(counts).count()
    }
}

impl NodePlugin for NamespaceQuota {
    fn name(&self) -> &'static str {
        "NamespaceQuota"
    }

    fn permit(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, waiting: &mut WaitingPods) -> Permit {
        // The pod itself has its node already.
        if Self::in_use(cluster, cluster.namespace_of(task), waiting) <= QUOTA {
            return Permit::Approve;
        }
        Permit::Wait { timeout_ms: 600_000 }
    }

    fn cluster_changed(&mut self, cluster: &ClusterState, _: &ClusterEvent, waiting: &mut WaitingPods) {
        let waits: Vec<(Name, TaskId)> = waiting.iter().map(|pod| (pod.uid.clone(), pod.task)).collect();
        let mut free = waits
            .first()
            .map_or(0, |(_, task)| QUOTA.saturating_sub(Self::in_use(cluster, cluster.namespace_of(*task), waiting)));
        for (uid, _) in waits {
            if free > 0
                && let Some(pod) = waiting.get_mut(&uid)
            {
                pod.allow("NamespaceQuota");
                free -= 1;
            }
        }
    }
}

/// Holds pods back until two neighbouring nodes are free of everybody else: a pair of GPUs, say.
struct PairOfNodes;

impl PairOfNodes {
    fn is_free(cluster: &ClusterState, node: NodeId, own: TaskId) -> bool {
        cluster
            .node(node)
            .books()
            .tasks
            .iter()
            .all(|task| *task == own || cluster.task(*task).job == cluster.task(own).job)
    }
}

impl NodePlugin for PairOfNodes {
    fn name(&self) -> &'static str {
        "PairOfNodes"
    }

    fn permit(&mut self, cluster: &ClusterState, task: TaskId, _: NodeId, _: &mut WaitingPods) -> Permit {
        match cluster.nodes().iter().all(|node| Self::is_free(cluster, *node, task)) {
            true => Permit::Approve,
            false => Permit::Wait { timeout_ms: 600_000 },
        }
    }

    fn cluster_changed(&mut self, cluster: &ClusterState, _: &ClusterEvent, waiting: &mut WaitingPods) {
        for pod in waiting.iter_mut() {
            if cluster.nodes().iter().all(|node| Self::is_free(cluster, *node, pod.task)) {
                pod.allow("PairOfNodes");
            }
        }
    }
}

fn engine(name: &'static str, make: fn() -> Box<dyn NodePlugin>) -> Engine {
    let mut registry: Registry = registry();
    let info = NodePluginInfo { name, about: "", points: &[ExtensionPoint::Permit], default_weight: None };
    registry.node_plugins.push(NodePluginBuilder { info, build: Build::Plain(make) });
    let mut profile = ProfilePolicy::default_profile(&registry);
    profile.points.entry(ExtensionPoint::Permit).or_default().push((name.to_owned(), 1));
    engine_of(registry, profile)
}

fn ends(engine: &Engine, pod: &str) -> Input {
    let cluster = engine.cluster();
    let uid = cluster.tasks().find(|(_, task)| *task.name == *pod).map(|(_, task)| task.uid.clone());
    Input::Event(Event::PodGone(uid.expect("it is there")))
}

//
#[test]
fn a_pod_waits_for_its_namespaces_quota() {
    let mut engine = engine("NamespaceQuota", || Box::new(NamespaceQuota));
    let scene = Scene::new().node("a", "8c").job("p", |job| job.pending(3, "1c"));
    let first = binds(&tell(&mut engine, 0, &scene));
    assert_eq!(first.len(), 2);
    let pods: Vec<String> = first.iter().filter_map(|bound| bound.split(' ').next().map(str::to_owned)).collect();
    let bound: Vec<Input> = pods
        .iter()
        .map(|pod| Input::Outcome(Outcome::Bound { pod: format!("default/{pod}").as_str().into() }))
        .collect();
    engine.step(Time(1_000), bound);
    assert_eq!(engine.configuration().plugins().waiting().len(), 1);
    let gone = ends(&engine, &pods[0]);
    assert_eq!(binds(&engine.step(Time(2_000), [gone])).len(), 1, "its turn has come");
}

//
#[test]
fn a_pod_waits_for_a_combination_to_be_free() {
    let mut engine = engine("PairOfNodes", || Box::new(PairOfNodes));
    let scene = Scene::new()
        .node("a", "8c")
        .node("b", "8c")
        .job("other", |job| job.running(1, "1c", "b"))
        .job("p", |job| job.pending(1, "8c"));
    assert!(binds(&tell(&mut engine, 0, &scene)).is_empty());
    assert_eq!(engine.configuration().plugins().waiting().len(), 1, "it has its node, and waits for the other");
    let gone = ends(&engine, "other-0");
    assert_eq!(binds(&engine.step(Time(2_000), [gone])), ["p-0 -> a"]);
}
