//! Plays one scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use krafla_engine::Configuration;
use krafla_model::task::ordinal_of;
use krafla_model::{JobPhase, Time};
use krafla_sandbox::{Grace, Kubelet, KubeletOptions};
use krafla_simulator::scenario::{
    AFTER_LAST_EVENT_MS, Checked, Deed, Expected, Plan, Story, Target, TargetKind, Verdict, When,
};
use krafla_simulator::world::Fault;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::eyes::Eyes;
use crate::ground::{Ground, Guest, Kind};
use crate::hands::{Hands, Trouble};
use crate::invariants;
use crate::krafla::Krafla;
use crate::names::Names;
use crate::seen::{Key, key_of};
use crate::{admission, sweep};

/// How often the cluster is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// For so long nothing may have changed before an expectation is checked: so that one that holds already because
/// nothing has happened yet is not taken for one that holds.
const QUIET: Duration = Duration::from_millis(400);
/// The longest that is waited for quiet.
const QUIET_WITHIN: Duration = Duration::from_secs(3);
/// The same at the end of a scenario.
const QUIET_END: Duration = Duration::from_secs(3);
/// What must hold always may be unsettled for so long: the pods of a gang are bound one by one.
const UNSETTLED: Duration = Duration::from_secs(2);
/// The scheduler looks for a new configuration every second.
const CONFIGURED_WITHIN: Duration = Duration::from_millis(1_300);
/// As in the simulator: how long a controller takes to make a lost pod again.
const RECREATE: Duration = Duration::from_secs(1);
/// How soon a pod that a quota kept out is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// The most pods of a job that get an age each.
const MOST_TOLD_APART: usize = 16;
/// Misses that are listed for one scenario; the others are counted.
const MOST_MISSES: usize = 20;

/// How scenarios are played.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long an expectation may take to come true.
    pub patience: Duration,
    /// Scenarios that take longer are not played.
    pub longest: Duration,
}

/// How it went.
#[derive(Debug)]
pub enum Outcome {
    /// It was played.
    Played {
        /// What came out.
        verdict: Verdict,
        /// Keys that no API shows, and how often the file asks for them.
        unchecked: BTreeMap<&'static str, usize>,
        /// How long it took.
        took: Duration,
    },
    /// It cannot be played here.
    Skipped {
        /// Its name.
        name: String,
        /// Why not.
        why: String,
    },
}

/// Plays a scenario, and leaves the cluster as it was. `Err`: the cluster cannot be used any more, or the file is wrong.
pub async fn play(ground: &Ground, story: &Story, rules: Rules, say: &mut dyn FnMut(&str)) -> Result<Outcome, String> {
    let begun = Instant::now();
    let plan = story.plan().map_err(|why| why.to_string())?;
    let (scheduler, guest) = match &ground.kind {
        Kind::Sandbox { .. } => ("volcano", None),
        Kind::Guest(guest) => (guest.scheduler.as_str(), Some(guest)),
    };
    let hands = Hands::new(ground.client.clone(), story.name(), scheduler, guest.is_some());
    let why = match unfit(story, &plan, rules, guest) {
        Some(why) => Some(why),
        None => unknown_kind(&hands, &plan, guest).await?,
    };
    let names = match why.map_or_else(|| Names::of(plan.deeds.iter().map(|(_, deed)| deed)), Err) {
        Ok(names) => names,
        Err(why) => return Ok(Outcome::Skipped { name: story.name().to_owned(), why }),
    };
    if guest.is_none() {
        sweep::everything(&ground.client).await?;
    }
    let mut player = Player::new(ground, story, plan, rules, hands, names).await?;
    let played = tokio::select! {
        played = player.play(say) => played,
        _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
    };
    let (verdict, hands) = player.end().await;
    let swept = sweep::made(&ground.client, &hands.made()).await;
    played.and(swept)?;
    if let Some(invalid) = hands.invalid() {
        let why = format!("the API server does not take {invalid}");
        return Ok(Outcome::Skipped { name: verdict.name, why });
    }
    let mut unchecked: BTreeMap<&str, usize> = BTreeMap::new();
    for key in story.expectations().iter().flat_map(Expected::inner_keys) {
        *unchecked.entry(key).or_default() += 1;
    }
    Ok(Outcome::Played { verdict, unchecked, took: begun.elapsed() })
}

/// Why a scenario cannot be played on a cluster, if it cannot.
fn unfit(story: &Story, plan: &Plan, rules: Rules, guest: Option<&Guest>) -> Option<String> {
    let long = story.last_moment(plan);
    if long.0 > i64::try_from(rules.longest.as_millis()).unwrap_or(i64::MAX) {
        let longest = rules.longest.as_secs();
        return Some(format!("takes {long} of real time; more than {longest}s needs --longest"));
    }
    if let Some(why) = story.simulator_only() {
        return Some(format!("for the simulator only: {why}"));
    }
    if let Some(at) = within_a_bind(story, plan) {
        return Some(format!("looks at {at}, within its `bindLatency`: a real API server binds as fast as it does"));
    }
    if let Some(name) = taken_name(plan) {
        return Some(format!("makes pod {name} while the old one stops, which no API server lets happen"));
    }
    plan.deeds.iter().find_map(|(at, deed)| match (deed, guest) {
        (Deed::Fault(Fault::Restart), None) => None,
        (Deed::Fault(Fault::Restart), Some(_)) => Some("the scheduler of another cannot be restarted".to_owned()),
        (Deed::Fault(fault), _) => Some(format!("`fault: {}` needs the simulator's API server", in_words(fault))),
        (Deed::Rollout(..), _) => Some("`rollout` needs the simulator's controller".to_owned()),
        (Deed::Configure(_), Some(_)) => Some("the configuration of another scheduler cannot be changed".to_owned()),
        (deed, Some(guest)) if guest.use_nodes && changes_nodes(*at, deed) => {
            Some("changes nodes, and --use-nodes leaves them as they are".to_owned())
        }
        _ => None,
    })
}

/// Whether something is done to nodes, beyond making those of the start.
fn changes_nodes(at: Time, deed: &Deed) -> bool {
    match deed {
        Deed::Put(object) => object["kind"] == "Node" && at > Time(0),
        Deed::Delete(target) => target.kind == TargetKind::Node,
        _ => false,
    }
}

/// When the file looks at the cluster sooner after an event than it says that a bind takes.
fn within_a_bind(story: &Story, plan: &Plan) -> Option<Time> {
    let looks = story.expectations().iter().filter_map(|expected| match expected.when() {
        When::At(at) => Some(at),
        When::End | When::Always(_) => None,
    });
    let latency = plan.setup.bind_latency_ms;
    let mut early = looks.filter(|at| plan.deeds.iter().any(|(when, _)| when <= at && *at < *when + latency));
    early.next()
}

/// Pods that the file names: that it does something to, or asks about.
fn named_pods(story: &Story, plan: &Plan) -> BTreeSet<String> {
    let asked = story.expectations().iter().filter_map(Expected::pod).map(str::to_owned);
    let done = plan.deeds.iter().filter_map(|(_, deed)| match deed {
        Deed::Delete(target) | Deed::Evict(target) if target.kind == TargetKind::Pod => Some(target.name.clone()),
        _ => None,
    });
    asked.chain(done).collect()
}

/// A pod that is to be made while one of its name, deleted with its job, still has time to stop.
fn taken_name(plan: &Plan) -> Option<String> {
    let mut until: BTreeMap<Key, Time> = BTreeMap::new();
    let mut pods_of: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for (at, deed) in &plan.deeds {
        match deed {
            Deed::Submit { group, pods, .. } => {
                if let Some(pod) = pods.iter().find(|pod| until.get(&key_of(pod)).is_some_and(|until| at < until)) {
                    return Some(key_of(pod).1);
                }
                if let Some(group) = group {
                    pods_of.insert(key_of(group).1, pods.iter().collect());
                }
            }
            Deed::Delete(target) if target.kind == TargetKind::Job => {
                for pod in pods_of.get(&target.name).into_iter().flatten() {
                    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
                    until.insert(key_of(pod), *at + grace * 1_000);
                }
            }
            _ => {}
        }
    }
    None
}

fn in_words(fault: &Fault) -> &'static str {
    match fault {
        Fault::Refuse { .. } => "refuse",
        Fault::TakeOn { .. } => "takeOn",
        Fault::Hang { .. } => "hang",
        Fault::Lose { .. } => "lost",
        Fault::WatchDrops { .. } => "watch: drop",
        Fault::ApiDown { .. } => "api: down",
        Fault::Restart => "scheduler: restart",
    }
}

/// The first kind of the file's objects that the cluster does not have.
async fn unknown_kind(hands: &Hands, plan: &Plan, guest: Option<&Guest>) -> Result<Option<String>, String> {
    for (_, deed) in &plan.deeds {
        let Deed::Put(object) = deed else { continue };
        // A cluster without Volcano's kinds is still of use: its pods are scheduled one by one.
        let queue = object["kind"] == "Queue" && guest.is_some();
        if !queue && hands.kind(object).await?.is_none() {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            return Ok(Some(format!("the cluster has no {} of {}", text("kind"), text("apiVersion"))));
        }
    }
    Ok(None)
}

/// An expectation that holds always.
struct Standing {
    from: Time,
    expected: Expected,
    /// That its object is not there, as long as it never was.
    unseen: Option<String>,
    broken_since: Option<Instant>,
    said: bool,
}

struct Player<'a> {
    ground: &'a Ground,
    story: &'a Story,
    plan: Plan,
    rules: Rules,
    hands: Hands,
    eyes: Eyes,
    krafla: Option<Krafla>,
    kubelet: Option<Kubelet>,
    /// The configuration file of the scheduler; the folder goes with it.
    folder: tempfile::TempDir,
    configured: bool,
    knows_groups: bool,
    /// Whether gangs are to be whole: a plugin says so.
    gangs: bool,
    start: Instant,
    /// When something was last done.
    touched: Instant,
    standing: Vec<Standing>,
    /// Pods that are made again when they are lost, by namespace and name.
    templates: BTreeMap<Key, Value>,
    recreated: BTreeSet<Key>,
    /// Pods to be made at a time, and the job that has to be let in first.
    later: Vec<(Instant, Option<Key>, Value)>,
    quotas: BTreeSet<String>,
    /// Pods that the file names one by one.
    named: BTreeSet<String>,
    verdict: Verdict,
    more: usize,
}

impl<'a> Player<'a> {
    async fn new(
        ground: &'a Ground,
        story: &'a Story,
        plan: Plan,
        rules: Rules,
        hands: Hands,
        names: Names,
    ) -> Result<Self, String> {
        let pod_group = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"});
        let knows_groups = hands.kind(&pod_group).await?.is_some();
        let label = matches!(ground.kind, Kind::Guest(_)).then(|| admission::label_value(story.name()));
        let eyes = Eyes::open(&ground.client, names, label, knows_groups).await;
        let folder = tempfile::tempdir().map_err(|error| format!("a folder for the configuration: {error}"))?;
        let gangs = match &ground.kind {
            Kind::Guest(_) => false,
            Kind::Sandbox { registry, .. } => {
                let text = plan.setup.configuration.as_ref();
                text.is_none_or(|(name, text)| has_gangs(name, text, *registry))
            }
        };
        let kubelet = match &ground.kind {
            Kind::Guest(guest) if !guest.kubelet => None,
            _ => Some(Kubelet::start(ground.client.clone(), kubelet_options(&plan))),
        };
        let now = Instant::now();
        let mut notes = plan.notes.clone();
        if plan.setup.bind_latency_ms > 0 {
            notes.push("`bindLatency` is left out: a real API server binds as fast as it does".to_owned());
        }
        let has_groups = plan.deeds.iter().any(|(_, deed)| matches!(deed, Deed::Submit { group: Some(_), .. }));
        if has_groups && !knows_groups {
            notes.push("the cluster has no PodGroups of Volcano: pods of jobs are made without one".to_owned());
        }
        let verdict = Verdict { name: story.name().to_owned(), notes, ..Verdict::default() };
        let standing = story.expectations().iter().filter_map(|expected| match expected.when() {
            When::Always(from) => Some(Standing {
                from,
                expected: expected.outer()?,
                unseen: Some(String::new()),
                broken_since: None,
                said: false,
            }),
            When::At(_) | When::End => None,
        });
        Ok(Self {
            ground,
            story,
            rules,
            hands,
            eyes,
            krafla: None,
            kubelet,
            folder,
            configured: false,
            knows_groups,
            gangs,
            start: now,
            touched: now,
            standing: standing.collect(),
            templates: BTreeMap::new(),
            recreated: BTreeSet::new(),
            later: Vec::new(),
            quotas: BTreeSet::new(),
            named: named_pods(story, &plan),
            verdict,
            more: 0,
            plan,
        })
    }

    async fn play(&mut self, say: &mut dyn FnMut(&str)) -> Result<(), String> {
        self.configure_first()?;
        let mut deeds = std::mem::take(&mut self.plan.deeds).into_iter().peekable();
        let story = self.story;
        let checks: Vec<(Time, &Expected)> = story
            .expectations()
            .iter()
            .filter_map(|expected| match expected.when() {
                When::At(at) => Some((at, expected)),
                When::End | When::Always(_) => None,
            })
            .collect();
        let mut checks = checks.into_iter().peekable();
        let mut first = true;
        loop {
            let next = deeds.peek().map(|(at, _)| *at).into_iter().chain(checks.peek().map(|(at, _)| *at)).min();
            let Some(at) = next else { break };
            if !first {
                self.wait_until(self.start + millis(at.0)).await;
            }
            let mut now = Vec::new();
            while let Some((_, deed)) = deeds.next_if(|(when, _)| *when == at) {
                now.push(deed);
            }
            let happened = !now.is_empty();
            if first {
                self.wait_until(next_second()).await;
            }
            self.do_all(now, first).await;
            if self.hands.invalid().is_some() {
                return Ok(());
            }
            if first {
                self.begin().await;
                first = false;
            }
            let mut due = Vec::new();
            while let Some((_, expected)) = checks.next_if(|(when, _)| *when == at) {
                due.push(expected);
            }
            if !due.is_empty() {
                say(&format!("{at} of {}", self.story.last_moment(&self.plan)));
                if happened || at == Time(0) {
                    self.be_quiet().await;
                }
                self.check(&due, self.rules.patience).await;
            }
        }
        if first {
            self.begin().await;
        }
        say("the end");
        self.last_checks().await;
        Ok(())
    }

    /// The clock of the scenario begins to run. As in the simulator, the first session comes after everything that
    /// happens at the start.
    async fn begin(&mut self) {
        self.wait_until(next_second()).await;
        self.start_krafla();
        self.start = Instant::now();
    }

    /// Writes the configuration that is in force from the start.
    fn configure_first(&mut self) -> Result<(), String> {
        let changes = self.plan.deeds.iter().any(|(_, deed)| matches!(deed, Deed::Configure(_)));
        if let Some((_, text)) = &self.plan.setup.configuration {
            std::fs::write(self.configuration(), text).map_err(|error| format!("the configuration file: {error}"))?;
            self.configured = true;
        }
        // A file that comes later is read when it comes.
        self.configured |= changes;
        Ok(())
    }

    fn configuration(&self) -> std::path::PathBuf {
        self.folder.path().join("scheduler.conf")
    }

    fn start_krafla(&mut self) {
        if let Kind::Sandbox { control_plane, registry } = &self.ground.kind {
            let configuration = self.configured.then(|| self.configuration());
            let kubeconfig = control_plane.kubeconfig().to_owned();
            self.krafla = Some(Krafla::start(kubeconfig, configuration, self.plan.setup.engine, *registry));
        }
    }

    async fn stop_krafla(&mut self) {
        if let Some(krafla) = self.krafla.take()
            && let Some(why) = krafla.stop().await
        {
            self.miss(why);
        }
    }

    /// Does everything of one moment. PodGroups come last, so that a scheduler does not see the jobs of one moment much
    /// before each other; a scheduler of somebody may want them first, and sees the nodes of the start last.
    async fn do_all(&mut self, mut deeds: Vec<Deed>, first: bool) {
        let guest = matches!(self.ground.kind, Kind::Guest(_));
        if first && guest {
            deeds.sort_by_key(|deed| matches!(deed, Deed::Put(object) if object["kind"] == "Node"));
        }
        let mut groups = Vec::new();
        let mut batch: Vec<Value> = Vec::new();
        for deed in deeds {
            match deed {
                Deed::Put(object) => {
                    if batch.last().is_some_and(|last| last["kind"] != object["kind"]) {
                        self.put(std::mem::take(&mut batch)).await;
                    }
                    batch.push(object);
                    continue;
                }
                deed => {
                    self.put(std::mem::take(&mut batch)).await;
                    self.do_one(deed, guest, &mut groups).await;
                }
            }
        }
        self.put(batch).await;
        let troubles = self.hands.put_all(groups).await;
        self.trouble(troubles);
        self.touched = Instant::now();
    }

    async fn put(&mut self, objects: Vec<Value>) {
        let mut objects = objects;
        if let Kind::Guest(guest) = &self.ground.kind {
            let use_nodes = guest.use_nodes;
            let knows_groups = self.knows_groups;
            objects.retain(|object| {
                !(use_nodes && object["kind"] == "Node") && (knows_groups || object["kind"] != "Queue")
            });
            objects.iter_mut().filter(|object| object["kind"] == "Node").for_each(admission::for_kwok);
        }
        for object in &objects {
            match object["kind"].as_str() {
                Some("ResourceQuota") => {
                    self.quotas.insert(key_of(object).0);
                }
                Some("PodGroup") => {
                    let queue = object["spec"]["queue"].as_str().unwrap_or(krafla_model::queue::DEFAULT_QUEUE);
                    self.eyes.seen().submitted(&key_of(object), queue);
                }
                _ => {}
            }
        }
        let troubles = self.hands.put_all(objects).await;
        self.trouble(troubles);
    }

    async fn do_one(&mut self, deed: Deed, guest: bool, groups: &mut Vec<Value>) {
        let done = match deed {
            Deed::Put(_) => Ok(()),
            Deed::Submit { group, pods, recreate } => {
                self.submit(group, pods, recreate, guest, groups).await;
                Ok(())
            }
            Deed::Delete(target) => self.delete(&target).await,
            Deed::Evict(target) => self.evict(&target).await,
            Deed::Ungate(target) => self.ungate(&target).await,
            Deed::Configure(text) => self.configure(&text).await,
            // Such files are skipped.
            Deed::Rollout(..) => Ok(()),
            Deed::Fault(_) => {
                self.stop_krafla().await;
                self.start_krafla();
                Ok(())
            }
        };
        if let Err(trouble) = done {
            self.trouble(vec![trouble]);
        }
    }

    async fn submit(
        &mut self,
        group: Option<Value>,
        pods: Vec<Value>,
        recreate: bool,
        guest: bool,
        groups: &mut Vec<Value>,
    ) {
        let group = group.filter(|_| self.knows_groups);
        let key = group.as_ref().map(key_of);
        if let (Some(group), Some(key)) = (&group, &key) {
            let queue = group["spec"]["queue"].as_str().unwrap_or_default();
            self.eyes.seen().submitted(key, queue);
        }
        if recreate {
            for pod in &pods {
                let mut again = pod.clone();
                again["spec"]["schedulingGates"] = json!([]);
                self.recreated.insert(key_of(pod));
                self.templates.insert(key_of(pod), again);
            }
        }
        if let (Some(group), true) = (&group, guest) {
            let done = self.hands.make_group(group).await;
            self.trouble(done.err().into_iter().collect());
        }
        // Where there is a quota, pods are made when their job has been let in, as Volcano's controller does.
        let held_back = key.clone().filter(|key| self.quotas.contains(&key.0));
        match held_back {
            Some(key) => {
                let now = Instant::now();
                self.later.extend(pods.into_iter().map(|pod| (now, Some(key.clone()), pod)));
            }
            None if self.are_told_apart(&pods) => {
                for (i, pod) in pods.into_iter().enumerate() {
                    if i > 0 {
                        self.wait_until(next_second()).await;
                    }
                    self.make_pods(vec![pod]).await;
                }
            }
            None => self.make_pods(pods).await,
        }
        groups.extend(group.filter(|_| !guest));
    }

    /// Whether the file tells equal pods apart that schedulers order by age, and those of one age by UID, which is
    /// chance. Then each has to have an age of its own, and an API server counts ages in seconds.
    fn are_told_apart(&self, pods: &[Value]) -> bool {
        let names = || pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default());
        (2..=MOST_TOLD_APART).contains(&pods.len())
            && names().any(|name| self.named.contains(name))
            && names().any(|name| ordinal_of(name).is_none())
    }

    async fn make_pods(&mut self, pods: Vec<Value>) {
        let (refused, troubles) = self.hands.make_pods(pods).await;
        self.later.extend(refused.into_iter().map(|pod| (Instant::now() + TRY_AGAIN, None, pod)));
        self.trouble(troubles);
    }

    async fn delete(&mut self, target: &Target) -> Result<(), Trouble> {
        let name = &target.name;
        match target.kind {
            TargetKind::Job => {
                let found = {
                    let mut seen = self.eyes.seen();
                    let found = seen.find_job(target.namespace.as_deref(), name).map(|job| {
                        let pods = seen.live_pods(&job.pods).map(|pod| (pod.spec.uid.clone(), pod.spec.name.clone()));
                        (job.key.clone(), pods.collect::<Vec<_>>())
                    });
                    if let Some((key, pods)) = &found {
                        seen.deleted(key);
                        pods.iter().for_each(|(uid, _)| seen.hands_on(uid));
                    }
                    found
                };
                let (key, pods) = found.ok_or_else(|| format!("there is no job {name} to delete"))?;
                self.later.retain(|(_, job, _)| job.as_ref() != Some(&key));
                if self.knows_groups {
                    self.hands.delete_group(&key).await?;
                }
                for (_, pod) in pods {
                    self.hands.delete_pod(&key.0, &pod, false).await?;
                }
                Ok(())
            }
            TargetKind::Pod => {
                let (namespace, name) = self.own_pod(target)?;
                self.hands.delete_pod(&namespace, &name, false).await
            }
            TargetKind::Queue => self.hands.delete_queue(name).await,
            TargetKind::Node => {
                self.hands.delete_node(name).await?;
                // The collector of pods without a node waits for a minute; here they go with it, as in the simulator.
                let lost: Vec<(String, String)> = {
                    let mut seen = self.eyes.seen();
                    let on_it = seen.pods.iter().filter(|pod| pod.holds() && pod.spec.node.as_deref() == Some(name));
                    let lost: Vec<_> = on_it
                        .map(|pod| (pod.spec.uid.clone(), pod.spec.namespace().to_string(), pod.spec.name.to_string()))
                        .collect();
                    lost.iter().for_each(|(uid, ..)| seen.hands_on(uid));
                    lost.into_iter().map(|(_, namespace, name)| (namespace, name)).collect()
                };
                for (namespace, pod) in lost {
                    self.hands.delete_pod(&namespace, &pod, true).await?;
                }
                Ok(())
            }
        }
    }

    /// A pod that the player does something to.
    fn own_pod(&self, target: &Target) -> Result<Key, Trouble> {
        let mut seen = self.eyes.seen();
        let found = seen.find_pod(target.namespace.as_deref(), &target.name);
        let (uid, key) = found
            .map(|pod| (pod.spec.uid.clone(), (pod.spec.namespace().to_string(), pod.spec.name.to_string())))
            .ok_or_else(|| format!("there is no pod {}", target.name))?;
        seen.hands_on(&uid);
        Ok(key)
    }

    async fn evict(&mut self, target: &Target) -> Result<(), Trouble> {
        let (namespace, name) = self.own_pod(target)?;
        self.hands.evict(&namespace, &name).await
    }

    async fn ungate(&mut self, target: &Target) -> Result<(), Trouble> {
        let pods: Vec<Key> = {
            let seen = self.eyes.seen();
            let namespace = target.namespace.as_deref();
            let gated = |pod: &crate::seen::Pod| {
                let is = !pod.spec.gates.is_empty();
                is.then(|| (pod.spec.namespace().to_string(), pod.spec.name.to_string()))
            };
            match target.kind {
                TargetKind::Job => {
                    let job = seen.find_job(namespace, &target.name);
                    job.into_iter().flat_map(|job| seen.live_pods(&job.pods)).filter_map(gated).collect()
                }
                _ => seen.find_pod(namespace, &target.name).and_then(gated).into_iter().collect(),
            }
        };
        if pods.is_empty() {
            return Err(format!("{} {} has no scheduling gate to take off", target.kind.as_str(), target.name));
        }
        for (namespace, name) in pods {
            self.hands.ungate(&namespace, &name).await?;
        }
        Ok(())
    }

    async fn configure(&mut self, text: &str) -> Result<(), Trouble> {
        // Renamed into its place, so that no half of it is read.
        let new = self.folder.path().join("new.conf");
        std::fs::write(&new, text).map_err(|error| format!("the configuration file: {error}"))?;
        std::fs::rename(&new, self.configuration()).map_err(|error| format!("the configuration file: {error}"))?;
        if let Kind::Sandbox { registry, .. } = &self.ground.kind {
            self.gangs &= has_gangs("config", text, *registry);
        }
        self.wait_until(Instant::now() + CONFIGURED_WITHIN).await;
        Ok(())
    }

    /// Waits, with an eye on what must hold always, and does what controllers would.
    async fn wait_until(&mut self, at: Instant) {
        loop {
            self.look().await;
            let now = Instant::now();
            if now >= at {
                return;
            }
            sleep(LOOK_EVERY.min(at - now)).await;
        }
    }

    /// Waits until nothing changes any more.
    async fn be_quiet(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < QUIET_WITHIN && !self.is_quiet(QUIET) {
            self.wait_until(Instant::now() + LOOK_EVERY).await;
        }
    }

    fn is_quiet(&self, time: Duration) -> bool {
        let last = self.eyes.seen().last_change();
        self.touched.max(self.start).elapsed() >= time && last.is_none_or(|last| last.elapsed() >= time)
    }

    /// Checks expectations until they hold, or patience is over; then says what is amiss.
    async fn check(&mut self, due: &[&Expected], patience: Duration) {
        let due: Vec<Expected> = due.iter().filter_map(|expected| expected.outer()).collect();
        self.verdict.checks += due.len() as u64;
        let until = Instant::now() + patience;
        let mut left = due;
        loop {
            let amiss: Vec<(Expected, Vec<String>)> = left
                .into_iter()
                .filter_map(|expected| {
                    let wrong = self.amiss(&expected);
                    (!wrong.is_empty()).then_some((expected, wrong))
                })
                .collect();
            if amiss.is_empty() {
                return;
            }
            if Instant::now() >= until {
                let now = self.now();
                for (expected, wrong) in amiss {
                    wrong.into_iter().for_each(|wrong| self.miss(format!("at {now}, {expected}: {wrong}")));
                }
                return;
            }
            left = amiss.into_iter().map(|(expected, _)| expected).collect();
            self.wait_until(Instant::now() + LOOK_EVERY).await;
        }
    }

    fn amiss(&self, expected: &Expected) -> Vec<String> {
        match expected.check(&*self.eyes.seen()) {
            Ok(Checked::Misses(misses)) => misses,
            Ok(Checked::Missing(missing)) => vec![missing],
            Err(why) => vec![why],
        }
    }

    /// The end: when nothing more is to be expected, at the latest when the file says.
    async fn last_checks(&mut self) {
        let last: Vec<Expected> = self
            .story
            .expectations()
            .iter()
            .filter(|expected| expected.when() == When::End)
            .filter_map(Expected::outer)
            .collect();
        if last.is_empty() && self.standing.is_empty() {
            return;
        }
        let end = self.plan.until.unwrap_or(self.story.last_moment(&self.plan) + AFTER_LAST_EVENT_MS);
        let end = self.start + millis(end.0);
        loop {
            let holds = last.iter().all(|expected| self.amiss(expected).is_empty());
            let nothing_comes = self.later.is_empty() && !self.eyes.seen().something_ends_before(end.into_std());
            if Instant::now() >= end || (holds && nothing_comes && self.is_quiet(QUIET_END)) {
                break;
            }
            self.wait_until(Instant::now() + LOOK_EVERY).await;
        }
        let last: Vec<&Expected> = last.iter().collect();
        self.check(&last, self.rules.patience).await;
        for standing in std::mem::take(&mut self.standing) {
            if let Some(missing) = standing.unseen {
                let why = if missing.is_empty() {
                    "its time never came".to_owned()
                } else {
                    format!("{missing}, and never was")
                };
                self.miss(format!("{}: {why}", standing.expected));
            }
        }
    }

    /// Looks once: what must hold always, what controllers would do, whether the scheduler still runs.
    async fn look(&mut self) {
        let now = self.now();
        let broken = invariants::broken(&mut self.eyes.seen(), self.gangs);
        for text in broken {
            self.miss(format!("at {now}, {text}"));
        }
        self.look_at_standing(now);
        if self.krafla.as_ref().is_some_and(Krafla::has_ended) {
            self.stop_krafla().await;
        }
        let lost = self.eyes.seen().take_lost();
        for ((namespace, _), name) in lost {
            let key = (namespace, name);
            if let Some(again) = self.templates.get(&key).filter(|_| self.recreated.contains(&key)) {
                self.later.push((Instant::now() + RECREATE, None, again.clone()));
            }
        }
        let due = {
            let seen = self.eyes.seen();
            let is_in = |job: &Key| seen.phase_of(job).is_some_and(|phase| phase != JobPhase::Pending);
            let now = Instant::now();
            let is_due =
                |(at, job, _): &mut (Instant, Option<Key>, Value)| *at <= now && job.as_ref().is_none_or(is_in);
            self.later.extract_if(.., is_due).map(|(.., pod)| pod).collect::<Vec<_>>()
        };
        if !due.is_empty() {
            self.make_pods(due).await;
        }
    }

    fn look_at_standing(&mut self, now: Time) {
        let mut misses = Vec::new();
        for standing in self.standing.iter_mut().filter(|standing| standing.from <= now && !standing.said) {
            let checked = standing.expected.check(&*self.eyes.seen());
            let wrong = match checked {
                Ok(Checked::Missing(missing)) => {
                    if standing.unseen.is_some() {
                        standing.unseen = Some(missing);
                    }
                    standing.broken_since = None;
                    continue;
                }
                Ok(Checked::Misses(misses)) => misses,
                Err(why) => vec![why],
            };
            self.verdict.checks += u64::from(standing.unseen.is_some());
            standing.unseen = None;
            if wrong.is_empty() {
                standing.broken_since = None;
            } else if standing.broken_since.get_or_insert_with(Instant::now).elapsed() >= UNSETTLED {
                standing.said = true;
                let for_long = UNSETTLED.as_secs();
                misses.extend(
                    wrong.iter().map(|wrong| format!("at {now}, {}: {wrong}, for {for_long}s", standing.expected)),
                );
            }
        }
        misses.into_iter().for_each(|miss| self.miss(miss));
    }

    fn now(&self) -> Time {
        Time(i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn trouble(&mut self, troubles: Vec<Trouble>) {
        self.verdict.notes.extend(troubles);
    }

    fn miss(&mut self, text: String) {
        if self.verdict.misses.len() < MOST_MISSES {
            self.verdict.misses.push(text);
        } else {
            self.more += 1;
        }
    }

    /// Stops everything that ran for the scenario.
    async fn end(mut self) -> (Verdict, Hands) {
        self.stop_krafla().await;
        drop(self.kubelet);
        if self.more > 0 {
            self.verdict.misses.push(format!("... and {} more", self.more));
        }
        (self.verdict, self.hands)
    }
}

fn kubelet_options(plan: &Plan) -> KubeletOptions {
    KubeletOptions {
        start_after: millis(plan.setup.start_latency_ms),
        grace: Grace::AsAsked,
        ..KubeletOptions::default()
    }
}

fn has_gangs(name: &str, text: &str, registry: fn() -> krafla_framework::Registry) -> bool {
    Configuration::read(text, name, &registry(), false).is_ok_and(|(read, _)| read.policy.plugin("gang").is_some())
}

/// When the next second of the calendar begins. What is made within one second is of one age to an API server, and so
/// ordered by name, as what is made in one moment of the simulator.
fn next_second() -> Instant {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    Instant::now() + (Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanos().into()))
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
