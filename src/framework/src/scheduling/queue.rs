//! kube-scheduler's queue: pods that are ready, that back off, and that wait for something to happen.
//!
//! A pod enters through PreEnqueue, is tried in the order of QueueSort, and if it finds no node it rests until an event
//! comes that can help one of the plugins that refused it, by their hints. Then it backs off, longer each time. Times
//! are Kubernetes': 1 s doubled up to 10 s, in windows of a second; 5 minutes of rest at most.

mod parked;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use krafla_model::cluster_event::{About, ActionType, ClusterEvent, EventResource};
use krafla_model::{ClusterState, JobId, Name, TaskId, TaskStatus, Time};

use crate::plugin_set::PluginSet;
use crate::rank::{Rank, RankedQueue};
use crate::scheduling::plugin::{NodePlugin, QueuedAt};
use crate::scheduling::point::ExtensionPoint;
use crate::scheduling::verdict::Why;
use parked::{KeptBy, Parked};

/// Times of the queue, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueTimes {
    /// `podInitialBackoffSeconds`.
    pub initial_backoff_ms: i64,
    /// `podMaxBackoffSeconds`; 0 switches back-off off.
    pub max_backoff_ms: i64,
    /// `--pod-max-in-unschedulable-pods-duration`.
    pub max_rest_ms: i64,
}

impl Default for QueueTimes {
    fn default() -> Self {
        Self { initial_backoff_ms: 1_000, max_backoff_ms: 10_000, max_rest_ms: 300_000 }
    }
}

/// The back-off ends in windows of this many milliseconds.
const WINDOW_MS: i64 = 1_000;

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Ready to be tried.
    Active,
    /// Backs off until this time.
    Backoff {
        /// The end of its window.
        until: Time,
        /// After an error rather than a refusal: it is not taken out early.
        after_error: bool,
    },
    /// Waits for an event since this time.
    Unschedulable {
        /// When it came to rest.
        since: Time,
    },
    /// A PreEnqueue plugin keeps it out.
    Gated {
        /// The plugin.
        by: &'static str,
        /// Its words.
        why: Why,
    },
    /// It has been taken out and has its node, or is being tried.
    InFlight,
}

/// A pod in the queue.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    uid: Name,
    part: Part,
    times: QueuedAt,
    tried: bool,
    /// Attempts so far.
    pub attempts: u32,
    refusals: u32,
    errors: u32,
    /// Plugins that refused it last; an empty set wakes with everything.
    rejectors: BTreeSet<String>,
}

impl QueuedPod {
    /// Where it is.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Plugins that refused it last, by name.
    pub fn unschedulable_plugins(&self) -> &BTreeSet<String> {
        &self.rejectors
    }
}

/// Why a pod goes back into the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// These plugins refused it.
    By(BTreeSet<String>),
    /// Something failed.
    Error,
}

/// Who keeps a pod that these plugins refused.
fn kept_by(cluster: &ClusterState, task: TaskId, plugins: BTreeSet<String>) -> KeptBy {
    let scheduler = cluster.get_task(task).map(|_| cluster.shape_of(task).spec.scheduler_name.clone());
    KeptBy { scheduler: scheduler.unwrap_or_default(), plugins }
}

/// Whether `ask` holds for one of the plugins that keep a task; if none does, everything may help.
fn kept_by_any(
    plugins: &PluginSet,
    cluster: &ClusterState,
    task: TaskId,
    by: &BTreeSet<String>,
    ask: impl Fn(&dyn NodePlugin) -> bool,
) -> bool {
    by.is_empty() || plugins.profile_for(cluster, task).any_plugin(by, ask)
}

/// Whether a plugin wants to hear of such events at all.
fn listens_to(plugin: &dyn NodePlugin, event: &ClusterEvent) -> bool {
    let of_its =
        |(resource, action): &(EventResource, ActionType)| *resource == event.resource && action.has_any(event.action);
    plugin.events().is_none_or(|events| events.iter().any(of_its)) && plugin.may_help(event)
}

type Place = (Rank, QueuedAt, Name, TaskId);

/// The queue.
#[derive(Debug)]
pub struct SchedulingQueue {
    times: QueueTimes,
    pods: BTreeMap<TaskId, QueuedPod>,
    by_uid: BTreeMap<Name, TaskId>,
    active: RankedQueue<TaskId, Place>,
    backoff: BTreeSet<(Time, Place)>,
    /// Of those that back off.
    places: BTreeMap<TaskId, Place>,
    resting: Parked,
    gated: Parked,
    in_flight: BTreeSet<TaskId>,
    /// Pods that PreEnqueue has kept out since the last [`Self::take_kept_out`].
    kept_out: Vec<TaskId>,
    /// Whether the pods that there are have been taken in.
    primed: bool,
}

impl SchedulingQueue {
    /// An empty queue.
    pub fn new(times: QueueTimes) -> Self {
        Self {
            times,
            pods: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            active: RankedQueue::default(),
            backoff: BTreeSet::new(),
            places: BTreeMap::new(),
            resting: Parked::default(),
            gated: Parked::default(),
            in_flight: BTreeSet::new(),
            kept_out: Vec::new(),
            primed: false,
        }
    }

    /// The pod of a task, if it is in the queue.
    pub fn get(&self, task: TaskId) -> Option<&QueuedPod> {
        self.pods.get(&task)
    }

    /// How many pods are ready, back off, rest, and are kept out.
    pub fn sizes(&self) -> [usize; 4] {
        [self.active.len(), self.backoff.len(), self.resting.len(), self.gated.len()]
    }

    /// When it wants to be looked at even if nothing happens; [`Time::NEVER`] if it need not.
    pub fn wakes_at(&self) -> Time {
        let backoff = self.backoff.first().map_or(Time::NEVER, |(until, _)| *until);
        let rest = self.resting.first().map_or(Time::NEVER, |(since, _)| since + self.times.max_rest_ms);
        backoff.min(rest)
    }

    /// Takes in what has happened: new pods, pods that are gone, and for those that wait what may help them.
    /// Cost: events, times the sets of plugins that keep pods, and the pods of those sets that an event may help.
    pub fn update(&mut self, plugins: &PluginSet, cluster: &ClusterState, events: &[ClusterEvent]) {
        if !std::mem::replace(&mut self.primed, true) {
            let all: Vec<TaskId> = cluster.tasks().map(|(id, _)| id).collect();
            all.into_iter().for_each(|task| self.add(plugins, cluster, task));
        }
        self.settle_in_flight(plugins, cluster);
        for event in events {
            match &event.about {
                About::Pod { task: Some(task), .. } => self.add(plugins, cluster, *task),
                About::Pod { task: None, uid, .. } => self.forget(uid),
                _ => {}
            }
            self.wake(plugins, cluster, event);
        }
        self.flush(plugins, cluster);
    }

    /// Adds a pod that waits, if it is not here yet. One that has changed is here already.
    fn add(&mut self, plugins: &PluginSet, cluster: &ClusterState, task: TaskId) {
        let Some(pod) = cluster.get_task(task) else { return };
        if let Some(known) = self.pods.get(&task) {
            if known.uid == pod.uid {
                if !pod.status().is_waiting() && known.part != Part::InFlight {
                    self.remove(task);
                }
                return;
            }
            self.remove(task); // its id belongs to another pod now
        }
        if !pod.status().is_waiting() || plugins.named_profile_for(cluster, task).is_none() {
            return;
        }
        let now = cluster.now();
        let times = QueuedAt { entered: now, first_attempt: now };
        let (uid, part) = (pod.uid.clone(), Part::InFlight);
        let queued = QueuedPod {
            uid,
            part,
            times,
            tried: false,
            attempts: 0,
            refusals: 0,
            errors: 0,
            rejectors: BTreeSet::new(),
        };
        self.by_uid.insert(queued.uid.clone(), task);
        self.pods.insert(task, queued);
        self.activate(plugins, cluster, task);
    }

    /// Lets a pod in, if PreEnqueue agrees.
    pub fn activate(&mut self, plugins: &PluginSet, cluster: &ClusterState, task: TaskId) {
        if !self.pods.contains_key(&task) {
            return;
        }
        self.take_out(task);
        let profile = plugins.profile_for(cluster, task);
        if let Err((by, why)) = profile.run_pre_enqueue_plugins(cluster, task) {
            self.gated.insert(task, Time(0), kept_by(cluster, task, BTreeSet::from([by.to_owned()])));
            self.kept_out.push(task);
            self.set_part(task, Part::Gated { by, why });
            return;
        }
        let place = self.place(plugins, cluster, task);
        self.active.push(task, place);
        self.set_part(task, Part::Active);
    }

    /// Pods that PreEnqueue has kept out since the last call, and still does: the plugin, and its words.
    pub fn take_kept_out(&mut self) -> Vec<(TaskId, &'static str, Why)> {
        let tasks = std::mem::take(&mut self.kept_out);
        let said = |task: TaskId| match &self.pods.get(&task)?.part {
            Part::Gated { by, why } => Some((task, *by, why.clone())),
            _ => None,
        };
        tasks.into_iter().filter_map(said).collect()
    }

    /// Lets a pod in that rests or backs off, whatever its back-off.
    pub fn activate_waiting(&mut self, plugins: &PluginSet, cluster: &ClusterState, task: TaskId) {
        let waits = |pod: &QueuedPod| matches!(pod.part, Part::Unschedulable { .. } | Part::Backoff { .. });
        if self.pods.get(&task).is_some_and(waits) && self.may_come_early(cluster, task) {
            self.activate(plugins, cluster, task);
        }
    }

    /// The next pod to be tried; when none is ready, the first of those that back off after a refusal.
    pub fn pop(&mut self, cluster: &ClusterState) -> Option<TaskId> {
        loop {
            let next = self.active.pop().or_else(|| {
                let may = |place: &Place| !self.backs_off_after_error(place.3) && self.may_come_early(cluster, place.3);
                let early = self.backoff.iter().find(|(_, place)| may(place))?.1.3;
                self.take_out(early);
                Some(early)
            })?;
            if self.begin_attempt(cluster, next) {
                return Some(next);
            }
        }
    }

    /// `first`, which has been taken out, and with it the pods of its group that are ready, back off or rest: they are
    /// tried together. Those that PreEnqueue keeps out stay. The more important come first, then who was tried first.
    pub fn pop_group(&mut self, cluster: &ClusterState, first: TaskId, group: JobId) -> Vec<TaskId> {
        let is_out = |pod: &QueuedPod| matches!(pod.part, Part::InFlight | Part::Gated { .. });
        let mut members: Vec<TaskId> = cluster.job(group).tasks().collect();
        members.retain(|member| *member != first && self.pods.get(member).is_some_and(|pod| !is_out(pod)));
        members.retain(|member| {
            self.take_out(*member);
            self.begin_attempt(cluster, *member)
        });
        members.push(first);
        members.sort_by_cached_key(|member| {
            let (pod, queued) = (cluster.task(*member), self.pods.get(member));
            (Reverse(pod.priority), queued.map(|queued| queued.times.first_attempt), pod.uid.clone())
        });
        members
    }

    /// Notes that a pod is tried that has been taken out; `false` if it cannot be any more.
    fn begin_attempt(&mut self, cluster: &ClusterState, task: TaskId) -> bool {
        let Some(pod) = self.pods.get_mut(&task) else { return false };
        let alive = cluster.get_task(task).is_some_and(|live| live.uid == pod.uid && !live.deleting);
        // One that was nominated may be promised its node meanwhile.
        let waits = alive && matches!(cluster.task(task).status(), TaskStatus::Pending | TaskStatus::Pipelined);
        if waits {
            pod.attempts += 1;
            if !std::mem::replace(&mut pod.tried, true) {
                pod.times.first_attempt = cluster.now();
            }
        }
        self.set_part(task, Part::InFlight);
        self.in_flight.insert(task);
        waits
    }

    /// Puts a pod back that was tried and refused: it rests until something helps, or backs off after an error.
    pub fn put_back(&mut self, plugins: &PluginSet, cluster: &ClusterState, task: TaskId, refused: Refused) {
        self.take_out(task);
        let now = cluster.now();
        let Some(pod) = self.pods.get_mut(&task) else { return };
        pod.times.entered = now;
        match refused {
            Refused::Error => {
                pod.errors += 1;
                pod.rejectors.clear();
                self.back_off(plugins, cluster, task, true);
            }
            Refused::By(plugins) => {
                (pod.errors, pod.refusals) = (0, pod.refusals + 1);
                pod.rejectors.clone_from(&plugins);
                self.resting.insert(task, now, kept_by(cluster, task, plugins));
                self.set_part(task, Part::Unschedulable { since: now });
            }
        }
    }

    /// Pods whose node turned out not to be theirs come back; those that have it are done.
    fn settle_in_flight(&mut self, plugins: &PluginSet, cluster: &ClusterState) {
        for task in self.in_flight.clone() {
            let same = |pod: &QueuedPod| cluster.get_task(task).is_some_and(|live| live.uid == pod.uid);
            if !self.pods.get(&task).is_some_and(same) {
                self.remove(task);
                continue;
            }
            match cluster.task(task).status() {
                TaskStatus::Binding => {}
                status if status.is_waiting() => self.put_back(plugins, cluster, task, Refused::Error),
                _ => self.remove(task),
            }
        }
    }

    /// Wakes the pods that an event can help.
    fn wake(&mut self, plugins: &PluginSet, cluster: &ClusterState, event: &ClusterEvent) {
        let listens = |task: TaskId, by: &BTreeSet<String>| {
            // Whether one that is gone would listen nobody knows, so the others are asked.
            cluster.get_task(task).is_none()
                || kept_by_any(plugins, cluster, task, by, |plugin| listens_to(plugin, event))
        };
        let helps = |task: TaskId, by: &BTreeSet<String>| {
            let helps = |plugin: &dyn NodePlugin| listens_to(plugin, event) && plugin.helps(cluster, task, event);
            cluster.get_task(task).is_some() && kept_by_any(plugins, cluster, task, by, helps)
        };
        for task in self.resting.helped(listens, helps) {
            self.take_out(task);
            self.back_off(plugins, cluster, task, false);
        }
        for task in self.gated.helped(listens, helps) {
            self.activate(plugins, cluster, task);
        }
    }

    /// Lets pods in whose back-off is over, and those that have rested for too long.
    fn flush(&mut self, plugins: &PluginSet, cluster: &ClusterState) {
        let now = cluster.now();
        while let Some((_, (.., task))) = self.backoff.first().filter(|(until, _)| *until <= now).cloned() {
            self.activate(plugins, cluster, task);
        }
        while let Some((_, task)) = self.resting.first().filter(|(since, _)| *since + self.times.max_rest_ms <= now) {
            self.take_out(task);
            self.back_off(plugins, cluster, task, false);
        }
    }

    /// Lets a pod in once its back-off is over, which may be at once.
    fn back_off(&mut self, plugins: &PluginSet, cluster: &ClusterState, task: TaskId, after_error: bool) {
        let Some(pod) = self.pods.get(&task) else { return };
        let count = if after_error { pod.errors } else { pod.refusals };
        let doubled = self.times.initial_backoff_ms.saturating_mul(1 << count.saturating_sub(1).min(30));
        let pause = doubled.min(self.times.max_backoff_ms);
        let end = pod.times.entered.max(cluster.task(task).retry_at) + pause;
        let until = Time(end.0.div_euclid(WINDOW_MS) * WINDOW_MS);
        if count == 0 || until <= cluster.now() {
            return self.activate(plugins, cluster, task);
        }
        let place = self.place(plugins, cluster, task);
        self.places.insert(task, place.clone());
        self.backoff.insert((until, place));
        self.set_part(task, Part::Backoff { until, after_error });
    }

    /// A pod that was refused at this very instant is not tried again in it: nothing has changed but what other attempts
    /// did, and two gangs could turn each other away for ever.
    fn may_come_early(&self, cluster: &ClusterState, task: TaskId) -> bool {
        self.pods.get(&task).is_some_and(|pod| pod.attempts == 0 || pod.times.entered < cluster.now())
    }

    fn backs_off_after_error(&self, task: TaskId) -> bool {
        matches!(self.pods.get(&task).map(|pod| &pod.part), Some(Part::Backoff { after_error: true, .. }))
    }

    fn place(&self, plugins: &PluginSet, cluster: &ClusterState, task: TaskId) -> Place {
        let mut rank = Rank::default();
        let pod = &self.pods[&task];
        for plugin in plugins.profile_for(cluster, task).plugins(ExtensionPoint::QueueSort) {
            plugin.queue_sort(cluster, task, pod.times, &mut rank);
        }
        (rank, pod.times, pod.uid.clone(), task)
    }

    /// Takes a pod out of the part in which it is.
    fn take_out(&mut self, task: TaskId) {
        match self.pods.get(&task).map(|pod| pod.part.clone()) {
            Some(Part::Active) => drop(self.active.remove(&task)),
            Some(Part::Backoff { until, .. }) => {
                if let Some(place) = self.places.remove(&task) {
                    self.backoff.remove(&(until, place));
                }
            }
            Some(Part::Unschedulable { .. }) => self.resting.remove(task),
            Some(Part::Gated { .. }) => self.gated.remove(task),
            Some(Part::InFlight) => drop(self.in_flight.remove(&task)),
            None => {}
        }
    }

    fn set_part(&mut self, task: TaskId, part: Part) {
        if let Some(pod) = self.pods.get_mut(&task) {
            pod.part = part;
        }
    }

    fn remove(&mut self, task: TaskId) {
        self.take_out(task);
        if let Some(pod) = self.pods.remove(&task) {
            self.by_uid.remove(&pod.uid);
        }
    }

    fn forget(&mut self, uid: &Name) {
        if let Some(&task) = self.by_uid.get(uid) {
            self.remove(task);
        }
    }
}
