use std::sync::Arc;

use krafla_model::labels::Test;
use krafla_model::storage::{Disk, PodClaim};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read_by(converter: &mut Converter, pod: Value) -> (Option<PodSpec>, Vec<String>) {
    let (pod, problems) = converter.pod(&serde_json::from_value(pod).expect("a pod"));
    (pod, problems.into_iter().map(|problem| format!("{}: {}", problem.object, problem.message)).collect())
}

fn read(pod: Value) -> (Option<PodSpec>, Vec<String>) {
    read_by(&mut Converter::new(), pod)
}

/// A pod with this metadata and these fields of its spec.
fn pod(meta: Value, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "app"}]}});
    for (part, fields) in [("metadata", meta), ("spec", spec)] {
        for (key, value) in fields.as_object().expect("fields") {
            pod[part][key] = value.clone();
        }
    }
    pod
}

fn sound(pod: Value) -> PodSpec {
    let (pod, problems) = read(pod);
    assert_eq!(problems, [""; 0]);
    pod.expect("a pod")
}

#[test]
fn a_pod_is_what_scheduling_needs_of_it() {
    let mut whole = pod(
        json!({
            "namespace": "ns", "uid": "u", "creationTimestamp": "1970-01-01T00:00:02Z", "deletionTimestamp": "1970-01-01T00:01:00Z",
            "labels": {"app": "x", "apps.kubernetes.io/pod-index": "3"},
            "annotations": {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "ps", "volcano.sh/preemptable": "false"},
        }),
        json!({
            "nodeName": "n1", "priority": 7, "priorityClassName": "high", "preemptionPolicy": "Never",
            "nodeSelector": {"zone": "a"}, "schedulingGates": [{"name": "wait"}],
            "containers": [{
                "name": "c", "image": "reg:5000/app", "resources": {"requests": {"cpu": 2}},
                "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}],
            }],
            "initContainers": [
                {"name": "s", "image": "b@sha256:0", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 9, "protocol": "UDP"}]},
                {"name": "i", "image": "a:2", "ports": [{"containerPort": 1, "hostPort": 10}]},
            ],
        }),
    );
    whole["status"] = json!({"phase": "Running", "nominatedNodeName": "n2"});
    let pod = sound(whole);
    assert_eq!((pod.uid.as_str(), pod.name.as_str(), pod.namespace().as_str()), ("u", "p", "ns"));
    assert_eq!((pod.created.0, pod.deleting, pod.phase, pod.priority), (2_000, true, PodPhase::Running, 7));
    assert_eq!(
        (pod.group.as_deref(), pod.node.as_deref(), pod.nominated.as_deref()),
        (Some("g"), Some("n1"), Some("n2"))
    );
    assert_eq!(pod.gates, ["wait"]);
    let shape = &pod.shape;
    assert_eq!(shape.labels.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["app"]);
    assert_eq!((shape.role.as_str(), shape.priority_class.as_str()), ("ps", "high"));
    assert!(shape.protected && shape.never_preempts);
    assert_eq!(shape.node_selector.get("zone").map(Name::as_str), Some("a"));
    assert_eq!(shape.images, ["a:2", "b@sha256:0", "reg:5000/app:latest"]);
    let ports: Vec<_> = shape.host_ports.iter().map(|port| (port.protocol.as_str(), port.port)).collect();
    assert_eq!(ports, [("TCP", 8080), ("UDP", 9)]);
}

#[test]
fn what_is_not_said_has_volcanos_defaults() {
    let pod = sound(pod(json!({}), json!({})));
    assert_eq!((pod.uid.as_str(), pod.namespace().as_str()), ("default/p", "default"));
    assert_eq!((pod.priority, pod.phase, pod.created.0), (1, PodPhase::Pending, 0));
    assert!(pod.group.is_none() && pod.node.is_none() && !pod.deleting);
    assert!(!pod.shape.protected && !pod.shape.never_preempts && pod.shape.required_affinity.is_none());
}

#[test]
fn the_group_is_found_wherever_it_is_written() {
    for (meta, spec, group) in [
        (
            json!({"annotations": {"scheduling.k8s.io/group-name": "a", "scheduling.volcano.sh/group-name": "b"}}),
            json!({}),
            Some("a"),
        ),
        (
            json!({"annotations": {"scheduling.k8s.io/group-name": "", "scheduling.volcano.sh/group-name": "b"}}),
            json!({}),
            Some("b"),
        ),
        (json!({"labels": {"scheduling.x-k8s.io/pod-group": "c"}}), json!({}), Some("c")),
        (json!({"labels": {"pod-group.scheduling.sigs.k8s.io/name": "d"}}), json!({}), Some("d")),
        (json!({}), json!({"schedulingGroup": {"podGroupName": "e"}}), Some("e")),
        (json!({}), json!({}), None),
    ] {
        assert_eq!(sound(pod(meta, spec)).group.as_deref(), group);
    }
}

#[test]
fn two_labels_make_a_gang_without_an_object() {
    let gang = |labels: Value| {
        let pod: core::Pod = serde_json::from_value(pod(json!({"labels": labels}), json!({}))).expect("a pod");
        label_gang(&pod).map(|(name, min)| (name.to_owned(), min))
    };
    let (name, min) = ("pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available");
    assert_eq!(gang(json!({name: "g", min: "3"})), Some(("g".to_owned(), 3)));
    assert_eq!(gang(json!({name: "g"})), None);
    assert_eq!(gang(json!({name: "g", min: "three"})), None);
    let (read, problems) = read(pod(json!({"labels": {name: "g", min: "three"}}), json!({})));
    assert!(read.is_some() && problems[0].contains("is `three`, not a number of pods"), "{problems:?}");
}

#[test]
fn a_share_of_a_gpu_is_part_of_the_request() {
    let share = |text: &str| pod(json!({"annotations": {"krafla.io/gpu-milli": text}}), json!({}));
    let shape = sound(share("250")).shape;
    assert_eq!((shape.gpu_share_milli, shape.request.get("nvidia.com/gpu")), (250, Some(250)));
    for text in ["0", "1000", "half", "-1"] {
        let (pod, problems) = read(share(text));
        assert!(pod.is_none() && problems[0].contains("1 to 999"), "{problems:?}");
    }
    let both = pod(
        json!({"annotations": {"krafla.io/gpu-milli": "5"}}),
        json!({"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}),
    );
    let (pod, problems) = read(both);
    assert!(pod.is_none() && problems[0].contains("ask for one of the two"), "{problems:?}");
}

#[test]
fn affinity_is_compiled_and_what_cannot_be_read_keeps_the_pod_out() {
    let affinity = |required: Value, preferred: Value| {
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        }}})
    };
    let term = |operator: &str| json!({"matchExpressions": [{"key": "k", "operator": operator, "values": ["5"]}]});
    let good = affinity(
        json!([term("Gt"), {}]),
        json!([{"weight": 10, "preference": term("In")}, {"weight": 1, "preference": {}}]),
    );
    let shape = sound(pod(json!({}), good)).shape;
    let required = shape.required_affinity.as_ref().expect("terms");
    assert_eq!(required[0].labels[0].test, Test::Gt(5));
    assert!(required[1].is_empty(), "an empty term stays, and matches nothing");
    assert_eq!(shape.preferred_affinity.len(), 1, "an empty preference is skipped");

    let bad = affinity(json!([term("Near")]), json!([]));
    let (kept, problems) = read(pod(json!({}), bad.clone()));
    assert!(kept.is_none() && problems[0].contains("term 0: `k` has the unknown operator `Near`"), "{problems:?}");
    let mut placed = bad;
    placed["nodeName"] = json!("n0");
    assert!(read(pod(json!({}), placed)).0.is_some(), "a pod that has a node holds its room there");

    let bad_wish = affinity(
        json!([]),
        json!([{"weight": 0, "preference": term("In")}, {"weight": 5, "preference": term("Near")}]),
    );
    let (kept, problems) = read(pod(json!({}), bad_wish));
    assert_eq!(kept.map(|pod| pod.shape.preferred_affinity.len()), Some(0));
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn each_unreadable_field_is_reported_with_what_follows() {
    for (meta, spec, kept, part) in [
        (
            json!({"annotations": {"volcano.sh/task-priority": "high"}}),
            json!({}),
            true,
            "task-priority is `high`, not an integer",
        ),
        (json!({"annotations": {"volcano.sh/preemptable": "maybe"}}), json!({}), true, "it counts as false"),
        (json!({}), json!({"tolerations": [{"key": "a", "operator": "Near"}]}), true, "toleration 0"),
        (
            json!({}),
            json!({"hostNetwork": true, "containers": [{"name": "c", "ports": [{"containerPort": 70_000}]}]}),
            false,
            "host port 70000",
        ),
        (
            json!({}),
            json!({"containers": [{"name": "c", "resources": {"requests": {"memory": "1GB"}}}]}),
            false,
            "did you mean `Gi`?",
        ),
        (json!({"name": ""}), json!({}), false, "has no metadata.name"),
    ] {
        let (pod, problems) = read(pod(meta, spec));
        assert_eq!(pod.is_some(), kept, "{part}");
        assert!(problems.len() == 1 && problems[0].contains(part), "{problems:?}");
    }
    let (unsure, _) = read(pod(json!({"annotations": {"volcano.sh/preemptable": "maybe"}}), json!({})));
    assert!(unsure.expect("a pod").shape.protected);
    assert_eq!(read(json!({"metadata": {"name": "p"}})).1, ["pod default/p: has no spec; it is left out"]);
}

#[test]
fn the_label_says_preemptable_when_no_annotation_does() {
    let labelled = pod(json!({"labels": {"volcano.sh/preemptable": "false"}}), json!({}));
    assert!(sound(labelled).shape.protected);
}

#[test]
fn what_an_api_server_has_put_into_a_selector_stays_when_labels_change() {
    let term = json!({
        "topologyKey": "zone", "matchLabelKeys": ["rev"], "mismatchLabelKeys": ["owner"],
        "labelSelector": {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]},
    });
    let spec = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    let labels = json!({"rev": "2", "owner": "x"});
    let terms = |meta| sound(pod(meta, spec.clone())).shape.pod_affinity.required[0].selector.clone().expect("one").0;
    assert_eq!(terms(json!({"labels": labels, "resourceVersion": "7"})).len(), 1);
    assert_eq!(terms(json!({"labels": labels})).len(), 3, "a manifest that no API server has seen");
}

#[test]
fn affinity_and_spread_are_read_with_the_pods_own_values_of_the_keys() {
    let meta = json!({"namespace": "ml", "labels": {"app": "web", "version": "2"}});
    let spec = json!({
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["version", "none"]},
            ]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "podAffinityTerm": {"topologyKey": "host", "namespaceSelector": {}}},
            ]},
        },
        "topologySpreadConstraints": [
            {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3, "nodeTaintsPolicy": "Honor"},
            {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"},
        ],
    });
    let read = sound(pod(meta, spec));
    let near = &read.shape.pod_affinity.required[0];
    assert_eq!(
        (&*near.topology_key, near.selector.as_ref().map(|s| s.0.len())),
        ("zone", Some(2)),
        "a key without a value is left out"
    );
    assert_eq!(near.namespaces.names, ["ml"], "its own, since it names none");
    let (weight, away) = &read.shape.pod_anti_affinity.preferred[0];
    assert_eq!(
        (*weight, &away.selector, away.namespaces.names.len()),
        (7, &None, 0),
        "no selector: no pod; all namespaces"
    );
    let [hard, soft] = &read.shape.spread[..] else { panic!("two constraints") };
    assert!(
        hard.must_hold && hard.honors_taints && hard.honors_affinity && hard.min_domains == 3 && hard.max_skew == 2
    );
    assert!(!soft.must_hold && !soft.honors_taints && soft.min_domains == 1);
}

#[test]
fn what_must_hold_and_cannot_be_read_keeps_the_pod_out() {
    let term = json!({"topologyKey": "", "labelSelector": {}});
    let must = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    let (read, problems) = read_by(&mut Converter::new(), pod(json!({"name": "a"}), must));
    assert!(
        read.is_none() && problems[0].contains("required pod affinity, term 0: it has no topologyKey"),
        "{problems:?}"
    );
    let odd = json!({"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"});
    let (read, problems) =
        read_by(&mut Converter::new(), pod(json!({"name": "a"}), json!({"topologySpreadConstraints": [odd]})));
    assert!(read.is_some_and(|pod| pod.shape.spread.is_empty()), "what only ranks is left out");
    assert!(problems[0].contains("maxSkew is 0; it is at least 1"), "{problems:?}");
}

#[test]
fn a_pod_is_known_by_the_claims_and_disks_that_it_uses() {
    let volumes = json!([
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "c", "readOnly": true}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": true}},
        {"name": "e", "awsElasticBlockStore": {"volumeID": "vol-1"}},
        {"name": "f", "iscsi": {"targetPortal": "t", "iqn": "q", "lun": 0}},
        {"name": "g", "rbd": {"monitors": ["m2", "m1"], "image": "i"}},
        {"name": "h", "cinder": {"volumeID": "x"}},
        {"name": "w", "configMap": {"name": "m"}},
    ]);
    let read = sound(pod(json!({"name": "p"}), json!({"volumes": volumes}))).shape;
    let claim = |name: &str, ephemeral| PodClaim { name: name.into(), ephemeral };
    assert_eq!(read.volumes.claims, [claim("c", false), claim("p-scratch", true)]);
    let rbd =
        Disk::Rbd { monitors: vec!["m1".into(), "m2".into()], pool: "rbd".into(), image: "i".into(), read_only: false };
    let disks = [
        Disk::GcePersistentDisk { name: "disk".into(), read_only: true },
        Disk::AwsElasticBlockStore { id: "vol-1".into() },
        Disk::Iscsi { iqn: "q".into(), read_only: false },
        rbd,
        Disk::InTree { plugin: "kubernetes.io/cinder".into(), handle: "x".into() },
    ];
    assert_eq!(read.volumes.disks, disks);
    let other = sound(pod(json!({"name": "q"}), json!({"volumes": volumes}))).shape;
    assert_ne!(read, other, "the ephemeral volumes of two pods are two");
}

#[test]
fn pods_of_one_template_share_their_shape() {
    let mut converter = Converter::new();
    let mut shape = |name: &str| {
        let indexed = json!({"name": name, "labels": {"statefulset.kubernetes.io/pod-name": name}});
        read_by(&mut converter, pod(indexed, json!({}))).0.expect("a pod").shape
    };
    assert!(Arc::ptr_eq(&shape("web-0"), &shape("web-1")));
}

/// JSON of any form, with the keys and the values that a pod has more often than chance would have them.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        proptest::sample::select(vec!["1", "-1", "500m", "1GB", "In", "Gt", "Always", "NoSchedule", "Exists", "a:b/c"])
            .prop_map(Value::from),
    ];
    let keys = proptest::sample::select(vec![
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "spec",
        "containers",
        "initContainers",
        "resources",
        "requests",
        "limits",
        "cpu",
        "memory",
        "nvidia.com/gpu",
        "overhead",
        "tolerations",
        "key",
        "operator",
        "values",
        "value",
        "effect",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        "matchExpressions",
        "matchFields",
        "weight",
        "preference",
        "ports",
        "hostPort",
        "containerPort",
        "hostNetwork",
        "image",
        "restartPolicy",
        "status",
        "phase",
        "priority",
        "nodeName",
        "schedulingGates",
        "krafla.io/gpu-milli",
        "volcano.sh/preemptable",
        "x",
    ]);
    leaf.prop_recursive(7, 48, 5, move |inner| {
        let map = proptest::collection::btree_map(keys.clone().prop_map(str::to_owned), inner.clone(), 0..5);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(Value::from),
            map.prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_pod_panics(meta in any_json(), spec in any_json(), status in any_json()) {
        let file = json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}).to_string();
        let read = crate::manifests::read_manifests(&file, "any.json", &crate::manifests::ReadOptions::default());
        let mut converter = Converter::new();
        for object in &read.objects {
            let _ = converter.event(&object.value);
        }
        prop_assert!(read.objects.len() + read.problems.len() > 0);
    }

    #[test]
    fn no_readable_pod_panics(labels in any_json(), ports in any::<i32>(), amount in ".{0,6}", text in ".{0,12}", operator in "In|Gt|Lt|.{0,3}") {
        let labels = if labels.is_object() { json!({"volcano.sh/preemptable": text}) } else { json!({}) };
        let value = pod(
            json!({"labels": labels, "annotations": {"krafla.io/gpu-milli": text, "volcano.sh/task-priority": text}}),
            json!({
                "containers": [{"name": "c", "image": text, "ports": [{"containerPort": 1, "hostPort": ports}],
                    "resources": {"requests": {"cpu": amount}, "limits": {text.clone(): amount}}}],
                "tolerations": [{"key": text, "operator": operator, "effect": text}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": text, "operator": operator, "values": [amount]}]}]}}},
            }),
        );
        let (pod, problems) = read(value);
        prop_assert!(pod.is_some() || !problems.is_empty());
    }
}

#[test]
fn a_pod_is_cooling_down_by_its_label_or_annotation() {
    let meta = |labels: Value, annotations: Value| json!({"labels": labels, "annotations": annotations});
    let key = "volcano.sh/cooldown-time";
    for (labels, annotations, ms, complaint) in [
        (json!({key: "600s"}), json!({}), 600_000, ""),
        (json!({}), json!({key: "1h30m"}), 5_400_000, ""),
        (json!({key: "10s"}), json!({key: "20s"}), 10_000, ""),
        (json!({key: "0"}), json!({}), 0, ""),
        (json!({}), json!({}), 0, ""),
        (json!({key: "600abcde"}), json!({}), 0, "it protects nothing"),
        (json!({}), json!({key: "600"}), 0, "it protects nothing"),
        (json!({key: "-5s"}), json!({key: "20s"}), 0, "it protects nothing"),
    ] {
        let (read, problems) = read(pod(meta(labels.clone(), annotations.clone()), json!({})));
        assert_eq!(read.expect("a pod").shape.cooldown_ms, ms, "{labels} {annotations}");
        assert_eq!(problems.is_empty(), complaint.is_empty(), "{problems:?}");
        assert!(problems.iter().all(|problem| problem.contains(complaint)), "{problems:?}");
    }
}

#[test]
fn when_a_pod_was_given_its_node_stands_in_its_condition() {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "1970-01-01T00:00:05Z"});
    for (conditions, want) in [
        (json!([condition("Ready", "False"), condition("PodScheduled", "True")]), Some(5_000)),
        (json!([condition("PodScheduled", "False")]), None),
        (json!([{"type": "PodScheduled", "status": "True"}]), None),
        (json!([]), None),
    ] {
        let mut whole = pod(json!({}), json!({}));
        whole["status"] = json!({"conditions": conditions});
        assert_eq!(sound(whole).scheduled_at.map(|time| time.0), want);
    }
    let mut converter = Converter::new();
    converter.set_time(krafla_model::Time(7));
    let mut whole = pod(json!({}), json!({}));
    whole["status"] = json!({"conditions": [condition("PodScheduled", "True")]});
    let (read, _) = read_by(&mut converter, whole);
    assert_eq!(read.and_then(|pod| pod.scheduled_at), Some(krafla_model::Time(7)), "a simulation has its own clock");
}

#[test]
fn a_pod_is_revocable_if_it_says_so_or_says_only_that_it_may_be_evicted() {
    for (annotations, revocable, n_problems) in [
        (json!({"volcano.sh/revocable-zone": "*"}), true, 0),
        (json!({"volcano.sh/revocable-zone": "*", "volcano.sh/preemptable": "false"}), true, 0),
        (json!({"volcano.sh/revocable-zone": "rz1"}), false, 1),
        (json!({"volcano.sh/revocable-zone": "rz1", "volcano.sh/preemptable": "true"}), false, 1),
        (json!({"volcano.sh/preemptable": "true"}), true, 0),
        (json!({"volcano.sh/preemptable": "false"}), false, 0),
        (json!({}), false, 0),
    ] {
        let (read, problems) = read(pod(json!({"annotations": annotations.clone()}), json!({})));
        assert_eq!(read.expect("a pod").shape.revocable, revocable, "{annotations}");
        assert_eq!(problems.len(), n_problems, "{problems:?}");
    }
}

#[test]
fn a_pod_needs_the_features_that_its_fields_use() {
    for (spec, want) in [
        (json!({}), &[][..]),
        (json!({"hostNetwork": true}), &[][..]),
        (json!({"hostNetwork": true, "hostUsers": false}), &["UserNamespacesHostNetworkSupport"][..]),
        (
            json!({"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]}),
            &["RestartAllContainersOnContainerExits"][..],
        ),
    ] {
        let (read, problems) = read_by(&mut Converter::new(), pod(json!({"name": "p"}), spec.clone()));
        assert_eq!(read.expect("a pod").shape.features, want, "{spec}");
        assert_eq!(problems, [""; 0]);
    }
}
