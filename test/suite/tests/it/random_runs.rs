//! Laws over random workloads played to their end in the simulated cluster.

use krafla_engine::CycleReport;
use krafla_model::check::discrepancies;
use krafla_model::{TaskStatus, Time};
use krafla_simulator::play::{Play, play};
use krafla_simulator::report::json::to_json;
use krafla_simulator::report::summary::summarize;
use krafla_simulator::trace::workload::{
    GpuSharing, JobShape, NodeShape, PodShape, QueueShape, RoleShape, Scaling, Workload,
};
use krafla_simulator::world::{Fault, Happening, Observer, Setup, Verb, World};
use krafla_test_suite::registry;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct RandomJob {
    submit_s: i64,
    run_s: i64,
    pods: u32,
    cpu: i64,
    min: u32,
    queue: bool,
}

fn jobs() -> impl Strategy<Value = Vec<RandomJob>> {
    let job = (0_i64..100, 0_i64..60, 1_u32..6, 1_i64..5, 1_u32..6, any::<bool>()).prop_map(
        |(submit_s, run_s, pods, cpu, min, queue)| RandomJob { submit_s, run_s, pods, cpu, min: min.min(pods), queue },
    );
    proptest::collection::vec(job, 1..25)
}

fn workload(nodes: u32, jobs: &[RandomJob]) -> Workload {
    let queue = |name: &str, weight| QueueShape { name: name.into(), weight, deserved: None };
    let mut shapes: Vec<JobShape> = jobs
        .iter()
        .enumerate()
        .map(|(i, job)| JobShape {
            name: format!("job-{i:03}"),
            namespace: "default".into(),
            queue: if job.queue { "a" } else { "b" }.into(),
            user: None,
            submit_ms: job.submit_s * 1_000,
            runtime_ms: Some(job.run_s * 1_000),
            estimate_ms: None,
            roles: vec![RoleShape {
                name: "task".into(),
                replicas: job.pods,
                request: PodShape { cpu_milli: job.cpu * 1_000, ..PodShape::default() },
            }],
            min_member: job.min,
            priority: None,
            preemptible: false,
            node_labels_any: None,
        })
        .collect();
    shapes.sort_by(|a, b| (a.submit_ms, &a.name).cmp(&(b.submit_ms, &b.name)));
    Workload {
        name: "random".into(),
        nodes: vec![NodeShape {
            name: "n".into(),
            count: nodes,
            cpu_milli: 8_000,
            memory_bytes: 1 << 40,
            pods: 110,
            gpus: 0,
            gpu_sharing: GpuSharing::Whole,
            labels: Vec::new(),
        }],
        queues: vec![queue("a", 2), queue("b", 1)],
        priorities: Vec::new(),
        jobs: shapes,
        scaling: Scaling { time_compression: 1.0, trace_nodes: u64::from(nodes), nodes: u64::from(nodes) },
        notes: Vec::new(),
        problems: Vec::new(),
    }
}

/// Checks the books and every gang after every cycle.
#[derive(Default)]
struct Watch {
    broken: Vec<String>,
}

impl Observer for Watch {
    fn cycle(&mut self, world: &World, _: &CycleReport) {
        let cluster = world.engine().cluster();
        self.broken.extend(discrepancies(cluster).iter().map(ToString::to_string));
        for (id, job) in cluster.jobs() {
            let holding = job.counts().sum(|s| s.is_committed() || s == TaskStatus::Succeeded);
            if holding > 0 && holding < job.min_available() {
                self.broken.push(format!("{} has {holding} of {}", cluster.job_label(id), job.min_available()));
            }
        }
    }
}

fn run(nodes: u32, jobs: &[RandomJob]) -> String {
    let played = play(Play::Trace(workload(nodes, jobs)), Setup::default(), None, registry, |_| {}, &mut |_| {});
    assert_eq!(played.broken, Vec::<String>::new());
    to_json(&played.record, &summarize(&played.record, 0.0), None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_same_workload_gives_the_same_bytes(jobs in jobs()) {
        prop_assert_eq!(run(3, &jobs), run(3, &jobs));
    }

    #[test]
    fn everything_that_fits_ends_whatever_goes_wrong_meanwhile(jobs in jobs(), faults in proptest::collection::vec((0_i64..120, 0_u8..5, 1_u32..4), 0..6)) {
        let setup = Setup { bind_latency_ms: 500, start_latency_ms: 200, ..Setup::default() };
        let played = play(Play::Trace(workload(3, &jobs)), setup, None, registry, |new| {
            for (at, kind, count) in &faults {
                let fault = match kind {
                    0 => Fault::Refuse { verb: Verb::Bind, count: *count },
                    1 => Fault::Hang { verb: Verb::Bind, count: *count },
                    2 => Fault::Lose { verb: Verb::Bind, count: *count },
                    3 => Fault::ApiDown { for_ms: i64::from(*count) * 3_000 },
                    _ => Fault::Restart,
                };
                new.plan(Time(at * 1_000), Happening::Fault(fault));
            }
        }, &mut |_| {});
        prop_assert_eq!(played.broken, Vec::<String>::new());
        let world = played.world;
        prop_assert_eq!(world.engine().panics(), 0);
        prop_assert_eq!(discrepancies(world.engine().cluster()), vec![]);
        // A gang of up to 5 pods of up to 4 CPUs fits three nodes of 8 CPUs when they are empty, and the queue shares
        // of an empty cluster are the whole of it.
        let left: Vec<String> = world.jobs().iter().filter(|job| job.finished.is_none()).map(|job| {
            let cluster = world.engine().cluster();
            let id = cluster.find_job(&job.namespace, &job.name);
            let why = id.and_then(|id| world.engine().reasons().job(id)).map(|s| s.reason.to_string());
            format!("{} {:?}", job.name, why)
        }).collect();
        prop_assert_eq!(left, Vec::<String>::new());
    }

    //
    #[test]
    fn gangs_are_whole_and_the_books_right_after_every_cycle(jobs in jobs()) {
        let mut world = World::new(Setup::default(), registry);
        let mut watch = Watch::default();
        krafla_simulator::play::plan(&mut world, workload(3, &jobs));
        world.run_until(Time(1_000_000), &mut watch);
        prop_assert_eq!(watch.broken, Vec::<String>::new());
    }
}
