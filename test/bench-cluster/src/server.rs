//! An API server with objects on it, and the scheduler beside it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use krafla_cluster::Access;
use krafla_sandbox::{Assets, ControlPlane, Options, node};
use krafla_test_bench::memory::peak_bytes;
use kube::api::{ApiResource, DynamicObject, GetParams, GroupVersionKind, PostParams, Request};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// Objects created at once.
const AT_ONCE: usize = 64;

/// A fresh control plane without controllers.
pub(crate) struct Server {
    pub(crate) control_plane: ControlPlane,
    pub(crate) client: Client,
}

impl Server {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::start_with(&[]).await
    }

    /// With more flags for the API server.
    pub(crate) async fn start_with(flags: &[String]) -> anyhow::Result<Self> {
        let assets = Assets::find()?;
        let options = flags.iter().fold(Options::new().no_controllers(), |options, flag| options.api_server_flag(flag));
        let control_plane = ControlPlane::start(&assets, options).await?;
        // The client that Krafla has: no retries of its own.
        let access = Access { kubeconfig: Some(control_plane.kubeconfig().to_owned()), ..Access::default() };
        let client = access.clients().await?.calls;
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in krafla_api::definitions() {
            crds.create(&PostParams::default(), &crd).await?;
        }
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = serde_json::from_value(json!({ "metadata": { "name": "volcano-system" } }))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        let server = Self { control_plane, client };
        server.until_groups_are_known().await?;
        Ok(server)
    }

    async fn until_groups_are_known(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while let Err(error) = self.pod_groups().list(&Default::default()).await {
            if begun.elapsed() > Duration::from_secs(30) {
                bail!("the custom resources are not served: {error}");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Processor time that the API server and etcd have used.
    pub(crate) fn cpu(&self) -> Duration {
        self.control_plane.server_processes().iter().map(|id| cpu_of(&id.to_string())).sum()
    }

    /// Calls that the API server has answered, by verb and resource, without watches.
    pub(crate) async fn calls(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let page = self.client.request_text(Request::new("").get("metrics", &GetParams::default())?).await?;
        let mut calls = BTreeMap::new();
        for line in page.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let label = |name: &str| {
                let value = line.split_once(&format!(",{name}=\"")).and_then(|(_, rest)| rest.split('"').next());
                value.unwrap_or_default()
            };
            let n: u64 = line.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            if label("verb") != "WATCH" {
                let what = format!("{} {} {}", label("verb"), label("resource"), label("subresource"));
                *calls.entry(what.trim_end().to_owned()).or_default() += n;
            }
        }
        Ok(calls)
    }

    fn pod_groups(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup");
        Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    pub(crate) async fn make_nodes(&self, n: usize) -> anyhow::Result<()> {
        let node = |i| serde_json::to_value(node(format!("node-{i}"), "32", "128Gi").build()).unwrap_or_default();
        self.create_all::<Node>(n, node).await
    }

    pub(crate) async fn make_groups(&self, n: usize, size: usize) -> anyhow::Result<()> {
        for i in 0..n {
            self.make_group(&format!("gang-{i}"), size).await?;
        }
        Ok(())
    }

    pub(crate) async fn make_group(&self, name: &str, size: usize) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": { "name": name }, "spec": { "minMember": size },
        });
        let created = self.pod_groups().create(&PostParams::default(), &serde_json::from_value(object)?).await;
        created.map(drop).context("a podgroup")
    }

    /// Makes `n` objects from their manifests, as fast as the server takes them.
    pub(crate) async fn create_all<K>(&self, n: usize, manifest: impl Fn(usize) -> Value) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()>,
    {
        let calls = stream::iter(0..n).map(|i| {
            let manifest = manifest(i);
            async move { self.post(&K::url_path(&(), manifest["metadata"]["namespace"].as_str()), &manifest).await }
        });
        calls.buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await
    }

    /// Makes `n` pods, and binds each to its node as soon as it is there.
    pub(crate) async fn create_bound(
        &self,
        n: usize,
        manifest: impl Fn(usize) -> Value,
        node: impl Fn(usize) -> Value,
    ) -> anyhow::Result<()> {
        let calls = stream::iter(0..n).map(|i| {
            let (pod, node) = (manifest(i), node(i));
            async move {
                let url = Pod::url_path(&(), pod["metadata"]["namespace"].as_str());
                self.post(&url, &pod).await?;
                let name = &pod["metadata"]["name"];
                let binding = json!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
                    "target": { "kind": "Node", "name": node },
                });
                self.post(&format!("{url}/{}/binding", name.as_str().unwrap_or_default()), &binding).await
            }
        });
        calls.buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await
    }

    /// Makes an object of any kind from its manifest.
    pub(crate) async fn create(&self, manifest: &Value) -> anyhow::Result<()> {
        let text = |key: &str| manifest[key].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
        self.post(&DynamicObject::url_path(&resource, manifest["metadata"]["namespace"].as_str()), manifest).await
    }

    /// Sends it, and looks at nothing of what comes back: who makes pods is not to take the time of who places them.
    async fn post(&self, url: &str, manifest: &Value) -> anyhow::Result<()> {
        let request = Request::new(url).create(&PostParams::default(), serde_json::to_vec(manifest)?)?;
        self.client.request_text(request).await.with_context(|| format!("{url}: {}", manifest["metadata"]["name"]))?;
        Ok(())
    }

    /// Makes `n` pods in gangs of `size`; `node` says where one is already.
    pub(crate) async fn make_pods(
        &self,
        n: usize,
        size: usize,
        node: impl Fn(usize) -> Option<String>,
    ) -> anyhow::Result<()> {
        self.create_all::<Pod>(n, |i| pod(i, size, node(i))).await
    }
}

pub(crate) fn pod_name(i: usize) -> String {
    format!("pod-{i}")
}

/// A pod as a training job has it: some environment, volumes of its own, and so on.
fn pod(i: usize, size: usize, node: Option<String>) -> Value {
    json!({
        "metadata": {
            "name": pod_name(i),
            "namespace": "default",
            "labels": { "app": "train", "job": format!("gang-{}", i / size) },
            "annotations": { "scheduling.k8s.io/group-name": format!("gang-{}", i / size) },
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeName": node,
            "restartPolicy": "Never",
            "containers": [{
                "name": "main",
                "image": "registry.example.com/train:1",
                "command": ["python", "train.py", "--epochs", "10"],
                "env": [{ "name": "RANK", "value": i.to_string() }, { "name": "WORLD_SIZE", "value": size.to_string() }],
                "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
            }],
        },
    })
}

/// The scheduler, as a process.
pub(crate) struct Scheduler {
    child: Child,
    port: u16,
    pub(crate) begun: Instant,
    said: mpsc::UnboundedReceiver<(String, Instant)>,
}

impl Scheduler {
    pub(crate) fn start(program: &Path, server: &Server, binds_at_once: usize) -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let sockets = server.control_plane.folder().join("sockets");
        let begun = Instant::now();
        let mut child = Command::new(program)
            .arg("schedule")
            .arg("--kubeconfig")
            .arg(server.control_plane.kubeconfig())
            .args(["--leader-elect=false", "--enable-metrics", "--kube-api-qps=0"])
            .arg(format!("--binds-at-once={binds_at_once}"))
            .arg(format!("--listen-address=127.0.0.1:{port}"))
            .env("DEBUG_SOCKET_DIR", sockets)
            .env("KRAFLA_LOG", "warn,krafla_cluster::feed=info")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| {
                format!("{}: cannot be run; build it, or name another with --krafla", program.display())
            })?;
        let stderr = child.stderr.take().context("its standard error")?;
        let (lines, said) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // Nobody may listen any more; what it says is then read all the same.
                let _ = lines.send((line, Instant::now()));
            }
        });
        Ok(Self { child, port, begun, said })
    }

    /// When it says `words`. `Err` if it does not within `limit`.
    pub(crate) async fn until_it_says(&mut self, words: &str, limit: Duration) -> anyhow::Result<Instant> {
        let said = async {
            while let Some((line, at)) = self.said.recv().await {
                if line.contains(words) {
                    return Some(at);
                }
                eprintln!("{line}");
            }
            None
        };
        let said = tokio::time::timeout(limit, said).await.with_context(|| format!("no `{words}` in its log"))?;
        said.with_context(|| format!("it ended without `{words}`"))
    }

    /// Pods that it has bound.
    pub(crate) async fn bound(&self) -> u64 {
        let text = self.page().await.unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("krafla_binds_total{result=\"bound\"} "));
        line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    }

    async fn page(&self) -> std::io::Result<String> {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// Processor time that it has used.
    pub(crate) fn cpu(&self) -> Duration {
        cpu_of(&self.child.id().to_string())
    }

    /// The most memory that it has held, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        peak_bytes(&self.child.id().to_string())
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process, or of `self`.
pub(crate) fn cpu_of(pid: &str) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = |i: usize| after_name.split_whitespace().nth(i).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    // Fields 14 and 15 of the line, in hundredths of a second on Linux.
    Duration::from_millis((field(11) + field(12)) * 10)
}
