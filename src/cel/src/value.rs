//! Values.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::quantity::Quantity;
use crate::semver::Semver;

/// A value of an expression.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A list.
    List(Arc<[Value]>),
    /// A mapping.
    Map(Arc<Map>),
    /// A quantity.
    Quantity(Quantity),
    /// A semantic version.
    Semver(Arc<Semver>),
    /// A value that may be missing.
    Optional(Option<Arc<Value>>),
}

/// A key of a mapping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// True or false.
    Bool(bool),
    /// A whole number, with or without a sign.
    Int(i128),
    /// A text.
    Text(Arc<str>),
}

/// A mapping.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// What is in it.
    pub entries: BTreeMap<Key, Value>,
    /// Whether a key that it lacks stands for an empty mapping, as the domains of a device's attributes do.
    pub open: bool,
}

impl Map {
    /// The value of a key.
    pub fn get(&self, key: &Key) -> Option<Value> {
        match self.entries.get(key) {
            Some(value) => Some(value.clone()),
            None if self.open => Some(Value::Map(Arc::default())),
            None => None,
        }
    }
}

impl Value {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// A mapping by texts.
    pub fn map(entries: impl IntoIterator<Item = (Arc<str>, Self)>, open: bool) -> Self {
        let entries = entries.into_iter().map(|(key, value)| (Key::Text(key), value)).collect();
        Self::Map(Arc::new(Map { entries, open }))
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Uint(_) => "a uint",
            Self::Double(_) => "a double",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Quantity(_) => "a quantity",
            Self::Semver(_) => "a semver",
            Self::Optional(_) => "an optional",
        }
    }

    /// How much it takes to look at it.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(all) => all.len() as u64,
            Self::Map(map) => map.entries.len() as u64,
            _ => 1,
        }
    }

    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Bool(value) => Key::Bool(*value),
            Self::Int(value) => Key::Int((*value).into()),
            Self::Uint(value) => Key::Int((*value).into()),
            #[allow(clippy::cast_possible_truncation, reason = "only whole numbers that an integer holds exactly")]
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 9e15 => Key::Int(*value as i128),
            Self::Text(text) => Key::Text(Arc::clone(text)),
            _ => return None,
        })
    }

    /// The order of two values; `None` if they have none. `same` looks at them in full.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            _ => self.numeric_order(other),
        }
    }

    /// Numbers compare as numbers, whatever their types.
    #[allow(clippy::cast_precision_loss, reason = "a double is compared as one, as in cel-go")]
    fn numeric_order(&self, other: &Self) -> Option<Ordering> {
        let whole = |value: &Self| match value {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            _ => None,
        };
        let double = |value: &Self| match value {
            Self::Double(value) => Some(*value),
            other => whole(other).map(|value| value as f64),
        };
        match (whole(self), whole(other)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => double(self)?.partial_cmp(&double(other)?),
        }
    }
}

impl PartialEq for Value {
    /// As `==` in an expression: numbers by value, and values of different kinds are different.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a.entries == b.entries,
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a == b,
            (Self::Optional(a), Self::Optional(b)) => a == b,
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }
}
