//! Pods one by one, as kube-scheduler places them: the rate, and how long single cycles take; what a rule costs as a
//! plugin, as an extender over HTTP, and as a plugin that sleeps.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafla_engine::{Engine, Input, Options};
use krafla_framework::conf::policy::{ExtenderPolicy, Policy, ProfilePolicy};
use krafla_framework::registry::{Build, NodePluginBuilder, NodePluginInfo};
use krafla_framework::scheduling::extender::Filtered;
use krafla_framework::{
    CycleState, ExtenderCalls, ExtensionPoint, NodePlugin, NodeVictims, PodRef, Registry, Room, Scope, Verdict,
};
use krafla_model::{Amounts, ClusterState, Event, Name, NodeId, NodeSpec, PodSpec, TaskId, Time};

use crate::{pod, scaled, shape};

/// kube-scheduler's default profile, which looks for as many nodes as that does, with a rule of one's own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    None,
    Plugin,
    Extender,
    Sleeper,
}

/// cycles of the default profile on 5,000 nodes.: what a rule costs.
pub(crate) fn run(percent: u32) {
    println!(
        "\n{:<30} {:>7} {:>9} {:>12} {:>12} {:>12}",
        "pods one by one", "nodes", "pods", "a second", "p50 us", "p99 us"
    );
    measure("default-profile", Rule::None, scaled(5_000, percent), scaled(5_000, percent));
    measure("rule-in-a-plugin", Rule::Plugin, scaled(100, percent), scaled(500, percent));
    measure("rule-in-an-http-extender", Rule::Extender, scaled(100, percent), scaled(500, percent));
    measure("plugin-that-sleeps-100ms", Rule::Sleeper, 1, 5);
}

/// One pod a step: each is one scheduling cycle with what is around it.
fn measure(name: &str, rule: Rule, nodes: u32, pods: u32) {
    let mut engine = engine(rule);
    engine.step(Time(0), (0..nodes).map(node));
    let shape = shape(100);
    let mut each = Vec::new();
    for k in 0..pods {
        let spec = PodSpec { group: None, ..pod("p", k, &shape) };
        let began = Instant::now();
        let step = engine.step(Time(i64::from(k) + 1), [Input::Event(Event::Pod(spec))]);
        each.push(began.elapsed());
        assert!(!step.effects.is_empty(), "it is bound");
    }
    let whole: Duration = each.iter().sum();
    each.sort_unstable();
    let at = |part: usize| each[(each.len() * part / 100).min(each.len() - 1)].as_secs_f64() * 1e6;
    let rate = f64::from(pods) / whole.as_secs_f64();
    println!("{name:<30} {nodes:>7} {pods:>9} {rate:>12.0} {:>12.1} {:>12.1}", at(50), at(99));
}

fn engine(rule: Rule) -> Engine {
    let mut registry: Registry = krafla_plugins::registry(krafla_actions::all());
    let builder = |name, make: fn() -> Box<dyn NodePlugin>| NodePluginBuilder {
        info: NodePluginInfo { name, about: "", points: &[ExtensionPoint::Filter], default_weight: None },
        build: Build::Plain(make),
    };
    registry.node_plugins.push(builder("Plain", || Box::new(OfMine { sleep: None })));
    registry.node_plugins.push(builder("Sleeper", || Box::new(OfMine { sleep: Some(Duration::from_millis(100)) })));
    let mut profile =
        ProfilePolicy { percentage_of_nodes_to_score: Some(0), ..ProfilePolicy::default_profile(&registry) };
    let mut policy = Policy::default();
    match rule {
        Rule::None => {}
        Rule::Plugin => enable(&mut profile, "Plain"),
        Rule::Sleeper => enable(&mut profile, "Sleeper"),
        Rule::Extender => {
            registry.extender_calls = Some(Arc::new(OverHttp(serve())));
            policy.extenders = vec![ExtenderPolicy {
                url_prefix: "http://localhost".to_owned(),
                filter_verb: Some("filter".to_owned()),
                weight: 1,
                ..ExtenderPolicy::default()
            }];
        }
    }
    let policy = Policy { profiles: vec![profile], ..policy }.one_by_one();
    Engine::with_policy(registry, Options { profile_only: true, events: false, ..Options::default() }, policy)
}

fn enable(profile: &mut ProfilePolicy, name: &str) {
    profile.points.entry(ExtensionPoint::Filter).or_default().push((name.to_owned(), 1));
}

fn node(i: u32) -> Input {
    let allocatable = Amounts::default().with("cpu", 96_000).with("memory", 1 << 40).with("pods", 110);
    Input::Event(Event::Node(NodeSpec { name: format!("node-{i:05}").into(), allocatable, ..NodeSpec::default() }))
}

/// A rule that lets every node pass.
struct OfMine {
    sleep: Option<Duration>,
}

impl NodePlugin for OfMine {
    fn name(&self) -> &'static str {
        if self.sleep.is_some() { "Sleeper" } else { "Plain" }
    }

    fn filter_scope(&self) -> Option<Scope> {
        Some(Scope::Cluster)
    }

    fn filter(&self, _: &ClusterState, _: TaskId, _: NodeId, _: Room, _: &CycleState) -> Verdict {
        if let Some(sleep) = self.sleep {
            std::thread::sleep(sleep);
        }
        Verdict::Fits
    }
}

/// The same rule as a service: names of nodes go there, and come back.
struct OverHttp(SocketAddr);

impl ExtenderCalls for OverHttp {
    fn configured(&self, _: &[ExtenderPolicy]) {}

    fn filter(&self, _: &ExtenderPolicy, pod: &PodRef, nodes: &[&str]) -> Result<Filtered, String> {
        let body = format!("{{\"Pod\":{{\"metadata\":{{\"name\":\"{}\"}}}},\"NodeNames\":{nodes:?}}}", pod.name);
        let answer = post(self.0, &body).map_err(|error| error.to_string())?;
        let names = answer.split('"').filter(|word| word.starts_with("node-"));
        Ok(Filtered { passed: names.map(str::to_owned).collect(), ..Filtered::default() })
    }

    fn prioritize(&self, _: &ExtenderPolicy, _: &PodRef, _: &[&str]) -> Result<BTreeMap<String, i64>, String> {
        Ok(BTreeMap::new())
    }

    fn process_preemption(
        &self,
        _: &ExtenderPolicy,
        _: &PodRef,
        _: &BTreeMap<Name, NodeVictims<PodRef>>,
    ) -> Result<BTreeMap<String, NodeVictims<String>>, String> {
        Ok(BTreeMap::new())
    }
}

fn post(to: SocketAddr, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(to)?;
    write!(stream, "POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A server that sends back what it is sent.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = echo(stream);
        }
    });
    address
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(text) = line.strip_prefix("Content-Length: ") {
            length = text.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&body)
}
