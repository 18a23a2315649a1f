//! `pluginConfig`: the place of what a plugin does not take.

use super::{Expected, catalogue, expect, expect_by, one, policy};
use crate::conf::arguments::Value;

/// A profile that enables `Tuned`, and whose `pluginConfig` begins at line 7.
fn tuned(text: &str) -> String {
    one(&format!("- plugins:\n    multiPoint: {{enabled: [{{name: Tuned}}]}}\n  pluginConfig:\n{text}"))
}

#[test]
fn problems_point_at_the_field() {
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        ("right", tuned("  - name: Tuned\n    args: {strength: 3, words: [a], inner: {on: true, pace: Fast}}\n"), &[]),
        ("nothing", tuned("  - name: Tuned\n"), &[]),
        (
            "out of range",
            tuned("  - name: Tuned\n    args:\n      strength: 11\n"),
            &[("error 9:7", "`args` of `Tuned`, `strength`: it has to be from 0 to 10, but is 11", "")],
        ),
        (
            "of the wrong type, deep inside",
            tuned("  - name: Tuned\n    args:\n      inner:\n        on: 1\n"),
            &[("error 10:9", "`inner.on`: it has to be true or false, but is the integer `1`", "")],
        ),
        (
            "in a list",
            tuned("  - name: Tuned\n    args:\n      words:\n      - a\n      - 5\n"),
            &[("error 11:9", "`words[1]`: it has to be a text", "")],
        ),
        (
            "an unknown field",
            tuned("  - name: Tuned\n    args:\n      inner:\n        pase: Fast\n"),
            &[("error 10:9", "there is no field `pase`", "did you mean `pace`?")],
        ),
        (
            "an unknown word",
            tuned("  - name: Tuned\n    args: {inner: {pace: Fats}}\n"),
            &[("error 8:20", "there is no `Fats`", "did you mean `Fast`?")],
        ),
        (
            "a plugin that takes none",
            one("- pluginConfig:\n  - name: NodeName\n    args: {a: 1}\n"),
            &[("error 6:5", "the plugin takes no arguments", "take the entry out")],
        ),
        (
            "args that are no mapping",
            tuned("  - name: Tuned\n    args: [1]\n"),
            &[("error 8:11", "`args` of `Tuned` has to be a mapping, but is a list", "key: value")],
        ),
        (
            "twice",
            tuned("  - name: Tuned\n  - name: Tuned\n"),
            &[("error 8:11", "the `pluginConfig` of `Tuned` is there twice", "line 7")],
        ),
        (
            "of an unknown plugin",
            one("- pluginConfig:\n  - name: Tunned\n"),
            &[("error 5:11", "no plugin called `Tunned`", "did you mean `Tuned`?")],
        ),
        (
            "of a plugin that is not asked",
            one("- pluginConfig:\n  - name: Tuned\n    args: {strength: 3}\n"),
            &[("warning 5:11", "the `pluginConfig` of `Tuned` has no effect", "multiPoint")],
        ),
        (
            "of another kind",
            one("- pluginConfig:\n  - name: NodeName\n    args: {kind: NodeAffinityArgs}\n"),
            &[("error 6:18", "`kind` of `args` has to match the plugin `NodeName`", "write `NodeNameArgs`")],
        ),
        (
            "of another version",
            one("- pluginConfig:\n  - name: NodeName\n    args: {apiVersion: kubescheduler.config.k8s.io/v1beta3}\n"),
            &[("error 6:24", "`apiVersion` of `args` has to match", "write `kubescheduler.config.k8s.io/v1`")],
        ),
        (
            "of its own kind",
            one("- pluginConfig:\n  - name: NodeName\n    args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: \
                 NodeNameArgs}\n"),
            &[],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, source, want);
    }
}

#[test]
fn arguments_reach_the_profile_without_their_kind() {
    let source = tuned("  - name: Tuned\n    args: {apiVersion: x/v1, kind: TunedArgs, strength: 3}\n");
    let arguments = &policy(&source).profiles[0].arguments;
    let strength = Value::Map([("strength".to_owned(), Value::Integer(3))].into());
    assert_eq!(arguments.iter().collect::<Vec<_>>(), [(&"Tuned".to_owned(), &strength)]);
}

#[test]
fn plugins_that_a_build_lacks_are_checked_all_the_same() {
    let mut lacking = catalogue();
    lacking.node_plugins.retain(|builder| !["Coscheduling", "DefaultPreemption"].contains(&builder.info.name));
    let of = |plugin: &str, args: &str| {
        one(&format!(
            "- plugins:\n    reserve: {{enabled: [{{name: Coscheduling}}]}}\n  pluginConfig:\n  - name: \
                      {plugin}\n    args: {args}\n"
        ))
    };
    const LACKS: Expected<'_> = ("warning 5:32", "`Coscheduling` is not in this build yet", "");
    let cases: &[(&str, &str, &[Expected<'_>])] = &[
        ("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}", &[LACKS]),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            &[LACKS, ("error 8:44", "both it and `minCandidateNodesPercentage` are 0", "would try no node")],
        ),
        ("VolumeBinding", "{bindTimeoutSeconds: 0}", &[LACKS]),
        (
            "VolumeBinding",
            "{shape: [{utilization: 50, score: 0}, {utilization: 20, score: 1}]}",
            &[LACKS, ("error 8:50", "it has to be over that of the point before, which is 50", "sort the points")],
        ),
        ("DynamicResources", "{filterTimeout: 0s, bindingTimeout: 1s}", &[LACKS]),
        (
            "Coscheduling",
            "{permittedWaitingTimeSeconds: 30, deniedWaitingTimeSeconds: 3, podGroupGCIntervalSeconds: 30}",
            &[
                LACKS,
                ("warning 8:12", "is taken for `permitWaitingTimeSeconds`", "write `permitWaitingTimeSeconds`"),
                ("warning 8:45", "is taken for `podGroupBackoffSeconds`", "write `podGroupBackoffSeconds`"),
                ("warning 8:74", "`podGroupGCIntervalSeconds` of `Coscheduling` has no effect", "take the line out"),
            ],
        ),
        (
            "Coscheduling",
            "{permitWaitingTimeSeconds: 3, permittedWaitingTimeSeconds: 4}",
            &[
                LACKS,
                ("warning 8:41", "is taken for", ""),
                ("error 8:41", "what `permitWaitingTimeSeconds` of `Coscheduling` says is there twice", "line 8"),
            ],
        ),
    ];
    for (plugin, args, want) in cases {
        expect_by(&lacking, args, &of(plugin, args), want);
    }
    for (plugin, args, message) in [
        ("DefaultPreemption", "{minCandidateNodesPercentage: 101}", "from 0 to 100, but is 101"),
        ("DefaultPreemption", "{minCandidateNodesAbsolute: -1}", "from 0 to 2147483647, but is -1"),
        ("VolumeBinding", "{bindTimeoutSeconds: -1}", "at least 0, but is -1"),
        ("DynamicResources", "{bindingTimeout: 999ms}", "at least 1000ms, but is `999ms`"),
        ("DynamicResources", "{filterTimeout: 10}", "a duration such as `90s` or `1h30m`, but is the integer `10`"),
        ("Coscheduling", "{podGroupRejectPercentage: 101}", "from 0 to 100, but is 101"),
        ("Coscheduling", "{permitWaitingTimeSeconds: -1}", "from 0 to 2147483647, but is -1"),
    ] {
        let compiled = crate::conf::compile::compile(&of(plugin, args), "kube.yaml", &lacking);
        let errors: Vec<String> = compiled.errors().map(ToString::to_string).collect();
        assert!(errors.len() == 1 && errors[0].contains(message), "{args}: {errors:?}");
    }
}
