//! Statuses: of PodGroups, pods that wait, and queues. Written only when they differ, the newest in place of all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use krafla_framework::effect::PodRef;
use krafla_model::resources::unit_of;
use krafla_model::{Amounts, JobPhase, Name, quantity};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::answer::{Answer, CALL};
use super::backlog::Backlog;
use super::placing::Placing;
use crate::client::Clients;
use crate::directory::{Directory, GroupKey};
use crate::lanes::{Called, Lanes, Pace, Wish};
use crate::watch::Kind;

/// The field manager of what the scheduler writes.
pub(crate) const FIELD_MANAGER: &str = "krafla";
/// How long what can wait makes way for binds.
const MAKE_WAY: Duration = Duration::from_secs(1);
/// How often the status of a PodGroup is put off for binds.
const PUT_OFFS: u32 = 5;

/// Writes statuses.
#[derive(Clone)]
pub(crate) struct Statuses(Arc<Writers>);

struct Writers {
    /// Only the leader writes.
    leads: watch::Receiver<bool>,
    /// What PodGroups should say. Clients that update a whole PodGroup may take it back.
    wanted: Mutex<BTreeMap<GroupKey, Counts>>,
    groups: Lanes<GroupKey, GroupStatus>,
    pods: Lanes<Name, PodStatus>,
    gates: Lanes<Name, OpenGate>,
    queues: Lanes<Name, QueueStatus>,
}

/// What a PodGroup's status should say. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GroupStatus {
    pub(crate) counts: Option<Counts>,
    /// Conditions by type: reason and message.
    pub(crate) conditions: BTreeMap<String, (String, String)>,
    /// How often it has made way for binds.
    put_off: u32,
}

impl GroupStatus {
    fn of_counts(counts: Counts) -> Self {
        Self { counts: Some(counts), ..Self::default() }
    }
}

/// Phase, and pods that run, ended well and ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) phase: JobPhase,
    pub(crate) running: u32,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
}

impl Wish for GroupStatus {
    fn update(&mut self, newer: Self) {
        self.counts = newer.counts.or(self.counts);
        self.conditions.extend(newer.conditions);
        self.put_off = self.put_off.max(newer.put_off);
    }

    /// Whoever makes the pods of an admitted group waits for it, before there is anything to bind.
    fn is_urgent(&self) -> bool {
        self.counts.is_some_and(|counts| counts.phase == JobPhase::Inqueue)
    }
}

/// What a waiting pod's status should say.
#[derive(Clone, Debug)]
pub(crate) struct PodStatus {
    pod: PodRef,
    condition: Option<(String, String)>,
    nominated: Option<Option<Name>>,
}

impl Wish for PodStatus {
    fn update(&mut self, newer: Self) {
        self.condition = newer.condition.or(self.condition.take());
        self.nominated = newer.nominated.or(self.nominated.take());
    }
}

/// A pod that is to lose the gate of its queue.
#[derive(Clone, Debug)]
struct OpenGate(PodRef);

impl Wish for OpenGate {
    fn update(&mut self, newer: Self) {
        *self = newer;
    }
}

#[derive(Clone, Debug)]
struct QueueStatus(Amounts);

impl Wish for QueueStatus {
    fn update(&mut self, newer: Self) {
        *self = newer;
    }
}

impl Statuses {
    /// Starts the writers; the handles end when everything has been written after this has been dropped.
    pub(crate) fn start(
        clients: &Clients,
        directory: &Directory,
        backlog: &Backlog,
        placing: &Placing,
        leads: &watch::Receiver<bool>,
    ) -> (Self, Vec<JoinHandle<()>>) {
        let pace = |at_once, apart_ms| Pace { at_once, apart: Duration::from_millis(apart_ms) };
        let (groups, groups_end) = Lanes::start(pace(16, 200), {
            let (clients, directory, leads) = (clients.clone(), directory.clone(), leads.clone());
            let backlog = backlog.clone();
            move |key: GroupKey, wish: GroupStatus| {
                let call = write_group(clients.clone(), directory.clone(), backlog.clone(), key, wish);
                while_leading(leads.clone(), call)
            }
        });
        let (pods, pods_end) = Lanes::start(pace(8, 200), {
            let (clients, backlog, placing, leads) = (clients.clone(), backlog.clone(), placing.clone(), leads.clone());
            move |_, wish: PodStatus| {
                while_leading(leads.clone(), write_pod(clients.clone(), backlog.clone(), placing.clone(), wish))
            }
        });
        let (gates, gates_end) = Lanes::start(pace(8, 200), {
            let (clients, leads) = (clients.clone(), leads.clone());
            move |_, wish: OpenGate| while_leading(leads.clone(), write_gate(clients.clone(), wish))
        });
        let (queues, queues_end) = Lanes::start(pace(4, 1_000), {
            let (clients, backlog, leads) = (clients.clone(), backlog.clone(), leads.clone());
            move |name: Name, wish: QueueStatus| {
                while_leading(leads.clone(), write_queue(clients.clone(), backlog.clone(), name, wish))
            }
        });
        let writers = Writers { leads: leads.clone(), wanted: Mutex::default(), groups, pods, gates, queues };
        (Self(Arc::new(writers)), vec![groups_end, pods_end, gates_end, queues_end])
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<GroupKey, Counts>> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn group_counts(&self, key: GroupKey, counts: Counts) {
        self.wanted().insert(key.clone(), counts);
        self.0.groups.wish(key, GroupStatus::of_counts(counts));
    }

    /// A PodGroup has been seen with this phase. If it should be another, somebody has written over it.
    pub(crate) fn group_seen(&self, key: &GroupKey, phase: Option<&str>) {
        if !*self.0.leads.borrow() {
            return;
        }
        let Some(counts) = self.wanted().get(key).copied() else { return };
        if phase.is_none_or(|phase| phase != counts.phase.as_str()) {
            self.0.groups.wish(key.clone(), GroupStatus::of_counts(counts));
        }
    }

    /// What PodGroups should say is another's business now.
    pub(crate) fn forget_wanted(&self) {
        self.wanted().clear();
    }

    /// A PodGroup is gone.
    pub(crate) fn group_gone(&self, key: &GroupKey) {
        self.wanted().remove(key);
    }

    pub(crate) fn group_condition(&self, key: GroupKey, kind: String, reason: String, message: String) {
        let conditions = BTreeMap::from([(kind, (reason, message))]);
        self.0.groups.wish(key, GroupStatus { conditions, ..GroupStatus::default() });
    }

    pub(crate) fn pod_condition(&self, pod: PodRef, reason: String, message: String) {
        self.0.pods.wish(pod.uid.clone(), PodStatus { pod, condition: Some((reason, message)), nominated: None });
    }

    pub(crate) fn open_gate(&self, pod: PodRef) {
        self.0.gates.wish(pod.uid.clone(), OpenGate(pod));
    }

    pub(crate) fn nominate(&self, pod: PodRef, node: Option<Name>) {
        self.0.pods.wish(pod.uid.clone(), PodStatus { pod, condition: None, nominated: Some(node) });
    }

    pub(crate) fn queue(&self, name: Name, allocated: Amounts) {
        self.0.queues.wish(name, QueueStatus(allocated));
    }
}

/// Makes a call only while this process leads; a wish of a process that does no more is dropped.
async fn while_leading<V>(leads: watch::Receiver<bool>, call: impl Future<Output = Called<V>> + Send) -> Called<V> {
    let leading = *leads.borrow();
    if leading { call.await } else { Called::Done }
}

/// Sends a patch, and says what is left of the wish.
async fn settle<V, T>(what: &str, wish: V, call: impl Future<Output = Result<T, kube::Error>>) -> Called<V> {
    match Answer::within(CALL, call).await {
        Answer::Done => Called::Done,
        Answer::Refused { code: 404, .. } => Called::Done,
        // The object of this UID is gone, and another has its name.
        Answer::Refused { code: 409, message } if message.contains("UID") || message.contains("uid") => Called::Done,
        Answer::Refused { code: 409 | 429, .. } => Called::Again(wish),
        Answer::Refused { message, code } => {
            warn!("{what} cannot be written: {message} ({code})");
            Called::Done
        }
        Answer::Unknown { message } => {
            debug!("{what} is written again: {message}");
            Called::Again(wish)
        }
    }
}

async fn write_group(
    clients: Clients,
    directory: Directory,
    backlog: Backlog,
    key: GroupKey,
    wish: GroupStatus,
) -> Called<GroupStatus> {
    if backlog.len() > 0 && !wish.is_urgent() && wish.put_off < PUT_OFFS {
        return Called::Later(GroupStatus { put_off: wish.put_off + 1, ..wish });
    }
    let Some(entry) = directory.group(&key) else { return Called::Done };
    let Some(status) = merged_status(entry.kind, &entry.status, &wish) else { return Called::Done };
    clients.throttle.turn().await;
    let api = dynamic(&clients.calls, entry.kind, &key.0);
    let patch = Patch::Merge(json!({ "metadata": { "uid": entry.uid }, "status": status }));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let what = format!("status of podgroup {}/{}", key.0, key.1);
    // Volcano's PodGroup has no status subresource.
    if entry.kind == Kind::PodGroup {
        settle(&what, wish, api.patch(&key.1, &params, &patch)).await
    } else {
        settle(&what, wish, api.patch_status(&key.1, &params, &patch)).await
    }
}

/// The status to be written over `known`; `None` if it says all of it already.
fn merged_status(kind: Kind, known: &Value, wish: &GroupStatus) -> Option<Value> {
    if kind == Kind::KubernetesGroup {
        return scheduled(known, &wish.conditions).map(|conditions| json!({ "conditions": conditions }));
    }
    let mut status = Map::new();
    if let Some(Counts { phase, running, succeeded, failed }) = wish.counts {
        let phase = match kind {
            Kind::CoschedulingGroup => coscheduling_phase(phase),
            _ => phase.as_str(),
        };
        status.insert("phase".to_owned(), json!(phase));
        for (key, n) in [("running", running), ("succeeded", succeeded), ("failed", failed)] {
            // A count that was never written is 0.
            if n > 0 || known.get(key).is_some() {
                status.insert(key.to_owned(), json!(n));
            }
        }
    }
    if kind == Kind::PodGroup && !wish.conditions.is_empty() {
        status.insert("conditions".to_owned(), conditions(known, &wish.conditions));
    }
    status.retain(|key, value| known.get(key) != Some(value));
    (!status.is_empty()).then_some(Value::Object(status))
}

/// The conditions of Kubernetes' PodGroup, with the one that a scheduler writes: `PodGroupScheduled`. Once it is true it
/// stays so. `None` if they say it already.
fn scheduled(known: &Value, wished: &BTreeMap<String, (String, String)>) -> Option<Value> {
    const KIND: &str = "PodGroupScheduled";
    let (status, reason, message) = match (wished.get("Scheduled"), wished.get("Unschedulable")) {
        (Some((_, message)), _) => ("True", "Scheduled", message),
        (None, Some((_, message))) => ("False", "Unschedulable", message),
        (None, None) => return None,
    };
    let mut list = conditions_of(known);
    let says_it = |one: &Value| one["type"] == KIND && (one["status"] == "True" || one["message"] == json!(message));
    if list.iter().any(says_it) {
        return None;
    }
    put(&mut list, KIND, status, reason, message);
    Some(Value::Array(list))
}

/// The list of conditions with ours in it. Those of the other types stay.
fn conditions(known: &Value, wished: &BTreeMap<String, (String, String)>) -> Value {
    let mut list = conditions_of(known);
    for (kind, (reason, message)) in wished {
        let says_it = |one: &Value| one["type"] == **kind && one["reason"] == **reason && one["message"] == **message;
        if !list.iter().any(says_it) {
            put(&mut list, kind, "True", reason, message);
        }
    }
    Value::Array(list)
}

fn conditions_of(known: &Value) -> Vec<Value> {
    known.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Puts a condition in the place of the one of its type.
fn put(list: &mut Vec<Value>, kind: &str, status: &str, reason: &str, message: &str) {
    let condition =
        json!({ "type": kind, "status": status, "lastTransitionTime": now(), "reason": reason, "message": message });
    match list.iter_mut().find(|one| one["type"] == kind) {
        Some(one) => *one = condition,
        None => list.push(condition),
    }
}

const fn coscheduling_phase(phase: JobPhase) -> &'static str {
    match phase {
        JobPhase::Pending => "Pending",
        JobPhase::Inqueue => "Scheduling",
        JobPhase::Running => "Running",
        JobPhase::Unknown => "Unknown",
        JobPhase::Completed => "Finished",
    }
}

async fn write_pod(clients: Clients, backlog: Backlog, placing: Placing, wish: PodStatus) -> Called<PodStatus> {
    backlog.quiet(MAKE_WAY).await;
    clients.throttle.turn().await;
    let Some(_writing) = placing.write(&wish.pod.uid) else { return Called::Done };
    let mut status = Map::new();
    if let Some((reason, message)) = &wish.condition {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "lastTransitionTime": now(),
            "reason": reason,
            "message": message,
        });
        status.insert("conditions".to_owned(), json!([condition]));
    }
    if let Some(node) = &wish.nominated {
        status.insert("nominatedNodeName".to_owned(), json!(node));
    }
    let api: Api<Pod> = super::bind::pods(&clients.calls, &wish.pod);
    let patch = Patch::Strategic(json!({ "metadata": { "uid": wish.pod.uid }, "status": status }));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let (name, what) = (wish.pod.name.clone(), format!("status of pod {}/{}", wish.pod.namespace, wish.pod.name));
    settle(&what, wish, api.patch_status(&name, &params, &patch)).await
}

/// Gates can only be taken off once a pod has been made, so all of them is the only one that there was.
async fn write_gate(clients: Clients, wish: OpenGate) -> Called<OpenGate> {
    clients.throttle.turn().await;
    let api: Api<Pod> = super::bind::pods(&clients.calls, &wish.0);
    let patch = Patch::Merge(json!({ "metadata": { "uid": wish.0.uid }, "spec": { "schedulingGates": null } }));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let (name, what) =
        (wish.0.name.clone(), format!("the end of the gate of pod {}/{}", wish.0.namespace, wish.0.name));
    settle(&what, wish, api.patch(&name, &params, &patch)).await
}

async fn write_queue(clients: Clients, backlog: Backlog, name: Name, wish: QueueStatus) -> Called<QueueStatus> {
    backlog.quiet(MAKE_WAY).await;
    clients.throttle.turn().await;
    // Never empty: the server makes null of a map whose last key an apply takes away.
    let nothing = ["cpu", "memory"].map(|resource| (resource.to_owned(), json!("0")));
    let held = wish
        .0
        .iter()
        .map(|(resource, amount)| (resource.to_string(), json!(quantity::format(amount, unit_of(resource)))));
    let allocated: Map<String, Value> = nothing.into_iter().chain(held).collect();
    let resource = Kind::Queue.resource();
    let api: Api<DynamicObject> = Api::all_with(clients.calls.clone(), &resource);
    // Applied, so that a resource that is no longer held goes, and other fields of the status stay.
    let patch = Patch::Apply(json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": { "name": name },
        "status": { "allocated": allocated },
    }));
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let what = format!("status of queue {name}");
    settle(&what, wish, api.patch_status(&name, &params, &patch)).await
}

fn dynamic(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &kind.resource())
}

/// The present, as the API writes it.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::super::fake::{clients, done};
    use super::*;
    use crate::directory::GroupEntry;

    fn wish(phase: JobPhase, running: u32) -> GroupStatus {
        let counts = Counts { phase, running, succeeded: 0, failed: 0 };
        GroupStatus::of_counts(counts)
    }

    #[test]
    fn only_what_differs_is_written() {
        let known = json!({ "phase": "Running", "running": 2 });
        let table = [
            (wish(JobPhase::Running, 2), None),
            (wish(JobPhase::Running, 3), Some(json!({ "running": 3 }))),
            (wish(JobPhase::Completed, 0), Some(json!({ "phase": "Completed", "running": 0 }))),
        ];
        for (wish, written) in table {
            assert_eq!(merged_status(Kind::PodGroup, &known, &wish), written, "{wish:?}");
        }
    }

    #[tokio::test]
    async fn a_group_makes_way_for_binds_unless_somebody_waits_for_it() {
        let (clients, asked) = clients(|_, _| done());
        let (directory, backlog) = (Directory::default(), Backlog::new());
        let key: GroupKey = ("ns".into(), "g".into());
        directory.set_group(key.clone(), GroupEntry { kind: Kind::PodGroup, uid: "u".into(), status: json!({}) });
        let write = |wish| write_group(clients.clone(), directory.clone(), backlog.clone(), key.clone(), wish);
        let calls = || asked.lock().expect("unpoisoned").len();
        let held = backlog.enter();
        let mut wish = wish(JobPhase::Running, 2);
        for n in 1..=PUT_OFFS {
            let Called::Later(later) = write(wish).await else { panic!("it makes way") };
            assert_eq!((later.put_off, calls()), (n, 0));
            wish = later;
        }
        assert!(matches!(write(wish.clone()).await, Called::Done));
        assert_eq!(calls(), 1, "not for ever");
        assert!(matches!(write(self::wish(JobPhase::Inqueue, 0)).await, Called::Done));
        assert_eq!(calls(), 2);
        drop(held);
        assert!(matches!(write(self::wish(JobPhase::Running, 1)).await, Called::Done));
        assert_eq!(calls(), 3);
    }

    #[test]
    fn a_condition_of_another_type_stays() {
        let known = json!({ "conditions": [{ "type": "Scheduled", "reason": "a", "message": "b" }] });
        let conditions =
            BTreeMap::from([("Unschedulable".to_owned(), ("NotEnoughResources".to_owned(), "c".to_owned()))]);
        let written = merged_status(Kind::PodGroup, &known, &GroupStatus { conditions, ..GroupStatus::default() })
            .expect("differs");
        let types: Vec<_> =
            written["conditions"].as_array().expect("a list").iter().map(|one| one["type"].clone()).collect();
        assert_eq!(types, ["Scheduled", "Unschedulable"]);
    }

    #[test]
    fn a_condition_that_says_the_same_is_not_written_again() {
        let known = json!({ "conditions": [{ "type": "Scheduled", "reason": "a", "message": "b", "lastTransitionTime": "then" }] });
        let conditions = BTreeMap::from([("Scheduled".to_owned(), ("a".to_owned(), "b".to_owned()))]);
        assert_eq!(merged_status(Kind::PodGroup, &known, &GroupStatus { conditions, ..GroupStatus::default() }), None);
    }

    #[test]
    fn a_group_of_kubernetes_is_scheduled_once_and_stays_so() {
        let says = |kind: &str, words: &str| GroupStatus {
            counts: Some(Counts { phase: JobPhase::Pending, running: 0, succeeded: 0, failed: 0 }),
            conditions: BTreeMap::from([(kind.to_owned(), ("Any".to_owned(), words.to_owned()))]),
            put_off: 0,
        };
        let refused = merged_status(Kind::KubernetesGroup, &json!({}), &says("Unschedulable", "1 of 2 fit"));
        let refused = refused.expect("it is told");
        let condition = &refused["conditions"][0];
        assert_eq!((&condition["type"], &condition["status"]), (&json!("PodGroupScheduled"), &json!("False")));
        assert_eq!((&condition["reason"], &condition["message"]), (&json!("Unschedulable"), &json!("1 of 2 fit")));
        let again = |known: &Value, wish| merged_status(Kind::KubernetesGroup, known, &wish);
        assert_eq!(again(&refused, says("Unschedulable", "1 of 2 fit")), None, "nothing new");
        let placed = again(&refused, says("Scheduled", "all of 2")).expect("it changes");
        assert_eq!(placed["conditions"].as_array().map(Vec::len), Some(1));
        assert_eq!(placed["conditions"][0]["status"], "True");
        assert_eq!(again(&placed, says("Unschedulable", "1 of 2 fit")), None, "it is never taken back");
        assert_eq!(again(&json!({}), wish(JobPhase::Running, 2)), None, "it has no phase");
    }
}
