//! What `preempt` and `reclaim` leave out because an earlier job sought it in vain, or because nodes cannot be the cheapest,
//! changes no decision, nor what `allocate` leaves out because a queue may not hold it: with and without that the same pods
//! are evicted for the same jobs, and the same jobs wait for the same reason.

use std::collections::BTreeMap;

use krafla_framework::Registry;
use krafla_model::priority::PriorityClassSpec;
use krafla_model::{BudgetSpec, Event};
use krafla_test_suite::registry;
use krafla_testkit::{Outcome, Scene, run};
use proptest::prelude::*;

/// The first tier; below it nodes are filtered.
const PLUGINS: [&str; 9] = [
    "[{name: priority}, {name: gang}, {name: conformance}]",
    "[{name: priority}, {name: gang, enablePreemptable: false}, {name: pdb}]",
    "[{name: srsf}, {name: gang, enableJobOrder: false, enablePreemptable: false}]",
    "[{name: las, arguments: {las.threshold: 10s, las.factor: 2}}, {name: gang}]",
    "[{name: priority}, {name: gang}, {name: drf}, {name: proportion}]",
    "[{name: gang}, {name: drf}, {name: cdp}]",
    "[{name: priority}, {name: gang}, {name: conformance}, {name: proportion}]",
    "[{name: priority}, {name: gang, enableReclaimable: false}, {name: pdb}, {name: capacity}]",
    "[{name: priority}, {name: gang}, {name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}}]",
];

const CLASSES: [&str; 3] = ["low", "mid", "high"];

#[derive(Clone, Debug)]
struct Job {
    pods: u32,
    min: u32,
    cpu: u32,
    memory: u32,
    class: usize,
    seconds: i64,
    queue: usize,
}

fn job() -> impl Strategy<Value = Job> {
    let size = (1_u32..4, 0_u32..4, 1_u32..5, 0_u32..3);
    (size, 0..CLASSES.len(), 1_i64..40, 0_usize..2).prop_map(|((pods, min, cpu, memory), class, seconds, queue)| Job {
        pods,
        min: min.min(pods),
        cpu,
        memory,
        class,
        seconds,
        queue,
    })
}

fn scene(
    nodes: &[u32],
    running: &[(Job, usize)],
    waiting: &[Job],
    budget: Option<u32>,
    capability: Option<u32>,
) -> Scene {
    let mut scene = Scene::new();
    for (name, value) in CLASSES.into_iter().zip([10, 20, 30]) {
        let class = PriorityClassSpec { name: name.into(), value, global_default: false, preempts: true };
        scene = scene.event(Event::PriorityClass(class));
    }
    if let Some(allowed) = budget {
        let selector = Some(krafla_model::labels::Selector(Vec::new()));
        let (namespace, name) = ("default".into(), "b".into());
        let allowed = Some(allowed);
        scene = scene.event(Event::Budget(BudgetSpec { namespace, name, selector, allowed, ..BudgetSpec::default() }));
    }
    for (i, cpu) in nodes.iter().enumerate() {
        scene = scene.node(&format!("n{i}"), &format!("{cpu}c{cpu}Gi"));
    }
    scene = scene.queue("q0", |queue| queue.deserved("4c4Gi")).queue("q1", |queue| match capability {
        Some(most) => queue.capability(&format!("{most}c{most}Gi")),
        None => queue,
    });
    let asks = |job: &Job| format!("{}c{}Gi", job.cpu, job.memory);
    for (i, (job, node)) in running.iter().enumerate() {
        let node = format!("n{}", node % nodes.len());
        scene = scene.job(&format!("r{i}"), |own| {
            let own = own.min(job.min).class(CLASSES[job.class]).queue(&format!("q{}", job.queue));
            let own = own.group(|group| group.estimate_ms = Some(60_000));
            own.ran(job.pods, &asks(job), &node, job.seconds * 1_000)
        });
    }
    for (i, job) in waiting.iter().enumerate() {
        scene = scene.job(&format!("w{i}"), |own| {
            let own = own.min(job.min).class(CLASSES[job.class]).queue(&format!("q{}", job.queue));
            let own = own.group(|group| group.estimate_ms = Some(job.seconds * 1_000));
            own.pending(job.pods, &asks(job))
        });
    }
    scene
}

/// The actions with a `preempt` and a `reclaim` that try everything.
fn blind() -> Registry {
    let mut all = registry();
    for action in &mut all.actions {
        if action.info.name == "allocate" {
            action.build = krafla_actions::allocate::build_blind;
        }
        if action.info.name == "preempt" {
            action.build = krafla_actions::preempt::build_blind;
        }
        if action.info.name == "reclaim" {
            action.build = krafla_actions::reclaim::build_blind;
        }
    }
    all
}

fn codes(outcome: &Outcome) -> BTreeMap<&str, &'static str> {
    outcome.reasons.iter().map(|(job, (code, _))| (job.as_str(), *code)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_foreseen_would_not_have_been_found(
        nodes in prop::collection::vec(2_u32..9, 1..4),
        running in prop::collection::vec((job(), 0_usize..4), 1..8),
        kinds in prop::collection::vec(job(), 1..4),
        waiting in prop::collection::vec((any::<prop::sample::Index>(), 0..CLASSES.len(), 1_i64..80), 2..12),
        plugins in 0..PLUGINS.len(),
        budget in prop::option::weighted(0.3, 0_u32..3),
        capability in prop::option::weighted(0.5, 1_u32..12),
    ) {
        // Few kinds of many jobs, which differ in rank.
        let waiting: Vec<Job> = waiting
            .iter()
            .map(|(kind, class, seconds)| Job { class: *class, seconds: *seconds, ..kind.get(&kinds).clone() })
            .collect();
        let conf = format!(
            "actions: \"allocate, preempt, reclaim, backfill\"\ntiers:\n- plugins: {}\n- plugins: [{{name: predicates}}]\n",
            PLUGINS[plugins]
        );
        let scene = scene(&nodes, &running, &waiting, budget, capability);
        let (with, without) = (run(scene.build(), &registry(), &conf), run(scene.build(), &blind(), &conf));
        prop_assert_eq!(&with.evictions, &without.evictions);
        prop_assert_eq!(&with.binds, &without.binds);
        prop_assert_eq!(codes(&with), codes(&without));
        let nominated = |outcome: &Outcome| {
            outcome.cluster.nominees().map(|task| outcome.cluster.task(task).nominated.clone()).collect::<Vec<_>>()
        };
        prop_assert_eq!(nominated(&with), nominated(&without));
        let unplaceable = |outcome: &Outcome| {
            outcome.cluster.jobs().filter(|(_, job)| job.is_unplaceable()).map(|(id, _)| id).collect::<Vec<_>>()
        };
        prop_assert_eq!(unplaceable(&with), unplaceable(&without));
    }
}
