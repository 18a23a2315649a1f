//! Plugins on the way to a bind, with the API at hand.

use std::sync::Arc;
use std::time::Duration;

use krafla_framework::effect::{ClaimsToBind, PodRef};
use krafla_framework::scheduling::binding::{BindingPlugin, Later, ObjectApi, ObjectRef};
use krafla_model::Name;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use tokio::time::timeout;

use super::answer::CALL;
use super::interest::{Interest, Waiter};
use super::status::FIELD_MANAGER;

/// The plugins of this build that talk to the API.
#[derive(Clone)]
pub(crate) struct Hooks {
    pub(crate) plugins: Arc<[Arc<dyn BindingPlugin>]>,
    pub(crate) client: Client,
    pub(crate) interest: Interest,
}

/// The way of one pod: its plugins, in order.
pub(crate) struct Way<'h> {
    api: PodApi<'h>,
    plugins: Vec<&'h Arc<dyn BindingPlugin>>,
    pod: &'h PodRef,
    node: &'h str,
}

/// The API, as plugins have it on the way of one pod.
struct PodApi<'h> {
    hooks: &'h Hooks,
    claims: &'h [ClaimsToBind],
    waiter: Waiter,
}

impl Hooks {
    /// The way of a pod through the plugins of these names; those that this build lacks are left out.
    pub(crate) fn way<'h>(
        &'h self,
        names: &[Name],
        claims: &'h [ClaimsToBind],
        pod: &'h PodRef,
        node: &'h str,
    ) -> Way<'h> {
        let named = |name: &Name| self.plugins.iter().find(|plugin| *name == plugin.name());
        let api = PodApi { hooks: self, claims, waiter: self.interest.waiter() };
        Way { api, plugins: names.iter().filter_map(named).collect(), pod, node }
    }
}

impl Way<'_> {
    /// Runs PreBind; what was done before one failed is taken back.
    pub(crate) async fn pre_bind(&self) -> Result<(), String> {
        for (done, plugin) in self.plugins.iter().enumerate() {
            if let Err(why) = plugin.pre_bind(&self.api, self.pod, self.node).await {
                self.undo(done + 1).await;
                return Err(format!("running PreBind plugin {:?}: {why}", plugin.name()));
            }
        }
        Ok(())
    }

    /// Takes all of PreBind back, last first.
    pub(crate) async fn undo_pre_bind(&self) {
        self.undo(self.plugins.len()).await;
    }

    async fn undo(&self, done: usize) {
        for plugin in self.plugins[..done].iter().rev() {
            plugin.undo_pre_bind(&self.api, self.pod, self.node).await;
        }
    }

    /// The bind, if a plugin does it.
    pub(crate) async fn bind(&self) -> Option<Result<(), String>> {
        for plugin in &self.plugins {
            if let Some(done) = plugin.bind(&self.api, self.pod, self.node).await {
                return Some(done.map_err(|why| format!("running Bind plugin {:?}: {why}", plugin.name())));
            }
        }
        None
    }

    /// Runs PostBind.
    pub(crate) async fn post_bind(&self) {
        for plugin in &self.plugins {
            plugin.post_bind(&self.api, self.pod, self.node).await;
        }
    }
}

impl ObjectApi for PodApi<'_> {
    fn get<'a>(&'a self, object: ObjectRef<'a>) -> Later<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let api = self.hooks.api(object);
            let read = timeout(CALL, api.get_opt(object.name)).await.map_err(|_| "no answer".to_owned())?;
            let read = read.map_err(|error| error.to_string())?;
            read.map(|found| serde_json::to_string(&found).map_err(|error| error.to_string())).transpose()
        })
    }

    fn patch<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move {
            let (api, patch) = (self.hooks.api(object), merge(patch)?);
            done(api.patch(object.name, &writer(), &patch)).await
        })
    }

    fn patch_status<'a>(&'a self, object: ObjectRef<'a>, patch: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move {
            let (api, patch) = (self.hooks.api(object), merge(patch)?);
            done(api.patch_status(object.name, &writer(), &patch)).await
        })
    }

    /// Of the kinds that nobody watches for this, the time has to run out.
    fn changed<'a>(&'a self, object: ObjectRef<'a>, at_most_ms: u64) -> Later<'a, u64> {
        Box::pin(async move {
            let (namespace, at_most) = (object.namespace.unwrap_or_default(), Duration::from_millis(at_most_ms));
            let passed = self.waiter.changed(object.kind, namespace, object.name, at_most).await;
            u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
        })
    }

    fn claims(&self, plugin: &str) -> Option<&ClaimsToBind> {
        self.claims.iter().find(|claims| claims.plugin == plugin)
    }
}

fn writer() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn merge(patch: &str) -> Result<Patch<serde_json::Value>, String> {
    serde_json::from_str(patch).map(Patch::Merge).map_err(|error| error.to_string())
}

/// Whether a write was done, or why not.
async fn done(call: impl Future<Output = kube::Result<DynamicObject>>) -> Result<(), String> {
    match timeout(CALL, call).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}

impl Hooks {
    fn api(&self, object: ObjectRef<'_>) -> Api<DynamicObject> {
        let (group, version) = object.api_version.rsplit_once('/').unwrap_or(("", object.api_version));
        let kind = GroupVersionKind::gvk(group, version, object.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, object.plural);
        match object.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }
}
