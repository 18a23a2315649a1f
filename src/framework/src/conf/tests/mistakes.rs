//! Each mistake that people make, with the place and the advice that they get.

use super::{Expected, expect, run};

/// A valid beginning, two lines long, so that the tiers start at line 3.
const ACTIONS: &str = "actions: \"enqueue, allocate\"\ntiers:\n";

/// A valid end: a tier that filters nodes.
const TIERS: &str = "tiers:\n- plugins:\n  - name: predicates\n";

fn table(cases: &[(&str, String, &[Expected<'_>])]) {
    for (name, source, want) in cases {
        expect(name, source, want);
    }
}

fn tiers(text: &str) -> String {
    format!("{ACTIONS}{text}")
}

fn top(text: &str) -> String {
    format!("{text}{TIERS}")
}

/// Tiers whose only plugin of interest starts at line 4; `predicates` comes after it.
fn plugin(text: &str) -> String {
    format!("{ACTIONS}- plugins:\n{text}  - name: predicates\n")
}

#[test]
fn yaml() {
    table(&[
        ("unclosed quote", top("actions: \"allocate\n"), &[("error 1:10+1", "not YAML: unclosed quote", "")]),
        ("a tab", top("actions: allocate\n\tx: 1\n"), &[("error 1:10+1", "not YAML", "indent with spaces")]),
        ("a missing colon", tiers("- plugins\n  - name: gang\n"), &[("error 4:9+1", "not YAML", "missing `:` above")]),
        ("a helm template", top("actions: {{ .Values.a }}\n"), &[("error 1:11+1", "not YAML", "helm template")]),
        ("a key that is a list", top("? [a]\n: 1\nactions: allocate\n"), &[("error 1:3+1", "key has to be text", "")]),
        (
            "a section twice",
            top("actions: allocate\nactions: backfill\n"),
            &[("error 2:1+7", "the key `actions` is there twice", "the first one is at line 1")],
        ),
        (
            "an argument twice",
            plugin("  - name: binpack\n    arguments:\n      binpack.cpu: 1\n      binpack.cpu: 2\n"),
            &[("error 7:7+11", "the key `binpack.cpu` is there twice", "line 6")],
        ),
        ("a list", "- a\n".to_owned(), &[("error 1:3+1", "a configuration has to be a mapping, but is a list", "")]),
        (
            "two configurations",
            format!("actions: allocate\n{TIERS}---\nactions: allocate\n{TIERS}"),
            &[("error 6:1+7", "more than one configuration", "line 1")],
        ),
    ]);
}

#[test]
fn sections() {
    table(&[
        (
            "unknown",
            top("actions: allocate\nfoo: 1\n"),
            &[("error 2:1+3", "no section called `foo`", "sections are: actions, tiers, configurations, metrics")],
        ),
        ("misspelt", top("action: allocate\n"), &[("error 1:1+6", "`action`", "did you mean `actions`?")]),
        ("no actions", TIERS.to_owned(), &[("error 1:1+5", "no `actions`", "actions: \"enqueue")]),
        ("no tiers", "actions: allocate\n".to_owned(), &[("error 1:1+7", "no `tiers`", "- plugins:")]),
        (
            "metrics",
            top(
                "actions: allocate\nmetrics:\n  type: prometeus\n  tls:\n    insecureSkipVerify: true\n  intervall: 3s\n",
            ),
            &[
                ("error 3:9+9", "has to be one of prometheus,", "did you mean `prometheus`?"),
                ("error 4:3+3", "no key `tls`", "write it as one key: `tls.insecureSkipVerify`"),
                ("error 6:3+9", "no key `intervall`", "did you mean `interval`?"),
            ],
        ),
    ]);
}

#[test]
fn actions() {
    table(&[
        (
            "unknown",
            top("actions: \"enqueue, allocate, prempt\"\n"),
            &[("error 1:30+6", "no action called `prempt`", "did you mean `preempt`? actions are: enqueue,")],
        ),
        (
            "unknown, not in quotes",
            top("actions: allocate, prempt\n"),
            &[("error 1:20+6", "`prempt`", "did you mean `preempt`?")],
        ),
        (
            "far from all",
            top("actions: allocate, x\n"),
            &[("error 1:20+1", "`x`", "actions are: enqueue, allocate, backfill, preempt, reclaim")],
        ),
        (
            "not in this build",
            top("actions: allocate, gangpreempt\n"),
            &[("error 1:20+11", "Volcano's action `gangpreempt` is not in this build", "take it out")],
        ),
        (
            "of an older version",
            top("actions: allocate, elect\n"),
            &[("error 1:20+5", "`elect` is not in this build", "dropped")],
        ),
        (
            "twice",
            top("actions: \"allocate, backfill, allocate\"\n"),
            &[("error 1:31+8", "the action `allocate` is there twice", "line 1; an action runs once")],
        ),
        (
            "a list",
            top("actions:\n- enqueue\n- allocate\n"),
            &[("error 2:3+7", "but is a list", "write `actions: \"enqueue, allocate\"`")],
        ),
        ("a number", top("actions: 1\n"), &[("error 1:10+1", "has to be a text, but is the integer `1`", "")]),
        ("empty", top("actions: \"\"\n"), &[("error 1:10+2", "`actions` is empty", "enqueue, allocate")]),
        ("nothing", top("actions:\n"), &[("error 1:1+7", "`actions` is empty", "enqueue, allocate")]),
        (
            "a comma too many",
            top("actions: \"allocate,\"\n"),
            &[("error 1:20+1", "without a name", "remove the comma")],
        ),
        (
            "no commas",
            top("actions: enqueue allocate\n"),
            &[("error 1:10+16", "no action called `enqueue allocate`", "commas between actions: `enqueue, allocate`")],
        ),
        (
            "nothing that places",
            top("actions: enqueue, preempt\n"),
            &[("error 1:10+16", "no action places pods", "add one of: allocate, backfill")],
        ),
    ]);
}

#[test]
fn configurations() {
    let with = |text: &str| top(&format!("actions: allocate\nconfigurations:\n{text}"));
    table(&[
        (
            "unknown action",
            with("- name: alocate\n  arguments: {}\n"),
            &[("error 3:9+7", "no action called `alocate`", "did you mean `allocate`?")],
        ),
        ("a plugin", with("- name: binpack\n"), &[("error 3:9+7", "`binpack` is a plugin", "its entry in a tier")]),
        (
            "twice",
            with("- name: allocate\n- name: allocate\n"),
            &[("error 4:9+8", "the configuration of `allocate` is there twice", "line 3")],
        ),
        ("no name", with("- arguments: {}\n"), &[("error 3:3+9", "no `name`", "- name: allocate")]),
        ("a mapping", with("  allocate: {}\n"), &[("error 3:3+8", "has to be a list, but is a mapping", "- name:")]),
        (
            "unknown argument",
            with("- name: allocate\n  arguments:\n    predicateErrorCacheEnabled: true\n"),
            &[("error 5:5+26", "the action `allocate` has no argument", "did you mean `predicateErrorCacheEnable`?")],
        ),
        (
            "not under arguments",
            with("- name: allocate\n  predicateErrorCacheEnable: true\n"),
            &[("error 4:3+25", "belongs under `arguments`", "  arguments:\n    predicateErrorCacheEnable: true")],
        ),
        (
            "moved to a plugin",
            top(
                "actions: enqueue, allocate\nconfigurations:\n- name: enqueue\n  arguments:\n    overcommit-factor: 1.2\n",
            ),
            &[("error 5:5+17", "takes no arguments", "of the plugin `overcommit`")],
        ),
        ("unknown key", with("- name: allocate\n  args: {}\n"), &[("error 4:3+4", "no key `args`", "keys are: name,")]),
    ]);
}

#[test]
fn plugins() {
    table(&[
        (
            "unknown",
            plugin("  - name: gagn\n"),
            &[("error 4:11+4", "no plugin called `gagn`", "did you mean `gang`? plugins are: priority, gang,")],
        ),
        (
            "not in this build",
            plugin("  - name: pdb\n"),
            &[("error 4:11+3", "Volcano's plugin `pdb` is not in this build", "take it out")],
        ),
        (
            "another spelling",
            plugin("  - name: numaaware\n"),
            &[("error 4:11+9", "not in this build", "Volcano spells it `numa-aware`")],
        ),
        ("of a fork", plugin("  - name: gpushare\n"), &[("error 4:11+8", "not in this build", "`deviceshare`")]),
        ("an action", plugin("  - name: allocate\n"), &[("error 4:11+8", "is an action", "write it in `actions`")]),
        (
            "twice, in two tiers",
            tiers("- plugins:\n  - name: predicates\n- plugins:\n  - name: predicates\n"),
            &[("error 6:11+10", "the plugin `predicates` is there twice", "line 4; a plugin may stand in one tier")],
        ),
        ("a text", plugin("  - gang\n"), &[("error 4:5+4", "has to be a mapping", "write `- name: gang`")]),
        ("no name", plugin("  - enableJobOrder: true\n"), &[("error 4:5+14", "no `name`", "- name: gang")]),
        (
            "arguments as an item of their own",
            tiers("- plugins:\n  - name: predicates\n  - arguments: {}\n"),
            &[("error 5:5+9", "no `name`", "belongs to `predicates`, remove the dash")],
        ),
        ("empty name", plugin("  - name:\n"), &[("error 4:5+4", "name of a plugin entry", "- name: gang")]),
    ]);
}

#[test]
fn the_shape_of_tiers() {
    table(&[
        ("empty", "actions: allocate\ntiers: []\n".to_owned(), &[("error 2:8+1", "`tiers` is empty", "- plugins:")]),
        ("nothing", "actions: allocate\ntiers:\n".to_owned(), &[("error 2:1+5", "`tiers` is empty", "- plugins:")]),
        ("an empty tier", tiers("- plugins: []\n"), &[("error 3:3+7", "tier 1 has no plugins", "add plugins")]),
        ("a mapping", tiers("  plugins: []\n"), &[("error 3:3+7", "`tiers` has to be a list", "- plugins:")]),
        ("misspelt", tiers("- plugin:\n  - name: gang\n"), &[("error 3:3+6", "no key `plugin`", "`plugins`?")]),
        (
            "no tier between",
            tiers("- name: gang\n"),
            &[("error 3:3+4", "a plugin stands where a tier should", "- plugins:\n  - name: gang")],
        ),
        (
            "arguments at the tier",
            tiers("- plugins:\n  - name: binpack\n  - name: predicates\n  arguments:\n    binpack.weight: 10\n"),
            &[(
                "error 6:3+9",
                "`arguments` stands at the tier",
                "- name: binpack\n  arguments:\n    binpack.weight: …",
            )],
        ),
        (
            "a switch at the tier",
            tiers("- plugins:\n  - name: predicates\n  enablePredicate: true\n"),
            &[("error 5:3+15", "stands at the tier", "- name: predicates\n  enablePredicate: …")],
        ),
        (
            "plugins as a mapping",
            tiers("- plugins:\n    gang: {}\n"),
            &[("error 4:5+4", "has to be a list", "- name:")],
        ),
    ]);
}

#[test]
fn switches() {
    let with = |text: &str| plugin(&format!("  - name: proportion\n    {text}\n"));
    table(&[
        (
            "enabled for enable",
            with("enabledQueueOrder: true"),
            &[("error 5:5+17", "no switch", "`enableQueueOrder`?")],
        ),
        ("enable for enabled", with("enableOverused: true"), &[("error 5:5+14", "no switch", "`enabledOverused`?")]),
        ("by its point", with("enableJobEnqueueable: true"), &[("error 5:5+20", "no switch", "`enableJobEnqueued`?")]),
        (
            "the old form",
            with("disableQueueOrder: true"),
            &[("error 5:5+17", "no switch", "`enableQueueOrder: false`")],
        ),
        ("misspelt", with("enableQueOrder: true"), &[("error 5:5+14", "no switch", "`enableQueueOrder`?")]),
        ("far from all", with("foo: true"), &[("error 5:5+3", "no switch called `foo`", "`name`, `arguments` and")]),
        (
            "in quotes",
            with("enableQueueOrder: \"false\""),
            &[("error 5:23+7", "true or false", "remove the quotes: `false`")],
        ),
        (
            "a number",
            with("enableQueueOrder: 1"),
            &[("error 5:23+1", "but is the integer `1`", "write `true` or `false`")],
        ),
        ("nothing", with("enableQueueOrder:"), &[("error 5:5+16", "but is empty", "for the default")]),
        (
            "among the arguments",
            with("arguments:\n      enableQueueOrder: false"),
            &[("error 6:7+16", "is a switch, not an argument", "beside `name`")],
        ),
    ]);
}

#[test]
fn arguments() {
    let binpack = |text: &str| plugin(&format!("  - name: binpack\n    arguments:\n      {text}\n"));
    let of = |name: &str, text: &str| plugin(&format!("  - name: {name}\n    arguments:\n      {text}\n"));
    table(&[
        (
            "unknown",
            binpack("binpack.wieght: 10"),
            &[(
                "error 6:7+14",
                "the plugin `binpack` has no argument",
                "did you mean `binpack.weight`? arguments are:",
            )],
        ),
        ("a prefix with nothing after it", binpack("binpack.resources.: 1"), &[("error 6:7+18", "no argument", "")]),
        ("none", of("gang", "x: 1"), &[("error 6:7+1", "the plugin `gang` takes no arguments", "take it out")]),
        (
            "of another plugin",
            binpack("leastrequested.weight: 0"),
            &[("error 6:7+21", "no argument", "it is an argument of the plugin `nodeorder`")],
        ),
        (
            "in quotes",
            binpack("binpack.weight: \"10\""),
            &[("error 6:23+4", "has to be an integer", "remove the quotes: `10`")],
        ),
        (
            "a fraction",
            binpack("binpack.weight: 1.5"),
            &[("error 6:23+3", "has to be an integer", "without a fraction")],
        ),
        ("a float", binpack("binpack.weight: 10.0"), &[("error 6:23+4", "has to be an integer", "write `10`")]),
        ("octal", binpack("binpack.weight: 010"), &[("error 6:23+3", "has to be an integer", "")]),
        ("a word", binpack("binpack.weight: high"), &[("error 6:23+4", "but is the text `high`", "such as `1`")]),
        ("a boolean", binpack("binpack.weight: yes"), &[("error 6:23+3", "but is the boolean `yes`", "such as `1`")]),
        ("below", binpack("binpack.weight: -1"), &[("error 6:23+2", "has to be at least 0", "")]),
        ("beyond counting", binpack("binpack.weight: 99999999999999999999"), &[("error 6:23+20", "an integer", "")]),
        ("nothing", binpack("binpack.weight:"), &[("error 6:7+14", "but is empty", "")]),
        (
            "under a prefix",
            binpack("binpack.resources.nvidia.com/gpu: \"2\""),
            &[("error 6:41+3", "`binpack.resources.nvidia.com/gpu` of the plugin", "remove the quotes: `2`")],
        ),
        (
            "not a text",
            binpack("binpack.resources: 5"),
            &[("error 6:26+1", "has to be a text", "put it in quotes: `\"5\"`")],
        ),
        (
            "nested",
            binpack("binpack:\n        weight: 10"),
            &[("error 6:7+7", "no argument `binpack`", "write it as one key: `binpack.weight`")],
        ),
        ("a list", plugin("  - name: binpack\n    arguments: [a]\n"), &[("error 5:16+1", "has to be a mapping", "")]),
        (
            "too small",
            of("overcommit", "overcommit-factor: 0.8"),
            &[("error 6:26+3", "at least 1", "number at least 1")],
        ),
        (
            "a quoted float",
            of("overcommit", "overcommit-factor: '1.5'"),
            &[("error 6:26+5", "a number", "quotes: `1.5`")],
        ),
        ("text for a boolean", of("predicates2", ""), &[("error 4:11+11", "no plugin", "`predicates`?")]),
        ("no unit", of("sla", "sla-waiting-time: 90"), &[("error 6:25+2", "positive duration", "write a unit: `90s`")]),
        ("no duration", of("sla", "sla-waiting-time: soon"), &[("error 6:25+4", "duration", "such as `90s`")]),
        ("zero", of("sla", "sla-waiting-time: 0s"), &[("error 6:25+2", "positive duration", "")]),
        ("moved", of("sla", "JobWaitingTime: 1h"), &[("error 6:7+14", "no argument", "it is now `sla-waiting-time`")]),
        (
            "one of",
            of("fit", "fit.strategy: MostAlocated"),
            &[("error 6:21+12", "one of LeastAllocated, MostAllocated", "did you mean `MostAllocated`?")],
        ),
        (
            "text for a boolean",
            tiers("- plugins:\n  - name: predicates\n    arguments:\n      predicate.NodePortsEnable: on demand\n"),
            &[("error 6:34+9", "has to be true or false, but is the text `on demand`", "write `true` or `false`")],
        ),
        (
            "one level too far left",
            plugin("  - name: binpack\n    binpack.weight: 10\n"),
            &[("error 5:5+14", "belongs under `arguments`", "- name: binpack\n  arguments:\n    binpack.weight: 10")],
        ),
        (
            "in the wrong entry",
            plugin("  - name: gang\n    binpack.weight: 10\n"),
            &[("error 5:5+14", "an argument of the plugin `binpack`, not of the plugin `gang`", "move it")],
        ),
        (
            "out of a closed range",
            top(
                "actions: allocate, preempt\nconfigurations:\n- name: preempt\n  arguments: {minCandidateNodesPercentage: 101}\n",
            ),
            &[("error 4:44+3", "from 0 to 100", "an integer from 0 to 100")],
        ),
    ]);
}

#[test]
fn exclusions() {
    table(&[
        (
            "hierarchical drf and proportion, in different tiers",
            tiers(
                "- plugins:\n  - name: drf\n    enableHierarchy: true\n  - name: predicates\n- plugins:\n  - name: proportion\n",
            ),
            &[("error 8:11+10", "`drf` with `enableHierarchy` and `proportion`", "take `proportion` out")],
        ),
        (
            "proportion and capacity",
            plugin("  - name: proportion\n  - name: capacity\n"),
            &[("error 5:11+8", "`capacity` and `proportion`", "keep `capacity` for queues with")],
        ),
    ]);
}

#[test]
fn several_mistakes_come_in_the_order_of_the_file() {
    let want: &[Expected<'_>] = &[
        ("error 1:20+6", "`prempt`", ""),
        ("error 4:11+4", "`gagn`", ""),
        ("error 6:5+14", "`enableOverused`", ""),
        ("error 7:1+3", "`foo`", ""),
    ];
    let source = "actions: allocate, prempt\ntiers:\n- plugins:\n  - name: gagn\n  - name: proportion\n    enableOverused: true\nfoo: 1\n";
    expect("all at once", source, want);
}

#[test]
fn a_large_file_is_refused() {
    let source = format!("# {}\nactions: allocate\n{TIERS}", "x".repeat(1 << 20));
    let compiled = expect("large", &source, &[("error 1:1+0", "more than the 1048576 that are read", "right file?")]);
    assert!(compiled.problems[0].render(&source).len() < 1_000);
}

#[test]
fn very_many_problems_are_cut_short() {
    let source: String = (0..2_000).map(|n| format!("key{n}: 1\n")).collect();
    let compiled = run(&source);
    assert_eq!(compiled.problems.len(), 101);
    assert_eq!(compiled.problems[100].message, "1902 more problems are not shown");
    assert_eq!(compiled.policy, None);
}

#[test]
fn a_long_line_costs_no_more_than_its_length() {
    let source = format!("actions: {}\n{TIERS}", "a,".repeat(100_000));
    assert_eq!(run(&source).problems.len(), 101);
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut source = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for n in 1..9 {
        let items = vec![format!("*a{}", n - 1); 10].join(", ");
        source.push_str(&format!("a{n}: &a{n} [{items}]\n"));
    }
    let compiled = run(&source);
    assert!(compiled.problems[0].message.contains("alias replay limit"), "{}", compiled.problems[0]);
}
