//! How much of what matters most is on its way: binds and evictions. What can wait, waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The number of binds and evictions that have been decided and have no outcome yet.
#[derive(Clone)]
pub(crate) struct Backlog(Arc<watch::Sender<usize>>);

/// One of them; it counts until it is dropped.
pub(crate) struct Held(Backlog);

impl Backlog {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// One more.
    pub(crate) fn enter(&self) -> Held {
        // Nobody waits for there being more.
        self.0.send_if_modified(|n| {
            *n += 1;
            false
        });
        Held(self.clone())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until there is none, but no longer than `most`: under a steady load the rest must go on too, slowly.
    pub(crate) async fn quiet(&self, most: Duration) {
        if self.len() == 0 {
            return;
        }
        let mut changes = self.0.subscribe();
        let _ = tokio::time::timeout(most, changes.wait_for(|n| *n == 0)).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.send_if_modified(|n| {
            *n = n.saturating_sub(1);
            *n == 0
        });
    }
}
