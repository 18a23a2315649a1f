//! Dynamic resource allocation: devices that drivers offer, claims of them, and who has what.
//!
//! A device is in use by the claims that were given it, as their status says or as a placement has decided: both count
//! once. What a placement decides stands in the task's place, so that it comes and goes with it, and the journal undoes
//! it. Expressions are asked about each device when either is new, never while a node is looked for.

mod allocator;
mod local;
mod pools;
mod selectors;
mod spec;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use krafla_cel::Quantity;

pub use allocator::{Obstacle, Plan, Shortage, USUAL_STEPS};
pub use local::Outlook;
pub use spec::{
    AllocatedDevice, Allocation, Alternative, Attribute, Capacity, ClaimSource, DeviceAccess, DeviceChoice,
    DeviceClassSpec, DeviceConstraint, DeviceRequest, DeviceSpec, PodClaim, ResourceClaimSpec, ResourceSliceSpec,
};

use crate::ids::{NodeId, SelectorId, TaskId};
use crate::name::Name;
use crate::state::ClusterState;
use crate::storage::ClaimChoice;
use local::LocalDevices;
use pools::{Pool, PoolKey, Use};
use selectors::Selectors;

/// How many pods may share a claim: Kubernetes' bound.
pub const MAX_CONSUMERS: usize = 256;

/// Devices and claims.
#[derive(Clone, Debug, Default)]
pub struct DynamicResources {
    classes: BTreeMap<Name, DeviceClass>,
    slices: BTreeMap<Name, Arc<ResourceSliceSpec>>,
    slices_of: BTreeMap<PoolKey, BTreeSet<Name>>,
    pools: BTreeMap<PoolKey, Pool>,
    /// Devices of single nodes, by node.
    local: BTreeMap<Name, LocalDevices>,
    /// The most devices that any node has had to itself.
    most_local: usize,
    /// Whether there has been a device of which several claims may have parts.
    has_shared: bool,
    /// Pools with devices of several nodes.
    wide: BTreeSet<PoolKey>,
    claims: BTreeMap<(Name, Name), Claim>,
    /// What claims have, by the claim's UID.
    holdings: BTreeMap<Name, Holding>,
    /// What is in use of each device, whether or not it is offered now.
    usage: BTreeMap<PoolKey, BTreeMap<Name, Use>>,
    selectors: Selectors,
}

#[derive(Clone, Debug)]
struct DeviceClass {
    spec: DeviceClassSpec,
    selectors: Vec<SelectorId>,
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Claim {
    spec: ResourceClaimSpec,
    /// Expressions of each alternative of each request, while it has nothing.
    selectors: Vec<Vec<Vec<SelectorId>>>,
}

impl Claim {
    /// The claim as it arrived.
    pub fn spec(&self) -> &ResourceClaimSpec {
        &self.spec
    }
}

/// What a claim has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Holding {
    /// As its status says.
    reported: Option<Arc<Allocation>>,
    /// As placements have decided, with the UIDs of the pods that are placed on the strength of it.
    decided: Option<(Arc<Allocation>, BTreeSet<Name>)>,
}

impl Holding {
    fn allocation(&self) -> Option<&Arc<Allocation>> {
        self.reported.as_ref().or(self.decided.as_ref().map(|(allocation, _)| allocation))
    }
}

impl DynamicResources {
    /// The DeviceClass of this name.
    pub fn class(&self, name: &str) -> Option<&DeviceClassSpec> {
        self.classes.get(name).map(|class| &class.spec)
    }

    /// The slice of this name.
    pub fn slice(&self, name: &str) -> Option<&ResourceSliceSpec> {
        self.slices.get(name).map(|slice| &**slice)
    }

    /// The claim of this name.
    pub fn claim(&self, namespace: &Name, name: &Name) -> Option<&Claim> {
        self.claims.get(&(namespace.clone(), name.clone()))
    }

    /// What a claim has, by its status or by a decision that is on its way there.
    pub fn allocation(&self, claim: &Claim) -> Option<&Arc<Allocation>> {
        self.holdings.get(&claim.spec.uid)?.allocation()
    }

    /// Pods that use a claim, or are about to; and whether this one is among them.
    pub fn consumers(&self, claim: &Claim, pod: &Name) -> (usize, bool) {
        let none = BTreeSet::new();
        let decided = self.holdings.get(&claim.spec.uid).and_then(|held| held.decided.as_ref());
        let placed = decided.map_or(&none, |(_, pods)| pods);
        let reserved = &claim.spec.reserved_for;
        let only_reserved = reserved.iter().filter(|pod| !placed.contains(*pod)).count();
        (placed.len() + only_reserved, placed.contains(pod) || reserved.contains(pod))
    }

    /// The claims of a pod, each once; `Err` says what is missing.
    pub fn claims_of(&self, namespace: &Name, pod: &Name, claims: &[PodClaim]) -> Result<Vec<&Claim>, String> {
        let mut found: Vec<&Claim> = Vec::new();
        for (i, one) in claims.iter().enumerate() {
            let err = |why: String| Err(format!("claim {} of {}: {why}", i + 1, claims.len()));
            let Some(name) = &one.claim else {
                return err(format!("the ResourceClaim of its claim {} has not been made yet", one.name));
            };
            let Some(claim) = self.claim(namespace, name) else {
                return err(format!("resourceclaim {name:?} not found"));
            };
            if claim.spec.deleting {
                return err(format!("resourceclaim {name:?} is being deleted"));
            }
            if one.generated && claim.spec.owner.as_ref() != Some(pod) {
                return err(format!("resourceclaim {name:?} was not made for this pod"));
            }
            if let Some(why) = &claim.spec.unreadable {
                return err(format!("resourceclaim {name:?} cannot be read: {why}"));
            }
            if !found.iter().any(|known| known.spec.uid == claim.spec.uid) {
                found.push(claim);
            }
        }
        Ok(found)
    }

    /// What in a claim that has nothing yet keeps it from ever getting something: a class that is missing, an expression
    /// that cannot be read.
    pub fn flaw(&self, claim: &Claim) -> Option<String> {
        let name = &claim.spec.name;
        for (request, selectors) in claim.spec.requests.iter().zip(&claim.selectors) {
            for (alternative, own) in request.alternatives.iter().zip(selectors) {
                let label = spec_label(request, alternative);
                let Some(class) = self.classes.get(&alternative.class) else {
                    let class = &alternative.class;
                    return Some(format!("request {label} of claim {name}: device class {class} does not exist"));
                };
                let of_class = class.selectors.iter().zip(0_usize..).map(|(id, i)| (id, i, true));
                let all = of_class.chain(own.iter().zip(0_usize..).map(|(id, i)| (id, i, false)));
                for (id, i, of_class) in all {
                    if let Some(error) = self.selectors.error(*id) {
                        let whose =
                            if of_class { format!("class {}", alternative.class) } else { format!("request {label}") };
                        return Some(format!("claim {name}: expression {i} of {whose} cannot be read: {error}"));
                    }
                }
            }
        }
        None
    }

    pub(crate) fn set_class(&mut self, spec: DeviceClassSpec) {
        let selectors = self.acquire(spec.selectors.clone());
        if let Some(old) = self.classes.insert(spec.name.clone(), DeviceClass { spec, selectors }) {
            self.release(old.selectors);
        }
    }

    pub(crate) fn remove_class(&mut self, name: &Name) {
        if let Some(old) = self.classes.remove(name) {
            self.release(old.selectors);
        }
    }

    pub(crate) fn set_slice(&mut self, spec: ResourceSliceSpec) {
        let (key, name) = ((spec.driver.clone(), spec.pool.clone()), spec.name.clone());
        let before = self.slices.insert(name.clone(), Arc::new(spec));
        if let Some(old) = before.map(|old| (old.driver.clone(), old.pool.clone())).filter(|old| *old != key) {
            self.leave_pool(&old, &name);
        }
        self.slices_of.entry(key.clone()).or_default().insert(name);
        self.rebuild(&key);
    }

    pub(crate) fn remove_slice(&mut self, name: &Name) {
        if let Some(old) = self.slices.remove(name) {
            self.leave_pool(&(old.driver.clone(), old.pool.clone()), name);
        }
    }

    fn leave_pool(&mut self, key: &PoolKey, slice: &Name) {
        if let Some(slices) = self.slices_of.get_mut(key) {
            slices.remove(slice);
            if slices.is_empty() {
                self.slices_of.remove(key);
            }
        }
        self.rebuild(key);
    }

    /// Puts a pool together anew. Cost: its devices, times the expressions.
    fn rebuild(&mut self, key: &PoolKey) {
        if let Some(old) = self.pools.remove(key) {
            self.leave_nodes(key, &old);
            self.wide.remove(key);
        }
        let Some(names) = self.slices_of.get(key) else { return };
        let slices: Vec<&ResourceSliceSpec> =
            names.iter().filter_map(|name| self.slices.get(name)).map(|s| &**s).collect();
        let mut pool = Pool::of(&key.0, &slices, &self.selectors);
        let is_wide =
            |device: &DeviceSpec| matches!(device.access, DeviceAccess::Selector(_) | DeviceAccess::Everywhere);
        if pool.devices.iter().any(is_wide) {
            self.wide.insert(key.clone());
        }
        for (device, used) in self.usage.get(key).into_iter().flatten() {
            if let Some(at) = pool.find(device) {
                pool.used[at] = used.clone();
                draw(&mut pool, at, true);
            }
        }
        self.enter_nodes(key, &pool);
        self.pools.insert(key.clone(), pool);
    }

    pub(crate) fn set_claim(&mut self, spec: ResourceClaimSpec) {
        let key = (spec.namespace.clone(), spec.name.clone());
        // A claim that has something is not given anything else: its expressions have done their work.
        let selectors = if spec.allocation.is_some() {
            Vec::new()
        } else {
            let requests = spec.requests.iter();
            let texts = requests.map(|request| request.alternatives.iter().map(|one| one.selectors.clone()).collect());
            let texts: Vec<Vec<Vec<Name>>> = texts.collect();
            texts.into_iter().map(|all| all.into_iter().map(|one| self.acquire(one)).collect()).collect()
        };
        let (uid, allocation) = (spec.uid.clone(), spec.allocation.clone());
        if let Some(old) = self.claims.insert(key, Claim { spec, selectors }) {
            self.release(old.selectors.into_iter().flatten().flatten());
            if old.spec.uid != uid {
                self.change(&old.spec.uid, |held| held.reported = None);
            }
        }
        self.change(&uid, |held| held.reported = allocation);
    }

    pub(crate) fn remove_claim(&mut self, namespace: &Name, name: &Name) {
        if let Some(old) = self.claims.remove(&(namespace.clone(), name.clone())) {
            self.release(old.selectors.into_iter().flatten().flatten());
            self.change(&old.spec.uid, |held| held.reported = None);
        }
    }

    /// A pod is placed on the strength of what a claim has, or is to get.
    pub(crate) fn hold(&mut self, choice: &DeviceChoice, pod: &Name) {
        self.change(&choice.uid, |held| {
            let (_, pods) = held.decided.get_or_insert_with(|| (Arc::clone(&choice.allocation), BTreeSet::new()));
            pods.insert(pod.clone());
        });
    }

    /// It is so no longer.
    pub(crate) fn let_go(&mut self, choice: &DeviceChoice, pod: &Name) {
        self.change(&choice.uid, |held| {
            if let Some((_, pods)) = &mut held.decided {
                pods.remove(pod);
                if pods.is_empty() {
                    held.decided = None;
                }
            }
        });
    }

    /// Changes what a claim has, and with it what is in use.
    fn change(&mut self, claim: &Name, change: impl FnOnce(&mut Holding)) {
        let held = self.holdings.entry(claim.clone()).or_default();
        let before = held.allocation().cloned();
        change(held);
        let after = held.allocation().cloned();
        if *held == Holding::default() {
            self.holdings.remove(claim);
        }
        if before != after {
            if let Some(before) = before {
                self.count(&before, false);
            }
            if let Some(after) = after {
                self.count(&after, true);
            }
        }
    }

    /// Counts the devices of an allocation in, or out.
    fn count(&mut self, allocation: &Allocation, inwards: bool) {
        for device in allocation.devices.iter().filter(|device| !device.admin_access) {
            let key = (device.driver.clone(), device.pool.clone());
            let of_pool = self.usage.entry(key.clone()).or_default();
            let used = of_pool.entry(device.device.clone()).or_default();
            let was_used = used.claims > 0;
            used.claims = if inwards { used.claims + 1 } else { used.claims.saturating_sub(1) };
            for (capacity, amount) in &device.consumed {
                let taken = used.consumed.entry(capacity.clone()).or_default();
                *taken = if inwards { taken.plus(*amount) } else { taken.minus(*amount) };
            }
            used.consumed.retain(|_, amount| *amount != Quantity::default());
            let (used, is_used) = (used.clone(), used.claims > 0);
            if !is_used {
                of_pool.remove(&device.device);
                if of_pool.is_empty() {
                    self.usage.remove(&key);
                }
            }
            if let Some(pool) = self.pools.get_mut(&key)
                && let Some(at) = pool.find(&device.device)
            {
                pool.used[at] = used;
                if was_used != is_used {
                    draw(pool, at, is_used);
                    local::take(&mut self.local, &pool.devices[at], is_used);
                }
            }
        }
    }

    fn acquire(&mut self, texts: Vec<Name>) -> Vec<SelectorId> {
        let mut ids = Vec::with_capacity(texts.len());
        for text in texts {
            let (id, is_new) = self.selectors.acquire(&text);
            if is_new {
                for ((driver, _), pool) in &mut self.pools {
                    pool.learn(driver, id, &self.selectors);
                }
            }
            ids.push(id);
        }
        ids
    }

    fn release(&mut self, ids: impl IntoIterator<Item = SelectorId>) {
        for id in ids {
            for idle in self.selectors.release(id) {
                self.pools.values_mut().for_each(|pool| pool.forget(idle));
            }
        }
    }

    /// What is in use, counted anew from claims and from the tasks that are placed; the second is what is kept. Equal in
    /// every sound state.
    pub(crate) fn recount(&self, placed: impl Iterator<Item = (Name, Arc<[ClaimChoice]>)>) -> Option<(String, String)> {
        let mut fresh = Self::default();
        for claim in self.claims.values() {
            fresh.change(&claim.spec.uid, |held| held.reported = claim.spec.allocation.clone());
        }
        for (pod, choices) in placed {
            for choice in device_choices(&choices) {
                fresh.hold(choice, &pod);
            }
        }
        // Which of equal decisions was noted first is of no account.
        if fresh.usage != self.usage {
            return Some((format!("{:?}", self.usage), format!("{:?}", fresh.usage)));
        }
        self.pools.iter().for_each(|(key, pool)| fresh.enter_nodes(key, pool));
        (fresh.local != self.local).then(|| (format!("{:?}", self.local), format!("{:?}", fresh.local)))
    }
}

/// What a device draws from its pool's counters, taken or given back.
fn draw(pool: &mut Pool, device: usize, taken: bool) {
    for (set, name, amount) in &pool.devices[device].consumes {
        if let Some(left) = pool.counters.get_mut(&(set.clone(), name.clone())) {
            *left = if taken { left.minus(*amount) } else { left.plus(*amount) };
        }
    }
}

/// `request`, or `request/alternative`.
pub(crate) fn spec_label(request: &DeviceRequest, alternative: &Alternative) -> Name {
    if alternative.name.is_empty() {
        request.name.clone()
    } else {
        format!("{}/{}", request.name, alternative.name).into()
    }
}

/// Those of the choices that are about devices.
pub fn device_choices(choices: &[ClaimChoice]) -> impl Iterator<Item = &DeviceChoice> {
    choices.iter().filter_map(|choice| match choice {
        ClaimChoice::Devices(choice) => Some(&**choice),
        ClaimChoice::Volume { .. } | ClaimChoice::Provision { .. } => None,
    })
}

impl ClusterState {
    /// Devices and claims.
    pub fn dynamic_resources(&self) -> &DynamicResources {
        &self.dynamic_resources
    }

    /// What the claims of a task have, or would get on a node, looked for in at most `steps`. Nothing is changed.
    pub fn plan_claims(&self, task: TaskId, node: NodeId, steps: u64) -> Plan {
        let own = &self.tasks[task];
        allocator::plan(&self.dynamic_resources, &self.nodes[node], self.namespace_of(task), own, steps)
    }

    pub(crate) fn charge_claims(&mut self, id: TaskId, inwards: bool) {
        let task = &self.tasks[id];
        let Some(chosen) = task.choices.as_ref().filter(|_| task.status.holds_node()) else { return };
        for choice in device_choices(chosen) {
            if inwards {
                self.dynamic_resources.hold(choice, &task.uid);
            } else {
                self.dynamic_resources.let_go(choice, &task.uid);
            }
        }
    }
}
