//! Expressions of classes and claims, each read once, however many use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_cel::{CelError, Program, Semver, Value};

use super::spec::{Attribute, DeviceSpec};
use crate::ids::{SelectorId, Slab};
use crate::name::Name;

/// Expressions without a user that are kept for the next one.
const MOST_UNUSED: usize = 256;

/// The expressions in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors {
    table: Slab<SelectorId, Selector>,
    by_text: BTreeMap<Name, SelectorId>,
    unused: usize,
}

#[derive(Clone, Debug)]
struct Selector {
    text: Name,
    program: Result<Arc<Program>, CelError>,
    users: u32,
}

/// Whether a device satisfies an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    Failed,
}

impl Selectors {
    /// One user more of an expression; `true` if it is new here.
    pub(crate) fn acquire(&mut self, text: &Name) -> (SelectorId, bool) {
        if let Some(&id) = self.by_text.get(text) {
            let selector = &mut self.table[id];
            self.unused -= usize::from(selector.users == 0);
            selector.users += 1;
            return (id, false);
        }
        let program = Program::compile(text).map(Arc::new);
        let id = self.table.insert(Selector { text: text.clone(), program, users: 1 });
        self.by_text.insert(text.clone(), id);
        (id, true)
    }

    /// One user less. Answers the expressions that are forgotten: those without a user, once there are many.
    pub(crate) fn release(&mut self, id: SelectorId) -> Vec<SelectorId> {
        let selector = &mut self.table[id];
        selector.users -= 1;
        self.unused += usize::from(selector.users == 0);
        if self.unused <= MOST_UNUSED {
            return Vec::new();
        }
        let idle: Vec<SelectorId> = self.table.iter().filter(|(_, one)| one.users == 0).map(|(id, _)| id).collect();
        for &id in &idle {
            if let Some(selector) = self.table.remove(id) {
                self.by_text.remove(&selector.text);
            }
        }
        self.unused = 0;
        idle
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = SelectorId> {
        self.table.ids()
    }

    /// Why an expression cannot be read.
    pub(crate) fn error(&self, id: SelectorId) -> Option<&CelError> {
        self.table[id].program.as_ref().err()
    }

    /// Whether a device satisfies an expression, or why that cannot be said.
    pub(crate) fn test(&self, id: SelectorId, device: &Value) -> Result<bool, CelError> {
        match &self.table[id].program {
            Ok(program) => program.test("device", device),
            Err(error) => Err(error.clone()),
        }
    }
}

/// A device as expressions see it.
pub(crate) fn value_of(driver: &Name, device: &DeviceSpec) -> Value {
    let mut attributes: BTreeMap<&str, Vec<(Arc<str>, Value)>> = BTreeMap::new();
    for (name, attribute) in &device.attributes {
        let (domain, id) = qualified(driver, name);
        let value = match attribute {
            Attribute::Bool(value) => Value::Bool(*value),
            Attribute::Int(value) => Value::Int(*value),
            Attribute::Text(text) => Value::text(text),
            Attribute::Version(text) => match Semver::parse(text) {
                Some(version) => Value::Semver(Arc::new(version)),
                None => continue,
            },
        };
        attributes.entry(domain).or_default().push((id.into(), value));
    }
    let mut capacity: BTreeMap<&str, Vec<(Arc<str>, Value)>> = BTreeMap::new();
    for (name, amount) in &device.capacity {
        let (domain, id) = qualified(driver, name);
        capacity.entry(domain).or_default().push((id.into(), Value::Quantity(amount.value)));
    }
    let by_domain = |domains: BTreeMap<&str, Vec<(Arc<str>, Value)>>| {
        Value::map(domains.into_iter().map(|(domain, all)| (domain.into(), Value::map(all, false))), true)
    };
    Value::map(
        [
            ("driver".into(), Value::text(driver)),
            ("attributes".into(), by_domain(attributes)),
            ("capacity".into(), by_domain(capacity)),
            ("allowMultipleAllocations".into(), Value::Bool(device.shared)),
        ],
        false,
    )
}

/// Domain and name of an attribute: one without a domain is in its driver's.
pub(crate) fn qualified<'a>(driver: &'a str, name: &'a str) -> (&'a str, &'a str) {
    name.split_once('/').unwrap_or((driver, name))
}
