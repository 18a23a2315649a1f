//! Numbers as expectations write them: `3`, `">=3"`, `"<=1"`, `"3..5"`.

use std::fmt;

/// A wanted number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wanted {
    low: f64,
    high: f64,
}

/// Values that are this near are equal: shares are written to three decimals.
const NEAR: f64 = 0.000_5;

impl Wanted {
    /// Reads a wanted number, or a duration in seconds with `read` for the plain values.
    pub(super) fn parse(text: &str, read: impl Fn(&str) -> Result<f64, String>) -> Result<Self, String> {
        let text = text.trim();
        if let Some(low) = text.strip_prefix(">=") {
            return Ok(Self { low: read(low.trim())?, high: f64::INFINITY });
        }
        if let Some(high) = text.strip_prefix("<=") {
            return Ok(Self { low: f64::NEG_INFINITY, high: read(high.trim())? });
        }
        if let Some((low, high)) = text.split_once("..") {
            return Ok(Self { low: read(low.trim())?, high: read(high.trim())? });
        }
        let value = read(text)?;
        Ok(Self { low: value, high: value })
    }

    /// Reads a plain number.
    pub(super) fn number(text: &str) -> Result<Self, String> {
        Self::parse(text, |part| {
            part.parse().map_err(|_| format!("`{part}` is no number; write 3, \">=3\", \"<=1\" or \"3..5\""))
        })
    }

    /// Whether a value is wanted.
    pub(super) fn holds(&self, value: f64) -> bool {
        value >= self.low - NEAR && value <= self.high + NEAR
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) if self.low == self.high => write!(f, "{}", self.low),
            (true, true) => write!(f, "{} to {}", self.low, self.high),
            (true, false) => write!(f, "at least {}", self.low),
            _ => write!(f, "at most {}", self.high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_hold_where_they_should() {
        for (text, value, holds) in [
            ("3", 3.0, true),
            ("3", 4.0, false),
            (">=3", 4.0, true),
            (">= 3", 2.0, false),
            ("<=1", 1.0, true),
            ("3..5", 5.0, true),
            ("3..5", 6.0, false),
            ("0.667", 2.0 / 3.0, true),
        ] {
            assert_eq!(Wanted::number(text).map(|wanted| wanted.holds(value)), Ok(holds), "{text} of {value}");
        }
        assert!(Wanted::number("many").is_err());
    }
}
