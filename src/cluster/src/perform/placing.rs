//! Who writes to a waiting pod: its status is not written once its bind has been decided, and the bind waits for a status
//! that is just being written. Otherwise a condition that says why the pod waits could be written over the server's own,
//! which says that it does no more.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use krafla_model::Name;
use tokio::sync::Notify;

/// Pods whose bind has been decided, and pods whose status is being written.
#[derive(Clone, Default)]
pub(crate) struct Placing(Arc<State>);

#[derive(Default)]
struct State {
    pods: Mutex<Pods>,
    written: Notify,
}

#[derive(Default)]
struct Pods {
    decided: BTreeSet<Name>,
    writing: BTreeSet<Name>,
}

/// Leave to write the status of a waiting pod, until it is dropped.
pub(crate) struct Writing(Placing, Name);

impl Placing {
    fn pods(&self) -> MutexGuard<'_, Pods> {
        self.0.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bind of a pod has been decided.
    pub(crate) fn decide(&self, pod: &Name) {
        self.pods().decided.insert(pod.clone());
    }

    /// The pod waits again, or is gone.
    pub(crate) fn forget(&self, pod: &str) {
        self.pods().decided.remove(pod);
    }

    /// Leave to write a status; none for a pod whose bind has been decided.
    pub(crate) fn write(&self, pod: &Name) -> Option<Writing> {
        let mut pods = self.pods();
        if pods.decided.contains(pod) {
            return None;
        }
        pods.writing.insert(pod.clone());
        Some(Writing(self.clone(), pod.clone()))
    }

    /// Waits until no status of the pod is being written.
    pub(crate) async fn undisturbed(&self, pod: &Name) {
        loop {
            let written = self.0.written.notified();
            if !self.pods().writing.contains(pod) {
                return;
            }
            written.await;
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.pods().writing.remove(&self.1);
        self.0.0.written.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bind_waits_for_a_status_and_no_status_follows_it() {
        let (placing, pod) = (Placing::default(), Name::from("p"));
        let writing = placing.write(&pod).expect("it waits");
        placing.decide(&pod);
        assert!(placing.write(&pod).is_none(), "its bind has been decided");
        let bind = placing.undisturbed(&pod);
        assert!(tokio::time::timeout(Duration::from_secs(1), bind).await.is_err(), "a status is being written");
        drop(writing);
        placing.undisturbed(&pod).await;
        placing.forget(&pod);
        assert!(placing.write(&pod).is_some(), "the bind was refused");
    }
}
