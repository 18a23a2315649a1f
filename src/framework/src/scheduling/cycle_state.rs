//! What plugins leave for their later hooks while one pod is scheduled.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;

/// Values by type, one of each: written once, in PreFilter or PreScore, and read for each node. It lives for one attempt
/// at one pod.
#[derive(Default)]
pub struct CycleState {
    values: BTreeMap<TypeId, Box<dyn Any>>,
    is_preemption: bool,
}

impl CycleState {
    /// Leaves a value; replaces one of the same type.
    pub fn put<T: Any>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// The value of this type; `None` if nobody left one.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// The value of this type, to be changed.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.values.get_mut(&TypeId::of::<T>())?.downcast_mut()
    }

    /// Takes the value of this type out.
    pub fn delete<T: Any>(&mut self) -> Option<T> {
        Some(*self.values.remove(&TypeId::of::<T>())?.downcast().ok()?)
    }

    /// Forgets everything: the next pod begins.
    pub fn clear(&mut self) {
        self.values.clear();
    }

    /// Whether it is asked if the pod would fit once victims are gone: what terminates counts as gone.
    pub fn is_preemption(&self) -> bool {
        self.is_preemption
    }

    /// See [`Self::is_preemption`]; it stays until it is set again.
    pub(crate) fn set_preemption(&mut self, is_preemption: bool) {
        self.is_preemption = is_preemption;
    }
}
