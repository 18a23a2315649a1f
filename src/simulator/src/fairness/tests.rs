use krafla_model::{ResourceId, Time};
use proptest::prelude::*;

use super::*;
use crate::play::{Play, Played, play};
use crate::trace::workload::{
    Deserved, GpuSharing, JobShape, NodeShape, PodShape, QueueShape, RoleShape, Scaling, Workload,
};
use crate::world::{Restart, Setup};

/// Queues with `capacity`; `reclaim` as it is asked for, and jobs that go whole.
fn capacity(reclaim: bool) -> String {
    let action = if reclaim { ", reclaim" } else { "" };
    format!(
        "actions: \"enqueue, allocate{action}, backfill\"\ntiers:\n\
         - plugins: [{{name: priority}}, {{name: gang, enableReclaimable: false}}, {{name: conformance}}]\n\
         - plugins: [{{name: drf}}, {{name: predicates}}, {{name: capacity}}, {{name: nodeorder}}]\n"
    )
}

fn proportion() -> String {
    capacity(true).replace("capacity", "proportion")
}

/// Queue, second of submission, pods of one GPU that are all needed, seconds that they run, whether they may be evicted.
type Job = (&'static str, i64, u32, Option<i64>, bool);

/// Nodes of so many GPUs each; `a` and `b`, each due so many.
fn workload(nodes: &[i64], dues: [i64; 2], jobs: &[Job]) -> Workload {
    let node = |(i, gpus): (usize, &i64)| NodeShape {
        name: format!("n{i}"),
        count: 1,
        cpu_milli: 64_000,
        memory_bytes: 1 << 40,
        pods: 110,
        gpus: *gpus,
        gpu_sharing: GpuSharing::Whole,
        labels: Vec::new(),
    };
    let queue = |(name, gpus): (&str, i64)| QueueShape {
        name: name.to_owned(),
        weight: u32::try_from(gpus.max(1)).expect("small"),
        deserved: Some(Deserved { gpu_milli: gpus * 1_000, ..Deserved::default() }),
    };
    let job = |(i, (queue, submit_s, pods, run_s, preemptible)): (usize, &Job)| JobShape {
        name: format!("{queue}-{i:02}"),
        namespace: (*queue).to_owned(),
        queue: (*queue).to_owned(),
        user: None,
        submit_ms: submit_s * 1_000,
        runtime_ms: run_s.map(|s| s * 1_000),
        estimate_ms: None,
        roles: vec![RoleShape {
            name: "worker".to_owned(),
            replicas: *pods,
            request: PodShape { gpus: 1, ..PodShape::default() },
        }],
        min_member: *pods,
        priority: None,
        preemptible: *preemptible,
        node_labels_any: None,
    };
    let mut jobs: Vec<JobShape> = jobs.iter().enumerate().map(job).collect();
    jobs.sort_by(|one, other| (one.submit_ms, &one.name).cmp(&(other.submit_ms, &other.name)));
    Workload {
        name: "by hand".to_owned(),
        nodes: nodes.iter().enumerate().map(node).collect(),
        queues: [("a", dues[0]), ("b", dues[1])].map(queue).into(),
        priorities: Vec::new(),
        jobs,
        scaling: Scaling { time_compression: 1.0, trace_nodes: 1, nodes: 1 },
        notes: Vec::new(),
        problems: Vec::new(),
    }
}

fn played(workload: Workload, configuration: String) -> Played {
    let registry = || krafla_plugins::registry(krafla_actions::all());
    let setup = Setup {
        configuration: Some(("test.conf".to_owned(), configuration)),
        restart: Restart::FromCheckpoint { cost_ms: 0 },
        ..Setup::default()
    };
    play(Play::Trace(workload), setup, Some(Time(200_000)), registry, |_| {}, &mut |_| {})
}

fn accounts(played: &Played) -> [QueueFairness; 2] {
    assert_eq!(played.broken, Vec::<String>::new());
    ["a", "b"].map(|name| {
        let queue = played.record.queues.iter().find(|queue| queue.name == name).expect("had jobs");
        queue.fairness.clone().expect("is due something")
    })
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-9, "{got} is not {want}");
}

/// Eight GPUs, four due to each. `a` has them all from the start for 100 s; `b` wants four from the 10th second on.
fn late_claim(preemptible: bool) -> Workload {
    let mut jobs: Vec<Job> = vec![("a", 0, 1, Some(100), preemptible); 8];
    jobs.extend([("b", 10, 1, Some(50), true); 4]);
    workload(&[8], [4, 4], &jobs)
}

#[test]
fn a_gap_is_known_to_the_number() {
    let [a, b] = accounts(&played(late_claim(true), capacity(false)));
    assert_eq!((a.waited_ms, a.holds(), a.largest_gap), (0, true, 0.0));
    // Nothing of its four of eight for 90 seconds, and then all of it.
    assert_eq!((b.waited_ms, b.short_ms, b.usable_ms, b.largest_gap_at_ms), (90_000, 90_000, 90_000, 10_000));
    close(b.mean_gap, 0.5);
    close(b.largest_gap, 0.5);
    assert!(!b.holds());
    let longest = b.longest.expect("was short");
    assert_eq!((longest.from_ms, longest.length_ms, longest.job.as_str()), (10_000, 90_000, "b-08"));
    assert!(longest.text.contains("GPU") || longest.text.contains("gpu"), "{}", longest.text);
    assert_eq!(b.reasons, [(longest.code, 1.0)]);
}

#[test]
fn a_queue_that_reclaims_its_due_has_no_gap() {
    let [a, b] = accounts(&played(late_claim(true), capacity(true)));
    assert!(a.holds() && b.holds());
    assert_eq!((a.evictions, b.evictions), (4, 0));
    close(b.largest_gap, 0.0);
    // What was evicted waits again, and holds its own due meanwhile.
    assert!(a.waited_ms > 0);
    close(a.largest_gap, 0.0);
}

#[test]
fn a_gap_from_pods_that_may_not_be_evicted_is_not_hidden() {
    let [a, b] = accounts(&played(late_claim(false), capacity(true)));
    assert_eq!((a.evictions, b.short_ms, b.short_stretches), (0, 90_000, 1));
    close(b.mean_gap, 0.5);
}

#[test]
fn a_gap_from_jobs_at_their_minimum_is_not_hidden() {
    // As Volcano has it, `gang` keeps each of them: one pod is all that it needs.
    let kept = capacity(true).replace(", enableReclaimable: false", "");
    let [a, b] = accounts(&played(late_claim(true), kept));
    assert_eq!((a.evictions, b.short_ms, b.holds()), (0, 90_000, false));
    assert_eq!(b.reasons.len(), 1);
}

#[test]
fn a_gang_larger_than_its_due_excuses_nothing_and_hides_nothing() {
    let mut jobs: Vec<Job> = vec![("a", 0, 1, Some(100), true); 8];
    jobs.push(("b", 10, 6, Some(50), true));
    let [_, b] = accounts(&played(workload(&[8], [4, 4], &jobs), capacity(true)));
    // Its due gives it no right to six; but what it lacked is told, with the reason.
    assert!(b.holds());
    assert_eq!(b.usable_ms, 0);
    close(b.largest_gap, 0.5);
    assert_eq!(b.reasons.len(), 1);

    // A single pod beside it could have been served: four of its due were free of any right.
    jobs.push(("b", 10, 1, Some(50), false));
    let [_, b] = accounts(&played(workload(&[8], [4, 4], &jobs), capacity(false)));
    assert!(!b.holds());
    assert_eq!((b.short_ms, b.usable_ms), (90_000, 90_000));
}

#[test]
fn a_gap_of_one_job_is_no_shortness() {
    // Five due to each of ten; `b` has two gangs of three: one fits into its due, and the second would exceed it.
    let mut jobs: Vec<Job> = vec![("a", 0, 1, Some(100), true); 10];
    jobs.extend([("b", 10, 3, Some(50), true); 2]);
    let [_, b] = accounts(&played(workload(&[10], [5, 5], &jobs), capacity(true)));
    assert!(b.holds(), "{b:?}");
    assert_eq!((b.usable_ms, b.short_ms), (0, 0));
    close(b.largest_gap, 0.2);
}

#[test]
fn a_short_stretch_settles() {
    let waits = |is_short| Moment {
        queue: "a".into(),
        held: 0.0,
        due: 0.5,
        waits: true,
        gap: 0.5,
        is_short,
        is_usable: false,
        reasons: BTreeMap::from([("X", 1.0)]),
        oldest: None,
    };
    let short_ms = |until_ms| {
        let mut account = Account::default();
        account.passes(&waits(true), 0, until_ms, 10_000);
        account.passes(&waits(false), until_ms, 60_000, 10_000);
        let account = account.close(10_000);
        close(account.mean_gap, 0.5);
        account.short_ms
    };
    assert_eq!((short_ms(10_000), short_ms(10_001)), (0, 10_001));
}

proptest! {
    /// With equal pods and two queues, no queue that asks for its due is below it by more than a pod, once it is quiet.
    #[test]
    fn nobody_who_asks_for_its_due_lacks_more_than_a_pod_of_it(
        nodes in prop::collection::vec(1i64..5, 1..4),
        part in 0i64..=12,
        jobs in prop::collection::vec((any::<bool>(), 0i64..100, prop::option::of(5i64..60)), 1..24),
        divides in any::<bool>(),
    ) {
        let all: i64 = nodes.iter().sum();
        let due = all * part / 12;
        let jobs: Vec<Job> = jobs.iter().map(|(a, at, run)| (if *a { "a" } else { "b" }, *at, 1, *run, true)).collect();
        let played = played(
            workload(&nodes, [due, all - due], &jobs),
            if divides { proportion() } else { capacity(true) },
        );
        prop_assert_eq!(&played.broken, &Vec::<String>::new());
        let engine = played.world.engine();
        for (id, queue) in engine.cluster().queues().filter(|(_, queue)| queue.n_jobs() > 0) {
            let due = engine.configuration().plugins().deserved(id).expect("says").get(ResourceId::GPU);
            let (held, pending) = (queue.held().allocated.get(ResourceId::GPU), queue.held().pending.get(ResourceId::GPU));
            prop_assert!(due.min(held + pending) - held <= 1_000, "{}: holds {held} of {due}", queue.spec.name);
        }
        for queue in &played.record.queues {
            let account = queue.fairness.as_ref().expect("is due something");
            prop_assert!(account.holds(), "{}: {:?}", queue.name, account);
        }
    }
}
