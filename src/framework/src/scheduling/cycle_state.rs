//! What plugins leave for their later hooks while one pod is scheduled, and what they keep for the next pod like it.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_model::{PodShape, ShapeId};

/// Shapes for which something is kept at most: counts by domain are some tens of bytes for each node.
const MOST_SHAPES: usize = 64;

/// Values by type, one of each: written once, in PreFilter or PreScore, and read for each node. They live for one attempt
/// at one pod. What is *kept* comes back in the next attempt at a pod of the same shape, for its owner to bring up to date.
#[derive(Default)]
pub struct CycleState {
    values: BTreeMap<TypeId, Box<dyn Any>>,
    is_preemption: bool,
    /// The shape of the pod for which values are kept, if they are.
    keeps_for: Option<ShapeId>,
    /// Which of the values are.
    to_keep: Vec<TypeId>,
    /// The shape itself, if nothing is kept for it yet.
    next_shape: Option<Arc<PodShape>>,
    kept: BTreeMap<ShapeId, Kept>,
    n_attempts: u64,
}

/// What is kept for a shape.
struct Kept {
    shape: Arc<PodShape>,
    values: BTreeMap<TypeId, Box<dyn Any>>,
    last_used: u64,
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

    /// The value of this type, to be changed. It is not kept beyond this attempt.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.to_keep.retain(|id| *id != TypeId::of::<T>());
        self.values.get_mut(&TypeId::of::<T>())?.downcast_mut()
    }

    /// Takes the value of this type out.
    pub fn delete<T: Any>(&mut self) -> Option<T> {
        self.to_keep.retain(|id| *id != TypeId::of::<T>());
        Some(*self.values.remove(&TypeId::of::<T>())?.downcast().ok()?)
    }

    /// Leaves a value that is to be kept for the next attempt at a pod of this shape, where anything is kept.
    pub fn put_kept<T: Any>(&mut self, value: T) {
        self.put(value);
        if self.keeps_for.is_some() && !self.to_keep.contains(&TypeId::of::<T>()) {
            self.to_keep.push(TypeId::of::<T>());
        }
    }

    /// The value of this type that an earlier attempt at a pod of this shape kept. It holds for the cluster as it was
    /// then.
    pub fn take_kept<T: Any>(&mut self) -> Option<T> {
        let kept = self.kept.get_mut(&self.keeps_for?)?;
        Some(*kept.values.remove(&TypeId::of::<T>())?.downcast().ok()?)
    }

    /// Forgets everything but what is kept: the next pod begins. `keep_for` is its shape, if anything is to be kept for
    /// the next one like it.
    pub(crate) fn begin(&mut self, keep_for: Option<(ShapeId, &Arc<PodShape>)>) {
        self.put_away();
        self.values.clear();
        self.keeps_for = keep_for.map(|(id, _)| id);
        let Some((id, shape)) = keep_for else { return };
        self.n_attempts += 1;
        if let Some(kept) = self.kept.get_mut(&id) {
            if !Arc::ptr_eq(&kept.shape, shape) {
                *kept = Kept { shape: Arc::clone(shape), values: BTreeMap::new(), last_used: 0 };
            }
            kept.last_used = self.n_attempts;
        }
        self.next_shape = Some(Arc::clone(shape)).filter(|_| !self.kept.contains_key(&id));
    }

    /// Puts away what is to be kept.
    fn put_away(&mut self) {
        let Some(id) = self.keeps_for.filter(|_| !self.to_keep.is_empty()) else { return };
        if let Some(shape) = self.next_shape.take() {
            if self.kept.len() >= MOST_SHAPES
                && let Some(oldest) = self.kept.iter().min_by_key(|(_, kept)| kept.last_used).map(|(id, _)| *id)
            {
                self.kept.remove(&oldest);
            }
            self.kept.insert(id, Kept { shape, values: BTreeMap::new(), last_used: self.n_attempts });
        }
        let Some(kept) = self.kept.get_mut(&id) else { return };
        for type_id in self.to_keep.drain(..) {
            if let Some(value) = self.values.remove(&type_id) {
                kept.values.insert(type_id, value);
            }
        }
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
