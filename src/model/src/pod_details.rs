//! What only a descheduler asks about a pod: whose it is, what became of its containers, what it declares about eviction.
//!
//! The edge reads it where somebody will ask; placement never does.

use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::time::Time;

/// What only a descheduler asks about a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodDetails {
    /// Its owners, in order.
    pub owners: Vec<Owner>,
    /// Its class of service.
    pub qos: QosClass,
    /// Whether a kubelet made it from a file or an address: a static pod, or the mirror of one.
    pub is_static: bool,
    /// Whether it keeps something on its node: an `emptyDir` or a `hostPath`.
    pub local_storage: bool,
    /// What it limits, in milli-CPU and bytes; 0 if it does not.
    pub limits: (i64, i64),
    /// Names of claims of storage.
    pub storage_claims: Vec<Name>,
    /// Whether it uses claims of devices.
    pub resource_claims: bool,
    /// Images of its containers, sorted, each once.
    pub images: Vec<Name>,
    /// The reason that the status of the pod gives.
    pub reason: Name,
    /// What became of its containers, in their order; those that never began have none.
    pub containers: Vec<ContainerDetails>,
    /// Its conditions, in order.
    pub conditions: Vec<ConditionDetails>,
}

/// An owner of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Owner {
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub uid: Name,
}

/// The class of service of a pod, the first to go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum QosClass {
    /// It asks for nothing.
    BestEffort,
    /// Between the two.
    #[default]
    Burstable,
    /// All of its containers are limited to what they ask for.
    Guaranteed,
}

/// Which list of a pod a container is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerKind {
    /// `containers`.
    #[default]
    Main,
    /// `initContainers`.
    Init,
    /// `ephemeralContainers`.
    Ephemeral,
}

/// What became of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerDetails {
    /// Which list it is in.
    pub kind: ContainerKind,
    /// How often it was begun again.
    pub restarts: u32,
    /// Why it waits; empty if it does not.
    pub waiting: Name,
    /// Why it ended; empty if it did not.
    pub terminated: Name,
    /// With which code it ended.
    pub exit_code: Option<i32>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionDetails {
    /// Its type.
    pub kind: Name,
    /// `True`, `False` or `Unknown`.
    pub status: Name,
    /// Its reason.
    pub reason: Name,
    /// Since when it is so, if that is said.
    pub since: Option<Time>,
}
