//! The watches that bring in what is seen.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1 as core;
use krafla_api::crds::{PodGroup, Queue};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;

use crate::names::Names;
use crate::seen::Seen;

/// What is seen, kept up to date as long as this lives.
pub(crate) struct Eyes {
    seen: Arc<Mutex<Seen>>,
    _watches: JoinSet<()>,
}

/// Reads the news of one kind.
type Read<T> = fn(&mut Seen, Event<T>);

impl Eyes {
    /// Opens them, and waits until everything that is there has been seen.
    pub(crate) async fn open(client: &Client, names: Names, label: Option<String>, knows_volcano: bool) -> Self {
        let mut this = Self { seen: Arc::new(Mutex::new(Seen::new(names, label))), _watches: JoinSet::new() };
        let (listed, mut all_listed) = channel(8);
        this.watch::<core::Node>(client, &listed, |seen, event| match event {
            Event::Apply(node) | Event::InitApply(node) => seen.node(node),
            Event::Delete(node) => seen.node_gone(node),
            Event::Init | Event::InitDone => {}
        });
        this.watch::<core::Pod>(client, &listed, |seen, event| match event {
            Event::Init => seen.list_begins(),
            Event::Apply(pod) | Event::InitApply(pod) => seen.pod(pod),
            Event::Delete(pod) => seen.pod_gone(pod.metadata.uid.as_deref().unwrap_or_default()),
            Event::InitDone => seen.list_ends(),
        });
        this.watch::<core::Event>(client, &listed, |seen, event| {
            if let Event::Apply(event) | Event::InitApply(event) = event {
                seen.event(&event);
            }
        });
        let mut n = 3;
        if knows_volcano {
            n += 2;
            this.watch::<PodGroup>(client, &listed, |seen, event| match event {
                Event::Apply(group) | Event::InitApply(group) => seen.group(group),
                Event::Delete(group) => seen.group_gone(&group),
                Event::Init | Event::InitDone => {}
            });
            this.watch::<Queue>(client, &listed, |seen, event| match event {
                Event::Apply(queue) | Event::InitApply(queue) => seen.queue(queue),
                Event::Delete(queue) => seen.queue_gone(queue),
                Event::Init | Event::InitDone => {}
            });
        }
        drop(listed);
        for _ in 0..n {
            let _ = all_listed.recv().await;
        }
        this.seen().begin();
        this
    }

    /// What is seen now. Not to be held while waiting.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch<T>(&mut self, client: &Client, listed: &Sender<()>, read: Read<T>)
    where
        T: kube::Resource<DynamicType = ()> + Clone + Debug + Send + Sync + serde_of::Read + 'static,
    {
        let (seen, mut listed) = (Arc::clone(&self.seen), Some(listed.clone()));
        let mut events = watcher(Api::<T>::all(client.clone()), Config::default()).default_backoff().boxed();
        self._watches.spawn(async move {
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        let done = matches!(event, Event::InitDone);
                        read(&mut seen.lock().unwrap_or_else(PoisonError::into_inner), event);
                        if let Some(listed) = listed.take_if(|_| done) {
                            let _ = listed.send(()).await;
                        }
                    }
                    Err(error) => tracing::debug!(%error, "a watch broke"),
                }
            }
        });
    }
}

/// A shorter name for what the client library wants of a type.
mod serde_of {
    /// Can be read from JSON.
    pub(super) trait Read: k8s_openapi::serde::de::DeserializeOwned {}
    impl<T: k8s_openapi::serde::de::DeserializeOwned> Read for T {}
}

/// Whether an object is marked as of a scenario.
pub(crate) fn is_ours(object: &Value) -> bool {
    object["metadata"]["labels"][crate::admission::LABEL].is_string()
}
