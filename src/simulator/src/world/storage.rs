//! Stand-ins for what binds claims: the volume controller, a provisioner for every driver, and the controller that makes
//! the claims of ephemeral volumes and of StatefulSets. All of them are done at once.
//!
//! A volume that is made for a node can be used in its zone, or on the node alone if it has none.

use krafla_framework::effect::ClaimsToBind;
use krafla_model::labels::{NodeSelectorTerm, Requirement, Test};
use krafla_model::storage::{
    ClaimChoice, ClaimKey, ClaimRef, ClaimSpec, StorageClassSpec, StorageKey, StorageObject, VolumePhase, VolumeSource,
    VolumeSpec,
};
use krafla_model::{Event, Name};

use super::World;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// What the names of volumes begin with that the provisioner has made.
const MADE: &str = "pvc-";

impl World {
    /// Applies an object of storage, and what the controllers make of it.
    pub(super) fn change_storage(&mut self, object: StorageObject) {
        self.put(object);
        self.bind_claims();
    }

    /// An object of storage goes, and what goes with it.
    pub(super) fn remove_storage(&mut self, key: &StorageKey) {
        match self.store.storage.remove(key) {
            None => {
                let object = format!("{:?} {}", key.kind, key.name);
                let message = "cannot be deleted: there is no such object".to_owned();
                return self.report(krafla_model::Problem { object, message });
            }
            Some(StorageObject::Claim(claim)) => {
                self.tell(Event::StorageGone(key.clone()));
                self.release(&claim);
            }
            Some(_) => self.tell(Event::StorageGone(key.clone())),
        }
        self.bind_claims();
    }

    fn put(&mut self, object: StorageObject) {
        self.store.storage.put(object.clone());
        self.tell(Event::Storage(object));
    }

    /// Makes the claims of a pod that are made with it.
    pub(super) fn make_claims(&mut self, claims: &[ClaimSpec], pod: &Name, ephemeral: impl Fn(&Name) -> bool) {
        for claim in claims {
            if self.store.storage.claim(&claim.namespace, &claim.name).is_none() {
                let owner = ephemeral(&claim.name).then(|| pod.clone());
                let uid = format!("{}/{}", claim.namespace, claim.name).into();
                self.put(StorageObject::Claim(ClaimSpec { owner, uid, ..claim.clone() }));
            }
        }
        if !claims.is_empty() {
            self.bind_claims();
        }
    }

    /// A pod is gone: the claims that were made for it alone go with it.
    pub(super) fn drop_ephemeral_claims(&mut self, pod: &Name) {
        let own = self.store.storage.claims().filter(|claim| claim.owner.as_ref() == Some(pod));
        let keys: Vec<StorageKey> = own.map(|claim| StorageObject::Claim(claim.clone()).key()).collect();
        for key in keys {
            self.remove_storage(&key);
        }
    }

    /// The volume of a claim that is gone: one that was made for it goes too, another waits for somebody to clean it.
    fn release(&mut self, claim: &ClaimSpec) {
        let Some(volume) = self.store.storage.volume(&claim.volume).cloned() else { return };
        if volume.name.starts_with(MADE) {
            let key = StorageObject::Volume(volume).key();
            self.store.storage.remove(&key);
            self.tell(Event::StorageGone(key));
        } else {
            self.put(StorageObject::Volume(VolumeSpec { phase: VolumePhase::Released, ..volume }));
        }
    }

    /// What PreBind writes, and what the controllers make of it. `Err`: the claim or the volume is not what it was.
    pub(super) fn carry_out_choices(
        &mut self,
        namespace: &Name,
        node: &Name,
        claims: &[ClaimsToBind],
    ) -> Result<(), String> {
        let volumes = || {
            let all = claims.iter().flat_map(|claims| &claims.choices);
            all.filter(|choice| !matches!(choice, ClaimChoice::Devices(_)))
        };
        for choice in volumes() {
            let found = self.store.storage.claim(namespace, choice.claim()).cloned();
            let claim =
                found.ok_or_else(|| format!("persistentvolumeclaim {:?} not found", choice.claim().as_str()))?;
            match choice {
                _ if claim.is_bound() => {}
                ClaimChoice::Volume { volume, .. } => {
                    let found = self.store.storage.volume(volume).cloned();
                    let volume = found.ok_or_else(|| format!("persistentvolume {:?} not found", volume.as_str()))?;
                    if volume.claim.as_ref().is_some_and(|other| !other.means(&claim)) {
                        return Err(format!("persistentvolume {:?} is for another claim by now", volume.name.as_str()));
                    }
                    self.bond(claim, volume);
                }
                ClaimChoice::Devices(_) => {}
                ClaimChoice::Provision { .. } => {
                    let claim = ClaimSpec { selected_node: Some(node.clone()), ..claim };
                    self.put(StorageObject::Claim(claim));
                }
            }
        }
        self.bind_claims();
        for choice in volumes() {
            let bound = self.store.storage.claim(namespace, choice.claim()).is_some_and(ClaimSpec::is_bound);
            if !bound {
                return Err(format!("persistentvolumeclaim {:?} has no volume", choice.claim().as_str()));
            }
        }
        Ok(())
    }

    /// Binds what can be bound, until nothing more can.
    fn bind_claims(&mut self) {
        let fresh = |volume: &&VolumeSpec| volume.phase == VolumePhase::Pending && volume.claim.is_none();
        let fresh: Vec<VolumeSpec> = self.store.storage.volumes().filter(fresh).cloned().collect();
        for volume in fresh {
            self.put(StorageObject::Volume(VolumeSpec { phase: VolumePhase::Available, ..volume }));
        }
        let open = self.store.storage.claims().filter(|claim| !claim.is_bound() && !claim.deleting);
        let open: Vec<ClaimKey> = open.map(ClaimSpec::key).collect();
        for (namespace, name) in open {
            let Some(claim) = self.store.storage.claim(&namespace, &name).cloned() else { continue };
            if let Some(volume) = self.volume_for(&claim) {
                self.bond(claim, volume);
            }
        }
    }

    fn volume_for(&self, claim: &ClaimSpec) -> Option<VolumeSpec> {
        let storage = &self.store.storage;
        if !claim.volume.is_empty() {
            let named = storage.volume(&claim.volume)?;
            return named.claim.as_ref().is_none_or(|other| other.means(claim)).then(|| named.clone());
        }
        if let Some(named) = storage.named_on(claim).find(|volume| volume.is_large_enough(claim)) {
            return Some(named.clone());
        }
        if storage.waits_for_consumer(claim) && claim.selected_node.is_none() {
            return None;
        }
        if claim.selected_node.is_none()
            && let Some(volume) = storage.unclaimed(&claim.class).find(|volume| volume.may_serve(claim))
        {
            return Some(volume.clone());
        }
        storage.class(&claim.class).filter(|class| class.is_provisioned()).map(|class| self.provision(claim, class))
    }

    fn provision(&self, claim: &ClaimSpec, class: &StorageClassSpec) -> VolumeSpec {
        let labels = claim.selected_node.as_ref().and_then(|node| self.store.nodes.get(node)).map(|node| &node.labels);
        let place = [ZONE, HOST].into_iter().find_map(|key| Some((key, labels?.get(key)?.clone())));
        let affinity = place.map(|(key, value)| {
            let requirement = Requirement { key: key.into(), test: Test::In(vec![value]) };
            vec![NodeSelectorTerm { labels: vec![requirement], name: Vec::new() }]
        });
        let name: Name = format!("{MADE}{}-{}", claim.namespace, claim.name).into();
        VolumeSpec {
            class: claim.class.clone(),
            access_modes: claim.access_modes,
            block: claim.block,
            capacity: claim.request.unwrap_or(0),
            affinity,
            phase: VolumePhase::Available,
            source: VolumeSource::Csi { driver: class.provisioner.clone(), handle: name.clone() },
            name,
            ..VolumeSpec::default()
        }
    }

    fn bond(&mut self, claim: ClaimSpec, volume: VolumeSpec) {
        let (namespace, name, uid) = (claim.namespace.clone(), claim.name.clone(), claim.uid.clone());
        let reference = ClaimRef { namespace, name, uid };
        let claim = ClaimSpec { volume: volume.name.clone(), bind_completed: true, ..claim };
        self.put(StorageObject::Volume(VolumeSpec { claim: Some(reference), phase: VolumePhase::Bound, ..volume }));
        self.put(StorageObject::Claim(claim));
    }
}
