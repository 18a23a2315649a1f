//! The engine itself: inbox, state, actions, effects.

use std::panic::{AssertUnwindSafe, catch_unwind};

use krafla_framework::effect::{Effect, Subject};
use krafla_framework::{
    BELIEVED_MS, Decision, Descheduled, DeschedulerSettings, Policy, REQUEST_EVICT_ONLY, Reason, Reasons, Registry,
    Searcher, Session, TAKEN_ON, UsageSource,
};
use krafla_model::ledger::Discrepancy;
use krafla_model::{ClusterState, Event, JobId, Name, News, Problem, TaskId, TaskStatus, Time};
use tracing::{debug, error, info, warn};

use crate::configuration::{Configuration, ConfigurationHealth};
use crate::descheduling::Descheduling;
use crate::effects::{self, Written};
use crate::explain;
use crate::input::{Input, Outcome};
use crate::parked::Parked;

/// First pause after a refused bind, doubled with each further one; kube-scheduler's `podInitialBackoffSeconds`.
const FIRST_BACKOFF_MS: i64 = 1_000;
/// Longest pause; kube-scheduler's `podMaxBackoffSeconds`.
const LONGEST_BACKOFF_MS: i64 = 10_000;
/// Refusals after which also a member that its gang cannot do without has to pause.
const EAGER_REPAIRS: u32 = 3;
/// How long a pod is left alone whose eviction was refused.
const EVICTION_PAUSE_MS: i64 = 15_000;
/// How long a pod may be without the PodGroup that it names before somebody is told.
const PATIENCE_MS: i64 = 5_000;

/// How the engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Longest pause between a cycle that decided something and the next, in milliseconds.
    pub period_ms: i64,
    /// Whether pods are scheduled one by one by their profile, without queues and jobs.
    pub profile_only: bool,
    /// Whether nothing is scheduled: only the descheduler decides anything.
    pub only_deschedules: bool,
    /// Whether Kubernetes events are among the effects.
    pub events: bool,
    /// Orders equal nodes by a hash of this seed instead of by name.
    pub tie_seed: Option<u64>,
    /// Whether every plugin is asked about every node in every search: what the fast search is measured by.
    pub plain_search: bool,
}

impl Options {
    fn searcher(&self) -> Searcher {
        if self.plain_search { Searcher::plain() } else { Searcher::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            period_ms: 1_000,
            profile_only: false,
            only_deschedules: false,
            events: true,
            tie_seed: None,
            plain_search: false,
        }
    }
}

/// The scheduler: one cluster state, one configuration, and what it takes to run sessions on them.
pub struct Engine {
    options: Options,
    registry: Registry,
    cluster: ClusterState,
    configuration: Configuration,
    health: ConfigurationHealth,
    reasons: Reasons,
    searcher: Searcher,
    descheduling: Option<Descheduling>,
    written: Written,
    parked: Parked,
    /// Tasks whose PodGroup was missing a moment ago.
    lonely: Parked,
    /// Something happened that a session could make use of.
    stirred: bool,
    /// The last cycle decided something, so that the next may find more.
    restless: bool,
    last_cycle: Option<Time>,
    /// A configuration has been refused, and nobody has been told.
    refusal: Option<Effect>,
    cycles: u64,
    panics: u64,
    discrepancies: u64,
}

/// What one step brought.
#[derive(Debug, Default)]
pub struct Step {
    /// What is to be done, in order.
    pub effects: Vec<Effect>,
    /// Inputs that cannot be as they are.
    pub problems: Vec<Problem>,
    /// The cycle that ran, if one was due.
    pub cycle: Option<CycleReport>,
}

/// What one cycle did.
#[derive(Debug, Default)]
pub struct CycleReport {
    /// Its number, from 1.
    pub number: u64,
    /// What it decided, in order.
    pub decisions: Vec<Decision>,
    /// Books that were off, and have been healed.
    pub healed: Vec<Discrepancy>,
    /// There are pods that it did not get to; the next cycle follows at once.
    pub unfinished: bool,
    /// What became of pods that the descheduler looked at, in order.
    pub descheduled: Vec<Descheduled>,
    /// Whether the descheduler had a round.
    pub had_round: bool,
}

impl Engine {
    /// An engine with Volcano's built-in configuration and an empty cluster.
    pub fn new(registry: Registry, options: Options) -> Self {
        let configuration = Configuration::builtin(&registry, options.profile_only);
        Self::with_configuration(registry, options, configuration)
    }

    /// An engine with a policy that was made in some other way than from a text.
    pub fn with_policy(registry: Registry, options: Options, policy: Policy) -> Self {
        let configuration = Configuration::new(policy, &registry);
        Self::with_configuration(registry, options, configuration)
    }

    fn with_configuration(registry: Registry, options: Options, configuration: Configuration) -> Self {
        let configuration = configuration.for_engine(&options);
        let mut cluster = ClusterState::new();
        cluster.set_tie_seed(options.tie_seed);
        cluster.leave_unchecked(configuration.policy.unchecked());
        Self {
            options,
            registry,
            cluster,
            configuration,
            health: ConfigurationHealth { current: true, ..ConfigurationHealth::default() },
            reasons: Reasons::default(),
            searcher: options.searcher(),
            descheduling: None,
            written: Written::default(),
            parked: Parked::default(),
            lonely: Parked::default(),
            stirred: false,
            restless: false,
            last_cycle: None,
            refusal: None,
            cycles: 0,
            panics: 0,
            discrepancies: 0,
        }
    }

    /// The cluster as the engine knows it.
    pub fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    /// The configuration in force.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// How the configuration file is doing.
    pub fn health(&self) -> &ConfigurationHealth {
        &self.health
    }

    /// Why things wait.
    pub fn reasons(&self) -> &Reasons {
        &self.reasons
    }

    /// Where the descheduler takes the use of nodes and pods from; `None` without one.
    pub fn usage_source(&self) -> Option<&UsageSource> {
        self.descheduling.as_ref().map(Descheduling::usage)
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Cycles that were dropped because something in them panicked.
    pub fn panics(&self) -> u64 {
        self.panics
    }

    /// Books that were off so far.
    pub fn discrepancies(&self) -> u64 {
        self.discrepancies
    }

    /// When a step should come even if nothing happens; [`Time::NEVER`] if none is needed.
    pub fn wakes_at(&self) -> Time {
        if self.stirred {
            return self.cluster.now();
        }
        let timed = self.parked.next().min(self.lonely.next()).min(self.cluster.reservations_end());
        let timed = timed.min(self.configuration.plugins.wakes_at(&self.cluster)).min(self.next_round());
        match self.last_cycle {
            Some(last) if self.restless => timed.min(last + self.options.period_ms),
            _ => timed,
        }
    }

    /// Takes in what happened, runs a cycle if one is due, and says what is to be done.
    pub fn step(&mut self, now: Time, inputs: impl IntoIterator<Item = Input>) -> Step {
        let mut step = Step::default();
        self.stirred |= self.configuration.plugins.wakes_at(&self.cluster) <= now;
        self.cluster.set_now(now);
        self.stirred |= self.cluster.expire_reservations();
        for input in inputs {
            self.take_in(input, &mut step);
        }
        step.effects.extend(self.refusal.take());
        self.stirred |= !self.parked.release(now).is_empty();
        self.tell_of_lonely(now, &mut step);
        let due = self.stirred
            || self.next_round() <= now
            || self.last_cycle.is_none()
            || (self.restless && self.last_cycle.is_some_and(|last| now >= last + self.options.period_ms));
        if due {
            let report = self.cycle(&mut step);
            step.cycle = Some(report);
        } else {
            let changed = self.cluster.take_changed_jobs();
            self.written.statuses(&mut self.cluster, &changed, &mut step.effects);
        }
        step
    }

    /// Takes in what happened and decides nothing: what a standby does, so that it can take over at once. What is to
    /// be written waits for the next [`step`](Self::step).
    pub fn follow(&mut self, now: Time, inputs: impl IntoIterator<Item = Input>) -> Vec<Problem> {
        let mut step = Step::default();
        self.cluster.set_now(now);
        self.stirred |= self.cluster.expire_reservations();
        for input in inputs {
            self.take_in(input, &mut step);
        }
        step.problems
    }

    fn take_in(&mut self, input: Input, step: &mut Step) {
        match input {
            Input::Event(event) => {
                let news = self.cluster.news(&event);
                if news == News::Nothing {
                    return;
                }
                let before = self.footing(&event);
                self.forget_reasons(&event);
                let subject = pod_uid(&event);
                self.forget_assumed(&event);
                let problems = self.cluster.apply(event);
                for problem in &problems {
                    warn!(object = problem.object, "{}", problem.message);
                }
                step.problems.extend(problems);
                let after = subject.and_then(|uid| self.status_of(&uid));
                // A pod that goes on along its way, or that was bound by us, gives a session nothing to do.
                let calm =
                    matches!((before, after), (Some(b), Some(a)) if a.is_allocated() && (b.is_allocated() || b == a));
                self.stirred |= news == News::Something && !calm;
            }
            Input::Outcome(outcome) => self.take_in_outcome(outcome, step),
            Input::Configuration { file, text } => self.configure(&file, &text),
            Input::Descheduler(settings) => self.configure_descheduler(settings.map(|settings| *settings)),
            Input::Deschedule => {
                if let Some(descheduling) = &mut self.descheduling {
                    descheduling.next = self.cluster.now();
                }
            }
        }
    }

    /// When the descheduler has its next round.
    fn next_round(&self) -> Time {
        self.descheduling.as_ref().map_or(Time::NEVER, |descheduling| descheduling.next)
    }

    fn configure_descheduler(&mut self, settings: Option<DeschedulerSettings>) {
        let Some(settings) = settings else {
            self.descheduling = None;
            return;
        };
        if self.descheduling.as_ref().is_some_and(|known| known.settings == settings) {
            return;
        }
        let file = settings.file.clone();
        match Descheduling::make(settings, &self.registry, self.cluster.now()) {
            Ok(mut made) => {
                info!(file, "descheduler policy in force");
                for warning in &made.built.warnings {
                    warn!("{warning}");
                }
                // What was moved a moment ago stays, whatever the policy says now.
                if let Some(before) = &self.descheduling {
                    made.built.action.recall(&before.built.action.memory());
                }
                self.descheduling = Some(made);
            }
            Err(problems) => {
                error!(file, "descheduler policy refused, what was in force stays:\n{}", problems.join("\n"));
                self.refuse(&problems);
            }
        }
    }

    /// What was to be in force is refused; an event says so.
    fn refuse(&mut self, problems: &[String]) {
        self.health.refused += 1;
        self.refusal = Some(Effect::Event {
            about: Subject::Scheduler,
            warning: true,
            reason: "InvalidConfiguration".to_owned(),
            message: problems.join("\n"),
        });
    }

    fn take_in_outcome(&mut self, outcome: Outcome, step: &mut Step) {
        match outcome {
            Outcome::Bound { pod } => {
                if let Some(task) = self.cluster.find_task(&pod) {
                    self.cluster.bind_done(task);
                    self.configuration.plugins.post_bind(&self.cluster, task);
                    if self.options.events {
                        step.effects.extend(effects::scheduled(&self.cluster, task));
                    }
                }
            }
            Outcome::BindRefused { pod, message } => {
                // The watch may have been quicker: whoever placed it, it has a node.
                let binding = |task: &TaskId| self.cluster.task(*task).status() == TaskStatus::Binding;
                let Some(task) = self.cluster.find_task(&pod).filter(binding) else { return };
                warn!(pod = %self.cluster.task_label(task), "bind refused: {message}");
                effects::bind_refused(&self.cluster, task, &message, self.options.events, &mut step.effects);
                let retry_at = self.cluster.now() + self.pause_after_refusal(task);
                self.configuration.plugins.forget(&self.cluster, task);
                self.cluster.bind_refused(task, retry_at);
                self.parked.park(task, retry_at);
                self.stirred = true;
            }
            Outcome::Evicted { .. } => {}
            Outcome::EvictRefused { pod, message } => {
                let Some(task) = self.cluster.find_task(&pod) else { return };
                if self.is_taken_on(task, &message) {
                    info!(pod = %self.cluster.task_label(task), "eviction goes on in the background: {message}");
                    let until = self.cluster.now() + BELIEVED_MS;
                    self.cluster.eviction_taken_on(task, until);
                    self.parked.park(task, until);
                    self.stirred = true;
                    return;
                }
                warn!(pod = %self.cluster.task_label(task), "eviction refused: {message}");
                if self.options.events {
                    step.effects.push(effects::eviction_refused(&self.cluster, task, &message));
                }
                // What refused it, a disruption budget as a rule, is asked again later; others may serve meanwhile.
                let retry_at = self.cluster.now() + EVICTION_PAUSE_MS;
                self.cluster.evict_refused(task, retry_at);
                self.parked.park(task, retry_at);
                self.stirred = true;
            }
        }
    }

    /// Whether a refusal says that somebody moves the pod in their own time.
    fn is_taken_on(&self, task: TaskId, message: &str) -> bool {
        let allowed = self.descheduling.as_ref().is_some_and(|descheduling| descheduling.settings.in_background);
        let annotations = &self.cluster.shape_of(task).spec.annotations;
        allowed && annotations.get(REQUEST_EVICT_ONLY).is_some() && message.contains(TAKEN_ON)
    }

    /// How long a refused task pauses, in milliseconds. A member that its gang cannot run without is tried again at
    /// once, a few times, so that nobody takes its room meanwhile.
    fn pause_after_refusal(&self, task: TaskId) -> i64 {
        let refusals = self.cluster.task(task).refusals;
        let job = self.cluster.task(task).job.map(|job| self.cluster.job(job));
        let needed = job.is_some_and(|job| job.min_available() > 1 && job.n_ready() <= job.min_available());
        if needed && refusals < EAGER_REPAIRS {
            return 0;
        }
        let doublings = refusals.saturating_sub(if needed { EAGER_REPAIRS } else { 0 });
        FIRST_BACKOFF_MS.saturating_mul(1 << doublings.min(10)).min(LONGEST_BACKOFF_MS)
    }

    /// A PodGroup often comes a moment after its first pod; only one that does not come is worth telling.
    fn tell_of_lonely(&mut self, now: Time, step: &mut Step) {
        let mut lonely = self.lonely.release(now);
        let misses = |task: &TaskId| {
            let own = self.reasons.own(*task);
            own.is_some_and(|own| matches!(own.reason, Reason::PodGroupNotFound { .. }))
                && self.cluster.get_task(*task).is_some_and(|task| task.job.is_none() && task.status().is_waiting())
        };
        lonely.retain(misses);
        effects::waiting_alone(&self.cluster, &self.reasons, &lonely, self.options.events, &mut step.effects);
    }

    fn configure(&mut self, file: &str, text: &str) {
        self.refusal = None;
        if self.configuration.is_from(text) {
            // A refused change that was taken back.
            if !self.health.current {
                self.health.current = true;
                self.health.problems.clear();
            }
            return;
        }
        match Configuration::read(text, file, &self.registry, self.options.profile_only) {
            Ok((configuration, warnings)) => {
                info!(file, "configuration in force");
                self.cluster.leave_unchecked(configuration.policy.unchecked());
                self.configuration = configuration.for_engine(&self.options);
                self.searcher = self.options.searcher();
                self.health.accepted += 1;
                self.health.current = true;
                self.health.problems = warnings;
                self.stirred = true;
            }
            Err(problems) => {
                error!(file, "configuration refused, the last good one stays:\n{}", problems.join("\n"));
                self.refuse(&problems);
                self.health.current = false;
                self.health.problems = problems;
            }
        }
    }

    fn cycle(&mut self, step: &mut Step) -> CycleReport {
        self.cycles += 1;
        self.stirred = false;
        self.last_cycle = Some(self.cluster.now());
        let span = tracing::debug_span!("session", number = self.cycles);
        let _entered = span.enter();
        let healed = self.cluster.audit_slice(self.cycles);
        for discrepancy in &healed {
            error!("a book was off and has been healed: {discrepancy}");
        }
        self.discrepancies += healed.len() as u64;
        let had_round = self.next_round() <= self.cluster.now();
        let mut outcome = match self.run_session() {
            Some(outcome) => outcome,
            None => {
                self.restless = true; // what it was about is still to be done
                return CycleReport { number: self.cycles, healed, ..CycleReport::default() };
            }
        };
        // In a place of its own: what waits must have a reason also where no action looked.
        let newly = explain::complete(&self.cluster, &mut self.reasons, &self.configuration.action_names);
        outcome.newly_waiting.extend(newly.jobs);
        let plugins = &self.configuration.plugins;
        effects::carry_out(&self.cluster, plugins, &outcome.decisions, self.options.events, &mut step.effects);
        self.written.conditions(&self.cluster, outcome.conditions, self.options.events, &mut step.effects);
        self.written.statuses(&mut self.cluster, &outcome.changed, &mut step.effects);
        self.written.nominations(&self.cluster, &outcome.nominations, &mut step.effects);
        let events = self.options.events;
        if events {
            effects::waiting_jobs(&self.cluster, &self.reasons, &outcome.newly_waiting, &mut step.effects);
        }
        let to_tell = outcome.newly_waiting.iter().chain(&outcome.changed).copied();
        self.written.waiting_pods(&self.cluster, &self.reasons, to_tell, events, &mut step.effects);
        for task in outcome.sent_back {
            let retry_at = self.cluster.now() + FIRST_BACKOFF_MS;
            self.cluster.pause(task, retry_at);
            self.parked.park(task, retry_at);
        }
        for task in newly.tasks {
            self.lonely.park(task, self.cluster.now() + PATIENCE_MS);
        }
        let to_tell = &outcome.newly_waiting_tasks;
        effects::waiting_alone(&self.cluster, &self.reasons, to_tell, self.options.events, &mut step.effects);
        self.stirred |= outcome.unfinished;
        self.restless = !outcome.decisions.is_empty();
        effects::log(&step.effects);
        debug!(decisions = outcome.decisions.len(), "cycle done");
        CycleReport {
            number: self.cycles,
            decisions: outcome.decisions,
            healed,
            unfinished: outcome.unfinished,
            descheduled: outcome.descheduled,
            had_round,
        }
    }

    /// Runs the actions. A panic in one of them means a broken book: the session is dropped, the books are healed, and
    /// the plugins are built anew.
    fn run_session(&mut self) -> Option<krafla_framework::Outcome> {
        let now = self.cluster.now();
        let mut due = self.descheduling.as_mut().filter(|descheduling| descheduling.next <= now);
        let Configuration { plugins, actions, action_names, .. } = &mut self.configuration;
        let (cluster, reasons, searcher) = (&mut self.cluster, &mut self.reasons, &mut self.searcher);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut session = Session::open(cluster, plugins, reasons, searcher, action_names);
            for action in actions.iter_mut() {
                session.run(&mut **action);
            }
            if let Some(descheduling) = &mut due {
                session.run(&mut *descheduling.built.action);
            }
            session.close()
        }));
        if let Some(descheduling) = due {
            descheduling.round_done(now);
        }
        match ran {
            Ok(outcome) => Some(outcome),
            Err(_) => {
                self.panics += 1;
                error!("a session panicked; it is dropped, and the books are recounted");
                self.cluster.abandon_session();
                self.discrepancies += self.cluster.audit().len() as u64;
                self.configuration =
                    Configuration::rebuild(&self.configuration, &self.registry).for_engine(&self.options);
                self.searcher = self.options.searcher();
                None
            }
        }
    }

    /// Where the pod of an event stood before it.
    fn footing(&self, event: &Event) -> Option<TaskStatus> {
        self.status_of(&pod_uid(event)?)
    }

    fn status_of(&self, uid: &Name) -> Option<TaskStatus> {
        Some(self.cluster.task(self.cluster.find_task(uid)?).status())
    }

    /// A pod that had its node only in memory, or whose bind is on its way, is about to go.
    fn forget_assumed(&mut self, event: &Event) {
        let Event::PodGone(uid) = event else { return };
        let binding = |task: &TaskId| self.cluster.task(*task).status() == TaskStatus::Binding;
        if let Some(task) = self.cluster.find_task(uid).filter(binding) {
            self.configuration.plugins.forget(&self.cluster, task);
        }
    }

    /// Ids are used again: what is about to go takes its reasons with it.
    fn forget_reasons(&mut self, event: &Event) {
        match event {
            Event::PodGone(uid) => {
                if let Some(task) = self.cluster.find_task(uid) {
                    self.reasons.clear_task(task);
                    self.written.forget_task(task);
                }
            }
            Event::PodGroupGone { namespace, name } => self.forget_job(namespace, name, None),
            Event::PodGroup(spec) => self.forget_job(&spec.namespace, &spec.name, Some(&spec.uid)),
            _ => {}
        }
    }

    fn forget_job(&mut self, namespace: &Name, name: &Name, successor: Option<&Name>) {
        let job: Option<JobId> = self.cluster.find_job(namespace, name);
        if let Some(job) = job.filter(|job| successor != Some(&self.cluster.job(*job).spec.uid)) {
            self.reasons.clear_job(job);
        }
    }
}

fn pod_uid(event: &Event) -> Option<Name> {
    match event {
        Event::Pod(pod) => Some(pod.uid.clone()),
        _ => None,
    }
}
