//! Priority classes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// A PriorityClass as the edge reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityClassSpec {
    /// Its name.
    pub name: Name,
    /// Its value; larger is more urgent.
    pub value: i32,
    /// Whether it is that of whoever names none.
    pub global_default: bool,
    /// Whether its pods may evict others.
    pub preempts: bool,
}

/// The priority classes of a cluster.
#[derive(Clone, Debug, Default)]
pub struct PriorityClasses(BTreeMap<Name, PriorityClassSpec>);

impl PriorityClasses {
    /// The value of the class named `name`; of the global default if there is no such class; else 0.
    ///
    /// Of several global defaults the smallest counts, as in Kubernetes' admission.
    pub fn value(&self, name: &str) -> i32 {
        if let Some(class) = self.0.get(name) {
            return class.value;
        }
        self.0.values().filter(|class| class.global_default).map(|class| class.value).min().unwrap_or(0)
    }

    /// The class of this name.
    pub fn get(&self, name: &str) -> Option<&PriorityClassSpec> {
        self.0.get(name)
    }

    pub(crate) fn set(&mut self, class: PriorityClassSpec) {
        self.0.insert(class.name.clone(), class);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}
