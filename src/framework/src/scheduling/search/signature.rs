//! What single nodes may be asked about a pod. Pods of many jobs differ in their labels only, and share a class all the
//! same.

use std::collections::BTreeMap;
use std::sync::Arc;

use krafla_model::ids::IdVec;
use krafla_model::{PodShape, ShapeId};

/// A signature's number.
pub(super) type Signature = u32;

/// The part of a shape that filters and scores of single nodes may read.
pub(super) fn of_nodes(shape: &PodShape) -> PodShape {
    PodShape {
        request: shape.request.clone(),
        scored_request: shape.scored_request,
        host_ports: shape.host_ports.clone(),
        gpu_share_milli: shape.gpu_share_milli,
        ..of_specs(shape)
    }
}

/// The part of it that those may read that do not look at what is on the node.
pub(super) fn of_specs(shape: &PodShape) -> PodShape {
    PodShape {
        scheduler_name: shape.scheduler_name.clone(),
        annotations: shape.annotations.clone(),
        node_selector: shape.node_selector.clone(),
        required_affinity: shape.required_affinity.clone(),
        preferred_affinity: shape.preferred_affinity.clone(),
        tolerations: shape.tolerations.clone(),
        images: shape.images.clone(),
        features: shape.features.clone(),
        revocable: shape.revocable,
        ..PodShape::default()
    }
}

/// Signatures by number, and those of shapes.
#[derive(Default)]
pub(super) struct Signatures {
    numbers: BTreeMap<PodShape, Signature>,
    of_shapes: IdVec<ShapeId, Option<(Arc<PodShape>, Signature)>>,
}

impl Signatures {
    /// The signature of a shape. Cost: one look, but for a shape that was not seen before.
    pub(super) fn of(&mut self, id: ShapeId, shape: &Arc<PodShape>) -> Signature {
        if let Some((known, signature)) = &self.of_shapes[id]
            && Arc::ptr_eq(known, shape)
        {
            return *signature;
        }
        let next = Signature::try_from(self.numbers.len()).unwrap_or(Signature::MAX);
        let signature = *self.numbers.entry(of_nodes(shape)).or_insert(next);
        self.of_shapes[id] = Some((Arc::clone(shape), signature));
        signature
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}
