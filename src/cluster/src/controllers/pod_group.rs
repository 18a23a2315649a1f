//! PodGroups for pods that have none: one for all pods of an owner, as Volcano's `pg-controller` makes them.
//!
//! Unlike that, nothing patches the pods: the scheduler knows the group of a pod by its owner, and the bind writes the
//! annotation. A group that was made here goes with its last pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use krafla_api::Converter;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;
use tracing::info;

use super::{Observation, settle};
use crate::client::Clients;
use crate::directory::GroupKey;
use crate::lanes::{Called, Lanes, Wish};
use crate::perform::{Answer, Events, FIELD_MANAGER, Notice, reference};
use crate::watch::{Identity, Kind};

/// Label of the PodGroups that are made here.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "krafla");

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
    members: BTreeMap<GroupKey, BTreeMap<String, String>>,
    samples: BTreeMap<GroupKey, Box<Pod>>,
    /// UIDs of the PodGroups that there are, and whether they were made here.
    existing: BTreeMap<GroupKey, (String, bool)>,
}

impl Groups {
    pub(super) fn observe(&mut self, observation: Observation) -> Vec<(GroupKey, Wanted)> {
        let key = match observation {
            Observation::Pod { uid, name, key, sample } => {
                self.members.entry(key.clone()).or_default().insert(uid, name);
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
            Observation::Group { key, meta, .. } => {
                let ours = meta.labels.iter().flatten().any(|(key, value)| (&**key, &**value) == MANAGED_BY);
                self.existing.insert(key.clone(), (meta.uid.unwrap_or_default(), ours));
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
        match (self.members.get(key).and_then(|members| members.first_key_value()), self.existing.get(key)) {
            (Some((_, pod)), None) => Some(Wanted::Made { pod: pod.clone(), sample: self.samples.get(key).cloned() }),
            (None, Some((uid, true))) => Some(Wanted::Deleted { uid: uid.clone() }),
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
            let answer = make(&clients, &events, &api, &key, pod, sample.as_deref()).await;
            settle(&format!("podgroup {}/{} cannot be made", key.0, key.1), wanted, answer)
        }
        Wanted::Deleted { uid } => {
            let params = DeleteParams::default().preconditions(kube::api::Preconditions {
                uid: Some(uid.clone()),
                ..kube::api::Preconditions::default()
            });
            let answer = match Answer::of(&api.delete(&key.1, &params).await) {
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
    let owner = match owner_of(clients, pod, &key.0).await {
        Ok(owner) => owner,
        Err(error) => return Answer::of::<()>(&Err(error)),
    };
    let mut converter = Converter::new();
    let (group, problems) = converter.group_for_pod(pod, owner.as_ref());
    let Some(mut group) = group else {
        let about = Identity { namespace: key.0.to_string(), name: pod.name_any(), uid: pod.uid().unwrap_or_default() };
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
    group.metadata.name = Some(key.1.to_string());
    group.metadata.namespace = Some(key.0.to_string());
    group.metadata.owner_references = Some(owner_references(pod));
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

/// The object that controls a pod, if it is of a kind whose annotations count.
async fn owner_of(clients: &Clients, pod: &Pod, namespace: &str) -> Result<Option<ObjectMeta>, kube::Error> {
    let Some(owner) = pod.owner_references().iter().find(|owner| owner.controller == Some(true)) else {
        return Ok(None);
    };
    if !["ReplicaSet", "DaemonSet", "StatefulSet", "Job"].contains(&owner.kind.as_str()) {
        return Ok(None);
    }
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &owner.kind));
    let api: Api<DynamicObject> = Api::namespaced_with(clients.calls.clone(), namespace, &resource);
    clients.throttle.turn().await;
    let found = match api.get_opt(&owner.name).await {
        Ok(found) => found,
        // Not readable for us: then it has nothing to say.
        Err(kube::Error::Api(status)) if status.code == 403 => None,
        Err(error) => return Err(error),
    };
    Ok(found.filter(|found| found.metadata.uid.as_deref() == Some(&owner.uid)).map(|found| found.metadata))
}

/// The owners of a pod's PodGroup: those of the pod, if one controls it, or else the pod.
fn owner_references(pod: &Pod) -> Vec<OwnerReference> {
    let owners = pod.owner_references();
    if owners.iter().any(|owner| owner.controller == Some(true)) {
        return owners.to_vec();
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
        Observation::Pod { uid: uid.to_owned(), name: format!("pod-{uid}"), key: key(), sample: None }
    }

    fn group(ours: bool) -> Observation {
        let labels = ours.then(|| BTreeMap::from([(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned())]));
        let meta = ObjectMeta { uid: Some("u".to_owned()), labels, ..ObjectMeta::default() };
        Observation::Group { key: key(), queue: "default".to_owned(), meta: Box::new(meta) }
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
}
