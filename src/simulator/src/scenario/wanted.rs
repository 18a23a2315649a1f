//! Numbers as expectations write them: `3`, `">=3"`, `"<=1"`, `"3..5"`, `"0|4"`.

use std::fmt;

/// A wanted number: one of these ranges.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted(Vec<(f64, f64)>);

/// Values that are this near are equal: shares are written to three decimals.
const NEAR: f64 = 0.000_5;

impl Wanted {
    /// Reads a wanted number, with `read` for the plain values: of durations, in seconds.
    pub(super) fn parse(text: &str, read: impl Fn(&str) -> Result<f64, String>) -> Result<Self, String> {
        text.split('|').map(|range| range_of(range.trim(), &read)).collect::<Result<_, _>>().map(Self)
    }

    /// Reads a plain number.
    pub(super) fn number(text: &str) -> Result<Self, String> {
        Self::parse(text, |part| {
            part.parse().map_err(|_| format!("`{part}` is no number; write 3, \">=3\", \"<=1\", \"3..5\" or \"0|4\""))
        })
    }

    /// Whether a value is wanted.
    pub(super) fn holds(&self, value: f64) -> bool {
        self.holds_within(value, NEAR)
    }

    /// Whether a value is wanted, or as near to one that is.
    pub(super) fn holds_within(&self, value: f64, near: f64) -> bool {
        self.0.iter().any(|(low, high)| value >= low - near && value <= high + near)
    }
}

fn range_of(text: &str, read: impl Fn(&str) -> Result<f64, String>) -> Result<(f64, f64), String> {
    if let Some(low) = text.strip_prefix(">=") {
        return Ok((read(low.trim())?, f64::INFINITY));
    }
    if let Some(high) = text.strip_prefix("<=") {
        return Ok((f64::NEG_INFINITY, read(high.trim())?));
    }
    if let Some((low, high)) = text.split_once("..") {
        return Ok((read(low.trim())?, read(high.trim())?));
    }
    let value = read(text)?;
    Ok((value, value))
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (low, high)) in self.0.iter().enumerate() {
            f.write_str(if i > 0 { " or " } else { "" })?;
            match (low.is_finite(), high.is_finite()) {
                (true, true) if low == high => write!(f, "{low}")?,
                (true, true) => write!(f, "{low} to {high}")?,
                (true, false) => write!(f, "at least {low}")?,
                _ => write!(f, "at most {high}")?,
            }
        }
        Ok(())
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
            ("0|4", 4.0, true),
            ("0 | 4", 3.0, false),
            ("0|>=4", 9.0, true),
        ] {
            assert_eq!(Wanted::number(text).map(|wanted| wanted.holds(value)), Ok(holds), "{text} of {value}");
        }
        assert!(Wanted::number("many").is_err());
        assert_eq!(Wanted::number("0|>=4").map(|wanted| wanted.to_string()), Ok("0 or at least 4".to_owned()));
    }
}
