//! What is installed by `kubectl apply -k conf/deploy`: a real API server takes all of it, and with the role in it the
//! scheduler can do its work.

use std::path::{Path, PathBuf};

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use krafla_sandbox::Options;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::harness::{Stage, pod, text};

const NAMESPACE: &str = "volcano-system";
const ACCOUNT: &str = "system:serviceaccount:volcano-system:krafla";

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_accepted_and_the_role_is_enough() {
    let Some(stage) =
        Stage::with(Options::new().user(ACCOUNT, &[]).also_controller("persistentvolume-binder-controller")).await
    else {
        return;
    };
    let objects = objects_of(&repository().join("conf/deploy"));
    for (really, what) in [(false, "in a dry run"), (true, "for good")] {
        for object in &objects {
            if let Err(error) = apply(&stage.client, object, really).await {
                panic!("{} {} is not accepted {what}: {error}", object["kind"], object["metadata"]["name"]);
            }
        }
    }

    may_deschedule(&stage).await;
    stage.nodes(2, "4", "16Gi").await;
    let krafla = stage.krafla_with(stage.control_plane.kubeconfig_for(ACCOUNT), &flags(&stage, &objects).await);
    krafla.until_ready().await;
    stage
        .eventually("it leads", async || match krafla.metric("krafla_leading").await {
            Some(1.0) => Ok(()),
            other => Err(format!("krafla_leading is {other:?}; {}", krafla.log())),
        })
        .await;

    stage.create(&pod("alone", None, "100m")).await;
    stage.gang("gang", 3, 3, "1", "default").await;
    stage.gang("wide", 3, 3, "4", "default").await;
    stage.create(&deployment("web", 2)).await;
    stage.create(&coscheduling_group("other", 2)).await;
    for name in ["other-0", "other-1"] {
        let mut member = pod(name, None, "100m");
        member["metadata"]["labels"] = json!({ "group": "other", "scheduling.x-k8s.io/pod-group": "other" });
        stage.create(&member).await;
    }
    for object in crate::volumes::local("disk", "n1") {
        stage.create(&object).await;
    }
    crate::devices::offer(&stage, "n0").await;
    stage.create(&crate::devices::claimant("claims", "c1", "volcano")).await;
    for (group, n) in [("alone", 1), ("gang", 3), ("web", 2), ("other", 2), ("disk", 1), ("claims", 1)] {
        stage.until_bound(&format!("group={group}"), n).await;
    }

    // What is written: phases of groups, states of queues, conditions of pods that wait, events.
    let coscheduling = stage.api("scheduling.x-k8s.io/v1alpha1", "PodGroup", None);
    until_says(&stage, &stage.pod_groups(), "gang", "/status/phase", "Running").await;
    until_says(&stage, &coscheduling, "other", "/status/phase", "Running").await;
    for queue in ["root", "default"] {
        until_says(&stage, &stage.queues(), queue, "/status/state", "Open").await;
    }
    until_says(&stage, &stage.queues(), "default", "/spec/parent", "root").await;
    stage.until_event("wide-0", "FailedScheduling", "cpu").await;
    stage
        .eventually("the pod says why it waits", async || {
            let pod = stage.pods().get("wide-0").await.map_err(text)?;
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            let waits = conditions.iter().any(|one| one.type_ == "PodScheduled" && one.status == "False");
            if waits { Ok(()) } else { Err(format!("{conditions:?}")) }
        })
        .await;

    // The minimum stands at the ReplicaSet: nothing but reading it tells.
    let groups = stage.pod_groups().list(&ListParams::default()).await.expect("listed");
    let made = groups.iter().filter(|group| group.data["spec"]["minMember"] == json!(2));
    assert_eq!(made.count(), 1, "a group of the web's two: {:?}", groups.items);
    // A group that was made for a pod goes with it.
    let alone = stage.pods().get("alone").await.expect("there").annotations()["scheduling.k8s.io/group-name"].clone();
    stage.delete_pod("alone").await;
    stage
        .eventually("the group that was made is deleted", async || {
            match stage.pod_groups().get_opt(&alone).await.map_err(text)? {
                None => Ok(()),
                Some(_) => Err(format!("{alone} is there; {}", krafla.log())),
            }
        })
        .await;

    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), NAMESPACE);
    stage
        .eventually("the Lease is renewed", async || {
            let spec = leases.get("volcano").await.map_err(text)?.spec.unwrap_or_default();
            if spec.renew_time > spec.acquire_time { Ok(()) } else { Err(format!("{spec:?}; {}", krafla.log())) }
        })
        .await;
    krafla.books_are_right().await;
    let forbidden: Vec<String> =
        krafla.log().lines().filter(|line| line.contains("orbidden")).map(str::to_owned).collect();
    assert!(forbidden.is_empty(), "the role lacks: {}", forbidden.join("\n"));
}

/// What the descheduler asks for, and this stage has not: the API server is asked whether it would be let.
async fn may_deschedule(stage: &Stage) {
    let reviews: Api<SubjectAccessReview> = Api::all(stage.client.clone());
    for (group, resource, subresource, verb, wanted) in [
        ("metrics.k8s.io", "nodes", "", "list", true),
        ("metrics.k8s.io", "pods", "", "list", true),
        ("", "pods", "eviction", "create", true),
        ("policy", "poddisruptionbudgets", "", "list", true),
        ("", "pods", "", "delete", false),
        ("", "secrets", "", "get", false),
    ] {
        let attributes = json!({ "group": group, "resource": resource, "subresource": subresource, "verb": verb });
        let review = json!({ "spec": { "user": ACCOUNT, "resourceAttributes": attributes } });
        let review = serde_json::from_value(review).expect("a review");
        let answer = reviews.create(&PostParams::default(), &review).await.expect("it is answered");
        let allowed = answer.status.map(|status| status.allowed);
        assert_eq!(allowed, Some(wanted), "{verb} {resource}/{subresource} of {group:?}");
    }
}

#[test]
fn the_monitor_looks_where_the_scheduler_is() {
    let base = repository().join("conf/deploy");
    let monitor = &objects_of(&base.join("components/pod-monitor"))[0];
    let objects = objects_of(&base);
    let deployment = of_kind(&objects, "Deployment");
    assert_eq!(monitor["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    assert_eq!(monitor["spec"]["selector"], deployment["spec"]["selector"]);
    let ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"].as_array().expect("ports");
    let port = &monitor["spec"]["podMetricsEndpoints"][0]["port"];
    assert!(ports.iter().any(|one| one["name"] == *port), "no port is called {port}");
}

#[test]
fn the_shipped_configuration_is_volcanos() {
    let objects = objects_of(&repository().join("conf/deploy"));
    let shipped = of_kind(&objects, "ConfigMap")["data"]["scheduler.conf"].as_str().expect("a text");
    let preset = std::fs::read_to_string(repository().join("conf/presets/volcano-helm.conf")).expect("a preset");
    let read = |text: &str| serde_saphyr::from_str::<Value>(text).expect("YAML");
    assert_eq!(read(shipped), read(&preset));
}

/// The flags of the Deployment, but those that the harness gives, and with the configuration as a file.
async fn flags(stage: &Stage, objects: &[Value]) -> Vec<&'static str> {
    let container = &of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    let maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let map = maps.get("krafla").await.expect("the ConfigMap is there");
    let mut flags = Vec::new();
    for flag in container["args"].as_array().expect("arguments") {
        let flag = flag.as_str().expect("a text").to_owned();
        if let Some(path) = flag.strip_prefix("--scheduler-conf=") {
            let name = Path::new(path).file_name().and_then(|name| name.to_str()).expect("a name");
            let file = stage.folder.path().join(name);
            std::fs::write(&file, &map.data.as_ref().expect("data")[name]).expect("written");
            flags.push(format!("--scheduler-conf={}", file.display()));
        } else if !["--enable-metrics", "--enable-healthz"].contains(&flag.as_str()) {
            flags.push(flag);
        }
    }
    flags.into_iter().map(|flag| &*flag.leak()).collect()
}

/// Waits until a field of an object has this value.
async fn until_says(stage: &Stage, api: &Api<DynamicObject>, name: &str, pointer: &str, wanted: &str) {
    stage
        .eventually(&format!("{pointer} of {name} is {wanted}"), async || {
            let object = api.get(name).await.map_err(text)?;
            match object.data.pointer(pointer).and_then(Value::as_str) {
                Some(is) if is == wanted => Ok(()),
                other => Err(format!("it is {other:?}")),
            }
        })
        .await;
}

fn deployment(name: &str, replicas: u32) -> Value {
    let template = pod(name, None, "100m");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": name, "namespace": "default",
            "annotations": { "scheduling.volcano.sh/group-min-member": replicas.to_string() },
        },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "group": name } },
            "template": { "metadata": { "labels": { "group": name } }, "spec": template["spec"] },
        },
    })
}

fn coscheduling_group(name: &str, min: u32) -> Value {
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": { "name": name, "namespace": "default" }, "spec": { "minMember": min },
    })
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

/// What kustomize makes of a folder: the objects of its resources, with namespaces and definitions first. Nothing in
/// this repository transforms any.
fn objects_of(folder: &Path) -> Vec<Value> {
    let named = ["kustomization.yaml", "Kustomization"].map(|name| folder.join(name));
    let kustomization = named.iter().find(|path| path.is_file()).unwrap_or_else(|| panic!("none in {folder:?}"));
    let mut objects = Vec::new();
    for resource in documents(kustomization)[0]["resources"].as_array().expect("resources") {
        let path = folder.join(resource.as_str().expect("a path"));
        objects.extend(if path.is_dir() { objects_of(&path) } else { documents(&path) });
    }
    let first = ["Namespace", "CustomResourceDefinition"].map(Value::from);
    objects.sort_by_key(|object| first.iter().position(|kind| *kind == object["kind"]).unwrap_or(first.len()));
    objects
}

fn documents(path: &Path) -> Vec<Value> {
    let yaml = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&yaml).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn apply(client: &Client, object: &Value, really: bool) -> Result<DynamicObject, kube::Error> {
    let field = |key: &str| object[key].as_str().unwrap_or_else(|| panic!("no {key} in {object}"));
    let (group, version) = field("apiVersion").split_once('/').unwrap_or(("", field("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, field("kind")));
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut parameters = PatchParams::apply("kubectl").force();
    parameters.dry_run = !really;
    api.patch(object["metadata"]["name"].as_str().expect("a name"), &parameters, &Patch::Apply(object)).await
}
