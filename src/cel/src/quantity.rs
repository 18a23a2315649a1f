//! Kubernetes' quantities, exact to a billionth.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Billionths in one unit.
const NANO: i128 = 1_000_000_000;

/// A quantity: `500m`, `2`, `40Gi`. Finer parts than a billionth are rounded up, as Kubernetes does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

impl Quantity {
    /// Reads a quantity; `None` if it is none, or larger than 10^27.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, body) = match text.strip_prefix('-') {
            Some(body) => (true, body),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = body.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(body.len());
        let (number, suffix) = body.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 60 {
            return None;
        }
        let (two, ten) = scale(suffix)?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        if digits.len() > 37 {
            return None;
        }
        let mut value: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        value = value.checked_mul(1_i128.checked_shl(two)?)?;
        let exponent = ten + 9 - i32::try_from(fraction.len()).ok()?;
        for _ in 0..exponent.max(0) {
            value = value.checked_mul(10)?;
        }
        for _ in 0..(-exponent).max(0) {
            value = value / 10 + i128::from(value % 10 != 0);
        }
        Some(Self(if negative { -value } else { value }))
    }

    /// This many whole units.
    pub const fn whole(units: i64) -> Self {
        Self(units as i128 * NANO)
    }

    /// In billionths.
    pub const fn nano(self) -> i128 {
        self.0
    }

    /// Of so many billionths.
    pub const fn from_nano(nano: i128) -> Self {
        Self(nano)
    }

    /// Its whole units, if it has nothing beside and they fit.
    pub fn as_integer(self) -> Option<i64> {
        (self.0 % NANO == 0).then(|| i64::try_from(self.0 / NANO).ok()).flatten()
    }

    /// The sum; the largest there is, beyond it.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    #[allow(clippy::cast_precision_loss, reason = "the language asks for an approximation")]
    pub(crate) fn approximate(self) -> f64 {
        self.0 as f64 / NANO as f64
    }
}

/// Powers of two and of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (0, Some(exponent).filter(|exponent| (-30..=30).contains(exponent))?)
        }
    })
}

impl fmt::Display for Quantity {
    /// In the largest unit that leaves a whole number: `40Gi`, `1500m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
        if self.0 % NANO == 0 {
            let units = self.0 / NANO;
            let fits = |(_, bits): &&(&str, u32)| units != 0 && units % (1_i128 << bits) == 0;
            return match BINARY.iter().find(fits) {
                Some((suffix, bits)) => write!(f, "{}{suffix}", units >> bits),
                None => write!(f, "{units}"),
            };
        }
        for (suffix, parts) in [("m", 1_000_000), ("u", 1_000), ("n", 1)] {
            if self.0 % parts == 0 {
                return write!(f, "{}{suffix}", self.0 / parts);
            }
        }
        Ok(())
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is no quantity")))
    }
}
