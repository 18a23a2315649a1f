//! From what the watches see to what the engine is told.
//!
//! One task reads everything, so that objects reach the engine in the order in which they were seen, and the converter
//! can keep one copy of each pod signature. Nothing else of a pod is kept: here it ends as an API object.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use krafla_api::{
    Converter, Object, StorageManifest, group_of, implicit_group_name, keys, label_gang, label_gang_group,
};
use krafla_engine::Input;
use krafla_model::pod_affinity::Workload;
use krafla_model::storage::{StorageKey, StorageKind};
use krafla_model::{Event, Name, Problem};
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tracing::{info, warn};

use crate::controllers::{Controllers, Observation, is_made_here};
use crate::directory::{Directory, GroupEntry};
use crate::inbox::Inbox;
use crate::perform::{Events, Interest, Notice, Placing, Statuses, reference};
use crate::watch::{Change, Identity, Kind, Seen};

/// Which objects are this scheduler's business.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Names under which pods ask for this scheduler.
    pub scheduler_names: BTreeSet<String>,
    /// Labels of which a node must carry one; all nodes if empty.
    pub node_labels: Vec<(String, String)>,
    /// Whether PriorityClasses give PodGroups their priority.
    pub ignore_priority_classes: bool,
    /// The queue of PodGroups that name none.
    pub default_queue: String,
    /// Whether pods are scheduled one by one, without PodGroups and queues.
    pub profile_only: bool,
}

/// A pod in a group that is made for it.
struct Member {
    key: (Name, Name),
    needs_group: bool,
}

/// Reads what the watches send.
pub(crate) struct Feed {
    pub(crate) scope: Scope,
    pub(crate) inbox: Inbox,
    pub(crate) directory: Directory,
    pub(crate) controllers: Controllers,
    pub(crate) events: Events,
    pub(crate) statuses: Statuses,
    placing: Placing,
    interest: Interest,
    converter: Converter,
    /// Kinds whose first list has not come in yet.
    awaited: BTreeSet<Kind>,
    /// Pods in groups that are made for them, by UID: when the last one goes, so does the group.
    members: BTreeMap<String, Member>,
    /// Gangs by labels alone, with the UIDs of their pods; only where pods are scheduled one by one.
    label_gangs: BTreeMap<(Name, Name), BTreeSet<String>>,
}

impl Feed {
    pub(crate) fn new(
        scope: Scope,
        inbox: Inbox,
        directory: Directory,
        controllers: Controllers,
        events: Events,
        statuses: Statuses,
        placing: Placing,
    ) -> Self {
        let awaited = Kind::watched(scope.profile_only).collect();
        Self {
            placing,
            interest: Interest::default(),
            scope,
            inbox,
            directory,
            controllers,
            events,
            statuses,
            converter: Converter::new(),
            awaited,
            members: BTreeMap::new(),
            label_gangs: BTreeMap::new(),
        }
    }

    /// From now on these annotations of pods are kept, for plugins that read them.
    pub(crate) fn keep_annotations(&mut self, keys: &[&'static str]) {
        self.converter.keep_annotations(keys);
    }

    /// From now on what only a descheduler asks of pods is read too.
    pub(crate) fn read_details(&mut self) {
        self.converter.read_details();
    }

    /// From now on those who wait for an object are told of its changes.
    pub(crate) fn serve(&mut self, interest: Interest) {
        self.interest = interest;
    }

    /// Reads until the watches end.
    pub(crate) async fn run(mut self, mut changes: Receiver<Change>) {
        while let Some(change) = changes.recv().await {
            match change {
                Change::Applied(kind, seen) => self.applied(kind, *seen).await,
                Change::Gone(kind, identity) => self.gone(kind, identity).await,
                Change::Listed(kind) => {
                    if self.awaited.remove(&kind) && self.awaited.is_empty() {
                        info!("all objects have been listed");
                        self.controllers.observe(Observation::Complete);
                        self.inbox.complete().await;
                    }
                }
            }
        }
    }

    async fn applied(&mut self, kind: Kind, seen: Seen) {
        match seen {
            Seen::Object(Object::Pod(pod)) => self.pod(*pod).await,
            Seen::Object(Object::Node(node)) if !self.wants_node(node.metadata.labels.as_ref()) => {
                // It may have carried the label before.
                if let Some(name) = node.metadata.name.as_deref() {
                    self.tell(Event::NodeGone(name.into())).await;
                }
            }
            Seen::Object(Object::Storage(StorageManifest::Claim(claim))) => {
                let identity = Identity::of(&claim.metadata);
                self.object(kind, &Object::Storage(StorageManifest::Claim(claim))).await;
                self.interest.changed("PersistentVolumeClaim", &identity.namespace, &identity.name);
            }
            Seen::Object(Object::PriorityClass(_)) if self.scope.ignore_priority_classes => {}
            Seen::Object(object) => self.object(kind, &object).await,
            Seen::Raw(raw) if kind == Kind::Command => self.controllers.observe(Observation::Command(raw)),
            Seen::Raw(raw) => {
                let identity = Identity::of(&raw.metadata);
                let status = raw.data.get("status").cloned().unwrap_or(Value::Null);
                match read(kind, *raw) {
                    Ok(object) => {
                        self.note_custom(kind, &identity, &object, status);
                        self.object(kind, &object).await;
                    }
                    Err(message) => {
                        let object = format!("{} {}/{}", kind.label(), identity.namespace, identity.name);
                        let message = format!("cannot be read, and counts for nothing until it is mended: {message}");
                        self.problem(kind, &identity, &Problem { object, message });
                    }
                }
            }
        }
    }

    /// What the shell itself keeps of PodGroups and queues.
    fn note_custom(&mut self, kind: Kind, identity: &Identity, object: &Object, status: Value) {
        let key = (Name::from(&*identity.namespace), Name::from(&*identity.name));
        match object {
            Object::Queue(queue) => self.controllers.observe(Observation::Queue(queue.clone())),
            Object::PodGroup(group) => {
                let queue = group.spec.as_ref().and_then(|spec| spec.queue.clone()).filter(|queue| !queue.is_empty());
                let queue = queue.unwrap_or_else(|| self.scope.default_queue.clone());
                let phase = status.get("phase").and_then(Value::as_str).map(str::to_owned);
                self.directory.set_group(key.clone(), GroupEntry { kind, uid: identity.uid.clone(), status });
                self.statuses.group_seen(&key, phase.as_deref());
                let made_here = is_made_here(&group.metadata, &self.scope.scheduler_names);
                let uid = identity.uid.clone();
                self.controllers.observe(Observation::Group { key, queue, uid, made_here });
            }
            _ => {
                self.directory.set_group(key, GroupEntry { kind, uid: identity.uid.clone(), status });
            }
        }
    }

    async fn object(&mut self, kind: Kind, object: &Object) {
        let (event, problems) = self.converter.event(object);
        if !problems.is_empty()
            && let Some(meta) = object.metadata()
        {
            let identity = Identity::of(meta);
            for problem in &problems {
                self.problem(kind, &identity, problem);
            }
        }
        if let Some(event) = event {
            let event = self.with_default_queue(event);
            self.tell(event).await;
        }
    }

    fn with_default_queue(&self, mut event: Event) -> Event {
        if let Event::PodGroup(group) = &mut event
            && *group.queue == *krafla_model::queue::DEFAULT_QUEUE
            && !self.scope.default_queue.is_empty()
        {
            group.queue = self.scope.default_queue.as_str().into();
        }
        event
    }

    async fn pod(&mut self, mut pod: Pod) {
        let spec = pod.spec.as_ref();
        let placed = spec.and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
        let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or("default-scheduler");
        let ours = self.scope.scheduler_names.contains(scheduler);
        if !ours && !placed {
            return;
        }
        if ours && self.scope.profile_only {
            self.join_label_gang(&pod).await;
        } else if ours {
            self.find_group(&mut pod, placed);
        }
        self.object(Kind::Pod, &Object::Pod(Box::new(pod))).await;
    }

    /// A gang by labels alone has no object: the scheduler itself is told of one, for as long as it has pods.
    async fn join_label_gang(&mut self, pod: &Pod) {
        let Some((name, min)) = label_gang(pod) else { return };
        let (Some(uid), Some(namespace)) = (pod.metadata.uid.clone(), pod.metadata.namespace.clone()) else { return };
        let key = (Name::from(&*namespace), Name::from(name));
        let gang = self.label_gangs.entry(key).or_default();
        let is_new = gang.is_empty();
        gang.insert(uid);
        if is_new {
            let (group, _) = self.converter.pod_group(&label_gang_group(pod, name, min));
            if let Some(group) = group {
                self.tell(Event::PodGroup(group)).await;
            }
        }
    }

    /// The pod may have been the last of a gang by labels alone.
    async fn leave_label_gang(&mut self, uid: &str) {
        let Some(key) = self.label_gangs.iter().find(|(_, pods)| pods.contains(uid)).map(|(key, _)| key.clone()) else {
            return;
        };
        let pods = self.label_gangs.entry(key.clone()).or_default();
        pods.remove(uid);
        if pods.is_empty() {
            self.label_gangs.remove(&key);
            let (namespace, name) = key;
            self.tell(Event::PodGroupGone { namespace, name }).await;
        }
    }

    /// Links a pod that names no PodGroup to the one that is made for it, and has that made.
    fn find_group(&mut self, pod: &mut Pod, placed: bool) {
        let meta = &pod.metadata;
        let (Some(uid), Some(namespace)) = (meta.uid.clone(), meta.namespace.clone()) else { return };
        let (named, made) = (group_of(pod).map(str::to_owned), implicit_group_name(pod));
        let names_none = named.is_none();
        let group = named.unwrap_or_else(|| made.clone());
        if group == made || label_gang(pod).is_some() {
            let key = (Name::from(&*namespace), Name::from(&*group));
            let ended = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let needs_group =
                pod.metadata.deletion_timestamp.is_none() && !matches!(ended, Some("Succeeded" | "Failed"));
            let member = Member { key: key.clone(), needs_group };
            let known = self.members.insert(uid.clone(), member).is_some_and(|old| old.needs_group == needs_group);
            let sample = (needs_group && !self.directory.has_group(&key)).then(|| Box::new(sample(pod)));
            if !known || sample.is_some() {
                let name = pod.metadata.name.clone().unwrap_or_default();
                self.controllers.observe(Observation::Pod { uid: uid.clone(), name, key, needs_group, sample });
            }
        }
        if names_none {
            if placed {
                self.directory.unlink(&uid);
            } else {
                self.directory.link(Name::from(&*uid), Name::from(&*group));
            }
            pod.metadata.annotations.get_or_insert_default().insert(keys::GROUP_NAME.to_owned(), group);
        }
    }

    async fn gone(&mut self, kind: Kind, identity: Identity) {
        if kind == Kind::Pod && !self.label_gangs.is_empty() {
            self.leave_label_gang(&identity.uid).await;
        }
        let name = Name::from(&*identity.name);
        let key = || (Name::from(&*identity.namespace), Name::from(&*identity.name));
        let event = match kind {
            Kind::Pod => {
                self.directory.unlink(&identity.uid);
                self.placing.forget(&identity.uid);
                if let Some(Member { key, .. }) = self.members.remove(&identity.uid) {
                    self.controllers.observe(Observation::PodGone { uid: identity.uid.clone(), key });
                }
                Event::PodGone(Name::from(&*identity.uid))
            }
            Kind::Node => Event::NodeGone(name),
            Kind::PriorityClass => Event::PriorityClassGone(name),
            Kind::ResourceQuota => Event::QuotaGone { namespace: Name::from(&*identity.namespace), name },
            Kind::ElasticQuota => Event::ElasticQuotaGone { namespace: Name::from(&*identity.namespace), name },
            Kind::DisruptionBudget => Event::BudgetGone { namespace: Name::from(&*identity.namespace), name },
            Kind::Queue => {
                self.controllers.observe(Observation::QueueGone(identity.name.clone()));
                Event::QueueGone(name)
            }
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::KubernetesGroup => {
                if !self.directory.remove_group(&key(), kind) {
                    return; // a PodGroup of another API has the name
                }
                self.statuses.group_gone(&key());
                if kind == Kind::PodGroup {
                    self.controllers.observe(Observation::GroupGone(key()));
                }
                Event::PodGroupGone { namespace: Name::from(&*identity.namespace), name }
            }
            Kind::Namespace => Event::NamespaceGone(name),
            Kind::Service | Kind::ReplicaSet | Kind::ReplicationController | Kind::StatefulSet => {
                let workload = Workload { kind: Name::from(&*kind.resource().kind), name };
                Event::WorkloadGone { namespace: Name::from(&*identity.namespace), workload }
            }
            Kind::StorageClass => storage_gone(StorageKind::Class, &identity),
            Kind::CsiDriver => storage_gone(StorageKind::Driver, &identity),
            Kind::CsiNode => storage_gone(StorageKind::Node, &identity),
            Kind::CsiStorageCapacity => storage_gone(StorageKind::Capacity, &identity),
            Kind::PersistentVolume => storage_gone(StorageKind::Volume, &identity),
            Kind::PersistentVolumeClaim => {
                self.interest.changed("PersistentVolumeClaim", &identity.namespace, &identity.name);
                storage_gone(StorageKind::Claim, &identity)
            }
            Kind::VolumeAttachment => storage_gone(StorageKind::Attachment, &identity),
            Kind::DeviceClass => Event::DeviceClassGone(name),
            Kind::ResourceSlice => Event::ResourceSliceGone(name),
            Kind::ResourceClaim => Event::ResourceClaimGone { namespace: Name::from(&*identity.namespace), name },
            Kind::Command => return,
        };
        self.tell(event).await;
    }

    fn wants_node(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let wanted = &self.scope.node_labels;
        wanted.is_empty()
            || wanted.iter().any(|(key, value)| labels.is_some_and(|labels| labels.get(key) == Some(value)))
    }

    async fn tell(&self, event: Event) {
        self.inbox.input(Input::Event(event)).await;
    }

    /// Says what is wrong with an object: in the log, and on the object itself.
    fn problem(&self, kind: Kind, identity: &Identity, problem: &Problem) {
        warn!(object = problem.object, "{}", problem.message);
        self.events.notice(Notice {
            about: reference(kind, identity),
            warning: true,
            reason: "InvalidObject".to_owned(),
            message: problem.message.clone(),
        });
    }
}

fn storage_gone(kind: StorageKind, identity: &Identity) -> Event {
    let (namespace, name) = (Name::from(&*identity.namespace), Name::from(&*identity.name));
    Event::StorageGone(StorageKey { kind, namespace, name })
}

/// What is needed of a pod to make its PodGroup.
fn sample(pod: &Pod) -> Pod {
    let mut sample = pod.clone();
    sample.status = None;
    sample
}

/// Reads a custom resource leniently.
fn read(kind: Kind, raw: DynamicObject) -> Result<Object, String> {
    fn typed<T: DeserializeOwned>(raw: DynamicObject) -> Result<Box<T>, String> {
        let mut value = raw.data;
        let metadata = serde_json::to_value(raw.metadata).map_err(|error| error.to_string())?;
        if let Value::Object(fields) = &mut value {
            fields.insert("metadata".to_owned(), metadata);
        }
        serde_json::from_value(value).map(Box::new).map_err(|error| error.to_string())
    }
    Ok(match kind {
        Kind::Queue => Object::Queue(typed(raw)?),
        Kind::PodGroup => Object::PodGroup(typed(raw)?),
        Kind::CoschedulingGroup => Object::CoschedulingGroup(typed(raw)?),
        Kind::KubernetesGroup => Object::KubernetesGroup(typed(raw)?),
        Kind::ElasticQuota => Object::ElasticQuota(typed(raw)?),
        other => return Err(format!("{other:?} is not read in this way")),
    })
}
