//! Evictions come to rest: on random clusters in which nothing arrives any more and nothing ends, and every evicted pod
//! is made again, no sequence of sessions evicts for ever. Each certificate on the way is checked.
//!
//! A long search: `PROPTEST_CASES=1000000 cargo test --release -p krafla-test-suite --test it evictions`.

use std::fmt::Write;

use krafla_model::Time;
use krafla_simulator::scenario;
use krafla_test_suite::registry;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Job {
    at: u32,
    queue: usize,
    replicas: u32,
    min: u32,
    cpu: u32,
    memory: u32,
    priority: usize,
}

#[derive(Clone, Debug)]
struct Queue {
    weight: u32,
    deserved: Option<u32>,
    capability: Option<u32>,
    priority: u32,
    /// Its place in the hierarchy of `drf`.
    place: usize,
}

/// Places of queues in the hierarchy of `drf`, below which they are named.
const PLACES: [&str; 4] = ["root", "root/a", "root/b", "root/a/c"];

#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<u32>,
    queues: Vec<Queue>,
    jobs: Vec<Job>,
    plugins: usize,
    actions: usize,
    grace: u32,
}

/// The actions, in several orders.
const ACTIONS: [&str; 7] = [
    "enqueue, allocate, preempt, reclaim, backfill",
    "allocate, reclaim, preempt, backfill",
    "enqueue, allocate, gangpreempt, gangreclaim, backfill",
    "allocate, gangreclaim, preempt, backfill",
    "enqueue, allocate, consolidate, preempt, reclaim, backfill",
    "allocate, consolidate, backfill",
    "allocate, gangreclaim, consolidate, gangpreempt, backfill",
];

/// The plugins that decide who may go.
const PLUGINS: [&str; 11] = [
    "[{name: priority}, {name: gang}, {name: conformance}, {name: proportion}, {name: predicates}]",
    "[{name: priority}, {name: gang}, {name: conformance}, {name: capacity}, {name: predicates}]",
    "[{name: gang}, {name: drf}, {name: proportion}, {name: predicates}, {name: nodeorder}]",
    "[{name: priority}, {name: gang}, {name: drf}, {name: overcommit}, {name: capacity}, {name: predicates}, {name: binpack}]",
    "[{name: srsf}, {name: gang, enablePreemptable: false, enableReclaimable: false}, {name: proportion}, {name: predicates}]",
    "[{name: priority}, {name: gang}, {name: conformance}, {name: drf, enableHierarchy: true}, {name: predicates}]",
    "[{name: gang}, {name: drf, enableHierarchy: true}, {name: predicates}, {name: binpack}]",
    "[{name: priority}, {name: gang}, {name: capacity, enableHierarchy: true}, {name: predicates}]",
    "[{name: priority}, {name: gang}, {name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}}, {name: predicates}]",
    "[{name: gang, enableReclaimable: false}, {name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 2}}, {name: predicates}]",
    "[{name: las, arguments: {las.threshold: 5s, las.levels: 2}}, {name: gang, enablePreemptable: false}, {name: predicates}]",
];

fn case() -> impl Strategy<Value = Case> {
    let limits = (prop::option::of(0_u32..7), prop::option::weighted(0.2, 2_u32..12));
    let queue =
        (1_u32..4, limits, 0_u32..3, 0..PLACES.len()).prop_map(|(weight, (deserved, capability), priority, place)| {
            Queue { weight, deserved, capability, priority, place }
        });
    let job = (0_u32..20, 0_usize..3, 1_u32..5, 0_u32..5, 1_u32..5, 0_u32..3, 0_usize..3).prop_map(
        |(at, queue, replicas, min, cpu, memory, priority)| Job {
            at,
            queue,
            replicas,
            min: min.min(replicas),
            cpu,
            memory,
            priority,
        },
    );
    let grace = prop_oneof![Just(0_u32), Just(3), Just(7)];
    (
        prop::collection::vec(2_u32..9, 1..4),
        prop::collection::vec(queue, 1..4),
        prop::collection::vec(job, 2..8),
        0..PLUGINS.len(),
        0..ACTIONS.len(),
        grace,
    )
        .prop_map(|(nodes, queues, jobs, plugins, actions, grace)| Case {
            nodes,
            queues,
            jobs,
            plugins,
            actions,
            grace,
        })
}

fn story(case: &Case) -> String {
    let mut text = String::new();
    let actions = ACTIONS[case.actions];
    let mut line = |indented: &str| {
        text += indented;
        text += "\n";
    };
    line("scenario: rest");
    line(&format!("evictGrace: {}s", case.grace));
    line("until: 400s");
    line("config: |");
    line(&format!("  actions: \"{actions}\""));
    if actions.contains("consolidate") {
        line("  configurations: [{name: consolidate, arguments: {reservationTimeout: 60s}}]");
    }
    line("  tiers:");
    line(&format!("  - plugins: {}", PLUGINS[case.plugins]));
    line("cluster:");
    line("  priorityClasses: {low: 10, high: 100}");
    line("  nodes:");
    for (i, cpu) in case.nodes.iter().enumerate() {
        line(&format!("  - {{name: n{i}, cpu: {cpu}, memory: {}Gi}}", cpu));
    }
    line("  queues:");
    let is_tree = PLUGINS[case.plugins].contains("capacity, enableHierarchy");
    if is_tree {
        for team in
            ["{name: a, deserved: {cpu: 5, memory: 4Gi}}", "{name: b}", "{name: c, parent: a, deserved: {cpu: 2}}"]
        {
            line(&format!("  - {team}"));
        }
    }
    for (i, queue) in case.queues.iter().enumerate() {
        let mut keys = format!("name: q{i}, weight: {}, priority: {}", queue.weight, queue.priority);
        if let Some(cpu) = queue.deserved {
            let _ = write!(keys, ", deserved: {{cpu: {cpu}, memory: {cpu}Gi}}");
        }
        if let Some(cpu) = queue.capability {
            let _ = write!(keys, ", capability: {{cpu: {}}}", cpu.max(queue.deserved.unwrap_or(0)));
        }
        let place = PLACES[queue.place];
        let weights: Vec<String> = (0..=place.split('/').count())
            .map(|level| if level == 0 { "1".into() } else { queue.weight.to_string() })
            .collect();
        let _ = write!(
            keys,
            ", annotations: {{volcano.sh/hierarchy: {place}/q{i}, volcano.sh/hierarchy-weights: \"{}\"}}",
            weights.join("/")
        );
        if is_tree {
            let _ = write!(keys, ", parent: {}", place.rsplit('/').next().unwrap_or(place));
        }
        line(&format!("  - {{{keys}}}"));
    }
    line("timeline:");
    let mut jobs: Vec<(usize, &Job)> = case.jobs.iter().enumerate().collect();
    jobs.sort_by_key(|(i, job)| (job.at, *i));
    for (i, job) in jobs {
        let queue = job.queue % case.queues.len();
        let priority = ["", ", priority: low", ", priority: high"][job.priority];
        line(&format!(
            "- {{at: {}s, submit: {{job: j{i}, queue: q{queue}, replicas: {}, minMember: {}, request: {{cpu: {}, memory: {}Gi}}, controller: recreate, estimate: {}s{priority}}}}}",
            job.at,
            job.replicas,
            job.min,
            job.cpu,
            job.memory,
            20 * job.memory
        ));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn evictions_come_to_rest(case in case()) {
        let text = story(&case);
        let verdict = scenario::run(&text, "case.yaml", registry).map_err(|why| TestCaseError::fail(format!("{why}\n{text}")))?;
        prop_assert!(verdict.passed(), "{}\n{text}", verdict.misses.join("\n"));
        let late = verdict.evictions.iter().filter(|at| **at > Time(250_000)).count();
        prop_assert_eq!(late, 0, "{} evictions in all, {:?}\n{}", verdict.evictions.len(), &verdict.evictions[verdict.evictions.len().saturating_sub(12)..], text);
    }
}
