//! Calls by key: one at a time for each object, the newest wish instead of all of them, again after a failure.
//!
//! What waits is one value for each object, however often it changes, so memory is bounded by the number of objects.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::pauses::Pauses;

/// Pauses after failed calls.
const FAILED: Pauses = Pauses::new(Duration::from_millis(250), Duration::from_secs(30));

/// A wish for an object that a newer one may be put over.
pub(crate) trait Wish: Send + 'static {
    /// Makes this the wish for both: what `newer` says counts.
    fn update(&mut self, newer: Self);

    /// Whether it makes way for nobody.
    fn is_urgent(&self) -> bool {
        false
    }
}

/// What became of a call.
pub(crate) enum Called<V> {
    /// There is nothing more to do.
    Done,
    /// It has to be tried again, unless there is a newer wish.
    Again(V),
    /// It made way for others, and comes [`PUT_OFF`] later, with what is wished until then.
    Later(V),
}

/// How long a call that makes way is put off.
pub(crate) const PUT_OFF: Duration = Duration::from_secs(1);

/// How many calls run at once, and how far apart two calls for one object are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) at_once: usize,
    pub(crate) apart: Duration,
}

/// Calls by key. Cloning gives another hand to the same lanes.
pub(crate) struct Lanes<K, V> {
    wishes: UnboundedSender<(K, V)>,
}

impl<K, V> Clone for Lanes<K, V> {
    fn clone(&self) -> Self {
        Self { wishes: self.wishes.clone() }
    }
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Wish> Lanes<K, V> {
    /// Starts the lanes. They end, with what waits done once more, when the last hand is dropped.
    pub(crate) fn start<F, C>(pace: Pace, call: C) -> (Self, tokio::task::JoinHandle<()>)
    where
        F: Future<Output = Called<V>> + Send + 'static,
        C: Fn(K, V) -> F + Send + Sync + 'static,
    {
        let (wishes, arrivals) = unbounded_channel();
        (Self { wishes }, tokio::spawn(Agenda::new(pace).run(arrivals, Arc::new(call))))
    }

    /// Wishes something for an object.
    pub(crate) fn wish(&self, key: K, value: V) {
        // Fails only while the process ends.
        let _ = self.wishes.send((key, value));
    }
}

struct Waiting<V> {
    value: V,
    due: Instant,
    turn: u64,
}

struct Agenda<K, V> {
    pace: Pace,
    waiting: BTreeMap<K, Waiting<V>>,
    /// Keys in order of their time, then of their arrival.
    due: BTreeSet<(Instant, u64, K)>,
    /// Keys that are being called, or were so a moment ago: their wishes wait outside the order.
    busy: BTreeSet<K>,
    /// Keys whose call has ended, and until when they rest.
    resting: BTreeSet<(Instant, K)>,
    failures: BTreeMap<K, Pauses>,
    turn: u64,
}

impl<K: Ord + Clone + Send + Sync + 'static, V: Wish> Agenda<K, V> {
    fn new(pace: Pace) -> Self {
        Self {
            pace,
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
            busy: BTreeSet::new(),
            resting: BTreeSet::new(),
            failures: BTreeMap::new(),
            turn: 0,
        }
    }

    async fn run<F, C>(mut self, mut arrivals: UnboundedReceiver<(K, V)>, call: Arc<C>)
    where
        F: Future<Output = Called<V>> + Send + 'static,
        C: Fn(K, V) -> F + Send + Sync + 'static,
    {
        let mut running: JoinSet<(K, Called<V>)> = JoinSet::new();
        let mut open = true;
        loop {
            self.wake(Instant::now(), open);
            while running.len() < self.pace.at_once
                && let Some((key, value)) = self.next(Instant::now(), open)
            {
                self.busy.insert(key.clone());
                let call = Arc::clone(&call);
                running.spawn(async move {
                    let called = call(key.clone(), value).await;
                    (key, called)
                });
            }
            if !open && running.is_empty() && self.waiting.is_empty() {
                return;
            }
            let due = self.due.first().map(|(due, ..)| *due).filter(|_| running.len() < self.pace.at_once);
            let rested = self.resting.first().map(|(until, _)| *until);
            let pause = async {
                match due.into_iter().chain(rested).min() {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                arrival = arrivals.recv(), if open => match arrival {
                    Some((key, value)) => self.arrive(key, value, Instant::now()),
                    None => open = false,
                },
                Some(ended) = running.join_next(), if !running.is_empty() => {
                    // A call that panicked keeps its key busy; the others go on.
                    if let Ok((key, called)) = ended {
                        self.ended(key, called, open);
                    }
                },
                () = pause => {}
            }
        }
    }

    fn ended(&mut self, key: K, called: Called<V>, open: bool) {
        let now = Instant::now();
        match called {
            Called::Again(value) if open => {
                let pause = self.failures.entry(key.clone()).or_insert(FAILED).pause();
                self.again(key, value, now + pause);
            }
            Called::Later(value) => self.again(key, value, now + PUT_OFF),
            Called::Again(_) | Called::Done => {
                self.failures.remove(&key);
                self.resting.insert((now + self.pace.apart, key));
            }
        }
    }

    /// Lets wishes for keys that have rested back into the order.
    fn wake(&mut self, now: Instant, open: bool) {
        while let Some((until, _)) = self.resting.first()
            && (*until <= now || !open)
            && let Some((_, key)) = self.resting.pop_first()
        {
            self.busy.remove(&key);
            if let Some(waiting) = self.waiting.get(&key) {
                self.due.insert((waiting.due, waiting.turn, key));
            }
        }
    }

    /// A wish comes in.
    fn arrive(&mut self, key: K, value: V, now: Instant) {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.value.update(value);
            // What had made way does so no longer; a pause after a failure stays.
            if waiting.due > now && waiting.value.is_urgent() && !self.failures.contains_key(&key) {
                if self.due.remove(&(waiting.due, waiting.turn, key.clone())) {
                    self.due.insert((now, waiting.turn, key));
                }
                waiting.due = now;
            }
            return;
        }
        self.turn += 1;
        let waiting = Waiting { value, due: now, turn: self.turn };
        if !self.busy.contains(&key) {
            self.due.insert((now, self.turn, key.clone()));
        }
        self.waiting.insert(key, waiting);
    }

    fn again(&mut self, key: K, mut older: V, at: Instant) {
        self.busy.remove(&key);
        if let Some(newer) = self.waiting.remove(&key) {
            older.update(newer.value);
        }
        self.turn += 1;
        self.due.insert((at, self.turn, key.clone()));
        self.waiting.insert(key, Waiting { value: older, due: at, turn: self.turn });
    }

    /// The next key whose time has come; any, once nothing more arrives.
    fn next(&mut self, now: Instant, open: bool) -> Option<(K, V)> {
        let (due, _, key) = self.due.first()?;
        if *due > now && open {
            return None;
        }
        let key = key.clone();
        self.due.pop_first();
        let waiting = self.waiting.remove(&key)?;
        Some((key, waiting.value))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    impl Wish for Vec<u32> {
        fn update(&mut self, newer: Self) {
            *self = newer;
        }
    }

    type Log = Arc<Mutex<Vec<(u128, &'static str, Vec<u32>)>>>;

    fn pace(at_once: usize, apart_ms: u64) -> Pace {
        Pace { at_once, apart: Duration::from_millis(apart_ms) }
    }

    /// Lanes whose calls take 100 ms and fail as long as `failing` says.
    fn lanes(pace: Pace, failing: u32) -> (Lanes<&'static str, Vec<u32>>, tokio::task::JoinHandle<()>, Log) {
        let log = Log::default();
        let start = Instant::now();
        let (noted, left) = (Arc::clone(&log), Arc::new(Mutex::new(failing)));
        let (lanes, ended) = Lanes::start(pace, move |key, value: Vec<u32>| {
            let (noted, left) = (Arc::clone(&noted), Arc::clone(&left));
            async move {
                noted.lock().expect("unpoisoned").push((start.elapsed().as_millis(), key, value.clone()));
                tokio::time::sleep(Duration::from_millis(100)).await;
                let mut left = left.lock().expect("unpoisoned");
                if *left > 0 {
                    *left -= 1;
                    return Called::Again(value);
                }
                Called::Done
            }
        });
        (lanes, ended, log)
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_a_key_at_a_time_and_the_newest_wish_counts() {
        let (lanes, ended, log) = lanes(pace(8, 0), 0);
        lanes.wish("a", vec![1]);
        tokio::time::sleep(Duration::from_millis(10)).await;
        lanes.wish("a", vec![2]);
        lanes.wish("b", vec![7]);
        lanes.wish("a", vec![3]);
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(lanes);
        ended.await.expect("ended");
        assert_eq!(*log.lock().expect("unpoisoned"), [(0, "a", vec![1]), (10, "b", vec![7]), (100, "a", vec![3])]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_call_is_made_again_with_what_is_wished_then() {
        let (lanes, ended, log) = lanes(pace(8, 0), 2);
        lanes.wish("a", vec![1]);
        tokio::time::sleep(Duration::from_millis(400)).await;
        lanes.wish("a", vec![2]);
        tokio::time::sleep(Duration::from_millis(5_000)).await;
        drop(lanes);
        ended.await.expect("ended");
        assert_eq!(
            *log.lock().expect("unpoisoned"),
            [(0, "a", vec![1]), (350, "a", vec![1]), (950, "a", vec![2])],
            "100 ms each, and pauses of 250 and 500 ms"
        );
    }

    #[derive(Debug, PartialEq)]
    struct Patient(u32);

    impl Wish for Patient {
        fn update(&mut self, newer: Self) {
            self.0 = newer.0;
        }

        fn is_urgent(&self) -> bool {
            self.0 == 0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_makes_way_comes_later_once_and_the_urgent_at_once() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let (noted, start) = (Arc::clone(&log), Instant::now());
        let (lanes, ended) = Lanes::start(pace(1, 0), move |key, value: Patient| {
            let noted = Arc::clone(&noted);
            async move {
                // Everybody makes way until 2.5 s have passed.
                if !value.is_urgent() && start.elapsed() < Duration::from_millis(2_500) {
                    return Called::Later(value);
                }
                noted.lock().expect("unpoisoned").push((start.elapsed().as_millis(), key, value.0));
                Called::Done
            }
        });
        lanes.wish("a", Patient(1));
        lanes.wish("b", Patient(2));
        tokio::time::sleep(Duration::from_millis(500)).await;
        lanes.wish("a", Patient(3));
        lanes.wish("b", Patient(0));
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(lanes);
        ended.await.expect("ended");
        assert_eq!(*log.lock().expect("unpoisoned"), [(500, "b", 0), (3_000, "a", 3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_for_one_object_keep_their_distance_and_the_last_wish_is_not_lost() {
        let (lanes, ended, log) = lanes(pace(1, 1_000), 0);
        lanes.wish("a", vec![1]);
        tokio::time::sleep(Duration::from_millis(50)).await;
        lanes.wish("a", vec![2]);
        tokio::time::sleep(Duration::from_millis(100)).await;
        lanes.wish("a", vec![3]);
        drop(lanes);
        ended.await.expect("ended");
        let log = log.lock().expect("unpoisoned");
        assert_eq!(log.last().map(|(_, _, value)| value.clone()), Some(vec![3]));
        assert_eq!(log.len(), 2);
    }
}
