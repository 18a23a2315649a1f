//! Amounts and limits as vectors over interned resource names, and the one comparison between them.
//!
//! Three states are told apart. On the side of a request a dimension is *absent* or asked for; zero is the same as
//! absent, since nobody can run short of nothing. On the side of a limit it is *unlimited* or *limited to n*, where 0
//! is a limit. [`Resources::first_over`] is the only place where the two meet.

use std::fmt;

use ordered_float::OrderedFloat;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::name::Name;
use crate::quantity::{self, QuantityError, Unit};

/// A resource name, interned. Dense, so that a vector over resources is a short array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceId(u8);

impl ResourceId {
    /// `cpu`, in thousandths of a core.
    pub const CPU: Self = Self(0);
    /// `memory`, in bytes.
    pub const MEMORY: Self = Self(1);
    /// `pods`, in pods. Every task asks for one.
    pub const PODS: Self = Self(2);
    /// `nvidia.com/gpu`, in thousandths of a device.
    pub const GPU: Self = Self(3);

    /// Its place among all resources, from 0 on.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many distinct resource names one cluster may use.
pub const MAX_RESOURCE_NAMES: usize = 128;

/// The interned resource names of one cluster state. They are never forgotten: there are few.
#[derive(Clone, Debug)]
pub struct ResourceNames {
    names: Vec<Name>,
}

impl Default for ResourceNames {
    fn default() -> Self {
        Self { names: ["cpu", "memory", "pods", GPU_NAME].map(Name::from).to_vec() }
    }
}

/// The resource name of a whole NVIDIA device.
pub const GPU_NAME: &str = "nvidia.com/gpu";

impl ResourceNames {
    /// The id of `name`, made when new. `None` when [`MAX_RESOURCE_NAMES`] are in use already.
    pub fn intern(&mut self, name: &Name) -> Option<ResourceId> {
        if let Some(id) = self.find(name) {
            return Some(id);
        }
        if self.names.len() >= MAX_RESOURCE_NAMES {
            return None;
        }
        self.names.push(name.clone());
        u8::try_from(self.names.len() - 1).ok().map(ResourceId)
    }

    /// The id of `name`, if anything has named it so far.
    pub fn find(&self, name: &str) -> Option<ResourceId> {
        let index = self.names.iter().position(|known| known == name)?;
        u8::try_from(index).ok().map(ResourceId)
    }

    /// The name of `id`.
    pub fn name(&self, id: ResourceId) -> &Name {
        &self.names[id.index()]
    }

    /// Every id, in the order of interning.
    pub fn ids(&self) -> impl Iterator<Item = ResourceId> + use<> {
        (0..self.names.len()).filter_map(|i| u8::try_from(i).ok()).map(ResourceId)
    }

    /// An amount with its unit, as Kubernetes writes it: `500m`, `16Gi`.
    pub fn format(&self, id: ResourceId, amount: i64) -> String {
        if amount < 0 {
            return format!("-{}", quantity::format(-amount, unit_of(self.name(id))));
        }
        quantity::format(amount, unit_of(self.name(id)))
    }

    /// A whole vector, `cpu 500m, memory 1Gi`; `nothing` when it is empty.
    pub fn format_all(&self, amounts: &Resources) -> String {
        let parts: Vec<String> =
            amounts.iter().map(|(id, amount)| format!("{} {}", self.name(id), self.format(id, amount))).collect();
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }
}

/// The unit in which amounts of `resource` are kept. A quota's `requests.memory` and `limits.memory` are kept like
/// `memory`.
pub fn unit_of(resource: &str) -> Unit {
    let resource = ["requests.", "limits."].into_iter().find_map(|p| resource.strip_prefix(p)).unwrap_or(resource);
    match resource {
        "memory" | "pods" | "ephemeral-storage" | "storage" => Unit::One,
        _ if ["hugepages-", "attachable-volumes-", "count/"].into_iter().any(|p| resource.starts_with(p)) => Unit::One,
        _ => Unit::Milli,
    }
}

/// Amounts by resource name, as they arrive: sorted by name, each name once. The edge makes them, the state interns
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amounts(Vec<(Name, i64)>);

impl Amounts {
    /// Reads one written quantity; refuses what Kubernetes refuses.
    pub fn set(&mut self, resource: &Name, text: &str) -> Result<(), QuantityError> {
        let amount = quantity::parse(text, unit_of(resource))?;
        self.set_amount(resource, amount);
        Ok(())
    }

    /// Sets an amount in the resource's smallest unit.
    pub fn set_amount(&mut self, resource: &Name, amount: i64) {
        match self.0.binary_search_by(|(name, _)| name.cmp(resource)) {
            Ok(at) => self.0[at].1 = amount,
            Err(at) => self.0.insert(at, (resource.clone(), amount)),
        }
    }

    /// The same with a builder's shape.
    #[must_use]
    pub fn with(mut self, resource: &str, amount: i64) -> Self {
        self.set_amount(&resource.into(), amount);
        self
    }

    /// The amount of `resource`, `None` when it is not named.
    pub fn get(&self, resource: &str) -> Option<i64> {
        self.0.iter().find(|(name, _)| name == resource).map(|&(_, amount)| amount)
    }

    /// Names and amounts, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, i64)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// Adds each amount of `other`.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let sum = self.get(name).unwrap_or(0).saturating_add(amount);
            self.set_amount(name, sum);
        }
    }

    /// Raises each amount to that of `other`.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            if self.get(name).unwrap_or(0) < amount {
                self.set_amount(name, amount);
            }
        }
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An amount of each resource, in its smallest unit. A missing tail reads as zero.
///
/// Arithmetic saturates; amounts of one object are at most [`quantity::MAX_AMOUNT`], so real sums never get there.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources(SmallVec<[i64; 4]>);

impl Resources {
    /// The amount of `id`.
    #[inline]
    pub fn get(&self, id: ResourceId) -> i64 {
        self.0.get(id.index()).copied().unwrap_or(0)
    }

    /// Sets the amount of `id`.
    pub fn set(&mut self, id: ResourceId, amount: i64) {
        if self.0.len() <= id.index() {
            if amount == 0 {
                return;
            }
            self.0.resize(id.index() + 1, 0);
        }
        self.0[id.index()] = amount;
    }

    /// The same with a builder's shape.
    #[must_use]
    pub fn with(mut self, id: ResourceId, amount: i64) -> Self {
        self.set(id, amount);
        self
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// Takes `other` away. May go below zero, which a ledger's audit reports.
    pub fn sub(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = mine.saturating_sub(*theirs);
        }
    }

    /// `self` times `n`.
    #[must_use]
    pub fn times(&self, n: i64) -> Self {
        Self(self.0.iter().map(|amount| amount.saturating_mul(n)).collect())
    }

    /// `self + other`.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// `self - other`, in each dimension at least zero.
    #[must_use]
    pub fn minus_clamped(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.sub(other);
        for amount in &mut rest.0 {
            *amount = (*amount).max(0);
        }
        rest
    }

    /// The smaller amount of each dimension.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| *a.min(b)).collect())
    }

    /// The larger amount of each dimension.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        let width = self.0.len().max(other.0.len());
        let at = |v: &Self, i: usize| v.0.get(i).copied().unwrap_or(0);
        Self((0..width).map(|i| at(self, i).max(at(other, i))).collect())
    }

    /// The dimensions that are not zero, by id.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, i64)> {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, amount)| **amount != 0)
            .filter_map(|(i, amount)| Some((ResourceId(u8::try_from(i).ok()?), *amount)))
    }

    /// Whether every dimension is zero.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|amount| *amount == 0)
    }

    /// Whether nothing but pod slots is asked for: a *best-effort* request.
    pub fn is_best_effort(&self) -> bool {
        self.iter().all(|(id, _)| id == ResourceId::PODS)
    }

    /// The one comparison: the first dimension in which `used` and this request together exceed `ceiling`.
    ///
    /// Only dimensions that the request names count: who asks for no GPU does not care that GPUs are overdrawn.
    /// Cost: linear in the request's width, a handful.
    pub fn first_over(&self, used: &Self, ceiling: &impl Ceiling) -> Option<Shortfall> {
        self.iter().find_map(|(id, asked)| over(id, asked, used.get(id), ceiling))
    }

    /// Every dimension that [`Self::first_over`] could name.
    pub fn all_over<'a>(&'a self, used: &'a Self, ceiling: &'a impl Ceiling) -> impl Iterator<Item = Shortfall> + 'a {
        self.iter().filter_map(move |(id, asked)| over(id, asked, used.get(id), ceiling))
    }

    /// Whether this request fits into `free` alone.
    pub fn fits(&self, free: &Self) -> bool {
        self.first_over(&Self::default(), free).is_none()
    }

    /// Whether every dimension is at most that of `other`. Zero dimensions of `self` always are, if `other` is not
    /// overdrawn.
    pub fn within(&self, other: &Self) -> bool {
        let width = self.0.len().max(other.0.len());
        let at = |v: &Self, i: usize| v.0.get(i).copied().unwrap_or(0);
        (0..width).all(|i| at(self, i) <= at(other, i))
    }

    /// The largest fraction of `total` that `self` uses in any dimension, in 0.0..=∞: the *dominant share*.
    ///
    /// A dimension that `total` lacks is left out, as Volcano leaves it out: it cannot be shared.
    pub fn dominant_share(&self, total: &Self) -> OrderedFloat<f64> {
        self.iter()
            .filter(|&(id, _)| total.get(id) > 0)
            .map(|(id, amount)| ratio(amount, total.get(id)))
            .max()
            .unwrap_or(OrderedFloat(0.0))
    }
}

impl PartialEq for Resources {
    fn eq(&self, other: &Self) -> bool {
        let width = self.0.len().max(other.0.len());
        let at = |v: &Self, i: usize| v.0.get(i).copied().unwrap_or(0);
        (0..width).all(|i| at(self, i) == at(other, i))
    }
}

impl Eq for Resources {}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().rposition(|amount| *amount != 0).map_or(0, |last| last + 1);
        f.debug_list().entries(&self.0[..width]).finish()
    }
}

fn over(id: ResourceId, asked: i64, used: i64, ceiling: &impl Ceiling) -> Option<Shortfall> {
    match ceiling.ceiling(id) {
        Limit::To(limit) if used.saturating_add(asked) > limit => Some(Shortfall { resource: id, asked, used, limit }),
        _ => None,
    }
}

/// `part / whole` for ordering only; 0 when both are zero, 1 when only the whole is (Volcano's `SHARE`).
#[inline]
pub fn ratio(part: i64, whole: i64) -> OrderedFloat<f64> {
    if whole == 0 {
        return OrderedFloat(if part == 0 { 0.0 } else { 1.0 });
    }
    // Both are below 2^53 for one object; a sum may round in the last digit, which only orders.
    #[allow(clippy::cast_precision_loss, reason = "a ratio that only orders")]
    OrderedFloat(part as f64 / whole as f64)
}

/// Why a request does not go under a ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// The dimension.
    pub resource: ResourceId,
    /// What the request wants of it.
    pub asked: i64,
    /// What is in use already.
    pub used: i64,
    /// What there may be in all.
    pub limit: i64,
}

/// One dimension of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Any amount.
    Unlimited,
    /// At most this; zero forbids the resource.
    To(i64),
}

/// What a request may be held against.
pub trait Ceiling {
    /// How much of `id` there may be.
    fn ceiling(&self, id: ResourceId) -> Limit;
}

/// Stock: what is not there is zero.
impl Ceiling for Resources {
    fn ceiling(&self, id: ResourceId) -> Limit {
        Limit::To(self.get(id))
    }
}

/// Policy: what is not named is unlimited.
impl Ceiling for Limits {
    fn ceiling(&self, id: ResourceId) -> Limit {
        self.get(id)
    }
}

/// A limit for each resource. A missing tail is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(SmallVec<[Option<i64>; 4]>);

impl Limits {
    /// The limit of `id`.
    pub fn get(&self, id: ResourceId) -> Limit {
        self.0.get(id.index()).copied().flatten().map_or(Limit::Unlimited, Limit::To)
    }

    /// Limits `id` to `amount`.
    pub fn set(&mut self, id: ResourceId, amount: i64) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, None);
        }
        self.0[id.index()] = Some(amount);
    }

    /// Makes `id` unlimited.
    pub fn clear(&mut self, id: ResourceId) {
        if let Some(limit) = self.0.get_mut(id.index()) {
            *limit = None;
        }
    }

    /// The stricter limit of each dimension.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        let width = self.0.len().max(other.0.len());
        let at = |v: &Self, i: usize| v.0.get(i).copied().flatten();
        Self(
            (0..width)
                .map(|i| match (at(self, i), at(other, i)) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                })
                .collect(),
        )
    }

    /// Limits every dimension to the amounts of `stock`, named there or not: the tail beyond `width` stays open.
    pub fn of_stock(stock: &Resources, names: &ResourceNames) -> Self {
        Self(names.ids().map(|id| Some(stock.get(id))).collect())
    }

    /// `amounts` cut down to these limits.
    #[must_use]
    pub fn clip(&self, amounts: &Resources) -> Resources {
        let mut clipped = amounts.clone();
        for (id, amount) in amounts.iter() {
            if let Limit::To(limit) = self.get(id) {
                clipped.set(id, amount.min(limit));
            }
        }
        clipped
    }

    /// The limited dimensions, by id.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, i64)> {
        self.0.iter().enumerate().filter_map(|(i, limit)| Some((ResourceId(u8::try_from(i).ok()?), (*limit)?)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cpu_gpu(cpu: i64, gpu: i64) -> Resources {
        Resources::default().with(ResourceId::CPU, cpu).with(ResourceId::GPU, gpu)
    }

    #[test]
    fn a_prefixed_name_has_the_unit_of_the_bare_one() {
        for (name, unit) in [
            ("cpu", Unit::Milli),
            ("requests.cpu", Unit::Milli),
            ("limits.cpu", Unit::Milli),
            ("memory", Unit::One),
            ("requests.memory", Unit::One),
            ("limits.memory", Unit::One),
            ("requests.ephemeral-storage", Unit::One),
            ("requests.storage", Unit::One),
            ("requests.hugepages-2Mi", Unit::One),
            ("requests.nvidia.com/gpu", Unit::Milli),
            ("pods", Unit::One),
            ("count/jobs.batch", Unit::One),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }

    #[test]
    fn absent_unlimited_and_limited_to_zero_are_three_things() {
        let mut limits = Limits::default();
        limits.set(ResourceId::GPU, 0);
        let nothing = Resources::default();
        assert_eq!(cpu_gpu(5, 0).first_over(&nothing, &limits), None, "absent dimensions are not compared");
        assert_eq!(
            cpu_gpu(5, 1).first_over(&nothing, &limits).map(|s| (s.resource, s.limit)),
            Some((ResourceId::GPU, 0))
        );
        assert_eq!(cpu_gpu(i64::MAX, 0).first_over(&nothing, &limits), None, "unlimited");
        assert_eq!(cpu_gpu(1, 0).first_over(&nothing, &nothing).map(|s| s.limit), Some(0), "stock that is not there");
    }

    #[test]
    fn an_overdrawn_dimension_blocks_only_who_asks_for_it() {
        let free = cpu_gpu(4, 0);
        let used = cpu_gpu(0, 3);
        assert_eq!(cpu_gpu(4, 0).first_over(&used, &free), None);
        assert!(cpu_gpu(4, 1).first_over(&used, &free).is_some());
    }

    #[test]
    fn dominant_share_leaves_out_what_the_cluster_lacks() {
        assert_eq!(cpu_gpu(1, 8).dominant_share(&cpu_gpu(100, 0)), OrderedFloat(0.01));
        assert_eq!(cpu_gpu(1, 8).dominant_share(&cpu_gpu(100, 16)), OrderedFloat(0.5));
    }

    #[test]
    fn names_are_dense_and_their_number_is_bounded() {
        let mut names = ResourceNames::default();
        assert_eq!(names.intern(&"cpu".into()), Some(ResourceId::CPU));
        for i in 0..MAX_RESOURCE_NAMES * 2 {
            names.intern(&format!("example.com/r{i}").into());
        }
        assert_eq!(names.ids().count(), MAX_RESOURCE_NAMES);
        assert_eq!(names.intern(&"one.more/x".into()), None);
    }

    fn amounts() -> impl Strategy<Value = Resources> {
        proptest::collection::vec(0_i64..1_000, 0..6).prop_map(|v| Resources(v.into()))
    }

    proptest! {
        #[test]
        fn what_is_added_can_be_taken_away(a in amounts(), b in amounts()) {
            let mut sum = a.plus(&b);
            sum.sub(&b);
            prop_assert_eq!(sum, a);
        }

        #[test]
        fn fitting_is_the_same_as_within_for_stock(a in amounts(), b in amounts()) {
            prop_assert_eq!(a.fits(&b), a.within(&b));
        }

        #[test]
        fn first_over_is_the_first_of_all_over(a in amounts(), used in amounts(), stock in amounts()) {
            prop_assert_eq!(a.first_over(&used, &stock), a.all_over(&used, &stock).next());
        }
    }
}
