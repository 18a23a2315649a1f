//! Policies that come out, and what they read like when printed.

use super::super::arguments::Value;
use super::super::policy::{PluginEntry, Policy};
use super::super::switches::Point;
use super::{catalogue, expect, policy, run};

/// Volcano's own, as compiled into it.
const VOLCANO: &str = "
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
";

/// The one that its helm chart installs.
const HELM: &str = "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
";

/// One with everything in it.
const FULL: &str = r#"
actions: "enqueue,allocate , preempt"
tiers:
- plugins:
  - name: sla
    arguments: {sla-waiting-time: 1h30m}
- plugins: [{name: gang, enableJobOrder: no}]
- plugins:
  - name: drf
    enableHierarchy: true
  - name: predicates
    enablePredicate: true
    arguments:
      predicate.NodePortsEnable: "false"
      volumebinding.shape:
      - {utilization: 0, score: 0.5}
      - {utilization: 100, score: ~, "odd key: #": "a\"b\\c\u0007 ünï"}
  - name: overcommit
    arguments:
      overcommit-factor: 2
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources: "nvidia.com/gpu, yes"
      binpack.resources.nvidia.com/gpu: 7
      binpack.resources.example.com/foo: 8
configurations:
- name: preempt
  arguments:
    minCandidateNodesPercentage: 5
- name: allocate
metrics:
  type: prometheus
  address: http://prometheus.monitoring:9090
  interval: 15s
  tls.insecureSkipVerify: "true"
"#;

#[test]
fn volcanos_own_is_the_built_in() {
    assert_eq!(policy(VOLCANO), Policy::builtin());
}

#[test]
fn the_helm_file() {
    let policy = policy(HELM);
    let mut want = Policy::builtin();
    want.tiers[1].plugins.push(PluginEntry::named("binpack"));
    for (tier, n) in [(0, 1), (1, 1)] {
        let switches = &mut want.tiers[tier].plugins[n].switches;
        *switches = switches.with(Point::Preemptable, false);
    }
    assert_eq!(policy, want);
    assert!(!policy.plugin("drf").unwrap().switches.allows(Point::Preemptable));
    assert!(policy.plugin("drf").unwrap().switches.allows(Point::JobOrder));
}

#[test]
fn everything_in_it() {
    let policy = policy(FULL);
    assert_eq!(policy.actions, ["enqueue", "allocate", "preempt"]);
    let tiers: Vec<_> = policy.plugins().map(|(tier, entry)| (tier, entry.name.as_str())).collect();
    assert_eq!(tiers, [(0, "sla"), (1, "gang"), (2, "drf"), (2, "predicates"), (2, "overcommit"), (2, "binpack")]);
    assert_eq!(policy.tiers[0].plugins[0].arguments.duration_ms("sla-waiting-time", 0), 5_400_000);
    assert!(!policy.tiers[1].plugins[0].switches.allows(Point::JobOrder));
    assert!(policy.plugin("drf").unwrap().switches.hierarchy());
    let predicates = &policy.plugin("predicates").unwrap().arguments;
    assert!(!predicates.bool("predicate.NodePortsEnable", true));
    assert!(matches!(predicates.get("volumebinding.shape"), Some(Value::List(items)) if items.len() == 2));
    assert_eq!(policy.plugin("overcommit").unwrap().arguments.number("overcommit-factor", 1.2), 2.0);
    let binpack = &policy.plugin("binpack").unwrap().arguments;
    assert_eq!(binpack.integer("binpack.weight", 1), 10);
    assert_eq!(binpack.integer("binpack.cpu", 1), 1);
    let weights: Vec<_> = binpack.with_prefix("binpack.resources.").collect();
    assert_eq!(weights, [("example.com/foo", &Value::Integer(8)), ("nvidia.com/gpu", &Value::Integer(7))]);
    assert_eq!(policy.action_arguments("preempt").integer("minCandidateNodesPercentage", 10), 5);
    assert!(policy.action_arguments("enqueue").is_empty());
    assert!(policy.metrics.bool("tls.insecureSkipVerify", false));
    assert_eq!(policy.metrics.duration_ms("interval", 30_000), 15_000);
}

#[test]
fn a_printed_policy_compiles_to_itself() {
    for source in [VOLCANO, HELM, FULL] {
        let before = policy(source);
        let printed = before.to_yaml(&catalogue());
        let again = run(&printed);
        assert_eq!(again.problems, vec![], "{printed}");
        assert_eq!(again.policy.as_ref(), Some(&before), "{printed}");
        assert_eq!(before.to_yaml(&catalogue()), printed);
    }
}

#[test]
fn anchors_and_aliases_are_followed() {
    let source = "actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n  - name: binpack\n    arguments: &weights\n      binpack.cpu: 5\n";
    assert_eq!(policy(source).plugin("binpack").unwrap().arguments.integer("binpack.cpu", 1), 5);
    // What is wrong in an aliased value is shown where the alias is.
    let source = "actions: &a allocat\ntiers:\n- plugins:\n  - name: predicates\n  - name: *a\n";
    expect(
        "alias",
        source,
        &[
            ("error 1:13+7", "no action called `allocat`", "`allocate`?"),
            ("error 5:11+2", "no plugin called `allocat`", ""),
        ],
    );
}

#[test]
fn printed_for_a_person() {
    let source = "actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n  - name: binpack\n    enableNodeOrder: false\n    arguments:\n      binpack.weight: 10\n";
    let want = r#"# What is in force. A comment with a key shows a default.
actions: "allocate"
tiers:
- plugins:
  - name: predicates # what it is for
    # arguments:
      # predicate.NodePortsEnable: true
      # volumebinding.shape: (none)
  - name: binpack # what it is for
    enableNodeOrder: false
    arguments:
      binpack.weight: 10
      # binpack.cpu: 1
      # binpack.resources: (none)
      # binpack.resources.<name>: 1
# configurations:
# - name: allocate
#   arguments:
#     predicateErrorCacheEnable: true
# metrics: none
"#;
    assert_eq!(policy(source).to_yaml(&catalogue()), want);
}

#[test]
fn shown_in_place() {
    let source = "actions: \"enqueue, prempt\"\ntiers:\n- plugins:\n  - name: gang\n    binpack.weight: 10\n  - name: binpack\n    # ü\n    ünï: 1\n    binpack.weight: 10\n";
    let compiled = run(source);
    let shown: Vec<String> = compiled.problems.iter().map(|problem| problem.render(source)).collect();
    assert_eq!(shown.join("\n\n"), include_str!("shown_in_place.txt").trim_end());
    assert_eq!(
        compiled.problems[0].to_string(),
        "policy.conf:1:20: error: there is no action called `prempt`; did you mean `preempt`? actions are: enqueue, \
         allocate, backfill, preempt, reclaim"
    );
}

#[test]
fn a_damaged_file_is_reported_inside_itself() {
    let wrapped = format!("kind: ConfigMap\ndata:\n  x.conf: |\n{}", FULL.replace('\n', "\n    "));
    for whole in [FULL, wrapped.as_str()] {
        for (at, _) in whole.char_indices().step_by(13) {
            let (before, after) = whole.split_at(at);
            let tail: String = after.chars().skip(1).collect();
            for damaged in [before.to_owned(), format!("{before}{tail}"), format!("{before}: - \"{tail}")] {
                for problem in run(&damaged).problems {
                    // A place just after the last line is one in the file, too.
                    let lines: Vec<&str> = damaged.lines().chain([""]).collect();
                    let width = lines.get(problem.line - 1).map(|line| line.chars().count());
                    assert!(width.is_some_and(|width| problem.column <= width + 1), "{problem}\n{damaged}");
                    assert!(!problem.render(&damaged).is_empty());
                }
            }
        }
    }
}
