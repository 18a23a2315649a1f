//! The few numbers by which runs are compared.
//!
//! | number | of a job |
//! | --- | --- |
//! | wait | started − submitted |
//! | run | finished − started |
//! | bounded slowdown | max(1, (wait + run) / max(10 s, run)), after Feitelson; the 10 s keep tiny jobs from ruling it |
//! | JCT, job completion time | finished − submitted |
//!
//! They are taken over the jobs that started and ended, well or badly, without the warm-up: the first jobs to finish met
//! an empty cluster and say little about a full one. Nothing to average gives 0, beside `finished: 0`.

use serde::Serialize;

use super::stats::{Spread, gpu_hours, mean, number, seconds, serialize_rounded};
use crate::record::{JobRecord, JobState, Record};

/// Runs shorter than this count as this long in the bounded slowdown.
const SLOWDOWN_BOUND_MS: i64 = 10_000;

/// The summary of a run. Spans are seconds of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Jobs submitted.
    pub jobs: usize,
    /// Jobs that started and ended, well or badly.
    pub finished: usize,
    /// Those of them that ended badly.
    pub failed: usize,
    /// Jobs that wait at the end of the run.
    pub pending: usize,
    /// How long the run was.
    #[serde(serialize_with = "serialize_rounded")]
    pub virtual_seconds: f64,
    /// Scheduling cycles.
    pub cycles: u64,
    /// Binds and evictions decided.
    pub decisions: u64,
    /// Evictions decided.
    pub evictions: u64,
    /// GPU-hours in which pods did not get on, since they or others before them had been evicted or lost: work done
    /// twice, and the time that a restart takes.
    #[serde(serialize_with = "serialize_rounded")]
    pub lost_gpu_hours: f64,
    /// Mean wait.
    #[serde(serialize_with = "serialize_rounded")]
    pub mean_wait_seconds: f64,
    /// Median wait.
    #[serde(serialize_with = "serialize_rounded")]
    pub p50_wait_seconds: f64,
    /// The wait that 99 % of jobs do not exceed.
    #[serde(serialize_with = "serialize_rounded")]
    pub p99_wait_seconds: f64,
    /// Longest wait.
    #[serde(serialize_with = "serialize_rounded")]
    pub max_wait_seconds: f64,
    /// Mean bounded slowdown.
    #[serde(serialize_with = "serialize_rounded")]
    pub mean_bounded_slowdown: f64,
    /// Mean job completion time.
    #[serde(serialize_with = "serialize_rounded")]
    pub mean_jct_seconds: f64,
    /// The completion time that 99 % of jobs do not exceed.
    #[serde(serialize_with = "serialize_rounded")]
    pub p99_jct_seconds: f64,
    /// From the first submission to the last finish, warm-up included; 0 if nothing finished.
    #[serde(serialize_with = "serialize_rounded")]
    pub makespan_seconds: f64,
    /// Finished jobs left out of the averages above.
    pub warmup_jobs: usize,
}

/// Sums a run up.
///
/// `warmup`, in 0..1, is the fraction of the finished jobs that is left out of the averages: the first
/// ⌊warmup × finished⌋ in order of finishing, ties in order of submission.
///
/// Cost: sorts the jobs.
pub fn summarize(record: &Record, warmup: f64) -> Summary {
    let ended = by_finish(record);
    let warmup_jobs = floor_of(warmup, ended.len());
    let counted = &ended[warmup_jobs..];
    let waits = Spread::new(counted.iter().map(|job| job.wait_ms()).collect());
    let completions = Spread::new(counted.iter().map(|job| job.completion_ms()).collect());
    let slowdowns: Vec<f64> = counted.iter().map(|job| bounded_slowdown(job.wait_ms(), job.run_ms())).collect();
    Summary {
        jobs: record.jobs.len(),
        finished: ended.len(),
        failed: ended.iter().filter(|ended| ended.job.state == JobState::Failed).count(),
        pending: record.jobs.iter().filter(|job| job.state == JobState::Pending).count(),
        virtual_seconds: seconds(record.end_ms),
        cycles: record.cycles,
        decisions: record.decisions,
        evictions: record.evictions,
        lost_gpu_hours: gpu_hours(record.jobs.iter().fold(0, |sum: i64, job| sum.saturating_add(job.lost_gpu))),
        mean_wait_seconds: waits.mean_seconds(),
        p50_wait_seconds: seconds(waits.percentile_ms(50)),
        p99_wait_seconds: seconds(waits.percentile_ms(99)),
        max_wait_seconds: seconds(waits.max_ms()),
        mean_bounded_slowdown: mean(&slowdowns),
        mean_jct_seconds: completions.mean_seconds(),
        p99_jct_seconds: seconds(completions.percentile_ms(99)),
        makespan_seconds: makespan_ms(record, &ended).map_or(0.0, seconds),
        warmup_jobs,
    }
}

/// A job that started and ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended<'a> {
    /// The job.
    pub(super) job: &'a JobRecord,
    started_ms: i64,
    finished_ms: i64,
}

impl Ended<'_> {
    /// How long it waited.
    pub(super) const fn wait_ms(&self) -> i64 {
        self.started_ms - self.job.submitted_ms
    }

    const fn run_ms(&self) -> i64 {
        self.finished_ms - self.started_ms
    }

    const fn completion_ms(&self) -> i64 {
        self.finished_ms - self.job.submitted_ms
    }
}

/// The jobs that ended, in order of finishing, ties in order of submission.
pub(super) fn by_finish(record: &Record) -> Vec<Ended<'_>> {
    let mut ended: Vec<Ended<'_>> = record
        .jobs
        .iter()
        .filter_map(|job| Some(Ended { job, started_ms: job.started_ms?, finished_ms: job.finished_ms? }))
        .collect();
    ended.sort_by_key(|ended| ended.finished_ms);
    ended
}

fn bounded_slowdown(wait_ms: i64, run_ms: i64) -> f64 {
    (number(wait_ms + run_ms) / number(run_ms.max(SLOWDOWN_BOUND_MS))).max(1.0)
}

fn makespan_ms(record: &Record, ended: &[Ended<'_>]) -> Option<i64> {
    let first = record.jobs.iter().map(|job| job.submitted_ms).min()?;
    Some(ended.last()?.finished_ms - first)
}

/// ⌊fraction × n⌋, at most n. The grain of 1e-9 keeps 0.29 of 100 at 29 although the product is 28.999….
fn floor_of(fraction: f64, n: usize) -> usize {
    let limit = fraction * super::stats::count(n) + 1e-9;
    (1..=n).take_while(|&k| super::stats::count(k) <= limit).count()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{job, record};
    use super::*;

    #[test]
    fn slowdown_is_bounded_from_below_twice() {
        for (name, wait_s, run_s, want) in [
            ("no wait", 0, 100, 1.0),
            ("waits as long as it runs", 100, 100, 2.0),
            ("a short run counts as ten seconds", 20, 1, 2.1),
            ("a short run with a short wait is not below one", 2, 1, 1.0),
            ("nothing at all", 0, 0, 1.0),
            ("ten seconds exactly", 10, 10, 2.0),
        ] {
            let got = bounded_slowdown(wait_s * 1000, run_s * 1000);
            assert!((got - want).abs() < 1e-12, "{name}: {got}");
        }
    }

    #[test]
    fn warmup_rounds_down() {
        for (fraction, n, want) in [
            (0.0, 10, 0),
            (0.01, 99, 0),
            (0.01, 100, 1),
            (0.01, 28_489, 284),
            (0.29, 100, 29),
            (1.0, 7, 7),
            (2.0, 7, 7),
        ] {
            assert_eq!(floor_of(fraction, n), want, "{fraction} of {n}");
        }
    }

    #[test]
    fn a_run_by_hand() {
        // Submitted, started, finished, in seconds. `b` and `c` end together; `d` never starts, `e` still runs.
        let run = record(vec![
            job("a", 1).times(10, Some(10), Some(30)),
            job("b", 2).times(12, Some(20), Some(60)),
            job("c", 4).times(14, Some(34), Some(60)).state(JobState::Failed),
            job("d", 8).times(15, None, None).state(JobState::Pending),
            job("e", 1).times(16, Some(60), None).state(JobState::Running),
        ]);

        let all = summarize(&run, 0.0);
        assert_eq!((all.jobs, all.finished, all.failed, all.pending, all.warmup_jobs), (5, 3, 1, 1, 0));
        close(all.mean_wait_seconds, 28.0 / 3.0);
        close(all.p50_wait_seconds, 8.0);
        close(all.p99_wait_seconds, 20.0);
        close(all.max_wait_seconds, 20.0);
        close(all.mean_bounded_slowdown, (1.0 + 48.0 / 40.0 + 46.0 / 26.0) / 3.0);
        close(all.mean_jct_seconds, (20.0 + 48.0 + 46.0) / 3.0);
        close(all.p99_jct_seconds, 48.0);
        close(all.makespan_seconds, 50.0);

        // Two thirds of three: the first two to finish go, of the tie the one submitted first.
        let warm = summarize(&run, 2.0 / 3.0);
        assert_eq!((warm.finished, warm.warmup_jobs), (3, 2));
        close(warm.mean_wait_seconds, 20.0);
        close(warm.makespan_seconds, 50.0);
    }

    #[test]
    fn nothing_finished_gives_zeros() {
        let run = record(vec![job("a", 1).times(5, None, None).state(JobState::Pending)]);
        let got = summarize(&run, 0.01);
        assert_eq!((got.jobs, got.finished, got.pending), (1, 0, 1));
        close(got.mean_wait_seconds, 0.0);
        close(got.mean_bounded_slowdown, 0.0);
        close(got.makespan_seconds, 0.0);
    }

    #[track_caller]
    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-9, "{got} is not {want}");
    }
}
