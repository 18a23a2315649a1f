//! What a simulation leaves behind: everything that tables, JSON and the HTML report are made of.
//!
//! It holds only what is deterministic. Times are milliseconds of virtual time from the start of the run.

use serde::Serialize;

use crate::fairness::{QueueFairness, Trend};

/// The record of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Record {
    /// What was run, for the headline.
    pub title: String,
    /// Assumptions and derived columns, one sentence each; offered load and scaling among them.
    pub notes: Vec<String>,
    /// Inputs that could not be read, one sentence each with its place.
    pub problems: Vec<String>,
    /// When the run ended.
    pub end_ms: i64,
    /// Scheduling cycles that ran.
    pub cycles: u64,
    /// Binds and evictions decided.
    pub decisions: u64,
    /// Evictions decided.
    pub evictions: u64,
    /// Nodes in name order.
    pub nodes: Vec<NodeRecord>,
    /// Queues that had jobs, in name order.
    pub queues: Vec<QueueRecord>,
    /// Jobs in order of submission.
    pub jobs: Vec<JobRecord>,
    /// Who held which node when, in order of `from_ms`. Empty for runs with more than [`MAX_SPANS`] placements; a note
    /// says so.
    pub spans: Vec<Span>,
    /// The state of the cluster over time; at most a few thousand, evenly thinned.
    pub samples: Vec<Sample>,
    /// Shares, dues and gaps over the run, exactly; `None` if no plugin says what queues are due.
    pub trend: Option<Trend>,
}

impl Record {
    /// Jobs that run at the end.
    pub fn n_running(&self) -> usize {
        self.jobs.iter().filter(|job| job.state == JobState::Running).count()
    }
}

/// Above this many placements the time line of nodes is left out.
pub const MAX_SPANS: usize = 20_000;

/// A node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeRecord {
    /// Its name.
    pub name: String,
    /// Milli-CPU.
    pub cpu_milli: i64,
    /// GPU devices.
    pub gpus: i64,
    /// Bytes of memory.
    pub memory_bytes: i64,
}

/// A queue.
#[derive(Clone, Debug, Serialize)]
pub struct QueueRecord {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// Its time-averaged dominant share of the cluster, 0..1.
    pub mean_share: f64,
    /// Its time-averaged due, as the fairness plugin has it: deserved over cluster in its dominant dimension, 0..1;
    /// `None` if no plugin says.
    pub mean_due: Option<f64>,
    /// How it fared against its due; `None` if no plugin says.
    pub fairness: Option<QueueFairness>,
}

/// How a job stands at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum JobState {
    /// All of its pods ended well.
    Finished,
    /// Some pod ended badly or was not made again.
    Failed,
    /// At least its minimum runs.
    Running,
    /// It waits.
    Pending,
}

/// A job.
#[derive(Clone, Debug, Serialize)]
pub struct JobRecord {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Index into [`Record::queues`].
    pub queue: usize,
    /// What kind of application, for grouping: a label, or the kind of its owner; empty if unknown.
    pub kind: String,
    /// Pods.
    pub pods: u32,
    /// Pods needed to start: the width of the gang.
    pub width: u32,
    /// CPU, in thousandths, of all its pods together.
    pub cpu_milli: i64,
    /// GPU, in thousandths of a device, of all its pods together.
    pub gpu_milli: i64,
    /// When it was submitted.
    pub submitted_ms: i64,
    /// When its minimum was bound first.
    pub started_ms: Option<i64>,
    /// When its last pod ended.
    pub finished_ms: Option<i64>,
    /// How it stands at the end.
    pub state: JobState,
    /// Pods of it that were evicted.
    pub evictions: u32,
    /// GPU time in which its pods did not get on, since they had been evicted or lost: thousandths of a device times
    /// milliseconds.
    pub lost_gpu: i64,
    /// Why it waits, if it does: code, text, since when.
    pub waiting: Option<(String, String, i64)>,
    /// Nodes it has used, in name order; at most 16, then the list is cut.
    pub on_nodes: Vec<String>,
}

/// One pod on one node.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// Index into [`Record::jobs`].
    pub job: usize,
    /// The pod's name.
    pub pod: String,
    /// Index into [`Record::nodes`].
    pub node: usize,
    /// CPU, in thousandths.
    pub cpu_milli: i64,
    /// GPU, in thousandths of a device.
    pub gpu_milli: i64,
    /// From when.
    pub from_ms: i64,
    /// Until when; the end of the run if it still runs.
    pub to_ms: i64,
    /// Whether it was evicted.
    pub evicted: bool,
}

/// The cluster at one time.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// The time.
    pub at_ms: i64,
    /// Used CPU over all CPU, 0..1.
    pub cpu_used: f64,
    /// Used GPU over all GPU, 0..1.
    pub gpu_used: f64,
    /// For each of [`Record::queues`]: its dominant share of the cluster, 0..1, and what it is due if a plugin says.
    pub queues: Vec<(f64, Option<f64>)>,
    /// Waiting pods by the code of their reason, sorted by code.
    pub waiting: Vec<(String, u32)>,
}
