//! Who waits longer, wide gangs or narrow ones?

use super::stats::Spread;
use super::summary::{Summary, by_finish};
use crate::record::{JobState, Record};

/// Least widths of the buckets. Powers of two, as gangs mostly are; the last bucket has no end.
const FROM: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The waits of the jobs of similar width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WidthWaits {
    /// The widths, as `4-7` or `128+`.
    pub widths: String,
    /// Jobs submitted.
    pub jobs: usize,
    /// Jobs that the waits are taken over: those that ended, without the warm-up.
    pub counted: usize,
    /// Jobs that wait at the end of the run.
    pub pending: usize,
    /// Mean wait.
    pub mean_ms: i64,
    /// Median wait.
    pub p50_ms: i64,
    /// The wait that 99 % of jobs do not exceed.
    pub p99_ms: i64,
    /// Longest wait.
    pub max_ms: i64,
}

/// The waits by width of gang, over the same jobs as the averages of `summary`. Buckets without jobs are left out.
pub fn waits_by_width(record: &Record, summary: &Summary) -> Vec<WidthWaits> {
    let mut waits: [Vec<i64>; FROM.len()] = Default::default();
    for ended in by_finish(record).iter().skip(summary.warmup_jobs) {
        waits[bucket(ended.job.width)].push(ended.wait_ms());
    }
    waits
        .into_iter()
        .enumerate()
        .map(|(i, waits)| {
            let here = || record.jobs.iter().filter(|job| bucket(job.width) == i);
            let waits = Spread::new(waits);
            WidthWaits {
                widths: label(i),
                jobs: here().count(),
                counted: waits.len(),
                pending: here().filter(|job| job.state == JobState::Pending).count(),
                mean_ms: waits.mean_ms(),
                p50_ms: waits.percentile_ms(50),
                p99_ms: waits.percentile_ms(99),
                max_ms: waits.max_ms(),
            }
        })
        .filter(|row| row.jobs > 0)
        .collect()
}

/// A width of 0, of a job that needs no pod to start, goes with 1.
fn bucket(width: u32) -> usize {
    FROM.iter().rposition(|&from| from <= width).unwrap_or(0)
}

fn label(bucket: usize) -> String {
    let from = FROM[bucket];
    match FROM.get(bucket + 1) {
        None => format!("{from}+"),
        Some(next) if next - 1 == from => from.to_string(),
        Some(next) => format!("{from}-{}", next - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::summarize;
    use super::super::testing::{job, record};
    use super::*;

    #[test]
    fn every_width_has_its_bucket() {
        for (width, want) in [
            (0, "1"),
            (1, "1"),
            (2, "2-3"),
            (3, "2-3"),
            (4, "4-7"),
            (15, "8-15"),
            (16, "16-31"),
            (63, "32-63"),
            (127, "64-127"),
            (128, "128+"),
            (u32::MAX, "128+"),
        ] {
            assert_eq!(label(bucket(width)), want, "{width}");
        }
    }

    #[test]
    fn waits_are_over_the_jobs_of_the_summary() {
        let run = record(vec![
            job("warm", 2).times(0, Some(90), Some(91)),
            job("a", 2).times(0, Some(10), Some(100)),
            job("b", 3).times(0, Some(20), Some(100)),
            job("c", 8).times(0, None, None).state(JobState::Pending),
        ]);
        let rows = waits_by_width(&run, &summarize(&run, 0.34));
        let short: Vec<_> = rows.iter().map(|r| (r.widths.as_str(), r.jobs, r.counted, r.pending, r.mean_ms)).collect();
        assert_eq!(short, [("2-3", 3, 2, 0, 15_000), ("8-15", 1, 0, 1, 0)]);
        assert_eq!((rows[0].p50_ms, rows[0].p99_ms, rows[0].max_ms), (10_000, 20_000, 20_000));
    }
}
