//! The claims and volumes of the cluster that both look at, and stand-ins for those who bind them.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use krafla_api::{Object, StorageManifest};
use kube::Api;
use serde_json::{Value, json};

use crate::generate::storage;
use crate::stage::{Stage, create, delete_now, patch, patch_status};
use crate::world::{World, key};

/// How many claims there are at most.
const MOST_CLAIMS: usize = 40;
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// What was made.
#[derive(Default)]
pub(crate) struct Stored {
    claims: Vec<PersistentVolumeClaim>,
}

impl World {
    /// Classes, drivers, and volumes that wait for claims.
    pub(crate) async fn fill_storage(&mut self) -> anyhow::Result<()> {
        for manifest in storage::surroundings() {
            let object = match manifest["kind"].as_str().unwrap_or_default() {
                "StorageClass" => {
                    StorageManifest::Class(Box::new(create(&self.stage.all::<StorageClass>(), &manifest).await?))
                }
                "CSIDriver" => {
                    StorageManifest::Driver(Box::new(create(&self.stage.all::<CSIDriver>(), &manifest).await?))
                }
                _ => {
                    let api = self.stage.of::<CSIStorageCapacity>("default");
                    StorageManifest::Capacity(Box::new(create(&api, &manifest).await?))
                }
            };
            self.tell(Object::Storage(object));
        }
        for _ in 0..12 {
            self.add_local_volume().await?;
        }
        Ok(())
    }

    /// One more volume that waits for a claim.
    pub(crate) async fn add_local_volume(&mut self) -> anyhow::Result<()> {
        let name = self.name("local");
        let manifest = storage::local_volume(&mut self.dice, &name, &self.nodes);
        self.add_volume(&manifest, "Available").await
    }

    async fn add_volume(&mut self, manifest: &Value, phase: &str) -> anyhow::Result<()> {
        let api = self.stage.all::<PersistentVolume>();
        create(&api, manifest).await?;
        let name = manifest["metadata"]["name"].as_str().context("a volume's name")?;
        let volume = patch_status(&api, name, &json!({ "status": { "phase": phase } })).await?;
        self.tell(Object::Storage(StorageManifest::Volume(Box::new(volume))));
        Ok(())
    }

    /// The drivers of a new node.
    pub(crate) async fn add_csi_node(&mut self, node: &str) -> anyhow::Result<()> {
        let manifest = storage::csi_node(&mut self.dice, node);
        let drivers = create(&self.stage.all::<CSINode>(), &manifest).await?;
        self.tell(Object::Storage(StorageManifest::Node(Box::new(drivers))));
        Ok(())
    }

    /// The drivers of a node that is gone.
    pub(crate) async fn remove_csi_node(&mut self, node: &str) -> anyhow::Result<()> {
        let api = self.stage.all::<CSINode>();
        let drivers = api.get(node).await?;
        delete_now(&api, node).await?;
        self.ours.gone(&Object::Storage(StorageManifest::Node(Box::new(drivers))));
        Ok(())
    }

    /// Gives a pod volumes, or none; new claims are made.
    pub(crate) async fn add_volumes(&mut self, pod: &mut Value) -> anyhow::Result<()> {
        let mut volumes: Vec<Value> = Vec::new();
        let namespace = pod["metadata"]["namespace"].as_str().context("a pod's namespace")?.to_owned();
        if self.dice.chance(8) {
            volumes.push(storage::disk(&mut self.dice));
        }
        if self.dice.chance(35) {
            for i in 0..self.dice.between(1, 2) {
                let claim = self.some_claim(&namespace).await?;
                let is_named = |volume: &Value| volume["persistentVolumeClaim"]["claimName"] == claim;
                if !volumes.iter().any(is_named) {
                    volumes.push(json!({ "name": format!("v{i}"), "persistentVolumeClaim": { "claimName": claim } }));
                }
            }
        }
        if !volumes.is_empty() {
            pod["spec"]["volumes"] = json!(volumes);
            self.stage.settle().await;
        }
        Ok(())
    }

    /// Claims of a pod that have no volume yet.
    pub(crate) async fn claims_that_wait(&self, pod: &Value) -> anyhow::Result<Vec<PersistentVolumeClaim>> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let api = self.stage.of::<PersistentVolumeClaim>(namespace);
        let mut waiting = Vec::new();
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            let Some(name) = volume["persistentVolumeClaim"]["claimName"].as_str() else { continue };
            let claim = api.get_opt(name).await?;
            waiting.extend(claim.filter(|claim| claim.spec.as_ref().is_none_or(|spec| spec.volume_name.is_none())));
        }
        Ok(waiting)
    }

    /// Gives a pod claims as these were before they had their volumes, and the volumes their like, so that it can be asked
    /// about again.
    pub(crate) async fn renew_claims(
        &mut self,
        pod: &mut Value,
        before: Vec<PersistentVolumeClaim>,
    ) -> anyhow::Result<()> {
        for claim in before {
            let namespace = claim.metadata.namespace.clone().unwrap_or_default();
            let api = self.stage.of::<PersistentVolumeClaim>(&namespace);
            let now = api.get(name_of(&claim)).await?;
            let Some(volume) = now.spec.and_then(|spec| spec.volume_name) else { continue };
            let taken = self.stage.all::<PersistentVolume>().get(&volume).await?;
            if taken.metadata.annotations.is_some_and(|annotations| annotations.contains_key(BOUND_BY_CONTROLLER)) {
                let mut spec = serde_json::to_value(taken.spec)?;
                spec["claimRef"] = Value::Null;
                let metadata = json!({ "name": self.name("local"), "labels": taken.metadata.labels });
                let like =
                    json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec });
                self.add_volume(&like, "Available").await?;
            }
            let name = self.name("c");
            let metadata = json!({ "name": name, "namespace": namespace });
            let like = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": claim.spec,
            });
            let like = create(&api, &like).await?;
            self.tell(Object::Storage(StorageManifest::Claim(Box::new(like.clone()))));
            self.stored.claims.push(like);
            for volume in pod["spec"]["volumes"].as_array_mut().into_iter().flatten() {
                let named = &mut volume["persistentVolumeClaim"]["claimName"];
                if *named == name_of(&claim) {
                    *named = json!(name);
                }
            }
        }
        Ok(())
    }

    async fn some_claim(&mut self, namespace: &str) -> anyhow::Result<String> {
        let here = |claim: &&PersistentVolumeClaim| claim.metadata.namespace.as_deref() == Some(namespace);
        let known: Vec<&PersistentVolumeClaim> = self.stored.claims.iter().filter(here).collect();
        if !known.is_empty() && self.dice.chance(25) {
            return Ok(name_of(known[self.dice.index(known.len())]).to_owned());
        }
        if self.dice.chance(4) {
            return Ok("nowhere".to_owned());
        }
        self.drop_a_claim().await?;
        let name = self.name("c");
        let (manifest, volume) = storage::claim(&mut self.dice, namespace, &name, &self.nodes);
        let api = self.stage.of::<PersistentVolumeClaim>(namespace);
        let mut claim = create(&api, &manifest).await?;
        if let Some(mut volume) = volume {
            volume["spec"]["claimRef"]["uid"] = json!(claim.metadata.uid);
            self.add_volume(&volume, "Bound").await?;
            claim = patch_status(&api, &name, &json!({ "status": { "phase": "Bound" } })).await?;
        }
        self.tell(Object::Storage(StorageManifest::Claim(Box::new(claim.clone()))));
        self.stored.claims.push(claim);
        Ok(name)
    }

    /// The oldest claim that no pod uses goes, with its volume, if there are too many.
    async fn drop_a_claim(&mut self) -> anyhow::Result<()> {
        if self.stored.claims.len() < MOST_CLAIMS {
            return Ok(());
        }
        let placed = &self.placed;
        let is_free =
            |claim: &PersistentVolumeClaim| !placed.iter().any(|pod| claims_of(pod).contains(&name_of(claim)));
        let Some(at) = self.stored.claims.iter().position(is_free) else { return Ok(()) };
        let claim = self.stored.claims.remove(at);
        let namespace = claim.metadata.namespace.clone().unwrap_or_default();
        let api = self.stage.of::<PersistentVolumeClaim>(&namespace);
        let claim = api.get(name_of(&claim)).await?;
        delete_now(&api, name_of(&claim)).await?;
        if let Some(volume) = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()) {
            let api = self.stage.all::<PersistentVolume>();
            if let Some(object) = api.get_opt(&volume).await? {
                delete_now(&api, &volume).await?;
                self.ours.gone(&Object::Storage(StorageManifest::Volume(Box::new(object))));
            }
        }
        self.ours.gone(&Object::Storage(StorageManifest::Claim(Box::new(claim))));
        Ok(())
    }

    /// Tells the model what became of the claims of a pod.
    pub(crate) async fn follow_claims(&mut self, pod: &Pod) -> anyhow::Result<()> {
        let (namespace, _) = key(pod);
        for name in claims_of(pod) {
            let claims = self.stage.of::<PersistentVolumeClaim>(namespace);
            let Some(claim) = claims.get_opt(name).await? else { continue };
            if let Some(volume) = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) {
                let volume = self.stage.all::<PersistentVolume>().get(volume).await?;
                self.tell(Object::Storage(StorageManifest::Volume(Box::new(volume))));
            }
            self.tell(Object::Storage(StorageManifest::Claim(Box::new(claim))));
        }
        Ok(())
    }
}

impl Stage {
    /// What the volume controller and a driver do for the claims of a pod that kube-scheduler is about to bind.
    pub(crate) async fn bind_claims(&self, pod: &Pod) -> anyhow::Result<()> {
        let (namespace, _) = key(pod);
        let (claims, volumes) = (self.of::<PersistentVolumeClaim>(namespace), self.all::<PersistentVolume>());
        for name in claims_of(pod) {
            let Some(claim) = claims.get_opt(name).await? else { continue };
            let annotations = claim.metadata.annotations.clone().unwrap_or_default();
            if annotations.contains_key(BIND_COMPLETED) {
                continue;
            }
            let uid = claim.metadata.uid.clone().unwrap_or_default();
            let volume = match annotations.contains_key(SELECTED_NODE) {
                true => make_volume(&volumes, &claim, &uid).await?,
                false => {
                    let named = |volume: &PersistentVolume| {
                        let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
                        reference.is_some_and(|reference| reference.uid.as_ref() == Some(&uid))
                    };
                    let found = volumes.list(&Default::default()).await?.items.into_iter().find(named);
                    let Some(volume) = found.and_then(|volume| volume.metadata.name) else { continue };
                    volume
                }
            };
            patch_status(&volumes, &volume, &json!({ "status": { "phase": "Bound" } })).await?;
            let change = json!({
                "metadata": { "annotations": { BIND_COMPLETED: "yes" } }, "spec": { "volumeName": volume },
            });
            patch(&claims, name, &change).await?;
            patch_status(&claims, name, &json!({ "status": { "phase": "Bound" } })).await?;
        }
        Ok(())
    }
}

/// A volume for a claim, which every node can use.
async fn make_volume(
    volumes: &Api<PersistentVolume>,
    claim: &PersistentVolumeClaim,
    uid: &str,
) -> anyhow::Result<String> {
    let name = format!("pvc-{uid}");
    let spec = claim.spec.clone().unwrap_or_default();
    let size = spec.resources.and_then(|all| all.requests).and_then(|all| all.get("storage").cloned());
    let driver = storage::DRIVERS[usize::from(spec.storage_class_name.as_deref() != Some("made"))];
    let manifest = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": size }, "accessModes": spec.access_modes,
            "storageClassName": spec.storage_class_name, "persistentVolumeReclaimPolicy": "Retain",
            "csi": { "driver": driver, "volumeHandle": name },
            "claimRef": {
                "kind": "PersistentVolumeClaim", "namespace": claim.metadata.namespace, "name": claim.metadata.name,
                "uid": uid,
            },
        },
    });
    if volumes.get_opt(&name).await?.is_none() {
        create(volumes, &manifest).await?;
    }
    Ok(name)
}

/// Names of the claims of a pod.
fn claims_of(pod: &Pod) -> Vec<&str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str())).collect()
}

fn name_of(claim: &PersistentVolumeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}
