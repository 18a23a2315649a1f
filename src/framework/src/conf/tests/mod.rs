//! Tests of the configuration compiler, from text to problems and policies.

mod mistakes;
mod policies;
mod small;
mod warnings;
mod wrapped;

use super::catalogue::{ActionInfo, ArgumentInfo, ArgumentKind, Catalogue, PluginInfo};
use super::compile::{Compiled, compile};
use super::policy::Policy;
use super::switches::Point;

const ANY_INTEGER: ArgumentKind = ArgumentKind::Integer { min: 0, max: i64::MAX };

const fn takes(key: &'static str, kind: ArgumentKind, default: &'static str) -> ArgumentInfo {
    ArgumentInfo::new(key, kind, default, "")
}

/// A catalogue with one of each kind of thing.
fn catalogue() -> Catalogue {
    const CACHE: ArgumentInfo = takes("predicateErrorCacheEnable", ArgumentKind::Bool, "true");
    let action = |name, places, arguments| ActionInfo { name, about: "", places, arguments };
    let plugin = |name, points, arguments| PluginInfo { name, about: "what it is for", arguments, points };
    Catalogue {
        actions: vec![
            action("enqueue", false, &[]),
            action("allocate", true, &[CACHE]),
            action("backfill", true, &[CACHE]),
            action(
                "preempt",
                false,
                const { &[CACHE, takes("minCandidateNodesPercentage", ArgumentKind::Integer { min: 0, max: 100 }, "10")] },
            ),
            action("reclaim", false, &[CACHE]),
        ],
        plugins: vec![
            plugin("priority", &[Point::JobOrder, Point::TaskOrder, Point::Preemptable], &[]),
            plugin("gang", &[Point::JobOrder, Point::JobReady, Point::JobPipelined, Point::Preemptable], &[]),
            plugin("conformance", &[Point::Preemptable, Point::Reclaimable], &[]),
            plugin("drf", &[Point::JobOrder, Point::Preemptable, Point::QueueOrder, Point::Hierarchy], &[]),
            plugin("proportion", &[Point::QueueOrder, Point::Overused, Point::JobEnqueueable], &[]),
            plugin(
                "capacity",
                &[Point::QueueOrder, Point::JobEnqueueable, Point::Hierarchy],
                const { &[takes("ancestorReclaimLevel", ANY_INTEGER, "0")] },
            ),
            plugin(
                "overcommit",
                &[Point::JobEnqueueable],
                const { &[takes("overcommit-factor", ArgumentKind::Number { min: 1.0, max: f64::INFINITY }, "1.2")] },
            ),
            plugin(
                "predicates",
                &[Point::Predicate],
                const {
                    &[
                        takes("predicate.NodePortsEnable", ArgumentKind::Bool, "true"),
                        takes("volumebinding.shape", ArgumentKind::Any, ""),
                        ArgumentInfo::new("predicate.Old", ArgumentKind::Unread, "", "the feature gate decides"),
                    ]
                },
            ),
            plugin("nodeorder", &[Point::NodeOrder], const { &[takes("leastrequested.weight", ANY_INTEGER, "1")] }),
            plugin(
                "binpack",
                &[Point::NodeOrder],
                const {
                    &[
                        takes("binpack.weight", ANY_INTEGER, "1"),
                        takes("binpack.cpu", ANY_INTEGER, "1"),
                        takes("binpack.resources", ArgumentKind::Text, ""),
                        takes("binpack.resources.*", ANY_INTEGER, "1"),
                    ]
                },
            ),
            plugin(
                "sla",
                &[Point::JobOrder, Point::JobEnqueueable, Point::JobPipelined],
                const { &[takes("sla-waiting-time", ArgumentKind::Duration, "")] },
            ),
            plugin(
                "fit",
                &[Point::NodeOrder],
                const {
                    &[takes(
                        "fit.strategy",
                        ArgumentKind::OneOf(&["LeastAllocated", "MostAllocated"]),
                        "LeastAllocated",
                    )]
                },
            ),
        ],
        ..Catalogue::default()
    }
}

/// Compiles as `policy.conf`.
fn run(source: &str) -> Compiled {
    compile(source, "policy.conf", &catalogue())
}

/// The policy of a source without any problem.
fn policy(source: &str) -> Policy {
    let compiled = run(source);
    let problems: Vec<String> = compiled.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, Vec::<String>::new());
    compiled.policy.unwrap()
}

/// A problem that a source should have: severity and place, a part of the message, a part of the help.
type Expected<'a> = (&'a str, &'a str, &'a str);

/// Checks that `source` has exactly the problems `want`, from the top down.
fn expect(name: &str, source: &str, want: &[Expected<'_>]) -> Compiled {
    let compiled = run(source);
    let all: Vec<String> = compiled.problems.iter().map(ToString::to_string).collect();
    let all = all.join("\n");
    assert_eq!(compiled.problems.len(), want.len(), "{name}: {all}");
    for (problem, (place, message, help)) in compiled.problems.iter().zip(want) {
        let found = format!("{} {}:{}+{}", problem.severity, problem.line, problem.column, problem.length);
        assert_eq!(found, *place, "{name}: {all}");
        assert!(problem.message.contains(message), "{name}: {all}");
        assert!(problem.help.as_deref().unwrap_or("").contains(help), "{name}: {all}");
        assert!(!problem.render(source).is_empty(), "{name}");
    }
    assert_eq!(compiled.policy.is_none(), compiled.errors().count() > 0, "{name}: {all}");
    compiled
}
