//! Gangs of whole nodes on a GPU cluster that is nearly full: how many fit once pods have been moved for them, against as many
//! moves of pods chosen at random. On the public trace openb, where `KRAFLA_DATA` has it.

use krafla_simulator::experiment::defragment::{LIST, run, table};
use krafla_test_suite::registry;
use krafla_testkit::{Outcome, Scene, run as session};
use proptest::prelude::*;

use crate::traces::data;

#[test]
fn defragment_makes_room_for_more_gangs_than_chance_does() {
    let Some(list) = data(&format!("openb/{LIST}")) else { return };
    let folder = list.parent().expect("a folder");
    let report = run(folder, 0, registry, |_, _| {}).expect("the trace loads");
    println!("{}", table(&report, 100));
    let (fit, by_chance, moves) = report.totals();
    assert!(fit > by_chance && moves > 0, "{report:?}");
}

/// A cluster of one resource: what each node has, pods that may move by node, and what each pod of the gang asks for.
#[derive(Clone, Debug)]
struct Small {
    nodes: Vec<i64>,
    pods: Vec<(usize, i64)>,
    gang: Vec<i64>,
}

impl Small {
    fn held(&self, node: usize) -> i64 {
        self.pods.iter().filter(|(on, _)| *on == node).map(|(_, asks)| asks).sum()
    }

    /// The fewest pods that have to be moved, by trying everything; `None` if no moves serve.
    fn fewest(&self) -> Option<usize> {
        (0..=self.pods.len()).find(|n| {
            let sets = (0_u32..1 << self.pods.len()).filter(|set| set.count_ones() as usize == *n);
            sets.into_iter().any(|set| self.serves(set))
        })
    }

    fn serves(&self, set: u32) -> bool {
        let goes = |i: &usize| set & (1 << i) != 0;
        let who: Vec<usize> = (0..self.pods.len()).filter(goes).collect();
        let mut free: Vec<i64> = (0..self.nodes.len()).map(|node| self.nodes[node] - self.held(node)).collect();
        let mut then = free.clone();
        for &i in &who {
            let (node, asks) = self.pods[i];
            then[node] += asks;
        }
        self.place(&who, 0, &mut free, &mut then)
    }

    /// The gang goes where there is room once all have gone; who goes needs room right now, beside the gang.
    fn place(&self, who: &[usize], at: usize, free: &mut [i64], then: &mut [i64]) -> bool {
        if at == self.gang.len() + who.len() {
            return true;
        }
        let own = at.checked_sub(self.gang.len()).map(|i| self.pods[who[i]]);
        let asks = own.map_or_else(|| self.gang[at], |(_, asks)| asks);
        (0..self.nodes.len()).any(|node| {
            let fits = then[node] >= asks && own.is_none_or(|(from, _)| free[node] >= asks && from != node);
            if !fits {
                return false;
            }
            then[node] -= asks;
            free[node] -= if own.is_some() { asks } else { 0 };
            let serves = self.place(who, at + 1, free, then);
            then[node] += asks;
            free[node] += if own.is_some() { asks } else { 0 };
            serves
        })
    }

    fn outcome(&self) -> Outcome {
        let mut scene = Scene::new();
        for (i, has) in self.nodes.iter().enumerate() {
            scene = scene.node(&format!("n{i}"), &format!("{has}c"));
        }
        for (i, (node, asks)) in self.pods.iter().enumerate() {
            scene = scene.job(&format!("p{i}"), |job| {
                job.min(1).shape(|shape| shape.controlled = true).running(1, &format!("{asks}c"), &format!("n{node}"))
            });
        }
        let min = u32::try_from(self.gang.len()).expect("few");
        scene = scene
            .job("gang", |job| self.gang.iter().fold(job.min(min), |job, asks| job.pending(1, &format!("{asks}c"))));
        session(scene.build(), &registry(), CONF)
    }
}

const CONF: &str = "actions: \"defragment\"\ntiers:\n- plugins: [{name: gang}]\n- plugins: [{name: predicates}]\n\
                    configurations:\n- name: defragment\n  arguments: {job: default/gang}\n";

fn small() -> impl Strategy<Value = Small> {
    let pods = prop::collection::vec((any::<prop::sample::Index>(), 1_i64..4), 1..9);
    let gang = prop_oneof![
        // Equal pods, and different ones.
        (1_usize..4, 1_i64..5).prop_map(|(n, asks)| vec![asks; n]),
        prop::collection::vec(1_i64..6, 1..4),
    ];
    (prop::collection::vec(3_i64..8, 2..5), pods, gang).prop_map(|(nodes, wished, gang)| {
        let mut small = Small { nodes, pods: Vec::new(), gang };
        for (index, asks) in wished {
            let node = index.index(small.nodes.len());
            if small.held(node) + asks <= small.nodes[node] {
                small.pods.push((node, asks));
            }
        }
        small
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Against everything that could be done: no plan where there is none, and never a move too many.
    #[test]
    fn no_fewer_moves_would_do(small in small()) {
        let outcome = small.outcome();
        prop_assert_eq!(small.fewest().unwrap_or(0), outcome.evictions.len(), "{:?}", outcome.evictions);
    }
}

/// Pod by pod, each of two pods of 4 would go where one pod of 3 makes room: two moves. As a whole, one move of a pod
/// that leaves room for both.
#[test]
fn a_gang_is_looked_at_as_a_whole() {
    let small = Small { nodes: vec![8, 4, 4, 8], pods: vec![(0, 5), (1, 1), (2, 1), (3, 3)], gang: vec![4, 4] };
    assert_eq!((small.fewest(), small.outcome().evictions.len()), (Some(1), 1));
}
