//! The engine's thread: letters in, effects out. Between two letters it sleeps.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use krafla_engine::recording::Recorder;
use krafla_engine::{Engine, Input, Outcome};
use krafla_framework::effect::by_beneficiary;
use krafla_framework::{DescheduleResult, Descheduled, Effect, TAKEN_ON};
use krafla_model::{Name, Time};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, error, info};

use crate::health::Health;
use crate::inbox::Letter;
use crate::metrics::Metrics;
use crate::perform::Performer;
use crate::run::{Descheduling, Tell};

/// Letters that one step takes in at most, so that a flood does not keep decisions waiting.
const MOST_LETTERS: usize = 8_192;
/// Fewer than this many are worth waiting a moment for more: one step and one wake-up instead of one for each.
const FEW_LETTERS: usize = 256;
/// That moment; a pod that comes alone waits no longer.
const GATHER: Duration = Duration::from_millis(2);
/// That moment while binds are on their way: their outcomes come in a stream, and each alone changes no decision.
const GATHER_OUTCOMES: Duration = Duration::from_millis(20);
/// How often the engine's numbers are taken for the metrics.
const OBSERVE_EVERY: Duration = Duration::from_secs(1);

/// The engine with its letters and its hands.
pub(crate) struct Scheduler {
    pub(crate) engine: Engine,
    pub(crate) letters: mpsc::Receiver<Letter>,
    pub(crate) performer: Performer,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    pub(crate) leads: watch::Receiver<bool>,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) recorder: Option<Recorder<BufWriter<File>>>,
    pub(crate) duty: Duty,
}

/// What this process is for, beside or instead of scheduling.
#[derive(Default)]
pub(crate) struct Duty {
    /// Nothing is written but evictions and what is said of them.
    evictions_only: bool,
    /// One round of the descheduler, and the end.
    once: bool,
    /// The round begins when the cluster is known, and not only when its use is.
    round_when_known: bool,
    round_done: bool,
    tell: Option<Tell>,
    /// Whether evictions may be taken on by others.
    in_background: bool,
    /// Labels of evictions that are on their way, by the pod's UID.
    on_their_way: BTreeMap<Name, Descheduled>,
}

impl Duty {
    pub(crate) fn of(descheduler: Option<Descheduling>, round_waits_for_use: bool) -> Self {
        let Some(descheduler) = descheduler else { return Self::default() };
        Self {
            evictions_only: descheduler.alone,
            once: descheduler.once,
            round_when_known: descheduler.once && !round_waits_for_use,
            tell: descheduler.tell,
            in_background: descheduler.settings.in_background,
            ..Self::default()
        }
    }

    /// Whether an effect is this process's to carry out.
    fn wants(&self, effect: &Effect) -> bool {
        match effect {
            _ if !self.evictions_only => true,
            Effect::Evict { .. } => true,
            Effect::Event { reason, .. } => {
                ["Evict", "EvictionRefused", "InvalidConfiguration"].contains(&reason.as_str())
            }
            _ => false,
        }
    }

    /// A round is over.
    fn note_round(&mut self, notes: &[Descheduled], metrics: &Metrics) {
        self.round_done = true;
        for note in notes {
            match note.result {
                DescheduleResult::Evicted => drop(self.on_their_way.insert(note.pod.uid.clone(), note.clone())),
                _ => metrics.descheduled(note, note.result.as_str()),
            }
        }
        if let Some(tell) = &self.tell {
            tell(notes);
        }
    }

    /// An eviction has its outcome.
    fn note_outcome(&mut self, outcome: &Outcome, metrics: &Metrics) {
        let (pod, result) = match outcome {
            Outcome::Evicted { pod } => (pod, "success"),
            Outcome::EvictRefused { pod, message } if self.in_background && message.contains(TAKEN_ON) => {
                (pod, "background")
            }
            Outcome::EvictRefused { pod, .. } => (pod, "error"),
            _ => return,
        };
        if let Some(note) = self.on_their_way.remove(pod) {
            metrics.descheduled(&note, result);
        }
    }
}

impl Scheduler {
    /// Runs until told to stop, and hands over what is still on its way.
    pub(crate) async fn run(mut self) -> Performer {
        let mut letters: Vec<Letter> = Vec::new();
        let (mut complete, mut now) = (false, present(Time(0)));
        let (mut unseen, mut observed) = (false, Instant::now());
        loop {
            let leading = complete && *self.leads.borrow();
            let wake = if leading { self.engine.wakes_at() } else { Time::NEVER };
            let nap = async {
                match wake {
                    Time::NEVER => std::future::pending().await,
                    at => sleep(until(at)).await,
                }
            };
            let observe = async {
                match unseen {
                    true => sleep_until(observed + OBSERVE_EVERY).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = self.stop.wait_for(|stop| *stop) => {
                    let _ = changed;
                    break;
                }
                changed = self.leads.changed() => {
                    if changed.is_err() {
                        break;
                    }
                }
                n = self.letters.recv_many(&mut letters, MOST_LETTERS) => {
                    if n == 0 {
                        break;
                    }
                    if letters.len() < FEW_LETTERS {
                        sleep(if self.performer.is_quiet() { GATHER } else { GATHER_OUTCOMES }).await;
                        while letters.len() < MOST_LETTERS
                            && let Ok(letter) = self.letters.try_recv()
                        {
                            letters.push(letter);
                        }
                    }
                }
                () = nap => {}
                () = observe => {}
            }
            now = present(now);
            self.health.working_since(Some(now));
            let before = complete;
            let mut inputs = self.open(&mut letters, &mut complete, now);
            let leading = complete && *self.leads.borrow_and_update();
            if complete && !before {
                info!(
                    nodes = self.engine.cluster().nodes().len(),
                    pods = self.engine.cluster().n_tasks(),
                    "the cluster is known"
                );
                self.health.set_known();
            }
            unseen |= !inputs.is_empty();
            if leading {
                if self.duty.round_when_known && complete && !before {
                    inputs.push(Input::Deschedule);
                }
                self.step(now, inputs);
            } else {
                self.engine.follow(now, inputs);
            }
            self.health.working_since(None);
            if self.duty.once && self.duty.round_done && self.performer.is_quiet() && self.duty.on_their_way.is_empty()
            {
                break;
            }
            if unseen && observed.elapsed() >= OBSERVE_EVERY {
                self.metrics.observe(&self.engine);
                (unseen, observed) = (false, Instant::now());
            }
        }
        if let Some(recorder) = self.recorder.take()
            && let Err(failed) = recorder.finish()
        {
            error!("the recording could not be finished: {failed}");
        }
        self.performer
    }

    fn open(&mut self, letters: &mut Vec<Letter>, complete: &mut bool, now: Time) -> Vec<Input> {
        let mut inputs = Vec::with_capacity(letters.len());
        for letter in letters.drain(..) {
            match letter {
                Letter::Input(input) => {
                    if let Input::Outcome(Outcome::Bound { pod }) = &*input
                        && let Some(task) = self.engine.cluster().find_task(pod)
                    {
                        self.metrics.pod_bound(self.engine.cluster(), task, now);
                    }
                    if let Input::Outcome(outcome) = &*input {
                        self.duty.note_outcome(outcome, &self.metrics);
                    }
                    inputs.push(*input);
                }
                Letter::Complete => *complete = true,
            }
        }
        inputs
    }

    fn step(&mut self, now: Time, inputs: Vec<Input>) {
        let began = Instant::now();
        let recorded = self.recorder.is_some().then(|| inputs.clone());
        let step = self.engine.step(now, inputs);
        if let (Some(recorder), Some(inputs)) = (&mut self.recorder, recorded)
            && let Err(failed) = recorder.record(now, inputs, &step)
        {
            error!("the recording ends here: {failed}");
            self.recorder = None;
        }
        if let Some(report) = &step.cycle {
            let took = began.elapsed();
            self.metrics.session(took);
            for (certificate, victims) in by_beneficiary(&report.decisions) {
                self.metrics.victims_chosen(&certificate.action, victims.len());
            }
            if report.had_round {
                self.metrics.round(took);
                self.duty.note_round(&report.descheduled, &self.metrics);
            }
            debug!(number = report.number, decisions = report.decisions.len(), ?took, "session");
        }
        for effect in step.effects.into_iter().filter(|effect| self.duty.wants(effect)) {
            self.performer.perform(effect);
        }
    }
}

/// The time, in milliseconds since 1970; never before `last`, even when somebody sets the clock back.
fn present(last: Time) -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    last.max(Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

fn until(at: Time) -> Duration {
    Duration::from_millis(u64::try_from(at.0 - present(Time(0)).0).unwrap_or(0))
}
