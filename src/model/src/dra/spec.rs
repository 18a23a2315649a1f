//! Objects of dynamic resource allocation as the edge reports them: what drivers offer, and what pods claim of it.

use std::sync::Arc;

use krafla_cel::Quantity;
use serde::{Deserialize, Serialize};

use crate::labels::NodeSelectorTerm;
use crate::name::Name;
use crate::taints::{Taint, Toleration};

/// What a pod says of a claim in its template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ClaimSource {
    /// The claim of this name.
    Claim(Name),
    /// One that is made for each pod from the template of this name.
    Template(Name),
}

/// A claim of one pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodClaim {
    /// Its name within the pod.
    pub name: Name,
    /// The claim's own name; `None` while it has not been made from its template.
    pub claim: Option<Name>,
    /// Whether it was made for this pod.
    pub generated: bool,
}

/// A DeviceClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceClassSpec {
    /// Its name.
    pub name: Name,
    /// Expressions that its devices satisfy.
    pub selectors: Vec<Name>,
    /// Whether it has configuration for drivers, which goes into allocations.
    #[serde(default)]
    pub has_config: bool,
}

/// A ResourceSlice: a part of one pool of devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSliceSpec {
    /// Its name.
    pub name: Name,
    /// Who offers the pool.
    pub driver: Name,
    /// The pool.
    pub pool: Name,
    /// The pool's generation that the slice is part of.
    pub generation: i64,
    /// How many slices the pool has in that generation.
    pub slices: i64,
    /// Its devices, in order.
    pub devices: Vec<DeviceSpec>,
    /// What devices of the pool draw on together: counters by set and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<(Name, Name, Quantity)>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpec {
    /// Its name, unique in its pool.
    pub name: Name,
    /// From where it can be had.
    pub access: DeviceAccess,
    /// Its attributes as written, with or without a domain; sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(Name, Attribute)>,
    /// Its capacities, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<(Name, Capacity)>,
    /// Its taints; those without an effect are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// What it draws from the pool's counters: set, counter, amount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumes: Vec<(Name, Name, Quantity)>,
    /// Whether several claims may have parts of it.
    #[serde(default)]
    pub shared: bool,
    /// Whether its driver has to prepare it before a pod is bound. Such devices are not given out here.
    #[serde(default)]
    pub needs_preparation: bool,
}

/// The nodes that have a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceAccess {
    /// None: nothing was said.
    #[default]
    Nowhere,
    /// This one.
    Node(Name),
    /// Those that satisfy one of the terms.
    Selector(Vec<NodeSelectorTerm>),
    /// All.
    Everywhere,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Attribute {
    /// True or false.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A text.
    Text(Name),
    /// A semantic version, as written.
    Version(Name),
}

/// A capacity of a device, and how much of it one claim of a shared device takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// All of it.
    pub value: Quantity,
    /// What a claim takes that names no amount; all of it if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Quantity>,
    /// The amounts that may be taken, smallest first; a request is rounded up to one. Empty: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Quantity>,
    /// The least and the most that may be taken, and the step between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(Quantity, Option<Quantity>, Option<Quantity>)>,
}

/// A ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceClaimSpec {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub uid: Name,
    /// Whether it is being deleted.
    #[serde(default)]
    pub deleting: bool,
    /// UID of the pod that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    /// What it asks for.
    pub requests: Vec<DeviceRequest>,
    /// What its devices must have in common, or must not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<DeviceConstraint>,
    /// What in it cannot be read: pods that need it wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<Name>,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Arc<Allocation>>,
    /// UIDs of the pods that may use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved_for: Vec<Name>,
}

/// One request of a claim: alternatives, of which the first is taken that can be had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequest {
    /// Its name within the claim.
    pub name: Name,
    /// At least one; a request without `firstAvailable` has one without a name.
    pub alternatives: Vec<Alternative>,
}

/// One alternative of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alternative {
    /// Its name within the request; empty if the request has only this.
    pub name: Name,
    /// The DeviceClass.
    pub class: Name,
    /// Expressions that each device has to satisfy, beside those of the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<Name>,
    /// How many devices; `None` is all that match.
    pub count: Option<u32>,
    /// Whether devices are only looked at, whoever has them.
    #[serde(default)]
    pub admin_access: bool,
    /// Taints that do not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// How much of each capacity a device has to have, or of a shared one is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<(Name, Quantity)>,
}

/// What the devices of a claim must have in common, or must not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceConstraint {
    /// The requests that it is about, `request` or `request/alternative`; all, if none is named.
    pub requests: Vec<Name>,
    /// The attribute, with its domain.
    pub attribute: Name,
    /// Whether its values have to be distinct rather than the same.
    pub distinct: bool,
}

/// What a claim was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Allocation {
    /// The devices.
    pub devices: Vec<AllocatedDevice>,
    /// The nodes from which they can be used; `None` is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<NodeSelectorTerm>>,
    /// Requests whose class has configuration for drivers, with the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configured: Vec<(Name, Name)>,
}

/// A device, or a part of it, that a claim was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// For which request: `request` or `request/alternative`.
    pub request: Name,
    /// Its driver.
    pub driver: Name,
    /// Its pool.
    pub pool: Name,
    /// Its name there.
    pub device: Name,
    /// Whether it is only looked at: it counts for nothing.
    #[serde(default)]
    pub admin_access: bool,
    /// What is taken of a shared device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed: Vec<(Name, Quantity)>,
    /// The identity of that part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Name>,
}

/// A claim of a pod with what it was given, as a placement decides it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DeviceChoice {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub uid: Name,
    /// What it has, or is to get.
    pub allocation: Arc<Allocation>,
}
