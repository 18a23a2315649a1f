use serde_json::{Value, json};

use super::*;

fn read(group: Value) -> (Option<PodGroupSpec>, Vec<String>) {
    let group: PodGroup = serde_json::from_value(group).expect("a podgroup");
    let (group, problems) = Converter::new().pod_group(&group);
    (group, problems.into_iter().map(|problem| format!("{}: {}", problem.object, problem.message)).collect())
}

fn sound(spec: Value) -> PodGroupSpec {
    let (group, problems) = read(json!({"metadata": {"name": "g"}, "spec": spec}));
    assert_eq!(problems, [""; 0]);
    group.expect("a podgroup")
}

#[test]
fn a_podgroup_with_everything() {
    let (group, problems) = read(json!({
        "metadata": {
            "name": "g", "namespace": "ns", "uid": "u", "creationTimestamp": "1970-01-01T00:00:01Z",
            "annotations": {"sla-waiting-time": "1h", "volcano.sh/preemptable": "true"},
        },
        "spec": {
            "minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}, "queue": "q", "priorityClassName": "high",
            "minResources": {"cpu": "3", "requests.cpu": "3", "count/pods": "3", "nvidia.com/gpu": 8},
            "networkTopology": {"highestTierAllowed": 2},
            "subGroupPolicy": [{
                "name": "w", "subGroupSize": 2, "labelSelector": {"matchLabels": {"role": "w"}},
                "matchLabelKeys": ["volcano.sh/partition-id"], "networkTopology": {"mode": "soft", "highestTierName": "rack"},
            }],
        },
        "status": {"phase": "Inqueue", "running": 3},
    }));
    assert_eq!(problems, [format!("podgroup ns/g: {}", super::TOPOLOGY_UNUSED)]);
    let group = group.expect("a podgroup");
    assert_eq!((group.uid.as_str(), group.namespace.as_str(), group.name.as_str()), ("u", "ns", "g"));
    assert_eq!((group.queue.as_str(), group.priority_class.as_str(), group.created.0), ("q", "high", 1_000));
    assert_eq!((group.min_member, group.phase), (3, JobPhase::Inqueue));
    assert_eq!(group.min_task_member, [("ps".into(), 1), ("worker".into(), 2)]);
    let amounts = Amounts::default().with("cpu", 3_000).with("nvidia.com/gpu", 8_000);
    // Names of quotas stay for quotas to be held against; the state leaves them out of what nodes have to give.
    assert_eq!(group.min_resources, Some(amounts.with("requests.cpu", 3_000).with("count/pods", 3)));
    assert_eq!((group.sla_waiting_ms, group.preemptable), (Some(3_600_000), Some(true)));
    let topology = group.topology.expect("a topology");
    assert_eq!((topology.mode, topology.highest_tier), (TopologyMode::Hard, Some(2)));
    let sub = &group.sub_groups[0];
    assert_eq!((sub.size, sub.min_sub_groups, sub.match_label_keys[0].as_str()), (2, 0, "volcano.sh/partition-id"));
    assert_eq!(sub.topology.as_ref().and_then(|topology| topology.highest_tier_name.as_deref()), Some("rack"));
}

#[test]
fn an_empty_podgroup_has_the_defaults_of_the_crd() {
    let group = sound(json!({}));
    assert_eq!((group.queue.as_str(), group.min_member, group.phase), ("default", 0, JobPhase::Pending));
    assert_eq!((group.min_resources, group.preemptable, group.sla_waiting_ms), (None, None, None));
    assert_eq!(read(json!({"metadata": {"name": "g"}, "spec": null, "status": null})).1, [""; 0]);
}

#[test]
fn each_unreadable_field_is_reported_with_what_follows() {
    for (spec, kept, part) in [
        (json!({"minMember": -1}), true, "minMember is -1"),
        (json!({"minTaskMember": {"ps": -2}}), true, "minTaskMember.ps is -2"),
        (json!({"minResources": {"cpu": "x"}}), false, "spec.minResources.cpu is `x`"),
        (json!({"networkTopology": {"mode": "loose"}}), true, "neither hard nor soft"),
        (
            json!({"networkTopology": {"highestTierAllowed": 1, "highestTierName": "a"}}),
            true,
            "only highestTierAllowed",
        ),
        (json!({"networkTopology": {"highestTierAllowed": -1}}), true, "highestTierAllowed is -1"),
        (
            json!({"subGroupPolicy": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]}),
            false,
            "subGroupPolicy[0].labelSelector: `a` In needs",
        ),
        (json!({"subGroupPolicy": [{"matchLabelKeys": ["volcano.sh/task-index"]}]}), true, "names a single pod"),
    ] {
        let (group, mut problems) = read(json!({"metadata": {"name": "g"}, "spec": spec}));
        problems.retain(|problem| !problem.contains(super::TOPOLOGY_UNUSED));
        assert_eq!(group.is_some(), kept, "{part}");
        assert!(problems.len() == 1 && problems[0].contains(part), "{part}: {problems:?}");
        assert!(problems[0].starts_with("podgroup default/g: "), "{problems:?}");
    }
    let (group, problems) =
        read(json!({"metadata": {"name": "g", "annotations": {"volcano.sh/sla-waiting-time": "soon"}}}));
    assert_eq!(group.and_then(|group| group.sla_waiting_ms), None);
    assert!(problems[0].contains("it is ignored"), "{problems:?}");
}

#[test]
fn how_many_pods_stay_is_a_count_or_a_percentage() {
    let (min, max) = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable");
    for (annotations, stays, n_problems) in [
        (json!({min: "3"}), Some(Aim::MinAvailable(Share::Count(3))), 0),
        (json!({max: "30%"}), Some(Aim::MaxUnavailable(Share::Percent(30))), 0),
        (json!({max: "30%", min: "1"}), Some(Aim::MinAvailable(Share::Count(1))), 0),
        (json!({max: "some"}), None, 1),
        (json!({}), None, 0),
    ] {
        let (group, problems) =
            read(json!({"metadata": {"name": "g", "annotations": annotations.clone()}, "spec": {}}));
        assert_eq!(group.expect("a group").stays, stays, "{annotations}");
        assert_eq!(problems.len(), n_problems, "{problems:?}");
    }
}

#[test]
fn groups_of_others_become_the_same() {
    let theirs: CoschedulingGroup = serde_json::from_value(json!({
        "metadata": {"name": "g", "annotations": {"scheduling.volcano.sh/queue-name": "q"}},
        "spec": {"minMember": 4, "minResources": {"cpu": 1}, "scheduleTimeoutSeconds": 10},
        "status": {"phase": "Scheduling"},
    }))
    .expect("a podgroup");
    let (group, problems) = Converter::new().coscheduling_group(&theirs);
    let group = group.expect("a podgroup");
    assert_eq!(problems, []);
    assert_eq!((group.min_member, group.queue.as_str(), group.phase), (4, "q", JobPhase::Inqueue));

    let own: KubernetesGroup = serde_json::from_value(
        json!({"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 5}}}}),
    )
    .expect("a podgroup");
    assert_eq!(Converter::new().kubernetes_group(&own).0.map(|group| group.min_member), Some(5));
}

#[test]
fn pods_of_one_owner_share_an_implicit_group() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "p",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "", "controller": true}],
            "annotations": {
                "scheduling.volcano.sh/queue-name": "q", "volcano.sh/network-topology-mode": "SOFT",
                "volcano.sh/network-topology-highest-tier": "2",
            },
        },
        "spec": {"priorityClassName": "high", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
    }))
    .expect("a pod");
    let owner: ObjectMeta = serde_json::from_value(json!({"name": "train", "annotations": {
        "scheduling.volcano.sh/group-min-member": "3", "volcano.sh/sla-waiting-time": "1m", "scheduling.volcano.sh/queue-name": "other",
    }}))
    .expect("metadata");
    let (group, problems) = Converter::new().implicit_group(&pod, Some(&owner));
    let group = group.expect("a podgroup");
    assert_eq!(problems.len(), 1, "the topology is read and not acted upon, which is said: {problems:?}");
    assert_eq!(
        (group.name.as_str(), group.queue.as_str(), group.priority_class.as_str()),
        ("podgroup-job-train", "q", "high")
    );
    assert_eq!((group.min_member, group.sla_waiting_ms), (3, Some(60_000)));
    assert_eq!(group.min_resources, Some(Amounts::default().with("cpu", 6_000).with("pods", 3)));
    assert_eq!(group.topology.map(|t| (t.mode, t.highest_tier)), Some((TopologyMode::Soft, Some(2))));

    for (text, min) in [("0", 0), ("-1", 1), ("many", 1)] {
        let mut owner = owner.clone();
        owner.annotations = Some([(keys::GROUP_MIN_MEMBER.to_owned(), text.to_owned())].into());
        let (group, _) = Converter::new().implicit_group(&pod, Some(&owner));
        assert_eq!(group.map(|group| group.min_member), Some(min), "{text}");
    }
    let mut alone = pod;
    alone.metadata.owner_references = None;
    assert_eq!(implicit_group_name(&alone), "podgroup-p");
    alone.metadata.uid = Some("u".into());
    assert_eq!(implicit_group_name(&alone), "podgroup-u");
}

#[test]
fn a_gang_of_labels_gets_a_podgroup() {
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "ns"}})).expect("a pod");
    let (group, problems) = Converter::new().pod_group(&label_gang_group(&pod, "g", 3));
    let group = group.expect("a podgroup");
    assert_eq!((group.namespace.as_str(), group.name.as_str(), group.min_member, problems.len()), ("ns", "g", 3, 0));
}
