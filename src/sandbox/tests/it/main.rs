//! A control plane of real parts, and the kubelet stand-in on it. Skipped, loudly, where there are no parts.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::serde::de::DeserializeOwned;
use krafla_sandbox::{Assets, ControlPlane, EXIT_CODE, Error, Grace, Kubelet, KubeletOptions, Options};
use krafla_sandbox::{create_nodes, node, set_ready};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Asks until the answer is one.
async fn until<T: Debug>(what: &str, ask: impl AsyncFn() -> Result<Option<T>, kube::Error>) -> T {
    let begun = Instant::now();
    loop {
        let answer = ask().await;
        if let Ok(Some(answer)) = answer {
            return answer;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: still {answer:?}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object of this kind")
}

fn pod(name: &str, node: &str, annotations: &Value) -> Pod {
    object(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "annotations": annotations },
        "spec": { "nodeName": node, "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] },
    }))
}

async fn phase_of(pods: &Api<Pod>, name: &str) -> Result<Option<String>, kube::Error> {
    Ok(pods.get(name).await?.status.and_then(|status| status.phase))
}

async fn is_in(pods: &Api<Pod>, name: &str, phase: &str) {
    until(&format!("{name} is {phase}"), async || Ok(phase_of(pods, name).await?.filter(|now| now == phase))).await;
}

/// What the scheduler would do: puts each pod without a node onto one.
async fn bind_all(client: &Client, node: &str) -> Result<usize, kube::Error> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let waiting = pods.list(&ListParams::default().fields("spec.nodeName=")).await?;
    for pod in &waiting.items {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let _: Value = pods.create_subresource("binding", name, &PostParams::default(), &binding).await?;
    }
    Ok(waiting.items.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_run_end_fail_and_go() -> Outcome {
    let Some(assets) = Assets::for_test() else { return Ok(()) };
    let control_plane = ControlPlane::start(&assets, Options::new().no_controllers()).await?;
    let client = control_plane.client()?;

    create_nodes(&client, [node("n0", "8", "32Gi").holds("nvidia.com/gpu", "4").label("rack", "r1")]).await?;
    let nodes: Api<Node> = Api::all(client.clone());
    let n0 = nodes.get("n0").await?;
    let status = n0.status.clone().unwrap_or_default();
    let allocatable = status.allocatable.unwrap_or_default();
    assert_eq!(allocatable.get("nvidia.com/gpu").map(|amount| amount.0.as_str()), Some("4"));
    assert_eq!(n0.spec.and_then(|spec| spec.taints), None, "nothing taints a new node");
    assert_eq!(status.conditions.unwrap_or_default()[0].status, "True");
    set_ready(&client, "n0", false).await?;
    let status = nodes.get("n0").await?.status.unwrap_or_default();
    assert_eq!(status.conditions.unwrap_or_default()[0].status, "False");

    let options = KubeletOptions { grace: Grace::AtMost(Duration::from_millis(100)), ..KubeletOptions::default() };
    let _kubelet = Kubelet::start(client.clone(), options);
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let post = PostParams::default();
    pods.create(&post, &pod("ends", "n0", &json!({ "krafla.io/runtime": "300ms" }))).await?;
    pods.create(&post, &pod("fails", "n0", &json!({ "krafla.io/runtime": "300ms", EXIT_CODE: "3" }))).await?;
    pods.create(&post, &pod("stays", "n0", &json!({}))).await?;

    is_in(&pods, "stays", "Running").await;
    let status = pods.get("stays").await?.status.unwrap_or_default();
    assert!(status.pod_ip.is_some() && status.start_time.is_some());
    let is_ready =
        |condition: &k8s_openapi::api::core::v1::PodCondition| condition.type_ == "Ready" && condition.status == "True";
    assert!(status.conditions.unwrap_or_default().iter().any(is_ready));

    is_in(&pods, "ends", "Succeeded").await;
    is_in(&pods, "fails", "Failed").await;
    let failed = serde_json::to_value(pods.get("fails").await?.status)?;
    assert_eq!(failed["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    assert_eq!(phase_of(&pods, "stays").await?.as_deref(), Some("Running"), "nothing ends it");

    // A grace of half a minute, cut short by the option.
    pods.delete("stays", &DeleteParams::default()).await?;
    until("it is gone", async || Ok(pods.get_opt("stays").await?.is_none().then_some(()))).await;

    pods.create(&post, &pod("told", "n0", &json!({}))).await?;
    is_in(&pods, "told", "Running").await;
    let now = Patch::Merge(json!({ "metadata": { "annotations": { "krafla.io/runtime": "0s" } } }));
    pods.patch("told", &PatchParams::default(), &now).await?;
    is_in(&pods, "told", "Succeeded").await;
    control_plane.stop();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_parts_come_back_with_what_they_had() -> Outcome {
    let Some(assets) = Assets::for_test() else { return Ok(()) };
    let options = Options::new().no_controllers().user("system:serviceaccount:krafla:scheduler", &[]);
    let mut control_plane = ControlPlane::start(&assets, options).await?;
    let (client, url) = (control_plane.client()?, control_plane.url());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let kept: ConfigMap = object(json!({ "metadata": { "name": "kept" }, "data": { "a": "1" } }));
    maps.create(&PostParams::default(), &kept).await?;
    create_nodes(&client, [node("n0", "1", "1Gi")]).await?;
    let _kubelet = Kubelet::start(client.clone(), KubeletOptions::default());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("before", "n0", &json!({}))).await?;
    is_in(&pods, "before", "Running").await;

    control_plane.kill_api_server();
    assert!(maps.get("kept").await.is_err(), "nobody answers");
    control_plane.start_api_server().await?;
    assert_eq!(control_plane.url(), url);
    assert_eq!(maps.get("kept").await?.data, kept.data, "the same client, the same data");
    assert!(matches!(control_plane.start_api_server().await, Err(Error::Misuse(_))), "it runs");

    control_plane.restart_etcd().await?;
    until("etcd's data is back", async || Ok(maps.get("kept").await?.data)).await;

    pods.create(&PostParams::default(), &pod("after", "n0", &json!({}))).await?;
    is_in(&pods, "after", "Running").await; // the kubelets have found their way back

    // Authorization is on: a user without a role may do nothing.
    let stranger: Api<Pod> =
        Api::default_namespaced(control_plane.client_for("system:serviceaccount:krafla:scheduler")?);
    match stranger.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 403, "{status:?}"),
        other => panic!("the stranger got {other:?}"),
    }

    let folder = control_plane.folder().to_owned();
    assert!(folder.exists());
    drop(control_plane);
    assert!(!folder.exists(), "it leaves nothing behind");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_make_pods_and_count_them() -> Outcome {
    let Some(assets) = Assets::for_test() else { return Ok(()) };
    let begun = Instant::now();
    let control_plane = ControlPlane::start(&assets, Options::new()).await?;
    println!("ready after {:?}", begun.elapsed());
    let client = control_plane.client()?;
    create_nodes(&client, [node("n0", "8", "32Gi")]).await?;
    let options = KubeletOptions { grace: Grace::AtMost(Duration::from_millis(100)), ..KubeletOptions::default() };
    let _kubelet = Kubelet::start(client.clone(), options);

    let labels = json!({ "app": "web" });
    let container = json!([{ "name": "c", "image": "i" }]);
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client.clone());
    let budget = object(json!({
        "metadata": { "name": "web" }, "spec": { "minAvailable": 2, "selector": { "matchLabels": labels } },
    }));
    budgets.create(&PostParams::default(), &budget).await?;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let deployment = object(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": container } },
        },
    }));
    deployments.create(&PostParams::default(), &deployment).await?;
    until("three are available", async || {
        bind_all(&client, "n0").await?;
        let status = deployments.get("web").await?.status.unwrap_or_default();
        Ok((status.available_replicas == Some(3)).then_some(()))
    })
    .await;
    until("one may be disrupted", async || {
        let status = budgets.get("web").await?.status;
        Ok(status.filter(|status| status.disruptions_allowed == Some(1) && status.current_healthy == Some(3)))
    })
    .await;

    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let job = object(json!({
        "metadata": { "name": "batch" },
        "spec": {
            "completions": 4, "parallelism": 2,
            "template": {
                "metadata": { "annotations": { "krafla.io/runtime": "100ms" } },
                "spec": { "restartPolicy": "Never", "containers": container },
            },
        },
    }));
    jobs.create(&PostParams::default(), &job).await?;
    until("the job is complete", async || {
        bind_all(&client, "n0").await?;
        let status = jobs.get("batch").await?.status.unwrap_or_default();
        Ok((status.succeeded == Some(4) && status.completion_time.is_some()).then_some(()))
    })
    .await;

    // A job's pod that is deleted while it runs has a finalizer: the job counts it once it has stopped, and lets it go.
    let job = object(json!({
        "metadata": { "name": "long" },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": container } } },
    }));
    jobs.create(&PostParams::default(), &job).await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let first = until("its pod runs", async || {
        bind_all(&client, "n0").await?;
        let all = pods.list(&ListParams::default().labels("job-name=long")).await?.items;
        let runs = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        Ok(all.into_iter().find(runs).and_then(|pod| pod.metadata.name))
    })
    .await;
    pods.delete(&first, &DeleteParams::default()).await?;
    until("it is gone", async || Ok(pods.get_opt(&first).await?.is_none().then_some(()))).await;
    until("it has failed", async || Ok(jobs.get("long").await?.status.filter(|status| status.failed == Some(1)))).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_does_not_start_says_why() -> Outcome {
    let Some(assets) = Assets::for_test() else { return Ok(()) };
    let options = Options::new().no_controllers().api_server_flag("--no-such-flag");
    let error = ControlPlane::start(&assets, options).await.expect_err("a wrong flag");
    let Error::Ended { part: "kube-apiserver", log, tail, .. } = &error else { panic!("{error}") };
    assert!(tail.contains("no-such-flag"), "{error}");
    let folder = log.parent().expect("a folder");
    assert!(log.exists(), "the log is left for a look");
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
