//! Kubernetes events: what a person reads under `kubectl describe`.
//!
//! The engine emits one at each transition only. Here equal ones are counted together, as client-go's recorder does,
//! limited in rate, and kept behind binds; warnings before the rest. What does not fit any more is dropped and counted:
//! events are for people, and no decision depends on them.
//!
//! The recorder of the client library would not do: it counts events of one reason together whatever they say, so that
//! the numbers in them grow old, and it looks through all that it remembers at each event.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use krafla_framework::Subject;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::debug;

use super::answer::text_of;
use super::backlog::Backlog;
use super::status::FIELD_MANAGER;
use crate::client::{Clients, Throttle};
use crate::directory::Directory;
use crate::metrics::Metrics;
use crate::watch::{Identity, Kind};

/// Events that wait, of each sort, at most.
const ROOM: usize = 20_000;
/// How long an event makes way for binds: one that warns, and any other. Under a steady load each writer still gets
/// that many through.
const MAKE_WAY: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];
const CALL: Duration = Duration::from_secs(10);
/// Events a second, and at once.
const RATE: (f64, u32) = (500.0, 1_000);
/// Writers; the events about one object go through one of them, so that they keep their order.
const WRITERS: usize = 8;
/// The longest note that the API takes, in bytes.
const LONGEST_NOTE: usize = 1_024;
/// Events that a writer remembers, to count equal ones together.
const REMEMBERED: usize = 2_048;
/// The longest name of an object, so that an event's own fits.
const LONGEST_NAME: usize = 200;

/// Something to be said about an object.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) about: ObjectReference,
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Writes events.
#[derive(Clone)]
pub(crate) struct Events(Arc<Inner>);

struct Inner {
    lanes: Vec<Lane>,
    directory: Directory,
    clients: Clients,
    /// The name that events carry.
    component: String,
    /// What events about the scheduler itself are about.
    scheduler: ObjectReference,
    metrics: Metrics,
}

/// Events that have been written, by UID, reason and note: name in the API and count. Two generations: the older one
/// goes when the newer is full.
#[derive(Default)]
struct Memory {
    newer: BTreeMap<Said, (String, i32)>,
    older: BTreeMap<Said, (String, i32)>,
}

type Said = (String, String, String);

impl Memory {
    fn find(&self, said: &Said) -> Option<(String, i32)> {
        self.newer.get(said).or_else(|| self.older.get(said)).cloned()
    }

    fn note(&mut self, said: Said, name: String, count: i32) {
        if self.newer.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(said, (name, count));
    }
}

#[derive(Default)]
struct Lane {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    warnings: VecDeque<Notice>,
    others: VecDeque<Notice>,
    closed: bool,
}

impl Lane {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    pub(crate) fn start(
        clients: &Clients,
        directory: &Directory,
        backlog: &Backlog,
        metrics: &Metrics,
        component: String,
        scheduler: ObjectReference,
    ) -> (Self, Vec<JoinHandle<()>>) {
        let inner = Arc::new(Inner {
            lanes: (0..WRITERS).map(|_| Lane::default()).collect(),
            directory: directory.clone(),
            clients: clients.clone(),
            component,
            scheduler,
            metrics: metrics.clone(),
        });
        let rate = Throttle::new(RATE.0, RATE.1);
        let writers = (0..WRITERS).map(|lane| {
            let (inner, rate, backlog) = (Arc::clone(&inner), rate.clone(), backlog.clone());
            tokio::spawn(async move {
                let mut memory = Memory::default();
                while let Some(notice) = inner.next(lane).await {
                    backlog.quiet(MAKE_WAY[usize::from(!notice.warning)]).await;
                    rate.turn().await;
                    inner.clients.throttle.turn().await;
                    inner.write(&mut memory, notice).await;
                }
            })
        });
        let writers = writers.collect();
        (Self(inner), writers)
    }

    /// Says something about what an event of the engine is about.
    pub(crate) fn say(&self, about: Subject, warning: bool, reason: String, message: String) {
        let about = match about {
            Subject::Pod(pod) => reference(
                Kind::Pod,
                &Identity {
                    namespace: pod.namespace.to_string(),
                    name: pod.name.to_string(),
                    uid: pod.uid.to_string(),
                },
            ),
            Subject::Job { namespace, name } => {
                let key = (namespace, name);
                let Some(entry) = self.0.directory.group(&key) else { return };
                let (namespace, name) = (key.0.to_string(), key.1.to_string());
                reference(entry.kind, &Identity { namespace, name, uid: entry.uid })
            }
            Subject::Scheduler => self.0.scheduler.clone(),
        };
        self.notice(Notice { about, warning, reason, message });
    }

    /// Says something about any object.
    pub(crate) fn notice(&self, notice: Notice) {
        let lane = &self.0.lanes[lane_of(notice.about.uid.as_deref().unwrap_or_default())];
        let mut waiting = lane.waiting();
        let queue = if notice.warning { &mut waiting.warnings } else { &mut waiting.others };
        if queue.len() >= ROOM / WRITERS {
            queue.pop_front();
            self.0.metrics.event_dropped();
        }
        queue.push_back(notice);
        drop(waiting);
        lane.arrived.notify_one();
    }

    /// No more events come: the writers end once they have written what waits.
    pub(crate) fn close(&self) {
        for lane in &self.0.lanes {
            lane.waiting().closed = true;
            lane.arrived.notify_one();
        }
    }
}

impl Inner {
    async fn next(&self, lane: usize) -> Option<Notice> {
        let lane = &self.lanes[lane];
        loop {
            {
                let mut waiting = lane.waiting();
                let next = waiting.warnings.pop_front().or_else(|| waiting.others.pop_front());
                if next.is_some() || waiting.closed {
                    return next;
                }
            }
            lane.arrived.notified().await;
        }
    }

    async fn write(&self, memory: &mut Memory, notice: Notice) {
        match tokio::time::timeout(CALL, self.send(memory, notice)).await {
            Ok(Ok(())) => self.metrics.event_written(),
            Ok(Err(error)) => {
                debug!("an event was not written: {}", text_of(&error));
                self.metrics.event_dropped();
            }
            Err(_) => self.metrics.event_dropped(),
        }
    }

    async fn send(&self, memory: &mut Memory, notice: Notice) -> Result<(), kube::Error> {
        let Notice { about, warning, reason, message } = notice;
        // Events about objects without a namespace stand in this one.
        let namespace = about.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let api: Api<Event> = Api::namespaced(self.clients.calls.clone(), &namespace);
        let note = shortened(message);
        let said = (about.uid.clone().unwrap_or_default(), reason.clone(), note.clone());
        let now = Timestamp::now();
        if let Some((name, count)) = memory.find(&said) {
            let count = count.saturating_add(1);
            let patch = Patch::Merge(json!({ "count": count, "lastTimestamp": Time(now) }));
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            match api.patch(&name, &params, &patch).await {
                Ok(_) => {
                    memory.note(said, name, count);
                    return Ok(());
                }
                // Events do not live long; this one is written anew.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let object = about.name.as_deref().unwrap_or("krafla");
        let object = &object[..object.floor_char_boundary(LONGEST_NAME)];
        let name = format!("{object}.{:x}", now.as_nanosecond());
        let event = Event {
            metadata: ObjectMeta { name: Some(name.clone()), namespace: Some(namespace), ..ObjectMeta::default() },
            type_: Some(if warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(reason),
            message: Some(note),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource { component: Some(self.component.clone()), host: None }),
            reporting_component: Some(self.component.clone()),
            involved_object: about,
            ..Event::default()
        };
        api.create(&PostParams::default(), &event).await?;
        memory.note(said, name, 1);
        Ok(())
    }
}

/// The reference to an object that an event is about.
pub(crate) fn reference(kind: Kind, identity: &Identity) -> ObjectReference {
    let resource = kind.resource();
    let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
    ObjectReference {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        namespace: filled(&identity.namespace),
        name: filled(&identity.name),
        uid: filled(&identity.uid),
        ..ObjectReference::default()
    }
}

fn lane_of(uid: &str) -> usize {
    uid.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte))) % WRITERS
}

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_NOTE {
        text.truncate(text.floor_char_boundary(LONGEST_NOTE - "…".len()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let cut = shortened("ä".repeat(2_000));
        assert!(cut.len() <= LONGEST_NOTE && cut.ends_with('…'));
        assert_eq!(shortened("short".to_owned()), "short");
    }
}
