//! Profiles of a KubeSchedulerConfiguration, with the plugins of this crate.

use krafla_framework::ExtensionPoint::{Filter, PreScore, Score};
use krafla_framework::conf::compile::{Compiled, compile};
use krafla_framework::conf::policy::ProfilePolicy;
use krafla_framework::{ExtensionPoint, Policy, Verdict, Why};
use krafla_testkit::{Scene, scores, verdict};

use crate::testing::{objections_one_by_one, registry};

const TWO_PROFILES: &str = include_str!("../../conf/kube-scheduler/two-profiles.yaml");
const COSCHEDULING: &str = include_str!("../../conf/kube-scheduler/coscheduling-profile.yaml");

fn compiled(text: &str) -> Compiled {
    compile(text, "kube.yaml", &registry().catalogue())
}

/// What is told about a text, but for what a build lacks.
fn told(compiled: &Compiled) -> Vec<String> {
    let all = compiled.problems.iter().map(|p| format!("{}:{} {}: {}", p.line, p.column, p.severity, p.message));
    all.filter(|told| !told.contains("is not in this build yet")).collect()
}

fn at(profile: &ProfilePolicy, point: ExtensionPoint) -> Vec<String> {
    let shown = |(name, weight): &(String, i64)| {
        if point == Score { format!("{name}={weight}") } else { name.clone() }
    };
    profile.points.get(&point).into_iter().flatten().map(shown).collect()
}

/// One profile `default-scheduler` that says this below `plugins` and `pluginConfig`.
fn profile(plugins: &str, config: &str) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: \
         {plugins}\n  pluginConfig: {config}\n"
    )
}

fn only(plugin: &str) -> String {
    format!("{{score: {{disabled: [{{name: \"*\"}}], enabled: [{{name: {plugin}}}]}}}}")
}

fn by_default_scheduler(job: krafla_testkit::JobScene) -> krafla_testkit::JobScene {
    job.shape(|shape| shape.scheduler_name = "default-scheduler".into())
}

#[test]
fn a_120_the_example_with_two_profiles_is_accepted_as_written() {
    let compiled = compiled(TWO_PROFILES);
    assert_eq!(
        told(&compiled),
        [
            "11:15 warning: `NodeResourcesLeastAllocated` is a name of older versions; here it scores by itself, and \
             filters nothing",
            "17:15 warning: Coscheduling is asked at `permit`, but not at preFilter, postFilter, reserve",
            "25:15 warning: `NodeResourcesMostAllocated` is a name of older versions; here it scores by itself, and \
             filters nothing",
        ]
    );
    let policy = compiled.policy.expect("it is accepted");
    assert_eq!((&policy.actions, &policy.tiers), (&Policy::builtin().actions, &Policy::builtin().tiers));
    let [default, cost] = policy.profiles.as_slice() else { panic!("two profiles: {:?}", policy.profiles) };
    assert_eq!((default.name.as_str(), cost.name.as_str()), ("default-scheduler", "cost-optimized-scheduler"));
    assert_eq!(
        at(default, Score),
        [
            "NodeResourcesBalancedAllocation=100",
            "TaintToleration=3",
            "NodeAffinity=2",
            "NodeResourcesFit=1",
            "VolumeBinding=1",
            "PodTopologySpread=2",
            "InterPodAffinity=2",
            "DynamicResources=2",
            "ImageLocality=1",
            "NodeResourcesLeastAllocated=40",
        ]
    );
    assert_eq!(
        at(cost, Score),
        [
            "ImageLocality=50",
            "TaintToleration=3",
            "NodeAffinity=2",
            "NodeResourcesFit=1",
            "VolumeBinding=1",
            "PodTopologySpread=2",
            "InterPodAffinity=2",
            "DynamicResources=2",
            "NodeResourcesBalancedAllocation=1",
            "NodeResourcesMostAllocated=100",
        ]
    );
    for profile in [default, cost] {
        assert!(
            at(profile, Filter)
                .join(" ")
                .starts_with("NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit")
        );
        assert!(at(profile, PreScore).contains(&"NodeResourcesFit".to_owned()));
    }
}

/// A node that is half full and even, and one that is empty.
fn half_full() -> Scene {
    Scene::new()
        .node("half", "4c4Gi")
        .node("empty", "4c4Gi")
        .job("r", |job| job.running(1, "2c2Gi", "half"))
        .job("p", |job| by_default_scheduler(job).pending(1, "1c1Gi"))
        .job("q", |job| job.shape(|shape| shape.scheduler_name = "cost-optimized-scheduler".into()).pending(1, "1c1Gi"))
}

#[test]
fn a_121_and_a_122_weights_take_effect_in_the_choice_of_nodes() {
    let cluster = half_full().build();
    // In tie order: `empty`, `half`. Both are even before and after: 75. Then (4 - 1) / 4 and (4 - 3) / 4; TaintToleration
    // is 100 for each.
    let rest = |balance: f64, fit: [f64; 2]| fit.map(|fit| 3.0 * 100.0 + balance * 75.0 + fit);
    let least = [75.0, 25.0].map(|score| score * 40.0 + score);
    assert_eq!(scores(&cluster, &registry(), TWO_PROFILES, "p-0"), rest(100.0, least));
    // 1 / 4 and 3 / 4 with weight 100; NodeResourcesFit as it was.
    let most = [25.0 * 100.0 + 75.0, 75.0 * 100.0 + 25.0];
    assert_eq!(scores(&cluster, &registry(), TWO_PROFILES, "q-0"), rest(1.0, most));
}

#[test]
fn the_example_of_coscheduling_is_accepted_as_written() {
    let compiled = compiled(COSCHEDULING);
    assert_eq!(
        told(&compiled),
        [
            "8:15 warning: Coscheduling is asked at `permit`, but not at preFilter, postFilter, reserve",
            "12:7 warning: `permittedWaitingTimeSeconds` of `Coscheduling` is taken for `permitWaitingTimeSeconds`",
            "13:7 warning: `deniedWaitingTimeSeconds` of `Coscheduling` is taken for `podGroupBackoffSeconds`",
            "14:7 warning: `podGroupGCIntervalSeconds` of `Coscheduling` has no effect: groups are forgotten when \
             their pods are gone",
        ]
    );
    assert_eq!(compiled.policy.expect("it is accepted").profiles[0].name, "coscheduling-scheduler");
}

#[test]
fn args_are_checked_by_the_plugins() {
    let affinity = |inner: &str| format!("{{addedAffinity: {{{inner}}}}}");
    let required = |terms: &str| {
        affinity(&format!("requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{terms}]}}"))
    };
    let condition = |text: &str| required(&format!("{{matchExpressions: [{{{text}}}]}}"));
    let fit = |inner: &str| format!("{{scoringStrategy: {{{inner}}}}}");
    let spread = |inner: &str| format!("{{defaultingType: List, defaultConstraints: [{{{inner}}}]}}");
    const SKEW: &str = "maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway";
    let fine = [
        ("NodeAffinity", condition("key: disk, operator: In, values: [ssd]")),
        ("NodeAffinity", condition("key: a.b/c, operator: Gt, values: [\"5\"]")),
        ("NodeAffinity", required("{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}")),
        (
            "NodeAffinity",
            affinity(
                "preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, preference: {matchExpressions: []}}]",
            ),
        ),
        (
            "NodeResourcesFit",
            fit("type: MostAllocated, resources: [{name: cpu, weight: 100}, {name: a.b/c, weight: 0}]"),
        ),
        (
            "NodeResourcesFit",
            fit("type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, score: 10}, \
                 {utilization: 100, score: 0}]}"),
        ),
        ("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 1}, {name: nvidia.com/gpu}]}".to_owned()),
        ("PodTopologySpread", spread(SKEW)),
        ("PodTopologySpread", spread(&SKEW.replace("ScheduleAnyway", "DoNotSchedule, minDomains: 2"))),
        ("PodTopologySpread", "{defaultingType: System}".to_owned()),
        ("InterPodAffinity", "{hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}".to_owned()),
    ];
    for (plugin, args) in fine {
        let compiled = compiled(&profile("{}", &format!("[{{name: {plugin}, args: {args}}}]")));
        assert_eq!(told(&compiled), Vec::<String>::new(), "{args}");
    }
    let shape =
        |points: &str| fit(&format!("type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: [{points}]}}"));
    for (plugin, args, want) in [
        ("NodeAffinity", required(""), "nodeSelectorTerms`: without terms no node would do"),
        ("NodeAffinity", condition("key: disk, operator: In"), "values`: In needs at least one value"),
        ("NodeAffinity", condition("key: disk, operator: Exists, values: [a]"), "values`: Exists takes no values"),
        ("NodeAffinity", condition("key: disk, operator: Lt, values: [a]"), "values`: Lt takes one whole number"),
        ("NodeAffinity", condition("key: disk, operator: Is, values: [a]"), "operator`: there is no `Is`"),
        ("NodeAffinity", condition("key: disk"), "operator`: it is missing"),
        ("NodeAffinity", condition("key: \"a b\", operator: Exists"), "key`: `a b` cannot be the key of a label"),
        (
            "NodeAffinity",
            required("{matchFields: [{key: spec, operator: In, values: [a]}]}"),
            "nodeSelectorTerms[0].matchFields[0].key`: there is no field `spec` to match",
        ),
        (
            "NodeAffinity",
            required("{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}"),
            "operator`: a field takes In or NotIn with one value",
        ),
        (
            "NodeAffinity",
            affinity("preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]"),
            "weight`: it has to be from 1 to 100, but is 101",
        ),
        ("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}".to_owned(), "`a/b` is not a group"),
        ("NodeResourcesFit", "{ignoredResources: [\"a b\"]}".to_owned(), "is not the name of a resource"),
        ("NodeResourcesFit", fit("resources: []"), "type`: a strategy needs a `type`"),
        ("NodeResourcesFit", fit("type: Least"), "type`: there is no `Least`"),
        (
            "NodeResourcesFit",
            fit("type: MostAllocated, resources: [{name: cpu, weight: 101}]"),
            "resources[0].weight`: it has to be from 1 to 100, but is 101",
        ),
        ("NodeResourcesFit", fit("type: RequestedToCapacityRatio"), "the strategy needs a `shape`"),
        ("NodeResourcesFit", shape(""), "the strategy needs a `shape`"),
        ("NodeResourcesFit", shape("{utilization: 101, score: 1}"), "utilization`: it has to be from 0 to 100"),
        ("NodeResourcesFit", shape("{utilization: 1, score: 11}"), "score`: it has to be from 0 to 10"),
        (
            "NodeResourcesFit",
            shape("{utilization: 5, score: 1}, {utilization: 5, score: 2}"),
            "shape[1].utilization`: it has to be over that of the point before, which is 5",
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}]}".to_owned(),
            "resources[0].weight`: it has to be 1, but is 2",
        ),
        ("NodeResourcesBalancedAllocation", "{resources: [{weight: 1}]}".to_owned(), "name`: it has no name"),
        ("PodTopologySpread", spread("topologyKey: zone, whenUnsatisfiable: DoNotSchedule"), "maxSkew`: it is missing"),
        ("PodTopologySpread", spread(&SKEW.replace('1', "0")), "maxSkew`: it has to be from 1 to 2147483647, but is 0"),
        ("PodTopologySpread", spread(&SKEW.replace("zone", "\"a b\"")), "topologyKey`: `a b` cannot be"),
        ("PodTopologySpread", spread(&SKEW.replace("ScheduleAnyway", "Never")), "there is no `Never`"),
        ("PodTopologySpread", spread(&format!("{SKEW}, labelSelector: {{}}")), "labelSelector`: default constraints"),
        ("PodTopologySpread", spread(&format!("{SKEW}, minDomains: 2")), "minDomains`: it needs"),
        (
            "PodTopologySpread",
            spread(&format!("{SKEW}}}, {{{SKEW}")),
            "defaultConstraints[1].topologyKey`: another constraint has this key",
        ),
        (
            "PodTopologySpread",
            spread(SKEW).replace("defaultingType: List, ", ""),
            "defaultConstraints`: there are constraints, but `defaultingType` is System",
        ),
        ("InterPodAffinity", "{hardPodAffinityWeight: 101}".to_owned(), "it has to be from 0 to 100, but is 101"),
        ("InterPodAffinity", "{hardPodAffinityWeigth: 1}".to_owned(), "there is no field `hardPodAffinityWeigth`"),
    ] {
        let compiled = compiled(&profile("{}", &format!("[{{name: {plugin}, args: {args}}}]")));
        let errors: Vec<String> = compiled.errors().map(|problem| problem.message.clone()).collect();
        assert!(errors.len() == 1 && errors[0].contains(want), "{args}: {errors:?}");
    }
}

#[test]
fn added_affinity_holds_for_every_pod_of_the_profile() {
    let scene = Scene::new()
        .node_with("ssd", "4c4Gi", |node| node.labels.set("disk".into(), "ssd".into()))
        .node("hdd", "4c4Gi")
        .job("p", |job| by_default_scheduler(job).pending(1, "1c"))
        .job("other", |job| job.shape(|shape| shape.scheduler_name = "another".into()).pending(1, "1c"));
    let cluster = scene.build();
    let condition = "{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}";
    let added = |text: &str| {
        profile(&only("NodeAffinity"), &format!("[{{name: NodeAffinity, args: {{addedAffinity: {text}}}}}]"))
    };
    let required =
        added(&format!("{{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{condition}]}}}}"));
    let says = |pod, node| match verdict(&cluster, &registry(), &required, pod, node) {
        Ok(_) => None,
        Err(Verdict::Unresolvable(Why::Says(why))) => Some(why),
        Err(other) => panic!("{other:?}"),
    };
    assert_eq!(says("p-0", "ssd"), None);
    assert_eq!(says("p-0", "hdd"), Some("node(s) didn't match scheduler-enforced node affinity"));
    assert_eq!(says("other-0", "hdd"), None, "a pod of another scheduler");
    let preferred = added(&format!(
        "{{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 3, preference: {condition}}}]}}"
    ));
    assert_eq!(scores(&cluster, &registry(), &preferred, "p-0"), [0.0, 100.0]);
}

#[test]
fn the_strategy_of_a_profile_scores() {
    let cluster = half_full().build();
    let strategy =
        |args: &str| profile(&only("NodeResourcesFit"), &format!("[{{name: NodeResourcesFit, args: {args}}}]"));
    let legacy = |name: &str, args: &str| profile(&only(name), &format!("[{{name: {name}, args: {args}}}]"));
    const SHAPE: &str =
        "shape: [{utilization: 0, score: 0}, {utilization: 50, score: 10}, {utilization: 100, score: 5}]";
    for (text, want) in [
        (strategy("{}"), [75.0, 25.0]),
        (strategy("{scoringStrategy: {type: MostAllocated}}"), [25.0, 75.0]),
        // 25 % and 75 %: half way up to 100, and half way down to 50.
        (
            strategy(&format!(
                "{{scoringStrategy: {{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{{SHAPE}}}}}}}"
            )),
            [50.0, 75.0],
        ),
        (legacy("NodeResourcesLeastAllocated", "{}"), [75.0, 25.0]),
        (legacy("NodeResourcesMostAllocated", "{resources: [{name: cpu, weight: 3}]}"), [25.0, 75.0]),
        (legacy("RequestedToCapacityRatio", &format!("{{{SHAPE}}}")), [50.0, 75.0]),
    ] {
        assert_eq!(scores(&cluster, &registry(), &text, "p-0"), want, "{text}");
    }
    let without_shape = compiled(&profile(&only("RequestedToCapacityRatio"), "[]"));
    assert!(without_shape.errors().any(|problem| problem.message.contains("needs a `shape`")));
}

#[test]
fn what_is_in_force_is_printed_and_compiles_again() {
    let policy = compiled(TWO_PROFILES).policy.expect("it is accepted");
    let printed = policy.to_yaml(&registry().catalogue());
    let scores = "\n    score:\n      enabled:\n      - name: NodeResourcesBalancedAllocation\n        weight: 100\n";
    assert!(printed.contains(scores), "{printed}");
    let again = compiled(&printed);
    assert_eq!(again.policy, Some(policy), "{:?}", again.problems);
}

#[test]
fn a_configuration_that_says_nothing_is_the_default_profile() {
    let nothing = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let policy = compiled(nothing).policy.expect("it is accepted");
    assert_eq!(policy.profiles, [ProfilePolicy::default_profile(&registry())]);
}

#[test]
fn a_node_objects_with_the_first_filter_of_the_profile_and_with_all_that_it_lacks() {
    let scene = Scene::new()
        .tainted_node("t", "1c1Gi", "x", krafla_model::taints::Effect::NoSchedule)
        .node("small", "1c1Gi")
        .job("p", |job| job.pending(1, "2c2Gi"));
    let said = objections_one_by_one(&scene, "p-0");
    let said: Vec<(&str, u32)> = said.iter().map(|(words, n)| (words.as_str(), *n)).collect();
    let want = [("Insufficient cpu", 1), ("Insufficient memory", 1), ("node(s) had untolerated taint(s)", 1)];
    assert_eq!(said, want);
}
