//! Taints and tolerations.

use serde::{Deserialize, Serialize};

use crate::name::Name;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Effect {
    /// No new pod.
    NoSchedule,
    /// No new pod if it can be helped.
    PreferNoSchedule,
    /// No new pod, and running ones are evicted by Kubernetes.
    NoExecute,
}

/// A taint on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Name,
    /// Its value, perhaps empty.
    pub value: Name,
    /// Its effect.
    pub effect: Effect,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// The taint key; `None` tolerates every key (only with [`Match::Exists`]).
    pub key: Option<Name>,
    /// The condition on the taint's value.
    pub test: Match,
    /// The effect; `None` tolerates every effect.
    pub effect: Option<Effect>,
}

/// The operators of a toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Match {
    /// Any value.
    Exists,
    /// This value.
    Equal(Name),
}

impl Toleration {
    /// Whether it tolerates a taint.
    pub fn tolerates(&self, key: &str, value: &str, effect: Effect) -> bool {
        self.effect.is_none_or(|own| own == effect)
            && self.key.as_ref().is_none_or(|own| own == key)
            && match &self.test {
                Match::Exists => true,
                Match::Equal(own) => own == value,
            }
    }
}

/// Whether one of `tolerations` tolerates the taint.
pub fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| toleration.tolerates(&taint.key, &taint.value, taint.effect))
}
