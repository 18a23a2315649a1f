//! Gangs of whole nodes on a GPU cluster that is nearly full: how many fit once pods have been moved for them, against as many
//! moves of pods chosen at random. On the public trace openb, where `KRAFLA_DATA` has it.

use std::path::Path;

use krafla_engine::CycleReport;
use krafla_simulator::play::plan;
use krafla_simulator::trace::options::Options;
use krafla_simulator::trace::workload::{JobShape, PodShape, RoleShape, Workload};
use krafla_simulator::trace::{Kind, load};
use krafla_simulator::world::{Happening, Observer, Setup, Unobserved, World};
use krafla_test_suite::registry;

use krafla_framework::Decision;
use krafla_model::Time;

use crate::traces::data;

const MINUTE: i64 = 60_000;
const GANGS: usize = 10;
const PODS_OF_GANG: u32 = 2;

fn conf(gang: Option<usize>) -> String {
    let (action, told) = match gang {
        Some(i) => {
            (", defragment", format!("configurations:\n- name: defragment\n  arguments: {{job: {}}}\n", name(i)))
        }
        None => ("", String::new()),
    };
    format!(
        "actions: \"enqueue, allocate{action}\"\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}]\n\
         - plugins: [{{name: predicates}}, {{name: nodeorder}}]\n{told}"
    )
}

fn name(i: usize) -> String {
    format!("default/gang-{i}")
}

fn dice(a: u64) -> u64 {
    let mut x = a.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for _ in 0..3 {
        x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    x ^ (x >> 32)
}

/// The trace's pods in random order, until they ask for 90 percent of all GPUs; they stay for ever. Then a gang every ten
/// minutes.
fn workload(path: &Path) -> Workload {
    let mut workload = load(Kind::Openb, path, &Options::default()).expect("the trace loads");
    let has: i64 = workload.nodes.iter().map(|node| node.gpus * i64::from(node.count)).sum::<i64>() * 1_000;
    let mut jobs = std::mem::take(&mut workload.jobs);
    jobs.sort_by_cached_key(|job| {
        dice(job.name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))))
    });
    let mut asked = 0;
    for job in &mut jobs {
        let of = |one: &PodShape| if one.gpu_milli > 0 { one.gpu_milli } else { one.gpus * 1_000 };
        asked += job.roles.iter().map(|role| of(&role.request) * i64::from(role.replicas)).sum::<i64>();
        (job.submit_ms, job.runtime_ms, job.preemptible) = (0, None, true);
        if asked * 10 <= has * 9 {
            workload.jobs.push(job.clone());
        }
    }
    for i in 0..GANGS {
        let request = PodShape { cpu_milli: 8_000, memory_bytes: 16 << 30, gpus: 8, gpu_milli: 0 };
        workload.jobs.push(JobShape {
            name: format!("gang-{i}"),
            namespace: "default".into(),
            queue: "default".into(),
            user: None,
            submit_ms: 10 * MINUTE * i64::try_from(i + 1).expect("few"),
            runtime_ms: None,
            estimate_ms: None,
            roles: vec![RoleShape { name: "task".into(), replicas: PODS_OF_GANG, request }],
            min_member: PODS_OF_GANG,
            priority: None,
            preemptible: false,
            node_labels_any: None,
        });
    }
    workload
}

#[derive(Default)]
struct Moves(u32);

impl Observer for Moves {
    fn cycle(&mut self, _: &World, report: &CycleReport) {
        let evicts = report.decisions.iter().filter(|decision| matches!(decision, Decision::Evict(..)));
        self.0 += u32::try_from(evicts.count()).expect("few");
    }
}

fn starts(world: &World, i: usize) -> bool {
    let gang = world.jobs().iter().find(|job| *job.name == *format!("gang-{i}"));
    gang.is_some_and(|job| job.started.is_some())
}

fn world(workload: &Workload) -> World {
    let configuration = Some(("scheduler.conf".to_owned(), conf(None)));
    let mut setup = Setup { configuration, ..Setup::default() };
    setup.engine.events = false;
    let mut world = World::new(setup, registry);
    plan(&mut world, workload.clone());
    world.run_until(Time(5 * MINUTE), &mut Unobserved);
    world
}

#[test]
fn defragment_makes_room_for_more_gangs_than_chance_does() {
    let Some(path) = data("openb/openb_pod_list_default.csv") else { return };
    let workload = workload(&path);
    let at = |i: usize| 10 * MINUTE * i64::try_from(i + 1).expect("few");

    let mut chosen = world(&workload);
    let cluster = chosen.engine().cluster();
    let gpu = krafla_model::ResourceId::GPU;
    let (used, all) = (cluster.totals().used.get(gpu), cluster.totals().allocatable.get(gpu));
    println!("{} of {} GPUs are given out", used / 1_000, all / 1_000);
    let (mut moves, mut fit, mut by_gang) = (Moves::default(), 0, Vec::new());
    for i in 0..GANGS {
        let text = conf(Some(i));
        chosen.plan(Time(at(i) + MINUTE), Happening::Configure { file: "scheduler.conf".into(), text });
        chosen.run_until(Time(at(i) + 30_000), &mut moves);
        let by_itself = starts(&chosen, i);
        let before = moves.0;
        chosen.run_until(Time(at(i) + 9 * MINUTE), &mut moves);
        fit += usize::from(starts(&chosen, i));
        by_gang.push((by_itself, moves.0 - before, starts(&chosen, i)));
    }

    // As many pods with GPUs, chosen at random among those that run, evicted by somebody; they come back at once.
    let mut random = world(&workload);
    let mut by_chance = 0;
    for (i, (_, n, _)) in by_gang.iter().enumerate() {
        random.run_until(Time(at(i) + MINUTE), &mut Unobserved);
        let runs = |index: &usize| {
            let pod = random.pod(*index);
            !pod.gone
                && pod.spec.node.is_some()
                && pod.spec.shape.request.get(krafla_model::resources::GPU_NAME).is_some()
        };
        let mut running: Vec<usize> = (0..random.n_pods()).filter(runs).collect();
        running.sort_by_key(|index| dice((*index + 1_000_003 * i) as u64));
        for index in running.into_iter().take(*n as usize) {
            let name = random.pod(index).spec.name.clone();
            random.plan(Time(at(i) + MINUTE), Happening::EvictFrom { namespace: None, name });
        }
        random.run_until(Time(at(i) + 9 * MINUTE), &mut Unobserved);
        by_chance += usize::from(starts(&random, i));
    }
    println!(
        "gangs of {PODS_OF_GANG} pods of 8 GPUs: {fit} of {GANGS} fit after {} moves; by chance {by_chance}",
        moves.0
    );
    println!("by gang (without a move, moves, with): {by_gang:?}");
    assert!(fit > by_chance);
}
