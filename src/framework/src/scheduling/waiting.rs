//! Pods that Permit holds back: they have their node in memory, and nobody has been told.
//!
//! One map for all profiles, by UID. A plugin that said Wait has a timer of its own; the first that runs out rejects the
//! pod, so the effective wait is the shortest. What plugins decide about others is only noted here; who owns the map
//! carries it out when the hook has returned, so that no hook runs within another.

use std::collections::BTreeMap;

use krafla_model::{JobId, Name, TaskId, Time};

use crate::scheduling::verdict::Why;

/// A pod that waits at Permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingPod {
    /// The task.
    pub task: TaskId,
    /// Its pod's UID.
    pub uid: Name,
    /// Plugins that have not allowed it yet, with the time at which each rejects it.
    pending: BTreeMap<&'static str, Time>,
    since: Time,
    signal: Option<Signal>,
}

/// How a wait ends. The first signal counts, later ones are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Every plugin has allowed it.
    Allowed,
    /// A plugin has rejected it, or its time has run out.
    Rejected {
        /// The plugin.
        plugin: &'static str,
        /// Why.
        why: Why,
    },
}

impl WaitingPod {
    /// Plugins that have not allowed it yet, by name.
    pub fn pending_plugins(&self) -> impl Iterator<Item = &'static str> {
        self.pending.keys().copied()
    }

    /// A plugin lets it go; it is bound once the last has.
    pub fn allow(&mut self, plugin: &str) {
        self.pending.remove(plugin);
        if self.pending.is_empty() {
            self.signal.get_or_insert(Signal::Allowed);
        }
    }

    /// A plugin sends it back to the queue.
    pub fn reject(&mut self, plugin: &'static str, why: Why) {
        self.signal.get_or_insert(Signal::Rejected { plugin, why });
    }

    /// When its first timer runs out.
    fn deadline(&self) -> (Time, &'static str) {
        self.pending.iter().map(|(plugin, at)| (*at, *plugin)).min().unwrap_or((Time::NEVER, ""))
    }
}

/// The pods that wait at Permit, and the tasks that plugins want to be tried again.
#[derive(Clone, Debug, Default)]
pub struct WaitingPods {
    pods: BTreeMap<Name, WaitingPod>,
    activated: Vec<TaskId>,
    groups: Vec<GroupNote>,
}

/// What a plugin wants to be remembered of a group of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupNote {
    /// It failed to get together.
    Failed(JobId),
    /// It has got together.
    Together(JobId),
    /// None of its pods is to be tried for this many milliseconds.
    Paused(JobId, i64),
}

impl WaitingPods {
    /// Holds a pod back. `timers` has the milliseconds that each plugin gives it.
    pub fn add(&mut self, task: TaskId, uid: Name, now: Time, timers: BTreeMap<&'static str, i64>) {
        let pending = timers.into_iter().map(|(plugin, ms)| (plugin, now + ms)).collect();
        self.pods.insert(uid.clone(), WaitingPod { task, uid, pending, since: now, signal: None });
    }

    /// The pod of this UID, if it waits.
    pub fn get(&self, uid: &str) -> Option<&WaitingPod> {
        self.pods.get(uid)
    }

    /// The pod of this UID, to be allowed or rejected.
    pub fn get_mut(&mut self, uid: &str) -> Option<&mut WaitingPod> {
        self.pods.get_mut(uid)
    }

    /// All that wait, by UID.
    pub fn iter(&self) -> impl Iterator<Item = &WaitingPod> {
        self.pods.values()
    }

    /// All that wait, by UID, to be allowed or rejected.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut WaitingPod> {
        self.pods.values_mut()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Asks for a task to be tried soon, whatever its back-off.
    pub fn activate(&mut self, task: TaskId) {
        self.activated.push(task);
    }

    /// Tasks that are to be tried soon, since the last call.
    pub fn take_activated(&mut self) -> Vec<TaskId> {
        std::mem::take(&mut self.activated)
    }

    /// A group failed to get together.
    pub fn fail_group(&mut self, group: JobId) {
        self.groups.push(GroupNote::Failed(group));
    }

    /// A group has got together.
    pub fn restore_group(&mut self, group: JobId) {
        self.groups.push(GroupNote::Together(group));
    }

    /// None of a group's pods is to be tried for this many milliseconds.
    pub fn pause_group(&mut self, group: JobId, ms: i64) {
        self.groups.push(GroupNote::Paused(group, ms));
    }

    /// What plugins wanted to be remembered since the last call, in order.
    pub(crate) fn take_group_notes(&mut self) -> Vec<GroupNote> {
        std::mem::take(&mut self.groups)
    }

    /// Forgets a pod; `None` if it did not wait.
    pub fn remove(&mut self, uid: &str) -> Option<WaitingPod> {
        self.pods.remove(uid)
    }

    /// When the next timer runs out; [`Time::NEVER`] if none runs.
    pub fn next_deadline(&self) -> Time {
        self.pods.values().map(|pod| pod.deadline().0).min().unwrap_or(Time::NEVER)
    }

    /// Takes out one whose wait has ended, and how; those whose time has run out are rejected. The first by UID.
    pub fn take_ended(&mut self, now: Time) -> Option<(WaitingPod, Signal)> {
        for pod in self.pods.values_mut() {
            let (deadline, plugin) = pod.deadline();
            if pod.signal.is_none() && deadline <= now {
                let waited = (now.0 - pod.since.0) / 1_000;
                let why = format!("rejected due to timeout after waiting {waited}s at plugin {plugin}");
                pod.reject(plugin, Why::Told(why.as_str().into()));
            }
        }
        let uid = self.pods.values().find(|pod| pod.signal.is_some())?.uid.clone();
        let pod = self.pods.remove(&uid)?;
        let signal = pod.signal.clone()?;
        Some((pod, signal))
    }
}

#[cfg(test)]
mod tests {
    use krafla_model::ids::Id;

    use super::*;

    fn waiting(timers: &[(&'static str, i64)]) -> WaitingPods {
        let mut pods = WaitingPods::default();
        pods.add(TaskId::from_index(0), "u".into(), Time(0), timers.iter().copied().collect());
        pods
    }

    //
    #[test]
    fn every_plugin_that_waits_has_to_allow() {
        let mut pods = waiting(&[("a", 10), ("b", 20)]);
        let pod = pods.get_mut("u").expect("it waits");
        pod.allow("a");
        assert_eq!(pod.pending_plugins().collect::<Vec<_>>(), ["b"]);
        assert!(pods.take_ended(Time(5)).is_none());
        pods.get_mut("u").expect("it waits").allow("b");
        assert!(matches!(pods.take_ended(Time(5)), Some((_, Signal::Allowed))));
        assert!(pods.is_empty());
    }

    //
    #[test]
    fn the_shortest_timer_rejects() {
        let mut pods = waiting(&[("a", 20_000), ("b", 10_000)]);
        assert_eq!(pods.next_deadline(), Time(10_000));
        assert!(pods.take_ended(Time(9_999)).is_none());
        let (_, signal) = pods.take_ended(Time(10_000)).expect("its time is over");
        let why = Why::Told("rejected due to timeout after waiting 10s at plugin b".into());
        assert_eq!(signal, Signal::Rejected { plugin: "b", why });
    }

    #[test]
    fn the_first_signal_counts() {
        let mut pods = waiting(&[("a", 10)]);
        let pod = pods.get_mut("u").expect("it waits");
        pod.reject("x", Why::Says("no"));
        pod.allow("a");
        let (_, signal) = pods.take_ended(Time(0)).expect("it has ended");
        assert_eq!(signal, Signal::Rejected { plugin: "x", why: Why::Says("no") });
    }
}
