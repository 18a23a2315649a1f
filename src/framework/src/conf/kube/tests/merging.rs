//! Who is asked where: each rule of merging and expansion.

use super::{at, one, policy};
use crate::scheduling::point::ExtensionPoint::{
    self, Bind, Filter, Permit, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort, Reserve, Score,
};

const DEFAULT_FILTERS: &str = "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit \
                               NodeVolumeLimits PodTopologySpread InterPodAffinity NodeDeclaredFeatures";
const DEFAULT_SCORES: &str = "TaintToleration=3 NodeAffinity=2 NodeResourcesFit=1 PodTopologySpread=2 \
                              InterPodAffinity=2 NodeResourcesBalancedAllocation=1 ImageLocality=1";

#[test]
fn the_default_profile_is_that_of_kubernetes() {
    for source in [
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n".to_owned(),
        one("[]\n").replace("profiles:\n", "profiles: "),
        one("- plugins:\n    score:\n"),
    ] {
        let policy = policy(&source);
        assert_eq!(policy.actions, ["enqueue", "allocate", "backfill"]);
        let [profile] = policy.profiles.as_slice() else { panic!("one profile: {policy:?}") };
        assert_eq!((profile.name.as_str(), profile.percentage_of_nodes_to_score), ("default-scheduler", None));
        for (point, want) in [
            (PreEnqueue, "SchedulingGates DefaultPreemption"),
            (QueueSort, "PrioritySort"),
            (
                PreFilter,
                "NodeAffinity NodePorts NodeResourcesFit NodeVolumeLimits PodTopologySpread InterPodAffinity \
                 NodeDeclaredFeatures",
            ),
            (Filter, DEFAULT_FILTERS),
            (PostFilter, "DefaultPreemption"),
            (
                PreScore,
                "TaintToleration NodeAffinity NodeResourcesFit PodTopologySpread InterPodAffinity \
                 NodeResourcesBalancedAllocation",
            ),
            (Score, DEFAULT_SCORES),
            (Reserve, ""),
            (Permit, ""),
            (PreBind, ""),
            (Bind, "DefaultBinder"),
        ] {
            assert_eq!(at(profile, point), want, "{point}");
        }
    }
}

/// A rule, what a profile says below `plugins`, a point, and who is asked there.
type Case<'a> = (&'a str, &'a str, ExtensionPoint, String);

//
#[test]
fn each_rule_of_merging_and_expansion() {
    let no_filters = |names: &[&str]| {
        let kept = DEFAULT_FILTERS.split(' ').filter(|name| !names.contains(name));
        kept.collect::<Vec<_>>().join(" ")
    };
    let scores = |changed: &[(&str, &str)]| {
        changed.iter().fold(DEFAULT_SCORES.to_owned(), |scores, (old, new)| scores.replace(old, new))
    };
    let cases: &[Case<'_>] = &[
        (
            "disabling at a point takes a default away there",
            "filter: {disabled: [{name: NodePorts}]}",
            Filter,
            no_filters(&["NodePorts"]),
        ),
        (
            "and nowhere else",
            "filter: {disabled: [{name: NodePorts}]}",
            PreFilter,
            "NodeAffinity NodePorts NodeResourcesFit NodeVolumeLimits PodTopologySpread InterPodAffinity \
             NodeDeclaredFeatures"
                .to_owned(),
        ),
        (
            "disabling at multiPoint takes it away everywhere",
            "multiPoint: {disabled: [{name: TaintToleration}]}",
            Filter,
            no_filters(&["TaintToleration"]),
        ),
        (
            "at every point",
            "multiPoint: {disabled: [{name: TaintToleration}]}",
            Score,
            scores(&[("TaintToleration=3 ", "")]),
        ),
        ("* at a point takes all away", "score: {disabled: [{name: \"*\"}]}", Score, String::new()),
        (
            "* at a point leaves what the point enables",
            "score: {disabled: [{name: \"*\"}], enabled: [{name: ImageLocality, weight: 7}, {name: Ours}]}",
            Score,
            "ImageLocality=7 Ours=1".to_owned(),
        ),
        (
            "* at multiPoint takes all defaults away",
            "multiPoint: {disabled: [{name: \"*\"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: Ours}]}",
            Filter,
            "Ours".to_owned(),
        ),
        (
            "disabling at multiPoint, enabling at a point: only there",
            "{multiPoint: {disabled: [{name: NodePorts}]}, filter: {enabled: [{name: NodePorts}]}}",
            Filter,
            format!("{} NodePorts", no_filters(&["NodePorts"])),
        ),
        (
            "disabled and enabled again at multiPoint: it goes to the end",
            "multiPoint: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}",
            Filter,
            format!("{} NodeName", no_filters(&["NodeName"])),
        ),
        (
            "a default that multiPoint names keeps its place and takes the new weight",
            "multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}",
            Score,
            scores(&[("NodeAffinity=2", "NodeAffinity=9")]),
        ),
        (
            "without a weight it takes 1, not its default",
            "multiPoint: {enabled: [{name: TaintToleration}]}",
            Score,
            scores(&[("TaintToleration=3", "TaintToleration=1")]),
        ),
        (
            "others that multiPoint names are appended in their order",
            "multiPoint: {enabled: [{name: Tuned, weight: 4}, {name: ImageLocality, weight: 5}, {name: Ours}]}",
            Score,
            format!("{} Tuned=4 Ours=1", scores(&[("ImageLocality=1", "ImageLocality=5")])),
        ),
        (
            "a point that names a default asks it first (1)",
            "score: {enabled: [{name: ImageLocality, weight: 5}, {name: NodeAffinity, weight: 6}]}",
            Score,
            format!("ImageLocality=5 NodeAffinity=6 {}", scores(&[("NodeAffinity=2 ", ""), (" ImageLocality=1", "")])),
        ),
        (
            "then the rest of multiPoint (2), then what only the point has (3)",
            "score: {enabled: [{name: Ours, weight: 8}, {name: ImageLocality}, {name: Tuned}]}",
            Score,
            format!("ImageLocality=1 {} Ours=8 Tuned=1", scores(&[(" ImageLocality=1", "")])),
        ),
        (
            "disabled and enabled at a point: no override, it comes last",
            "score: {enabled: [{name: NodeAffinity, weight: 4}], disabled: [{name: NodeAffinity}]}",
            Score,
            format!("{} NodeAffinity=4", scores(&[("NodeAffinity=2 ", "")])),
        ),
        (
            "the weight of the point goes before that of multiPoint",
            "{multiPoint: {enabled: [{name: Ours, weight: 4}]}, score: {enabled: [{name: Ours, weight: 5}]}}",
            Score,
            format!("Ours=5 {DEFAULT_SCORES}"),
        ),
        (
            "also one that is not written: it is 1",
            "{multiPoint: {enabled: [{name: Ours, weight: 4}]}, score: {enabled: [{name: Ours}]}}",
            Score,
            format!("Ours=1 {DEFAULT_SCORES}"),
        ),
        (
            "a weight of 0 is 1",
            "score: {enabled: [{name: Ours, weight: 0}]}",
            Score,
            format!("{DEFAULT_SCORES} Ours=1"),
        ),
        (
            "a point that says nothing of a plugin of multiPoint has it",
            "{multiPoint: {enabled: [{name: Ours}]}, score: {disabled: [{name: Ours}]}}",
            Filter,
            format!("{DEFAULT_FILTERS} Ours"),
        ),
        (
            "one that disables it does not",
            "{multiPoint: {enabled: [{name: Ours}]}, score: {disabled: [{name: Ours}]}}",
            Score,
            DEFAULT_SCORES.to_owned(),
        ),
        (
            "disabling what is not enabled changes nothing",
            "score: {disabled: [{name: NodeResourcesMostAllocated}, {name: Ours}]}",
            Score,
            DEFAULT_SCORES.to_owned(),
        ),
        (
            "another plugin sorts the queue",
            "queueSort: {disabled: [{name: \"*\"}], enabled: [{name: Coscheduling}]}",
            QueueSort,
            "Coscheduling".to_owned(),
        ),
        (
            "coscheduling as its manual has it",
            "{multiPoint: {enabled: [{name: Coscheduling}]}, queueSort: {disabled: [{name: \"*\"}], enabled: [{name: \
             Coscheduling}]}}",
            PostFilter,
            "DefaultPreemption Coscheduling".to_owned(),
        ),
        (
            "what this build lacks is left out",
            "{preBind: {enabled: [{name: VolumeBinding}]}, reserve: {enabled: [{name: Coscheduling}]}}",
            PreBind,
            String::new(),
        ),
        (
            "an alias is the plugin",
            "{bind: {disabled: [{name: \"*\"}], enabled: [{name: DefaultBind}]}}",
            Bind,
            "DefaultBinder".to_owned(),
        ),
    ];
    for (rule, plugins, point, want) in cases {
        let policy = policy(&one(&format!("- plugins:\n    {plugins}\n").replace(":\n    {", ": {")));
        assert_eq!(at(&policy.profiles[0], *point), *want, "{rule}");
    }
}

#[test]
fn what_the_top_says_holds_for_profiles_that_say_nothing() {
    let source = format!(
        "{}percentageOfNodesToScore: 40\n",
        one("- schedulerName: a\n- schedulerName: b\n  percentageOfNodesToScore: 0\n")
    );
    let found: Vec<_> =
        policy(&source).profiles.iter().map(|p| (p.name.clone(), p.percentage_of_nodes_to_score)).collect();
    assert_eq!(found, [("a".to_owned(), Some(40)), ("b".to_owned(), Some(0))]);
}
