//! Scenarios on control planes of real parts: with Krafla, and against a scheduler that is there already. Skipped,
//! loudly, where there are no parts.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use krafla_framework::Registry;
use krafla_rehearsal::{Ground, Guest, Outcome, Rules, play};
use krafla_sandbox::{Assets, ControlPlane, Options};
use krafla_simulator::scenario::{Story, Verdict};
use kube::Api;
use kube::api::ListParams;

const RULES: Rules = Rules { patience: Duration::from_secs(5), longest: Duration::from_secs(60) };

fn registry() -> Registry {
    let descheduler = Some(krafla_descheduler::build as krafla_framework::BuildDescheduler);
    Registry { descheduler, ..krafla_plugins::registry(krafla_actions::all()) }
}

fn story(text: &str) -> Story {
    Story::read(text, "test.yaml", registry).expect("a scenario")
}

async fn played(ground: &Ground, text: &str) -> Verdict {
    match play(ground, &story(text), RULES, &mut |_| {}).await.expect("the cluster goes on") {
        Outcome::Played { verdict, .. } => verdict,
        Outcome::Skipped { why, .. } => panic!("skipped: {why}"),
    }
}

async fn why_skipped(ground: &Ground, text: &str) -> String {
    match play(ground, &story(text), RULES, &mut |_| {}).await.expect("the cluster goes on") {
        Outcome::Played { verdict, .. } => panic!("played: {verdict:?}"),
        Outcome::Skipped { why, .. } => why,
    }
}

/// Names in capitals, a restart, a drain with a controller, a deleted job, a change of the configuration.
const STORY: &str = "
scenario: a gang and its troubles
config: |
  actions: \"enqueue, allocate, backfill\"
  tiers:
  - plugins: [{name: priority}, {name: gang}]
  - plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
cluster:
  nodes: [{name: N, count: 2, cpu: 4, labels: {zone: a}}]
  queues: [{name: A}]
  priorityClasses: {high: 100}
timeline:
- {at: 0s, submit: {job: J1, namespace: Red, queue: A, priority: high, replicas: 2, minMember: 2, request: {cpu: 3}, controller: recreate}}
- {at: 0s, submit: {job: J2, replicas: 2, minMember: 2, request: {cpu: 3}, runtime: 2s}}
- {at: 1s, evict: {pod: J1-0}}
- {at: 3s, fault: {scheduler: restart}}
- {at: 4s, delete: {job: J1}}
- {at: 5s, config: \"actions: \\\"enqueue, allocate, backfill\\\"\\ntiers:\\n- plugins: [{name: gang}, {name: predicates}]\"}
- {at: 6s, pod: {name: P, request: {cpu: 1}}}
expect:
- {at: 0s, job: J1, bound: 2, phase: Running, onNodes: [N-0, N-1], distinct: {label: zone, count: 1}}
- {at: 0s, queue: A, usedCpu: 6, bound: 2}
- {at: 0s, job: J2, bound: 0, pending: 2}
- {at: 2s, job: J1, bound: 2}
- {at: 3s, pod: J1-1, event: Scheduled}
- {at: 4s, job: J2, bound: 2}
- {at: 6s, job: J2, finished: 2}
- {at: 6s, pod: P, node: N-0}
- {always: true, node: N-0, usedCpu: \"<=4\"}
- {at: end, evictions: 0}
";

#[tokio::test(flavor = "multi_thread")]
async fn krafla_plays_its_scenarios_on_real_parts() {
    if Assets::for_test().is_none() {
        return;
    }
    let ground = Ground::sandbox(registry).await.expect("a control plane");
    let verdict = played(&ground, STORY).await;
    assert_eq!((verdict.misses, verdict.notes), (vec![], vec![]));

    // The same once more, on what is left of the first; one number is wrong.
    let verdict = played(&ground, &STORY.replace("job: J1, bound: 2, phase", "job: J1, bound: 1, phase")).await;
    assert_eq!(verdict.misses.len(), 1, "{verdict:?}");
    assert!(verdict.misses[0].contains("expect[0] job J1: bound: wanted 1, is 2"), "{verdict:?}");

    let fault = STORY.replace("scheduler: restart", "bind: refuse");
    assert!(why_skipped(&ground, &fault).await.contains("needs the simulator"));
    assert!(why_skipped(&ground, &STORY.replace("at: 6s", "at: 600s")).await.contains("needs --longest"));
    assert!(why_skipped(&ground, &STORY.replace("name: P,", "name: j2-0,")).await.contains("are one name"));
}

/// Killed when it is dropped.
struct Scheduler(Child);

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// kube-scheduler knows no gangs, so one is bound in part: that is what the file says of it.
const STRANGER: &str = "
scenario: a-gang-in-parts
cluster: {nodes: [{name: n, count: 2, cpu: 4}]}
timeline:
- {at: 0s, submit: {job: j, replicas: 3, minMember: 3, request: {cpu: 3}}}
- {at: 2s, delete: {job: j}}
expect:
- {at: 1s, job: j, bound: 2, pending: 1, distinct: {label: node, count: 2}}
- {at: 1s, node: n-0, usedCpu: 3}
- {at: 2s, bound: 0}
";

#[tokio::test(flavor = "multi_thread")]
async fn another_scheduler_is_asked_the_same() {
    let Some(program) = Assets::for_test().and_then(|assets| assets.program("kube-scheduler")) else { return };
    let assets = Assets::find().expect("programs");
    let control_plane = ControlPlane::start(&assets, Options::new()).await.expect("a control plane");
    let kubeconfig = control_plane.kubeconfig().to_owned();
    let arguments = ["--leader-elect=false", "--secure-port=0", "--kubeconfig"];
    let spawned = Command::new(program).args(arguments).arg(&kubeconfig).stderr(Stdio::null()).spawn();
    let _scheduler = Scheduler(spawned.expect("kube-scheduler"));
    let guest = |kubeconfig: PathBuf| Guest {
        kubeconfig: Some(kubeconfig),
        scheduler: "default-scheduler".to_owned(),
        use_nodes: false,
        kubelet: true,
    };
    let ground = Ground::guest(guest(kubeconfig)).await.expect("a cluster");
    let verdict = played(&ground, STRANGER).await;
    assert_eq!(verdict.misses, [""; 0], "{:?}", verdict.notes);
    assert!(verdict.notes[0].contains("no PodGroups"), "{:?}", verdict.notes);

    let client = control_plane.client().expect("a client");
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.expect("nodes");
    let pods = Api::<Pod>::all(client).list(&ListParams::default()).await.expect("pods");
    assert_eq!((nodes.items.len(), pods.items.len()), (0, 0), "what was made is deleted");
    assert!(
        why_skipped(&ground, &STRANGER.replace("delete: {job: j}", "config: \"\"")).await.contains("another scheduler")
    );
}
