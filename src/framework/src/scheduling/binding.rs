//! PreBind, Bind and PostBind: what a plugin does on the way to a bind, with the API at hand. A shell runs it, many pods
//! at once, so it may take its time; the next pods are decided on meanwhile.

use std::future::Future;
use std::pin::Pin;

use crate::effect::{ClaimsToBind, PodRef};

/// Something that is done later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An object of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRef<'a> {
    /// Group, version: `v1`, `apps/v1`.
    pub api_version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its kind as it stands in paths: `nodes`.
    pub plural: &'a str,
    /// Its namespace; `None` if its kind has none.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
}

impl<'a> ObjectRef<'a> {
    /// A node.
    pub fn node(name: &'a str) -> Self {
        Self { api_version: "v1", kind: "Node", plural: "nodes", namespace: None, name }
    }

    /// A PersistentVolume.
    pub fn volume(name: &'a str) -> Self {
        Self { api_version: "v1", kind: "PersistentVolume", plural: "persistentvolumes", namespace: None, name }
    }

    /// A PersistentVolumeClaim.
    pub fn claim(namespace: &'a str, name: &'a str) -> Self {
        let (kind, plural) = ("PersistentVolumeClaim", "persistentvolumeclaims");
        Self { api_version: "v1", kind, plural, namespace: Some(namespace), name }
    }

    /// A pod.
    pub fn pod(pod: &'a PodRef) -> Self {
        Self { api_version: "v1", kind: "Pod", plural: "pods", namespace: Some(&pod.namespace), name: &pod.name }
    }
}

/// The API, as far as binding plugins have it.
pub trait ObjectApi: Send + Sync {
    /// Reads an object, as JSON; `None` if there is none of that name.
    fn get<'a>(&'a self, object: ObjectRef<'a>) -> Later<'a, Result<Option<String>, String>>;

    /// Changes an object by a merge patch, which is JSON.
    fn patch<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>>;

    /// Changes the status of an object by a merge patch, which is JSON.
    fn patch_status<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>>;

    /// Waits until an object may have changed since it was first asked about here, but at most so many milliseconds.
    /// Answers how many have passed.
    fn changed<'a>(&'a self, object: ObjectRef<'a>, at_most_ms: u64) -> Later<'a, u64>;

    /// What a plugin chose for the claims of the pod that is being bound.
    fn claims(&self, plugin: &str) -> Option<&ClaimsToBind>;
}

/// The side of a plugin that talks to the API. It goes with the [`NodePlugin`](crate::NodePlugin) of its name, and a
/// profile says where both take part.
pub trait BindingPlugin: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What has to happen before the bind. An error sends the pod back to the queue.
    fn pre_bind<'a>(
        &'a self,
        _api: &'a dyn ObjectApi,
        _pod: &'a PodRef,
        _node: &'a str,
    ) -> Later<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Takes back what PreBind did: a later plugin, or the bind, has failed. It may find nothing to take back.
    fn undo_pre_bind<'a>(&'a self, _api: &'a dyn ObjectApi, _pod: &'a PodRef, _node: &'a str) -> Later<'a, ()> {
        Box::pin(async {})
    }

    /// Binds the pod in its own way; `None` leaves it to the next plugin, and at last to the default one.
    fn bind<'a>(
        &'a self,
        _api: &'a dyn ObjectApi,
        _pod: &'a PodRef,
        _node: &'a str,
    ) -> Later<'a, Option<Result<(), String>>> {
        Box::pin(async { None })
    }

    /// The pod is bound.
    fn post_bind<'a>(&'a self, _api: &'a dyn ObjectApi, _pod: &'a PodRef, _node: &'a str) -> Later<'a, ()> {
        Box::pin(async {})
    }
}
