//! What plugins leave for their later hooks while one pod is scheduled.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;

/// Values by type, one of each: written once, in PreFilter or PreScore, and read for each node. It lives for one attempt
/// at one pod.
#[derive(Default)]
pub struct CycleState(BTreeMap<TypeId, Box<dyn Any>>);

impl CycleState {
    /// Leaves a value; replaces one of the same type.
    pub fn put<T: Any>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Box::new(value));
    }

    /// The value of this type; `None` if nobody left one.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// The value of this type, to be changed.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.0.get_mut(&TypeId::of::<T>())?.downcast_mut()
    }

    /// Takes the value of this type out.
    pub fn delete<T: Any>(&mut self) -> Option<T> {
        Some(*self.0.remove(&TypeId::of::<T>())?.downcast().ok()?)
    }

    /// Forgets everything: the next pod begins.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
