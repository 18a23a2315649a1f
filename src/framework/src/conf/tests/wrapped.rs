//! Configurations inside a ConfigMap: problems point into the manifest.

use super::{Expected, expect, policy};

const TIERS: &str = "    tiers:\n    - plugins:\n      - name: predicates\n";

fn config_map(data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: volcano-scheduler-configmap\ndata:\n{data}")
}

#[test]
fn a_config_map_is_looked_into() {
    for key in ["volcano-scheduler.conf", "volcano-scheduler-ci.conf", "\"x.conf\""] {
        let source = config_map(&format!("  {key}: |\n    actions: \"enqueue, allocate\"\n{TIERS}"));
        assert_eq!(policy(&source).actions, ["enqueue", "allocate"], "{key}");
    }
    // The usual name wins over others; other objects in the file do not matter.
    let source = config_map(&format!("  a.conf: x\n  volcano-scheduler.conf: |\n    actions: allocate\n{TIERS}"));
    let source = format!("kind: Namespace\nmetadata: {{name: volcano-system}}\n---\n{source}---\nkind: Service\n");
    assert_eq!(policy(&source).actions, ["allocate"]);
}

#[test]
fn places_are_those_of_the_manifest() {
    let block =
        |head: &str| config_map(&format!("  volcano-scheduler.conf: {head}\n    actions: allocate, prempt\n{TIERS}"));
    let want: &[Expected<'_>] = &[("error 7:24+6", "`prempt`", "did you mean `preempt`?")];
    for head in ["|", "|-", "|+", "|2", "| # ours"] {
        expect(head, &block(head), want);
    }
    let blank = config_map(&format!("  x.conf: |\n\n    # first\n\n    actions: allocate, prempt\n{TIERS}"));
    expect("blank lines before", &blank, &[("error 10:24+6", "`prempt`", "")]);
    let windows = block("|").replace('\n', "\r\n");
    expect("windows lines", &windows, want);
    let syntax = config_map("  x.conf: |\n    actions: \"allocate\n");
    expect("syntax", &syntax, &[("error 7:14+1", "not YAML", "")]);
    let twice = config_map(&format!("  x.conf: |\n    actions: allocate\n    actions: allocate\n{TIERS}"));
    expect("twice", &twice, &[("error 8:5+7", "`actions` is there twice", "at line 7")]);
}

#[test]
fn a_hidden_text_is_described_in_words() {
    let inner = "actions: allocate, prempt\\ntiers:\\n- plugins:\\n  - name: predicates\\n";
    let source = config_map(&format!("  x.conf: \"{inner}\"\n"));
    let want = [("error 6:3+6", "`prempt`", "(this is line 1, column 20 of the text in `x.conf`)")];
    expect("in quotes", &source, &want);
    let json = format!("{{\"kind\": \"ConfigMap\", \"data\": {{\"x.conf\": \"{inner}\"}}}}");
    expect("as json", &json, &[("error 1:32+8", "`prempt`", "did you mean `preempt`?")]);
}

#[test]
fn without_a_configuration() {
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        ("empty", config_map("  x.conf: \"\"\n"), &[("warning 6:3+6", "is empty", "built-in")]),
        (
            "no such key",
            config_map("  foo: bar\n"),
            &[("error 2:7+9", "no key that ends in `.conf`", "`volcano-scheduler.conf`")],
        ),
        (
            "two keys",
            config_map("  a.conf: x\n  b.conf: y\n"),
            &[("error 7:3+6", "has both `a.conf` and `b.conf`", "name the one to use")],
        ),
        (
            "not a text",
            config_map("  x.conf:\n    actions: allocate\n"),
            &[("error 7:5+7", "`x.conf` has to be a text, but is a mapping", "write `x.conf: |`")],
        ),
        (
            "another object",
            "kind: Deployment\n".to_owned(),
            &[("error 1:7+10", "a `Deployment` is not a configuration", "ConfigMap")],
        ),
        (
            "for kube-scheduler",
            "kind: KubeSchedulerConfiguration\n".to_owned(),
            &[("error 1:1+4", "has no `apiVersion`", "kubescheduler.config.k8s.io/v1")],
        ),
        (
            "two of them",
            format!("{0}---\n{0}", config_map(&format!("  x.conf: |\n    actions: allocate\n{TIERS}"))),
            &[("error 17:3+6", "more than one configuration", "the first one is at line 6")],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, source, want);
    }
}
