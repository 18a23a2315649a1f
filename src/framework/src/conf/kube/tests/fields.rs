//! Fields: unknown, twice, at the wrong depth, of the wrong type.

use super::{Expected, HEAD, expect, one};

fn top(text: &str) -> String {
    format!("{HEAD}{text}")
}

#[test]
fn versions() {
    let of = |version: &str| format!("apiVersion: {version}\nkind: KubeSchedulerConfiguration\n");
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        ("v1", of("kubescheduler.config.k8s.io/v1"), &[]),
        (
            "v1beta3",
            of("kubescheduler.config.k8s.io/v1beta3"),
            &[("error 1:13", "the version `kubescheduler.config.k8s.io/v1beta3` is not read", "strategies of")],
        ),
        (
            "the oldest",
            of("componentconfig/v1alpha1"),
            &[("error 1:13", "`componentconfig/v1alpha1`", "write `apiVersion: kubescheduler.config.k8s.io/v1`")],
        ),
        (
            "no version",
            "kind: KubeSchedulerConfiguration\n".to_owned(),
            &[("error 1:1", "has no `apiVersion`", "begin the file with")],
        ),
        (
            "no kind",
            "apiVersion: kubescheduler.config.k8s.io/v1\n".to_owned(),
            &[("error 1:1", "has no `kind`", "begin the file with")],
        ),
        (
            "profiles alone",
            "profiles: []\n".to_owned(),
            &[
                ("error 1:1", "no section called `profiles`", "begins with `apiVersion: kubescheduler"),
                ("error 1:1", "no `actions`", ""),
                ("error 1:1", "no `tiers`", ""),
            ],
        ),
        (
            "a field of an older version",
            top("healthzBindAddress: 0.0.0.0\n"),
            &[("error 3:1", "`healthzBindAddress` is a field of older versions", "--healthz-address")],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, source, want);
    }
}

#[test]
fn keys_at_the_wrong_depth() {
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        (
            "a point beside plugins",
            one("- schedulerName: a\n  plugins:\n    filter: {}\n  score:\n    enabled: []\n"),
            &[("error 7:3", "`score` does not belong to a profile", "under `plugins:` of a profile (line 5)")],
        ),
        (
            "schedulerName under plugins",
            one("- plugins:\n    schedulerName: a\n"),
            &[(
                "error 5:5",
                "`schedulerName` does not belong to `plugins`",
                "one level to the left of here: beside line 4",
            )],
        ),
        (
            "pluginConfig under plugins",
            one("- schedulerName: a\n  plugins:\n    pluginConfig: []\n"),
            &[("error 6:5", "`pluginConfig` does not belong to `plugins`", "beside line 5")],
        ),
        (
            "plugins at the top",
            top("plugins: {}\nprofiles: []\n"),
            &[("error 3:1", "`plugins` does not belong to the configuration", "into an entry of `profiles`")],
        ),
        (
            "a point at the top",
            top("score: {}\n"),
            &[("error 3:1", "`score` does not belong to the configuration", "under `plugins:` of a profile")],
        ),
        (
            "parallelism in a profile",
            one("- parallelism: 4\n"),
            &[("error 4:3", "`parallelism` does not belong to a profile", "at the top of the file")],
        ),
        (
            "enabled beside a point",
            one("- plugins:\n    enabled: []\n"),
            &[("error 5:5", "`enabled` does not belong to `plugins`", "under an extension point")],
        ),
        (
            "a plugin without enabled",
            one("- plugins:\n    score:\n      name: Ours\n"),
            &[("error 6:7", "`name` does not belong to an extension point", "into an entry of `enabled`")],
        ),
        (
            "a list of plugins without enabled",
            one("- plugins:\n    score:\n    - name: Ours\n"),
            &[("error 6:7", "an extension point has to be a mapping, but is a list", "write `enabled:`")],
        ),
        (
            "args of a plugin that is enabled",
            one("- plugins:\n    score:\n      enabled:\n      - name: Ours\n        args: {}\n"),
            &[("error 8:9", "`args` does not belong to an entry of `enabled`", "`pluginConfig` of a profile")],
        ),
        (
            "a weight in pluginConfig",
            one("- pluginConfig:\n  - name: NodeName\n    weight: 3\n"),
            &[("error 6:5", "`weight` does not belong to an entry of `pluginConfig`", "into an entry of `enabled`")],
        ),
        (
            "an argument beside args",
            one("- pluginConfig:\n  - name: NodeName\n    strength: 3\n"),
            &[("error 6:5", "an entry of `pluginConfig` has no field `strength`", "stands under `args:`")],
        ),
        (
            "leaderElect at the top",
            top("leaderElect: false\n"),
            &[("error 3:1", "`leaderElect` does not belong to the configuration", "under `leaderElection:`")],
        ),
        (
            "the name of a profile",
            one("- name: a\n"),
            &[("error 4:3", "`name` does not belong to a profile", "`schedulerName`")],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, source, want);
    }
}

#[test]
fn unknown_and_repeated_keys() {
    let cases: &[(&str, String, &[Expected<'_>])] = &[
        (
            "unknown",
            top("paralelism: 4\n"),
            &[("error 3:1", "the configuration has no field `paralelism`", "did you mean `parallelism`?")],
        ),
        (
            "of another case",
            one("- schedulername: a\n"),
            &[("error 4:3", "no field `schedulername`", "did you mean `schedulerName`?")],
        ),
        (
            "a misspelt point",
            one("- plugins:\n    prefilter: {}\n"),
            &[("error 5:5", "no field `prefilter`", "did you mean `preFilter`?")],
        ),
        (
            "nearly a point, in a profile",
            one("- scores: {}\n"),
            &[("error 4:3", "a profile has no field `scores`", "if `score` is meant, it belongs under `plugins:`")],
        ),
        (
            "twice",
            top("parallelism: 4\nparallelism: 5\n"),
            &[("error 4:1", "the key `parallelism` is there twice", "line 3")],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, source, want);
    }
}

#[test]
fn values_at_the_top() {
    let cases: &[(&str, &str, &[Expected<'_>])] = &[
        ("nothing odd", "parallelism: 1\nenableProfiling: false\ndelayCacheUntilActive: true\n", &[]),
        ("parallelism", "parallelism: 0\n", &[("error 3:14", "has to be at least 1", "")]),
        ("percentage", "percentageOfNodesToScore: 101\n", &[("error 3:27", "has to be from 0 to 100", "")]),
        ("profiling", "enableProfiling: \"yes\"\n", &[("error 3:18", "has to be true or false", "without quotes")]),
        ("back-off", "podInitialBackoffSeconds: 0\n", &[("error 3:27", "has to be at least 1", "")]),
        (
            "back-off that shrinks",
            "podMaxBackoffSeconds: 3\npodInitialBackoffSeconds: 5\n",
            &[
                ("warning 3:1", "back-off of pods counts with --profile-only", ""),
                ("error 3:23", "3 is less than 5", "write `podMaxBackoffSeconds: 5`"),
            ],
        ),
        ("leader election", "leaderElection:\n  leaderElect: true\n", &[]),
        (
            "leader election off",
            "leaderElection:\n  leaderElect: false\n",
            &[("warning 3:1", "`leaderElection` has no effect in this file", "--leader-elect")],
        ),
        (
            "a lease shorter than its renewal",
            "leaderElection: {leaseDuration: 10s, renewDeadline: 10s}\n",
            &[
                ("warning 3:1", "no effect", ""),
                ("error 3:33", "`leaseDuration` has to be more than `renewDeadline`, which is 10000 ms", "15s"),
            ],
        ),
        (
            "a renewal shorter than its tries",
            "leaderElection: {renewDeadline: 2s}\n",
            &[
                ("warning 3:1", "no effect", ""),
                ("error 3:33", "`renewDeadline` has to be more than 1.2 times `retryPeriod`", ""),
            ],
        ),
        (
            "a duration without a unit",
            "leaderElection: {renewDeadline: 5}\n",
            &[("warning 3:1", "no effect", ""), ("error 3:33", "has to be a duration", "write a unit: `5s`")],
        ),
        (
            "another lock",
            "leaderElection: {resourceLock: endpoints}\n",
            &[("warning 3:1", "no effect", ""), ("error 3:32", "`resourceLock` has to be `leases`", "")],
        ),
        (
            "a kubeconfig",
            "clientConnection:\n  kubeconfig: /etc/kubernetes/scheduler.conf\n",
            &[("warning 3:1", "`clientConnection` has no effect in this file", "--kubeconfig")],
        ),
        (
            "a burst below zero",
            "clientConnection: {burst: -1}\n",
            &[("warning 3:1", "", ""), ("error 3:27", "has to be at least 0", "")],
        ),
    ];
    for (name, source, want) in cases {
        expect(name, &top(source), want);
    }
}

#[test]
fn a_config_map_is_looked_into() {
    let source = "kind: ConfigMap\ndata:\n  config.yaml: |\n    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: \
                  KubeSchedulerConfiguration\n    profiles:\n    - score: {}\n";
    let want = [("error 7:7", "`score` does not belong to a profile", "`plugins:`")];
    expect("in a ConfigMap", source, &want);
}
