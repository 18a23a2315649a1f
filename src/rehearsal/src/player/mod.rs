//! Plays one scenario.

mod checks;
mod deeds;
mod fit;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use krafla_engine::Configuration;
use krafla_model::{JobPhase, Time};
use krafla_sandbox::{Grace, Kubelet, KubeletOptions};
use krafla_simulator::scenario::{Deed, Expected, Plan, Story, Verdict, When};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::eyes::Eyes;
use crate::ground::{Ground, Kind};
use crate::hands::{Hands, Trouble};
use crate::invariants;
use crate::krafla::Krafla;
use crate::names::Names;
use crate::seen::Key;
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
    let why = match fit::unfit(story, &plan, rules, guest) {
        Some(why) => Some(why),
        None => fit::unknown_kind(&hands, &plan, guest).await?,
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
            named: fit::named_pods(story, &plan),
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
