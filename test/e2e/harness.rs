//! A control plane, a kubelet stand-in and Krafla, and what tests ask of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use krafla_sandbox::{Assets, ControlPlane, Grace, Kubelet, KubeletOptions, NodeBuilder, Options, create_nodes, node};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long anything that should happen may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Kinds without namespaces.
const CLUSTER_WIDE: [&str; 10] = [
    "Queue",
    "Node",
    "PriorityClass",
    "Namespace",
    "HyperNode",
    "ClusterRole",
    "PersistentVolume",
    "StorageClass",
    "DeviceClass",
    "ResourceSlice",
];

/// A cluster with Krafla's custom resources, on which nothing schedules yet.
pub(crate) struct Stage {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) folder: tempfile::TempDir,
    _kubelet: Option<Kubelet>,
}

impl Stage {
    /// A stage with all controllers; `None`, and said aloud, where there is no control plane to be had.
    pub(crate) async fn new() -> Option<Self> {
        Self::with(Options::new()).await
    }

    pub(crate) async fn with(options: Options) -> Option<Self> {
        Self::with_kubelet(
            options,
            KubeletOptions {
                start_after: Duration::from_millis(20),
                grace: Grace::AtMost(Duration::from_millis(200)),
                calls: 32,
            },
        )
        .await
    }

    pub(crate) async fn with_kubelet(options: Options, kubelet: KubeletOptions) -> Option<Self> {
        let assets = Assets::for_test()?;
        let control_plane = ControlPlane::start(&assets, options).await.expect("the control plane starts");
        let client = control_plane.client().expect("a client");
        let kubelet = Kubelet::start(client.clone(), kubelet);
        let stage =
            Self { control_plane, client, folder: tempfile::tempdir().expect("a folder"), _kubelet: Some(kubelet) };
        let crds: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
            Api::all(stage.client.clone());
        for crd in krafla_api::definitions() {
            crds.create(&PostParams::default(), &crd).await.expect("the definition is accepted");
        }
        stage
            .eventually("the custom resources are established", async || {
                for crd in crds.list(&ListParams::default()).await.map_err(text)?.items {
                    let conditions = crd.status.and_then(|status| status.conditions).unwrap_or_default();
                    if !conditions.iter().any(|one| one.type_ == "Established" && one.status == "True") {
                        return Err(format!("{:?} is not", crd.metadata.name));
                    }
                }
                Ok(())
            })
            .await;
        stage
            .apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "volcano-system" } }))
            .await;
        Some(stage)
    }

    /// Makes `n` equal nodes.
    pub(crate) async fn nodes(&self, n: usize, cpu: &str, memory: &str) {
        let nodes: Vec<NodeBuilder> = (0..n).map(|i| node(format!("n{i}"), cpu, memory)).collect();
        create_nodes(&self.client, nodes).await.expect("nodes are made");
    }

    /// Starts the scheduler with the admin's kubeconfig and no election.
    pub(crate) fn krafla(&self) -> Krafla {
        self.krafla_with(self.control_plane.kubeconfig(), &["--leader-elect=false"])
    }

    /// Starts the scheduler.
    pub(crate) fn krafla_with(&self, kubeconfig: &Path, flags: &[&str]) -> Krafla {
        Krafla::start(self.folder.path(), kubeconfig, flags)
    }

    /// Starts the scheduler with a descheduler that looks every two seconds.
    pub(crate) fn krafla_that_deschedules(&self, policy: &str) -> Krafla {
        let conf = self.configure(
            "actions: \"enqueue, allocate\"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]\n",
        );
        let flags = [
            "--leader-elect=false",
            &format!("--scheduler-conf={conf}"),
            &format!("--descheduler-policy={policy}"),
            "--descheduling-interval=2s",
        ];
        self.krafla_with(self.control_plane.kubeconfig(), &flags)
    }

    /// Writes a configuration file, and answers where it is.
    pub(crate) fn configure(&self, text: &str) -> String {
        let path = self.folder.path().join("scheduler.conf");
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    }

    /// Creates an object, or what it says of one that is there.
    pub(crate) async fn apply(&self, object: &Value) -> DynamicObject {
        let api = self.api_of(object);
        let name = object["metadata"]["name"].as_str().expect("a name");
        let patch = Patch::Apply(object);
        api.patch(name, &PatchParams::apply("test").force(), &patch)
            .await
            .unwrap_or_else(|error| panic!("{object} is not accepted: {error}"))
    }

    /// Creates an object as a controller does.
    pub(crate) async fn create(&self, object: &Value) -> DynamicObject {
        let typed: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        self.api_of(object)
            .create(&PostParams::default(), &typed)
            .await
            .unwrap_or_else(|error| panic!("{object} is not accepted: {error}"))
    }

    fn api_of(&self, object: &Value) -> Api<DynamicObject> {
        let text = |key: &str| object[key].as_str().unwrap_or_else(|| panic!("no {key} in {object}"));
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let namespace = object["metadata"]["namespace"].as_str();
        self.api(api_version, kind, namespace)
    }

    /// The API of a kind; in `default` where the kind has namespaces and none is given.
    pub(crate) fn api(&self, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let cluster_wide = CLUSTER_WIDE.contains(&kind);
        if cluster_wide {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), namespace.unwrap_or("default"), &resource)
    }

    pub(crate) fn pod_groups(&self) -> Api<DynamicObject> {
        self.api("scheduling.volcano.sh/v1beta1", "PodGroup", None)
    }

    pub(crate) fn queues(&self) -> Api<DynamicObject> {
        self.api("scheduling.volcano.sh/v1beta1", "Queue", None)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// A PodGroup with `min` members, and `n` pods in it that each ask for `cpu`.
    pub(crate) async fn gang(&self, name: &str, n: usize, min: usize, cpu: &str, queue: &str) {
        self.pod_group(name, min, queue).await;
        for i in 0..n {
            self.create(&pod(&format!("{name}-{i}"), Some(name), cpu)).await;
        }
    }

    pub(crate) async fn pod_group(&self, name: &str, min: usize, queue: &str) {
        let spec = json!({ "minMember": min, "queue": queue });
        self.create(&json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": { "name": name, "namespace": "default" },
            "spec": spec,
        }))
        .await;
    }

    /// Asks until the answer is yes.
    pub(crate) async fn eventually<T>(&self, what: &str, ask: impl AsyncFn() -> Result<T, String>) -> T {
        eventually(what, PATIENCE, ask).await
    }

    /// Pods that have a node and have not ended.
    pub(crate) async fn bound(&self, selector: &str) -> Result<usize, String> {
        let list = self.pods().list(&ListParams::default().labels(selector)).await.map_err(text)?;
        Ok(list.iter().filter(|pod| is_bound(pod)).count())
    }

    /// Waits until this many pods have nodes.
    pub(crate) async fn until_bound(&self, selector: &str, n: usize) {
        self.eventually(&format!("{n} pods of `{selector}` are bound"), async || match self.bound(selector).await? {
            is if is == n => Ok(()),
            is => Err(format!("{is} are")),
        })
        .await;
    }

    /// Waits until this many pods run or have ended well.
    pub(crate) async fn until_running(&self, selector: &str, n: usize) {
        self.eventually(&format!("{n} pods of `{selector}` run"), async || {
            let list = self.pods().list(&ListParams::default().labels(selector)).await.map_err(text)?;
            let phase = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.clone()).unwrap_or_default();
            let runs = list.iter().filter(|pod| ["Running", "Succeeded"].contains(&phase(pod).as_str())).count();
            if runs == n { Ok(()) } else { Err(format!("{runs} of {} do", list.items.len())) }
        })
        .await;
    }

    /// Messages of the events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let api: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let list = api.list(&ListParams::default().fields(&format!("involvedObject.name={name}"))).await;
        let events = list.expect("events are listed").items.into_iter();
        events.map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default())).collect()
    }

    /// Waits until an event about an object says this.
    pub(crate) async fn until_event(&self, name: &str, reason: &str, part: &str) -> String {
        self.eventually(&format!("an event {reason} about {name} says `{part}`"), async || {
            let events = self.events(name).await;
            let found = events.iter().find(|(is, message)| is == reason && message.contains(part));
            found.map(|(_, message)| message.clone()).ok_or_else(|| format!("there are {events:?}"))
        })
        .await
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        let _ = self.pods().delete(name, &DeleteParams::default()).await;
    }

    /// What must hold whatever has happened: no node holds more than it has.
    pub(crate) async fn no_node_is_overfull(&self) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let mut free: BTreeMap<String, i64> = BTreeMap::new();
        for node in nodes.list(&ListParams::default()).await.expect("nodes") {
            let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref()).expect("allocatable");
            free.insert(node.name_any(), milli(&allocatable["cpu"].0));
        }
        let pods: Api<Pod> = Api::all(self.client.clone());
        for pod in pods.list(&ListParams::default()).await.expect("pods").iter().filter(|pod| is_bound(pod)) {
            let spec = pod.spec.as_ref().expect("a spec");
            let asks: i64 = spec
                .containers
                .iter()
                .filter_map(|one| one.resources.as_ref()?.requests.as_ref()?.get("cpu"))
                .map(|cpu| milli(&cpu.0))
                .sum();
            if let Some(free) = free.get_mut(spec.node_name.as_deref().unwrap_or_default()) {
                *free -= asks;
            }
        }
        for (node, free) in free {
            assert!(free >= 0, "node {node} holds {} milli-CPU more than it has", -free);
        }
    }
}

fn milli(text: &str) -> i64 {
    match text.strip_suffix('m') {
        Some(milli) => milli.parse().expect("a number"),
        None => text.parse::<i64>().expect("a number") * 1_000,
    }
}

/// A pod of Krafla's. Its label `group` is its group.
pub(crate) fn pod(name: &str, group: Option<&str>, cpu: &str) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "group": group.unwrap_or(name) } },
        "spec": {
            "schedulerName": "volcano",
            "containers": [{ "name": "main", "image": "app:1", "resources": { "requests": { "cpu": cpu } } }],
        },
    });
    if let Some(group) = group {
        pod["metadata"]["annotations"] = json!({ "scheduling.k8s.io/group-name": group });
    }
    pod
}

pub(crate) fn is_bound(pod: &Pod) -> bool {
    let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let placed = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    placed && !matches!(ended, Some("Succeeded" | "Failed"))
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Asks until the answer is yes; panics with the last answer otherwise.
pub(crate) async fn eventually<T>(what: &str, patience: Duration, ask: impl AsyncFn() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(why) if start.elapsed() > patience => panic!("after {patience:?} it is not so that {what}: {why}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The scheduler, as a process.
pub(crate) struct Krafla {
    child: Child,
    log: PathBuf,
    metrics: u16,
    health: u16,
}

impl Krafla {
    fn start(folder: &Path, kubeconfig: &Path, flags: &[&str]) -> Self {
        let (metrics, health) = (free_port(), free_port());
        let log = folder.join(format!("krafla-{metrics}.log"));
        let out = File::create(&log).expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_krafla"))
            .arg("schedule")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--enable-metrics", "--enable-healthz"])
            .arg(format!("--listen-address=127.0.0.1:{metrics}"))
            .arg(format!("--healthz-address=127.0.0.1:{health}"))
            .args(flags)
            .env("DEBUG_SOCKET_DIR", folder.join(format!("socket-{metrics}")))
            .env("KRAFLA_LOG", "info,krafla_cluster=debug")
            .stdout(Stdio::null())
            .stderr(out)
            .spawn()
            .expect("krafla starts");
        Self { child, log, metrics, health }
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it on the spot.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop, and answers how it ended.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        self.child.wait().expect("it ends").code()
    }

    /// One number of its metrics.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let text = get(self.metrics, "/metrics").await.ok()?;
        let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Waits until it has listed everything.
    pub(crate) async fn until_ready(&self) {
        eventually("krafla is ready", PATIENCE, async || {
            let answer = get(self.health, "/readyz").await.map_err(|error| format!("{error}; {}", self.log()))?;
            if answer.contains("200 OK") { Ok(()) } else { Err(answer) }
        })
        .await;
    }

    /// No book was ever off, and no session panicked.
    pub(crate) async fn books_are_right(&self) {
        for name in ["krafla_ledger_discrepancies_total", "krafla_session_panics_total"] {
            let is =
                eventually("metrics are served", PATIENCE, async || self.metric(name).await.ok_or(String::new())).await;
            assert!(is < 0.5, "{name} is {is}\n{}", self.log());
        }
    }
}

impl Drop for Krafla {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(60).collect();
            eprintln!("the end of krafla's log:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

async fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Runs a future beside the test, for as long as it is held.
pub(crate) struct Aside(tokio::task::JoinHandle<()>);

impl Aside {
    pub(crate) fn run(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.abort();
    }
}
