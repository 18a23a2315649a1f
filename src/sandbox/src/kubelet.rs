//! A stand-in for the kubelets of all nodes: pods that have a node run, end and go.
//!
//! How long a pod runs is said by its annotation `krafla.io/runtime`, as in the simulator; without it, it runs until
//! somebody deletes it, or adds the annotation: `0s` ends it at once. With [`EXIT_CODE`] it fails at the end. Nothing is restarted: a pod that ends has ended.
//!
//! One task holds what was last seen of each pod and one plan a pod, the next thing to be done. Only so many calls are
//! under way at once; what fails is tried again. Whether a pod fits its node is not looked at.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

/// Annotation of a pod: the code that its containers exit with when its run time is over. Other than 0, the pod fails.
pub const EXIT_CODE: &str = "krafla.io/exit-code";

/// After SIGKILL, which is what becomes of a container that is told to stop and has no time left.
const KILLED: i64 = 137;
/// How long after a failed call, or a broken watch, the next one is tried.
const RETRY: Duration = Duration::from_millis(200);

/// How the kubelets behave.
#[derive(Clone, Debug)]
pub struct KubeletOptions {
    /// From a pod's bind to its start.
    pub start_after: Duration,
    /// How long a pod takes to stop when it is deleted.
    pub grace: Grace,
    /// How many calls are under way at once.
    pub calls: usize,
}

impl Default for KubeletOptions {
    fn default() -> Self {
        Self { start_after: Duration::from_millis(50), grace: Grace::AsAsked, calls: 64 }
    }
}

/// How long a deleted pod takes to stop.
#[derive(Clone, Copy, Debug)]
pub enum Grace {
    /// All of its grace period: 30 seconds where nothing else is said.
    AsAsked,
    /// At most this long, and no longer than its grace period.
    AtMost(Duration),
}

/// The kubelets, as long as this lives.
#[derive(Debug)]
pub struct Kubelet {
    task: JoinHandle<()>,
}

impl Kubelet {
    /// Starts them, on the runtime of the caller.
    pub fn start(client: Client, options: KubeletOptions) -> Self {
        let room = options.calls.max(1);
        let rounds = Rounds {
            client,
            options,
            room,
            pods: HashMap::new(),
            due: BTreeMap::new(),
            n_plans: 0,
            n_addresses: 0,
            calls: JoinSet::new(),
        };
        Self { task: tokio::spawn(rounds.run()) }
    }

    /// Stops them. Pods stay as they are.
    pub fn stop(self) {}
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// In the order in which a pod goes through them; it never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Pending,
    Running,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    End,
    /// A deleted pod stops, and then its object goes.
    Stop,
    Remove,
}

/// What is known of a pod.
struct Seen {
    namespace: String,
    name: String,
    /// Name and image of each.
    containers: Vec<(String, String)>,
    runtime: Option<Duration>,
    exit_code: i64,
    phase: Phase,
    /// When it was first seen with a node.
    bound: Instant,
    /// When it began to run: for plans, and as it is written.
    started: Option<(Instant, Time)>,
    /// When it was first seen to be deleted, and its grace period.
    deleted: Option<(Instant, Duration)>,
    address: Option<String>,
    /// It is deleted for good; what keeps its object is a finalizer.
    removed: bool,
    /// A call for it is under way.
    busy: bool,
    n_failures: u32,
    not_before: Option<Instant>,
    /// Its place in the plans.
    plan: Option<(Instant, u64)>,
    /// Whether the running list has named it.
    listed: bool,
}

impl Seen {
    /// What comes next for the pod, and when.
    fn next(&self, options: &KubeletOptions) -> Option<(Instant, Step)> {
        if self.removed {
            return None;
        }
        let (at, step) = match (self.deleted, self.phase) {
            (Some((since, _)), Phase::Over) => (since, Step::Remove),
            (Some((since, grace)), _) => {
                let grace = match options.grace {
                    Grace::AsAsked => grace,
                    Grace::AtMost(limit) => grace.min(limit),
                };
                (since + grace, Step::Stop)
            }
            (None, Phase::Pending) => (self.bound + options.start_after, Step::Start),
            (None, Phase::Running) => {
                let (started, _) = self.started.as_ref()?;
                (*started + self.runtime?, Step::End)
            }
            (None, Phase::Over) => return None,
        };
        Some((self.not_before.map_or(at, |earliest| at.max(earliest)), step))
    }
}

/// What the task works with.
struct Rounds {
    client: Client,
    options: KubeletOptions,
    room: usize,
    /// By UID.
    pods: HashMap<String, Seen>,
    /// What is to be done, by when; the number tells equal times apart.
    due: BTreeMap<(Instant, u64), (String, Step)>,
    n_plans: u64,
    n_addresses: u32,
    calls: JoinSet<(String, Step, Result<(), kube::Error>)>,
}

impl Rounds {
    async fn run(mut self) {
        let bound = watcher::Config::default().fields("spec.nodeName!=");
        let mut events = std::pin::pin!(watcher::watcher(Api::<Pod>::all(self.client.clone()), bound).backoff(Steady));
        loop {
            self.call_what_is_due();
            let next = self.due.first_key_value().map(|(&(at, _), _)| at).filter(|_| self.calls.len() < self.room);
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => self.hear(event),
                    Some(Err(error)) => tracing::debug!(%error, "the kubelet stand-in's watch broke"),
                    None => return,
                },
                Some(done) = self.calls.join_next() => match done {
                    Ok((uid, step, result)) => self.note(&uid, step, result),
                    Err(error) => tracing::error!(%error, "a call of the kubelet stand-in broke"),
                },
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
        }
    }

    fn hear(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.pods.values_mut().for_each(|seen| seen.listed = false),
            Event::InitApply(pod) | Event::Apply(pod) => self.see(&pod),
            Event::InitDone => {
                let gone: Vec<_> =
                    self.pods.iter().filter(|(_, seen)| !seen.listed).map(|(uid, _)| uid.clone()).collect();
                gone.iter().for_each(|uid| self.forget(uid));
            }
            Event::Delete(pod) => self.forget(pod.metadata.uid.as_deref().unwrap_or_default()),
        }
    }

    fn see(&mut self, pod: &Pod) {
        let Some(uid) = pod.metadata.uid.clone() else { return };
        let now = Instant::now();
        let seen = self.pods.entry(uid.clone()).or_insert_with(|| first_sight(pod, now));
        seen.listed = true;
        // Annotations may come later: so a test can end a pod when it likes.
        (seen.runtime, seen.exit_code) = life(pod);
        seen.phase = seen.phase.max(phase(pod));
        if seen.deleted.is_none() && pod.metadata.deletion_timestamp.is_some() {
            let grace = u64::try_from(pod.metadata.deletion_grace_period_seconds.unwrap_or(0)).unwrap_or(0);
            seen.deleted = Some((now, Duration::from_secs(grace)));
        }
        if seen.phase == Phase::Running && seen.started.is_none() {
            // Another kubelet started it, or this one before a restart.
            let written = pod.status.as_ref().and_then(|status| status.start_time.clone()).unwrap_or_else(now_written);
            let ago = Duration::try_from(Timestamp::now().duration_since(written.0)).unwrap_or_default();
            seen.started = Some((now.checked_sub(ago).unwrap_or(now), written));
        }
        self.plan(&uid);
    }

    fn forget(&mut self, uid: &str) {
        if let Some(plan) = self.pods.remove(uid).and_then(|seen| seen.plan) {
            self.due.remove(&plan);
        }
    }

    /// Plans the next step of a pod, in place of what was planned. With a call under way, its end plans.
    fn plan(&mut self, uid: &str) {
        let Some(seen) = self.pods.get_mut(uid) else { return };
        if let Some(plan) = seen.plan.take() {
            self.due.remove(&plan);
        }
        if seen.busy {
            return;
        }
        if let Some((at, step)) = seen.next(&self.options) {
            self.n_plans += 1;
            let key = (at, self.n_plans);
            seen.plan = Some(key);
            self.due.insert(key, (uid.to_owned(), step));
        }
    }

    fn call_what_is_due(&mut self) {
        let now = Instant::now();
        while self.calls.len() < self.room {
            let Some(first) = self.due.first_entry().filter(|first| first.key().0 <= now) else { return };
            let (uid, step) = first.remove();
            let Some(seen) = self.pods.get_mut(&uid) else { continue };
            seen.plan = None;
            seen.busy = true;
            let api = Api::<Pod>::namespaced(self.client.clone(), &seen.namespace);
            let name = seen.name.clone();
            let patch = match step {
                Step::Start => {
                    self.n_addresses += 1;
                    let [_, high, middle, low] = self.n_addresses.to_be_bytes();
                    let address = seen.address.get_or_insert_with(|| format!("10.{high}.{middle}.{low}")).clone();
                    let started = now_written();
                    seen.started = Some((now, started.clone()));
                    running(seen, &address, &started)
                }
                Step::End => ended(seen, seen.exit_code),
                Step::Stop => ended(seen, KILLED),
                Step::Remove => {
                    self.calls.spawn(async move {
                        let result = remove(&api, &name, &uid).await;
                        (uid, step, result)
                    });
                    continue;
                }
            };
            self.calls.spawn(async move {
                // The UID is a condition: another pod may have got the name.
                let patch = Patch::Strategic(json!({ "metadata": { "uid": uid }, "status": patch }));
                let result = api.patch_status(&name, &PatchParams::default(), &patch).await.map(drop);
                (uid, step, result)
            });
        }
    }

    /// A call has ended.
    fn note(&mut self, uid: &str, step: Step, result: Result<(), kube::Error>) {
        let Some(seen) = self.pods.get_mut(uid) else { return };
        seen.busy = false;
        match result {
            Ok(()) => {
                seen.n_failures = 0;
                seen.not_before = None;
                match step {
                    Step::Start => seen.phase = seen.phase.max(Phase::Running),
                    Step::End | Step::Stop => seen.phase = Phase::Over,
                    Step::Remove => seen.removed = true,
                }
            }
            Err(kube::Error::Api(status)) if status.code == 404 => return self.forget(uid),
            Err(error) => {
                seen.n_failures += 1;
                // Once, since a server that is down for a while is no news.
                if seen.n_failures == 10 {
                    tracing::warn!(pod = seen.name, ?step, %error, "the kubelet stand-in tries again and again");
                }
                seen.not_before = Some(Instant::now() + RETRY * seen.n_failures.min(10));
            }
        }
        self.plan(uid);
    }
}

fn first_sight(pod: &Pod, now: Instant) -> Seen {
    let name = pod.metadata.name.clone().unwrap_or_default();
    for problem in krafla_api::Hints::read(&pod.metadata).1 {
        tracing::warn!(pod = name, problem, "an annotation cannot be read");
    }
    let containers = pod.spec.as_ref().map_or(&[][..], |spec| &spec.containers);
    Seen {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        name,
        containers: containers.iter().map(|c| (c.name.clone(), c.image.clone().unwrap_or_default())).collect(),
        runtime: None,
        exit_code: 0,
        phase: Phase::Pending,
        bound: now,
        started: None,
        deleted: None,
        address: None,
        removed: false,
        busy: false,
        n_failures: 0,
        not_before: None,
        plan: None,
        listed: true,
    }
}

/// How long a pod runs, and the code that it exits with.
fn life(pod: &Pod) -> (Option<Duration>, i64) {
    let (hints, _) = krafla_api::Hints::read(&pod.metadata);
    let runtime = hints.runtime_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    let code = pod.metadata.annotations.as_ref().and_then(|all| all.get(EXIT_CODE)?.parse().ok());
    (runtime, code.unwrap_or(0))
}

fn phase(pod: &Pod) -> Phase {
    match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Running") => Phase::Running,
        Some("Succeeded" | "Failed") => Phase::Over,
        _ => Phase::Pending,
    }
}

/// The API keeps whole seconds.
fn now_written() -> Time {
    Time(Timestamp::now())
}

fn running(seen: &Seen, address: &str, started: &Time) -> Value {
    let containers = seen.containers.iter().map(|(name, image)| {
        let state = json!({ "running": { "startedAt": started } });
        json!({ "name": name, "image": image, "imageID": image, "ready": true, "started": true, "restartCount": 0, "state": state })
    });
    let kinds = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
    let conditions = kinds.map(|kind| condition(kind, true));
    json!({
        "phase": "Running",
        "startTime": started,
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": conditions,
        "containerStatuses": containers.collect::<Vec<_>>(),
    })
}

fn ended(seen: &Seen, exit_code: i64) -> Value {
    let finished = now_written();
    let started = seen.started.as_ref().map_or(&finished, |(_, started)| started);
    let containers = seen.containers.iter().map(|(name, image)| {
        let reason = if exit_code == 0 { "Completed" } else { "Error" };
        let terminated =
            json!({ "exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": finished });
        json!({
            "name": name, "image": image, "imageID": image, "ready": false, "started": false, "restartCount": 0,
            "state": { "terminated": terminated },
        })
    });
    let conditions = ["ContainersReady", "Ready"].map(|kind| condition(kind, false));
    json!({
        "phase": if exit_code == 0 { "Succeeded" } else { "Failed" },
        "conditions": conditions,
        "containerStatuses": containers.collect::<Vec<_>>(),
    })
}

fn condition(kind: &str, holds: bool) -> Value {
    let status = if holds { "True" } else { "False" };
    let reason = if holds { Value::Null } else { json!("PodCompleted") };
    json!({ "type": kind, "status": status, "reason": reason, "lastTransitionTime": now_written() })
}

async fn remove(api: &Api<Pod>, name: &str, uid: &str) -> Result<(), kube::Error> {
    let only_it = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let parameters = DeleteParams::default().grace_period(0).preconditions(only_it);
    api.delete(name, &parameters).await.map(drop)
}

/// A broken watch is taken up again after the same short while: a test that restarts the API server waits for it.
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(RETRY)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}
