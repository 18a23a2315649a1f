//! What is refused, plugin by plugin and across profiles.

use super::{Expected, catalogue, expect, expect_by, one};

fn plugins(text: &str) -> String {
    one(&format!("- plugins:\n{text}"))
}

//
#[test]
fn plugins_and_points() {
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        (
            "an unknown plugin",
            plugins("    filter:\n      enabled:\n      - name: NodeAfinity\n"),
            &[("error 7:15", "no plugin called `NodeAfinity`", "did you mean `NodeAffinity`?")],
        ),
        (
            "an unknown plugin that is disabled",
            plugins("    filter:\n      disabled:\n      - name: NodeAfinity\n"),
            &[("warning 7:15", "no plugin called `NodeAfinity` to disable", "did you mean `NodeAffinity`?")],
        ),
        (
            "a star that is enabled",
            plugins("    filter:\n      enabled: [{name: \"*\"}]\n"),
            &[("error 6:24", "no plugin called `*`", "under `disabled` only")],
        ),
        (
            "a plugin of older versions",
            plugins("    filter:\n      enabled: [{name: EBSLimits}]\n"),
            &[("error 6:24", "`EBSLimits` is a plugin of older versions", "NodeVolumeLimits")],
        ),
        (
            "at any point",
            plugins("    multiPoint:\n      enabled: [{name: SelectorSpread}]\n"),
            &[("error 6:24", "older versions", "PodTopologySpread")],
        ),
        (
            "a point that it does not take part in",
            plugins("    permit:\n      enabled: [{name: NodePorts}]\n"),
            &[("error 6:24", "`NodePorts` does not take part in `permit`", "its points are: preFilter, filter")],
        ),
        (
            "no point at all",
            plugins("    multiPoint:\n      enabled: [{name: Idle}]\n"),
            &[("error 6:24", "`Idle` takes part in no extension point", "")],
        ),
        (
            "twice at a point",
            plugins("    score:\n      enabled:\n      - name: Ours\n      - name: Ours\n"),
            &[("error 8:15", "the plugin `Ours` at `score` is there twice", "at line 7")],
        ),
        (
            "twice at multiPoint",
            plugins("    multiPoint:\n      enabled: [{name: NodeName}, {name: NodeName}]\n"),
            &[("error 6:42", "`NodeName` at `multiPoint` is there twice", "")],
        ),
        (
            "twice under two names",
            plugins("    bind:\n      enabled: [{name: DefaultBinder}, {name: DefaultBind}]\n"),
            &[
                ("warning 6:47", "`DefaultBind` is taken for `DefaultBinder`", "write `DefaultBinder`"),
                ("error 6:47", "`DefaultBinder` at `bind` is there twice", ""),
            ],
        ),
        (
            "nobody sorts the queue",
            plugins("    queueSort:\n      disabled: [{name: \"*\"}]\n"),
            &[("error 5:5", "exactly one plugin at `queueSort`, but has: none", "in `enabled`")],
        ),
        (
            "two sort the queue",
            plugins("    multiPoint:\n      enabled: [{name: Coscheduling}]\n"),
            &[("error 6:24", "but has: PrioritySort, Coscheduling", "`- name: \"*\"` in `disabled`")],
        ),
        (
            "nobody binds",
            plugins("    bind:\n      disabled: [{name: DefaultBinder}]\n"),
            &[("error 5:5", "no plugin that binds pods", "enable `DefaultBinder`")],
        ),
        (
            "a negative weight",
            plugins("    score:\n      enabled: [{name: Ours, weight: -1}]\n"),
            &[("error 6:38", "has to be at least 0", "from 0 to 2147483647")],
        ),
        (
            "a weight with which the sum could overflow",
            plugins("    score:\n      enabled: [{name: Ours, weight: 9223372036854775807}]\n"),
            &[("error 6:38", "`weight` has to be", "from 0 to 2147483647")],
        ),
        (
            "a weight in quotes",
            plugins("    score:\n      enabled: [{name: Ours, weight: \"5\"}]\n"),
            &[("error 6:38", "has to be a whole number, but is the text `5`", "remove the quotes: `5`")],
        ),
        (
            "a weight where none counts",
            plugins("    filter:\n      enabled: [{name: Ours, weight: 5}]\n"),
            &[("warning 6:30", "weight of `Ours` has no effect", "under `score:`")],
        ),
        (
            "a weight of what does not score",
            plugins("    multiPoint:\n      enabled: [{name: NodeName, weight: 5}]\n"),
            &[("warning 6:34", "weight of `NodeName` has no effect", "take the line out")],
        ),
        (
            "what this build lacks",
            plugins(
                "    preBind:\n      enabled: [{name: VolumeBinding}]\n    multiPoint:\n      enabled: [{name: VolumeZone}]\n",
            ),
            &[
                ("warning 6:24", "`VolumeBinding` is not in this build yet", "without it"),
                ("warning 8:24", "`VolumeZone` is not in this build yet", ""),
            ],
        ),
        (
            "a score of older versions",
            plugins("    score:\n      enabled: [{name: NodeResourcesMostAllocated}]\n"),
            &[("warning 6:24", "is a name of older versions", "scoringStrategy: {type: MostAllocated}")],
        ),
        (
            "which only scores",
            plugins("    filter:\n      enabled: [{name: NodeResourcesMostAllocated}]\n"),
            &[
                ("warning 6:24", "is a name of older versions", ""),
                ("error 6:24", "does not take part in `filter`", "its points are: score"),
            ],
        ),
        (
            "coscheduling without its other parts",
            plugins("    permit:\n      enabled: [{name: Coscheduling}]\n"),
            &[("warning 6:24", "at `permit`, but not at preFilter, postFilter, reserve", "multiPoint")],
        ),
        (
            "a point of an alpha gate",
            plugins("    placementScore:\n      enabled: [{name: PodGroupPodsCount}]\n"),
            &[("warning 5:5", "`placementScore` is not in this build yet", "")],
        ),
        (
            "several at once are told together",
            plugins("    filter:\n      enabled: [{name: A}, {weight: 1}]\n    bind: {disabled: [{name: \"*\"}]}\n"),
            &[
                ("error 6:24", "no plugin called `A`", "docs/profiles.md"),
                ("error 6:28", "needs a `name`", "write `- name"),
                ("error 7:5", "no plugin that binds", ""),
            ],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, source, want);
    }
}

#[test]
fn profiles_are_held_against_each_other() {
    let sorted = |name: &str, by: &str| {
        format!(
            "- schedulerName: {name}\n  plugins:\n    queueSort:\n      disabled: [{{name: \"*\"}}]\n      enabled: \
             [{{name: {by}}}]\n"
        )
    };
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        (
            "two without a name",
            one("- plugins:\n- plugins:\n"),
            &[
                ("error 4:3", "a profile needs a `schedulerName`", "schedulerName"),
                ("error 5:3", "a profile needs a `schedulerName`", ""),
            ],
        ),
        ("an empty name", one("- schedulerName: \"\"\n"), &[("error 4:18", "a profile needs a `schedulerName`", "")]),
        (
            "the same name twice",
            one("- schedulerName: a\n- schedulerName: a\n"),
            &[("error 5:18", "the profile `a` is there twice", "at line 4")],
        ),
        (
            "queues sorted by different plugins",
            one(&format!("- schedulerName: a\n{}", sorted("b", "Coscheduling"))),
            &[("error 7:5", "must be the same for all profiles: it is PrioritySort, and here Coscheduling", "line 4")],
        ),
        (
            "queues sorted by one plugin that is told different things",
            one(&format!(
                "{}  pluginConfig: [{{name: Coscheduling, args: {{podGroupBackoffSeconds: 1}}}}]\n{}",
                sorted("a", "Coscheduling"),
                sorted("b", "Coscheduling")
            )),
            &[
                ("warning 8:24", "`Coscheduling` is not in this build yet", ""),
                ("error 12:5", "must be the same for all profiles: what `Coscheduling` is told differs", "line 4"),
                ("warning 14:24", "`Coscheduling` is not in this build yet", ""),
            ],
        ),
        ("queues sorted alike", one(&format!("{}{}", sorted("a", "PrioritySort"), sorted("b", "PrioritySort"))), &[]),
    ];
    // Coscheduling takes no arguments in the catalogue of these tests; without it, the framework reads them.
    let mut lacking = catalogue();
    lacking.node_plugins.retain(|builder| builder.info.name != "Coscheduling");
    for (name, source, want) in cases {
        let catalogue = if source.contains("podGroupBackoffSeconds") { &lacking } else { &catalogue() };
        expect_by(catalogue, name, source, want);
    }
}

#[test]
fn strict_takes_no_aliases() {
    let strict = crate::Catalogue { strict_upstream: true, ..catalogue() };
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        (
            "a score",
            plugins("    score:\n      enabled: [{name: NodeResourcesMostAllocated}]\n"),
            &[("error 6:24", "`NodeResourcesMostAllocated` is not a name of kube-scheduler", "NodeResourcesFit")],
        ),
        (
            "a plugin",
            plugins("    bind:\n      enabled: [{name: DefaultBind}]\n"),
            &[("error 6:24", "`DefaultBind` is not a name of kube-scheduler", "write `DefaultBinder`")],
        ),
        (
            "disabling what is not there is nothing, as in kube-scheduler",
            plugins("    score:\n      disabled: [{name: NodeResourcesMostAllocated}]\n"),
            &[],
        ),
    ];
    for (name, source, want) in cases {
        expect_by(&strict, name, source, want);
    }
}
