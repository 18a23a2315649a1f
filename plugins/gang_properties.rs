//! Gangs are whole, whatever arrives in which order.

use krafla_model::{ClusterState, Event, TaskStatus};
use krafla_testkit::Scene;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::testing::{conf, registry};

const PLUGINS: &[&str] = &["priority", "gang", "drf", "predicates", "nodeorder"];

/// One gang: its minimum, how many pods it has beyond it, and what they ask for in cores, by turns. No core: nothing.
#[derive(Clone, Debug)]
struct Gang {
    min: u32,
    beyond: u32,
    cores: Vec<u32>,
}

fn gang(kinds: std::ops::Range<usize>) -> impl Strategy<Value = Gang> {
    (0_u32..5, 0_u32..3, proptest::collection::vec(0_u32..4, kinds)).prop_map(|(min, beyond, cores)| Gang {
        min,
        beyond,
        cores,
    })
}

fn scene(nodes: &[u32], gangs: &[Gang]) -> Scene {
    let with_nodes = nodes
        .iter()
        .enumerate()
        .fold(Scene::new(), |scene, (i, cores)| scene.node(&format!("n{i}"), &format!("{cores}c")));
    gangs.iter().enumerate().fold(with_nodes, |scene, (i, gang)| {
        scene.job(&format!("j{i}"), |job| {
            (0..gang.min + gang.beyond).fold(job.min(gang.min), |job, k| {
                match gang.cores[k as usize % gang.cores.len()] {
                    0 => job.pending(1, ""),
                    cores => job.pending(1, &format!("{cores}c")),
                }
            })
        })
    })
}

/// Each job that holds fewer than its minimum, but something.
fn partial(cluster: &ClusterState) -> Vec<String> {
    let held = |job: &krafla_model::Job| job.counts().sum(TaskStatus::is_allocated);
    let jobs = cluster.jobs().filter(|(_, job)| held(job) > 0 && held(job) < job.min_available());
    jobs.map(|(_, job)| format!("{} has {} of {}", job.spec.name, held(job), job.min_available())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_session_starts_gangs_whole(
        nodes in proptest::collection::vec(1_u32..7, 1..4),
        gangs in proptest::collection::vec(gang(1..4), 1..5),
    ) {
        let outcome = krafla_testkit::run(scene(&nodes, &gangs).build(), &registry(), &conf("allocate, backfill", &[PLUGINS]));
        prop_assert_eq!(partial(&outcome.cluster), Vec::<String>::new());
    }

    /// For gangs of equal pods. Pods that differ are placed one by one, and a gang that failed on roomy nodes may by
    /// chance succeed on fuller ones.
    #[test]
    fn a_second_session_has_nothing_to_add(
        nodes in proptest::collection::vec(1_u32..7, 1..4),
        gangs in proptest::collection::vec(gang(1..2), 1..5),
    ) {
        let conf = conf("allocate, backfill", &[PLUGINS]);
        let first = krafla_testkit::run(scene(&nodes, &gangs).build(), &registry(), &conf);
        let second = krafla_testkit::run(first.settled(), &registry(), &conf);
        prop_assert_eq!(second.binds, Vec::<String>::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// two jobs that each need all four GPUs; one whole job runs, never a part of either.
    #[test]
    fn two_gangs_never_take_half_of_the_gpus_each(arrivals in proptest::collection::vec(any::<Index>(), 8), sessions in any::<u8>()) {
        let (registry, conf) = (registry(), conf("allocate", &[PLUGINS]));
        let all = ["a", "b"].into_iter().fold(Scene::new().node("n0", "8c2g").node("n1", "8c2g"), |scene, name| {
            scene.job(name, |job| job.min(4).pending(4, "1c1g"))
        });
        let (mut pods, others): (Vec<Event>, Vec<Event>) =
            all.events().into_iter().partition(|event| matches!(event, Event::Pod(_)));
        let mut cluster = ClusterState::new();
        for event in others {
            cluster.apply(event);
        }
        for (i, arrival) in arrivals.iter().enumerate() {
            cluster.apply(pods.swap_remove(arrival.index(pods.len())));
            if sessions >> i & 1 == 1 || pods.is_empty() {
                cluster = krafla_testkit::run(cluster, &registry, &conf).settled();
                prop_assert_eq!(partial(&cluster), Vec::<String>::new());
            }
        }
        let mut held: Vec<u32> = cluster.jobs().map(|(_, job)| job.counts().sum(TaskStatus::is_allocated)).collect();
        held.sort_unstable();
        prop_assert_eq!(held, [0, 4]);
    }
}
