//! Devices of single nodes, counted: what a node's devices can never do for a pod is known without a search.

use std::collections::{BTreeMap, BTreeSet};

use super::DynamicResources;
use super::allocator::MAX_DEVICES;
use super::pools::{Pool, PoolKey};
use super::spec::{DeviceAccess, DeviceSpec};
use crate::ids::TaskId;
use crate::name::Name;
use crate::node::Node;
use crate::state::ClusterState;

/// Devices that one node has to itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LocalDevices {
    pools: BTreeSet<PoolKey>,
    n: usize,
    /// Those that only one claim may have, and none does.
    free: u32,
    /// Those that several claims may have parts of.
    shared: u32,
}

impl LocalDevices {
    /// Pools that have some of them.
    pub(super) fn pools(&self) -> impl Iterator<Item = &PoolKey> {
        self.pools.iter()
    }
}

/// A claim takes a device, or gives it back.
pub(super) fn take(local: &mut BTreeMap<Name, LocalDevices>, device: &DeviceSpec, is_used: bool) {
    let DeviceAccess::Node(node) = &device.access else { return };
    if let Some(own) = local.get_mut(node).filter(|_| !device.shared) {
        own.free = if is_used { own.free.saturating_sub(1) } else { own.free + 1 };
    }
}

impl DynamicResources {
    pub(super) fn enter_nodes(&mut self, key: &PoolKey, pool: &Pool) {
        for (device, used) in pool.devices.iter().zip(&pool.used) {
            let DeviceAccess::Node(node) = &device.access else { continue };
            let own = self.local.entry(node.clone()).or_default();
            own.pools.insert(key.clone());
            own.n += 1;
            own.shared += u32::from(device.shared);
            own.free += u32::from(!device.shared && used.claims == 0);
            self.most_local = self.most_local.max(own.n);
        }
        self.has_shared |= pool.devices.iter().any(|device| device.shared);
    }

    pub(super) fn leave_nodes(&mut self, key: &PoolKey, pool: &Pool) {
        for (device, used) in pool.devices.iter().zip(&pool.used) {
            let DeviceAccess::Node(node) = &device.access else { continue };
            let Some(own) = self.local.get_mut(node) else { continue };
            own.pools.remove(key);
            own.n -= 1;
            own.shared -= u32::from(device.shared);
            own.free -= u32::from(!device.shared && used.claims == 0);
            if own.n == 0 {
                self.local.remove(node);
            }
        }
    }

    /// Whether the node's own devices are too few for that many, each for one claim, and no others can be had from it.
    pub fn is_too_few(&self, node: &Node, devices: u64) -> bool {
        if devices == 0 || !self.wide.is_empty() {
            return false;
        }
        self.local.get(node.name()).is_none_or(|own| own.shared == 0 && u64::from(own.free) < devices)
    }

    /// The most devices that can be had from any node.
    fn most_on_a_node(&self) -> usize {
        let wide = self.wide.iter().filter_map(|key| self.pools.get(key)).map(|pool| pool.devices.len());
        self.most_local + wide.sum::<usize>()
    }
}

/// What is known of a search for the devices of a pod before any node is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Devices that it needs at least, beside those that its claims have.
    pub devices: u64,
    /// How many steps it takes at most on one node.
    pub most_steps: u64,
}

impl ClusterState {
    /// What is known of the search for the devices of a task's claims. Claims that are not as they should be count for
    /// nothing.
    pub fn outlook_for_claims(&self, task: TaskId) -> Outlook {
        let (dra, own) = (&self.dynamic_resources, &self.tasks[task]);
        let claims = dra.claims_of(self.namespace_of(task), &own.uid, &own.claims).unwrap_or_default();
        let pending = claims.into_iter().filter(|claim| dra.allocation(claim).is_none());
        let n = u64::try_from(dra.most_on_a_node()).unwrap_or(u64::MAX);
        let mut outlook = Outlook { devices: 0, most_steps: 1 };
        for request in pending.flat_map(|claim| &claim.spec.requests) {
            let least = request.alternatives.iter().map(|one| match one.count {
                _ if one.admin_access => 0,
                Some(count) => u64::from(count),
                None => 1,
            });
            outlook.devices = outlook.devices.saturating_add(least.min().unwrap_or(0));
            let steps = request.alternatives.iter().map(|one| steps(n, one.count, dra.has_shared));
            let steps = steps.fold(1_u64, u64::saturating_add);
            outlook.most_steps = outlook.most_steps.saturating_mul(steps);
        }
        outlook
    }
}

/// How often a device of `n` is tried at most, for a request of so many, or of all. `repeats`: parts of one may be taken
/// again and again.
fn steps(n: u64, count: Option<u32>, repeats: bool) -> u64 {
    let Some(count) = count else { return n };
    // What was taken so far is gone on with from each device.
    let (mut taken, mut tries) = (1_u64, 0_u64);
    for _ in 0..usize::try_from(count).unwrap_or(usize::MAX).min(MAX_DEVICES + 1) {
        taken = taken.saturating_mul(n);
        tries = tries.saturating_add(taken);
    }
    if repeats {
        return tries;
    }
    let subsets = u32::try_from(n).ok().and_then(|n| 1_u64.checked_shl(n)).unwrap_or(u64::MAX);
    tries.min(subsets.saturating_mul(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_bounded_by_sequences_and_by_subsets() {
        assert_eq!(steps(8, None, false), 8);
        assert_eq!(steps(8, Some(1), false), 8);
        assert_eq!(steps(8, Some(2), true), 8 + 64);
        assert_eq!(steps(8, Some(8), false), (1 << 8) * 8);
        assert!(steps(8, Some(8), true) > steps(8, Some(8), false));
        assert_eq!(steps(0, Some(u32::MAX), true), 0);
        assert_eq!(steps(100, Some(32), false), u64::MAX);
    }
}
