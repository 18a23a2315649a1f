//! Who waits for which object: a bind that waits for a claim is told by the watch that the claim has changed, so that it
//! need not ask again and again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// Kind, namespace and name of an object.
type Key = (String, String, String);

/// What somebody waits for.
#[derive(Clone, Default)]
pub(crate) struct Interest(Arc<Mutex<BTreeMap<Key, Vec<Arc<Notify>>>>>);

impl Interest {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<Arc<Notify>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An object has changed, or is gone.
    pub(crate) fn changed(&self, kind: &str, namespace: &str, name: &str) {
        let known = self.known();
        if known.is_empty() {
            return;
        }
        for waiter in known.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned())).into_iter().flatten() {
            waiter.notify_one(); // kept for one that does not wait at this moment
        }
    }

    /// One who may wait.
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter { interest: self.clone(), objects: Mutex::default() }
    }
}

/// One who waits for objects. From the first question about an object on no change of it is missed, until this is dropped.
pub(crate) struct Waiter {
    interest: Interest,
    objects: Mutex<BTreeMap<Key, Arc<Notify>>>,
}

impl Waiter {
    /// Waits until an object may have changed, but at most so long. Answers how long it was.
    pub(crate) async fn changed(&self, kind: &str, namespace: &str, name: &str, at_most: Duration) -> Duration {
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        let notify = {
            let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || {
                let notify = Arc::new(Notify::new());
                self.interest.known().entry(key.clone()).or_default().push(Arc::clone(&notify));
                notify
            };
            Arc::clone(objects.entry(key.clone()).or_insert_with(new))
        };
        if at_most.is_zero() {
            return Duration::ZERO;
        }
        let began = Instant::now();
        let _ = timeout(at_most, notify.notified()).await;
        began.elapsed()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut known = self.interest.known();
        for (key, notify) in self.objects.get_mut().unwrap_or_else(PoisonError::into_inner).iter() {
            if let Some(waiters) = known.get_mut(key) {
                waiters.retain(|waiter| !Arc::ptr_eq(waiter, notify));
                if waiters.is_empty() {
                    known.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_change_ends_the_wait_even_if_it_came_before_it() {
        let interest = Interest::default();
        let (one, other) = (interest.waiter(), interest.waiter());
        for waiter in [&one, &other] {
            assert_eq!(waiter.changed("Claim", "ns", "c", Duration::ZERO).await, Duration::ZERO);
        }
        interest.changed("Claim", "ns", "c");
        interest.changed("Claim", "ns", "another");
        for waiter in [&one, &other] {
            assert_eq!(waiter.changed("Claim", "ns", "c", LONG).await, Duration::ZERO);
        }
        assert_eq!(one.changed("Claim", "ns", "c", LONG).await, LONG, "told once");
        drop((one, other));
        assert!(interest.known().is_empty(), "nobody waits any more");
    }
}
