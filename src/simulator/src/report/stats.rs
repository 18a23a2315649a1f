//! The few statistics that the report needs, over spans in milliseconds.

use serde::Serializer;

/// Milliseconds as seconds.
pub(super) fn seconds(ms: i64) -> f64 {
    number(ms) / 1000.0
}

/// An amount as a float. Exact below 2^53, which is 285,000 years in milliseconds.
#[allow(clippy::cast_precision_loss, reason = "amounts of a report stay far below 2^53")]
pub(super) const fn number(amount: i64) -> f64 {
    amount as f64
}

/// GPU time, in thousandths of a device times milliseconds, as hours of one device.
pub(super) fn gpu_hours(time: i64) -> f64 {
    number(time) / 3.6e9
}

/// A length as a float.
pub(super) fn count(n: usize) -> f64 {
    number(i64::try_from(n).unwrap_or(i64::MAX))
}

/// `part` of `whole`, 0 if there is no whole.
pub(super) fn ratio(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { number(part) / number(whole) }
}

/// The mean; 0 of nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / count(values.len()) }
}

/// Spans in ascending order, of which any percentile can be read.
#[derive(Debug, Default)]
pub(super) struct Spread(Vec<i64>);

impl Spread {
    /// Sorts the spans.
    pub(super) fn new(mut spans_ms: Vec<i64>) -> Self {
        spans_ms.sort_unstable();
        Self(spans_ms)
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The mean in milliseconds, rounded down; 0 of nothing.
    pub(super) fn mean_ms(&self) -> i64 {
        let sum: i128 = self.0.iter().map(|&ms| i128::from(ms)).sum();
        let n = i128::try_from(self.0.len().max(1)).unwrap_or(1);
        i64::try_from(sum / n).unwrap_or(i64::MAX)
    }

    /// The mean in seconds; 0 of nothing.
    pub(super) fn mean_seconds(&self) -> f64 {
        let sum: i64 = self.0.iter().fold(0, |sum, &ms| sum.saturating_add(ms));
        seconds(sum) / count(self.0.len().max(1))
    }

    /// The nearest-rank percentile: the smallest span that is not below `percent` of all. 0 of nothing.
    pub(super) fn percentile_ms(&self, percent: usize) -> i64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or(0)
    }

    /// The largest; 0 of nothing.
    pub(super) fn max_ms(&self) -> i64 {
        self.0.last().copied().unwrap_or(0)
    }
}

/// Six decimals, so that builds which order a sum differently agree. Not a number and infinity become 0.
pub(super) fn rounded(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    // Adding zero turns -0 into 0.
    if rounded.is_finite() { rounded + 0.0 } else { 0.0 }
}

/// Serialises with [`rounded`].
pub(super) fn serialize_rounded<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(rounded(*value))
}

/// Serialises with [`rounded`], or as null.
pub(super) fn serialize_rounded_option<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.serialize_some(&rounded(*value)),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        for (spans, percent, want) in [
            (vec![], 50, 0),
            (vec![7], 1, 7),
            (vec![7], 99, 7),
            (vec![1, 2], 50, 1),
            (vec![3, 1, 2], 50, 2),
            (vec![4, 3, 2, 1], 50, 2),
            (vec![4, 3, 2, 1], 51, 3),
            ((1..=100).collect(), 99, 99),
            ((1..=101).collect(), 99, 100),
            ((1..=100).collect(), 100, 100),
        ] {
            assert_eq!(Spread::new(spans.clone()).percentile_ms(percent), want, "{percent} of {spans:?}");
        }
    }

    #[test]
    fn odd_floats_round_to_plain_ones() {
        for (value, want) in
            [(1.234_567_89, "1.234568"), (-0.000_000_1, "0.0"), (f64::NAN, "0.0"), (f64::INFINITY, "0.0"), (2.0, "2.0")]
        {
            assert_eq!(format!("{:?}", rounded(value)), want);
        }
    }
}
