//! The arguments of a plugin or action, once they are known to be of the right type.
//!
//! The getters are total: the compiler has checked each value against the catalogue, so a missing key, and only that,
//! yields the default. A getter asked for another type than the catalogue has also yields the default.

use std::collections::BTreeMap;

/// A value as the file has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction, or any number where the catalogue wants one.
    Number(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A mapping.
    Map(BTreeMap<String, Value>),
}

/// Arguments by key. Only what was written; defaults are the reader's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(BTreeMap<String, Value>);

impl Arguments {
    /// No arguments.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Sets one argument, unchecked; the compiler and tests do this.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        self.0.insert(key.into(), value);
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of `key` as written.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Everything that was written, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// What was written under keys that begin with `prefix`, by the rest of the key.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.0
            .range(prefix.to_owned()..)
            .map_while(move |(key, value)| Some((key.strip_prefix(prefix)?, value)))
            .filter(|(rest, _)| !rest.is_empty())
    }

    /// A boolean.
    #[must_use]
    pub fn bool(&self, key: &str, default: bool) -> bool {
        match self.get(key) {
            Some(Value::Bool(value)) => *value,
            _ => default,
        }
    }

    /// A whole number.
    #[must_use]
    pub fn integer(&self, key: &str, default: i64) -> i64 {
        match self.get(key) {
            Some(Value::Integer(value)) => *value,
            _ => default,
        }
    }

    /// A number.
    #[must_use]
    pub fn number(&self, key: &str, default: f64) -> f64 {
        match self.get(key) {
            Some(Value::Number(value)) => *value,
            _ => default,
        }
    }

    /// A text.
    #[must_use]
    pub fn text<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        match self.get(key) {
            Some(Value::Text(value)) => value,
            _ => default,
        }
    }

    /// A duration in milliseconds.
    #[must_use]
    pub fn duration_ms(&self, key: &str, default: u64) -> u64 {
        match self.get(key) {
            Some(Value::Text(value)) => duration_ms(value).unwrap_or(default),
            _ => default,
        }
    }
}

impl<K: Into<String>> FromIterator<(K, Value)> for Arguments {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(items: I) -> Self {
        Self(items.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

/// Reads a duration as Go writes it (`1h30m`, `1.5s`, `250ms`), in milliseconds, rounded up so that a positive
/// duration never becomes none. `None` for anything else, also for one with a minus sign or too long to count.
#[must_use]
pub fn duration_ms(text: &str) -> Option<u64> {
    const UNITS: &[(&str, u128)] = &[
        // Two-letter units first: `ms` begins like `m`.
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let (unit, factor) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        nanos = nanos.checked_add(scaled(number, *factor)?)?;
        rest = &tail[unit.len()..];
    }
    u64::try_from(nanos.div_ceil(1_000_000)).ok()
}

/// `number`, a decimal with at most one point, times `factor`; digits below one are dropped.
fn scaled(number: &str, factor: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut sum = whole.checked_mul(factor)?;
    let mut place = factor;
    for digit in fraction.chars() {
        place /= 10;
        sum = sum.checked_add(u128::from(digit.to_digit(10)?) * place)?;
    }
    Some(sum)
}

/// Reads a boolean as Go does.
pub(super) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
