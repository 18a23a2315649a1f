//! The samples as series that a plot can hold.
//!
//! A sample holds until the next. A plot of a thousand pixels shows no more than some hundred steps, so longer runs are
//! averaged over equal columns of time; shorter ones are shown exactly.

use super::stats::{number, ratio};
use crate::record::{Record, Sample};

/// Steps of a plot: two pixels each.
const MAX_STEPS: usize = 500;

/// The columns of all plots of a run.
pub(super) struct Columns<'a> {
    samples: &'a [Sample],
    /// When each column begins; the last ends with the run.
    pub(super) starts_ms: Vec<i64>,
    end_ms: i64,
}

impl<'a> Columns<'a> {
    /// The columns of a run; `None` if it has no samples.
    pub(super) fn of(record: &'a Record) -> Option<Self> {
        let samples = record.samples.as_slice();
        let (first, last) = (samples.first()?.at_ms, samples.last()?.at_ms);
        let end_ms = record.end_ms.max(last);
        let starts_ms = if samples.len() <= MAX_STEPS {
            samples.iter().map(|sample| sample.at_ms).collect()
        } else {
            (0..MAX_STEPS).map(|k| first + part(end_ms - first, k, MAX_STEPS)).collect()
        };
        Some(Self { samples, starts_ms, end_ms })
    }

    /// The mean of `value` in each column.
    pub(super) fn values(&self, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
        if self.samples.len() <= MAX_STEPS {
            return self.samples.iter().map(value).collect();
        }
        let mut means = Vec::with_capacity(self.starts_ms.len());
        let mut at = 0;
        for (k, &from) in self.starts_ms.iter().enumerate() {
            let to = self.starts_ms.get(k + 1).copied().unwrap_or(self.end_ms);
            while self.sample_end(at) <= from && at + 1 < self.samples.len() {
                at += 1;
            }
            let (mut sum, mut i) = (0.0, at);
            while i < self.samples.len() && self.samples[i].at_ms < to {
                let held = self.sample_end(i).min(to) - self.samples[i].at_ms.max(from);
                sum += value(&self.samples[i]) * number(held.max(0));
                i += 1;
            }
            means.push(if to > from { sum / number(to - from) } else { value(&self.samples[at]) });
        }
        means
    }

    /// The mean of `value` over the run.
    pub(super) fn mean(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        let whole = self.end_ms - self.starts_ms[0];
        let held = |i: usize| self.sample_end(i) - self.samples[i].at_ms;
        self.samples.iter().enumerate().map(|(i, sample)| value(sample) * ratio(held(i), whole)).sum()
    }

    fn sample_end(&self, i: usize) -> i64 {
        self.samples.get(i + 1).map_or(self.end_ms, |next| next.at_ms)
    }
}

/// ⌊whole × k / n⌋ without overflow.
fn part(whole: i64, k: usize, n: usize) -> i64 {
    let scaled = i128::from(whole) * i128::try_from(k).unwrap_or(0) / i128::try_from(n).unwrap_or(1);
    i64::try_from(scaled).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(n: i64, step_ms: i64, cpu: impl Fn(i64) -> f64) -> Record {
        let sample =
            |k| Sample { at_ms: k * step_ms, cpu_used: cpu(k), gpu_used: 0.0, queues: Vec::new(), waiting: Vec::new() };
        Record { end_ms: n * step_ms, samples: (0..n).map(sample).collect(), ..Record::default() }
    }

    #[test]
    fn few_samples_stay_as_they_are() {
        let run = run(3, 1000, |k| number(k) / 2.0);
        let columns = Columns::of(&run).expect("samples");
        assert_eq!(columns.starts_ms, [0, 1000, 2000]);
        assert_eq!(columns.values(|s| s.cpu_used), [0.0, 0.5, 1.0]);
        assert!((columns.mean(|s| s.cpu_used) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn many_samples_are_averaged_and_keep_their_mean() {
        let run = run(1750, 1000, |k| if k % 2 == 0 { 1.0 } else { 0.0 });
        let columns = Columns::of(&run).expect("samples");
        let values = columns.values(|s| s.cpu_used);
        assert_eq!((columns.starts_ms.len(), values.len()), (MAX_STEPS, MAX_STEPS));
        // Columns of 3.5 samples: each half on, give or take half a sample.
        assert!(values.iter().all(|v| (0.4..=0.6).contains(v)), "{values:?}");
        let mean = super::super::stats::mean(&values);
        assert!((mean - columns.mean(|s| s.cpu_used)).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn no_samples_no_columns() {
        assert!(Columns::of(&Record::default()).is_none());
    }
}
