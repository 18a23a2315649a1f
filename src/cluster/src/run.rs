//! Start-up, in order, and the end.

use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use krafla_engine::recording::{Recorder, RecordingError};
use krafla_engine::{Configuration, Engine, Input, Options};
use krafla_framework::{BuildDescheduler, Descheduled, DeschedulerSettings, Registry, UsageSource};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::client::{Access, AccessError};
use crate::controllers::{Controllers, Selection};
use crate::directory::Directory;
use crate::extenders::HttpExtenders;
use crate::feed::{Feed, Scope};
use crate::health::Health;
use crate::http::{self, SetLevel};
use crate::inbox::{Outcomes, inbox};
use crate::leader::{self, Election, ElectionError};
use crate::metrics::Metrics;
use crate::perform::{Performer, Role, text_of};
use crate::scheduler::{Duty, Scheduler};
use crate::usage::Wanted;
use crate::watch::{Change, Kind, watch};
use crate::{configuration, queues, usage};

/// Changes under way between the watches and the feed, at most.
const CHANGES: usize = 1_024;
/// How long what is on its way may take once the process has been told to stop.
const LAST_CALLS: Duration = Duration::from_secs(25);

/// How a scheduler runs on a cluster.
pub struct Settings {
    /// The API server, and who asks.
    pub access: Access,
    /// Which objects are ours.
    pub scope: Scope,
    /// The configuration file; without one the built-in configuration is in force.
    pub configuration: Option<PathBuf>,
    /// Whether a configuration that cannot be read or is wrong at the start ends the process, instead of leaving the
    /// built-in one in force.
    pub configuration_required: bool,
    /// How the engine runs.
    pub engine: Options,
    /// The election; without one this process leads.
    pub election: Option<Election>,
    /// The controllers that run beside the scheduler.
    pub controllers: Selection,
    /// Where `/metrics` is.
    pub metrics_address: Option<SocketAddr>,
    /// Where `/healthz` and `/readyz` are.
    pub health_address: Option<SocketAddr>,
    /// The folder of the socket at which the log level can be set, and how to set it.
    pub levels: Option<(PathBuf, SetLevel)>,
    /// Binds at once.
    pub binds_at_once: usize,
    /// Writes what the engine is told and decides to this file, for `krafla replay`. Only without an election, since a
    /// recording begins with an engine that knows nothing and ends with the process.
    pub record: Option<PathBuf>,
    /// The descheduler, if there is one.
    pub descheduler: Option<Descheduling>,
    /// The metrics, so that what measures spans can write to them too.
    pub metrics: Metrics,
}

/// How a descheduler runs on a cluster.
pub struct Descheduling {
    /// The file with its policy; it is read again when it changes.
    pub policy: PathBuf,
    /// All else; its file and text are those of `policy`.
    pub settings: DeschedulerSettings,
    /// Whether nothing else is done: no pod is bound, and nothing is written but evictions and what is said of them.
    pub alone: bool,
    /// Whether one round is enough: the process ends when all of it has been carried out.
    pub once: bool,
    /// Hears what came of each round.
    pub tell: Option<Tell>,
}

/// Hears what came of a round.
pub type Tell = Box<dyn Fn(&[Descheduled]) + Send + Sync>;

/// Why a scheduler does not run, or does no more.
#[derive(Debug, Error)]
pub enum RunError {
    /// The cluster is not known.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The election cannot work.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// The server does not answer.
    #[error("the API server does not answer: {0}")]
    Server(String),
    /// A queue that must be there cannot be made.
    #[error("{0}")]
    Queues(String),
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The recording cannot be written.
    #[error("the recording cannot be written: {0}")]
    Recording(#[from] RecordingError),
    /// The recording cannot be begun.
    #[error("{path}: {error}")]
    RecordingFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The scheduling thread has ended.
    #[error("the scheduling thread has ended; see the log")]
    ThreadEnded,
    /// Not everything that was on its way could be finished.
    #[error("stopped with calls still on their way after {} s", LAST_CALLS.as_secs())]
    Unfinished,
}

/// What a scheduler that has just begun tells of itself.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Where `/metrics` is.
    pub metrics: Option<SocketAddr>,
    /// Where `/healthz` is.
    pub health: Option<SocketAddr>,
}

/// Runs a scheduler until `stop` says so. `started` hears where its pages are.
pub async fn run(
    mut settings: Settings,
    mut registry: Registry,
    started: Option<oneshot::Sender<Addresses>>,
    stop: watch::Receiver<bool>,
) -> Result<(), RunError> {
    if let Some(election) = &settings.election {
        election.check()?;
    }
    let clients = settings.access.clients().await?;
    let (health, metrics) = (Health::default(), settings.metrics.clone());
    let mut addresses = Addresses::default();
    let listen = |address| move |error| RunError::Listen { address, error };
    if let Some(address) = settings.metrics_address {
        addresses.metrics = Some(http::serve_metrics(address, metrics.clone()).await.map_err(listen(address))?);
    }
    if let Some(address) = settings.health_address {
        addresses.health = Some(http::serve_health(address, health.clone()).await.map_err(listen(address))?);
    }
    if let Some((folder, set)) = &settings.levels
        && let Err(failed) = http::serve_levels(folder, set.clone())
    {
        warn!("the log level cannot be set at run time: {}: {failed}", folder.display());
    }
    if let Some(started) = started {
        let _ = started.send(addresses);
    }
    match timeout(Duration::from_secs(30), clients.calls.apiserver_version()).await {
        Ok(Ok(version)) => info!(version = version.git_version, "the API server answers"),
        Ok(Err(failed)) => return Err(RunError::Server(text_of(&failed))),
        Err(_) => return Err(RunError::Server("no answer within 30 s".to_owned())),
    }

    let extenders = HttpExtenders::new(Handle::current(), clients.clone());
    registry.binding_plugins.push(extenders.binding_plugin());
    registry.extender_calls = Some(Arc::new(extenders));

    let (mailbox, letters) = inbox();
    let text = read_configuration(&settings, &registry).await?;
    if let (Some(path), Some(text)) = (&settings.configuration, &text) {
        let input = Input::Configuration { file: path.display().to_string(), text: text.clone() };
        mailbox.input(input).await;
    }

    let descheduler = settings.descheduler.take();
    let alone = descheduler.as_ref().is_some_and(|descheduler| descheduler.alone);
    let for_plugins = text.as_ref().is_some_and(|text| usage::is_asked_for(text, &registry.catalogue()));
    let (wanted, wanted_seen) = watch::channel(Wanted { plugins: for_plugins, ..Wanted::default() });
    let mut known = None;
    if let Some(descheduler) = &descheduler {
        let (policy, source) = read_policy(descheduler, &registry).await?;
        let first = DeschedulerSettings { interval_ms: descheduler.interval_ms(), ..policy.clone() };
        mailbox.input(Input::Descheduler(Some(Box::new(first)))).await;
        wanted.send_modify(|wanted| wanted.descheduler = source);
        known = Some(policy);
    }
    let round_waits_for_use = wanted.borrow().descheduler != UsageSource::default();

    if !settings.scope.profile_only && !alone {
        queues::make_sure(&clients, &settings.scope.default_queue).await.map_err(RunError::Queues)?;
    }

    let (leads, leads_seen) = watch::channel(settings.election.is_none());
    let (stop_leading, stop_leading_seen) = watch::channel(false);
    let directory = Directory::default();
    let component = match settings.scope.scheduler_names.first() {
        Some(name) if settings.scope.scheduler_names.len() == 1 => name.clone(),
        _ if settings.scope.profile_only => "default-scheduler".to_owned(),
        _ => "volcano".to_owned(),
    };
    let role = Role {
        component,
        scheduler: itself(&settings),
        binds_at_once: settings.binds_at_once,
        binding_plugins: registry.binding_plugins.clone(),
    };
    let outcomes = Outcomes(mailbox.clone());
    let performer = Performer::start(&clients, &directory, &outcomes, &metrics, role, &leads_seen);
    let (controllers, _) = Controllers::start(&clients, performer.events(), &settings.controllers, leads_seen.clone());
    let watched: Vec<Kind> = Kind::watched(settings.scope.profile_only).collect();
    let mut feed = Feed::new(
        settings.scope,
        mailbox.clone(),
        directory,
        controllers,
        performer.events().clone(),
        performer.statuses().clone(),
        performer.placing().clone(),
    );

    let mut annotations = registry.pod_annotations.clone();
    if descheduler.is_some() {
        annotations.extend(krafla_api::keys::OF_DESCHEDULER);
        feed.read_details();
    }
    feed.keep_annotations(&annotations);
    feed.serve(performer.interest().clone());

    // Tasks that are ended when this function returns.
    let mut helpers = JoinSet::new();
    let (changes, changes_seen) = mpsc::channel::<Change>(CHANGES);
    for kind in watched {
        helpers.spawn(watch(clients.watches.clone(), kind, changes.clone()));
    }
    drop(changes);
    helpers.spawn(feed.run(changes_seen));
    if let Some(path) = settings.configuration.clone() {
        let (wanted, catalogue) = (wanted.clone(), registry.catalogue());
        let input = move |path: &Path, text: String| {
            wanted.send_modify(|wanted| wanted.plugins = usage::is_asked_for(&text, &catalogue));
            Input::Configuration { file: path.display().to_string(), text }
        };
        helpers.spawn(configuration::follow(path, text, mailbox.clone(), input));
    }
    let begins_round = descheduler.as_ref().is_some_and(|descheduler| descheduler.once) && round_waits_for_use;
    helpers.spawn(usage::follow(clients.clone(), wanted_seen, mailbox.clone(), begins_round));
    if let (Some(descheduler), Some(known), Some(build)) = (&descheduler, known, registry.descheduler) {
        let (text, interval_ms) = (known.text.clone(), descheduler.interval_ms());
        let make = move |path: &Path, text: String| {
            let settings = DeschedulerSettings { file: path.display().to_string(), text, ..known.clone() };
            // A policy that is wrong changes nothing; the engine says what is wrong with it.
            if let Ok(built) = build(&settings) {
                wanted.send_modify(|wanted| wanted.descheduler = built.usage);
            }
            Input::Descheduler(Some(Box::new(DeschedulerSettings { interval_ms, ..settings })))
        };
        helpers.spawn(configuration::follow(descheduler.policy.clone(), Some(text), mailbox, make));
    }
    let leadership = tokio::spawn(performer.follow_leadership(leads_seen.clone(), metrics.clone()));
    let election = settings
        .election
        .map(|election| tokio::spawn(leader::run(clients.calls.clone(), election, leads.clone(), stop_leading_seen)));

    let recorder = begin_recording(settings.record, settings.engine)?;
    let (engine_options, thread_health) = (settings.engine, health.clone());
    let ended = on_a_thread_of_its_own(move || Scheduler {
        engine: Engine::new(registry, engine_options),
        letters,
        performer,
        metrics,
        health: thread_health,
        leads: leads_seen,
        stop,
        recorder,
        duty: Duty::of(descheduler, round_waits_for_use),
    });
    let performer = ended.await;
    health.set_ended();
    let finished = match performer {
        Ok(performer) => {
            info!("stopping: finishing what is on its way");
            // Who reads the cluster also writes statuses; those writers end with the last who uses them.
            helpers.shutdown().await;
            leadership.abort();
            let _ = leadership.await;
            performer.finish(LAST_CALLS).await
        }
        Err(_) => {
            error!("the scheduling thread has ended");
            stop_leading.send_replace(true);
            return Err(RunError::ThreadEnded);
        }
    };
    // Only now may another begin.
    stop_leading.send_replace(true);
    if let Some(election) = election {
        let _ = timeout(Duration::from_secs(10), election).await;
    }
    drop(leads);
    if finished { Ok(()) } else { Err(RunError::Unfinished) }
}

impl Descheduling {
    /// A process that has one round needs no clock for it.
    fn interval_ms(&self) -> i64 {
        if self.once { 0 } else { self.settings.interval_ms }
    }
}

/// The policy, and where it takes the use of nodes from. Without one there is no descheduler, so what is wrong ends the
/// process.
async fn read_policy(
    descheduler: &Descheduling,
    registry: &Registry,
) -> Result<(DeschedulerSettings, UsageSource), RunError> {
    let text = configuration::read(&descheduler.policy).await.map_err(RunError::Configuration)?;
    let file = descheduler.policy.display().to_string();
    let settings = DeschedulerSettings { file, text, ..descheduler.settings.clone() };
    let build: BuildDescheduler =
        registry.descheduler.ok_or_else(|| RunError::Configuration("this build has no descheduler".to_owned()))?;
    let built = build(&settings).map_err(|problems| RunError::Configuration(problems.join("\n")))?;
    Ok((settings, built.usage))
}

/// Sessions compute; a thread of their own keeps them from holding up calls, and calls from holding up them.
fn on_a_thread_of_its_own(make: impl FnOnce() -> Scheduler + Send + 'static) -> oneshot::Receiver<Performer> {
    let (done, ended) = oneshot::channel();
    let runtime = Handle::current();
    let spawned = std::thread::Builder::new().name("sessions".to_owned()).spawn(move || {
        let _ = done.send(runtime.block_on(make().run()));
    });
    if let Err(failed) = spawned {
        error!("no thread for sessions: {failed}");
    }
    ended
}

/// The content of the configuration file, if there is one that can be read. What is wrong in it the engine says.
async fn read_configuration(settings: &Settings, registry: &Registry) -> Result<Option<String>, RunError> {
    let Some(path) = &settings.configuration else { return Ok(None) };
    let text = match configuration::read(path).await {
        Ok(text) => text,
        Err(why) if settings.configuration_required => return Err(RunError::Configuration(why)),
        Err(why) => {
            error!("{why}; the built-in configuration is in force");
            return Ok(None);
        }
    };
    if settings.configuration_required {
        Configuration::read(&text, &path.display().to_string(), registry, settings.scope.profile_only)
            .map_err(|problems| RunError::Configuration(problems.join("\n")))?;
    }
    Ok(Some(text))
}

fn begin_recording(path: Option<PathBuf>, options: Options) -> Result<Option<Recorder<BufWriter<File>>>, RunError> {
    let Some(path) = path else { return Ok(None) };
    let file = File::create(&path).map_err(|error| RunError::RecordingFile { path, error })?;
    Ok(Some(Recorder::new(BufWriter::new(file), options)?))
}

/// What events about the scheduler are about: its Lease, or, without an election, its namespace.
fn itself(settings: &Settings) -> ObjectReference {
    match &settings.election {
        Some(election) => ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(election.namespace.clone()),
            name: Some(election.name.clone()),
            ..ObjectReference::default()
        },
        None => ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Namespace".to_owned()),
            name: Some("default".to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectReference::default()
        },
    }
}
