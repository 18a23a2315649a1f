//! The real parts: a control plane without controllers, kube-scheduler, and the calls to them.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use krafla_sandbox::{Assets, ControlPlane, Options};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::log::Log;

/// kube-scheduler is told the rest on its command line. All nodes are looked at, so that two schedulers see the same.
const CONFIGURATION: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
leaderElection: { leaderElect: false }
clientConnection: { kubeconfig: KUBECONFIG, qps: 1000, burst: 2000 }
";
/// Only the file with the lines about scores is that talkative: at `-v=10` each call to the API server is written too.
const FLAGS: [&str; 2] = ["-v=2", "--vmodule=schedule_one=10"];
/// How long a verdict may take, and how often it is asked for. A first one includes the start of kube-scheduler.
const VERDICT_WITHIN: Duration = Duration::from_secs(60);
const ASK_EVERY: Duration = Duration::from_millis(10);
/// kube-scheduler watches each kind on a stream of its own. So long a change takes at most until it is known, on a busy
/// machine; who finds a difference asks once more after longer.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Stage {
    control_plane: ControlPlane,
    pub(crate) client: Client,
    pub(crate) log: Log,
}

/// What kube-scheduler made of a pod.
pub(crate) enum Verdict {
    /// It is bound to this node.
    Bound(String),
    /// It fits nowhere, in these words.
    Refused(String),
}

impl Stage {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let assets = Assets::find()?;
        if assets.program("kube-scheduler").is_none() {
            bail!(
                "there is no kube-scheduler in {}; hack/control-plane/build --all makes it",
                assets.folder().display()
            );
        }
        let mut control_plane = ControlPlane::start(&assets, Options::new().no_controllers()).await?;
        let client = control_plane.client()?;
        let kubeconfig = control_plane.kubeconfig().display().to_string();
        let log = control_plane.start_kube_scheduler(&CONFIGURATION.replace("KUBECONFIG", &kubeconfig), &FLAGS)?;
        Ok(Self { control_plane, client, log: Log::open(&log)? })
    }

    pub(crate) fn all<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = ()>,
    {
        Api::all(self.client.clone())
    }

    pub(crate) fn of<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The verdict about a pod, and the pod as it then is.
    pub(crate) async fn verdict(&mut self, namespace: &str, name: &str) -> anyhow::Result<(Pod, Verdict)> {
        let pods: Api<Pod> = self.of(namespace);
        let begun = Instant::now();
        loop {
            let pod = pods.get(name).await?;
            if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) {
                return Ok((pod, Verdict::Bound(node)));
            }
            if pod.spec.as_ref().is_some_and(|spec| spec.volumes.is_some()) {
                self.bind_claims(&pod).await?;
            }
            let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let mut refused = conditions.filter(|one| one.type_ == "PodScheduled" && one.status == "False");
            if let Some(condition) = refused.next() {
                if condition.reason.as_deref() != Some("Unschedulable") {
                    bail!("kube-scheduler failed on {namespace}/{name}: {condition:?}");
                }
                let words = condition.message.clone().unwrap_or_default();
                return Ok((pod, Verdict::Refused(words)));
            }
            if let Some(why) = self.control_plane.kube_scheduler_ended() {
                bail!(why);
            }
            if begun.elapsed() > VERDICT_WITHIN {
                bail!("kube-scheduler said nothing of {namespace}/{name} in {VERDICT_WITHIN:?}");
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    /// Waits until kube-scheduler knows what was changed.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(SETTLED_AFTER).await;
    }
}

/// Creates an object from its manifest.
pub(crate) async fn create<K>(api: &Api<K>, manifest: &Value) -> anyhow::Result<K>
where
    K: Clone + Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(manifest.clone()).with_context(|| manifest.to_string())?;
    api.create(&PostParams::default(), &object).await.with_context(|| manifest.to_string())
}

/// Changes parts of an object.
pub(crate) async fn patch<K>(api: &Api<K>, name: &str, change: &Value) -> anyhow::Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await;
    patched.with_context(|| format!("{name}: {change}"))
}

/// Changes parts of an object's status.
pub(crate) async fn patch_status<K>(api: &Api<K>, name: &str, change: &Value) -> anyhow::Result<K>
where
    K: Clone + Debug + DeserializeOwned,
{
    let patched = api.patch_status(name, &PatchParams::default(), &Patch::Merge(change)).await;
    patched.with_context(|| format!("{name}: {change}"))
}

/// Removes an object at once.
pub(crate) async fn delete_now<K>(api: &Api<K>, name: &str) -> anyhow::Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    api.delete(name, &DeleteParams::default().grace_period(0)).await.map(drop).with_context(|| name.to_owned())
}
