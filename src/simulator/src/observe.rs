//! Watches a world and writes the record that reports are made of.

use std::collections::BTreeMap;

use krafla_engine::CycleReport;
use krafla_framework::reasons::Standing;
use krafla_model::resources::{GPU_NAME, ratio};
use krafla_model::{Name, ResourceId, TaskStatus, Time};

use crate::fairness::{self, Fairness, QueueFairness, millis};
use crate::invariants;
use crate::record::{JobRecord, JobState, MAX_SPANS, NodeRecord, QueueRecord, Record, Sample, Span};
use crate::world::{Job, Observer, PodChange, World};

/// Samples that are kept; when there are twice as many, every second one goes.
const SAMPLES: usize = 1_000;
/// Up to so many objects the invariants are checked after every cycle; beyond, that much more rarely, so that checking
/// never costs more than scheduling.
const CHECKED_EACH_CYCLE: usize = 100;
/// Broken invariants that are listed.
const MOST_BROKEN: usize = 20;
/// Nodes that are named for one job.
const MOST_NODES_NAMED: usize = 16;

/// Share and due of each queue.
type Shares = BTreeMap<Name, (f64, Option<f64>)>;

/// The record in the making.
pub(crate) struct Recording {
    record: Record,
    /// Sums over time of each queue's share and due, in milliseconds.
    sums: BTreeMap<Name, (f64, f64, bool)>,
    fairness: Fairness,
    /// Samples by queue name, brought into the order of the record's queues at the end.
    samples: Vec<(Sample, Shares)>,
    /// Least time between two samples, in milliseconds.
    stride_ms: i64,
    open: BTreeMap<usize, usize>,
    node_index: BTreeMap<Name, usize>,
    nodes_of_job: BTreeMap<usize, std::collections::BTreeSet<Name>>,
    too_many_spans: bool,
    broken: Vec<String>,
    gpu: Option<ResourceId>,
    /// What people call jobs, by namespace and name, where it is not the name.
    shown: BTreeMap<(Name, Name), String>,
}

impl Recording {
    /// Begins a record under this headline.
    ///
    /// Pods that terminate take `grace_ms`.
    pub(crate) fn new(title: String, grace_ms: i64) -> Self {
        Self {
            record: Record { title, ..Record::default() },
            sums: BTreeMap::new(),
            fairness: Fairness::new(grace_ms),
            samples: Vec::new(),
            stride_ms: 0,
            open: BTreeMap::new(),
            node_index: BTreeMap::new(),
            nodes_of_job: BTreeMap::new(),
            too_many_spans: false,
            broken: Vec::new(),
            gpu: None,
            shown: BTreeMap::new(),
        }
    }

    /// Takes up what people call jobs, by namespace and name.
    pub(crate) fn call(&mut self, shown: BTreeMap<(Name, Name), String>) {
        self.shown = shown;
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, text: String) {
        self.record.notes.push(text);
    }

    /// Adds a problem.
    pub(crate) fn problem(&mut self, text: String) {
        self.record.problems.push(text);
    }

    /// Ends the record.
    pub(crate) fn finish(mut self, world: &World) -> (Record, Vec<String>) {
        let end = world.now().0;
        self.take_sample(world, world.now());
        let mut queues: Vec<Name> = world.jobs().iter().map(|job| job.queue.clone()).collect();
        queues.sort();
        queues.dedup();
        self.record.end_ms = end;
        self.record.cycles = world.cycles();
        self.record.decisions = world.decisions();
        self.record.evictions = world.evictions();
        let (fairness, trend) = std::mem::replace(&mut self.fairness, Fairness::new(0)).finish(&queues);
        self.record.trend = trend;
        let records = queues.iter().zip(fairness).map(|(name, fairness)| self.queue(world, name, end, fairness));
        self.record.queues = records.collect();
        self.record.nodes = self.nodes(world);
        for span in &mut self.record.spans {
            if span.to_ms < 0 {
                span.to_ms = end;
            }
        }
        if self.too_many_spans {
            self.record.spans.clear();
            self.record.notes.push(format!("the time line of nodes is left out: more than {MAX_SPANS} placements"));
        }
        let nothing = (0.0, None);
        self.record.samples = self
            .samples
            .into_iter()
            .map(|(mut sample, shares)| {
                sample.queues = queues.iter().map(|name| shares.get(name).copied().unwrap_or(nothing)).collect();
                sample
            })
            .collect();
        let mut jobs = Vec::with_capacity(world.jobs().len());
        for (index, job) in world.jobs().iter().enumerate() {
            let waiting = waiting_for(world, job)
                .map(|standing| (standing.reason.code().to_owned(), standing.reason.to_string(), standing.since.0));
            let used = self.nodes_of_job.get(&index);
            let on_nodes = used.into_iter().flatten().take(MOST_NODES_NAMED).map(ToString::to_string).collect();
            let mut record = job_record(world, job, &queues, waiting, on_nodes);
            if let Some(shown) = self.shown.get(&(job.namespace.clone(), job.name.clone())) {
                record.name.clone_from(shown);
            }
            jobs.push(record);
        }
        self.record.jobs = jobs;
        if world.engine().discrepancies() > 0 {
            self.broken.push(format!("I3: {} books were off and have been healed", world.engine().discrepancies()));
        }
        (self.record, self.broken)
    }

    /// A job is called what people call it: a PodGroup that was made for a workload has the workload's name.
    fn with_shown_names(&self, mut fairness: QueueFairness) -> QueueFairness {
        if let Some(stretch) = &mut fairness.longest
            && let Some((_, shown)) = self.shown.iter().find(|((_, name), _)| **name == *stretch.job)
        {
            stretch.job.clone_from(shown);
        }
        fairness
    }

    fn queue(&self, world: &World, name: &Name, end: i64, fairness: Option<QueueFairness>) -> QueueRecord {
        let (share, due, says) = self.sums.get(name).copied().unwrap_or_default();
        let cluster = world.engine().cluster();
        let weight = cluster.find_queue(name).map_or(1, |id| cluster.queue(id).spec.weight);
        let mean = |sum: f64| if end > 0 { sum / millis(end) } else { 0.0 };
        QueueRecord {
            name: name.to_string(),
            weight,
            mean_share: mean(share),
            mean_due: says.then(|| mean(due)),
            fairness: fairness.filter(|_| says).map(|fairness| self.with_shown_names(fairness)),
        }
    }

    /// Every node that there is or that was used, in name order; the spans follow.
    fn nodes(&mut self, world: &World) -> Vec<NodeRecord> {
        let mut nodes: BTreeMap<Name, NodeRecord> = self
            .node_index
            .keys()
            .map(|name| {
                let gone = NodeRecord { name: name.to_string(), cpu_milli: 0, gpus: 0, memory_bytes: 0 };
                (name.clone(), gone)
            })
            .collect();
        for spec in world.nodes() {
            let record = NodeRecord {
                name: spec.name.to_string(),
                cpu_milli: spec.allocatable.get("cpu").unwrap_or(0),
                gpus: spec.allocatable.get(GPU_NAME).unwrap_or(0) / 1_000,
                memory_bytes: spec.allocatable.get("memory").unwrap_or(0),
            };
            nodes.insert(spec.name.clone(), record);
        }
        let mut place = vec![0; self.node_index.len()];
        for (index, name) in nodes.keys().enumerate() {
            if let Some(&used) = self.node_index.get(name) {
                place[used] = index;
            }
        }
        for span in &mut self.record.spans {
            span.node = place[span.node];
        }
        nodes.into_values().collect()
    }

    fn take_sample(&mut self, world: &World, at: Time) {
        let cluster = world.engine().cluster();
        let totals = cluster.totals();
        let used = |id| ratio(totals.used.get(id), totals.allocatable.get(id).max(1)).into_inner();
        let mut waiting: BTreeMap<&'static str, u32> = BTreeMap::new();
        for id in cluster.waiting_jobs() {
            let pods = cluster.job(id).counts().sum(TaskStatus::is_waiting);
            let code = world.engine().reasons().job(id).map_or("Unexplained", |standing| standing.reason.code());
            *waiting.entry(code).or_default() += pods;
        }
        let shares = self.shares(world);
        let sample = Sample {
            at_ms: at.0,
            cpu_used: used(ResourceId::CPU),
            gpu_used: self.gpu.map_or(0.0, used),
            queues: Vec::new(),
            waiting: waiting.into_iter().filter(|(_, n)| *n > 0).map(|(code, n)| (code.to_owned(), n)).collect(),
        };
        self.samples.push((sample, shares));
        if self.samples.len() >= 2 * SAMPLES {
            let mut nth = 0;
            self.samples.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.stride_ms = (self.stride_ms * 2).max(at.0 / i64::try_from(SAMPLES).unwrap_or(i64::MAX));
        }
    }

    /// Share and due of each queue that holds or is due something.
    fn shares(&self, world: &World) -> Shares {
        let (engine, cluster) = (world.engine(), world.engine().cluster());
        let total = &cluster.totals().allocatable;
        let share = |amounts: &krafla_model::Resources| fairness::share(amounts, total);
        let mut shares = BTreeMap::new();
        for (id, queue) in cluster.queues().filter(|(_, queue)| queue.n_jobs() > 0) {
            let due = engine.configuration().plugins().deserved(id).map(|due| share(&due));
            shares.insert(queue.spec.name.clone(), (share(&queue.held().allocated), due));
        }
        shares
    }
}

impl Observer for Recording {
    fn passes(&mut self, world: &World, from: Time, to: Time) {
        let dt = millis(to - from);
        for (name, (share, due)) in self.shares(world) {
            let sums = self.sums.entry(name).or_default();
            sums.0 += share * dt;
            sums.1 += due.unwrap_or(0.0) * dt;
            sums.2 |= due.is_some();
        }
        self.fairness.passes(world, from, to);
        let last = self.samples.last().map_or(i64::MIN, |(sample, _)| sample.at_ms);
        if from.0 > last.saturating_add(self.stride_ms) || self.samples.is_empty() {
            self.take_sample(world, from);
        }
    }

    fn cycle(&mut self, world: &World, report: &CycleReport) {
        let cluster = world.engine().cluster();
        let size = cluster.nodes().len() + cluster.n_tasks() + cluster.n_jobs();
        let every = 1 + ((size / CHECKED_EACH_CYCLE) as u64).pow(2);
        if report.number.is_multiple_of(every) && self.broken.len() < MOST_BROKEN {
            self.broken.extend(
                invariants::broken(world, report).into_iter().map(|text| format!("at {}, {text}", world.now())),
            );
        }
        if self.gpu.is_none() {
            let cluster = world.engine().cluster();
            self.gpu = Some(ResourceId::GPU).filter(|gpu| cluster.totals().allocatable.get(*gpu) > 0);
        }
    }

    fn pod(&mut self, world: &World, index: usize, change: PodChange) {
        let pod = world.pod(index);
        if change == PodChange::Evicted {
            self.fairness.evicted(&world.jobs()[pod.job].queue);
        }
        let Some(node) = &pod.spec.node else { return };
        match change {
            PodChange::Bound => {
                let nodes = self.nodes_of_job.entry(pod.job).or_default();
                if nodes.len() <= MOST_NODES_NAMED {
                    nodes.insert(node.clone());
                }
                if self.too_many_spans {
                    return;
                }
                if self.record.spans.len() >= MAX_SPANS {
                    self.too_many_spans = true;
                    self.record.spans = Vec::new();
                    self.open.clear();
                    return;
                }
                let next = self.node_index.len();
                let node = *self.node_index.entry(node.clone()).or_insert(next);
                let request = &pod.spec.shape.request;
                self.open.insert(index, self.record.spans.len());
                self.record.spans.push(Span {
                    job: pod.job,
                    pod: pod.spec.name.to_string(),
                    node,
                    cpu_milli: request.get("cpu").unwrap_or(0),
                    gpu_milli: request.get(GPU_NAME).unwrap_or(0),
                    from_ms: world.now().0,
                    to_ms: -1,
                    evicted: false,
                });
            }
            PodChange::Evicted => {
                if let Some(&span) = self.open.get(&index) {
                    self.record.spans[span].evicted = true;
                }
            }
            PodChange::Ended | PodChange::Gone => {
                if let Some(span) = self.open.remove(&index) {
                    self.record.spans[span].to_ms = world.now().0;
                }
            }
            PodChange::Started => {}
        }
    }
}

/// Why a job waits, if it does: its own reason, or that of the first of its pods that has one.
fn waiting_for<'a>(world: &'a World, job: &Job) -> Option<&'a Standing> {
    if job.deleted || job.finished.is_some() {
        return None;
    }
    let (cluster, reasons) = (world.engine().cluster(), world.engine().reasons());
    let id = cluster.find_job(&job.namespace, &job.name);
    let waits = |pod: &&krafla_model::PodSpec| pod.node.is_none();
    let mut waiting = job.pods.iter().filter(|&&i| !world.pod(i).gone).map(|&i| &world.pod(i).spec).filter(waits);
    // What is about pods that all have a place keeps nobody waiting.
    if job.alive > 0 && waiting.clone().next().is_none() {
        return None;
    }
    let of_job = id.and_then(|id| reasons.job(id));
    of_job.or_else(|| waiting.find_map(|pod| reasons.task(cluster.find_task(&pod.uid)?, id)))
}

fn job_record(
    world: &World,
    job: &Job,
    queues: &[Name],
    waiting: Option<(String, String, i64)>,
    on_nodes: Vec<String>,
) -> JobRecord {
    let pods = || job.pods.iter().filter(|&&i| !world.pod(i).replaced);
    let sum = |resource| -> i64 { pods().map(|&i| world.pod(i).spec.shape.request.get(resource).unwrap_or(0)).sum() };
    let state = match () {
        () if job.finished.is_some() => JobState::Finished,
        () if job.deleted || (job.alive == 0 && !job.pods.is_empty()) => JobState::Failed,
        () if job.holding > 0 && job.holding + job.succeeded >= job.min_member => JobState::Running,
        () => JobState::Pending,
    };
    JobRecord {
        namespace: job.namespace.to_string(),
        name: job.name.to_string(),
        queue: queues.binary_search(&job.queue).unwrap_or(0),
        kind: job.kind.clone(),
        pods: u32::try_from(pods().count()).unwrap_or(u32::MAX),
        width: job.min_member,
        cpu_milli: sum("cpu"),
        gpu_milli: sum(GPU_NAME),
        submitted_ms: job.submitted.0,
        started_ms: job.placed.map(|at| at.0),
        finished_ms: job.finished.map(|at| at.0),
        state,
        evictions: job.evictions,
        lost_gpu: job.lost_gpu,
        waiting,
        on_nodes,
    }
}
