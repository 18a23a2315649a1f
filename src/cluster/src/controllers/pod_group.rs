//! PodGroups for pods that have none: one for all pods of an owner, as Volcano's `pg-controller` makes them.
//!
//! Unlike that, nothing patches the pods: the scheduler knows the group of a pod by its owner, and the bind writes the
//! annotation. A group that was made here goes with its last pod.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use krafla_api::Converter;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use tokio::time::timeout;
use tracing::info;

use super::{Observation, settle};
use crate::client::Clients;
use crate::directory::GroupKey;
use crate::lanes::{Called, Lanes, Wish};
use crate::perform::{Answer, CALL, Events, FIELD_MANAGER, Notice, reference};
use crate::watch::{Identity, Kind};

/// Label of the PodGroups that are made here.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "krafla");
/// Label that says for which scheduler's pods.
const SCHEDULER: &str = "krafla.io/scheduler";

/// Whether a PodGroup was made here, for pods of one of these schedulers.
pub(crate) fn is_made_here(meta: &ObjectMeta, schedulers: &BTreeSet<String>) -> bool {
    let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key));
    label(MANAGED_BY.0).is_some_and(|by| by == MANAGED_BY.1)
        && label(SCHEDULER).is_some_and(|name| schedulers.contains(name))
}

/// What is to become of a PodGroup.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// There should be one for this pod.
    Made { pod: String, sample: Option<Box<Pod>> },
    /// There should be none.
    Deleted { uid: String },
}

impl Wish for Wanted {
    fn update(&mut self, newer: Self) {
        *self = newer;
    }
}

/// Groups that are made for pods, and the pods in them.
#[derive(Default)]
pub(super) struct Groups {
    /// Pods by UID: name, and whether it needs the group.
    members: BTreeMap<GroupKey, BTreeMap<String, (String, bool)>>,
    samples: BTreeMap<GroupKey, Box<Pod>>,
    /// UIDs of the PodGroups that there are, and whether they were made here.
    existing: BTreeMap<GroupKey, (String, bool)>,
}

impl Groups {
    pub(super) fn observe(&mut self, observation: Observation) -> Vec<(GroupKey, Wanted)> {
        let key = match observation {
            Observation::Pod { uid, name, key, needs_group, sample } => {
                self.members.entry(key.clone()).or_default().insert(uid, (name, needs_group));
                if let Some(sample) = sample.filter(|_| !self.existing.contains_key(&key)) {
                    self.samples.insert(key.clone(), sample);
                }
                key
            }
            Observation::PodGone { uid, key } => {
                if let Some(members) = self.members.get_mut(&key) {
                    members.remove(&uid);
                    if members.is_empty() {
                        self.members.remove(&key);
                        self.samples.remove(&key);
                    }
                }
                key
            }
            Observation::Group { key, uid, made_here, .. } => {
                self.existing.insert(key.clone(), (uid, made_here));
                self.samples.remove(&key);
                key
            }
            Observation::GroupGone(key) => {
                self.existing.remove(&key);
                key
            }
            _ => return Vec::new(),
        };
        self.wanted(&key).map(|wanted| (key, wanted)).into_iter().collect()
    }

    /// Everything that is to be done.
    pub(super) fn all(&mut self) -> Vec<(GroupKey, Wanted)> {
        let keys: Vec<GroupKey> = self.members.keys().chain(self.existing.keys()).cloned().collect();
        keys.into_iter().filter_map(|key| self.wanted(&key).map(|wanted| (key, wanted))).collect()
    }

    fn wanted(&self, key: &GroupKey) -> Option<Wanted> {
        let members = self.members.get(key);
        let needy = members.and_then(|members| members.values().find(|(_, needs_group)| *needs_group));
        match (needy, self.existing.get(key)) {
            (Some((pod, _)), None) => Some(Wanted::Made { pod: pod.clone(), sample: self.samples.get(key).cloned() }),
            (None, Some((uid, true))) if members.is_none() => Some(Wanted::Deleted { uid: uid.clone() }),
            _ => None,
        }
    }
}

/// The calls of this controller.
pub(super) fn calls(clients: Clients, events: Events) -> Lanes<GroupKey, Wanted> {
    super::lanes(move |key, wanted| call(clients.clone(), events.clone(), key, wanted))
}

async fn call(clients: Clients, events: Events, key: GroupKey, wanted: Wanted) -> Called<Wanted> {
    let api: Api<DynamicObject> = Api::namespaced_with(clients.calls.clone(), &key.0, &Kind::PodGroup.resource());
    clients.throttle.turn().await;
    match &wanted {
        Wanted::Made { pod, sample } => {
            let made = timeout(CALL, make(&clients, &events, &api, &key, pod, sample.as_deref()));
            let answer = made.await.unwrap_or_else(|_| Answer::silence(CALL));
            settle(&format!("podgroup {}/{} cannot be made", key.0, key.1), wanted, answer)
        }
        Wanted::Deleted { uid } => {
            let params = DeleteParams::default().preconditions(kube::api::Preconditions {
                uid: Some(uid.clone()),
                ..kube::api::Preconditions::default()
            });
            let answer = match Answer::within(CALL, api.delete(&key.1, &params)).await {
                Answer::Refused { code: 409, .. } => Answer::Done, // another has its name
                answer => answer,
            };
            settle(&format!("podgroup {}/{} cannot be deleted", key.0, key.1), wanted, answer)
        }
    }
}

async fn make(
    clients: &Clients,
    events: &Events,
    api: &Api<DynamicObject>,
    key: &GroupKey,
    pod: &str,
    sample: Option<&Pod>,
) -> Answer {
    let pods: Api<Pod> = Api::namespaced(clients.calls.clone(), &key.0);
    let fetched;
    let pod = match sample {
        Some(pod) => pod,
        None => match pods.get_opt(pod).await {
            Ok(Some(pod)) => {
                fetched = pod;
                &fetched
            }
            Ok(None) => return Answer::Done,
            Err(error) => return Answer::of::<()>(&Err(error)),
        },
    };
    let (owner, orphaned) = match owner_of(clients, pod, &key.0).await {
        Ok(Owner::None) => (None, false),
        Ok(Owner::Found(meta)) => (Some(*meta), false),
        Ok(Owner::Gone) => (None, true),
        Err(error) => return Answer::of::<()>(&Err(error)),
    };
    let mut converter = Converter::new();
    let (group, problems) = converter.group_for_pod(pod, owner.as_ref());
    let Some(mut group) = group else {
        let about = Identity::of(&pod.metadata);
        for problem in problems {
            events.notice(Notice {
                about: reference(Kind::Pod, &about),
                warning: true,
                reason: "InvalidObject".to_owned(),
                message: format!("no PodGroup can be made for it: {}", problem.message),
            });
        }
        return Answer::Done;
    };
    let labels = group.metadata.labels.get_or_insert_default();
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    let scheduler = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.clone()).unwrap_or_default();
    labels.insert(SCHEDULER.to_owned(), scheduler);
    group.metadata.name = Some(key.1.to_string());
    group.metadata.namespace = Some(key.0.to_string());
    group.metadata.owner_references = Some(owner_references(pod, orphaned));
    let object = match as_object(&group) {
        Ok(object) => object,
        Err(error) => return Answer::Refused { code: 422, message: error.to_string() },
    };
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match Answer::of(&api.create(&params, &object).await) {
        Answer::Refused { code: 409, .. } => Answer::Done, // somebody was quicker
        answer => {
            if answer == Answer::Done {
                info!("made podgroup {}/{}", key.0, key.1);
            }
            answer
        }
    }
}

fn as_object(group: &krafla_api::crds::PodGroup) -> Result<DynamicObject, serde_json::Error> {
    let resource = Kind::PodGroup.resource();
    let mut object = DynamicObject::new(group.metadata.name.as_deref().unwrap_or_default(), &resource);
    object.metadata = group.metadata.clone();
    object.data = json!({ "spec": group.spec, "status": { "phase": "Pending" } });
    Ok(object)
}

/// What controls a pod.
enum Owner {
    /// Nothing, or something whose annotations do not count.
    None,
    Found(Box<ObjectMeta>),
    /// Something that is gone: the garbage collector would take a PodGroup that it owns.
    Gone,
}

async fn owner_of(clients: &Clients, pod: &Pod, namespace: &str) -> Result<Owner, kube::Error> {
    let Some(owner) = pod.owner_references().iter().find(|owner| owner.controller == Some(true)) else {
        return Ok(Owner::None);
    };
    if !["ReplicaSet", "DaemonSet", "StatefulSet", "Job"].contains(&owner.kind.as_str()) {
        return Ok(Owner::None);
    }
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &owner.kind));
    let api: Api<DynamicObject> = Api::namespaced_with(clients.calls.clone(), namespace, &resource);
    clients.throttle.turn().await;
    let found = match api.get_opt(&owner.name).await {
        Ok(found) => found,
        // Not readable for us: then it has nothing to say.
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Owner::None),
        Err(error) => return Err(error),
    };
    let same = found.filter(|found| found.metadata.uid.as_deref() == Some(&owner.uid));
    Ok(same.map_or(Owner::Gone, |found| Owner::Found(Box::new(found.metadata))))
}

/// The owners of a pod's PodGroup: those of the pod, if one controls it and is there, or else the pod. They do not wait
/// for the PodGroup when they are deleted, which not every role may ask for.
fn owner_references(pod: &Pod, orphaned: bool) -> Vec<OwnerReference> {
    let owners = pod.owner_references();
    if !orphaned && owners.iter().any(|owner| owner.controller == Some(true)) {
        let owners = owners.iter().cloned();
        return owners.map(|owner| OwnerReference { block_owner_deletion: None, ..owner }).collect();
    }
    pod.controller_owner_ref(&()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> GroupKey {
        ("a".into(), "podgroup-1".into())
    }

    fn pod(uid: &str) -> Observation {
        let name = format!("pod-{uid}");
        Observation::Pod { uid: uid.to_owned(), name, key: key(), needs_group: true, sample: None }
    }

    fn terminating(uid: &str) -> Observation {
        let name = format!("pod-{uid}");
        Observation::Pod { uid: uid.to_owned(), name, key: key(), needs_group: false, sample: None }
    }

    fn group(made_here: bool) -> Observation {
        Observation::Group { key: key(), queue: "default".to_owned(), uid: "u".to_owned(), made_here }
    }

    fn wanted(groups: &mut Groups, observation: Observation) -> &'static str {
        match groups.observe(observation).as_slice() {
            [] => "nothing",
            [(_, Wanted::Made { .. })] => "made",
            [(_, Wanted::Deleted { .. })] => "deleted",
            more => panic!("{more:?}"),
        }
    }

    #[test]
    fn a_group_is_made_for_the_first_pod_and_goes_with_the_last() {
        let mut groups = Groups::default();
        assert_eq!(wanted(&mut groups, pod("1")), "made");
        assert_eq!(wanted(&mut groups, group(true)), "nothing");
        assert_eq!(wanted(&mut groups, pod("2")), "nothing");
        let gone = |uid: &str| Observation::PodGone { uid: uid.to_owned(), key: key() };
        assert_eq!(wanted(&mut groups, gone("1")), "nothing");
        assert_eq!(wanted(&mut groups, gone("2")), "deleted");
    }

    #[test]
    fn a_group_that_somebody_else_made_stays() {
        let mut groups = Groups::default();
        assert_eq!(wanted(&mut groups, group(false)), "nothing");
        assert_eq!(wanted(&mut groups, pod("1")), "nothing");
        assert_eq!(wanted(&mut groups, Observation::PodGone { uid: "1".to_owned(), key: key() }), "nothing");
    }

    #[test]
    fn a_group_that_is_deleted_under_its_pods_is_made_again() {
        let mut groups = Groups::default();
        groups.observe(pod("1"));
        groups.observe(group(true));
        assert_eq!(wanted(&mut groups, Observation::GroupGone(key())), "made");
    }

    #[test]
    fn no_group_is_made_for_pods_that_only_terminate() {
        let mut groups = Groups::default();
        groups.observe(pod("1"));
        groups.observe(group(true));
        assert_eq!(wanted(&mut groups, terminating("1")), "nothing");
        assert_eq!(wanted(&mut groups, Observation::GroupGone(key())), "nothing");
    }

    #[test]
    fn a_group_made_for_another_scheduler_is_not_ours() {
        let labels = |scheduler: &str| {
            let all = [(MANAGED_BY.0, MANAGED_BY.1), (SCHEDULER, scheduler)];
            let labels = all.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
            ObjectMeta { labels: Some(labels.collect()), ..ObjectMeta::default() }
        };
        let ours = BTreeSet::from(["volcano".to_owned()]);
        assert!(is_made_here(&labels("volcano"), &ours));
        assert!(!is_made_here(&labels("other"), &ours));
        assert!(!is_made_here(&ObjectMeta::default(), &ours));
    }
}
