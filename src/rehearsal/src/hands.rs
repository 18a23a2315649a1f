//! What is done to a cluster: objects are made, changed, evicted and deleted, and what was made is remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::serde::de::DeserializeOwned;
use krafla_api::crds::{PodGroup, Queue};
use krafla_model::queue::{DEFAULT_QUEUE, ROOT_QUEUE};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, EvictParams, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::{Api, Client, Error, Resource, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::admission;
use crate::eyes::is_ours;
use crate::names::{self, sent};
use crate::seen::{Key, key_of};

/// The field manager of what is applied.
const MANAGER: &str = "krafla-scenario";
/// Calls at once.
const AT_ONCE: usize = 24;
/// How long something that is in the way, such as a pod of the same name that stops, may take to go.
const MAKE_WAY: Duration = Duration::from_secs(45);
const PAUSE: Duration = Duration::from_millis(100);

/// Why something could not be done, in words.
pub(crate) type Trouble = String;

/// A kind that a cluster has.
type Known = (ApiResource, ApiCapabilities);

/// Where something is that was made.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// Does what a scenario says.
pub(crate) struct Hands {
    client: Client,
    label: String,
    /// The scheduler of pods that name none.
    scheduler: String,
    /// Whether the cluster is somebody's: then nothing is changed that was not made here.
    guest: bool,
    kinds: Mutex<BTreeMap<(String, String), Option<Known>>>,
    namespaces: Mutex<BTreeSet<String>>,
    made: Mutex<Vec<Made>>,
    /// The first object that the API server does not take as it is.
    invalid: Mutex<Option<Trouble>>,
}

impl Hands {
    pub(crate) fn new(client: Client, scenario: &str, scheduler: &str, guest: bool) -> Self {
        Self {
            client,
            label: admission::label_value(scenario),
            scheduler: scheduler.to_owned(),
            guest,
            kinds: Mutex::default(),
            namespaces: Mutex::default(),
            made: Mutex::default(),
            invalid: Mutex::default(),
        }
    }

    /// Everything that was made, in order.
    pub(crate) fn made(&self) -> Vec<Made> {
        locked(&self.made).clone()
    }

    /// The first object that the API server does not take as it is written, if there was one.
    pub(crate) fn invalid(&self) -> Option<Trouble> {
        locked(&self.invalid).clone()
    }

    /// The resource of an object; `None` if the cluster does not have its kind.
    pub(crate) async fn kind(&self, object: &Value) -> Result<Option<Known>, Trouble> {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let key = (text("apiVersion"), text("kind"));
        if let Some(known) = locked(&self.kinds).get(&key) {
            return Ok(known.clone());
        }
        let (group, version) = key.0.split_once('/').unwrap_or(("", &key.0));
        let found = match pinned_kind(&self.client, &GroupVersionKind::gvk(group, version, &key.1)).await {
            Ok(found) => Some(found),
            Err(Error::Discovery(_)) => None,
            Err(Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(format!("{} {}: {error}", key.0, key.1)),
        };
        locked(&self.kinds).insert(key, found.clone());
        Ok(found)
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    pub(crate) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &sent(namespace))
    }

    /// Applies objects, several at once. What could not be is told in words.
    pub(crate) async fn put_all(&self, objects: Vec<Value>) -> Vec<Trouble> {
        let puts = objects.into_iter().map(|object| self.put(object));
        let results: Vec<Result<(), Trouble>> = futures::stream::iter(puts).buffered(AT_ONCE).collect().await;
        results.into_iter().filter_map(Result::err).collect()
    }

    /// Makes an object, or puts it in the place of the one of its name. Fields that others have set stay.
    pub(crate) async fn put(&self, mut object: Value) -> Result<(), Trouble> {
        names::send(&mut object);
        let of = name_of(&object);
        let Some((resource, capabilities)) = self.kind(&object).await? else {
            return Err(format!("{of}: the cluster does not know this kind"));
        };
        let namespace = (capabilities.scope == Scope::Namespaced).then(|| key_of(&object).0);
        if let Some(namespace) = &namespace {
            self.ensure_namespace(namespace).await?;
        }
        admission::mark(&mut object, &self.label);
        if object["kind"] == "Pod" {
            admission::complete(&mut object, &self.scheduler);
        }
        let api = self.api(&resource, namespace.as_deref());
        let name = key_of(&object).1;
        if self.guest && !self.may_change(&api, &object, &name).await? {
            return Ok(());
        }
        let has_status = capabilities.subresources.iter().any(|(sub, _)| sub.plural == "status");
        let status = if has_status { object.as_object_mut().and_then(|all| all.remove("status")) } else { None };
        let params = PatchParams::apply(MANAGER).force();
        self.again(&of, async || api.patch(&name, &params, &Patch::Apply(&object)).await).await?;
        locked(&self.made).push(Made { resource: resource.clone(), namespace: namespace.clone(), name: name.clone() });
        if let Some(status) = status.filter(|status| !status.is_null()) {
            let status = json!({
                "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": name}, "status": status,
            });
            self.again(&of, async || api.patch_status(&name, &params, &Patch::Apply(&status)).await).await?;
        }
        if object["kind"] == "Pod" {
            let pods = self.pods(namespace.as_deref().unwrap_or_default());
            if pods.get(&name).await.is_ok_and(|live| admission::keeps_gates(&live, &object)) {
                self.ungate(&namespace.unwrap_or_default(), &name).await?;
            }
        }
        Ok(())
    }

    /// Whether an object of a guest may be put: not over one that is somebody's. The queues that every cluster has are
    /// left as they are.
    async fn may_change(&self, api: &Api<DynamicObject>, object: &Value, name: &str) -> Result<bool, Trouble> {
        let there = api.get_opt(name).await.map_err(|error| format!("{}: {error}", name_of(object)))?;
        let Some(there) = there else { return Ok(true) };
        if is_ours(&serde_json::to_value(&there).unwrap_or_default()) {
            return Ok(true);
        }
        if object["kind"] == "Queue" && [ROOT_QUEUE, DEFAULT_QUEUE].contains(&name) {
            return Ok(false);
        }
        Err(format!("{}: there is one already that no scenario made; it is left as it is", name_of(object)))
    }

    /// Makes a PodGroup.
    pub(crate) async fn make_group(&self, group: &Value) -> Result<(), Trouble> {
        self.put(group.clone()).await
    }

    /// Makes pods that are not there; one of the same name that stops is waited for. The answer is those that the API
    /// refuses because of a quota, to be made later, and what went wrong with the others.
    pub(crate) async fn make_pods(&self, pods: Vec<Value>) -> (Vec<Value>, Vec<Trouble>) {
        let (mut later, mut troubles) = (Vec::new(), Vec::new());
        // One after the other: so their ages have the order of the file.
        for pod in pods {
            match self.make_pod(&pod).await {
                Err(trouble) if trouble.contains("exceeded quota") => later.push(pod),
                Err(trouble) => troubles.push(trouble),
                Ok(()) => {}
            }
        }
        (later, troubles)
    }

    async fn make_pod(&self, pod: &Value) -> Result<(), Trouble> {
        let mut pod = pod.clone();
        names::send(&mut pod);
        let (namespace, name) = key_of(&pod);
        self.ensure_namespace(&namespace).await?;
        admission::mark(&mut pod, &self.label);
        admission::complete(&mut pod, &self.scheduler);
        let of = name_of(&pod);
        let typed: Pod = krafla_api::json::pod(pod).map_err(|why| format!("{of}: {why}"))?;
        let (api, params) =
            (self.pods(&namespace), PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() });
        self.again(&of, async || api.create(&params, &typed).await).await?;
        let resource = ApiResource::erase::<Pod>(&());
        locked(&self.made).push(Made { resource, namespace: Some(namespace), name });
        Ok(())
    }

    /// Calls until nothing is in the way any more.
    async fn again<T>(&self, of: &str, call: impl AsyncFn() -> Result<T, Error>) -> Result<T, Trouble> {
        let begun = Instant::now();
        loop {
            match call().await {
                Ok(done) => return Ok(done),
                Err(Error::Api(status))
                    if is_in_the_way(status.code, &status.message) && begun.elapsed() < MAKE_WAY =>
                {
                    sleep(PAUSE).await;
                }
                Err(Error::Api(status)) => {
                    let trouble = format!("{of}: {}", status.message);
                    if status.code == 422 {
                        locked(&self.invalid).get_or_insert_with(|| trouble.clone());
                    }
                    return Err(trouble);
                }
                Err(error) => return Err(format!("{of}: {error}")),
            }
        }
    }

    async fn ensure_namespace(&self, name: &str) -> Result<(), Trouble> {
        if name == krafla_api::DEFAULT_NAMESPACE || locked(&self.namespaces).contains(name) {
            return Ok(());
        }
        let api: Api<Namespace> = Api::all(self.client.clone());
        let begun = Instant::now();
        loop {
            let there = api.get_opt(name).await.map_err(|error| format!("namespace {name}: {error}"))?;
            match there {
                Some(there) if there.metadata.deletion_timestamp.is_none() => break,
                Some(_) if begun.elapsed() < MAKE_WAY => sleep(PAUSE).await,
                Some(_) => return Err(format!("namespace {name}: is being deleted, and does not go")),
                None => {
                    let mut namespace = json!({"metadata": {"name": name}});
                    admission::mark(&mut namespace, &self.label);
                    let namespace: Namespace = serde_json::from_value(namespace).map_err(|why| why.to_string())?;
                    match api.create(&PostParams::default(), &namespace).await {
                        Ok(_) => {
                            let resource = ApiResource::erase::<Namespace>(&());
                            locked(&self.made).push(Made { resource, namespace: None, name: name.to_owned() });
                            break;
                        }
                        // Another pod of the same moment was quicker.
                        Err(Error::Api(status)) if status.code == 409 => {}
                        Err(error) => return Err(format!("namespace {name}: {error}")),
                    }
                }
            }
        }
        locked(&self.namespaces).insert(name.to_owned());
        Ok(())
    }

    /// Deletes a PodGroup, if it is there.
    pub(crate) async fn delete_group(&self, (namespace, name): &Key) -> Result<(), Trouble> {
        self.delete(Api::<PodGroup>::namespaced(self.client.clone(), &sent(namespace)), "podgroup", name).await
    }

    /// Deletes a pod, within its grace period or at once.
    pub(crate) async fn delete_pod(&self, namespace: &str, name: &str, at_once: bool) -> Result<(), Trouble> {
        let params = if at_once { DeleteParams::default().grace_period(0) } else { DeleteParams::default() };
        gone(self.pods(namespace).delete(&sent(name), &params).await.map(drop), &format!("pod {namespace}/{name}"))
    }

    /// Deletes a node.
    pub(crate) async fn delete_node(&self, name: &str) -> Result<(), Trouble> {
        self.delete(Api::<Node>::all(self.client.clone()), "node", name).await
    }

    /// Deletes a queue.
    pub(crate) async fn delete_queue(&self, name: &str) -> Result<(), Trouble> {
        self.delete(Api::<Queue>::all(self.client.clone()), "queue", name).await
    }

    /// A guest deletes only what a scenario made.
    async fn delete<K>(&self, api: Api<K>, kind: &str, name: &str) -> Result<(), Trouble>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
    {
        let (of, name) = (format!("{kind} {name}"), sent(name));
        if self.guest {
            let there = api.get_opt(&name).await.map_err(|error| format!("{of}: {error}"))?;
            if there.is_some_and(|there| !there.labels().contains_key(admission::LABEL)) {
                return Err(format!("{of} is not deleted: no scenario made it"));
            }
        }
        gone(api.delete(&name, &DeleteParams::default()).await.map(drop), &of)
    }

    /// Evicts a pod through the Eviction API.
    pub(crate) async fn evict(&self, namespace: &str, name: &str) -> Result<(), Trouble> {
        let evicted = self.pods(namespace).evict(&sent(name), &EvictParams::default()).await;
        evicted.map(drop).map_err(|error| format!("pod {namespace}/{name} is not evicted: {error}"))
    }

    /// Takes the scheduling gates off a pod.
    pub(crate) async fn ungate(&self, namespace: &str, name: &str) -> Result<(), Trouble> {
        let patch = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
        let done = self.pods(namespace).patch(&sent(name), &PatchParams::default(), &patch).await;
        done.map(drop).map_err(|error| format!("pod {namespace}/{name} keeps its gates: {error}"))
    }
}

fn gone(result: Result<(), Error>, of: &str) -> Result<(), Trouble> {
    match result {
        Ok(()) => Ok(()),
        Err(Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(format!("{of} is not deleted: {error}")),
    }
}

/// Whether a refusal is about something that goes by itself: another object of that name, an account that is not there
/// yet, a server that is busy.
fn is_in_the_way(code: u16, message: &str) -> bool {
    match code {
        409 | 429 | 500 | 503 | 504 => true,
        403 => message.contains("service account") || message.contains("being terminated"),
        _ => false,
    }
}

fn name_of(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object").to_lowercase();
    format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or_default())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
