//! What has changed in a cluster, as kube-scheduler's queue is told: a resource, what happened to it, and to which one.
//! Kept only for who asks for it; the books need none of it.

use std::sync::Arc;

use crate::ids::{NodeId, TaskId};
use crate::name::Name;
use crate::node::NodeSpec;
use crate::pod::PodShape;
use crate::state::ClusterState;
use crate::storage::StorageKey;

/// A kind of object that something may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventResource {
    /// Pods.
    Pod,
    /// Nodes.
    Node,
    /// PersistentVolumes.
    PersistentVolume,
    /// PersistentVolumeClaims.
    PersistentVolumeClaim,
    /// StorageClasses.
    StorageClass,
    /// CSINodes.
    CsiNode,
    /// CSIDrivers.
    CsiDriver,
    /// CSIStorageCapacities.
    CsiStorageCapacity,
    /// VolumeAttachments.
    VolumeAttachment,
    /// ResourceClaims.
    ResourceClaim,
    /// ResourceSlices.
    ResourceSlice,
    /// DeviceClasses.
    DeviceClass,
    /// PodGroups of any API.
    PodGroup,
    /// ElasticQuotas.
    ElasticQuota,
    /// Labels of namespaces, and whose pods services and workloads select.
    Surroundings,
}

/// What happened to an object: one or several of the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionType(u16);

impl ActionType {
    /// It is new; a pod: it has been given its node, or it waits for one.
    pub const ADD: Self = Self(1);
    /// It is gone; a pod that has ended counts as gone.
    pub const DELETE: Self = Self(1 << 1);
    /// A node offers another amount of something.
    pub const UPDATE_NODE_ALLOCATABLE: Self = Self(1 << 2);
    /// A node's labels are others.
    pub const UPDATE_NODE_LABEL: Self = Self(1 << 3);
    /// A node's taints are others, or it is no longer cordoned.
    pub const UPDATE_NODE_TAINT: Self = Self(1 << 4);
    /// A pod's labels are others.
    pub const UPDATE_POD_LABEL: Self = Self(1 << 5);
    /// A pod asks for less.
    pub const UPDATE_POD_SCALE_DOWN: Self = Self(1 << 6);
    /// A pod tolerates something else.
    pub const UPDATE_POD_TOLERATION: Self = Self(1 << 7);
    /// The last scheduling gate of a pod is gone.
    pub const UPDATE_POD_GATES_ELIMINATED: Self = Self(1 << 8);
    /// Anything else about it.
    pub const UPDATE: Self = Self(1 << 9);
    /// A claim of a pod has been made from its template.
    pub const UPDATE_POD_GENERATED_CLAIM: Self = Self(1 << 10);

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any of `other` is among these.
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it is nothing at all.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// One change.
#[derive(Clone, Debug)]
pub struct ClusterEvent {
    /// The kind of the object.
    pub resource: EventResource,
    /// What happened to it.
    pub action: ActionType,
    /// Which object it was.
    pub about: About,
}

/// The object of a change.
#[derive(Clone, Debug)]
pub enum About {
    /// A pod.
    Pod {
        /// Its identity.
        uid: Name,
        /// Its signature now, or before it went.
        shape: Arc<PodShape>,
        /// Its task, if it still lives.
        task: Option<TaskId>,
        /// The node that it has or had; `None` if it had none.
        node: Option<NodeId>,
        /// Whether it had been promised a node.
        nominated: bool,
    },
    /// A node.
    Node {
        /// It.
        node: NodeId,
        /// How it was before; `None` if it is new.
        before: Option<Box<NodeSpec>>,
    },
    /// A ResourceClaim.
    Claim {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// Whether it had devices and has them no longer.
        freed: bool,
    },
    /// An object of storage.
    Storage(StorageKey),
    /// Another one.
    Other,
}

impl ClusterState {
    /// From now on changes are kept until they are taken.
    pub fn keep_cluster_events(&mut self) {
        self.cluster_events.get_or_insert_default();
    }

    /// The changes since the last call, in order.
    pub fn take_cluster_events(&mut self) -> Vec<ClusterEvent> {
        self.cluster_events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes a change, if anyone wants to know. `make` is asked only then.
    pub(crate) fn note(&mut self, make: impl FnOnce(&Self) -> ClusterEvent) {
        if self.cluster_events.is_some() {
            let event = make(self);
            if let Some(events) = &mut self.cluster_events {
                events.push(event);
            }
        }
    }

    /// Notes a change of an object that only plugins know.
    pub(crate) fn note_other(&mut self, resource: EventResource, action: ActionType) {
        self.note(|_| ClusterEvent { resource, action, about: About::Other });
    }

    /// Notes what happened to a pod.
    pub(crate) fn note_pod(&mut self, task: TaskId, action: ActionType) {
        self.note_pod_as(task, action, action != ActionType::DELETE);
    }

    /// Notes that a pod is not bound to its node after all: for others it is as if it were gone.
    pub(crate) fn note_left_node(&mut self, task: TaskId) {
        self.note_pod_as(task, ActionType::DELETE, true);
    }

    fn note_pod_as(&mut self, task: TaskId, action: ActionType, lives: bool) {
        self.note(|state| {
            let pod = &state.tasks[task];
            let about = About::Pod {
                uid: pod.uid.clone(),
                shape: Arc::clone(&state.shapes.get(pod.shape).spec),
                task: lives.then_some(task),
                node: pod.node,
                nominated: pod.nominated.is_some(),
            };
            ClusterEvent { resource: EventResource::Pod, action, about }
        });
    }
}

/// What differs between two reports of a node.
pub(crate) fn node_changes(before: &NodeSpec, after: &NodeSpec) -> ActionType {
    let mut action = ActionType(0);
    if before.allocatable != after.allocatable {
        action = action.and(ActionType::UPDATE_NODE_ALLOCATABLE);
    }
    if before.labels != after.labels {
        action = action.and(ActionType::UPDATE_NODE_LABEL);
    }
    if before.taints != after.taints || before.unschedulable != after.unschedulable {
        action = action.and(ActionType::UPDATE_NODE_TAINT);
    }
    if action.is_empty() { ActionType::UPDATE } else { action }
}

/// What differs between two signatures of a pod, and its gates.
pub(crate) fn pod_changes(before: &PodShape, after: &PodShape, ungated: bool) -> ActionType {
    let mut action = ActionType(0);
    if before.labels != after.labels {
        action = action.and(ActionType::UPDATE_POD_LABEL);
    }
    if before.request != after.request && before.request.iter().any(|(name, had)| after.request.get(name) < Some(had)) {
        action = action.and(ActionType::UPDATE_POD_SCALE_DOWN);
    }
    if before.tolerations != after.tolerations {
        action = action.and(ActionType::UPDATE_POD_TOLERATION);
    }
    if ungated {
        action = action.and(ActionType::UPDATE_POD_GATES_ELIMINATED);
    }
    if action.is_empty() && before != after { ActionType::UPDATE } else { action }
}
