//! What is accepted, but does not do what it seems to.

use super::{Expected, expect};

fn table(cases: &[(&str, &str, &str, &[Expected<'_>])]) {
    for (name, actions, tiers, want) in cases {
        let source = format!("actions: \"{actions}\"\ntiers:\n{tiers}");
        let compiled = expect(name, &source, want);
        assert!(compiled.policy.is_some(), "{name}");
    }
}

#[test]
fn switches() {
    table(&[
        (
            "for a point that the plugin has no part in",
            "allocate",
            "- plugins:\n  - name: gang\n    enableQueueOrder: false\n  - name: predicates\n",
            &[(
                "warning 5:5+16",
                "`enableQueueOrder` has no effect on the plugin `gang`",
                "its switches are: enableJobOrder, enableJobReady, enableJobPipelined, enablePreemptable",
            )],
        ),
        (
            "for the hierarchy",
            "allocate",
            "- plugins:\n  - name: gang\n    enableHierarchy: true\n  - name: predicates\n",
            &[("warning 5:5+15", "`enableHierarchy` has no effect", "")],
        ),
        (
            "that nothing reads",
            "allocate",
            "- plugins:\n  - name: predicates\n    enableTargetJob: true\n    enableReservedNodes: true\n    enabledClusterOrder: false\n",
            &[
                ("warning 5:5+15", "`enableTargetJob` has no effect", "take the line out"),
                ("warning 6:5+19", "`enableReservedNodes` has no effect", ""),
                ("warning 7:5+19", "`enabledClusterOrder` has no effect", ""),
            ],
        ),
    ]);
}

#[test]
fn arguments() {
    table(&[(
        "that nothing reads",
        "allocate",
        "- plugins:\n  - name: predicates\n    arguments:\n      predicate.Old: true\n",
        &[("warning 6:7+13", "`predicate.Old` of the plugin `predicates` has no effect: the feature gate", "take")],
    )]);
}

#[test]
fn the_door() {
    table(&[
        (
            "a plugin that is never asked",
            "allocate",
            "- plugins:\n  - name: predicates\n  - name: overcommit\n",
            &[("warning 5:11+10", "`overcommit` has no effect without the action `enqueue`", "add `enqueue`")],
        ),
        (
            "a plugin that also does other things",
            "allocate",
            "- plugins:\n  - name: predicates\n  - name: proportion\n",
            &[],
        ),
        ("nobody at the door", "enqueue, allocate", "- plugins:\n  - name: predicates\n", &[]),
        (
            "sla in the tier of a rejecting plugin",
            "enqueue, allocate",
            "- plugins:\n  - name: sla\n  - name: predicates\n  - name: overcommit\n",
            &[("warning 4:11+3", "`overcommit` rejects them first", "put `sla` in a tier before")],
        ),
        (
            "sla in a later tier",
            "enqueue, allocate",
            "- plugins:\n  - name: predicates\n  - name: proportion\n- plugins:\n  - name: sla\n",
            &[("warning 7:11+3", "`proportion` rejects them first", "put `sla` in a tier before")],
        ),
        (
            "sla before it",
            "enqueue, allocate",
            "- plugins:\n  - name: sla\n- plugins:\n  - name: predicates\n  - name: overcommit\n",
            &[],
        ),
        (
            "sla that does not vote",
            "enqueue, allocate",
            "- plugins:\n  - name: sla\n    enableJobEnqueued: false\n  - name: predicates\n  - name: overcommit\n",
            &[],
        ),
    ]);
}

#[test]
fn levels_of_a_tree_that_is_not_read() {
    let capacity = |more: &str| format!("- plugins:\n  - name: predicates\n  - name: capacity\n{more}");
    let level = |n: u32| format!("    arguments: {{ancestorReclaimLevel: {n}}}\n");
    let want: &[Expected<'_>] =
        &[("warning 5:11+8", "`ancestorReclaimLevel` of `capacity` has no effect", "add `enableHierarchy: true`")];
    table(&[
        ("flat", "allocate", &capacity(&level(1)), want),
        ("flat, level 0", "allocate", &capacity(&level(0)), &[]),
        ("a tree", "allocate", &capacity(&format!("    enableHierarchy: true\n{}", level(1))), &[]),
    ]);
}

#[test]
fn nodes_that_nobody_filters() {
    let want: &[Expected<'_>] =
        &[("warning 1:20+8", "`allocate` places pods, but no plugin filters nodes", "add the plugin `predicates`")];
    table(&[
        ("no plugin", "enqueue, allocate", "- plugins:\n  - name: gang\n", want),
        ("switched off", "enqueue, allocate", "- plugins:\n  - name: predicates\n    enablePredicate: false\n", want),
    ]);
}

#[test]
fn other_sections() {
    let tail = "tiers:\n- plugins:\n  - name: predicates\n";
    let cases: &[(&str, &str, &[Expected<'_>])] = &[
        (
            "arguments for an action that does not run",
            "actions: allocate\nconfigurations:\n- name: preempt\n  arguments: {}\n",
            &[("warning 3:9+7", "`preempt` is not in `actions`", "add it to `actions`")],
        ),
        (
            "an entry for something else",
            "actions: allocate\nconfigurations:\n- name: init-params\n  arguments: {presetVirtualDevice: true}\n",
            &[("warning 3:9+11", "is read by Ascend's part of `deviceshare`", "take this entry out")],
        ),
        (
            "metrics without an address",
            "actions: allocate\nmetrics:\n  type: prometheus\n",
            &[("warning 2:1+7", "no address", "add `address:`")],
        ),
        (
            "a default, written out",
            "actions: allocate\nconfigurations:\n- name: allocate\n  arguments:\n    predicateErrorCacheEnable: true\n",
            &[],
        ),
    ];
    for (name, head, want) in cases {
        assert!(expect(name, &format!("{head}{tail}"), want).policy.is_some(), "{name}");
    }
}

#[test]
fn an_empty_text_means_the_built_in_policy() {
    for source in ["", "\n", "# only a comment\n", "---\n", "\u{feff}"] {
        let want = [("warning 1:1+0", "the configuration is empty", "the built-in configuration is used")];
        let compiled = expect(source, source, &want);
        assert_eq!(compiled.policy, Some(super::Policy::builtin()), "{source:?}");
    }
}
