//! Workloads as their operators make them: what each of them writes, in its order and in its way, comes to run.
//!
//! The operators themselves are not here. The test is the operator, and a ConfigMap stands for the custom resource that
//! owns what it makes, since of that nothing but the UID counts.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use krafla_sandbox::{Options, create_nodes, node};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::harness::{Krafla, Stage, is_bound, pod, text};

const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";
const COSCHEDULING: &str = "scheduling.x-k8s.io/v1alpha1";

#[tokio::test(flavor = "multi_thread")]
async fn spark_applications_run_in_whatever_order_spark_makes_their_objects() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(3, "16", "64Gi").await;
    let krafla = stage.krafla();
    spark_with_its_podgroup_first(&stage).await;
    spark_with_its_driver_first(&stage).await;
    spark_at_the_door_of_its_queue(&stage).await;
    spark_in_client_mode(&stage).await;
    spark_operator(&stage).await;
    all_is_well(&stage, krafla).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn training_jobs_and_ray_clusters_run() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(3, "16", "64Gi").await;
    let krafla = stage.krafla();
    training_operator(&stage).await;
    trainer(&stage).await;
    kuberay(&stage).await;
    mpi_operator(&stage).await;
    leader_worker_set(&stage).await;
    all_is_well(&stage, krafla).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_workloads_get_one_podgroup_each_and_leave_none() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(3, "16", "64Gi").await;
    let krafla = stage.krafla();
    queue(&stage, "team", json!({})).await;
    deployment(&stage).await;
    stateful_set(&stage).await;
    job_with_a_minimum(&stage).await;
    daemon_set(&stage).await;
    bare_pod(&stage).await;
    all_is_well(&stage, krafla).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_of_coscheduling_and_of_kubernetes_itself_are_gangs() {
    let own = "--runtime-config=scheduling.k8s.io/v1beta1=true";
    let Some(stage) = Stage::with(Options::new().feature("GenericWorkload").api_server_flag(own)).await else { return };
    stage.nodes(3, "16", "64Gi").await;
    let krafla = stage.krafla();
    coscheduling(&stage).await;
    gang_by_labels(&stage).await;
    kubernetes_own(&stage).await;
    all_is_well(&stage, krafla).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vcctl_and_kubectl_find_what_they_look_for() {
    let Some(stage) = Stage::new().await else { return };
    stage.nodes(1, "16", "64Gi").await;
    command_resource(&stage).await;
    let krafla = stage.krafla();
    vcctl_closes_and_opens_a_queue(&stage).await;
    columns_of_kubectl(&stage).await;
    all_is_well(&stage, krafla).await;
}

/// Spark, MPI, LeaderWorkerSet and Trainer leave the phase to the scheduler; people and `vcctl` read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_podgroup_that_is_not_let_in_says_that_it_is_pending() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(1, "16", "64Gi").await;
    let krafla = stage.krafla();
    queue(&stage, "small", json!({ "capability": { "cpu": "1" } })).await;
    apply_as(&stage, "fabric8", &spark_group("big", json!({ "minResources": { "cpu": "2" }, "queue": "small" }))).await;
    until_phase(&stage, "big-podgroup", "Pending").await;
    all_is_well(&stage, krafla).await;
}

/// A gang whose last member comes while the others are still being told that they wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn pods_that_run_do_not_say_that_they_wait() {
    let Some(stage) = Stage::with(Options::new().no_controllers()).await else { return };
    stage.nodes(4, "64", "256Gi").await;
    let krafla = stage.krafla();
    krafla.until_ready().await;
    stage.pod_group("big", 100, "default").await;
    let pod = |i: usize| pod(&format!("big-{i}"), Some("big"), "1");
    join_all((0..99).map(async |i| stage.create(&pod(i)).await)).await;
    stage.until_event("big-0", "FailedScheduling", "").await;
    stage.create(&pod(99)).await;
    stage.until_running("group=big", 100).await;
    all_is_well(&stage, krafla).await;
    pods_with_nodes_say_that_they_are_scheduled(&stage).await;
}

// Spark

/// Up to Spark 4: the PodGroup, the driver, and the PodGroup again with the driver for its owner.
async fn spark_with_its_podgroup_first(stage: &Stage) {
    let mut group = spark_group("spark-1", json!({}));
    apply_as(stage, "fabric8", &group).await;
    until_let_in(stage, "spark-1-podgroup").await;
    let driver = stage.create(&spark_pod("spark-1", "driver", "500m")).await;
    group["metadata"]["ownerReferences"] = json!([owner(&driver)]);
    let applied = apply_as(stage, "fabric8", &group).await;
    let phase = applied.data["status"]["phase"].as_str().unwrap_or_default();
    assert!(!["", "Pending"].contains(&phase), "an apply that says nothing of the status leaves `{phase}` of it");
    stage.until_running("spark-app-selector=spark-1", 1).await;
    // The driver asks for executors in batches.
    for batch in [0..2, 2..5] {
        let so_far = batch.end + 1;
        spark_executors(stage, "spark-1", &driver, batch).await;
        stage.until_running("spark-app-selector=spark-1", so_far).await;
    }
    until_counts(stage, "spark-1-podgroup", "Running", 6).await;

    // With the driver goes everything.
    stage.delete_pod("spark-1-driver").await;
    until_gone(stage, "spark-1-podgroup").await;
    until_pods(stage, "spark-app-selector=spark-1", 0).await;
}

/// Later: the driver behind a gate, the PodGroup with its owner, and then the gate is removed.
async fn spark_with_its_driver_first(stage: &Stage) {
    let mut driver = spark_pod("spark-2", "driver", "500m");
    driver["spec"]["schedulingGates"] = json!([{ "name": "spark.apache.org/pre-resources" }]);
    let driver = stage.create(&driver).await;
    let mut group = spark_group("spark-2", json!({}));
    group["metadata"]["ownerReferences"] = json!([owner(&driver)]);
    apply_as(stage, "fabric8", &group).await;
    until_let_in(stage, "spark-2-podgroup").await;
    assert_eq!(stage.bound("spark-app-selector=spark-2").await, Ok(0), "it has a gate");
    let open = Patch::Merge(json!({ "spec": { "schedulingGates": null } }));
    stage.pods().patch("spark-2-driver", &PatchParams::default(), &open).await.expect("the gate is removed");
    stage.until_running("spark-app-selector=spark-2", 1).await;
    spark_executors(stage, "spark-2", &driver, 0..3).await;
    stage.until_running("spark-app-selector=spark-2", 4).await;
    until_counts(stage, "spark-2-podgroup", "Running", 4).await;
    stage.delete_pod("spark-2-driver").await;
    until_pods(stage, "spark-app-selector=spark-2", 0).await;
}

/// Two applications that each need more than half of what their queue may have: one after the other, driver and all.
async fn spark_at_the_door_of_its_queue(stage: &Stage) {
    queue(stage, "etl", json!({ "capability": { "cpu": "2", "memory": "8Gi" } })).await;
    let template = json!({
        "minMember": 1,
        "minResources": { "cpu": "1500m", "memory": "6Gi" },
        "queue": "etl",
    });
    let selector = |app: &str| format!("spark-app-selector={app}");
    apply_as(stage, "fabric8", &spark_group("spark-3", template.clone())).await;
    let first = stage.create(&spark_pod("spark-3", "driver", "500m")).await;
    stage.until_running(&selector("spark-3"), 1).await;
    apply_as(stage, "fabric8", &spark_group("spark-4", template)).await;
    let second = stage.create(&spark_pod("spark-4", "driver", "500m")).await;
    stage.until_event("spark-4-podgroup", "Unschedulable", "etl").await;
    // There is room for the second driver, and it would keep the executors of the first from their places.
    spark_executors(stage, "spark-3", &first, 0..5).await;
    stage.until_running(&selector("spark-3"), 6).await;
    stage.until_event("spark-4-driver", "FailedScheduling", "").await;
    assert_eq!(stage.bound(&selector("spark-4")).await, Ok(0));
    assert!(["", "Pending"].contains(&&*phase_of(stage, "spark-4-podgroup").await.expect("it is there")));

    end(stage, &selector("spark-3")).await;
    until_phase(stage, "spark-3-podgroup", "Completed").await;
    stage.until_running(&selector("spark-4"), 1).await;
    spark_executors(stage, "spark-4", &second, 0..5).await;
    stage.until_running(&selector("spark-4"), 6).await;
    end(stage, &selector("spark-4")).await;
    until_phase(stage, "spark-4-podgroup", "Completed").await;
}

/// In client mode executors name a PodGroup that nobody makes: they wait, and say for what.
async fn spark_in_client_mode(stage: &Stage) {
    stage.create(&spark_pod("spark-5", "exec-1", "200m")).await;
    let message = stage.until_event("spark-5-exec-1", "FailedScheduling", "spark-5-podgroup").await;
    assert!(message.contains("podgroup"), "{message}");
    assert_eq!(stage.bound("spark-app-selector=spark-5").await, Ok(0));
    // Somebody who reads that makes it.
    apply_as(stage, "kubectl", &spark_group("spark-5", json!({}))).await;
    stage.until_running("spark-app-selector=spark-5", 1).await;
}

async fn spark_operator(stage: &Stage) {
    let application = custom_resource(stage, "pi").await;
    let group = json!({
        "apiVersion": VOLCANO, "kind": "PodGroup",
        "metadata": { "name": "spark-pi-pg", "namespace": "default", "ownerReferences": [owner(&application)] },
        "spec": { "minMember": 1, "minResources": { "cpu": "1100m", "memory": "3Gi" } },
        "status": { "phase": "Pending" },
    });
    stage.create(&group).await;
    let in_group = |mut pod: Value| {
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = json!("spark-pi-pg");
        pod
    };
    let driver = stage.create(&in_group(spark_pod("pi", "driver", "500m"))).await;
    stage.until_running("spark-app-selector=pi,spark-role=driver", 1).await;
    for i in 1..=3 {
        let mut executor = in_group(spark_pod("pi", &format!("exec-{i}"), "200m"));
        executor["metadata"]["ownerReferences"] = json!([owner(&driver)]);
        stage.create(&executor).await;
    }
    stage.until_running("spark-app-selector=pi", 4).await;
    until_counts(stage, "spark-pi-pg", "Running", 4).await;
    end(stage, "spark-app-selector=pi").await;
    until_phase(stage, "spark-pi-pg", "Completed").await;
    // The operator deletes it when the application has ended, with its pods still there.
    stage.pod_groups().delete("spark-pi-pg", &DeleteParams::default()).await.expect("deleted");
    until_gone(stage, "spark-pi-pg").await;
}

fn spark_group(app: &str, spec: Value) -> Value {
    let name = format!("{app}-podgroup");
    json!({
        "apiVersion": VOLCANO, "kind": "PodGroup", "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    })
}

fn spark_pod(app: &str, role: &str, cpu: &str) -> Value {
    let labels = json!({ "spark-app-selector": app, "spark-role": role.split('-').next() });
    member(&format!("{app}-{role}"), &format!("{app}-podgroup"), labels, cpu)
}

async fn spark_executors(stage: &Stage, app: &str, driver: &DynamicObject, which: std::ops::Range<usize>) {
    for i in which {
        let mut executor = spark_pod(app, &format!("exec-{i}"), "200m");
        executor["metadata"]["ownerReferences"] = json!([owner(driver)]);
        stage.create(&executor).await;
    }
}

// Training

/// No pod is made before the PodGroup is let in; and the operator writes the whole PodGroup at each reconcile.
async fn training_operator(stage: &Stage) {
    let job = custom_resource(stage, "mnist").await;
    let amounts = |memory: usize| json!({ "cpu": "4", "memory": format!("{memory}Mi") });
    let group = json!({
        "apiVersion": VOLCANO, "kind": "PodGroup",
        "metadata": {
            "name": "mnist", "namespace": "default", "ownerReferences": [owner(&job)],
            "annotations": { "kubeflow.org/note": "the job's" },
        },
        "spec": { "minMember": 4, "queue": "default", "minResources": amounts(1_024) },
        "status": {},
    });
    let mut cached = stage.create(&group).await;
    let asked = Instant::now();
    until_let_in(stage, "mnist").await;
    println!("a PodGroup without pods was let in after {:?}", asked.elapsed());

    let conflicts = Cell::new(0);
    let reconciles = async {
        for n in 1.. {
            cached.data["spec"]["minResources"] = amounts(1_024 + n);
            cached = match stage.pod_groups().replace("mnist", &PostParams::default(), &cached).await {
                Ok(written) => written,
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    conflicts.set(conflicts.get() + 1);
                    stage.pod_groups().get("mnist").await.expect("it is there")
                }
                Err(error) => panic!("the PodGroup is not written: {error}"),
            };
        }
    };
    let pods = async {
        let roles = [("master", 0), ("worker", 0), ("worker", 1), ("worker", 2)];
        for (role, i) in roles {
            let labels =
                json!({ "training.kubeflow.org/job-name": "mnist", "training.kubeflow.org/replica-type": role });
            let mut pod = member(&format!("mnist-{role}-{i}"), "mnist", labels, "1");
            pod["metadata"]["annotations"]["volcano.sh/task-spec"] = json!(role);
            pod["metadata"]["ownerReferences"] = json!([owner(&job)]);
            stage.create(&pod).await;
        }
        stage.until_running("training.kubeflow.org/job-name=mnist", 4).await;
        until_counts(stage, "mnist", "Running", 4).await;
    };
    tokio::select! {
        () = pods => {}
        () = reconciles => unreachable!("it goes on for ever"),
    }
    // The first was read before it was let in.
    assert!(conflicts.get() > 0, "there was no conflict");
    update(stage, "mnist", |group| group.data["spec"]["minResources"] = amounts(512)).await;
    until_counts(stage, "mnist", "Running", 4).await;
    // The scheduler writes nothing but the status.
    let group = stage.pod_groups().get("mnist").await.expect("it is there");
    assert_eq!(group.data["spec"], json!({ "minMember": 4, "queue": "default", "minResources": amounts(512) }));
    assert_eq!(group.annotations()["kubeflow.org/note"], "the job's");

    // Whoever writes it without a status takes the scheduler's back for a moment.
    update(stage, "mnist", |group| group.data["status"] = json!({})).await;
    until_counts(stage, "mnist", "Running", 4).await;

    end(stage, "training.kubeflow.org/job-name=mnist").await;
    until_phase(stage, "mnist", "Completed").await;
    stage.pod_groups().delete("mnist", &DeleteParams::default()).await.expect("deleted");
    until_gone(stage, "mnist").await;
}

/// A PodGroup by server-side apply, and a JobSet, of which real Jobs make the pods.
async fn trainer(stage: &Stage) {
    let train_job = custom_resource(stage, "tune").await;
    let group = json!({
        "apiVersion": VOLCANO, "kind": "PodGroup",
        "metadata": { "name": "tune", "namespace": "default", "ownerReferences": [owner(&train_job)] },
        "spec": { "minMember": 5, "minResources": { "cpu": "5", "memory": "5Gi" } },
    });
    apply_as(stage, "trainer", &group).await;
    for (role, n) in [("launcher", 1), ("node", 4)] {
        let labels = json!({ "jobset.sigs.k8s.io/jobset-name": "tune", "jobset.sigs.k8s.io/replicatedjob-name": role });
        let mut job = job(&format!("tune-{role}-0"), n, member("-", "tune", labels, "1"));
        job["metadata"]["ownerReferences"] = json!([owner(&train_job)]);
        stage.create(&job).await;
    }
    stage.until_running("jobset.sigs.k8s.io/jobset-name=tune", 5).await;
    until_counts(stage, "tune", "Running", 5).await;
    // Their Jobs get no PodGroup of their own.
    until_groups(stage, &["tune"]).await;
    end(stage, "jobset.sigs.k8s.io/jobset-name=tune").await;
    until_phase(stage, "tune", "Completed").await;
    for role in ["launcher", "node"] {
        delete(stage, "batch/v1", "Job", &format!("tune-{role}-0")).await;
    }
    delete(stage, "v1", "ConfigMap", "tune").await;
    until_gone(stage, "tune").await;
}

/// A cluster that grows, and the end of a RayJob, which asks for nothing any more without the PodGroup being deleted.
async fn kuberay(stage: &Stage) {
    queue(stage, "ray", json!({ "capability": { "cpu": "4" } })).await;
    let cluster = custom_resource(stage, "raycluster").await;
    let group = |name: &str, cluster: &DynamicObject, members: usize| {
        json!({
            "apiVersion": VOLCANO, "kind": "PodGroup",
            "metadata": { "name": format!("ray-{name}-pg"), "namespace": "default", "ownerReferences": [owner(cluster)] },
            "spec": { "minMember": members, "minResources": { "cpu": members.to_string() }, "queue": "ray" },
            "status": { "phase": "Pending" },
        })
    };
    let pod = |cluster: &str, role: &str, i: usize| {
        let labels = json!({ "ray.io/cluster": cluster, "ray.io/group": role, "volcano.sh/queue-name": "ray" });
        let mut pod = member(&format!("{cluster}-{role}-{i}"), &format!("ray-{cluster}-pg"), labels, "1");
        pod["metadata"]["annotations"]["volcano.sh/task-spec"] = json!(role);
        pod
    };
    stage.create(&group("raycluster", &cluster, 3)).await;
    stage.create(&pod("raycluster", "headgroup", 0)).await;
    for i in 0..2 {
        stage.create(&pod("raycluster", "workers", i)).await;
    }
    stage.until_running("ray.io/cluster=raycluster", 3).await;
    until_counts(stage, "ray-raycluster-pg", "Running", 3).await;

    // The operator updates the PodGroup when the number of workers changes, and makes the worker.
    update(stage, "ray-raycluster-pg", |group| {
        group.data["spec"]["minMember"] = json!(4);
        group.data["spec"]["minResources"] = json!({ "cpu": "4" });
    })
    .await;
    // It comes when the scheduler has seen a gang that is one short.
    a_session_passes(stage).await;
    stage.create(&pod("raycluster", "workers", 2)).await;
    stage.until_running("ray.io/cluster=raycluster", 4).await;
    until_counts(stage, "ray-raycluster-pg", "Running", 4).await;

    // Another waits for the queue, which is full.
    let next = custom_resource(stage, "next").await;
    stage.create(&group("next", &next, 4)).await;
    for i in 0..4 {
        stage.create(&pod("next", if i == 0 { "headgroup" } else { "workers" }, i)).await;
    }
    stage.until_event("ray-next-pg", "Unschedulable", "ray").await;
    assert_eq!(stage.bound("ray.io/cluster=next").await, Ok(0));
    // The job has ended: its cluster is deleted, and its PodGroup is computed again.
    for pod in ["headgroup-0", "workers-0", "workers-1", "workers-2"] {
        stage.delete_pod(&format!("raycluster-{pod}")).await;
    }
    update(stage, "ray-raycluster-pg", |group| {
        group.data["spec"]["minMember"] = json!(0);
        group.data["spec"]["minResources"] = json!({});
    })
    .await;
    stage.until_running("ray.io/cluster=next", 4).await;
    until_counts(stage, "ray-next-pg", "Running", 4).await;
    delete(stage, "v1", "ConfigMap", "raycluster").await;
    until_gone(stage, "ray-raycluster-pg").await;
    for pod in ["headgroup-0", "workers-1", "workers-2", "workers-3"] {
        stage.delete_pod(&format!("next-{pod}")).await;
    }
    delete(stage, "v1", "ConfigMap", "next").await;
    until_gone(stage, "ray-next-pg").await;
}

/// Workers as pods, and the launcher as a Job.
async fn mpi_operator(stage: &Stage) {
    let mpi_job = custom_resource(stage, "pi-mpi").await;
    let group = json!({
        "apiVersion": VOLCANO, "kind": "PodGroup",
        "metadata": { "name": "pi-mpi", "namespace": "default", "ownerReferences": [owner(&mpi_job)] },
        "spec": { "minMember": 3, "minResources": { "cpu": "3" } },
        "status": {},
    });
    stage.create(&group).await;
    let labels =
        |role: &str| json!({ "training.kubeflow.org/job-name": "pi-mpi", "training.kubeflow.org/job-role": role });
    for i in 0..2 {
        let mut worker = member(&format!("pi-mpi-worker-{i}"), "pi-mpi", labels("worker"), "1");
        worker["metadata"]["ownerReferences"] = json!([owner(&mpi_job)]);
        stage.create(&worker).await;
    }
    stage.until_event("pi-mpi", "Unschedulable", "3").await;
    assert_eq!(stage.bound("training.kubeflow.org/job-name=pi-mpi").await, Ok(0), "the launcher is not there yet");
    let mut launcher = job("pi-mpi-launcher", 1, member("-", "pi-mpi", labels("launcher"), "1"));
    launcher["metadata"]["ownerReferences"] = json!([owner(&mpi_job)]);
    stage.create(&launcher).await;
    stage.until_running("training.kubeflow.org/job-name=pi-mpi", 3).await;
    until_counts(stage, "pi-mpi", "Running", 3).await;
    end(stage, "training.kubeflow.org/job-name=pi-mpi").await;
    until_phase(stage, "pi-mpi", "Completed").await;
    delete(stage, "batch/v1", "Job", "pi-mpi-launcher").await;
    stage.pod_groups().delete("pi-mpi", &DeleteParams::default()).await.expect("deleted");
    until_gone(stage, "pi-mpi").await;
}

/// The leader is there before its PodGroup, which it owns; and takes it with it when it dies.
async fn leader_worker_set(stage: &Stage) {
    const NAME: &str = "lws-0-6d7f";
    let labels = |index: &str| {
        json!({
            "leaderworkerset.sigs.k8s.io/name": "lws",
            "leaderworkerset.sigs.k8s.io/group-index": "0",
            "leaderworkerset.sigs.k8s.io/worker-index": index,
        })
    };
    let all = "leaderworkerset.sigs.k8s.io/name=lws";
    let leaders = stateful("lws", 1, json!({ "start": 0 }), member("-", NAME, labels("0"), "1"));
    stage.create(&leaders).await;
    // What LeaderWorkerSet's controller does when it sees a leader.
    let lead = async |leader: &DynamicObject| {
        stage
            .create(&json!({
                "apiVersion": VOLCANO, "kind": "PodGroup",
                "metadata": { "name": NAME, "namespace": "default", "ownerReferences": [owner(leader)] },
                "spec": { "minMember": 3, "minResources": { "cpu": "3" } },
                "status": {},
            }))
            .await;
        let mut workers = stateful("lws-0", 2, json!({ "start": 1 }), member("-", NAME, labels("1"), "1"));
        workers["metadata"]["ownerReferences"] = json!([owner(leader)]);
        stage.create(&workers).await;
        stage.until_running(all, 3).await;
        until_counts(stage, NAME, "Running", 3).await;
    };
    let pod = stage.api("v1", "Pod", None);
    stage.until_event("lws-0", "FailedScheduling", NAME).await;
    let first = pod.get("lws-0").await.expect("a leader");
    lead(&first).await;

    stage.delete_pod("lws-0").await;
    let second = stage
        .eventually("there is a new leader, and nothing else of the old group", async || {
            let list = stage.pods().list(&ListParams::default().labels(all)).await.map_err(text)?;
            let left: Vec<String> = list.iter().map(|pod| pod.name_any()).collect();
            let leader = pod.get("lws-0").await.map_err(text)?;
            if leader.uid() == first.uid() || left != ["lws-0"] || phase_of(stage, NAME).await.is_ok() {
                return Err(format!("there are {left:?}"));
            }
            Ok(leader)
        })
        .await;
    lead(&second).await;
    delete(stage, "apps/v1", "StatefulSet", "lws").await;
    until_pods(stage, all, 0).await;
    until_groups(stage, &[]).await;
}

// Workloads without an operator

async fn deployment(stage: &Stage) {
    let mut web = deployment_of("web", 3, plain(json!({ "app": "web" }), "500m"));
    web["spec"]["template"]["metadata"]["annotations"] = json!({ "scheduling.volcano.sh/queue-name": "team" });
    stage.create(&web).await;
    stage.until_running("app=web", 3).await;
    let first = one_group(stage, &replica_sets(stage, "app=web").await[0]).await;
    assert_eq!(first.data["spec"]["minMember"], json!(1));
    assert_eq!(first.data["spec"]["queue"], json!("team"));
    assert_eq!(first.data["spec"]["minResources"]["cpu"], json!("500m"));
    pods_name_their_group(stage, "app=web", &first.name_any()).await;
    until_counts(stage, &first.name_any(), "Running", 3).await;

    // A rollout: the PodGroup of the old ReplicaSet goes with its last pod.
    let change = json!({ "spec": { "template": { "spec": { "containers": [{
        "name": "main", "resources": { "requests": { "cpu": "700m" } },
    }] } } } });
    let deployments = stage.api("apps/v1", "Deployment", None);
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(change)).await.expect("rolled out");
    let new = stage
        .eventually("there is a new ReplicaSet", async || {
            let sets = replica_sets(stage, "app=web").await;
            let new = sets.iter().find(|set| !first.name_any().ends_with(&set.uid().unwrap_or_default()));
            new.cloned().ok_or_else(|| "there is not".to_owned())
        })
        .await;
    let second = one_group(stage, &new).await;
    stage.until_running("app=web", 3).await;
    assert_eq!(second.data["spec"]["minResources"]["cpu"], json!("700m"));
    pods_name_their_group(stage, "app=web", &second.name_any()).await;
    delete(stage, "apps/v1", "Deployment", "web").await;
    until_pods(stage, "app=web", 0).await;
    until_groups(stage, &[]).await;

    // Its annotations are those of its ReplicaSet.
    let mut pair = deployment_of("pair", 2, plain(json!({ "app": "pair" }), "1"));
    pair["metadata"]["annotations"] = json!({ "scheduling.volcano.sh/group-min-member": "2" });
    stage.create(&pair).await;
    stage.until_running("app=pair", 2).await;
    let group = one_group(stage, &replica_sets(stage, "app=pair").await[0]).await;
    assert_eq!(group.data["spec"]["minMember"], json!(2));
    assert_eq!(group.data["spec"]["minResources"]["cpu"], json!("2"));
    assert_eq!(group.data["spec"]["queue"], json!("default"));
    delete(stage, "apps/v1", "Deployment", "pair").await;
    until_groups(stage, &[]).await;
}

async fn stateful_set(stage: &Stage) {
    let set = stage.create(&stateful("db", 2, json!({ "start": 0 }), plain(json!({ "app": "db" }), "1"))).await;
    stage.until_running("app=db", 2).await;
    let group = one_group(stage, &set).await;
    assert_eq!(group.data["spec"]["minMember"], json!(1));
    pods_name_their_group(stage, "app=db", &group.name_any()).await;
    delete(stage, "apps/v1", "StatefulSet", "db").await;
    until_groups(stage, &[]).await;
}

async fn job_with_a_minimum(stage: &Stage) {
    let mut sweep = job("sweep", 3, plain(json!({ "app": "sweep" }), "1"));
    sweep["metadata"]["annotations"] = json!({ "scheduling.volcano.sh/group-min-member": "3" });
    let sweep = stage.create(&sweep).await;
    stage.until_running("app=sweep", 3).await;
    let group = one_group(stage, &sweep).await;
    assert_eq!(group.data["spec"]["minMember"], json!(3));
    assert_eq!(group.data["spec"]["minResources"]["cpu"], json!("3"));
    pods_name_their_group(stage, "app=sweep", &group.name_any()).await;
    end(stage, "app=sweep").await;
    until_phase(stage, &group.name_any(), "Completed").await;
    delete(stage, "batch/v1", "Job", "sweep").await;
    until_groups(stage, &[]).await;

    // More than fit: none is placed.
    let mut wide = job("wide", 4, plain(json!({ "app": "wide" }), "13"));
    wide["metadata"]["annotations"] = json!({ "scheduling.volcano.sh/group-min-member": "4" });
    let wide = stage.create(&wide).await;
    let group = one_group(stage, &wide).await;
    stage.until_event(&group.name_any(), "Unschedulable", "").await;
    assert_eq!(stage.bound("app=wide").await, Ok(0));
    delete(stage, "batch/v1", "Job", "wide").await;
    until_groups(stage, &[]).await;
}

/// Each of its pods belongs on one node, and waits for that one if it is full.
async fn daemon_set(stage: &Stage) {
    create_nodes(&stage.client, [node("small", "100m", "16Gi")]).await.expect("a node");
    let set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "app": "agent" } }, "template": template(plain(json!({ "app": "agent" }), "1")) },
    });
    let set = stage.create(&set).await;
    stage.until_running("app=agent", 3).await;
    let where_they_are = async || -> BTreeSet<String> {
        let list = stage.pods().list(&ListParams::default().labels("app=agent")).await.expect("pods");
        list.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect()
    };
    assert_eq!(where_they_are().await, BTreeSet::from(["n0", "n1", "n2"].map(str::to_owned)));
    let group = one_group(stage, &set).await;
    assert_eq!(group.data["spec"]["minMember"], json!(1));
    let grown = Patch::Merge(json!({ "status": { "allocatable": { "cpu": "2" }, "capacity": { "cpu": "2" } } }));
    let nodes: Api<Node> = Api::all(stage.client.clone());
    nodes.patch_status("small", &PatchParams::default(), &grown).await.expect("it grows");
    stage.until_running("app=agent", 4).await;
    assert!(where_they_are().await.contains("small"));
    pods_name_their_group(stage, "app=agent", &group.name_any()).await;
    delete(stage, "apps/v1", "DaemonSet", "agent").await;
    until_groups(stage, &[]).await;
    nodes.delete("small", &DeleteParams::default()).await.expect("it goes");
}

async fn bare_pod(stage: &Stage) {
    let mut alone = plain(json!({ "app": "alone" }), "1");
    alone["metadata"]["name"] = json!("alone");
    alone["metadata"]["annotations"] = json!({ "scheduling.volcano.sh/queue-name": "team" });
    let alone = stage.create(&alone).await;
    stage.until_running("app=alone", 1).await;
    let group = one_group(stage, &alone).await;
    assert_eq!(group.data["spec"]["queue"], json!("team"));
    assert_eq!(group.owner_references().first().map(|owner| owner.kind.as_str()), Some("Pod"));
    pods_name_their_group(stage, "app=alone", &group.name_any()).await;
    stage.delete_pod("alone").await;
    until_groups(stage, &[]).await;
}

/// The one PodGroup that there is comes to be that of this object.
async fn one_group(stage: &Stage, of: &DynamicObject) -> DynamicObject {
    let name = format!("podgroup-{}", of.uid().expect("a UID"));
    until_groups(stage, &[&name]).await;
    stage.pod_groups().get(&name).await.expect("it is there")
}

/// Their annotation comes with the bind, for whoever looks for it later.
async fn pods_name_their_group(stage: &Stage, selector: &str, group: &str) {
    let pods = stage.pods().list(&ListParams::default().labels(selector)).await.expect("pods");
    for pod in pods.iter().filter(|pod| is_bound(pod)) {
        let named = pod.annotations().get("scheduling.k8s.io/group-name").map(String::as_str);
        assert_eq!(named, Some(group), "pod {}", pod.name_any());
    }
}

async fn replica_sets(stage: &Stage, selector: &str) -> Vec<DynamicObject> {
    let list = stage.api("apps/v1", "ReplicaSet", None).list(&ListParams::default().labels(selector)).await;
    list.expect("ReplicaSets").items
}

// Gangs of others

async fn coscheduling(stage: &Stage) {
    let group = json!({
        "apiVersion": COSCHEDULING, "kind": "PodGroup", "metadata": { "name": "trio", "namespace": "default" },
        "spec": { "minMember": 3, "scheduleTimeoutSeconds": 10 },
    });
    stage.create(&group).await;
    let pod = |i: usize| labelled(&format!("trio-{i}"), json!({ "scheduling.x-k8s.io/pod-group": "trio" }));
    whole_or_not_at_all(stage, "scheduling.x-k8s.io/pod-group=trio", pod).await;
    let groups = stage.api(COSCHEDULING, "PodGroup", None);
    stage
        .eventually("its status says that it runs", async || {
            let status = groups.get("trio").await.map_err(text)?.data["status"].clone();
            let is = (&status["phase"], &status["running"]);
            if is == (&json!("Running"), &json!(3)) { Ok(()) } else { Err(format!("it is {status}")) }
        })
        .await;
    until_groups(stage, &[]).await;
}

async fn gang_by_labels(stage: &Stage) {
    let labels = json!({
        "pod-group.scheduling.sigs.k8s.io/name": "quick",
        "pod-group.scheduling.sigs.k8s.io/min-available": "3",
    });
    let pod = |i: usize| labelled(&format!("quick-{i}"), labels.clone());
    whole_or_not_at_all(stage, "pod-group.scheduling.sigs.k8s.io/name=quick", pod).await;
    until_counts(stage, "quick", "Running", 3).await;
    for i in 0..3 {
        stage.delete_pod(&format!("quick-{i}")).await;
    }
    until_groups(stage, &[]).await;
}

async fn kubernetes_own(stage: &Stage) {
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": { "name": "own", "namespace": "default" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 3 } } },
    });
    stage.create(&group).await;
    let pod = |i: usize| {
        let mut pod = labelled(&format!("own-{i}"), json!({ "app": "own" }));
        pod["spec"]["schedulingGroup"] = json!({ "podGroupName": "own" });
        pod
    };
    whole_or_not_at_all(stage, "app=own", pod).await;
    until_groups(stage, &[]).await;
}

/// Of a gang of three, two wait; with the third all run.
async fn whole_or_not_at_all(stage: &Stage, selector: &str, pod: impl Fn(usize) -> Value) {
    let mut names = Vec::new();
    for i in 0..2 {
        names.push(stage.create(&pod(i)).await.name_any());
    }
    for name in &names {
        stage.until_event(name, "FailedScheduling", "3").await;
    }
    assert_eq!(stage.bound(selector).await, Ok(0), "the third of {selector} is not there");
    stage.create(&pod(2)).await;
    stage.until_running(selector, 3).await;
}

fn labelled(name: &str, labels: Value) -> Value {
    let mut pod = plain(labels, "1");
    pod["metadata"]["name"] = json!(name);
    pod
}

// vcctl and kubectl

/// Volcano's Command, as far as it matters here.
async fn command_resource(stage: &Stage) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "commands.bus.volcano.sh" },
        "spec": {
            "group": "bus.volcano.sh",
            "names": { "kind": "Command", "listKind": "CommandList", "plural": "commands", "singular": "command" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "action": { "type": "string" },
                        "message": { "type": "string" },
                        "reason": { "type": "string" },
                        "target": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    },
                } },
            }],
        },
    });
    let crds: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        Api::all(stage.client.clone());
    let crd = serde_json::from_value(crd).expect("a definition");
    crds.create(&PostParams::default(), &crd).await.expect("the definition is accepted");
    let commands = stage.api("bus.volcano.sh/v1alpha1", "Command", None);
    stage
        .eventually("commands are served", async || commands.list(&ListParams::default()).await.map(drop).map_err(text))
        .await;
}

async fn vcctl_closes_and_opens_a_queue(stage: &Stage) {
    queue(stage, "q", json!({})).await;
    until_state(stage, "q", "Open").await;
    stage.gang("a", 1, 1, "1", "q").await;
    stage.until_running("group=a", 1).await;

    operate(stage, "q", "CloseQueue").await;
    until_state(stage, "q", "Closing").await;
    stage.until_event("q", "CloseQueue", "").await;
    stage.gang("b", 1, 1, "1", "q").await;
    stage.until_event("b", "Unschedulable", "").await;
    assert_eq!(stage.bound("group=b").await, Ok(0));
    for name in ["a", "b"] {
        stage.pod_groups().delete(name, &DeleteParams::default()).await.expect("deleted");
        stage.delete_pod(&format!("{name}-0")).await;
    }
    until_state(stage, "q", "Closed").await;

    operate(stage, "q", "OpenQueue").await;
    until_state(stage, "q", "Open").await;
    stage.until_event("q", "OpenQueue", "").await;
    stage.gang("c", 1, 1, "1", "q").await;
    stage.until_running("group=c", 1).await;

    // An empty queue needs no time to close.
    queue(stage, "empty", json!({})).await;
    until_state(stage, "empty", "Open").await;
    operate(stage, "empty", "CloseQueue").await;
    until_state(stage, "empty", "Closed").await;

    // Closing a parent closes its children, and they cannot be opened before it.
    queue(stage, "org", json!({})).await;
    queue(stage, "lab", json!({ "parent": "org" })).await;
    until_state(stage, "lab", "Open").await;
    operate(stage, "org", "CloseQueue").await;
    until_state(stage, "lab", "Closed").await;
    operate(stage, "lab", "OpenQueue").await;
    stage.until_event("lab", "OpenQueueFailed", "org").await;
    operate(stage, "org", "OpenQueue").await;
    until_state(stage, "lab", "Open").await;

    operate(stage, "root", "CloseQueue").await;
    stage.until_event("root", "CloseQueueFailed", "root").await;
    until_state(stage, "root", "Open").await;
}

/// `vcctl queue operate -a close`, and `-a open`. The command is gone when it has been read.
async fn operate(stage: &Stage, name: &str, action: &str) {
    let target = owner(&stage.queues().get(name).await.expect("a queue"));
    let command = json!({
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
        "metadata": {
            "generateName": format!("{name}-{}-", action.to_lowercase()),
            "namespace": "default",
            "ownerReferences": [target],
        },
        "action": action,
        "target": target,
    });
    let command = stage.create(&command).await.name_any();
    let commands = stage.api("bus.volcano.sh/v1alpha1", "Command", None);
    stage
        .eventually(&format!("{command} is read and deleted"), async || {
            match commands.get_opt(&command).await.map_err(text)? {
                None => Ok(()),
                Some(_) => Err("it is there".to_owned()),
            }
        })
        .await;
}

async fn columns_of_kubectl(stage: &Stage) {
    queue(stage, "parent", json!({})).await;
    queue(stage, "child", json!({ "parent": "parent" })).await;
    stage.gang("shown", 2, 2, "1", "child").await;
    stage.until_running("group=shown", 2).await;
    until_counts(stage, "shown", "Running", 2).await;
    let queues = "/apis/scheduling.volcano.sh/v1beta1/queues";
    stage
        .eventually("each queue has its parent", async || {
            let rows = table(stage, queues).await;
            let parents = ["parent", "child"].map(|name| rows[name]["PARENT"].clone());
            if parents == ["root", "parent"].map(|one| json!(one)) { Ok(()) } else { Err(format!("{parents:?}")) }
        })
        .await;
    let rows = table(stage, "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups").await;
    let row = &rows["shown"];
    let columns: Vec<&str> = row.keys().map(String::as_str).collect();
    assert_eq!(columns, ["AGE", "Name", "QUEUE", "RUNNINGS", "STATUS", "minMember"]);
    let age = row["AGE"].as_str().expect("a text");
    assert!(age.ends_with('s') || age.ends_with('m'), "the age is {age}");
    for (column, value) in
        [("STATUS", json!("Running")), ("minMember", json!(2)), ("RUNNINGS", json!(2)), ("QUEUE", json!("child"))]
    {
        assert_eq!(row[column], value, "{column}");
    }
}

/// The rows that `kubectl get -o wide` shows, by name, and in each what stands in which column.
async fn table(stage: &Stage, path: &str) -> BTreeMap<String, BTreeMap<String, Value>> {
    let mut request = kube::core::Request::new(path).list(&ListParams::default()).expect("a request");
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io".parse().expect("a header");
    request.headers_mut().insert("accept", accept);
    let table: Value = stage.client.request(request).await.expect("a table");
    let columns = table["columnDefinitions"].as_array().expect("columns").iter();
    let columns: Vec<String> = columns.map(|one| one["name"].as_str().expect("a name").to_owned()).collect();
    let rows = table["rows"].as_array().expect("rows").iter().map(|row| {
        let cells = row["cells"].as_array().expect("cells").iter().cloned();
        let row: BTreeMap<String, Value> = columns.iter().cloned().zip(cells).collect();
        (row["Name"].as_str().expect("a name").to_owned(), row)
    });
    rows.collect()
}

// What operators write

/// A pod in a group, as an operator makes it.
fn member(name: &str, group: &str, labels: Value, cpu: &str) -> Value {
    let mut pod = plain(labels, cpu);
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["annotations"] = json!({ "scheduling.k8s.io/group-name": group });
    pod
}

/// A pod, or a template of some, that knows nothing of groups.
fn plain(labels: Value, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "default", "labels": labels },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{
                "name": "main", "image": "app:1", "resources": { "requests": { "cpu": cpu, "memory": "512Mi" } },
            }],
        },
    })
}

/// What of a pod stands in a template.
fn template(pod: Value) -> Value {
    let meta = json!({ "labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"] });
    json!({ "metadata": meta, "spec": pod["spec"] })
}

/// A Job as JobSet makes it: all of its pods at once, told apart by their index.
fn job(name: &str, n: usize, pod: Value) -> Value {
    let mut template = template(pod);
    template["spec"]["restartPolicy"] = json!("Never");
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "parallelism": n, "completions": n, "completionMode": "Indexed", "backoffLimit": 0, "template": template,
        },
    })
}

fn stateful(name: &str, n: usize, ordinals: Value, pod: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": n, "ordinals": ordinals, "podManagementPolicy": "Parallel", "serviceName": name,
            "selector": { "matchLabels": pod["metadata"]["labels"] }, "template": template(pod),
        },
    })
}

fn deployment_of(name: &str, n: usize, pod: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": n, "selector": { "matchLabels": pod["metadata"]["labels"] }, "template": template(pod),
        },
    })
}

/// Stands for the object of an operator's own kind.
async fn custom_resource(stage: &Stage, name: &str) -> DynamicObject {
    stage
        .create(
            &json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default" } }),
        )
        .await
}

/// A reference to the object that controls another.
fn owner(object: &DynamicObject) -> Value {
    let types = object.types.as_ref().expect("a kind");
    json!({
        "apiVersion": types.api_version, "kind": types.kind, "name": object.name_any(), "uid": object.uid(),
        "controller": true, "blockOwnerDeletion": true,
    })
}

async fn queue(stage: &Stage, name: &str, spec: Value) {
    stage.create(&json!({ "apiVersion": VOLCANO, "kind": "Queue", "metadata": { "name": name }, "spec": spec })).await;
}

/// Server-side apply in the name of a client.
async fn apply_as(stage: &Stage, manager: &str, group: &Value) -> DynamicObject {
    let name = group["metadata"]["name"].as_str().expect("a name");
    let params = PatchParams::apply(manager).force();
    stage.pod_groups().patch(name, &params, &Patch::Apply(group)).await.expect("it is applied")
}

/// Writes the whole of a PodGroup, as clients in Go do, and once more if somebody else was quicker.
async fn update(stage: &Stage, name: &str, change: impl Fn(&mut DynamicObject)) {
    stage
        .eventually(&format!("podgroup {name} is updated"), async || {
            let mut group = stage.pod_groups().get(name).await.map_err(text)?;
            change(&mut group);
            stage.pod_groups().replace(name, &PostParams::default(), &group).await.map(drop).map_err(text)
        })
        .await;
}

async fn delete(stage: &Stage, api_version: &str, kind: &str, name: &str) {
    let _ = stage.api(api_version, kind, None).delete(name, &DeleteParams::background()).await.expect("deleted");
}

/// Ends pods well.
async fn end(stage: &Stage, selector: &str) {
    let pods = stage.pods();
    let list = pods.list(&ListParams::default().labels(selector)).await.expect("pods").items;
    let over = Patch::Merge(json!({ "metadata": { "annotations": { "krafla.io/runtime": "0s" } } }));
    join_all(list.iter().map(async |pod: &Pod| {
        pods.patch(&pod.name_any(), &PatchParams::default(), &over).await.expect("it is told to end")
    }))
    .await;
}

// What comes of it

/// No node is overfull, the books are right, and the scheduler ends in good order, with everything written.
async fn all_is_well(stage: &Stage, mut krafla: Krafla) {
    stage.no_node_is_overfull().await;
    pods_with_nodes_say_that_they_are_scheduled(stage).await;
    krafla.books_are_right().await;
    assert_eq!(krafla.stop(), Some(0), "{}", krafla.log());
}

/// The server says so when it binds a pod; nothing that was to be written before may be written over it.
async fn pods_with_nodes_say_that_they_are_scheduled(stage: &Stage) {
    let mut wrong = Vec::new();
    for pod in stage.pods().list(&ListParams::default()).await.expect("pods").iter().filter(|pod| is_bound(pod)) {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let scheduled = conditions.iter().find(|one| one.type_ == "PodScheduled");
        if scheduled.is_none_or(|one| one.status != "True") {
            wrong.push((pod.name_any(), scheduled.and_then(|one| one.message.clone())));
        }
    }
    assert!(wrong.is_empty(), "{} pods have nodes and say that they wait: {:?}", wrong.len(), wrong.first());
}

/// Whatever was written before has been looked at by the scheduler.
async fn a_session_passes(stage: &Stage) {
    stage.create(&pod("tick", None, "1m")).await;
    stage.until_running("group=tick", 1).await;
    stage.delete_pod("tick").await;
    until_pods(stage, "group=tick", 0).await;
}

async fn phase_of(stage: &Stage, group: &str) -> Result<String, String> {
    let group = stage.pod_groups().get(group).await.map_err(text)?;
    Ok(group.data["status"]["phase"].as_str().unwrap_or_default().to_owned())
}

async fn until_phase(stage: &Stage, group: &str, wanted: &str) {
    stage
        .eventually(&format!("podgroup {group} is {wanted}"), async || match phase_of(stage, group).await? {
            is if is == wanted => Ok(()),
            is => Err(format!("it is {is}")),
        })
        .await;
}

/// Operators wait for this before they make pods.
async fn until_let_in(stage: &Stage, group: &str) {
    stage
        .eventually(&format!("podgroup {group} is let in"), async || match &*phase_of(stage, group).await? {
            "" | "Pending" => Err("it is not".to_owned()),
            _ => Ok(()),
        })
        .await;
}

/// Waits until the status of a PodGroup says this.
async fn until_counts(stage: &Stage, group: &str, phase: &str, running: usize) {
    stage
        .eventually(&format!("podgroup {group} is {phase} with {running} pods"), async || {
            let status = stage.pod_groups().get(group).await.map_err(text)?.data["status"].clone();
            let is = (&status["phase"], &status["running"]);
            if is == (&json!(phase), &json!(running)) { Ok(()) } else { Err(format!("its status is {status}")) }
        })
        .await;
}

/// Waits until there are these PodGroups of Volcano's, and no others.
async fn until_groups(stage: &Stage, wanted: &[&str]) {
    stage
        .eventually(&format!("the podgroups are {wanted:?}"), async || {
            let list = stage.pod_groups().list(&ListParams::default()).await.map_err(text)?;
            let names: Vec<String> = list.iter().map(|group| group.name_any()).collect();
            if names == wanted { Ok(()) } else { Err(format!("they are {names:?}")) }
        })
        .await;
}

async fn until_gone(stage: &Stage, group: &str) {
    stage
        .eventually(&format!("podgroup {group} is gone"), async || {
            match stage.pod_groups().get_opt(group).await.map_err(text)? {
                None => Ok(()),
                Some(group) => Err(format!("its status is {}", group.data["status"])),
            }
        })
        .await;
}

async fn until_pods(stage: &Stage, selector: &str, n: usize) {
    stage
        .eventually(&format!("there are {n} pods of {selector}"), async || {
            let list = stage.pods().list(&ListParams::default().labels(selector)).await.map_err(text)?;
            if list.items.len() == n { Ok(()) } else { Err(format!("there are {}", list.items.len())) }
        })
        .await;
}

async fn until_state(stage: &Stage, queue: &str, wanted: &str) {
    stage
        .eventually(&format!("queue {queue} is {wanted}"), async || {
            let queue = stage.queues().get(queue).await.map_err(text)?;
            let is = queue.data["status"]["state"].as_str().unwrap_or_default();
            if is == wanted { Ok(()) } else { Err(format!("it is {is}")) }
        })
        .await;
}
