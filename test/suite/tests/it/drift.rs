//! A day on a cluster whose load drifts and whose nodes come and go, with a descheduler that goes by measured use: half a
//! day of change, then half a day of constant load. With the scheduler's plan, and without it as the descheduler of
//! Kubernetes has it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use krafla_engine::CycleReport;
use krafla_framework::{DeschedulerSettings, Planning};
use krafla_model::budget::{Aim, Share};
use krafla_model::labels::{Requirement, Selector, Test};
use krafla_model::pod_details::Owner;
use krafla_model::{
    Amounts, BudgetSpec, Event, Name, NodeSpec, NodeUsageSpec, PodDetails, PodGroupSpec, PodPhase, PodShape,
    PodUsageSpec, QueueSpec, Time,
};
use krafla_simulator::world::{Controller, Happening, Life, Observer, PodChange, Setup, Submission, Submitted, World};
use krafla_test_suite::registry;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const ROUND: i64 = 5 * MINUTE;
const COOL_DOWN: i64 = 30 * MINUTE;
/// Load changes until then, and is constant afterwards.
const CHANGES_UNTIL: i64 = 12 * HOUR;
const NODE_CPU: i64 = 32_000;
const POD_CPU: i64 = 2_000;
/// Replicas of a template; ten pods a node on average, which ask for 62 percent of it.
const REPLICAS: u64 = 4;

const POLICY: &str = "\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 3
metricsProviders: [{source: KubernetesMetrics}]
profiles:
- name: rebalance
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 40}
      targetThresholds: {cpu: 55}
      metricsUtilization: {source: KubernetesMetrics}
  plugins: {balance: {enabled: [LowNodeUtilization]}}
";
const SCHEDULER: &str = "\
actions: \"enqueue, allocate\"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
";

/// Numbers that look random and depend on these two alone.
fn dice(a: u64, b: u64) -> u64 {
    let mut x = a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    for _ in 0..3 {
        x ^= x >> 29;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    x ^ (x >> 32)
}

/// What a pod of a template uses, in milli-CPU: 20 to 119 percent of what it asks for. One template in twenty changes each
/// hour, as long as load changes at all.
fn load(template: u64, at: i64) -> i64 {
    let hours = (at.min(CHANGES_UNTIL) / HOUR).unsigned_abs();
    let epoch = (1..=hours).rev().find(|hour| dice(template, 1_000 + hour).is_multiple_of(20)).unwrap_or(0);
    POD_CPU * i64::try_from(20 + dice(template, epoch) % 100).expect("small") / 100
}

/// What a day came to.
#[derive(Debug, Default)]
struct Day {
    /// Evictions in each hour.
    moves: Vec<u32>,
    /// How full the fullest node was at the begin of each round, in tenths of a percent.
    hottest: Vec<i64>,
    /// Times that a template went between two nodes again within the cool-down, either way.
    ping_pongs: u32,
    /// Pods that came back to the node they were taken from.
    returned: u32,
    /// Disruption budgets that were overspent after some cycle.
    overspent: u32,
}

/// Watches who goes where.
#[derive(Default)]
struct Watch {
    day: Day,
    /// Pods that were evicted and have not come back: from where, and when.
    away: BTreeMap<Name, (Name, i64)>,
    /// Moves by template: between which two nodes, and when the pod was evicted.
    moved: BTreeMap<Name, Vec<(Name, Name, i64)>>,
}

impl Observer for Watch {
    fn cycle(&mut self, world: &World, report: &CycleReport) {
        if report.had_round {
            let cluster = world.engine().cluster();
            let over = cluster.budgets(&"default".into()).filter(|budget| budget.left(cluster) < 0).count();
            self.day.overspent += u32::try_from(over).expect("few");
        }
    }

    fn pod(&mut self, world: &World, pod: usize, change: PodChange) {
        let pod = &world.pod(pod).spec;
        let Some(node) = pod.node.clone() else { return };
        match change {
            PodChange::Evicted => {
                let hour = usize::try_from(world.now().0 / HOUR).expect("positive");
                self.day.moves.resize(self.day.moves.len().max(hour + 1), 0);
                self.day.moves[hour] += 1;
                self.away.insert(pod.name.clone(), (node, world.now().0));
            }
            PodChange::Bound => {
                let Some((from, at)) = self.away.remove(&pod.name) else { return };
                let template = pod.details.as_ref().expect("details").owners[0].name.clone();
                self.day.returned += u32::from(from == node);
                let moves = self.moved.entry(template).or_default();
                let same = |(a, b, when): &(Name, Name, i64)| {
                    let pair = (*a == from && *b == node) || (*a == node && *b == from);
                    pair && at > *when && at - when < COOL_DOWN
                };
                self.day.ping_pongs += u32::from(moves.iter().any(same));
                moves.push((from, node, at));
            }
            _ => {}
        }
    }
}

fn node(name: &str) -> Event {
    let allocatable = Amounts::default().with("cpu", NODE_CPU).with("memory", 128 << 30).with("pods", 110);
    Event::Node(NodeSpec { name: name.into(), allocatable, ..NodeSpec::default() })
}

fn template(t: u64) -> Submission {
    let name = format!("t{t:04}");
    let labels = [("app".into(), Name::from(name.as_str()))].into_iter().collect();
    let request = Amounts::default().with("cpu", POD_CPU).with("memory", 1 << 30);
    let shape =
        Arc::new(PodShape { namespace: "default".into(), labels, request, controlled: true, ..PodShape::default() });
    let owner = Owner { kind: "ReplicaSet".into(), name: name.as_str().into(), uid: name.as_str().into() };
    let details = Arc::new(PodDetails { owners: vec![owner], ..PodDetails::default() });
    let life = Life { controller: Controller::Recreate, ..Life::default() };
    let pod = |k: u64| Submitted {
        details: Some(Arc::clone(&details)),
        ..Submitted::new(format!("{name}-{k}").into(), Arc::clone(&shape), life)
    };
    let group = PodGroupSpec {
        namespace: "default".into(),
        name: name.as_str().into(),
        uid: name.as_str().into(),
        queue: "default".into(),
        min_member: 1,
        ..PodGroupSpec::default()
    };
    Submission {
        group,
        announced: true,
        joins: false,
        goes_with_pods: false,
        pods: (0..REPLICAS).map(pod).collect(),
        kind: String::new(),
    }
}

fn budget(t: u64) -> Event {
    let app = Requirement { key: "app".into(), test: Test::In(vec![format!("t{t:04}").into()]) };
    Event::Budget(BudgetSpec {
        namespace: "default".into(),
        name: format!("t{t:04}").into(),
        selector: Some(Selector(vec![app])),
        aim: Some(Aim::MaxUnavailable(Share::Count(1))),
        ..BudgetSpec::default()
    })
}

/// What every node and pod uses now.
fn measure(world: &World) -> (Vec<Event>, i64) {
    let now = world.now();
    let mut by_node: BTreeMap<Name, i64> = world.nodes().map(|node| (node.name.clone(), 0)).collect();
    let mut pods = Vec::new();
    for i in 0..world.n_pods() {
        let pod = world.pod(i);
        if pod.gone || pod.spec.phase != PodPhase::Running {
            continue;
        }
        let Some(used) = pod.spec.node.as_ref().and_then(|node| by_node.get_mut(node)) else { continue };
        let t: u64 = pod.spec.details.as_ref().expect("details").owners[0].name[1..].parse().expect("a number");
        let cpu = load(t, now.0);
        *used += cpu;
        let used = Amounts::default().with("cpu", cpu);
        pods.push(PodUsageSpec { namespace: "default".into(), name: pod.spec.name.clone(), used });
    }
    let hottest = by_node.values().max().copied().unwrap_or(0) * 1_000 / NODE_CPU;
    let of_node = |(node, cpu): (Name, i64)| {
        let used = Amounts::default().with("cpu", cpu);
        Event::NodeUsage(NodeUsageSpec { node, at: now, used, sample_ppm: None })
    };
    (by_node.into_iter().map(of_node).chain([Event::PodUsage(pods)]).collect(), hottest)
}

fn day(n_nodes: u64, hours: i64, planning: Planning) -> Day {
    let descheduler = DeschedulerSettings {
        file: "policy.yaml".into(),
        text: POLICY.into(),
        planning,
        cool_down_ms: COOL_DOWN,
        ..DeschedulerSettings::default()
    };
    let setup = Setup {
        descheduler: Some(descheduler),
        configuration: Some(("scheduler.conf".into(), SCHEDULER.into())),
        start_latency_ms: 2_000,
        evict_grace_ms: 5_000,
        ..Setup::default()
    };
    let mut world = World::new(setup, registry);
    let object = |event: Event| Happening::Object(Box::new(event));
    world.plan(Time(0), object(Event::Queue(QueueSpec { name: "default".into(), weight: 1, ..QueueSpec::default() })));
    for n in 0..n_nodes {
        world.plan(Time(0), object(node(&format!("n{n:03}"))));
    }
    for t in 0..n_nodes * 10 / REPLICAS {
        world.plan(Time(0), object(budget(t)));
        world.plan(Time(0), Happening::Submit(Box::new(template(t))));
    }
    // One node in a hundred goes every other hour, and another one comes.
    for hour in (2..=10).step_by(2) {
        for n in 0..n_nodes.div_ceil(100) {
            let gone = dice(hour, n) % n_nodes;
            let at = Time(i64::try_from(hour).expect("small") * HOUR + 30_000);
            world.plan(at, object(Event::NodeGone(format!("n{gone:03}").into())));
            world.plan(at + 60_000, object(node(&format!("x{hour:02}{n:02}"))));
        }
    }
    let mut watch = Watch::default();
    let mut at = ROUND;
    while at < hours * HOUR {
        world.run_until(Time(at), &mut watch);
        let (events, hottest) = measure(&world);
        watch.day.hottest.push(hottest);
        for event in events {
            world.plan(Time(at), object(event));
        }
        world.plan(Time(at), Happening::Deschedule);
        at += ROUND;
    }
    world.run_until(Time(hours * HOUR), &mut watch);
    watch.day.moves.resize(usize::try_from(hours).expect("positive"), 0);
    watch.day
}

fn check_planned(day: &Day) {
    assert!(day.moves.iter().sum::<u32>() > 0, "load drifts, so something moves: {day:?}");
    assert_eq!((day.ping_pongs, day.returned, day.overspent), (0, 0, 0));
    let constant = usize::try_from(CHANGES_UNTIL / HOUR).expect("positive");
    assert!(day.moves[constant + 2..].iter().all(|moves| *moves == 0), "it comes to rest: {:?}", day.moves);
    let rounds = usize::try_from(CHANGES_UNTIL / ROUND).expect("positive");
    let rests = &day.hottest[rounds..];
    assert!(rests.windows(2).all(|pair| pair[1] <= pair[0]), "the fullest node gets no fuller: {rests:?}");
}

/// with a plan, nothing goes in circles, the fullest node gets less full, and on constant load all comes to
/// rest.
#[test]
fn a_day_with_a_plan_comes_to_rest() {
    let day = day(40, 18, Planning::Kept);
    check_planned(&day);
}

/// The same in full, beside a descheduler without a plan. It prints the table of docs/descheduler.md.
#[test]
#[ignore = "a minute"]
fn a_day_on_five_hundred_nodes_with_and_without_a_plan() {
    let planned = day(500, 24, Planning::Kept);
    let plain = day(500, 24, Planning::Off);
    let mut table = "| | with the plan | without |\n|---|---|---|\n".to_owned();
    let sum = |day: &Day, hours: std::ops::Range<usize>| day.moves[hours].iter().sum::<u32>();
    for (name, hours) in
        [("hours 1 to 12, load changes", 0..12), ("hours 13 and 14", 12..14), ("hours 15 to 24", 14..24)]
    {
        let _ = writeln!(table, "| moves in {name} | {} | {} |", sum(&planned, hours.clone()), sum(&plain, hours));
    }
    for (name, of) in [
        (
            "a template between the same two nodes again within 30 minutes",
            (|day: &Day| day.ping_pongs) as fn(&Day) -> u32,
        ),
        ("pods that came back to the node they left", |day| day.returned),
        ("budgets overspent", |day| day.overspent),
    ] {
        let _ = writeln!(table, "| {name} | {} | {} |", of(&planned), of(&plain));
    }
    let percent = |tenths: i64| format!("{}.{} %", tenths / 10, tenths % 10);
    for (name, i) in [("before the first round", 0), ("after 12 hours", 144), ("at the end", planned.hottest.len() - 1)]
    {
        let (a, b) = (percent(planned.hottest[i]), percent(plain.hottest[i]));
        let _ = writeln!(table, "| load of the fullest node {name} | {a} | {b} |");
    }
    println!("{table}\n{:?}\n{:?}", planned.moves, plain.moves);
    check_planned(&planned);
}
