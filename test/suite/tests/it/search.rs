//! The searcher's shortcuts leave out only what would be refused again: with and without them the same nodes are chosen.

use krafla_framework::search::SearchLimits;
use krafla_framework::{Found, PluginEntry, PluginSet, Policy, Searcher};
use krafla_model::TaskId;
use krafla_test_suite::registry;
use krafla_testkit::Scene;
use proptest::prelude::*;

fn policy(scored: bool) -> Policy {
    let mut policy = Policy::builtin();
    policy.actions = vec!["allocate".to_owned()];
    policy.tiers.truncate(1);
    let mut names = vec!["gang", "predicates"];
    if scored {
        names.extend(["nodeorder", "binpack"]);
    }
    policy.tiers[0].plugins = names.into_iter().map(PluginEntry::named).collect();
    policy
}

proptest! {
    #[test]
    fn a_search_that_remembers_finds_what_a_fresh_one_finds(
        cpus in proptest::collection::vec(1_u32..9, 1..6),
        shapes in proptest::collection::vec((1_u32..5, 1_u32..5), 1..5),
        give_back in proptest::collection::vec(any::<bool>(), 40),
        scored in any::<bool>(),
        may_wait in any::<bool>(),
    ) {
        let mut scene = Scene::new();
        for (i, cpu) in cpus.iter().enumerate() {
            scene = scene.node(&format!("n{i}"), &format!("{cpu}c"));
        }
        for (i, (n, cpu)) in shapes.iter().enumerate() {
            scene = scene.job(&format!("j{i}"), |job| job.pending(*n, &format!("{cpu}c")));
        }
        scene = scene.job("leaving", |job| job.releasing(1, "1c", "n0"));
        let mut cluster = scene.build();
        let plugins = PluginSet::build(&policy(scored), &registry());
        let limits = SearchLimits { may_start: true, may_wait };
        let mut remembers = Searcher::default();
        let tasks: Vec<TaskId> = cluster.tasks().filter(|(_, t)| t.status().is_waiting()).map(|(id, _)| id).collect();
        let start = cluster.savepoint();
        for (task, undo) in tasks.into_iter().zip(give_back) {
            let with = remembers.find_anywhere(plugins.profile(), &cluster, task, limits, None);
            let without = Searcher::default().find(plugins.profile(), &cluster, task, cluster.nodes(), limits, None);
            // The words of a refusal are those of when it was first found, the choice is the same.
            match (&with, &without) {
                (Found::Nothing(old), Found::Nothing(new)) => prop_assert_eq!(old.nodes, new.nodes),
                _ => prop_assert_eq!(&with, &without),
            }
            if let Found::Node { node, room, .. } = with {
                let done = match room {
                    krafla_framework::Room::Now => cluster.allocate(task, node),
                    krafla_framework::Room::AfterRelease => cluster.pipeline(task, node),
                };
                prop_assert!(done.is_ok(), "{:?}", done);
            }
            if undo {
                cluster.undo_one(start);
            }
        }
    }
}

/// A plugin of another crate, as its owner would write it: it always prefers the last of the scored nodes.
struct Contrary;

impl krafla_framework::SessionPlugin for Contrary {
    fn name(&self) -> &'static str {
        "contrary"
    }

    fn points(&self) -> &'static [krafla_framework::Point] {
        &[krafla_framework::Point::BestNode]
    }

    fn best_node(
        &self,
        _: &krafla_model::ClusterState,
        _: TaskId,
        scored: &[(krafla_model::NodeId, f64)],
    ) -> Option<krafla_model::NodeId> {
        scored.last().map(|(node, _)| *node)
    }
}

#[test]
fn a_plugin_from_outside_may_choose_among_the_scored_nodes() {
    let mut registry = registry();
    registry.plugins.push(krafla_framework::PluginBuilder {
        info: krafla_framework::PluginInfo {
            name: "contrary",
            about: "prefers the worst node",
            arguments: &[],
            points: &[krafla_framework::Point::BestNode],
        },
        build: |_| Box::new(Contrary),
    });
    let scene = || Scene::new().node("a", "8c").node("b", "4c").job("j", |job| job.pending(1, "1c"));
    let conf = |more: &str| {
        format!("actions: \"allocate\"\ntiers:\n- plugins:\n  - name: predicates\n  - name: nodeorder\n{more}")
    };
    let plain = krafla_testkit::run(scene().build(), &registry, &conf(""));
    let contrary = krafla_testkit::run(scene().build(), &registry, &conf("  - name: contrary\n"));
    assert_eq!((plain.binds, contrary.binds), (vec!["j-0 -> a".to_owned()], vec!["j-0 -> b".to_owned()]));
}
