//! The world of a simulation: a model API server in virtual time, with kubelets, controllers and faults, about one
//! engine.
//!
//! Time jumps from one happening to the next, so an idle stretch costs nothing. At each instant everything that happens
//! then is applied first, then the scheduler is told, and what it decides is carried out, until the instant is quiet.

mod agenda;
mod budget;
mod controllers;
mod devices;
mod faults;
mod kubelet;
mod objects;
mod quota;
mod rollout;
mod storage;
mod store;
mod usage;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use krafla_engine::recording::{Recorder, RecordingError};
use krafla_engine::{CycleReport, Engine, Input, Options};
use krafla_framework::{DescheduleResult, DeschedulerSettings, Effect, Registry, Subject};
use krafla_model::{Event, Name, Problem, Time};

use agenda::Agenda;
pub use agenda::Happening;
pub use controllers::set_ready;
pub use faults::{Fault, Verb};
pub use objects::{Controller, Life, Submission, Submitted};
pub use rollout::Pace;
use store::Store;
pub use store::{Job, Pod};
pub use usage::{Use, UseOf, amounts};

/// How long the parts of the world that are not the scheduler take, and how it runs.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// How the engine runs.
    pub engine: Options,
    /// The configuration text, and the name of the file it is from; `None`: the built-in one.
    pub configuration: Option<(String, String)>,
    /// From the bind call to the bound pod, in milliseconds.
    pub bind_latency_ms: i64,
    /// From bound to running.
    pub start_latency_ms: i64,
    /// From the eviction to the end of the pod, for pods without a grace period of their own.
    pub evict_grace_ms: i64,
    /// What becomes of the work of a pod that is made again.
    pub restart: Restart,
    /// How the descheduler runs, if there is one.
    pub descheduler: Option<DeschedulerSettings>,
    /// Whether ended jobs are deleted at once, as a controller with a time to live of 0 would. Keeps memory flat.
    pub collect_finished: bool,
}

/// What becomes of the work of a pod that was evicted or lost, and is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// It is lost: the new pod begins at the beginning.
    #[default]
    FromStart,
    /// None of it is lost, as with a checkpoint just before the end; the new pod takes so long to get there, in
    /// milliseconds.
    FromCheckpoint {
        /// From its start until it goes on.
        cost_ms: i64,
    },
}

/// What watches a world: reports and checks hang themselves in here.
pub trait Observer {
    /// Time is about to move from `from` to `to`; the state between them is the present one.
    fn passes(&mut self, _world: &World, _from: Time, _to: Time) {}

    /// A cycle has run, and its effects have been carried out.
    fn cycle(&mut self, _world: &World, _report: &CycleReport) {}

    /// A pod has been bound, has left its node, or has ended.
    fn pod(&mut self, _world: &World, _pod: usize, _change: PodChange) {}
}

/// What became of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodChange {
    /// It has a node.
    Bound,
    /// It runs.
    Started,
    /// It has ended by itself.
    Ended,
    /// It was evicted by the scheduler.
    Evicted,
    /// It is gone, ended or not.
    Gone,
}

/// Nobody watches.
pub struct Unobserved;

impl Observer for Unobserved {}

/// The world.
pub struct World {
    pub(crate) setup: Setup,
    registry: fn() -> Registry,
    engine: Engine,
    now: Time,
    agenda: Agenda,
    store: Store,
    faults: faults::Faults,
    inbox: Vec<Input>,
    /// Namespaces whose budgets have to be recounted.
    stale_budgets: BTreeSet<Name>,
    /// Budgets from which evictions were taken, and of which nobody has been told since.
    spent_budgets: BTreeSet<(Name, Name)>,
    /// Reasons of the Kubernetes events emitted so far, by what they are about.
    emitted: BTreeMap<Subject, Vec<String>>,
    problems: Vec<Problem>,
    changes: Vec<(usize, PodChange)>,
    decisions: u64,
    evictions: u64,
    usage: usage::Usage,
    /// Pods that the descheduler evicted, or would have.
    descheduled: usize,
    /// Cycles of schedulers that have been restarted since.
    earlier_cycles: u64,
    recorder: Option<Recorder<Box<dyn Write>>>,
    recording_failed: Option<RecordingError>,
}

impl World {
    /// An empty world at time zero.
    pub fn new(setup: Setup, registry: fn() -> Registry) -> Self {
        let mut world = Self {
            engine: Engine::new(registry(), setup.engine),
            setup,
            registry,
            now: Time(0),
            agenda: Agenda::default(),
            store: Store::default(),
            faults: faults::Faults::default(),
            inbox: Vec::new(),
            stale_budgets: BTreeSet::new(),
            spent_budgets: BTreeSet::new(),
            emitted: BTreeMap::new(),
            problems: Vec::new(),
            changes: Vec::new(),
            decisions: 0,
            evictions: 0,
            usage: usage::Usage::default(),
            descheduled: 0,
            earlier_cycles: 0,
            recorder: None,
            recording_failed: None,
        };
        if let Some((file, text)) = world.setup.configuration.clone() {
            world.inbox.push(Input::Configuration { file, text });
        }
        world.tell_descheduler();
        world
    }

    /// Writes everything that the scheduler is told and decides to `out`.
    pub fn record_to(&mut self, out: Box<dyn Write>) -> Result<(), RecordingError> {
        self.recorder = Some(Recorder::new(out, self.setup.engine)?);
        Ok(())
    }

    /// Ends the recording, if there is one.
    pub fn finish_recording(&mut self) -> Result<(), RecordingError> {
        if let Some(error) = self.recording_failed.take() {
            return Err(error);
        }
        self.recorder.take().map_or(Ok(()), Recorder::finish)
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The scheduler.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Pods ever made, by number; those that are gone included unless ended jobs are collected.
    pub fn pod(&self, index: usize) -> &Pod {
        &self.store.pods[index]
    }

    /// How many pods were ever made.
    pub fn n_pods(&self) -> usize {
        self.store.pods.len()
    }

    /// Jobs ever submitted, in order of submission.
    pub fn jobs(&self) -> &[Job] {
        &self.store.jobs
    }

    /// Nodes there are, with the events that made them what they are.
    pub fn nodes(&self) -> impl Iterator<Item = &krafla_model::NodeSpec> {
        self.store.nodes.values()
    }

    /// Whether there is a node of this name, or was.
    pub fn had_node(&self, name: &str) -> bool {
        self.store.nodes.contains_key(name) || self.store.former_nodes.contains(name)
    }

    /// Reasons of the events emitted about something.
    pub fn emitted(&self, subject: &Subject) -> &[String] {
        self.emitted.get(subject).map_or(&[], Vec::as_slice)
    }

    /// Problems with objects, as the scheduler reported them.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Notes a problem with an input.
    pub fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Jobs whose last pod has ended.
    pub fn n_finished(&self) -> usize {
        self.store.n_finished
    }

    /// Binds and evictions decided so far.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Evictions decided so far.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Pods that the descheduler evicted, or would have in a dry run.
    pub fn descheduled(&self) -> usize {
        self.descheduled
    }

    /// Cycles so far, of all schedulers that ran.
    pub fn cycles(&self) -> u64 {
        self.earlier_cycles + self.engine.cycles()
    }

    /// Plans something. What is planned for one instant happens in the order of planning.
    pub fn plan(&mut self, at: Time, happening: Happening) {
        self.agenda.add(at.max(self.now), happening);
    }

    /// The next instant at which anything can happen; [`Time::NEVER`] if nothing ever will.
    pub fn next_instant(&self) -> Time {
        if self.something_arrives() {
            return self.now;
        }
        self.agenda.next().min(self.engine.wakes_at())
    }

    /// Lives through everything up to `until`, that instant included, and stops there.
    pub fn run_until(&mut self, until: Time, observer: &mut dyn Observer) {
        loop {
            let next = self.next_instant();
            if next > until || next == Time::NEVER {
                break;
            }
            self.move_to(next, observer);
            self.live_through_instant(observer);
        }
        if until != Time::NEVER {
            self.move_to(until, observer);
        }
    }

    fn move_to(&mut self, to: Time, observer: &mut dyn Observer) {
        if to > self.now {
            observer.passes(self, self.now, to);
            self.now = to;
        }
    }

    /// Applies what happens now, lets the scheduler see it, carries out what it decides, and again until all is quiet.
    fn live_through_instant(&mut self, observer: &mut dyn Observer) {
        loop {
            while let Some(happening) = self.agenda.take(self.now) {
                self.happen(happening);
            }
            self.recount_budgets();
            self.tell_observer(observer);
            let inputs = self.arrivals();
            if inputs.is_empty() && self.engine.wakes_at() > self.now {
                return;
            }
            let recorded = self.recorder.is_some().then(|| inputs.clone());
            let step = self.engine.step(self.now, inputs);
            if let (Some(recorder), Some(inputs)) = (&mut self.recorder, recorded)
                && let Err(error) = recorder.record(self.now, inputs, &step)
            {
                self.recording_failed.get_or_insert(error);
                self.recorder = None;
            }
            self.problems.extend(step.problems);
            for effect in step.effects {
                self.carry_out(effect);
            }
            self.tell_observer(observer);
            if let Some(report) = &step.cycle {
                let goes = |note: &&krafla_framework::Descheduled| !matches!(note.result, DescheduleResult::Refused(_));
                self.descheduled += report.descheduled.iter().filter(goes).count();
                self.decisions += report.decisions.len() as u64;
                observer.cycle(self, report);
            }
        }
    }

    /// Whether anything gets through to the scheduler now: answers to its calls do even while its watch is down.
    fn something_arrives(&self) -> bool {
        let watch_is_down = self.faults.watch_is_down(self.now);
        self.inbox.iter().any(|input| !watch_is_down || !matches!(input, Input::Event(_)))
    }

    fn arrivals(&mut self) -> Vec<Input> {
        let inbox = std::mem::take(&mut self.inbox);
        if !self.faults.watch_is_down(self.now) {
            return inbox;
        }
        let (held_back, arrivals) = inbox.into_iter().partition(|input| matches!(input, Input::Event(_)));
        self.inbox = held_back;
        arrivals
    }

    fn tell_observer(&mut self, observer: &mut dyn Observer) {
        for (pod, change) in std::mem::take(&mut self.changes) {
            observer.pod(self, pod, change);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Submit(submission) => self.submit(*submission),
            Happening::BindLands { pod, node, claims } => self.bind_lands(pod, &node, &claims),
            Happening::BindRefused { pod, message } => self.bind_fails(pod, message),
            Happening::Starts { pod } => self.starts(pod),
            Happening::Ends { pod } => self.ends(pod),
            Happening::Terminated { pod } => self.terminated(pod),
            Happening::Recreate { pod } => self.recreate(pod),
            Happening::EvictFrom { namespace, name } => self.evicted_by_someone(namespace.as_ref(), &name),
            Happening::Object(event) => self.change_object(*event),
            Happening::ClaimTemplate(template) => self.change_template(*template),
            Happening::DeleteJob { namespace, name } => self.delete_job(namespace.as_ref(), &name),
            Happening::DeletePod { namespace, name } => self.delete_pod(namespace.as_ref(), &name),
            Happening::Ungate { namespace, name, whole_job } => self.ungate(namespace.as_ref(), &name, whole_job),
            Happening::Rollout { namespace, name, pace } => self.begin_rollout(namespace.as_ref(), &name, pace),
            Happening::RolloutSees { job } => self.advance_rollout(job),
            Happening::Configure { file, text } => {
                self.setup.configuration = Some((file.clone(), text.clone()));
                self.inbox.push(Input::Configuration { file, text });
            }
            Happening::Fault(fault) => self.begin_fault(fault),
            Happening::WatchReturns => self.relist(),
            Happening::Restart => self.restart_scheduler(),
            Happening::Use(change) => self.changes_use(change),
            Happening::Measure => self.measure(),
            Happening::Deschedule => self.inbox.push(Input::Deschedule),
            Happening::Nothing => {}
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Bind { pod, node, claims, .. } => self.bind_called(&pod.uid, node, claims),
            Effect::Evict { pod, delete, .. } => self.evict_called(&pod.uid, delete),
            Effect::JobStatus { namespace, name, phase, .. } => {
                self.store.set_phase(&namespace, &name, phase);
                self.recount_quotas(&namespace);
            }
            Effect::OpenGate { pod } => self.open_gate(&pod.uid),
            Effect::Deallocate { namespace, name, uid } => self.deallocate(namespace, name, &uid),
            Effect::Nominate { pod, node } => self.nominated(&pod.uid, node),
            Effect::JobCondition { .. } | Effect::PodCondition { .. } | Effect::QueueStatus { .. } => {}
            Effect::Event { about, reason, .. } => {
                let reasons = self.emitted.entry(about).or_default();
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
    }

    /// A new scheduler in place of the old one: it knows nothing and is told everything.
    fn restart_scheduler(&mut self) {
        self.earlier_cycles += self.engine.cycles();
        self.engine = Engine::new((self.registry)(), self.setup.engine);
        self.recorder = None;
        self.inbox.clear();
        if let Some((file, text)) = self.setup.configuration.clone() {
            self.inbox.push(Input::Configuration { file, text });
        }
        self.tell_descheduler();
        self.relist();
    }

    fn tell_descheduler(&mut self) {
        if let Some(settings) = self.setup.descheduler.clone() {
            self.inbox.push(Input::Descheduler(Some(Box::new(settings))));
        }
    }

    /// Tells the scheduler of every object that there is, as a new list would.
    fn relist(&mut self) {
        let events: Vec<Event> = self.store.list().collect();
        self.inbox.extend(events.into_iter().map(Input::Event));
    }

    fn tell(&mut self, event: Event) {
        self.inbox.push(Input::Event(event));
    }

    fn pod_index(&self, uid: &Name) -> Option<usize> {
        self.store.find_pod(uid)
    }
}
