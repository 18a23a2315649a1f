//! Pools: what drivers offer, put together from slices.
//!
//! Only the newest generation of a pool counts, and only once all its slices are there: a part of a pool could be given
//! out twice.

use std::collections::{BTreeMap, BTreeSet};

use krafla_cel::{Quantity, Value};

use super::selectors::{Match, Selectors, value_of};
use super::spec::{Attribute, DeviceAccess, DeviceSpec, ResourceSliceSpec};
use crate::ids::SelectorId;
use crate::name::Name;
use crate::node::Node;

/// Driver and name of a pool.
pub(crate) type PoolKey = (Name, Name);

/// A pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) devices: Vec<DeviceSpec>,
    /// What is in use of each device.
    pub(crate) used: Vec<Use>,
    /// What is left of the counters that its devices share.
    pub(crate) counters: BTreeMap<(Name, Name), Quantity>,
    /// Why none of it can be had.
    pub(crate) problem: Option<Name>,
    matches: BTreeMap<SelectorId, Matches>,
}

/// What is in use of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// Claims that have it, or a part of it.
    pub(crate) claims: u32,
    /// What they have of its capacities, if it is shared.
    pub(crate) consumed: BTreeMap<Name, Quantity>,
}

/// Answers of one expression for the devices of a pool.
#[derive(Clone, Debug)]
struct Matches {
    answers: Vec<Match>,
    /// The first failure.
    error: Option<Name>,
}

impl Pool {
    /// A pool of its slices, in order of their names; nothing in it is in use.
    pub(crate) fn of(driver: &Name, slices: &[&ResourceSliceSpec], selectors: &Selectors) -> Self {
        let generation = slices.iter().map(|slice| slice.generation).max().unwrap_or(0);
        let newest: Vec<_> = slices.iter().filter(|slice| slice.generation == generation).collect();
        let devices: Vec<DeviceSpec> = newest.iter().flat_map(|slice| slice.devices.iter().cloned()).collect();
        let counters = newest.iter().flat_map(|slice| &slice.counters);
        let counters = counters.map(|(set, name, value)| ((set.clone(), name.clone()), *value)).collect();
        let wanted = newest.iter().map(|slice| slice.slices).max().unwrap_or(0);
        let distinct: BTreeSet<&Name> = devices.iter().map(|device| &device.name).collect();
        let problem = if i64::try_from(newest.len()) != Ok(wanted) {
            Some(format!("is incomplete: {} of {wanted} slices of generation {generation} are there", newest.len()))
        } else if distinct.len() < devices.len() {
            Some("has two devices of one name".to_owned())
        } else {
            None
        };
        let used = vec![Use::default(); devices.len()];
        let problem = problem.map(Name::from);
        let mut pool = Self { devices, used, counters, problem, matches: BTreeMap::new() };
        let values: Vec<Value> = pool.devices.iter().map(|device| value_of(driver, device)).collect();
        for selector in selectors.ids() {
            pool.evaluate(selector, selectors, &values);
        }
        pool
    }

    /// Asks an expression about every device. Cost: the devices of the pool.
    pub(crate) fn learn(&mut self, driver: &Name, selector: SelectorId, selectors: &Selectors) {
        let values: Vec<Value> = self.devices.iter().map(|device| value_of(driver, device)).collect();
        self.evaluate(selector, selectors, &values);
    }

    fn evaluate(&mut self, selector: SelectorId, selectors: &Selectors, values: &[Value]) {
        let mut error = None;
        let answers = values.iter().zip(&self.devices).map(|(value, device)| match selectors.test(selector, value) {
            Ok(true) => Match::Yes,
            Ok(false) => Match::No,
            Err(why) => {
                error.get_or_insert_with(|| Name::from(format!("on device {}: {why}", device.name)));
                Match::Failed
            }
        });
        let answers = answers.collect();
        self.matches.insert(selector, Matches { answers, error });
    }

    pub(crate) fn forget(&mut self, selector: SelectorId) {
        self.matches.remove(&selector);
    }

    /// Whether a device satisfies an expression.
    pub(crate) fn matches(&self, selector: SelectorId, device: usize) -> Match {
        self.matches.get(&selector).and_then(|one| one.answers.get(device)).copied().unwrap_or(Match::No)
    }

    /// Why an expression failed on a device of the pool.
    pub(crate) fn failure(&self, selector: SelectorId) -> Name {
        self.matches.get(&selector).and_then(|one| one.error.clone()).unwrap_or_default()
    }

    pub(crate) fn find(&self, device: &Name) -> Option<usize> {
        self.devices.iter().position(|one| one.name == *device)
    }
}

impl DeviceAccess {
    /// Whether it can be had from a node.
    pub fn reaches(&self, node: &Node) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Node(name) => *name == *node.name(),
            Self::Selector(terms) => terms.iter().any(|term| term.matches(node.name(), &node.spec.labels)),
            Self::Everywhere => true,
        }
    }
}

impl DeviceSpec {
    /// Its attribute of a name with a domain; one that the device gives no domain is in its driver's.
    pub(crate) fn attribute(&self, driver: &str, name: &str) -> Option<&Attribute> {
        let bare = name.strip_prefix(driver).and_then(|rest| rest.strip_prefix('/'));
        let is = |known: &Name| *known == *name || bare.is_some_and(|bare| *known == *bare);
        self.attributes.iter().find(|(known, _)| is(known)).map(|(_, value)| value)
    }

    /// What a claim takes of each of its capacities; `None` if it has not so much of one, or not so little.
    pub(crate) fn consumption(&self, driver: &str, asked: &[(Name, Quantity)]) -> Option<Vec<(Name, Quantity)>> {
        let known = |name: &Name| {
            let bare = name.strip_prefix(driver).and_then(|rest| rest.strip_prefix('/'));
            self.capacity.iter().find(|(own, _)| *own == *name || bare.is_some_and(|bare| *own == *bare))
        };
        if asked.iter().any(|(name, amount)| known(name).is_none_or(|(_, capacity)| *amount > capacity.value)) {
            return None;
        }
        if !self.shared {
            return Some(Vec::new());
        }
        let taken = self.capacity.iter().map(|(name, capacity)| {
            let amount = asked.iter().find(|(wanted, _)| known(wanted).is_some_and(|(own, _)| own == name));
            Some((name.clone(), capacity.taken(amount.map(|(_, amount)| *amount))?))
        });
        taken.collect()
    }
}

impl super::spec::Capacity {
    /// What is taken of it when so much is asked for; `None` if that may not be taken.
    fn taken(&self, asked: Option<Quantity>) -> Option<Quantity> {
        let Some(asked) = asked.or(self.default) else { return Some(self.value) };
        if !self.values.is_empty() {
            return self.values.iter().copied().find(|value| *value >= asked);
        }
        let Some((least, most, step)) = self.range else { return Some(asked) };
        let mut amount = asked.max(least);
        if let Some(step) = step.filter(|step| step.nano() > 0) {
            let over = amount.minus(least).nano();
            let steps = over / step.nano() + i128::from(over % step.nano() != 0);
            amount = least.plus(Quantity::from_nano(steps.saturating_mul(step.nano())));
        }
        most.is_none_or(|most| amount <= most).then_some(amount)
    }
}
