//! The states of queues, as Volcano's `queue-controller` keeps them: Open, Closing while jobs are left, Closed.
//!
//! A queue is closed and opened by a Command, as `vcctl` writes it, or by writing its `status.state`. What closes a
//! queue closes those below it, and opens again those that it closed.

use std::collections::{BTreeMap, BTreeSet};

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tracing::info;

use super::{Observation, settle};
use crate::client::Clients;
use crate::directory::GroupKey;
use crate::lanes::{Called, Lanes, Wish};
use crate::perform::{Answer, CALL, Events, Notice, reference};
use crate::watch::{Identity, Kind};

/// The queue above all others.
const ROOT: &str = "root";
/// Annotation of a queue that was closed because its parent was.
const CLOSED_BY_PARENT: &str = "volcano.sh/closed-by-parent";
/// The field manager that Volcano's controller uses, so that either may take over from the other.
const FIELD_MANAGER: &str = "queue-controller";

/// What is to be written to a queue. All of it that is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wanted {
    pub(super) state: Option<&'static str>,
    pub(super) parent: Option<&'static str>,
    pub(super) closed_by_parent: Option<bool>,
    /// Commands that have been understood and are to be deleted: namespace and name.
    pub(super) commands: Vec<(String, String)>,
    /// What people are to be told.
    pub(super) notes: Vec<(bool, &'static str, String)>,
    uid: String,
}

impl Wish for Wanted {
    fn update(&mut self, newer: Self) {
        self.state = newer.state.or(self.state);
        self.parent = newer.parent.or(self.parent);
        self.closed_by_parent = newer.closed_by_parent.or(self.closed_by_parent);
        self.commands.extend(newer.commands);
        self.notes.extend(newer.notes);
        self.uid = newer.uid;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Open,
    Close,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    uid: String,
    /// As it is in the API; empty if nobody has written one.
    state: String,
    /// Empty if it has none.
    parent: String,
    closed_by_parent: bool,
}

/// All queues, and the PodGroups in them.
#[derive(Default)]
pub(super) struct Queues {
    entries: BTreeMap<String, Entry>,
    queue_of: BTreeMap<GroupKey, String>,
    groups: BTreeMap<String, BTreeSet<GroupKey>>,
    /// State of a queue, and the one that has been asked for since: not asked for again before it has moved.
    asked: BTreeMap<String, (String, &'static str)>,
}

impl Queues {
    pub(super) fn observe(&mut self, observation: &Observation) -> Vec<(String, Wanted)> {
        match observation {
            Observation::Queue(queue) => {
                let meta = &queue.metadata;
                let Some(name) = meta.name.clone() else { return Vec::new() };
                let spec = queue.spec.as_ref();
                let status = queue.status.as_ref();
                let annotation = meta.annotations.as_ref().and_then(|all| all.get(CLOSED_BY_PARENT));
                let entry = Entry {
                    uid: meta.uid.clone().unwrap_or_default(),
                    state: status.and_then(|status| status.state.clone()).unwrap_or_default(),
                    parent: spec.and_then(|spec| spec.parent.clone()).unwrap_or_default(),
                    closed_by_parent: annotation.is_some_and(|text| text == "true"),
                };
                self.entries.insert(name.clone(), entry);
                let mut wishes = self.sync(&name);
                // Those below follow.
                for child in self.children(&name) {
                    wishes.extend(self.sync(&child));
                }
                wishes
            }
            Observation::QueueGone(name) => {
                self.entries.remove(name);
                self.asked.remove(name);
                Vec::new()
            }
            Observation::Group { key, queue, .. } => {
                let before = self.queue_of.insert(key.clone(), queue.clone());
                if before.as_ref() == Some(queue) {
                    return Vec::new();
                }
                self.groups.entry(queue.clone()).or_default().insert(key.clone());
                before.map(|before| self.left(key, &before)).unwrap_or_default()
            }
            Observation::GroupGone(key) => match self.queue_of.remove(key) {
                Some(queue) => self.left(key, &queue),
                None => Vec::new(),
            },
            Observation::Command(command) => self.command(command),
            _ => Vec::new(),
        }
    }

    /// Everything that is to be done.
    pub(super) fn all(&mut self) -> Vec<(String, Wanted)> {
        self.asked.clear(); // what was asked for while another led was not done
        let names: Vec<String> = self.entries.keys().cloned().collect();
        names.iter().flat_map(|name| self.sync(name)).collect()
    }

    fn left(&mut self, key: &GroupKey, queue: &str) -> Vec<(String, Wanted)> {
        if let Some(groups) = self.groups.get_mut(queue) {
            groups.remove(key);
            if groups.is_empty() {
                self.groups.remove(queue);
            }
        }
        self.sync(queue)
    }

    fn children(&self, name: &str) -> Vec<String> {
        let below = self.entries.iter().filter(|(child, entry)| {
            let parent = if entry.parent.is_empty() { ROOT } else { &entry.parent };
            parent == name && *child != ROOT
        });
        below.map(|(child, _)| child.clone()).collect()
    }

    /// What a queue should be by itself, and because of the one above it.
    fn sync(&mut self, name: &str) -> Vec<(String, Wanted)> {
        let Some(entry) = self.entries.get(name).cloned() else { return Vec::new() };
        let mut wanted = Wanted { uid: entry.uid.clone(), ..Wanted::default() };
        if entry.parent.is_empty() && name != ROOT {
            wanted.parent = Some(ROOT);
        }
        let parent_takes_none = self.closed_above(&entry);
        let open = entry.state.is_empty() || entry.state == "Open";
        let state = match entry.state.as_str() {
            _ if open && parent_takes_none && name != ROOT => {
                wanted.closed_by_parent = Some(true);
                self.closed_or_closing(name)
            }
            "Closing" | "Closed" if entry.closed_by_parent && !parent_takes_none => {
                wanted.closed_by_parent = Some(false);
                "Open"
            }
            "" | "Open" => "Open",
            "Closing" => self.closed_or_closing(name),
            "Closed" => "Closed",
            _ => "Unknown",
        };
        let asked = (entry.state.clone(), state);
        if state == entry.state {
            self.asked.remove(name);
        } else if self.asked.get(name) != Some(&asked) {
            wanted.state = Some(state);
            self.asked.insert(name.to_owned(), asked);
        }
        let nothing = Wanted { uid: wanted.uid.clone(), ..Wanted::default() };
        if wanted == nothing { Vec::new() } else { vec![(name.to_owned(), wanted)] }
    }

    /// Whether a queue above that is not the root takes nothing.
    fn closed_above(&self, entry: &Entry) -> bool {
        let parent = self.entries.get(&entry.parent).filter(|_| entry.parent != ROOT);
        parent.is_some_and(|parent| parent.state == "Closing" || parent.state == "Closed")
    }

    fn closed_or_closing(&self, name: &str) -> &'static str {
        if self.groups.contains_key(name) { "Closing" } else { "Closed" }
    }

    fn command(&mut self, command: &DynamicObject) -> Vec<(String, Wanted)> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let target = command.data.get("target");
        let of_target = |key: &str| text(target.and_then(|target| target.get(key)));
        if of_target("kind") != "Queue" {
            return Vec::new();
        }
        let name = of_target("name");
        let request = match text(command.data.get("action")).as_str() {
            "OpenQueue" => Request::Open,
            "CloseQueue" => Request::Close,
            _ => return Vec::new(),
        };
        let own = &command.metadata;
        let mut wanted = self.request(&name, request);
        wanted.commands.push((own.namespace.clone().unwrap_or_default(), own.name.clone().unwrap_or_default()));
        vec![(name, wanted)]
    }

    fn request(&self, name: &str, request: Request) -> Wanted {
        let Some(entry) = self.entries.get(name) else { return Wanted::default() };
        let mut wanted = Wanted { uid: entry.uid.clone(), ..Wanted::default() };
        match request {
            Request::Close if name == ROOT => {
                wanted.notes.push((true, "CloseQueueFailed", "the root queue cannot be closed".to_owned()));
            }
            Request::Close => {
                wanted.state = Some(self.closed_or_closing(name));
                wanted.notes.push((false, "CloseQueue", "the queue takes no new jobs".to_owned()));
            }
            Request::Open if self.closed_above(entry) => {
                let text = format!("queue {} above it is not open; open that first", entry.parent);
                wanted.notes.push((true, "OpenQueueFailed", text));
            }
            Request::Open => {
                wanted.state = Some("Open");
                wanted.closed_by_parent = entry.closed_by_parent.then_some(false);
                wanted.notes.push((false, "OpenQueue", "the queue takes jobs".to_owned()));
            }
        }
        wanted
    }
}

/// The calls of this controller.
pub(super) fn calls(clients: Clients, events: Events) -> Lanes<String, Wanted> {
    super::lanes(move |name, wanted| call(clients.clone(), events.clone(), name, wanted))
}

async fn call(clients: Clients, events: Events, name: String, mut wanted: Wanted) -> Called<Wanted> {
    // Deleted before it is obeyed, as Volcano does: a command is obeyed at most once.
    for (namespace, command) in std::mem::take(&mut wanted.commands) {
        let api: Api<DynamicObject> =
            Api::namespaced_with(clients.calls.clone(), &namespace, &Kind::Command.resource());
        clients.throttle.turn().await;
        if let Answer::Unknown { .. } = Answer::of(&api.delete(&command, &DeleteParams::default()).await) {
            wanted.commands.push((namespace, command));
            return Called::Again(wanted);
        }
    }
    let resource = Kind::Queue.resource();
    let about = Identity { namespace: String::new(), name: name.clone(), uid: wanted.uid.clone() };
    for (warning, reason, message) in std::mem::take(&mut wanted.notes) {
        let about = reference(Kind::Queue, &about);
        events.notice(Notice { about, warning, reason: reason.to_owned(), message });
    }
    let api: Api<DynamicObject> = Api::all_with(clients.calls.clone(), &resource);
    let mut patch = serde_json::Map::new();
    if let Some(parent) = wanted.parent {
        patch.insert("spec".to_owned(), json!({ "parent": parent }));
    }
    if let Some(closed) = wanted.closed_by_parent {
        patch.insert("metadata".to_owned(), json!({ "annotations": { CLOSED_BY_PARENT: closed.to_string() } }));
    }
    if !patch.is_empty() {
        clients.throttle.turn().await;
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let answer = Answer::within(CALL, api.patch(&name, &params, &Patch::Merge(Value::Object(patch)))).await;
        if answer != Answer::Done {
            return settle(&format!("queue {name} cannot be written"), wanted, answer);
        }
    }
    let Some(state) = wanted.state else { return Called::Done };
    clients.throttle.turn().await;
    let patch = Patch::Apply(json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": { "name": name },
        "status": { "state": state },
    }));
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let answer = Answer::within(CALL, api.patch_status(&name, &params, &patch)).await;
    if answer == Answer::Done {
        info!("queue {name} is {state}");
    }
    settle(&format!("state of queue {name} cannot be written"), wanted, answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, parent: &str, state: &str, closed_by_parent: bool) -> Observation {
        let value = json!({
            "metadata": { "name": name, "annotations": { CLOSED_BY_PARENT: closed_by_parent.to_string() } },
            "spec": { "parent": parent },
            "status": { "state": state },
        });
        Observation::Queue(serde_json::from_value(value).expect("a queue"))
    }

    fn group(name: &str, queue: &str) -> Observation {
        let key = ("a".into(), name.into());
        Observation::Group { key, queue: queue.to_owned(), uid: String::new(), made_here: false }
    }

    fn states(wishes: &[(String, Wanted)]) -> Vec<(&str, Option<&str>)> {
        wishes.iter().map(|(name, wanted)| (name.as_str(), wanted.state)).collect()
    }

    fn command(action: &str, name: &str) -> Observation {
        let value = json!({
            "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": { "name": "c", "namespace": "a" },
            "action": action, "target": { "kind": "Queue", "name": name },
        });
        Observation::Command(serde_json::from_value(value).expect("a command"))
    }

    #[test]
    fn the_table_of_states() {
        // state, jobs in it, what is asked for, and what it becomes; "" is no change
        let table = [
            ("", 0, "", "Open"),
            ("Open", 3, "", ""),
            ("Open", 0, "CloseQueue", "Closed"),
            ("Open", 3, "CloseQueue", "Closing"),
            ("Closing", 3, "", ""),
            ("Closing", 0, "", "Closed"),
            ("Closing", 3, "OpenQueue", "Open"),
            ("Closed", 3, "", ""),
            ("Closed", 0, "OpenQueue", "Open"),
            ("Unknown", 0, "", ""),
            ("Unknown", 0, "OpenQueue", "Open"),
            ("Unknown", 3, "CloseQueue", "Closing"),
            ("Nonsense", 0, "", "Unknown"),
        ];
        for (state, jobs, action, becomes) in table {
            let mut queues = Queues::default();
            for i in 0..jobs {
                queues.observe(&group(&format!("g{i}"), "q"));
            }
            let mut wishes = queues.observe(&queue("q", "root", state, false));
            if !action.is_empty() {
                wishes = queues.observe(&command(action, "q"));
            }
            let got = wishes.first().and_then(|(_, wanted)| wanted.state).unwrap_or_default();
            assert_eq!(got, becomes, "{state} with {jobs} jobs, {action}");
        }
    }

    #[test]
    fn a_closing_queue_is_closed_when_its_last_job_goes() {
        let mut queues = Queues::default();
        queues.observe(&group("g", "q"));
        queues.observe(&queue("q", "root", "Closing", false));
        let wishes = queues.observe(&Observation::GroupGone(("a".into(), "g".into())));
        assert_eq!(states(&wishes), [("q", Some("Closed"))]);
    }

    #[test]
    fn what_closes_a_queue_closes_those_below_and_opens_them_again() {
        let mut queues = Queues::default();
        queues.observe(&queue("team", "root", "Open", false));
        queues.observe(&queue("child", "team", "Open", false));
        let wishes = queues.observe(&queue("team", "root", "Closed", false));
        assert_eq!(states(&wishes), [("child", Some("Closed"))]);
        assert_eq!(wishes[0].1.closed_by_parent, Some(true));
        queues.observe(&queue("child", "team", "Closed", true));
        let wishes = queues.observe(&command("OpenQueue", "child"));
        assert_eq!(states(&wishes), [("child", None)], "the parent has to be opened first");
        let wishes = queues.observe(&queue("team", "root", "Open", false));
        assert_eq!(states(&wishes), [("child", Some("Open"))]);
    }

    #[test]
    fn the_root_cannot_be_closed_and_everything_else_has_a_parent() {
        let mut queues = Queues::default();
        queues.observe(&queue("root", "", "Open", false));
        let wishes = queues.observe(&command("CloseQueue", "root"));
        assert_eq!((wishes[0].1.state, wishes[0].1.notes[0].1), (None, "CloseQueueFailed"));
        let wishes = queues.observe(&queue("q", "", "Open", false));
        assert_eq!(wishes[0].1.parent, Some("root"));
    }
}
