//! Preemption that keeps promises and bounds from one pod to the next, and tries few nodes, decides as the one that tries
//! every node anew: whom it evicts, for whom, in which order, and what it says. Pods of several priorities, which started
//! at different times; budgets; victims that take their time to go; gangs that are tried together or wait at Permit.

use std::sync::Arc;

use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::conf::policy::{Policy, ProfilePolicy};
use krafla_framework::{Effect, ExtensionPoint};
use krafla_model::budget::{Aim, BudgetSpec, Share};
use krafla_model::{Event, PodGroupSpec, PodPhase, PodSpec, Time};
use krafla_test_suite::registry;
use proptest::prelude::*;

use super::claims::Uses;
use super::engines::told;
use super::kinds::{APPS, NodeKind, PodKind, Says, is_app, node, node_kind, pod_kind, shape};

/// What a profile has besides the default plugins.
const MORE: [(&str, &[ExtensionPoint]); 3] = [
    ("", &[]),
    ("GangScheduling", &[ExtensionPoint::PreEnqueue, ExtensionPoint::Permit]),
    (
        "Coscheduling",
        &[ExtensionPoint::PreFilter, ExtensionPoint::PostFilter, ExtensionPoint::Reserve, ExtensionPoint::Permit],
    ),
];

#[derive(Clone, Debug)]
struct Pods {
    at: usize,
    n: usize,
    kind: PodKind,
    priority: i32,
    /// How many of them a group needs; 0 is no group.
    min: u32,
}

#[derive(Clone, Debug)]
struct Case {
    more: usize,
    nodes: Vec<NodeKind>,
    /// How many nodes there are of each kind.
    copies: usize,
    pods: Vec<Pods>,
    /// The app whose pods it protects, and how many may go.
    budgets: Vec<(usize, u32)>,
    /// Milliseconds before its bind that a pod says to have started at; without any it has not.
    started: Vec<Option<i64>>,
    /// Steps that a victim takes to go.
    stays: Vec<usize>,
    changes: Vec<(usize, usize, NodeKind)>,
}

const STEPS: usize = 16;

fn case() -> impl Strategy<Value = Case> {
    // Mostly plain pods: who fits nowhere whoever goes preempts nobody.
    let plain = (1_i64..5, 0_i64..3, 0_usize..3).prop_map(|(cpu, memory, labelled)| PodKind {
        cpu,
        memory,
        gpus: 0,
        share: 0,
        labelled,
        says: Says::Nothing,
        image: None,
        port: false,
        uses: Uses::Nothing,
    });
    let kind = prop_oneof![3 => plain, 1 => pod_kind()];
    let pods = (0..STEPS - 4, 1_usize..6, kind, 0_i32..5, prop_oneof![3 => Just(0), 1 => 1_u32..4])
        .prop_map(|(at, n, kind, priority, min)| Pods { at, n, kind, priority: priority * 10, min });
    (
        0..MORE.len(),
        prop::collection::vec(node_kind(), 1..4),
        1_usize..5,
        prop::collection::vec(pods, 3..14),
        prop::collection::vec((0_usize..3, 0_u32..3), 0..2),
        prop::collection::vec(prop::option::weighted(0.8, -3_000_i64..9_000), 1..9),
        prop::collection::vec(0_usize..4, 1..5),
        prop::collection::vec((0..STEPS, 0_usize..9, node_kind()), 0..3),
    )
        .prop_map(|(more, nodes, copies, pods, budgets, started, stays, changes)| Case {
            more,
            nodes,
            copies,
            pods,
            budgets,
            started,
            stays,
            changes,
        })
}

fn engine(more: usize, plain_search: bool) -> Engine {
    let mut profile = ProfilePolicy::default_profile(&registry());
    let (plugin, points) = MORE[more];
    for &point in points {
        let members = profile.points.entry(point).or_default();
        if !members.iter().any(|(name, _)| name == plugin) {
            members.push((plugin.to_owned(), 1));
        }
    }
    let policy = Policy { profiles: vec![profile], ..Policy::default() }.one_by_one();
    Engine::with_policy(registry(), Options { profile_only: true, plain_search, ..Options::default() }, policy)
}

fn submit(i: usize, pods: &Pods) -> Vec<Input> {
    let name = format!("p{i}");
    let group = PodGroupSpec {
        uid: name.as_str().into(),
        name: name.as_str().into(),
        namespace: "default".into(),
        min_member: pods.min.min(u32::try_from(pods.n).expect("a few")),
        ..PodGroupSpec::default()
    };
    let shape = Arc::new(shape(&pods.kind));
    let pod = |k: usize| {
        Input::Event(Event::Pod(PodSpec {
            uid: format!("{name}-{k}").into(),
            name: format!("{name}-{k}").into(),
            group: (pods.min > 0).then(|| name.as_str().into()),
            shape: Arc::clone(&shape),
            priority: pods.priority,
            ..PodSpec::default()
        }))
    };
    let group = (pods.min > 0).then_some(Input::Event(Event::PodGroup(group)));
    group.into_iter().chain((0..pods.n).map(pod)).collect()
}

fn budget(app: usize, allowed: u32) -> Event {
    Event::Budget(BudgetSpec {
        namespace: "default".into(),
        name: APPS[app].into(),
        selector: Some(is_app(app)),
        aim: Some(Aim::MinAvailable(Share::Count(1))),
        allowed: Some(allowed),
        disrupted: Vec::new(),
    })
}

/// Plays a case; answers how many were evicted.
fn play(case: &Case) -> Result<usize, TestCaseError> {
    let (mut fast, mut plain) = (engine(case.more, false), engine(case.more, true));
    let mut inputs: Vec<Input> =
        case.budgets.iter().map(|(app, allowed)| Input::Event(budget(*app, *allowed))).collect();
    let kinds = (0..case.copies).flat_map(|_| &case.nodes);
    inputs.extend(kinds.enumerate().map(|(i, kind)| Input::Event(node(i, kind))));
    let (mut n_bound, mut n_evicted) = (0, 0);
    let mut leaving: Vec<(usize, krafla_model::Name)> = Vec::new();
    for step in 0..STEPS {
        for (i, pods) in case.pods.iter().enumerate().filter(|(_, pods)| pods.at == step) {
            inputs.extend(submit(i, pods));
        }
        for (_, i, kind) in case.changes.iter().filter(|(at, ..)| *at == step) {
            inputs.push(Input::Event(node(*i, kind)));
        }
        let gone = leaving.iter().filter(|(at, _)| *at <= step);
        inputs.extend(gone.map(|(_, uid)| Input::Event(Event::PodGone(uid.clone()))));
        leaving.retain(|(at, _)| *at > step);
        let now = Time(i64::try_from(step).expect("a few") * 2_000);
        let done = fast.step(now, inputs.clone());
        let right = plain.step(now, inputs);
        prop_assert_eq!(&done.effects, &right.effects, "step {}", step);
        inputs = Vec::new();
        for effect in &done.effects {
            match effect {
                Effect::Bind { pod, node, .. } => {
                    inputs.push(Input::Outcome(Outcome::Bound { pod: pod.uid.clone() }));
                    let before = case.started[n_bound % case.started.len()];
                    inputs.extend(told(&fast, &pod.uid, |pod| {
                        pod.phase = if before.is_some() { PodPhase::Running } else { PodPhase::Pending };
                        pod.started = before.map(|before| Time(now.0 - before));
                        pod.node = Some(node.clone());
                    }));
                    n_bound += 1;
                }
                Effect::Evict { pod, .. } => {
                    inputs.push(Input::Outcome(Outcome::Evicted { pod: pod.uid.clone() }));
                    inputs.extend(told(&fast, &pod.uid, |pod| pod.deleting = true));
                    leaving.push((step + 1 + case.stays[n_evicted % case.stays.len()], pod.uid.clone()));
                    n_evicted += 1;
                }
                _ => {}
            }
        }
    }
    Ok(n_evicted)
}

proptest! {
    #[test]
    fn preemption_decides_as_if_every_node_were_tried(case in case()) {
        play(&case)?;
    }
}

/// The other test would hold too if nobody were ever evicted.
#[test]
fn room_is_made_for_each_that_needs_it_and_no_more() {
    let node = NodeKind {
        cpu: 7,
        memory: 8,
        gpus: 0,
        devices: false,
        zone: None,
        ssd: false,
        taint: None,
        cordoned: false,
        image: None,
    };
    let kind = |cpu| PodKind {
        cpu,
        memory: 0,
        gpus: 0,
        share: 0,
        labelled: 0,
        says: Says::Nothing,
        image: None,
        port: false,
        uses: Uses::Nothing,
    };
    // Ten pods of 0.7 cores on each node of 7, then some of 2.1 cores: three go for each.
    let pods = |at, n, cpu, priority| Pods { at, n, kind: kind(cpu), priority, min: 0 };
    for (more, (name, _)) in MORE.iter().enumerate() {
        let case = Case {
            more,
            nodes: vec![node.clone()],
            copies: 30,
            pods: vec![pods(0, 300, 1, 0), pods(2, 20, 3, 100)],
            budgets: Vec::new(),
            started: (0..17).map(|i| Some(i * 400)).collect(),
            stays: vec![1, 3],
            changes: Vec::new(),
        };
        assert_eq!(play(&case).expect("both decide alike"), 60, "{name}");
    }
}
