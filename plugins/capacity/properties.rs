//! Laws on small random trees of queues, in which some parents are wrong and amounts need not add up.
//!
//! - No queue holds more than its capability, nor more than its parent may hold; a second session adds nothing.
//! - A pod waits only with a reason: the cluster is full, a queue is at a limit, or its queue has no place for jobs.
//! - A wrong parent harms nobody else: who ran among sound queues alone runs as well beside broken ones.
//! - Who gives back is over its due in what it gives, and keeps its guarantee.

use krafla_model::{Resources, TaskId};
use krafla_testkit::{Outcome, Scene};
use proptest::prelude::*;

use crate::queue_limits::without_pods;
use crate::testing::{conf, registry, run};

const TREE: &str = "capacity enableHierarchy=true ancestorReclaimLevel=1";
const ALL: &[&str] = &["gang", TREE, "predicates"];

/// Of one queue, amounts in cores; 0 is none.
#[derive(Clone, Debug)]
struct Drawn {
    /// Which of the queues before it is above it; the root for a number that is too large.
    parent: usize,
    capability: u32,
    deserved: u32,
    guarantee: u32,
    /// Jobs: how many of their pods run, how many wait, and how many cores each asks for.
    jobs: Vec<(u32, u32, u32)>,
    is_broken: bool,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let jobs = prop::collection::vec((0_u32..3, 0_u32..5, 1_u32..3), 0..3);
    (0_usize..6, 0_u32..8, 0_u32..6, 0_u32..4, jobs, prop::bool::weighted(0.15)).prop_map(
        |(parent, capability, deserved, guarantee, jobs, is_broken)| Drawn {
            parent,
            capability,
            deserved,
            guarantee,
            jobs,
            is_broken,
        },
    )
}

/// A node of so many cores, and so many more for what runs already.
fn scene(cores: u32, queues: &[Drawn], has_running: bool) -> Scene {
    let running = |queue: &Drawn| queue.jobs.iter().map(|(n, _, asks)| n * asks).sum::<u32>();
    let used = if has_running { queues.iter().map(running).sum() } else { 0 };
    let mut scene = Scene::new().node("n", &format!("{}c1000p", cores + used)).queue("root", |queue| queue);
    for (q, drawn) in queues.iter().enumerate() {
        let parent = match drawn.parent {
            _ if drawn.is_broken => "nowhere".to_owned(),
            parent if parent < q => format!("q{parent}"),
            _ => "root".to_owned(),
        };
        scene = scene.queue(&format!("q{q}"), |queue| {
            let queue = if drawn.capability > 0 { queue.capability(&format!("{}c", drawn.capability)) } else { queue };
            queue.parent(&parent).deserved(&format!("{}c", drawn.deserved)).guarantee(&format!("{}c", drawn.guarantee))
        });
        for (j, (running, waiting, asks)) in drawn.jobs.iter().enumerate() {
            let asks = format!("{asks}c");
            let running = if has_running { *running } else { 0 };
            scene = scene.job(&format!("q{q}-{j}"), |job| {
                job.queue(&format!("q{q}")).running(running, &asks, "n").pending(*waiting, &asks)
            });
        }
    }
    scene
}

fn bound(outcome: &Outcome, queues: usize) -> Vec<usize> {
    (0..queues).map(|q| (0..3).map(|j| outcome.n_bound(&format!("q{q}-{j}"))).sum()).collect()
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(200))]

    #[test]
    fn limits_hold_at_every_level_and_who_waits_is_told_why((cores, queues) in (1_u32..16, prop::collection::vec(drawn(), 1..6))) {
        let outcome = run(&scene(cores, &queues, false), "allocate", ALL);
        for (_, queue) in outcome.cluster.queues() {
            let held = without_pods(&queue.held().allocated);
            prop_assert!(held.first_over(&Resources::default(), &queue.capability).is_none(), "{}", queue.spec.name);
        }
        for (id, job) in outcome.cluster.jobs() {
            let waits = !job.held().pending.is_zero();
            let told = outcome.reasons.get(job.spec.name.as_str()).map(|(_, text)| text.as_str()).unwrap_or_default();
            prop_assert_eq!(waits, told.contains(|c: char| c.is_ascii_digit()), "{} {}", outcome.cluster.job_label(id), told);
        }
        let again = krafla_testkit::run(outcome.settled(), &registry(), &conf("allocate", &[ALL]));
        prop_assert_eq!(again.binds, Vec::<String>::new());
    }

    #[test]
    fn every_queue_has_as_many_keys(queues in prop::collection::vec(drawn(), 1..6)) {
        let mut cluster = scene(1, &queues, true).build();
        let keys = krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&[TREE]]), |session| {
            let (cluster, plugins) = (session.cluster(), session.plugins());
            let keys = |(id, _)| plugins.queue_rank(cluster, id).0.keys().len();
            cluster.queues().map(keys).collect::<Vec<_>>()
        });
        prop_assert!(keys.iter().all(|n| *n == keys[0]), "{keys:?}");
    }

    #[test]
    fn a_wrong_parent_harms_nobody_else((cores, queues) in (1_u32..16, prop::collection::vec(drawn(), 1..6))) {
        let with = bound(&run(&scene(cores, &queues, false), "allocate", ALL), queues.len());
        // The same without the jobs of queues that are broken, or below one.
        let mut lost = vec![false; queues.len()];
        for q in 0..queues.len() {
            lost[q] = queues[q].is_broken || (queues[q].parent < q && lost[queues[q].parent]);
        }
        let mut without = queues.clone();
        for (drawn, lost) in without.iter_mut().zip(&lost) {
            if *lost {
                drawn.jobs.clear();
            }
        }
        let alone = bound(&run(&scene(cores, &without, false), "allocate", ALL), queues.len());
        prop_assert_eq!(with, alone);
    }

    #[test]
    fn who_gives_back_is_over_its_due_and_keeps_its_guarantee((queues, who) in (prop::collection::vec(drawn(), 2..6), 0_usize..64)) {
        let mut cluster = scene(1, &queues, true).build();
        let waiting: Vec<TaskId> = cluster.tasks().filter(|(_, task)| task.node().is_none()).map(|(id, _)| id).collect();
        prop_assume!(!waiting.is_empty());
        let reclaimer = waiting[who % waiting.len()];
        let queue_of = |cluster: &krafla_model::ClusterState, task: TaskId| {
            cluster.task(task).job.and_then(|job| cluster.job(job).queue).unwrap()
        };
        let own = queue_of(&cluster, reclaimer);
        let candidates: Vec<TaskId> = cluster
            .tasks()
            .filter(|(id, task)| task.node().is_some() && queue_of(&cluster, *id) != own)
            .map(|(id, _)| id)
            .collect();
        let (victims, dues) = krafla_testkit::ask(&mut cluster, &registry(), &conf("allocate", &[&[TREE]]), |session| {
            let (cluster, plugins) = (session.cluster(), session.plugins());
            let dues: Vec<_> = cluster.queues().map(|(id, _)| (id, plugins.deserved(id).unwrap())).collect();
            (plugins.reclaimable(cluster, reclaimer, &candidates), dues)
        });
        for victim in victims {
            let queue = queue_of(&cluster, victim);
            let due = &dues.iter().find(|(id, _)| *id == queue).unwrap().1;
            // An inner queue's own jobs count with those of the queues below it.
            let held = without_pods(&cluster.queue(queue).held().allocated);
            prop_assert!(!held.within(due), "{held:?} of {due:?}");
            cluster.evict(victim).unwrap();
            prop_assert!(cluster.queue(queue).guarantee.within(&cluster.queue(queue).held().allocated));
        }
    }
}
