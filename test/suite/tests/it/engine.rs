//! The engine as a shell sees it: steps, reload, refused binds, recording and replay.

use std::io::Cursor;
use std::sync::Arc;

use krafla_engine::recording::{Recorder, replay};
use krafla_engine::{Engine, Input, Options, Outcome};
use krafla_framework::Effect;
use krafla_model::{Amounts, Event, NodeSpec, PodGroupSpec, PodShape, PodSpec, QueueSpec, Time};
use krafla_test_suite::registry;

fn node(name: &str, cpu: i64) -> Input {
    let allocatable = Amounts::default().with("cpu", cpu).with("memory", 1 << 40).with("pods", 110);
    Input::Event(Event::Node(NodeSpec { name: name.into(), allocatable, ..NodeSpec::default() }))
}

fn queue(name: &str) -> Input {
    Input::Event(Event::Queue(QueueSpec { name: name.into(), ..QueueSpec::default() }))
}

fn group(name: &str, min_member: u32) -> Input {
    Input::Event(Event::PodGroup(PodGroupSpec {
        uid: name.into(),
        name: name.into(),
        min_member,
        ..PodGroupSpec::default()
    }))
}

fn pod(group: &str, k: u32, cpu: i64) -> PodSpec {
    let shape =
        PodShape { namespace: "default".into(), request: Amounts::default().with("cpu", cpu), ..PodShape::default() };
    PodSpec {
        uid: format!("{group}-{k}").into(),
        name: format!("{group}-{k}").into(),
        group: Some(group.into()),
        shape: Arc::new(shape),
        priority: 1,
        ..PodSpec::default()
    }
}

fn gang(name: &str, n: u32, cpu: i64) -> Vec<Input> {
    let pods = (0..n).map(|k| Input::Event(Event::Pod(pod(name, k, cpu))));
    std::iter::once(group(name, n)).chain(pods).collect()
}

fn binds(effects: &[Effect]) -> Vec<String> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Bind { pod, node, .. } => Some(format!("{} -> {node}", pod.name)),
            _ => None,
        })
        .collect()
}

fn engine() -> Engine {
    Engine::new(registry(), Options::default())
}

#[test]
fn work_that_arrives_starts_a_cycle_at_once_and_nothing_new_starts_none() {
    let mut engine = engine();
    let first = engine.step(Time(0), [node("n", 4_000), queue("default")]);
    assert!(first.cycle.is_some());
    let step = engine.step(Time(10), gang("a", 2, 1_000));
    assert_eq!(binds(&step.effects), ["a-0 -> n", "a-1 -> n"]);
    let step = engine.step(Time(20), ["a-0", "a-1"].map(|pod| Input::Outcome(Outcome::Bound { pod: pod.into() })));
    assert!(step.cycle.is_none(), "that a bind was carried out gives a session nothing to do");
    let step = engine.step(Time(1_010), []);
    assert!(step.cycle.is_some(), "the period after a decision has ended");
    assert_eq!(engine.wakes_at(), Time::NEVER, "a cycle that decided nothing is the last");
}

#[test]
fn a_configuration_with_a_mistake_is_refused_and_the_last_good_one_stays() {
    let mut engine = engine();
    let good = "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n";
    let configure = |text: &str| Input::Configuration { file: "scheduler.conf".into(), text: text.into() };
    engine.step(Time(0), [configure(good), node("n", 4_000), queue("default")]);
    assert_eq!((engine.health().accepted, engine.health().refused), (1, 0));
    for (bad, part) in [
        (good.replace("allocate", "allocat"), "allocate"),
        (good.replace("- name: gang", "- name: binpack\n    arguments: {binpack.weight: \"10\"}"), "quotes"),
    ] {
        let step = engine.step(Time(1), [configure(&bad)]);
        assert!(!engine.health().current, "the alarm rings");
        assert!(engine.health().problems.join("\n").contains(part), "{:?}", engine.health().problems);
        assert!(
            step.effects.iter().any(|e| matches!(e, Effect::Event { reason, .. } if reason == "InvalidConfiguration"))
        );
        assert_eq!(engine.configuration().actions(), ["allocate"]);
    }
    let step = engine.step(Time(2), gang("a", 1, 1_000));
    assert_eq!(binds(&step.effects), ["a-0 -> n"], "decisions go on");
    engine.step(Time(3), [configure(good)]);
    assert_eq!(engine.health().accepted, 1, "the same content again is no change");
}

#[test]
fn a_refused_member_of_a_gang_is_repaired_before_others_take_its_room() {
    let mut engine = engine();
    engine.step(Time(0), [node("n", 2_000), queue("default")]);
    let mut inputs = gang("a", 2, 1_000);
    inputs.extend(gang("b", 1, 1_000));
    let step = engine.step(Time(1), inputs);
    assert_eq!(binds(&step.effects), ["a-0 -> n", "a-1 -> n"]);
    let refused = Outcome::BindRefused { pod: "a-1".into(), message: "conflict".into() };
    let step = engine.step(Time(2), [Input::Outcome(refused)]);
    assert_eq!(binds(&step.effects), ["a-1 -> n"]);
}

#[test]
fn a_refused_pod_of_no_gang_pauses_and_another_takes_its_room() {
    let mut engine = engine();
    engine.step(Time(0), [node("n", 1_000), queue("default")]);
    let mut inputs = gang("a", 1, 1_000);
    inputs.extend(gang("b", 1, 1_000));
    assert_eq!(binds(&engine.step(Time(1), inputs).effects), ["a-0 -> n"]);
    let refused = Outcome::BindRefused { pod: "a-0".into(), message: "conflict".into() };
    assert_eq!(binds(&engine.step(Time(2), [Input::Outcome(refused)]).effects), ["b-0 -> n"]);
    assert_eq!(engine.wakes_at(), Time(1_002), "it is tried again after its pause, or at the end of the period");
}

#[test]
fn a_bind_whose_answer_was_lost_is_not_made_twice() {
    let mut engine = engine();
    engine.step(Time(0), [node("n", 4_000), queue("default")]);
    assert_eq!(binds(&engine.step(Time(1), gang("a", 1, 1_000)).effects), ["a-0 -> n"]);
    let seen = PodSpec { node: Some("n".into()), ..pod("a", 0, 1_000) };
    engine.step(Time(2), [Input::Event(Event::Pod(seen))]);
    let lost = Outcome::BindRefused { pod: "a-0".into(), message: "timed out".into() };
    let step = engine.step(Time(3), [Input::Outcome(lost)]);
    assert_eq!(binds(&step.effects), Vec::<String>::new());
}

#[test]
fn a_recording_replays_to_the_same_decisions_and_a_changed_one_does_not() {
    #[derive(Clone, Default)]
    struct Shared(Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let out = Shared::default();
    let mut recorder = Recorder::new(out.clone(), Options::default()).expect("written");
    let mut engine = engine();
    for (now, inputs) in
        [(0, vec![node("n", 4_000), queue("default")]), (5, gang("a", 3, 1_000)), (9, gang("b", 2, 1_000))]
    {
        let step = engine.step(Time(now), inputs.clone());
        recorder.record(Time(now), inputs, &step).expect("written");
    }
    recorder.finish().expect("written");
    let text = String::from_utf8(out.0.lock().expect("no panic").clone()).expect("JSON");
    let same = replay(Cursor::new(&text), registry()).expect("read");
    assert_eq!((same.steps, same.difference), (3, None));
    let changed = text.replacen("\"cpu\",4000", "\"cpu\",1000", 1);
    assert_ne!(changed, text);
    let differs = replay(Cursor::new(&changed), registry()).expect("read").difference.expect("a difference");
    assert_eq!(differs.line, 3);
    let broken = replay(Cursor::new("{\"krafla_recording\":1}\n"), registry()).expect_err("refused").to_string();
    assert!(broken.starts_with("line 1:"), "{broken}");
}

/// Panics in the middle of the first gang that it sees.
struct Panicky;

static PANICKED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

impl krafla_framework::SessionPlugin for Panicky {
    fn name(&self) -> &'static str {
        "panicky"
    }

    fn points(&self) -> &'static [krafla_framework::Point] {
        &[]
    }

    fn on_allocate(&mut self, cluster: &krafla_model::ClusterState, task: krafla_model::TaskId) {
        if cluster.task(task).name.ends_with("-1") {
            assert!(PANICKED.swap(true, std::sync::atomic::Ordering::Relaxed), "a plugin's mistake");
        }
    }
}

#[test]
fn a_session_that_panics_is_dropped_and_the_next_one_works() {
    let mut registry = registry();
    registry.plugins.push(krafla_framework::PluginBuilder {
        info: krafla_framework::PluginInfo { name: "panicky", about: "panics once", arguments: &[], points: &[] },
        build: |_| Box::new(Panicky),
    });
    let mut engine = Engine::new(registry, Options::default());
    let text = "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: panicky\n";
    let configure = Input::Configuration { file: "scheduler.conf".into(), text: text.into() };
    engine.step(Time(0), [configure, node("n", 4_000), queue("default")]);
    let step = engine.step(Time(1), gang("a", 2, 1_000));
    assert_eq!((binds(&step.effects), engine.panics()), (Vec::new(), 1));
    assert_eq!(krafla_model::check::discrepancies(engine.cluster()), []);
    assert_eq!(engine.wakes_at(), Time(1_001), "it is tried again without being told to");
    let step = engine.step(Time(1_001), []);
    assert_eq!(binds(&step.effects), ["a-0 -> n", "a-1 -> n"]);
}
