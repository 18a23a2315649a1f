//! Plugins that note every call, and answer as a test tells them. Both stand on one thread: so do engines.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use krafla_engine::{Engine, Input, Options, Step};
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};
use krafla_framework::{
    CycleState, Effect, ExtensionPoint, FailedAttempt, NodePlugin, Permit, PostFilter, PreFilter, PreScore, QueuedAt,
    Rank, Registry, Room, Scope, Verdict, WaitingPods, Why,
};
use krafla_model::{ClusterState, NodeId, TaskId, Time};
use krafla_test_suite::registry;
use krafla_testkit::Scene;

thread_local! {
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static SCRIPT: RefCell<BTreeMap<(&'static str, ExtensionPoint), Answer>> = const { RefCell::new(BTreeMap::new()) };
}

/// What a plugin does at a point, instead of agreeing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// It objects.
    Refuse,
    /// It fails.
    Fail,
    /// It waits so many milliseconds.
    Wait(i64),
    /// It gives this score.
    Score(f64),
}

/// From now on `plugin` answers so at `point`.
pub(super) fn script(plugin: &'static str, point: ExtensionPoint, answer: Option<Answer>) {
    SCRIPT.with_borrow_mut(|script| match answer {
        Some(answer) => script.insert((plugin, point), answer),
        None => script.remove(&(plugin, point)),
    });
}

/// What was called since the last time, in order.
pub(super) fn calls() -> Vec<String> {
    LOG.take()
}

/// The names of hooks among `calls`, each once, in the order of their first call.
pub(super) fn hooks(calls: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    calls.iter().filter_map(|call| call.split(' ').nth(1)).filter(|hook| seen.insert(*hook)).collect()
}

/// A plugin that is at every point.
pub(super) struct Traced(&'static str);

/// What PreFilter and PreScore leave for later hooks.
struct Left(&'static str);

impl Traced {
    fn note(&self, hook: &str, of: impl std::fmt::Display) {
        LOG.with_borrow_mut(|log| log.push(format!("{} {hook} {of}", self.0)));
    }

    fn answer(&self, point: ExtensionPoint) -> Option<Answer> {
        SCRIPT.with_borrow(|script| script.get(&(self.0, point)).copied())
    }
}

fn at(cluster: &ClusterState, task: TaskId, node: NodeId) -> String {
    format!("{} {}", cluster.task(task).name, cluster.node(node).name())
}

fn left(about: String, state: &CycleState) -> String {
    format!("{about} {}", state.get::<Left>().map_or("nothing", |left| left.0))
}

impl NodePlugin for Traced {
    fn name(&self) -> &'static str {
        self.0
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn score_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn pre_enqueue(&self, cluster: &ClusterState, task: TaskId) -> Result<(), Why> {
        self.note("PreEnqueue", &cluster.task(task).name);
        self.answer(ExtensionPoint::PreEnqueue).map_or(Ok(()), |_| Err(Why::Says("not yet")))
    }

    fn queue_sort(&self, cluster: &ClusterState, task: TaskId, _: QueuedAt, rank: &mut Rank) {
        self.note("QueueSort", &cluster.task(task).name);
        rank.descending(cluster.task(task).priority);
    }

    fn pre_filter(&self, cluster: &ClusterState, task: TaskId, state: &mut CycleState) -> PreFilter {
        self.note("PreFilter", &cluster.task(task).name);
        state.put(Left("left by PreFilter"));
        match self.answer(ExtensionPoint::PreFilter) {
            None => PreFilter::All,
            Some(Answer::Fail) => PreFilter::Error(Why::Says("broken")),
            Some(_) => PreFilter::Reject(Why::Says("nowhere")),
        }
    }

    fn filter(&self, cluster: &ClusterState, task: TaskId, node: NodeId, _: Room, state: &CycleState) -> Verdict {
        self.note("Filter", left(at(cluster, task, node), state));
        match self.answer(ExtensionPoint::Filter) {
            None => Verdict::Fits,
            Some(Answer::Fail) => Verdict::Error(Why::Says("broken")),
            Some(_) => Verdict::Unschedulable(Why::Says("not here")),
        }
    }

    fn post_filter(&self, attempt: &mut FailedAttempt<'_>) -> PostFilter {
        self.note("PostFilter", &attempt.cluster().task(attempt.task).name);
        match self.answer(ExtensionPoint::PostFilter) {
            None => PostFilter::Unschedulable("nothing to be done".into()),
            Some(_) => PostFilter::Nominate { node: attempt.cluster().nodes()[0], victims: Vec::new() },
        }
    }

    fn pre_score(&self, cluster: &ClusterState, task: TaskId, _: &[NodeId], state: &mut CycleState) -> PreScore {
        self.note("PreScore", &cluster.task(task).name);
        state.put(Left("left by PreScore"));
        match self.answer(ExtensionPoint::PreScore) {
            None => PreScore::Score,
            Some(Answer::Fail) => PreScore::Error(Why::Says("broken")),
            Some(_) => PreScore::Skip,
        }
    }

    fn score(&self, cluster: &ClusterState, task: TaskId, node: NodeId, state: &CycleState) -> f64 {
        self.note("Score", left(at(cluster, task, node), state));
        if let Some(Answer::Score(score)) = self.answer(ExtensionPoint::Score) { score } else { 0.0 }
    }

    fn normalizes(&self) -> bool {
        true
    }

    fn normalize(&self, _: &ClusterState, nodes: &[NodeId], _: &CycleState, scores: &mut [f64]) {
        self.note("NormalizeScore", format!("of {}", nodes.len()));
        assert_eq!(nodes.len(), scores.len());
    }

    fn reserve(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId) -> Result<(), Why> {
        self.note("Reserve", at(cluster, task, node));
        self.answer(ExtensionPoint::Reserve).map_or(Ok(()), |_| Err(Why::Says("taken")))
    }

    fn unreserve(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &mut WaitingPods) {
        self.note("Unreserve", at(cluster, task, node));
    }

    fn permit(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId, _: &mut WaitingPods) -> Permit {
        self.note("Permit", at(cluster, task, node));
        match self.answer(ExtensionPoint::Permit) {
            None => Permit::Approve,
            Some(Answer::Wait(timeout_ms)) => Permit::Wait { timeout_ms },
            Some(_) => Permit::Reject(Why::Says("not this one")),
        }
    }

    fn post_bind(&mut self, cluster: &ClusterState, task: TaskId, node: NodeId) {
        self.note("PostBind", at(cluster, task, node));
    }
}

/// A build with `First` and `Second`, which are at every point, beside Krafla's own plugins.
pub(super) fn traced_registry() -> Registry {
    let mut registry = registry();
    let builder = |name, make: fn() -> Box<dyn NodePlugin>| NodePluginBuilder {
        info: NodePluginInfo { name, about: "notes every call", points: &ExtensionPoint::ALL, default_weight: None },
        build: Build::Plain(make),
    };
    registry.node_plugins.push(builder("First", || Box::new(Traced("First"))));
    registry.node_plugins.push(builder("Second", || Box::new(Traced("Second"))));
    registry
}

/// kube-scheduler's default profile with these plugins at every point in the same order; at QueueSort only the first.
pub(super) fn profile(registry: &Registry, plugins: &[&str]) -> ProfilePolicy {
    let mut profile = ProfilePolicy::default_profile(registry);
    for point in ExtensionPoint::ALL {
        let members = profile.points.entry(point).or_default();
        match point {
            ExtensionPoint::QueueSort => *members = vec![(plugins[0].to_owned(), 1)],
            _ => members.extend(plugins.iter().map(|plugin| ((*plugin).to_owned(), 1))),
        }
    }
    profile
}

/// An engine of pods one by one, by this profile.
pub(super) fn engine_of(registry: Registry, profile: ProfilePolicy) -> Engine {
    let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
    Engine::with_policy(registry, Options { profile_only: true, events: true, ..Options::default() }, policy)
}

/// An engine with both plugins. Nothing is scripted, and nothing has been called.
pub(super) fn engine() -> Engine {
    SCRIPT.take();
    let registry = traced_registry();
    let profile = profile(&registry, &["First", "Second"]);
    let engine = engine_of(registry, profile);
    LOG.take();
    engine
}

/// Tells an engine of all objects of a scene.
pub(super) fn tell(engine: &mut Engine, now: i64, scene: &Scene) -> Step {
    engine.step(Time(now), scene.events().into_iter().map(Input::Event))
}

/// Pods that a step binds, with their nodes.
pub(super) fn binds(step: &Step) -> Vec<String> {
    let bind = |effect: &Effect| match effect {
        Effect::Bind { pod, node, .. } => Some(format!("{} -> {node}", pod.name)),
        _ => None,
    };
    step.effects.iter().filter_map(bind).collect()
}

/// What a step says of pods, all in one.
pub(super) fn said(step: &Step) -> String {
    let message = |effect: &Effect| match effect {
        Effect::Event { message, .. } => Some(message.clone()),
        _ => None,
    };
    step.effects.iter().filter_map(message).collect::<Vec<_>>().join("\n")
}
