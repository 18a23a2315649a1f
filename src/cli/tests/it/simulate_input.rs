//! `krafla simulate` on what people give it: manifests, dumps and traces, whole and broken.

use crate::programs::{Folder, Ran};

const NODES: &str = "\
apiVersion: v1
kind: Node
metadata: {name: n0, labels: {kubernetes.io/hostname: n0}}
status: {allocatable: {cpu: \"8\", memory: 32Gi, pods: \"110\", nvidia.com/gpu: \"8\"}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: \"8\", memory: 32Gi, pods: \"110\", nvidia.com/gpu: \"8\"}}
";

const TEMPLATE: &str = "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: \"1\"}}}]}}";

fn deployment(name: &str, replicas: u32, more: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}{more}}}\nspec: {{replicas: {replicas}, selector: {{}}, template: {TEMPLATE}}}\n"
    )
}

fn simulate(folder: &Folder, flags: &[&str]) -> Ran {
    folder.run(&[&["simulate", "--json", "-", "--trace"], flags].concat())
}

/// Names of the jobs with their pods and states.
fn jobs(ran: &Ran) -> Vec<String> {
    let json = ran.json();
    let jobs = json["jobs"].as_array().expect("jobs");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    jobs.iter().map(|job| format!("{} {} {}", text(&job["name"]), job["pods"], text(&job["state"]))).collect()
}

#[test]
fn a_broken_document_is_reported_in_its_line_and_the_rest_runs() {
    let text = format!("{NODES}---\nkind: Pod\napiVersion: v1\nmetadata: [\n---\n{}", deployment("web", 2, ""));
    let folder = Folder::new().with("c/a.yaml", &text);
    let ran = simulate(&folder, &["manifests:c"]).exits(0);
    assert_eq!(jobs(&ran), ["web 2 running"]);
    let problem = ran.json()["problems"][0].as_str().expect("a problem").to_owned();
    assert!(problem.starts_with("c/a.yaml:1") && problem.contains("error"), "{problem}");
    folder.run(&["simulate", "--trace", "manifests:c"]).exits(0).prints(&["Problems", "c/a.yaml:1"]);
    let refused = simulate(&folder, &["manifests:c", "--strict"]).exits(2).says(&["--strict: 1 problem", "c/a.yaml:1"]);
    assert_eq!(refused.stdout, "");
}

#[test]
fn pods_with_the_labels_of_coscheduling_are_one_gang() {
    let worker = |i: u32| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: worker-{i}\n  labels:\n    pod-group.scheduling.sigs.k8s.io/name: training-001\n    pod-group.scheduling.sigs.k8s.io/min-available: \"3\"\nspec:\n  schedulerName: scheduler-plugins-scheduler\n  containers:\n  - {{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: 4}}}}}}\n"
        )
    };
    let folder = Folder::new().with("c/nodes.yaml", NODES);
    let folder = (0..3).fold(folder, |folder, i| folder.with(&format!("c/w{i}.yaml"), &worker(i)));
    assert_eq!(jobs(&simulate(&folder, &["manifests:c"]).exits(0)), ["training-001 3 running"]);
    // One node's eight GPUs are enough for two workers of four.
    let folder = folder.with("c/nodes.yaml", NODES.split("---").next().expect("one"));
    let ran = simulate(&folder, &["manifests:c"]).exits(0);
    assert_eq!(jobs(&ran), ["training-001 3 pending"]);
}

#[test]
fn a_dump_of_a_cluster_counts_nothing_twice() {
    let owned = |kind: &str, uid: &str| {
        format!("ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: web-abc, uid: {uid}, controller: true}}]")
    };
    let set = |name: &str, replicas: u32| {
        format!(
            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: {name}, uid: {name}, {}}}\nspec: {{replicas: {replicas}, selector: {{}}, template: {TEMPLATE}}}\n",
            owned("Deployment", "d")
        )
    };
    let pod = |i: u32| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web-abc-{i}, uid: p{i}, labels: {{pod-template-hash: abc}}, {}}}\nspec: {{nodeName: n0, containers: [{{name: c, image: i, resources: {{requests: {{cpu: \"1\"}}}}}}]}}\nstatus: {{phase: Running}}\n",
            owned("ReplicaSet", "web-abc")
        )
    };
    let parts = [
        NODES.to_owned(),
        deployment("web", 2, ", uid: d"),
        set("web-abc", 2),
        set("web-old", 0),
        pod(0),
        pod(1),
        deployment("new", 1, ", uid: e"),
    ];
    let folder = Folder::new().with("dump.yaml", &parts.join("---\n"));
    let ran = simulate(&folder, &["manifests:dump.yaml"]).exits(0);
    assert_eq!(jobs(&ran), ["web 2 running", "new 1 running"]);
    assert_eq!(ran.json()["jobs"][0]["nodes"], serde_json::json!(["n0"]));
}

#[test]
fn owners_of_one_name_are_told_apart_by_their_kind() {
    let other = deployment("web", 1, "").replace("Deployment", "StatefulSet");
    let text = format!("{NODES}---\n{}---\n{other}", deployment("web", 1, ""));
    let folder = Folder::new().with("a.yaml", &text);
    let ran = simulate(&folder, &["manifests:a.yaml"]).exits(0);
    assert_eq!(jobs(&ran), ["deployment/web 1 running", "statefulset/web 1 running"]);
}

#[test]
fn a_volcano_job_of_a_dump_is_called_by_its_name() {
    let job = format!(
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: train, uid: j1}}\nspec: {{minAvailable: 2, tasks: [{{name: w, replicas: 2, template: {TEMPLATE}}}]}}\n"
    );
    let group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: train-j1, ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, uid: j1, controller: true}]}\nspec: {minMember: 2}\n";
    for parts in [vec![NODES, &job], vec![NODES, &job, group], vec![NODES, group, &job]] {
        let folder = Folder::new().with("dump.yaml", &parts.join("---\n"));
        assert_eq!(jobs(&simulate(&folder, &["manifests:dump.yaml"]).exits(0)), ["train 2 running"]);
    }
}

#[test]
fn a_pod_whose_pod_group_is_missing_is_told_so() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: lost, annotations: {scheduling.k8s.io/group-name: nowhere, krafla.io/runtime: soon}}\nspec: {containers: [{name: c, image: i}]}\n";
    let folder = Folder::new().with("a.yaml", &format!("{NODES}---\n{pod}"));
    let ran = simulate(&folder, &["manifests:a.yaml"]).exits(0);
    assert_eq!(ran.json()["jobs"][0]["reason"]["code"], "PodGroupNotFound");
    let json = ran.json();
    let problems = json["problems"].as_array().expect("problems");
    assert_eq!(problems.len(), 2, "each is said once: {problems:?}");
    assert!(problems[0].to_string().contains("krafla.io/runtime"), "{problems:?}");
    assert!(problems[1].to_string().contains("a.yaml:11: names the PodGroup `nowhere`"), "{problems:?}");
}

#[test]
fn manifests_come_from_standard_input_too() {
    let text = format!("{NODES}---\n{}", deployment("web", 1, ""));
    let ran = Folder::new().run_with(&["simulate", "--trace", "manifests:-", "--json", "-"], &[], &text).exits(0);
    assert_eq!(ran.json()["title"], "standard input");
}

#[test]
fn what_there_is_nothing_to_run_of_is_refused() {
    let folder = Folder::new().with("empty.yaml", "").with("text.yaml", "hello\n").with("none/x.txt", "");
    simulate(&folder, &["manifests:empty.yaml"]).exits(2).says(&["empty.yaml: there is no pod"]);
    simulate(&folder, &["manifests:text.yaml"]).exits(2).says(&["text.yaml:1", "Kubernetes object"]);
    simulate(&folder, &["manifests:none"]).exits(2).says(&["none: no file in it ends in .yaml"]);
    simulate(&folder, &["manifests:nope"]).exits(2).says(&["nope: cannot be read"]);
    let folder = folder.with("d.yaml", &deployment("web", 1, ""));
    let ran = simulate(&folder, &["manifests:d.yaml"]).exits(0);
    assert!(ran.json()["notes"].to_string().contains("there is no Node"), "{}", ran.stdout);
}

/// Three jobs of one processor, the second broken.
const LOG: &str = "\
; MaxProcs: 8
1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1
2 five 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1
3 9 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1
";

#[test]
fn a_broken_line_of_a_trace_is_reported_and_the_rest_runs() {
    let folder = Folder::new().with("log.swf", LOG);
    let ran = simulate(&folder, &["swf:log.swf"]).exits(0);
    let json = ran.json();
    assert_eq!((&json["summary"]["jobs"], &json["summary"]["finished"]), (&2.into(), &2.into()));
    let problem = json["problems"][0].as_str().expect("a problem");
    assert!(problem.contains("log.swf:3") && problem.contains("five"), "{problem}");
    simulate(&folder, &["swf:log.swf", "--strict"]).exits(2).says(&["--strict: 1 problem", "log.swf:3"]);
}

#[test]
fn a_trace_that_is_none_says_what_to_write() {
    let folder = Folder::new().with("log.swf", LOG);
    for (trace, parts) in [
        ("swff:log.swf", vec!["`swff`", "`swf`", "manifests"]),
        ("manifest:log.swf", vec!["`manifests`"]),
        ("swf", vec!["KIND:PATH", "swf:jobs.swf"]),
        ("swf:", vec!["KIND:PATH"]),
        ("log.swf", vec!["--trace swf:log.swf"]),
        (".", vec!["--trace manifests:."]),
        ("swf:nope.swf", vec!["nope.swf", "cannot be read"]),
    ] {
        let ran = simulate(&folder, &[trace]).exits(2).says(&parts);
        assert_eq!(ran.stdout, "", "{trace}");
    }
    simulate(&folder, &["swf:log.swf", "--nodes", "0"]).exits(2).says(&["--nodes"]);
    simulate(&folder, &["swf:log.swf", "--compress", "0"]).exits(2).says(&["--compress"]);
    simulate(&folder, &["swf:log.swf", "--derive", "gang"]).exits(2).says(&["--derive gang", "gangs"]);
    simulate(&folder, &["swf:log.swf", "--derive", "tenants=x"]).exits(2).says(&["tenants=8"]);
}
