//! Two engines that are told the same decide the same, and say the same of who waits, whichever way they look for nodes:
//! gangs that are given up, backfill, preemption, reclaim, and pods one by one with preemption.

use std::sync::Arc;

use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::Effect;
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_model::priority::PriorityClassSpec;
use krafla_model::{Event, PodGroupSpec, PodPhase, PodSpec, QueueSpec, Time};
use krafla_test_suite::registry;
use proptest::prelude::*;

use super::claims::{self, Thing, thing};
use super::kinds::{NodeKind, PodKind, node, node_kind, pod_kind, shape};

const ACTIONS: [&str; 3] = [
    "allocate, backfill",
    "enqueue, allocate, preempt, reclaim, backfill",
    "allocate, gangpreempt, gangreclaim, backfill",
];
const TIERS: [&str; 3] = [
    "[{name: priority}, {name: gang}, {name: conformance}, {name: drf}, {name: proportion}, {name: predicates}, {name: nodeorder}, {name: binpack}]",
    "[{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder, arguments: {leastrequested.weight: 0, mostrequested.weight: 2}}]",
    "[{name: gang}, {name: proportion}, {name: predicates}, {name: binpack}]",
];

#[derive(Clone, Debug)]
struct Job {
    at: usize,
    queue: usize,
    replicas: usize,
    min: u32,
    high: bool,
    pods: Vec<PodKind>,
}

#[derive(Clone, Debug)]
struct Case {
    actions: usize,
    /// Beyond the last one: kube-scheduler's default profile.
    tiers: usize,
    nodes: Vec<NodeKind>,
    jobs: Vec<Job>,
    /// Which pods end, and when.
    ends: Vec<(usize, usize)>,
    changes: Vec<(usize, usize, NodeKind)>,
    /// What comes, changes or goes of storage and devices, and when.
    things: Vec<(usize, Thing)>,
}

const STEPS: usize = 14;

fn case() -> impl Strategy<Value = Case> {
    let job = (0..STEPS / 2, 0_usize..2, 1_usize..6, 0_u32..6, any::<bool>(), prop::collection::vec(pod_kind(), 1..3))
        .prop_map(|(at, queue, replicas, min, high, pods)| Job { at, queue, replicas, min, high, pods });
    (
        0..ACTIONS.len(),
        0..TIERS.len() + 1,
        prop::collection::vec(node_kind(), 2..9),
        prop::collection::vec(job, 1..7),
        prop::collection::vec((0..STEPS, 0_usize..40), 0..10),
        prop::collection::vec((0..STEPS, 0_usize..9, node_kind()), 0..3),
        prop::collection::vec((0..STEPS, thing()), 0..12),
    )
        .prop_map(|(actions, tiers, nodes, jobs, ends, changes, things)| Case {
            actions,
            tiers,
            nodes,
            jobs,
            ends,
            changes,
            things,
        })
}

fn engine(case: &Case, plain_search: bool) -> Engine {
    let options = Options { plain_search, ..Options::default() };
    match TIERS.get(case.tiers) {
        Some(tier) => {
            let text = format!("actions: \"{}\"\ntiers:\n- plugins: {tier}\n", ACTIONS[case.actions]);
            Engine::with_policy(registry(), options, krafla_testkit::policy(&registry(), &text))
        }
        None => {
            let profiles = vec![ProfilePolicy::default_profile(&registry())];
            let policy = Policy { profiles, ..Policy::default() }.one_by_one();
            Engine::with_policy(registry(), Options { profile_only: true, ..options }, policy)
        }
    }
}

fn submit(i: usize, job: &Job, one_by_one: bool) -> Vec<Input> {
    let name = format!("j{i}");
    let group = PodGroupSpec {
        uid: name.as_str().into(),
        name: name.as_str().into(),
        namespace: "default".into(),
        queue: ["a", "b"][job.queue].into(),
        min_member: job.min.min(u32::try_from(job.replicas).expect("a few")),
        priority_class: if job.high { "high".into() } else { "".into() },
        ..PodGroupSpec::default()
    };
    let shapes: Vec<_> = job.pods.iter().map(|kind| Arc::new(shape(kind))).collect();
    let pod = |k: usize| {
        let pod = PodSpec {
            uid: format!("{name}-{k}").into(),
            name: format!("{name}-{k}").into(),
            group: (!one_by_one).then(|| name.as_str().into()),
            shape: Arc::clone(&shapes[k % shapes.len()]),
            priority: if job.high { 100 } else { 1 },
            ..PodSpec::default()
        };
        claims::claiming(pod, i + k, job.pods[k % shapes.len()].uses)
    };
    std::iter::once(Event::PodGroup(group)).chain((0..job.replicas).flat_map(pod)).map(Input::Event).collect()
}

/// A pod as its engine knows it, with another phase or node.
pub(super) fn told(engine: &Engine, uid: &str, edit: impl FnOnce(&mut PodSpec)) -> Option<Input> {
    let cluster = engine.cluster();
    let task = cluster.find_task(uid)?;
    let own = cluster.task(task);
    let mut pod = PodSpec {
        uid: own.uid.clone(),
        name: own.name.clone(),
        group: own.group.clone(),
        shape: Arc::clone(&cluster.shape_of(task).spec),
        priority: own.priority,
        claims: own.claims.to_vec(),
        phase: own.phase,
        node: own.node().map(|node| cluster.node(node).name().clone()),
        ..PodSpec::default()
    };
    edit(&mut pod);
    Some(Input::Event(Event::Pod(pod)))
}

fn play(case: &Case) -> Result<(), TestCaseError> {
    let (mut fast, mut plain) = (engine(case, false), engine(case, true));
    let one_by_one = case.tiers == TIERS.len();
    let high = PriorityClassSpec { name: "high".into(), value: 100, global_default: false, preempts: true };
    let mut inputs = vec![Input::Event(Event::PriorityClass(high))];
    for queue in ["a", "b"] {
        inputs.push(Input::Event(Event::Queue(QueueSpec { name: queue.into(), weight: 1, ..QueueSpec::default() })));
    }
    inputs.extend(claims::world().iter().map(|thing| Input::Event(claims::event(thing))));
    inputs.extend(case.nodes.iter().enumerate().map(|(i, kind)| Input::Event(node(i, kind))));
    let mut running: Vec<String> = Vec::new();
    for step in 0..STEPS {
        for (i, job) in case.jobs.iter().enumerate().filter(|(_, job)| job.at == step) {
            inputs.extend(submit(i, job, one_by_one));
        }
        for (_, i, kind) in case.changes.iter().filter(|(at, ..)| *at == step) {
            inputs.push(Input::Event(node(*i, kind)));
        }
        for (_, thing) in case.things.iter().filter(|(at, _)| *at == step) {
            inputs.push(Input::Event(claims::event(thing)));
        }
        if step % 3 == 2 {
            inputs.extend(claims::written(fast.cluster()).into_iter().map(Input::Event));
        }
        for (_, i) in case.ends.iter().filter(|(at, _)| *at == step) {
            if running.is_empty() {
                break;
            }
            let uid = running.remove(*i % running.len());
            inputs.extend(told(&fast, &uid, |pod| pod.phase = PodPhase::Succeeded));
        }
        let now = Time(i64::try_from(step).expect("a few") * 2_000);
        let done = fast.step(now, inputs.clone());
        let right = plain.step(now, inputs);
        prop_assert_eq!(&done.effects, &right.effects, "step {}", step);
        inputs = Vec::new();
        for effect in &done.effects {
            match effect {
                Effect::Bind { pod, node, .. } => {
                    inputs.push(Input::Outcome(Outcome::Bound { pod: pod.uid.clone() }));
                    inputs.extend(told(&fast, &pod.uid, |pod| {
                        pod.phase = PodPhase::Running;
                        pod.node = Some(node.clone());
                    }));
                    running.push(pod.uid.to_string());
                }
                Effect::Evict { pod, .. } => {
                    inputs.push(Input::Outcome(Outcome::Evicted { pod: pod.uid.clone() }));
                    // It takes a step to go.
                    match step % 2 {
                        0 => inputs.push(Input::Event(Event::PodGone(pod.uid.clone()))),
                        _ => inputs.extend(told(&fast, &pod.uid, |pod| pod.deleting = true)),
                    }
                    running.retain(|uid| uid.as_str() != &pod.uid[..]);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn two_engines_decide_alike_however_they_search(case in case()) {
        play(&case)?;
    }
}
