//! Numbers and times as traces write them.
//!
//! Results are whole numbers in base units; a message says what was there and what was wanted.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The longest time, in milliseconds: 10,000 years, so that the sum of a few always fits an `i64`.
const MAX_MS: i64 = 10_000 * 366 * 86_400_000;

/// Floats up to here are exact integers.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Whether a field says that it has no value.
pub(crate) fn is_missing(text: &str) -> bool {
    matches!(text, "" | "NaN" | "nan" | "None" | "none" | "null" | "NULL" | "NaT" | "N/A" | "NA")
}

/// A whole number in a range. `8.0` is one too: columns with gaps come out of data frames as floats.
pub(crate) fn integer(text: &str, range: RangeInclusive<i64>) -> Result<i64, String> {
    let value = match text.parse::<i64>() {
        Ok(value) => value,
        Err(_) => whole(text).ok_or_else(|| format!("`{}` is not a whole number", cut(text)))?,
    };
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(format!("{value} is not in {} to {}", range.start(), range.end()))
    }
}

/// Thousandths of a decimal number of 0 or more, rounded.
pub(crate) fn milli(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{}` is not a number of 0 or more", cut(text));
    let value: f64 = text.parse().map_err(|_| wrong())?;
    if !value.is_finite() || value < 0.0 {
        return Err(wrong());
    }
    round(value * 1000.0).ok_or_else(|| format!("{value} is too large"))
}

/// A length of time in seconds, 0 or more, as milliseconds.
pub(crate) fn seconds(text: &str) -> Result<i64, String> {
    match milli(text)? {
        ms if ms <= MAX_MS => Ok(ms),
        _ => Err(format!("{} seconds are too long", cut(text))),
    }
}

/// A point in time, as milliseconds since some zero that is the same for the whole file: a number of seconds, or a date
/// with a time. A date without a zone is read as UTC.
pub(crate) fn moment(text: &str) -> Result<i64, String> {
    if let Ok(ms) = seconds(text) {
        return Ok(ms);
    }
    let wrong = || format!("`{}` is neither a time such as 2017-10-09 07:01:55 nor a number of seconds", cut(text));
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.as_millisecond());
    }
    let civil: DateTime = text.parse().map_err(|_| wrong())?;
    TimeZone::UTC.to_timestamp(civil).map(|timestamp| timestamp.as_millisecond()).map_err(|_| wrong())
}

/// Divides a time by a positive factor, rounded; infinite gives 0.
pub(crate) fn divided(ms: i64, factor: f64) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "times are below MAX_MS, which is exact")]
    let quotient = ms as f64 / factor;
    round(quotient).unwrap_or(MAX_MS).min(MAX_MS)
}

/// How many times `each` (1 or more) goes into an amount of 0 or more, rounded up.
pub(crate) fn div_ceil(amount: i64, each: i64) -> i64 {
    amount / each + i64::from(amount % each > 0)
}

/// A float without a fraction, as an integer.
fn whole(text: &str) -> Option<i64> {
    let value: f64 = text.parse().ok()?;
    if value.fract() == 0.0 { round(value) } else { None }
}

/// The nearest integer, if the float can tell it from its neighbours.
fn round(value: f64) -> Option<i64> {
    if value.is_nan() || value.abs() > MAX_EXACT {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked: finite and within 2^53")]
    let rounded = value.round() as i64;
    Some(rounded)
}

/// The start of a text, for messages.
pub(crate) fn cut(text: &str) -> String {
    cut_to(text, 40)
}

/// The first characters of a text, for messages.
pub(crate) fn cut_to(text: &str, n_chars: usize) -> String {
    match text.char_indices().nth(n_chars) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_look_like_floats() {
        for (text, want) in [("8", Ok(8)), ("8.0", Ok(8)), ("1e2", Ok(100))] {
            assert_eq!(integer(text, 0..=100), want);
        }
        for text in ["8.5", "x", "", "nan", "inf", "-1", "101", "99999999999999999999", "1e300"] {
            assert!(integer(text, 0..=100).is_err(), "{text}");
        }
        assert_eq!(integer("101", 0..=100), Err("101 is not in 0 to 100".into()));
    }

    #[test]
    fn times_are_seconds_or_dates() {
        assert_eq!(seconds("66.0"), Ok(66_000));
        assert_eq!(seconds("0.0005"), Ok(1));
        for text in ["-1", "NaN", "inf", "1e20", "ten"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        let utc = moment("2017-10-09 07:01:55").expect("civil");
        assert_eq!(moment("2017-10-09 09:01:55+02:00"), Ok(utc));
        assert_eq!(moment("2017-10-09T07:01:55Z"), Ok(utc));
        assert_eq!(moment("427061"), Ok(427_061_000));
        assert!(moment("yesterday").is_err());
    }

    #[test]
    fn division_rounds_and_infinity_is_the_start() {
        assert_eq!(divided(15, 10.0), 2);
        assert_eq!(divided(15, f64::INFINITY), 0);
        assert_eq!(divided(i64::MAX, 1e-300), MAX_MS);
    }
}
