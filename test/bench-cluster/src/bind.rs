//! Pods that wait, drained three times: by a bare loop of binds, by one beside which pods are watched, as a scheduler has
//! to, and by Krafla. Watching costs the server; on a machine of its own Krafla would not share in that.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use futures::{AsyncReadExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{PostParams, Request, WatchParams};
use kube::{Api, Client};
use serde_json::json;

use crate::server::{Scheduler, Server, cpu_of, pod_name};

/// How often Krafla is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// Until a watch has brought what there is.
const FIRST_LIST: Duration = Duration::from_secs(3);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Pods.
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Nodes.
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// Pods of one gang.
    #[arg(long, default_value_t = 500)]
    gang: usize,
    /// Binds on their way at once, of both.
    #[arg(long, default_value_t = 100)]
    at_once: usize,
    /// Write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Arguments {
    /// So many pods on so many nodes, the rest as usual.
    pub(crate) fn of(pods: usize, nodes: usize) -> Self {
        Self { pods, nodes, gang: 500.min(pods), at_once: 100, json: None }
    }
}

/// The rate at which Krafla binds, as a part of that of a bare loop.
pub(crate) async fn measure(arguments: &Arguments, program: &Path) -> anyhow::Result<f64> {
    let bare = loop_of_binds(arguments, false).await?;
    Ok(krafla(arguments, program).await?.rate / bare.rate)
}

struct Drained {
    seconds: f64,
    rate: f64,
    cpu_ms_a_pod: f64,
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn drained(binds: usize, took: Duration, cpu: Duration) -> Drained {
    let n = binds as f64;
    Drained { seconds: took.as_secs_f64(), rate: n / took.as_secs_f64(), cpu_ms_a_pod: cpu.as_secs_f64() * 1_000.0 / n }
}

pub(crate) async fn run(arguments: &Arguments, program: &Path) -> anyhow::Result<()> {
    if arguments.pods == 0 || arguments.pods > arguments.nodes * 32 {
        bail!("a node has room for 32 of these pods: give 1 to {} pods", arguments.nodes * 32);
    }
    println!(
        "{} pods in gangs of {}, {} nodes, {} binds at once",
        arguments.pods, arguments.gang, arguments.nodes, arguments.at_once
    );
    let bare = loop_of_binds(arguments, false).await?;
    show("bare loop", &bare);
    let watching = loop_of_binds(arguments, true).await?;
    show("and a watch", &watching);
    let krafla = krafla(arguments, program).await?;
    show("krafla", &krafla);
    let ratio = krafla.rate / bare.rate;
    let watching_ratio = krafla.rate / watching.rate;
    println!("ratio {ratio:.3} of the bare loop, {watching_ratio:.3} of that beside a watch");
    if let Some(path) = &arguments.json {
        let result = json!({
            "ratio": ratio,
            "ratioBesideWatch": watching_ratio,
            "bareBindsPerSecond": bare.rate,
            "kraflaBindsPerSecond": krafla.rate,
            "kraflaCpuMillisecondsPerPod": krafla.cpu_ms_a_pod,
        });
        std::fs::write(path, result.to_string()).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn show(who: &str, drained: &Drained) {
    println!(
        "{who:<11} {:>6.0} binds a second ({:.1} s), {:.2} ms of its processor time a pod",
        drained.rate, drained.seconds, drained.cpu_ms_a_pod
    );
}

async fn prepared(arguments: &Arguments) -> anyhow::Result<Server> {
    let server = Server::start().await?;
    server.make_nodes(arguments.nodes).await?;
    server.make_groups(arguments.pods.div_ceil(arguments.gang), arguments.gang).await?;
    server.make_pods(arguments.pods, arguments.gang, |_| None).await?;
    Ok(server)
}

/// Reads what a watch of all pods sends, and looks at nothing.
async fn watch_pods(client: Client) -> anyhow::Result<()> {
    let request = Request::new("/api/v1/pods").watch(&WatchParams::default(), "0")?;
    let mut stream = std::pin::pin!(client.request_stream(request).await?);
    let mut buffer = vec![0; 1 << 16];
    while stream.read(&mut buffer).await? > 0 {}
    bail!("the watch has ended")
}

async fn loop_of_binds(arguments: &Arguments, beside_a_watch: bool) -> anyhow::Result<Drained> {
    let server = prepared(arguments).await?;
    let watch = beside_a_watch.then(|| tokio::spawn(watch_pods(server.client.clone())));
    if watch.is_some() {
        tokio::time::sleep(FIRST_LIST).await;
    }
    let api: Api<Pod> = Api::default_namespaced(server.client.clone());
    let cpu = cpu_of("self");
    let mut first = None;
    let calls = stream::iter(0..arguments.pods).map(|i| {
        let api = api.clone();
        let node = format!("node-{}", i % arguments.nodes);
        async move {
            let name = pod_name(i);
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
                "target": { "kind": "Node", "name": node },
            });
            api.create_subresource::<_, kube::core::Status>("binding", &name, &PostParams::default(), &binding).await
        }
    });
    let mut calls = std::pin::pin!(calls.buffer_unordered(arguments.at_once));
    while let Some(result) = calls.next().await {
        result.context("a bind")?;
        first.get_or_insert_with(Instant::now);
    }
    let took = first.context("nothing was bound")?.elapsed();
    if let Some(watch) = watch.filter(tokio::task::JoinHandle::is_finished) {
        watch.await??;
    }
    Ok(drained(arguments.pods - 1, took, cpu_of("self") - cpu))
}

async fn krafla(arguments: &Arguments, program: &Path) -> anyhow::Result<Drained> {
    let server = prepared(arguments).await?;
    let scheduler = Scheduler::start(program, &server, arguments.at_once)?;
    let wanted = u64::try_from(arguments.pods)?;
    let (mut first, mut last_news) = (None, (Instant::now(), 0));
    loop {
        let bound = scheduler.bound().await;
        let now = Instant::now();
        if bound > 0 {
            let (begun, already) = *first.get_or_insert((now, bound));
            if bound >= wanted {
                let took = now - begun;
                let binds = usize::try_from(wanted - already)?;
                return Ok(drained(binds, took, scheduler.cpu()));
            }
        }
        if bound > last_news.1 {
            last_news = (now, bound);
        }
        if last_news.0.elapsed() > Duration::from_secs(60) {
            bail!("krafla has bound {bound} of {wanted} pods and none for a minute");
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}
