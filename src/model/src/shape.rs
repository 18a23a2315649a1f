//! Shapes: pod signatures, interned, so that equal pods are known to be equal by id.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::{Lookup, ShapeId, Slab};
use crate::pod::PodShape;
use crate::resources::{ResourceId, ResourceNames, Resources};

/// What kube-scheduler's spreading scores assume of a container that asks for no CPU, in milli-CPU.
pub const DEFAULT_CPU: i64 = 100;
/// The same for memory, in bytes.
pub const DEFAULT_MEMORY: i64 = 200 << 20;

/// A pod signature in interned form.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The signature as it arrived.
    pub spec: Arc<PodShape>,
    /// Its request, with one pod slot.
    pub request: Resources,
    /// Its request as the resource scores see it.
    pub scored_request: Resources,
    /// Whether it asks for nothing but a pod slot.
    pub best_effort: bool,
    users: u32,
}

impl Shape {
    /// How many pods have it.
    pub fn users(&self) -> u32 {
        self.users
    }
}

/// The shapes in use.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    table: Slab<ShapeId, Shape>,
    by_hash: Lookup<u64, SmallVec<[ShapeId; 1]>>,
}

impl Shapes {
    /// The shape of `spec`, made when new; counts one more user. Cost: one hash of the signature.
    ///
    /// A resource name beyond the cluster's bound cannot be interned; its name is returned, and the caller keeps the
    /// pod out.
    pub fn acquire(&mut self, spec: &Arc<PodShape>, names: &mut ResourceNames) -> Result<ShapeId, crate::name::Name> {
        let hash = hash_of(spec);
        for &id in self.by_hash.get(&hash).into_iter().flatten() {
            let shape = &mut self.table[id];
            if Arc::ptr_eq(&shape.spec, spec) || shape.spec == *spec {
                shape.users += 1;
                return Ok(id);
            }
        }
        let mut request = Resources::default();
        for (name, amount) in spec.request.iter() {
            request.set(names.intern(name).ok_or_else(|| name.clone())?, amount);
        }
        request.set(ResourceId::PODS, 1);
        let mut scored_request = request.clone();
        if let Some((cpu, memory)) = spec.scored_request {
            scored_request.set(ResourceId::CPU, cpu);
            scored_request.set(ResourceId::MEMORY, memory);
        } else {
            for (id, least) in [(ResourceId::CPU, DEFAULT_CPU), (ResourceId::MEMORY, DEFAULT_MEMORY)] {
                if scored_request.get(id) == 0 {
                    scored_request.set(id, least);
                }
            }
        }
        let best_effort = request.is_best_effort();
        let shape = Shape { spec: Arc::clone(spec), request, scored_request, best_effort, users: 1 };
        let id = self.table.insert(shape);
        self.by_hash.entry(hash).push(id);
        Ok(id)
    }

    /// One user more.
    pub(crate) fn retain(&mut self, id: ShapeId) {
        self.table[id].users += 1;
    }

    /// One user less; the last one takes the shape with it, which is the answer.
    pub fn release(&mut self, id: ShapeId) -> bool {
        let shape = &mut self.table[id];
        shape.users -= 1;
        if shape.users == 0 {
            let hash = hash_of(&shape.spec);
            self.table.remove(id);
            let ids = self.by_hash.entry(hash);
            ids.retain(|known| *known != id);
            if ids.is_empty() {
                self.by_hash.remove(&hash);
            }
            return true;
        }
        false
    }

    /// The shape.
    pub fn get(&self, id: ShapeId) -> &Shape {
        &self.table[id]
    }

    /// The shapes in use, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Shape> {
        self.table.iter().map(|(_, shape)| shape)
    }

    /// How many distinct shapes are in use.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

fn hash_of(spec: &PodShape) -> u64 {
    let mut hasher = DefaultHasher::new(); // fixed keys: the same on every run
    spec.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Amounts;

    #[test]
    fn equal_signatures_share_a_shape_until_the_last_pod_goes() {
        let mut names = ResourceNames::default();
        let mut shapes = Shapes::default();
        let spec = |cpu| Arc::new(PodShape { request: Amounts::default().with("cpu", cpu), ..PodShape::default() });
        let a = shapes.acquire(&spec(1), &mut names).expect("interned");
        let b = shapes.acquire(&spec(1), &mut names).expect("interned");
        let c = shapes.acquire(&spec(2), &mut names).expect("interned");
        assert!(a == b && a != c);
        shapes.release(a);
        assert_eq!(shapes.len(), 2);
        shapes.release(b);
        assert_eq!(shapes.len(), 1);
    }
}
