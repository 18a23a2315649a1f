//! Pods that wait, drained by a bare loop of binds, by one beside which pods are watched, as a scheduler has to, and by
//! Krafla; in turn, several times over. Watching costs the server; on a machine of its own Krafla would not share in that.
//! The fastest run of each counts: whatever else the machine does makes a run slower, and nothing makes it faster.

use std::collections::BTreeMap;
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

/// Between two questions to Krafla, how far it is.
const ASK_AT_LEAST: Duration = Duration::from_millis(20);
const ASK_AT_MOST: Duration = Duration::from_millis(500);
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
    /// Runs of each.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Write the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Arguments {
    /// So many pods on so many nodes, the rest as usual.
    pub(crate) fn of(pods: usize, nodes: usize) -> Self {
        Self { pods, nodes, gang: 500.min(pods), at_once: 100, runs: 3, json: None }
    }
}

/// The rate at which Krafla binds, as a part of that of a bare loop.
pub(crate) async fn measure(arguments: &Arguments, program: &Path) -> anyhow::Result<f64> {
    let (mut bare, mut ours) = (0.0_f64, 0.0_f64);
    for _ in 0..arguments.runs {
        bare = bare.max(loop_of_binds(arguments, false).await?.rate);
        ours = ours.max(krafla(arguments, program).await?.rate);
    }
    Ok(ours / bare)
}

struct Drained {
    seconds: f64,
    rate: f64,
    /// Of who binds.
    cpu_ms_a_pod: f64,
    /// Of the API server and etcd.
    server_ms_a_pod: f64,
}

/// When the first bind was seen, and what processor time had been used by then.
struct Since {
    begun: Instant,
    own: Duration,
    servers: Duration,
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn drained(binds: usize, since: &Since, own: Duration, servers: Duration) -> Drained {
    let (n, took) = (binds as f64, since.begun.elapsed());
    let a_pod = |cpu: Duration| cpu.as_secs_f64() * 1_000.0 / n;
    Drained {
        seconds: took.as_secs_f64(),
        rate: n / took.as_secs_f64(),
        cpu_ms_a_pod: a_pod(own.saturating_sub(since.own)),
        server_ms_a_pod: a_pod(servers.saturating_sub(since.servers)),
    }
}

pub(crate) async fn run(arguments: &Arguments, program: &Path) -> anyhow::Result<()> {
    if arguments.pods == 0 || arguments.pods > arguments.nodes * 32 {
        bail!("a node has room for 32 of these pods: give 1 to {} pods", arguments.nodes * 32);
    }
    println!(
        "{} pods in gangs of {}, {} nodes, {} binds at once",
        arguments.pods, arguments.gang, arguments.nodes, arguments.at_once
    );
    let [mut bare, mut watching, mut krafla]: [Option<Drained>; 3] = Default::default();
    for _ in 0..arguments.runs {
        keep("bare loop", &mut bare, loop_of_binds(arguments, false).await?);
        keep("and a watch", &mut watching, loop_of_binds(arguments, true).await?);
        keep("krafla", &mut krafla, self::krafla(arguments, program).await?);
    }
    let (Some(bare), Some(watching), Some(krafla)) = (bare, watching, krafla) else { bail!("--runs is at least 1") };
    let ratio = krafla.rate / bare.rate;
    let watching_ratio = krafla.rate / watching.rate;
    println!("fastest: ratio {ratio:.3} of the bare loop, {watching_ratio:.3} of that beside a watch");
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

/// Shows a run, and keeps it if it is the fastest so far.
fn keep(who: &str, best: &mut Option<Drained>, drained: Drained) {
    show(who, &drained);
    if best.as_ref().is_none_or(|best| drained.rate > best.rate) {
        *best = Some(drained);
    }
}

fn show(who: &str, drained: &Drained) {
    println!(
        "{who:<11} {:>6.0} binds a second ({:.1} s); processor time a pod: {:.2} ms its own, {:.2} ms the servers'",
        drained.rate, drained.seconds, drained.cpu_ms_a_pod, drained.server_ms_a_pod
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
    let mut since = None;
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
        since.get_or_insert_with(|| Since { begun: Instant::now(), own: cpu_of("self"), servers: server.cpu() });
    }
    let since = since.context("nothing was bound")?;
    if let Some(watch) = watch.filter(tokio::task::JoinHandle::is_finished) {
        watch.await??;
    }
    Ok(drained(arguments.pods - 1, &since, cpu_of("self"), server.cpu()))
}

/// What Krafla asked of the server beside binds.
fn show_other_calls(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) {
    let others = after.iter().filter(|(what, _)| !what.ends_with("binding"));
    let others = others.map(|(what, n)| (what, n - before.get(what).unwrap_or(&0))).filter(|(_, n)| *n > 0);
    let words: Vec<String> = others.map(|(what, n)| format!("{n} {what}")).collect();
    println!("            beside binds it asked: {}", words.join(", "));
}

#[allow(clippy::cast_precision_loss, reason = "counts of pods")]
async fn krafla(arguments: &Arguments, program: &Path) -> anyhow::Result<Drained> {
    let server = prepared(arguments).await?;
    let calls = server.calls().await?;
    let scheduler = Scheduler::start(program, &server, arguments.at_once)?;
    let wanted = u64::try_from(arguments.pods)?;
    let (mut first, mut last_news) = (None, (Instant::now(), 0));
    loop {
        let bound = scheduler.bound().await;
        let now = Instant::now();
        let mut left = ASK_AT_MOST;
        if bound > 0 {
            let since = || Since { begun: now, own: scheduler.cpu(), servers: server.cpu() };
            let (since, already) = first.get_or_insert_with(|| (since(), bound));
            if bound >= wanted {
                let binds = usize::try_from(wanted - *already)?;
                let drained = drained(binds, since, scheduler.cpu(), server.cpu());
                show_other_calls(&calls, &server.calls().await?);
                return Ok(drained);
            }
            // What is still to come, at the rate so far: asking costs it time.
            let rate = (bound - *already).max(1) as f64 / now.duration_since(since.begun).as_secs_f64().max(0.1);
            left = Duration::from_secs_f64((wanted - bound) as f64 / rate / 2.0);
        }
        if bound > last_news.1 {
            last_news = (now, bound);
        }
        if last_news.0.elapsed() > Duration::from_secs(60) {
            bail!("krafla has bound {bound} of {wanted} pods and none for a minute");
        }
        tokio::time::sleep(left.clamp(ASK_AT_LEAST, ASK_AT_MOST)).await;
    }
}
