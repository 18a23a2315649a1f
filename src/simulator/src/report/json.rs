//! The run as JSON, for tools. The same run gives the same bytes: keys in a fixed order, floats with six decimals.

use serde::Serialize;

use super::fairness::{a_day, sharing_incentive, short_part, usable_part};
use super::queues::queue_jobs;
use super::stats::{gpu_hours, rounded, seconds, serialize_rounded, serialize_rounded_option};
use super::summary::Summary;
use super::waits::{WidthWaits, waits_by_width};
use crate::fairness::{Means, QueueFairness, Trend};
use crate::record::{JobRecord, JobState, QueueRecord, Record};

/// How the program fared on this machine. It differs from run to run, so it is kept apart from the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// Real seconds that the run took.
    #[serde(serialize_with = "serialize_rounded")]
    pub wall_seconds: f64,
    /// The most memory that the process held, if the system says.
    pub peak_memory_bytes: Option<u64>,
    /// Decisions a real second.
    #[serde(serialize_with = "serialize_rounded")]
    pub decisions_per_second: f64,
    /// Cycles a real second.
    #[serde(serialize_with = "serialize_rounded")]
    pub cycles_per_second: f64,
}

/// The run as pretty JSON with a newline at its end; `timing` only if given.
pub fn to_json(record: &Record, summary: &Summary, timing: Option<&Timing>) -> String {
    let document = Document {
        title: &record.title,
        summary,
        notes: &record.notes,
        problems: &record.problems,
        queues: queues(record),
        sharing_incentive: sharing_incentive(record),
        trend: record.trend.as_ref().map(|trend| Columns::of(record, trend)),
        waits_by_width: waits_by_width(record, summary).iter().map(Width::of).collect(),
        jobs: record.jobs.iter().map(|job| Job::of(record, job)).collect(),
        timing,
    };
    let mut text = serde_json::to_string_pretty(&document).expect("plain structs with string keys always serialise");
    text.push('\n');
    text
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    title: &'a str,
    summary: &'a Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<&'a Timing>,
    notes: &'a [String],
    problems: &'a [String],
    queues: Vec<Queue<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sharing_incentive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trend: Option<Columns<'a>>,
    waits_by_width: Vec<Width>,
    jobs: Vec<Job<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Queue<'a> {
    name: &'a str,
    weight: u32,
    #[serde(serialize_with = "serialize_rounded")]
    mean_share: f64,
    #[serde(serialize_with = "serialize_rounded_option")]
    mean_due: Option<f64>,
    jobs: usize,
    finished: usize,
    #[serde(serialize_with = "serialize_rounded")]
    mean_wait_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fairness: Option<Account<'a>>,
}

/// A queue against its due; shares of the cluster, 0 to 1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Account<'a> {
    sharing_incentive: bool,
    #[serde(serialize_with = "serialize_rounded")]
    waited_seconds: f64,
    #[serde(serialize_with = "serialize_rounded")]
    mean_gap: f64,
    #[serde(serialize_with = "serialize_rounded")]
    largest_gap: f64,
    #[serde(serialize_with = "serialize_rounded")]
    largest_gap_at_seconds: f64,
    #[serde(serialize_with = "serialize_rounded")]
    short_part: f64,
    short_stretches: u32,
    #[serde(serialize_with = "serialize_rounded")]
    usable_part: f64,
    longest: Option<LongestStretch<'a>>,
    gap_by_reason: Vec<PartOfGap<'a>>,
    evictions: u64,
    #[serde(serialize_with = "serialize_rounded")]
    evictions_a_day: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LongestStretch<'a> {
    #[serde(serialize_with = "serialize_rounded")]
    from_seconds: f64,
    #[serde(serialize_with = "serialize_rounded")]
    length_seconds: f64,
    #[serde(serialize_with = "serialize_rounded")]
    largest_gap: f64,
    job: &'a str,
    code: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartOfGap<'a> {
    code: &'a str,
    #[serde(serialize_with = "serialize_rounded")]
    part: f64,
}

impl<'a> Account<'a> {
    fn of(record: &Record, account: &'a QueueFairness) -> Self {
        Self {
            sharing_incentive: account.holds(),
            waited_seconds: seconds(account.waited_ms),
            mean_gap: account.mean_gap,
            largest_gap: account.largest_gap,
            largest_gap_at_seconds: seconds(account.largest_gap_at_ms),
            short_part: short_part(account),
            short_stretches: account.short_stretches,
            usable_part: usable_part(account),
            longest: account.longest.as_ref().map(|stretch| LongestStretch {
                from_seconds: seconds(stretch.from_ms),
                length_seconds: seconds(stretch.length_ms),
                largest_gap: stretch.largest_gap,
                job: &stretch.job,
                code: &stretch.code,
                text: &stretch.text,
            }),
            gap_by_reason: account.reasons.iter().map(|(code, part)| PartOfGap { code, part: *part }).collect(),
            evictions: account.evictions,
            evictions_a_day: a_day(account.evictions, record),
        }
    }
}

/// Shares, dues and gaps over time, column by column.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Columns<'a> {
    #[serde(serialize_with = "serialize_rounded")]
    column_seconds: f64,
    queues: Vec<QueueColumns<'a>>,
}

#[derive(Serialize)]
struct QueueColumns<'a> {
    name: &'a str,
    held: Vec<f64>,
    due: Vec<f64>,
    gap: Vec<f64>,
}

impl<'a> Columns<'a> {
    fn of(record: &'a Record, trend: &Trend) -> Self {
        let of_queue = |(queue, means): (&'a QueueRecord, &Vec<Means>)| {
            let all = |value: fn(&Means) -> f64| means.iter().map(|means| rounded(value(means))).collect();
            QueueColumns {
                name: &queue.name,
                held: all(|means| means.held),
                due: all(|means| means.due),
                gap: all(|means| means.gap),
            }
        };
        Self {
            column_seconds: seconds(trend.column_ms),
            queues: record.queues.iter().zip(&trend.queues).map(of_queue).collect(),
        }
    }
}

fn queues(record: &Record) -> Vec<Queue<'_>> {
    let queues = record.queues.iter().zip(queue_jobs(record));
    queues
        .map(|(queue, jobs)| Queue {
            name: &queue.name,
            weight: queue.weight,
            mean_share: queue.mean_share,
            mean_due: queue.mean_due,
            jobs: jobs.jobs,
            finished: jobs.finished,
            mean_wait_seconds: seconds(jobs.mean_wait_ms),
            fairness: queue.fairness.as_ref().map(|account| Account::of(record, account)),
        })
        .collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Width {
    widths: String,
    jobs: usize,
    counted: usize,
    pending: usize,
    #[serde(serialize_with = "serialize_rounded")]
    mean_wait_seconds: f64,
    #[serde(serialize_with = "serialize_rounded")]
    p50_wait_seconds: f64,
    #[serde(serialize_with = "serialize_rounded")]
    p99_wait_seconds: f64,
    #[serde(serialize_with = "serialize_rounded")]
    max_wait_seconds: f64,
}

impl Width {
    fn of(row: &WidthWaits) -> Self {
        Self {
            widths: row.widths.clone(),
            jobs: row.jobs,
            counted: row.counted,
            pending: row.pending,
            mean_wait_seconds: seconds(row.mean_ms),
            p50_wait_seconds: seconds(row.p50_ms),
            p99_wait_seconds: seconds(row.p99_ms),
            max_wait_seconds: seconds(row.max_ms),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Job<'a> {
    name: &'a str,
    namespace: &'a str,
    queue: Option<&'a str>,
    kind: &'a str,
    width: u32,
    pods: u32,
    cpu_milli: i64,
    gpu_milli: i64,
    state: &'static str,
    #[serde(serialize_with = "serialize_rounded")]
    submitted_seconds: f64,
    #[serde(serialize_with = "serialize_rounded_option")]
    started_seconds: Option<f64>,
    #[serde(serialize_with = "serialize_rounded_option")]
    finished_seconds: Option<f64>,
    evictions: u32,
    #[serde(serialize_with = "serialize_rounded")]
    lost_gpu_hours: f64,
    nodes: &'a [String],
    reason: Option<Reason<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reason<'a> {
    code: &'a str,
    text: &'a str,
    #[serde(serialize_with = "serialize_rounded")]
    since_seconds: f64,
}

impl<'a> Job<'a> {
    fn of(record: &'a Record, job: &'a JobRecord) -> Self {
        Self {
            name: &job.name,
            namespace: &job.namespace,
            queue: record.queues.get(job.queue).map(|queue| queue.name.as_str()),
            kind: &job.kind,
            width: job.width,
            pods: job.pods,
            cpu_milli: job.cpu_milli,
            gpu_milli: job.gpu_milli,
            state: state_word(job.state),
            submitted_seconds: seconds(job.submitted_ms),
            started_seconds: job.started_ms.map(seconds),
            finished_seconds: job.finished_ms.map(seconds),
            evictions: job.evictions,
            lost_gpu_hours: gpu_hours(job.lost_gpu),
            nodes: &job.on_nodes,
            reason: job.waiting.as_ref().map(|(code, text, since_ms)| Reason {
                code,
                text,
                since_seconds: seconds(*since_ms),
            }),
        }
    }
}

/// A state in one word.
pub(super) const fn state_word(state: JobState) -> &'static str {
    match state {
        JobState::Finished => "finished",
        JobState::Failed => "failed",
        JobState::Running => "running",
        JobState::Pending => "pending",
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::summarize;
    use super::super::testing::{job, record};
    use super::*;

    #[test]
    fn a_tiny_run_as_json() {
        let mut run = record(vec![
            job("a", 2).times(0, Some(10), Some(31)).on(&["n0", "n1"]),
            job("b", 4).times(20, None, None).waits("NoNodeFits", "0 of 4 members \"fit\"", 25),
        ]);
        run.title = "tiny".to_owned();
        run.notes.push("a note".to_owned());
        run.queues[0].mean_share = 1.0 / 3.0;
        let got = to_json(&run, &summarize(&run, 0.0), None);
        let want = r#"{
  "title": "tiny",
  "summary": {
    "jobs": 2,
    "finished": 1,
    "failed": 0,
    "pending": 1,
    "virtualSeconds": 31.0,
    "cycles": 0,
    "decisions": 0,
    "evictions": 0,
    "lostGpuHours": 0.0,
    "meanWaitSeconds": 10.0,
    "p50WaitSeconds": 10.0,
    "p99WaitSeconds": 10.0,
    "maxWaitSeconds": 10.0,
    "meanBoundedSlowdown": 1.47619,
    "meanJctSeconds": 31.0,
    "p99JctSeconds": 31.0,
    "makespanSeconds": 31.0,
    "warmupJobs": 0
  },
  "notes": [
    "a note"
  ],
  "problems": [],
  "queues": [
    {
      "name": "main",
      "weight": 1,
      "meanShare": 0.333333,
      "meanDue": null,
      "jobs": 2,
      "finished": 1,
      "meanWaitSeconds": 10.0
    }
  ],
  "waitsByWidth": [
    {
      "widths": "2-3",
      "jobs": 1,
      "counted": 1,
      "pending": 0,
      "meanWaitSeconds": 10.0,
      "p50WaitSeconds": 10.0,
      "p99WaitSeconds": 10.0,
      "maxWaitSeconds": 10.0
    },
    {
      "widths": "4-7",
      "jobs": 1,
      "counted": 0,
      "pending": 1,
      "meanWaitSeconds": 0.0,
      "p50WaitSeconds": 0.0,
      "p99WaitSeconds": 0.0,
      "maxWaitSeconds": 0.0
    }
  ],
  "jobs": [
    {
      "name": "a",
      "namespace": "default",
      "queue": "main",
      "kind": "",
      "width": 2,
      "pods": 2,
      "cpuMilli": 0,
      "gpuMilli": 0,
      "state": "finished",
      "submittedSeconds": 0.0,
      "startedSeconds": 10.0,
      "finishedSeconds": 31.0,
      "evictions": 0,
      "lostGpuHours": 0.0,
      "nodes": [
        "n0",
        "n1"
      ],
      "reason": null
    },
    {
      "name": "b",
      "namespace": "default",
      "queue": "main",
      "kind": "",
      "width": 4,
      "pods": 4,
      "cpuMilli": 0,
      "gpuMilli": 0,
      "state": "pending",
      "submittedSeconds": 20.0,
      "startedSeconds": null,
      "finishedSeconds": null,
      "evictions": 0,
      "lostGpuHours": 0.0,
      "nodes": [],
      "reason": {
        "code": "NoNodeFits",
        "text": "0 of 4 members \"fit\"",
        "sinceSeconds": 25.0
      }
    }
  ]
}
"#;
        assert_eq!(got, want);
    }

    #[test]
    fn timing_is_there_only_if_given() {
        let run = record(vec![]);
        let summary = summarize(&run, 0.0);
        assert!(!to_json(&run, &summary, None).contains("timing"));
        let timing = Timing { wall_seconds: 1.5, peak_memory_bytes: Some(4096), ..Timing::default() };
        let text = to_json(&run, &summary, Some(&timing));
        assert!(text.contains("\"wallSeconds\": 1.5,\n    \"peakMemoryBytes\": 4096,"), "{text}");
    }
}
