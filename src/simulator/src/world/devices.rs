//! Stand-ins for what serves claims of devices: the controller that makes claims from templates, and takes from them what
//! nobody uses any more. All of it is done at once.

use std::sync::Arc;

use krafla_framework::effect::ClaimsToBind;
use krafla_model::dra::{ClaimSource, DeviceChoice, MAX_CONSUMERS, ResourceClaimSpec, device_choices};
use krafla_model::{Event, Name};

use super::World;

impl World {
    /// Applies an object of dynamic resource allocation. `None` if the event is about something else.
    pub(super) fn change_devices(&mut self, event: &Event) -> Option<()> {
        match event {
            Event::DeviceClass(class) => {
                self.store.device_classes.insert(class.name.clone(), class.clone());
            }
            Event::DeviceClassGone(name) => drop(self.store.device_classes.remove(name)),
            Event::ResourceSlice(slice) => {
                self.store.slices.insert(slice.name.clone(), slice.clone());
            }
            Event::ResourceSliceGone(name) => drop(self.store.slices.remove(name)),
            Event::ResourceClaim(claim) => {
                let key = (claim.namespace.clone(), claim.name.clone());
                let known = self.store.claims.get(&key);
                let fresh = || format!("{}/{}#{}", claim.namespace, claim.name, self.store.n_claims).into();
                let uid: Name = known.map_or_else(fresh, |known| known.uid.clone());
                let allocation = claim.allocation.clone().or_else(|| known?.allocation.clone());
                let reserved_for = known.map(|known| known.reserved_for.clone()).unwrap_or_default();
                let claim = ResourceClaimSpec { uid, allocation, reserved_for, ..(**claim).clone() };
                self.store.n_claims += 1;
                self.put_claim(claim);
            }
            Event::ResourceClaimGone { namespace, name } => {
                self.store.claims.remove(&(namespace.clone(), name.clone()));
                self.tell(event.clone());
            }
            _ => return None,
        }
        if !matches!(event, Event::ResourceClaim(_) | Event::ResourceClaimGone { .. }) {
            self.tell(event.clone());
        }
        Some(())
    }

    /// A template is there: pods that wait for their claims get them.
    pub(super) fn change_template(&mut self, template: ResourceClaimSpec) {
        self.store.claim_templates.insert((template.namespace.clone(), template.name.clone()), template);
        for index in 0..self.store.pods.len() {
            if !self.store.pods[index].is_over() && self.make_claims_of_templates(index) {
                self.tell_of_pod(index);
            }
        }
    }

    fn put_claim(&mut self, claim: ResourceClaimSpec) {
        self.store.claims.insert((claim.namespace.clone(), claim.name.clone()), claim.clone());
        self.tell(Event::ResourceClaim(Box::new(claim)));
    }

    /// Makes the claims of a pod that come from templates which are there. Answers whether there were any.
    pub(super) fn make_claims_of_templates(&mut self, index: usize) -> bool {
        let shape = Arc::clone(&self.store.pods[index].spec.shape);
        let mut made = false;
        for (at, source) in shape.claims.iter().enumerate() {
            let ClaimSource::Template(template) = source else { continue };
            let pod = &self.store.pods[index].spec;
            let Some(own) = pod.claims.get(at).filter(|own| own.claim.is_none()) else { continue };
            let Some(template) = self.store.claim_templates.get(&(shape.namespace.clone(), template.clone())) else {
                continue;
            };
            let n = self.store.n_claims;
            let name: Name = format!("{}-{}-{n}", pod.name, own.name).into();
            let uid = format!("{}/{name}#{n}", shape.namespace).into();
            let claim = ResourceClaimSpec { name: name.clone(), uid, owner: Some(pod.uid.clone()), ..template.clone() };
            self.store.n_claims += 1;
            self.store.pods[index].spec.claims[at].claim = Some(name);
            self.put_claim(claim);
            made = true;
        }
        made
    }

    /// What PreBind writes for the claims of a pod. `Err`: a claim is not what it was, and nothing is written.
    pub(super) fn give_devices(&mut self, pod: &Name, claims: &[ClaimsToBind]) -> Result<(), String> {
        let choices = || claims.iter().flat_map(|claims| device_choices(&claims.choices));
        choices().try_for_each(|choice| self.may_be_given(pod, choice))?;
        for choice in choices() {
            let key = (choice.namespace.clone(), choice.name.clone());
            let Some(mut claim) = self.store.claims.get(&key).cloned() else { continue };
            claim.allocation.get_or_insert_with(|| Arc::clone(&choice.allocation));
            if !claim.reserved_for.contains(pod) {
                claim.reserved_for.push(pod.clone());
            }
            self.put_claim(claim);
        }
        Ok(())
    }

    fn may_be_given(&self, pod: &Name, choice: &DeviceChoice) -> Result<(), String> {
        let name = choice.name.as_str();
        let claim = self.store.claims.get(&(choice.namespace.clone(), choice.name.clone()));
        let claim = claim.filter(|claim| claim.uid == choice.uid && !claim.deleting);
        let claim = claim.ok_or_else(|| format!("resourceclaim {name:?} not found"))?;
        if claim.allocation.as_ref().is_some_and(|there| there.devices != choice.allocation.devices) {
            return Err(format!("resourceclaim {name:?} has been given other devices meanwhile"));
        }
        if !claim.reserved_for.contains(pod) && claim.reserved_for.len() >= MAX_CONSUMERS {
            return Err(format!("resourceclaim {name:?} is used by {MAX_CONSUMERS} pods, the most there may be"));
        }
        let mine = &choice.allocation.devices;
        for other in self.store.claims.values().filter(|other| other.uid != claim.uid) {
            let taken = other.allocation.iter().flat_map(|allocation| &allocation.devices);
            let exclusive = |one: &krafla_model::dra::AllocatedDevice| !one.admin_access && one.share.is_none();
            let of =
                |one: &krafla_model::dra::AllocatedDevice| (one.driver.clone(), one.pool.clone(), one.device.clone());
            for device in taken.filter(|one| exclusive(one)) {
                if mine.iter().any(|own| exclusive(own) && of(own) == of(device)) {
                    return Err(format!("device {} has been given to claim {} too", device.device, other.name));
                }
            }
        }
        Ok(())
    }

    /// A pod uses its claims no longer: what nobody uses loses its devices, and a claim that was made for the pod goes.
    pub(super) fn release_claims(&mut self, pod: &Name) {
        let mine = |claim: &&ResourceClaimSpec| claim.owner.as_ref() == Some(pod) || claim.reserved_for.contains(pod);
        let mine: Vec<ResourceClaimSpec> = self.store.claims.values().filter(mine).cloned().collect();
        for mut claim in mine {
            if claim.owner.as_ref() == Some(pod) {
                let (namespace, name) = (claim.namespace, claim.name);
                self.store.claims.remove(&(namespace.clone(), name.clone()));
                self.tell(Event::ResourceClaimGone { namespace, name });
                continue;
            }
            claim.reserved_for.retain(|one| one != pod);
            if claim.reserved_for.is_empty() {
                claim.allocation = None;
            }
            self.put_claim(claim);
        }
    }

    /// The scheduler takes back devices that nobody uses.
    pub(super) fn deallocate(&mut self, namespace: Name, name: Name, uid: &Name) {
        let found = self.store.claims.get(&(namespace, name)).cloned();
        if let Some(claim) = found.filter(|claim| claim.uid == *uid && claim.reserved_for.is_empty()) {
            self.put_claim(ResourceClaimSpec { allocation: None, ..claim });
        }
    }
}
