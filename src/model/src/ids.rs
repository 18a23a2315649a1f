//! Dense ids, and the tables that only they can index.
//!
//! An id is an index into one table of one [`ClusterState`](crate::ClusterState). A slot that has been freed is used
//! again, so an id means something only while its object lives; identity across time is the UID.

use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};
use std::marker::PhantomData;
use std::ops::{Index as IndexOp, IndexMut};

/// An id that is an index into one kind of table.
pub trait Id: Copy + Eq + Ord + Hash + fmt::Debug {
    /// The id of slot `index`.
    fn from_index(index: usize) -> Self;
    /// The slot.
    fn index(self) -> usize;
}

/// Declares an id type: a `u32` index that cannot be mixed with another kind's.
#[macro_export]
macro_rules! dense_id {
    ($(#[$meta:meta])* $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $crate::ids::Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("a table holds fewer than 2^32 objects"))
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

dense_id!(
    /// A node.
    NodeId, "n"
);
dense_id!(
    /// A task: one pod, as the scheduler sees it.
    TaskId, "t"
);
dense_id!(
    /// A job: one PodGroup and its pods.
    JobId, "j"
);
dense_id!(
    /// A queue.
    QueueId, "q"
);
dense_id!(
    /// An expression that selects devices.
    SelectorId, "e"
);
dense_id!(
    /// A scheduling signature that tasks share; see [`Shape`](crate::Shape).
    ShapeId, "s"
);

/// A table whose slots are used again: objects come and go, ids stay dense.
#[derive(Clone, Debug)]
pub struct Slab<I, T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
    id: PhantomData<I>,
}

impl<I, T> Default for Slab<I, T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> Slab<I, T> {
    /// Puts `value` into a free slot.
    pub fn insert(&mut self, value: T) -> I {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(value);
            return I::from_index(index as usize);
        }
        self.slots.push(Some(value));
        I::from_index(self.slots.len() - 1)
    }

    /// Takes the object out and frees its slot.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let value = self.slots.get_mut(id.index())?.take()?;
        self.free.push(u32::try_from(id.index()).expect("ids are 32 bits wide"));
        Some(value)
    }

    /// The object, if it lives.
    pub fn get(&self, id: I) -> Option<&T> {
        self.slots.get(id.index())?.as_ref()
    }

    /// The object, if it lives.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// How many objects live.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether nothing lives here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One more than the largest slot ever used; what a side table indexed by `I` must hold.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Live objects in id order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.slots.iter().enumerate().filter_map(|(i, slot)| Some((I::from_index(i), slot.as_ref()?)))
    }

    /// Live objects in id order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(i, slot)| Some((I::from_index(i), slot.as_mut()?)))
    }

    /// Ids of live objects, ascending.
    pub fn ids(&self) -> impl Iterator<Item = I> {
        self.iter().map(|(id, _)| id)
    }
}

impl<I: Id, T> IndexOp<I> for Slab<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        self.get(id).expect("an id is used only while its object lives")
    }
}

impl<I: Id, T> IndexMut<I> for Slab<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        self.get_mut(id).expect("an id is used only while its object lives")
    }
}

/// A side table: one value for each id, `T::default()` until set. Grows on write.
#[derive(Clone, Debug)]
pub struct IdVec<I, T> {
    values: Vec<T>,
    default: T,
    id: PhantomData<I>,
}

impl<I, T: Default> Default for IdVec<I, T> {
    fn default() -> Self {
        Self { values: Vec::new(), default: T::default(), id: PhantomData }
    }
}

impl<I: Id, T: Default + Clone> IdVec<I, T> {
    /// Forgets every value.
    pub fn clear(&mut self) {
        self.values.clear();
    }
}

impl<I: Id, T> IndexOp<I> for IdVec<I, T> {
    type Output = T;

    fn index(&self, id: I) -> &T {
        self.values.get(id.index()).unwrap_or(&self.default)
    }
}

impl<I: Id, T: Default + Clone> IndexMut<I> for IdVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        if self.values.len() <= id.index() {
            self.values.resize(id.index() + 1, T::default());
        }
        &mut self.values[id.index()]
    }
}

/// A look-up table by hash that cannot be iterated, so its order can reach no decision.
#[derive(Clone, Debug)]
pub struct Lookup<K, V> {
    #[allow(clippy::disallowed_types, reason = "fixed hash keys and no iteration: nothing of its order can be seen")]
    map: std::collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>,
}

impl<K, V> Default for Lookup<K, V> {
    fn default() -> Self {
        Self { map: Default::default() }
    }
}

impl<K: Eq + Hash, V> Lookup<K, V> {
    /// The value of `key`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.map.get(key)
    }

    /// Sets the value of `key`; answers the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.map.insert(key, value)
    }

    /// Forgets `key`.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.map.remove(key)
    }

    /// The value of `key`, made when missing.
    pub fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.map.entry(key).or_default()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_slot_is_used_again_and_order_is_by_id() {
        let mut slab: Slab<NodeId, &str> = Slab::default();
        let a = slab.insert("a");
        let b = slab.insert("b");
        assert_eq!(slab.remove(a), Some("a"));
        assert_eq!(slab.get(a), None);
        let c = slab.insert("c");
        assert_eq!((c, slab.len()), (a, 2));
        assert_eq!(slab.ids().collect::<Vec<_>>(), vec![c, b]);
    }
}
