//! Records for the tests: a few words a job, and one made-up afternoon of a GPU cluster.

use crate::fairness::{Means, QueueFairness, Stretch, Trend};
use crate::record::{JobRecord, JobState, NodeRecord, QueueRecord, Record, Sample, Span};

/// A finished job of queue 0 that asks for nothing.
pub(super) fn job(name: &str, width: u32) -> JobRecord {
    JobRecord {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        queue: 0,
        kind: String::new(),
        pods: width,
        width,
        cpu_milli: 0,
        gpu_milli: 0,
        submitted_ms: 0,
        started_ms: None,
        finished_ms: None,
        state: JobState::Finished,
        evictions: 0,
        lost_gpu: 0,
        waiting: None,
        on_nodes: Vec::new(),
    }
}

impl JobRecord {
    /// Its times, in seconds.
    pub(super) fn times(mut self, submitted: i64, started: Option<i64>, finished: Option<i64>) -> Self {
        self.submitted_ms = submitted * 1000;
        self.started_ms = started.map(|s| s * 1000);
        self.finished_ms = finished.map(|s| s * 1000);
        self
    }

    /// Its state.
    pub(super) const fn state(mut self, state: JobState) -> Self {
        self.state = state;
        self
    }

    /// It waits.
    pub(super) fn waits(mut self, code: &str, text: &str, since: i64) -> Self {
        self.waiting = Some((code.to_owned(), text.to_owned(), since * 1000));
        self.state(JobState::Pending)
    }

    /// Where it ran.
    pub(super) fn on(mut self, nodes: &[&str]) -> Self {
        self.on_nodes = nodes.iter().map(|&node| node.to_owned()).collect();
        self
    }
}

/// A run of these jobs, with one queue, that ends when the last of them does.
pub(super) fn record(jobs: Vec<JobRecord>) -> Record {
    let last = |job: &JobRecord| job.finished_ms.or(job.started_ms).unwrap_or(job.submitted_ms);
    Record {
        end_ms: jobs.iter().map(last).max().unwrap_or(0),
        queues: vec![QueueRecord {
            name: "main".to_owned(),
            weight: 1,
            mean_share: 0.5,
            mean_due: None,
            fairness: None,
        }],
        jobs,
        ..Record::default()
    }
}

const NODES: usize = 8;
const GPUS: i64 = 8;
const END_MS: i64 = 4 * 3_600_000;
const TEAMS: [(&str, u32); 3] = [("research", 3), ("vision", 2), ("batch", 1)];

/// Three teams, eight nodes of eight GPUs, sixty jobs over four hours; placed first come, first served with skipping.
pub(super) fn made_up() -> Record {
    let mut dice = Dice(7);
    let mut record = Record {
        title: "made-up afternoon: 3 teams on 8 nodes with 8 GPUs each".to_owned(),
        notes: vec![
            "60 jobs made by a seeded generator; offered load 1.10 of the cluster's GPUs.".to_owned(),
            "Run times are known to the simulator only; no estimates were given to the scheduler.".to_owned(),
        ],
        problems: vec!["jobs.csv:17: `gpus` is `eight`, not a number; the row was left out".to_owned()],
        end_ms: END_MS,
        cycles: 1204,
        nodes: (0..NODES)
            .map(|i| NodeRecord { name: format!("gpu-{i}"), cpu_milli: 96_000, gpus: GPUS, memory_bytes: 1 << 40 })
            .collect(),
        ..Record::default()
    };
    for (name, weight) in TEAMS {
        let mean_due = Some(f64::from(weight) / 6.0);
        record.queues.push(QueueRecord { name: name.to_owned(), weight, mean_share: 0.0, mean_due, fairness: None });
    }
    let mut todo: Vec<(usize, i64, i64)> = Vec::new();
    let mut submitted: Vec<i64> = (0..60).map(|_| dice.below(END_MS * 8 / 10)).collect();
    submitted.sort_unstable();
    for (i, submitted_ms) in submitted.into_iter().enumerate() {
        let queue = dice.pick(&[0, 0, 0, 1, 1, 2, 2]);
        let (width, gpus) = dice.pick(&[(1, 1), (1, 2), (1, 4), (2, 8), (2, 4), (4, 8), (8, 1), (4, 2), (1, 0)]);
        let kind = dice.pick(&["train", "eval", "sweep", "etl"]);
        let mut job = job(&format!("{kind}-{}-{i:02}", dice.pick(&["bert", "resnet", "llm", "seg"])), width);
        job.queue = queue;
        job.namespace = TEAMS[queue].0.to_owned();
        job.kind = kind.to_owned();
        job.submitted_ms = submitted_ms;
        job.gpu_milli = i64::from(width) * gpus * 1000;
        job.cpu_milli = i64::from(width) * (gpus * 8 + 4) * 1000;
        job.state = JobState::Pending;
        record.jobs.push(job);
        todo.push((i, gpus, 300_000 + dice.below(4_000_000)));
    }
    play(&mut record, &todo);
    record.queues[1].fairness = Some(QueueFairness { waited_ms: 600_000, evictions: 2, ..QueueFairness::default() });
    record.queues[2].fairness = Some(short());
    let columns = |gap: f64| (0..240).map(|_| Means { held: 0.2, due: 0.2 + gap, gap }).collect();
    record.trend = Some(Trend { column_ms: 60_000, queues: vec![columns(0.0), columns(0.0), columns(0.1)] });
    record
}

/// A queue that lacked a tenth of the cluster for half of the time in which it waited.
fn short() -> QueueFairness {
    QueueFairness {
        waited_ms: 3_600_000,
        mean_gap: 0.06,
        largest_gap: 0.125,
        largest_gap_at_ms: 1_200_000,
        short_ms: 1_800_000,
        short_stretches: 2,
        usable_ms: 900_000,
        longest: Some(Stretch {
            from_ms: 1_200_000,
            length_ms: 1_500_000,
            largest_gap: 0.1,
            job: "llm-07".to_owned(),
            code: "NotEnoughResources".to_owned(),
            text: "0 of 4 members can be placed".to_owned(),
        }),
        reasons: vec![("NotEnoughResources".to_owned(), 0.9), ("QueueOverused".to_owned(), 0.1)],
        evictions: 0,
    }
}

/// The made-up afternoon with `n` queues, `q00` and on, each with a larger share than the one before.
pub(super) fn many_queues(n: u32) -> Record {
    let mut run = made_up();
    let queue = |i: u32| QueueRecord {
        name: format!("q{i:02}"),
        weight: 1,
        mean_share: f64::from(i) / f64::from(n * n),
        mean_due: None,
        fairness: None,
    };
    run.queues = (0..n).map(queue).collect();
    for (i, job) in run.jobs.iter_mut().enumerate() {
        job.queue = i % run.queues.len();
    }
    for sample in &mut run.samples {
        sample.queues = run.queues.iter().map(|queue| (queue.mean_share * sample.gpu_used, None)).collect();
    }
    run
}

/// The made-up cluster with `n` short pods of all of its jobs in turn, on 48 nodes.
pub(super) fn many_pods(n: i64) -> Record {
    let mut run = made_up();
    let mut dice = Dice(11);
    let node = run.nodes[0].clone();
    run.nodes = (0..48).map(|i| NodeRecord { name: format!("gpu-{i:02}"), ..node.clone() }).collect();
    let slots = 48 * GPUS;
    let spans = (0..n).map(|i| {
        let from_ms = i / slots * (END_MS * slots / n) + dice.below(60_000);
        let job = usize::try_from(i % 60).expect("small");
        Span {
            job,
            pod: format!("{}-worker-{i}", run.jobs[job].name),
            node: usize::try_from(i % 48).expect("small"),
            cpu_milli: 12_000,
            gpu_milli: 1_000,
            from_ms,
            to_ms: (from_ms + END_MS * slots / n - dice.below(100_000)).min(END_MS),
            evicted: false,
        }
    });
    run.spans = spans.collect();
    run.spans.sort_by_key(|span| span.from_ms);
    run
}

/// Places each job when its gang fits, minute by minute.
fn play(record: &mut Record, todo: &[(usize, i64, i64)]) {
    for minute in 0..END_MS / 60_000 {
        let now = minute * 60_000;
        let mut free = [GPUS; NODES];
        for span in record.spans.iter().filter(|span| span.to_ms > now) {
            free[span.node] -= span.gpu_milli / 1000;
        }
        for &(i, gpus, run_ms) in todo {
            let job = &mut record.jobs[i];
            if job.submitted_ms > now || job.started_ms.is_some() {
                continue;
            }
            let mut left = free;
            let places: Vec<usize> = (0..job.width)
                .filter_map(|_| {
                    let node = (0..NODES).find(|&n| left[n] >= gpus)?;
                    left[node] -= gpus;
                    Some(node)
                })
                .collect();
            if places.len() < usize::try_from(job.width).expect("small") {
                let text =
                    format!("{} of {} members can be placed; 8 nodes: too few free GPUs", places.len(), job.width);
                let code = if i % 3 == 0 { "QueueOverused" } else { "NotEnoughResources" };
                let since = job.waiting.take().map_or(now, |(_, _, since)| since);
                job.waiting = Some((code.to_owned(), text, since));
                continue;
            }
            free = left;
            let end = now + run_ms;
            job.waiting = None;
            job.started_ms = Some(now);
            job.state = if end < END_MS { JobState::Finished } else { JobState::Running };
            job.finished_ms = (end < END_MS).then_some(end);
            let mut on: Vec<String> = places.iter().map(|&n| record.nodes[n].name.clone()).collect();
            on.dedup();
            job.on_nodes = on;
            for (k, &node) in places.iter().enumerate() {
                record.spans.push(Span {
                    job: i,
                    pod: format!("{}-worker-{k}", job.name),
                    node,
                    cpu_milli: (gpus * 8 + 4) * 1000,
                    gpu_milli: gpus * 1000,
                    from_ms: now,
                    to_ms: end.min(END_MS),
                    evicted: i == 20,
                });
            }
        }
        sample(record, now);
    }
    let evicted = record.spans.iter().filter(|span| span.evicted).count();
    record.evictions = u64::try_from(evicted).expect("small");
    record.decisions = u64::try_from(record.spans.len()).expect("small");
    for (i, queue) in record.queues.iter_mut().enumerate() {
        queue.mean_share = super::stats::mean(&record.samples.iter().map(|s| s.queues[i].0).collect::<Vec<_>>());
    }
}

fn sample(record: &mut Record, now: i64) {
    let all = super::stats::number(i64::try_from(NODES).expect("small"));
    let held = |amount: fn(&Span) -> i64, queue: Option<usize>| -> f64 {
        let spans = record.spans.iter().filter(|s| s.from_ms <= now && s.to_ms > now);
        let spans = spans.filter(|s| queue.is_none_or(|queue| record.jobs[s.job].queue == queue));
        super::stats::number(spans.map(amount).sum())
    };
    let mut waiting = std::collections::BTreeMap::<String, u32>::new();
    for job in &record.jobs {
        if let Some((code, _, _)) = &job.waiting {
            *waiting.entry(code.clone()).or_default() += job.pods;
        }
    }
    let sample = Sample {
        at_ms: now,
        cpu_used: held(|s| s.cpu_milli, None) / (all * 96_000.0),
        gpu_used: held(|s| s.gpu_milli, None) / (all * 8_000.0),
        queues: (0..TEAMS.len())
            .map(|i| (held(|s| s.gpu_milli, Some(i)) / (all * 8_000.0), record.queues[i].mean_due))
            .collect(),
        waiting: waiting.into_iter().collect(),
    };
    record.samples.push(sample);
}

/// A linear congruential generator, with Knuth's constants for MMIX; good enough to look at.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let n = i64::try_from(from.len()).expect("small");
        from[usize::try_from(self.below(n)).expect("small")]
    }
}
