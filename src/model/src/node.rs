//! A node, with the books of what is used on it.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::devices::{DeviceRequest, Devices};
use crate::ids::TaskId;
use crate::labels::Labels;
use crate::name::Name;
use crate::pod::HostPort;
use crate::resources::{Amounts, ResourceId, Resources};
use crate::shape::Shape;
use crate::storage::AttachedVolumes;
use crate::taints::Taint;

/// A node as the edge reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Its name.
    pub name: Name,
    /// Its labels.
    pub labels: Labels,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Cordoned.
    pub unschedulable: bool,
    /// What pods may use of it. `pods` is the number of pods.
    pub allocatable: Amounts,
    /// Images that it holds, by normalised name, with their size in bytes; sorted by name.
    pub images: Vec<(Name, i64)>,
    /// Features of its kubelet that it declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<Name>,
    /// GPU devices that are modelled one by one, so that pods may share them; 0 if they are only counted.
    pub gpu_devices: u8,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// The node as it arrived.
    pub spec: NodeSpec,
    /// `allocatable`, interned.
    pub allocatable: Resources,
    pub(crate) books: NodeBooks,
    /// Moves with every change of the node or of what is on it.
    pub(crate) version: u64,
}

/// What is held on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeBooks {
    /// Held now, by whatever holds its node: releasing tasks included.
    pub used: Resources,
    /// The part of `used` whose holders are terminating.
    pub releasing: Resources,
    /// Promised to tasks that wait for a release.
    pub pipelined: Resources,
    /// `used` with the defaults that resource scores assume; CPU and memory only count.
    pub scored_used: Resources,
    /// Devices in use.
    pub devices: Devices,
    /// Ports in use, by the task that has them.
    pub ports: SmallVec<[(HostPort, TaskId); 0]>,
    /// Tasks that hold or were promised something here, by id.
    pub tasks: Vec<TaskId>,
    /// Volumes that are attached, or will be.
    pub attached: AttachedVolumes,
}

impl Node {
    /// What is held on it.
    pub fn books(&self) -> &NodeBooks {
        &self.books
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.spec.name
    }

    /// Moves with every change of the node or of what is on it; never goes back.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What is free now. Negative where the node is overdrawn.
    pub fn idle(&self) -> Resources {
        let mut idle = self.allocatable.clone();
        idle.sub(&self.books.used);
        idle
    }

    /// What will be free once everything that terminates is gone, less what is promised.
    pub fn future_idle(&self) -> Resources {
        let mut idle = self.idle();
        idle.add(&self.books.releasing);
        idle.sub(&self.books.pipelined);
        idle
    }

    /// What of `shape` the node's devices would have to serve. On a node that only counts its GPUs, whole devices are
    /// a plain resource and need nothing here.
    pub fn device_request(&self, shape: &Shape) -> DeviceRequest {
        if shape.spec.gpu_share_milli > 0 {
            return DeviceRequest::Share(shape.spec.gpu_share_milli);
        }
        let whole = shape.request.get(ResourceId::GPU) / 1000;
        if whole == 0 || self.books.devices.is_empty() {
            return DeviceRequest::Nothing;
        }
        DeviceRequest::Whole(u32::try_from(whole).unwrap_or(u32::MAX))
    }
}
