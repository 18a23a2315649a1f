//! Controllers that a cluster with Volcano's other components would have beside its scheduler: they make PodGroups for
//! pods without one, and keep the states of queues. They act in the process that leads.

mod pod_group;
mod queue;

pub(crate) use pod_group::is_made_here;

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::client::Clients;
use crate::directory::GroupKey;
use crate::lanes::{Called, Lanes, Pace, Wish};
use crate::perform::{Answer, Events};

/// A controller, by Volcano's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Makes PodGroups for pods without one.
    PodGroup,
    /// Keeps the states of queues.
    Queue,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::PodGroup, Self::Queue];

    /// Volcano's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PodGroup => "pg-controller",
            Self::Queue => "queue-controller",
        }
    }
}

/// Which controllers run, as `--controllers` says: `*` is all, `x` and `+x` is one, `-x` is without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(BTreeSet<Controller>);

impl Default for Selection {
    fn default() -> Self {
        Self(Controller::ALL.into_iter().collect())
    }
}

impl Selection {
    /// Whether this one runs.
    pub fn has(&self, controller: Controller) -> bool {
        self.0.contains(&controller)
    }
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut chosen = BTreeSet::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (off, name) = match word.strip_prefix('-') {
                Some(name) => (true, name),
                None => (false, word.strip_prefix('+').unwrap_or(word)),
            };
            let named: Vec<Controller> = match name {
                "*" => Controller::ALL.to_vec(),
                name => Controller::ALL.into_iter().filter(|one| one.name() == name).collect(),
            };
            if named.is_empty() {
                let known = Controller::ALL.map(Controller::name).join(", ");
                return Err(format!("there is no controller `{name}`; there are {known}, and * for all"));
            }
            for one in named {
                if off {
                    chosen.remove(&one)
                } else {
                    chosen.insert(one)
                };
            }
        }
        Ok(Self(chosen))
    }
}

/// What the controllers are told of the cluster.
#[derive(Debug)]
pub(crate) enum Observation {
    /// A pod is in a group that is made for it. With a sample, if there is no such group yet. One that terminates or has
    /// ended needs none.
    Pod { uid: String, name: String, key: GroupKey, needs_group: bool, sample: Option<Box<Pod>> },
    /// Such a pod is gone.
    PodGone { uid: String, key: GroupKey },
    /// A PodGroup is new or has changed. `made_here`: for pods of this scheduler, by this controller.
    Group { key: GroupKey, queue: String, uid: String, made_here: bool },
    /// A PodGroup is gone.
    GroupGone(GroupKey),
    /// A queue is new or has changed.
    Queue(Box<krafla_api::crds::Queue>),
    /// A queue is gone.
    QueueGone(String),
    /// Somebody asks for something to be done to an object.
    Command(Box<DynamicObject>),
    /// All objects have been seen.
    Complete,
}

/// A hand to the controllers.
#[derive(Clone)]
pub(crate) struct Controllers(mpsc::UnboundedSender<Observation>);

impl Controllers {
    /// Starts the chosen ones. They act while `leads` says so.
    pub(crate) fn start(
        clients: &Clients,
        events: &Events,
        selection: &Selection,
        leads: watch::Receiver<bool>,
    ) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let manager = Manager {
            groups: selection.has(Controller::PodGroup).then(pod_group::Groups::default),
            queues: selection.has(Controller::Queue).then(queue::Queues::default),
            group_calls: pod_group::calls(clients.clone(), events.clone()),
            queue_calls: queue::calls(clients.clone(), events.clone()),
        };
        (Self(sender), tokio::spawn(manager.run(receiver, leads)))
    }

    /// Tells of something.
    pub(crate) fn observe(&self, observation: Observation) {
        // Fails only while the process ends.
        let _ = self.0.send(observation);
    }
}

struct Manager {
    groups: Option<pod_group::Groups>,
    queues: Option<queue::Queues>,
    group_calls: Lanes<GroupKey, pod_group::Wanted>,
    queue_calls: Lanes<String, queue::Wanted>,
}

impl Manager {
    async fn run(mut self, mut observations: mpsc::UnboundedReceiver<Observation>, mut leads: watch::Receiver<bool>) {
        let mut complete = false;
        loop {
            tokio::select! {
                observation = observations.recv() => {
                    let Some(observation) = observation else { return };
                    let first = matches!(observation, Observation::Complete);
                    complete |= first;
                    let acts = complete && *leads.borrow();
                    self.take_in(observation, acts);
                    if first && acts {
                        self.catch_up();
                    }
                }
                changed = leads.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    if complete && *leads.borrow_and_update() {
                        self.catch_up();
                    }
                }
            }
        }
    }

    fn take_in(&mut self, observation: Observation, acts: bool) {
        let (mut group_wishes, mut queue_wishes) = (Vec::new(), Vec::new());
        if let Some(queues) = &mut self.queues {
            queue_wishes = queues.observe(&observation);
        }
        if let Some(groups) = &mut self.groups {
            group_wishes = groups.observe(observation);
        }
        if acts {
            self.wish(group_wishes, queue_wishes);
        }
    }

    /// Does what is still to be done: the process has just begun to act.
    fn catch_up(&mut self) {
        let group_wishes = self.groups.as_mut().map(pod_group::Groups::all).unwrap_or_default();
        let queue_wishes = self.queues.as_mut().map(queue::Queues::all).unwrap_or_default();
        self.wish(group_wishes, queue_wishes);
    }

    fn wish(&self, groups: Vec<(GroupKey, pod_group::Wanted)>, queues: Vec<(String, queue::Wanted)>) {
        for (key, wanted) in groups {
            self.group_calls.wish(key, wanted);
        }
        for (name, wanted) in queues {
            self.queue_calls.wish(name, wanted);
        }
    }
}

/// Lanes for the calls of a controller. Between two calls for one object there is a pause: whoever else writes to it
/// must not be fought at full speed.
fn lanes<K, V, F, C>(call: C) -> Lanes<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Wish,
    F: Future<Output = Called<V>> + Send + 'static,
    C: Fn(K, V) -> F + Send + Sync + 'static,
{
    Lanes::start(Pace { at_once: 16, apart: Duration::from_secs(1) }, call).0
}

/// What is left of a wish after a call for it: everything but a refusal that trying again would not change.
fn settle<V>(what: &str, wish: V, answer: Answer) -> Called<V> {
    match answer {
        Answer::Done | Answer::Refused { code: 404, .. } => Called::Done,
        Answer::Refused { code: 403, message } | Answer::Unknown { message } => {
            tracing::warn!("{what}: {message}; it is tried again");
            Called::Again(wish)
        }
        Answer::Refused { code: 409 | 429, .. } => Called::Again(wish),
        Answer::Refused { message, code } => {
            tracing::warn!("{what}: {message} ({code})");
            Called::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_chosen_as_volcanos_flag_does() {
        let chosen = |text: &str| text.parse::<Selection>().map(|one| Controller::ALL.map(|c| one.has(c)));
        assert_eq!(chosen("*"), Ok([true, true]));
        assert_eq!(chosen("*,-queue-controller"), Ok([true, false]));
        assert_eq!(chosen("+queue-controller"), Ok([false, true]));
        assert_eq!(chosen("-*"), Ok([false, false]));
        assert!(chosen("job-controller").expect_err("unknown").contains("pg-controller"));
    }
}
