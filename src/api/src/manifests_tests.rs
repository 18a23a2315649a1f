use proptest::prelude::*;

use super::*;

fn read(text: &str) -> (Vec<(usize, String)>, Vec<String>) {
    let read = read_manifests(text, "f.yaml", &ReadOptions::default());
    let name = |object: &Object| object.metadata().and_then(|meta| meta.name.clone()).unwrap_or_default();
    let objects = read.objects.iter().map(|one| (one.line, name(&one.value))).collect();
    (objects, read.problems.iter().map(ToString::to_string).collect())
}

fn named(objects: &[(usize, &str)]) -> Vec<(usize, String)> {
    objects.iter().map(|(line, name)| (*line, (*name).to_owned())).collect()
}

#[test]
fn a_stream_of_all_kinds() {
    let text = "\
apiVersion: v1
kind: Node
metadata: {name: n0}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q}
---
# a comment
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: c}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: k}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: r}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: d}}
---
{apiVersion: batch/v1, kind: Job, metadata: {generateName: j-}, spec: {template: {}}}
---
{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {generateName: j-}}
---
{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"p\"}}
";
    let (objects, problems) = read(text);
    assert_eq!(problems, [""; 0]);
    assert_eq!(
        objects,
        named(&[
            (1, "n0"),
            (5, "q"),
            (10, "g"),
            (14, "c"),
            (18, "k"),
            (22, "high"),
            (24, "r"),
            (26, "d"),
            (28, "j-0"),
            (30, "j-1"),
            (32, "p")
        ])
    );
    let kinds: Vec<&str> = read_manifests(text, "f", &ReadOptions::default())
        .objects
        .iter()
        .map(|one| match &one.value {
            Object::Pod(_) => "pod",
            Object::Node(_) => "node",
            Object::PodGroup(_) => "volcano",
            Object::CoschedulingGroup(_) => "coscheduling",
            Object::KubernetesGroup(_) => "kubernetes",
            Object::Queue(_) => "queue",
            Object::PriorityClass(_) => "class",
            Object::ResourceQuota(_) => "quota",
            Object::DisruptionBudget(_) => "budget",
            Object::Workload(_) => "workload",
            Object::ResourceClaim(_) => "claim",
            Object::ClaimTemplate(_) => "template",
            Object::DeviceClass(_) => "device class",
            Object::ResourceSlice(_) => "slice",
            Object::ElasticQuota(_) => "elasticquota",
            Object::Namespace(_) => "namespace",
            Object::Service(_) => "service",
            Object::Selecting(_) => "selecting",
            Object::Storage(_) => "storage",
            Object::Other { .. } => "other",
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "node",
            "queue",
            "volcano",
            "coscheduling",
            "kubernetes",
            "class",
            "quota",
            "budget",
            "workload",
            "workload",
            "pod"
        ]
    );
}

#[test]
fn lists_are_taken_apart_and_items_keep_their_lines() {
    let (objects, problems) = read(
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n    managedFields: [{}]\n- apiVersion: v1\n  kind: Node\n  metadata: {name: b}\nkind: List\nmetadata: {resourceVersion: \"\"}\n",
    );
    assert_eq!((objects, problems), (named(&[(3, "a"), (8, "b")]), vec![]));
    let (objects, problems) =
        read("kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n");
    assert_eq!((objects, problems), (named(&[(4, "a"), (5, "b")]), vec![]));
    let (objects, problems) = read(
        "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n    {\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"a\"}},\n    {\n      \"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"b\"}\n    }\n  ],\n  \"kind\": \"List\"\n}\n",
    );
    assert_eq!((objects, problems), (named(&[(4, "a"), (5, "b")]), vec![]));
    assert_eq!(read("kind: List\napiVersion: v1\nitems: []\n"), (vec![], vec![]));
}

#[test]
fn a_broken_document_is_reported_with_its_line_and_the_rest_is_read() {
    let (objects, problems) = read(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: b\n bad: [\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: c}\n",
    );
    assert_eq!(objects, named(&[(1, "a"), (11, "c")]));
    assert!(problems.len() == 1 && problems[0].starts_with("f.yaml:9:"), "{problems:?}");
}

#[test]
fn a_field_of_the_wrong_type_is_named_and_placed() {
    let (objects, problems) = read(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  priority: high\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: n}\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: b\n    labels:\n      x: 1\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: c}\n",
    );
    assert_eq!(objects, named(&[(11, "n"), (20, "c")]));
    assert_eq!(
        problems,
        [
            "f.yaml:6:3: error: Pod a: spec.priority: invalid type: string \"high\", expected i32",
            "f.yaml:19:7: error: Pod b: metadata.labels.x: invalid type: integer `1`, expected a string",
        ]
    );
}

#[test]
fn each_kind_of_mistake_has_its_message() {
    for (text, message) in [
        ("a: 1\n", "f.yaml:1: error: has no apiVersion; a Kubernetes object has one"),
        ("apiVersion: v1\n", "f.yaml:1: error: has no kind; a Kubernetes object has one"),
        ("apiVersion: 1\nkind: Pod\n", "f.yaml:1: error: Pod: apiVersion is not a text"),
        ("kind: Pod\nkind: Pod\n", "f.yaml:2:1: error: the key `kind` is there twice"),
        ("- 1\n", "expected a Kubernetes object, which is a mapping with apiVersion and kind"),
        ("hello\n", "expected a Kubernetes object, which is a mapping with apiVersion and kind"),
        ("kind: List\napiVersion: v1\nitems: 5\n", "f.yaml:3"),
        ("kind: List\napiVersion: v1\nitems: [5]\n", "f.yaml:3: error: has no apiVersion"),
        ("apiVersion: v1\nkind: pods\n", "f.yaml:1: note: pods of v1 is not read; did you mean Pod?"),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, annotations: {krafla.io/runtime: soon}}\nspec: {replicas: -1}\n",
            "f.yaml:1: warning: default/d: spec.replicas is -1",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: d, annotations: {krafla.io/runtime: soon}}\n",
            "`soon` is not a duration",
        ),
        ("\tapiVersion: v1\n", "f.yaml:1:"),
        ("a: *b\n", "unknown anchor"),
        ("{\"apiVersion\": \"v1\",}x", "f.yaml:1:"),
    ] {
        let (_, problems) = read(text);
        assert!(problems.first().is_some_and(|problem| problem.contains(message)), "{text}: {problems:?}");
    }
}

#[test]
fn kinds_that_are_not_read_are_noted_once() {
    let (objects, problems) = read(
        "{apiVersion: v1, kind: ConfigMap}\n---\n{apiVersion: v1, kind: Secret}\n---\n{apiVersion: v1, kind: ConfigMap}\n",
    );
    assert_eq!(objects.len(), 3);
    assert_eq!(
        problems,
        ["f.yaml:1: note: ConfigMap of v1 (2 of them) are not read", "f.yaml:3: note: Secret of v1 is not read",]
    );
}

#[test]
fn yaml_is_read_as_kubectl_reads_it() {
    let text = "\
apiVersion: v1
kind: Pod
metadata: {name: y, creationTimestamp: null}
spec:
  containers:
  - name: c
    resources: &r
      requests: {cpu: 0.5, memory: 1Gi}
  - name: d
    resources:
      <<: *r
  hostNetwork: yes
  hostPID: Off
  volumes:
  - name: v
    configMap: {name: x, defaultMode: 0644}
";
    let read = read_manifests(text, "f.yaml", &ReadOptions::default());
    assert_eq!(read.problems, []);
    let Object::Pod(pod) = &read.objects[0].value else { panic!("a pod") };
    let spec = pod.spec.as_ref().expect("a spec");
    assert_eq!((spec.host_network, spec.host_pid, pod.metadata.name.as_deref()), (Some(true), Some(false), Some("y")));
    let volume = &spec.volumes.as_ref().expect("volumes")[0];
    assert_eq!(volume.config_map.as_ref().and_then(|map| map.default_mode), Some(0o644));
    let (pod, _) = crate::Converter::new().pod(pod);
    assert_eq!(pod.and_then(|pod| pod.shape.request.get("cpu")), Some(1_000));
}

#[test]
fn limits_stop_what_is_too_large() {
    let read = read_manifests("apiVersion: v1", "f.yaml", &ReadOptions { max_bytes: 5 });
    assert!(read.problems[0].message.contains("more than"), "{:?}", read.problems);
    let bomb = format!(
        "a0: &a0 x\n{}",
        (1..20).map(|i| format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(", "))).collect::<String>()
    );
    let read = read_manifests(&bomb, "f.yaml", &ReadOptions::default());
    assert_eq!((read.objects.len(), read.problems.len()), (0, 1));
    let deep = format!("a: {}", "[".repeat(100_000));
    assert_eq!(read_manifests(&deep, "f.yaml", &ReadOptions::default()).problems.len(), 1);
    let deep = format!("{{\"a\": {}", "[".repeat(100_000));
    assert_eq!(read_manifests(&deep, "f.yaml", &ReadOptions::default()).problems.len(), 1);
    let many: String = (0..2_000).map(|_| "---\na: [\n").collect();
    let read = read_manifests(&many, "f.yaml", &ReadOptions::default());
    assert_eq!(read.problems.last().map(|last| last.message.as_str()), Some("1000 more problems are not listed"));
}

proptest! {
    #[test]
    fn no_text_panics(lines in proptest::collection::vec("(---|- |  |kind: |apiVersion: |items:|\\{|\\}|\\[|\"|'|&a|\\*a|: |#|Pod|v1|List|é|\t|.){0,6}", 0..12)) {
        let text = lines.join("\n");
        let read = read_manifests(&text, "f.yaml", &ReadOptions::default());
        let last = text.lines().count().max(1) + 1;
        prop_assert!(read.problems.iter().all(|problem| (1..=last).contains(&problem.line)), "{:?}", read.problems);
        prop_assert!(read.objects.iter().all(|object| (1..=last).contains(&object.line)));
    }
}
