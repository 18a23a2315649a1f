//! L1: a scheduler starts beside what is there: 5,000 nodes, 150,000 pods in 87,000 groups, some of which wait.

use krafla_engine::{Engine, Input, Options};
use krafla_model::{Event, JobPhase, PodGroupSpec, PodPhase, PodSpec, QueueSpec, Time};

use crate::clock::timed_step;
use crate::{SCORED, against_plain, binds, pod, scaled, shape};

const NODES: u32 = 5_000;
/// Groups of one pod, and of two.
const RUNNING_GROUPS: [u32; 2] = [24_000, 58_000];
/// Groups of two pods that wait.
const WAITING_GROUPS: u32 = 5_000;
const QUEUES: u32 = 10;

/// What it took.
pub(super) struct Restart {
    /// From the end of the lists to the first bind, which is the end of the first session.
    pub(super) seconds: f64,
    /// Pods that could run, and that the first session left.
    pub(super) skipped: f64,
}

pub(super) fn measure(percent: u32) -> Restart {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let mut engine = Engine::new(registry, Options::default());
    let nodes = scaled(NODES, percent);
    let mut lists = vec![Input::Configuration { file: "bench.conf".to_owned(), text: SCORED.to_owned() }];
    lists.extend((0..nodes).map(against_plain::node));
    let (mut groups, mut k) = (Vec::new(), 0);
    let mut add = |lists: &mut Vec<Input>, members: u32, runs: bool| {
        let name = format!("job-{}", groups.len());
        let shape = shape(100 + i64::from(k % 40) * 10);
        for _ in 0..members {
            let placed = runs.then(|| format!("node-{:05}", k % nodes).into());
            let phase = if runs { PodPhase::Running } else { PodPhase::Pending };
            lists.push(Input::Event(Event::Pod(PodSpec { node: placed, phase, ..pod(&name, k, &shape) })));
            k += 1;
        }
        groups.push(Event::PodGroup(PodGroupSpec {
            uid: name.as_str().into(),
            name: name.into(),
            queue: queue(k % QUEUES),
            min_member: members,
            phase: if runs { JobPhase::Running } else { JobPhase::Pending },
            ..PodGroupSpec::default()
        }));
    };
    for (members, count) in (1..).zip(RUNNING_GROUPS) {
        (0..scaled(count, percent)).for_each(|_| add(&mut lists, members, true));
    }
    let waiting = scaled(WAITING_GROUPS, percent);
    (0..waiting).for_each(|_| add(&mut lists, 2, false));
    // Pods are listed before their groups.
    lists.extend(groups.into_iter().map(Input::Event));
    lists.extend((0..QUEUES).map(|i| Input::Event(Event::Queue(QueueSpec { name: queue(i), ..QueueSpec::default() }))));
    let problems = engine.follow(Time(0), lists);
    assert!(problems.is_empty(), "{problems:?}");
    let (step, seconds) = timed_step(&mut engine, Time(1_000), Vec::new());
    let bound = u32::try_from(binds(&step)).unwrap_or(u32::MAX);
    Restart { seconds, skipped: f64::from(2 * waiting) - f64::from(bound) }
}

fn queue(i: u32) -> krafla_model::Name {
    format!("queue-{i}").into()
}
