//! Policies that load, and mistakes with their places.

use super::*;
use crate::conf::plugin_args::read as read_args;

fn strategies() -> Vec<StrategyInfo> {
    let one = |name, alias, point: &'static [PolicyPoint]| StrategyInfo {
        name,
        alias,
        points: point,
        check: |args| read_args(args, &["thresholds", "nodeFit"], |args| args.bool("nodeFit", false)).map(drop),
    };
    vec![
        one("LowNodeUtilization", None, &[PolicyPoint::Balance]),
        one("HighNodeUtilization", None, &[PolicyPoint::Balance]),
        one("PodLifeTime", None, &[PolicyPoint::Deschedule]),
        one("Spread", Some("OldSpread"), &[PolicyPoint::Balance]),
        one("DefaultEvictor", None, &[PolicyPoint::Filter, PolicyPoint::PreEvictionFilter]),
    ]
}

fn compiled(text: &str, auto_enable: bool) -> CompiledPolicy {
    compile(text, "policy.yaml", &strategies(), auto_enable)
}

/// Problems as `line: severity: message; help`.
fn said(compiled: &CompiledPolicy) -> Vec<String> {
    let one = |problem: &Problem| {
        let help = problem.help.as_deref().map(|help| format!("; {help}")).unwrap_or_default();
        format!("{}: {}: {}{help}", problem.line, problem.severity, problem.message)
    };
    compiled.problems.iter().map(one).collect()
}

const HEAD: &str = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n";

#[test]
fn a_whole_policy() {
    let text = format!(
        "{HEAD}nodeSelector: pool=a\nmaxNoOfPodsToEvictPerNode: 3\nmaxNoOfPodsToEvictPerNamespace: 4\n\
         maxNoOfPodsToEvictTotal: 5\ngracePeriodSeconds: 0\nevictionFailureEventNotification: true\n\
         metricsProviders:\n- source: KubernetesMetrics\n- source: Prometheus\n  prometheus:\n    url: https://p:9090\n    \
         authToken: {{secretReference: {{namespace: ns, name: s}}}}\nprofiles:\n- name: p\n  pluginConfig:\n  \
         - name: DefaultEvictor\n    args: {{nodeFit: true}}\n  - name: PodLifeTime\n  - name: LowNodeUtilization\n    \
         args: {{thresholds: {{cpu: 20}}}}\n  plugins:\n    deschedule: {{enabled: [PodLifeTime]}}\n    \
         balance: {{enabled: [LowNodeUtilization]}}\n"
    );
    let compiled = compiled(&text, false);
    assert_eq!(said(&compiled), [] as [&str; 0]);
    let policy = compiled.policy.expect("a policy");
    assert_eq!((policy.most_per_node, policy.most_per_namespace, policy.most_in_all), (Some(3), Some(4), Some(5)));
    assert_eq!((policy.grace_seconds, policy.tell_of_failures, policy.metrics_server), (Some(0), true, true));
    assert_eq!(policy.prometheus, Some(("https://p:9090".into(), Some(("ns".into(), "s".into())))));
    let profile = &policy.profiles[0];
    assert_eq!(
        (&profile.deschedule[..], &profile.balance[..]),
        (&["PodLifeTime".into()][..], &["LowNodeUtilization".into()][..])
    );
}

/// what has no `plugins` runs nothing in the descheduler; that is said, and can be had otherwise.
#[test]
fn a_profile_without_plugins() {
    let text =
        format!("{HEAD}profiles:\n- name: p\n  pluginConfig:\n  - name: LowNodeUtilization\n  - name: PodLifeTime\n");
    let silent = compiled(&text, false);
    assert_eq!(
        said(&silent),
        [
            "6: warning: the profile has no `plugins`: `LowNodeUtilization` is configured, and does not run; write \
             `plugins: {balance: {enabled: [LowNodeUtilization]}}`, or give --auto-enable",
            "7: warning: the profile has no `plugins`: `PodLifeTime` is configured, and does not run; write \
             `plugins: {deschedule: {enabled: [PodLifeTime]}}`, or give --auto-enable",
        ]
    );
    assert!(silent.policy.expect("a policy").profiles[0].balance.is_empty());
    let enabled = compiled(&text, true);
    assert_eq!(enabled.problems.len(), 2);
    let profile = &enabled.policy.expect("a policy").profiles[0];
    assert_eq!((profile.deschedule[0].as_str(), profile.balance[0].as_str()), ("PodLifeTime", "LowNodeUtilization"));
}

#[test]
fn mistakes() {
    let profile = "profiles:\n- name: p\n";
    for (text, wanted) in [
        ("", "1: error: the policy is empty; begin the file with"),
        ("kind: DeschedulerPolicy\nprofiles: []\n", "the policy has no `apiVersion`"),
        (
            "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\nprofiles: []\n",
            "1: error: the version v1alpha1 is not read",
        ),
        (
            &format!("{HEAD}maxNoOfPodsToEvictPerNod: 3\n{profile}"),
            "3: error: the policy has no field `maxNoOfPodsToEvictPerNod`; did you mean `maxNoOfPodsToEvictPerNode`?",
        ),
        (&format!("{HEAD}maxPodsToEvictTotal: 3\n{profile}"), "did you mean `maxNoOfPodsToEvictTotal`?"),
        (
            &format!("{HEAD}maxNoOfPodsToEvictTotal: \"3\"\n{profile}"),
            "3: error: `maxNoOfPodsToEvictTotal` has to be a whole number, but is the text `3`",
        ),
        (&format!("{HEAD}maxNoOfPodsToEvictTotal: -1\n{profile}"), "has to be at least 0"),
        (
            &format!("{HEAD}nodeSelector: \"a in (b\"\n{profile}"),
            "3: error: `nodeSelector` cannot be read: a `(` without a `)`",
        ),
        (
            &format!("{HEAD}{profile}  pluginConfig:\n  - name: LowNodeUtilisation\n"),
            "6: error: there is no plugin called `LowNodeUtilisation`; did you mean `LowNodeUtilization`?",
        ),
        (
            &format!("{HEAD}{profile}  pluginConfig:\n  - name: LowNodeUtilization\n    args: {{nodefit: true}}\n"),
            "7: error: `args` of `LowNodeUtilization`, `nodefit`: there is no field `nodefit`; did you mean `nodeFit`?",
        ),
        (
            &format!("{HEAD}{profile}  plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}\n"),
            "5: error: the plugin `LowNodeUtilization` is enabled, and has no entry in `pluginConfig`",
        ),
        (
            &format!(
                "{HEAD}{profile}  pluginConfig: [{{name: PodLifeTime}}]\n  plugins: {{balance: {{enabled: [PodLifeTime]}}}}\n"
            ),
            "`PodLifeTime` takes no part at `balance`; it takes part at `deschedule`",
        ),
        (
            &format!(
                "{HEAD}{profile}  pluginConfig: [{{name: OldSpread}}]\n  plugins: {{balance: {{enabled: [OldSpread]}}}}\n"
            ),
            "5: warning: `OldSpread` is another name of `Spread`",
        ),
        (&format!("{HEAD}{profile}  thresholds: {{}}\n"), "5: error: a profile has no field `thresholds`"),
        (
            &format!("{HEAD}{profile}- name: p\n"),
            "5: error: the profile `p` is there twice; the first one is at line 4",
        ),
        (
            &format!("{HEAD}metricsProviders: [{{source: Prometheus}}]\n{profile}"),
            "the source `Prometheus` needs `prometheus`",
        ),
        (
            &format!("{HEAD}metricsProviders: [{{source: Prometheus, prometheus: {{url: nowhere}}}}]\n{profile}"),
            "the address `nowhere` cannot be read",
        ),
        (
            &format!(
                "{HEAD}metricsProviders: [{{source: Prometheus, prometheus: {{url: \"http://p\", authToken: {{secretReference: {{name: s}}}}}}}}]\n{profile}"
            ),
            "`secretReference` needs a `namespace`",
        ),
        (
            &format!(
                "{HEAD}metricsProviders: [{{source: KubernetesMetrics}}, {{source: KubernetesMetrics}}]\n{profile}"
            ),
            "the source `KubernetesMetrics` is there twice",
        ),
        (
            &format!(
                "{HEAD}metricsCollector: {{enabled: true}}\nmetricsProviders: [{{source: KubernetesMetrics}}]\n{profile}"
            ),
            "asked by `metricsCollector` already",
        ),
        (
            &format!("{HEAD}metricsProviders: [{{source: Datadog}}]\n{profile}"),
            "there is no source called `Datadog`; sources are: KubernetesMetrics, Prometheus",
        ),
        (
            &format!(
                "{HEAD}{profile}  pluginConfig: [{{name: LowNodeUtilization}}, {{name: HighNodeUtilization}}]\n  plugins: {{balance: {{enabled: [LowNodeUtilization, HighNodeUtilization]}}}}\n"
            ),
            "undo each other's work",
        ),
        (HEAD, "the policy has no `profiles`"),
        ("strategies: {}\n", "the policy has no field `strategies`; that is version v1alpha1"),
    ] {
        let said = said(&compiled(text, false));
        assert!(said.iter().any(|one| one.contains(wanted)), "{text}\n{said:#?}\n{wanted}");
    }
}
