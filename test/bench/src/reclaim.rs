//! A queue takes back whole nodes from one that has filled the cluster with small jobs.

use std::sync::Arc;

use krafla_engine::{Engine, Input, Options};
use krafla_framework::Effect;
use krafla_model::{Amounts, Event, NodeSpec, PodPhase, PodShape, PodSpec, QueueSpec, Time};

use crate::clock::timed_step;
use crate::{group_in, pod};

/// Its name.
pub(crate) const NAME: &str = "reclaim-200-of-1000-nodes";

/// GPUs of a node.
pub(crate) const GPUS: u32 = 8;
const CONFIGURATION: &str = "
actions: allocate, reclaim, backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: proportion}, {name: predicates}]
";

/// Nodes of the cluster, in hundredths.
pub(crate) fn nodes(percent: u32) -> u32 {
    (1_000 * percent / 100).max(10)
}

/// Two queues, `small` and `large`, and so many empty nodes.
pub(crate) fn queues_and_nodes(nodes: u32) -> impl Iterator<Item = Input> {
    let queue = |name: &str| Input::Event(Event::Queue(QueueSpec { name: name.into(), ..QueueSpec::default() }));
    let node = |i| {
        let allocatable = Amounts::default().with("nvidia.com/gpu", 1_000 * i64::from(GPUS)).with("pods", 110);
        Input::Event(Event::Node(NodeSpec { name: format!("node-{i:05}").into(), allocatable, ..NodeSpec::default() }))
    };
    ["small", "large"].map(queue).into_iter().chain((0..nodes).map(node))
}

/// Answers how many pods were evicted, and the seconds until that was decided.
pub(crate) fn run(percent: u32) -> (u32, f64) {
    let registry = krafla_plugins::registry(krafla_actions::all());
    let mut engine = Engine::new(registry, Options { events: false, ..Options::default() });
    let nodes = nodes(percent);
    let mut inputs = vec![Input::Configuration { file: "bench.conf".to_owned(), text: CONFIGURATION.to_owned() }];
    inputs.extend(queues_and_nodes(nodes));
    let one = shape(1_000);
    for j in 0..nodes {
        let name = format!("small-{j:05}");
        inputs.push(group_in("small", &name, 1));
        for k in 0..GPUS {
            let placed = PodSpec {
                node: Some(format!("node-{:05}", (j + k * 131) % nodes).into()),
                phase: PodPhase::Running,
                ..pod(&name, k, &one)
            };
            inputs.push(Input::Event(Event::Pod(placed)));
        }
    }
    engine.step(Time(0), inputs);
    engine.step(Time(5_000), []);
    let members = nodes / 5;
    let whole = shape(1_000 * i64::from(GPUS));
    let mut work = vec![group_in("large", "large", members)];
    work.extend((0..members).map(|k| Input::Event(Event::Pod(pod("large", k, &whole)))));
    let (step, seconds) = timed_step(&mut engine, Time(10_000), work);
    let evictions = step.effects.iter().filter(|effect| matches!(effect, Effect::Evict { .. })).count();
    (u32::try_from(evictions).unwrap_or(u32::MAX), seconds)
}

/// A pod that asks for so many thousandths of a GPU.
pub(crate) fn shape(gpu: i64) -> Arc<PodShape> {
    let request = Amounts::default().with("nvidia.com/gpu", gpu);
    Arc::new(PodShape { namespace: "default".into(), request, ..PodShape::default() })
}
