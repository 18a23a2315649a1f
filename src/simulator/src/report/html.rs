//! The run as one page of HTML that opens anywhere: no network, no files beside it, and readable without scripts.
//!
//! All text of users goes through the template's escaping or through [`HtmlEscape`](minijinja::HtmlEscape). The page
//! forbids loads by its own policy too, so that even a mistake here could not make it call home.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::fairness;
use super::json::state_word;
use super::names::{fold, point, span};
use super::palette::Palette;
use super::plots;
use super::queues::queue_jobs;
use super::stats::ratio;
use super::summary::Summary;
use super::svg::Chart;
use super::timeline::{MAX_NODES, timeline};
use super::waits::{WidthWaits, waits_by_width};
use crate::fairness::QueueFairness;
use crate::record::{JobRecord, QueueRecord, Record};
use krafla_model::time::format_ms;

const TEMPLATE: &str = include_str!("report.html");
/// Rows of the tables of jobs: what one scrolls through; JSON has all.
const MAX_ROWS: usize = 200;

/// The page.
pub fn to_html(record: &Record, summary: &Summary) -> String {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates
        .render_named_str("report.html", TEMPLATE, Serde(Page::of(record, summary)))
        .expect("the template is part of the program, and every test of the page renders it")
}

#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    lead: String,
    cards: Vec<Card>,
    timeline: Option<Chart>,
    heat: Option<Chart>,
    why_no_timeline: String,
    shares: Option<Chart>,
    queues: Vec<QueueRow<'a>>,
    fairness: Vec<FairRow<'a>>,
    verdict: String,
    gaps: Option<Chart>,
    explanations: Vec<String>,
    waiting: Option<Chart>,
    utilisation: Option<Chart>,
    widths: Vec<WidthRow>,
    warmup: usize,
    stuck: Vec<StuckRow<'a>>,
    n_stuck: usize,
    jobs: Vec<JobRow<'a>>,
    n_jobs: usize,
    notes: &'a [String],
    problems: &'a [String],
}

impl<'a> Page<'a> {
    fn of(record: &'a Record, summary: &'a Summary) -> Self {
        let palette = Palette::of(record);
        let timeline = timeline(record);
        let heat = if timeline.is_none() { plots::heat(record) } else { None };
        let why_no_timeline = match (&heat, record.nodes.len()) {
            (None, _) => String::new(),
            (Some(_), n) if n > MAX_NODES => format!("The cluster has {n} nodes, too many for a row each."),
            (Some(_), _) => "Which pod ran where was not recorded in this run.".to_owned(),
        };
        let stuck = record.jobs.iter().filter(|job| job.waiting.is_some());
        Self {
            title: &record.title,
            lead: lead(record, summary),
            cards: cards(record, summary),
            timeline,
            heat,
            why_no_timeline,
            shares: plots::shares(record),
            queues: queues(record, &palette),
            fairness: fair_rows(record, &palette),
            verdict: fairness::verdict(record),
            gaps: fairness::gaps(record),
            explanations: fairness::explanations(record),
            waiting: plots::waiting(record),
            utilisation: plots::utilisation(record),
            widths: widths(&waits_by_width(record, summary)),
            warmup: summary.warmup_jobs,
            n_stuck: stuck.clone().count(),
            stuck: stuck.filter_map(|job| StuckRow::of(record, job)).take(MAX_ROWS).collect(),
            jobs: record.jobs.iter().take(MAX_ROWS).map(|job| JobRow::of(record, &palette, job)).collect(),
            n_jobs: record.jobs.len(),
            notes: &record.notes,
            problems: &record.problems,
        }
    }
}

/// The run in two sentences.
fn lead(record: &Record, summary: &Summary) -> String {
    let Summary { jobs, finished, pending, .. } = *summary;
    let mut text = format!("{finished} of {jobs} jobs ended within {} of virtual time", format_ms(record.end_ms));
    if summary.failed > 0 {
        text += &format!(", {} of them badly", summary.failed);
    }
    if finished > summary.warmup_jobs {
        text += &format!(". On average a job waited {} before it started", span(summary.mean_wait_seconds));
        text += &format!("; the longest wait was {}", span(summary.max_wait_seconds));
    }
    text += match pending {
        0 => ". Nothing waits at the end.".to_owned(),
        1 => ". One job still waits at the end.".to_owned(),
        n => format!(". {n} jobs still wait at the end."),
    }
    .as_str();
    text
}

#[derive(Serialize)]
struct Card {
    value: String,
    name: &'static str,
    hint: String,
}

fn cards(record: &Record, summary: &Summary) -> Vec<Card> {
    let card = |name, value: String, hint: String| Card { value, name, hint };
    let running = match record.n_running() {
        0 => String::new(),
        n => format!("{n} running, "),
    };
    let mut cards = vec![card(
        "jobs ended",
        format!("{} / {}", summary.finished, summary.jobs),
        format!("{running}{} waiting at the end", summary.pending),
    )];
    if summary.finished > summary.warmup_jobs {
        let half = span(summary.p50_wait_seconds);
        cards.push(card("mean wait", span(summary.mean_wait_seconds), format!("half waited {half} or less")));
        let most = span(summary.p99_wait_seconds);
        cards.push(card("99 % waited at most", most, format!("longest {}", span(summary.max_wait_seconds))));
        cards.push(card(
            "bounded slowdown",
            format!("{:.2}", summary.mean_bounded_slowdown),
            "1 is no wait at all".to_owned(),
        ));
        let p99 = span(summary.p99_jct_seconds);
        cards.push(card("mean completion time", span(summary.mean_jct_seconds), format!("99 % within {p99}")));
    }
    if summary.finished > 0 {
        let hint = "first submit to last end".to_owned();
        cards.push(card("makespan", span(summary.makespan_seconds), hint));
    }
    for (name, used) in plots::mean_use(record) {
        let name = if name == "GPU" { "GPUs in use" } else { "CPU in use" };
        cards.push(card(name, format!("{:.0} %", 100.0 * used), "on average".to_owned()));
    }
    let decided = format!("{} decisions in {} cycles", summary.decisions, summary.cycles);
    cards.push(card("evictions", summary.evictions.to_string(), decided));
    if summary.evictions > 0 {
        let hint = "to restarts: work done twice, and getting there".to_owned();
        cards.push(card("GPU-hours lost", format!("{:.1}", summary.lost_gpu_hours), hint));
    }
    cards
}

#[derive(Serialize)]
struct QueueRow<'a> {
    class: String,
    colour: usize,
    name: &'a str,
    weight: u32,
    share: String,
    due: Option<String>,
    share_bar: String,
    due_mark: Option<String>,
    jobs: usize,
    finished: usize,
    wait: Option<String>,
}

fn queues<'a>(record: &'a Record, palette: &Palette) -> Vec<QueueRow<'a>> {
    let amounts = record.queues.iter().flat_map(|queue| [queue.mean_share, queue.mean_due.unwrap_or(0.0)]);
    let largest = amounts.fold(1e-9, f64::max);
    let bar = |share: f64| format!("{:.1}", (100.0 * share / largest).clamp(0.0, 100.0));
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let rows = record.queues.iter().zip(queue_jobs(record)).enumerate();
    rows.map(|(i, (queue, jobs))| QueueRow {
        class: palette.class(i),
        colour: palette.colour(i),
        name: &queue.name,
        weight: queue.weight,
        share: percent(queue.mean_share),
        due: queue.mean_due.map(percent),
        share_bar: bar(queue.mean_share),
        due_mark: queue.mean_due.map(bar),
        jobs: jobs.jobs,
        finished: jobs.finished,
        wait: (jobs.finished > 0).then(|| point(jobs.mean_wait_ms)),
    })
    .collect()
}

#[derive(Serialize)]
struct FairRow<'a> {
    class: String,
    name: &'a str,
    due: String,
    waited: String,
    mean_gap: String,
    largest_gap: String,
    short: String,
    longest: Option<String>,
    usable: String,
    evictions: String,
    holds: bool,
}

fn fair_rows<'a>(record: &'a Record, palette: &Palette) -> Vec<FairRow<'a>> {
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let row = |(i, queue, account): (usize, &'a QueueRecord, &'a QueueFairness)| FairRow {
        class: palette.class(i),
        name: &queue.name,
        due: queue.mean_due.map_or_else(String::new, percent),
        waited: point(account.waited_ms),
        mean_gap: percent(account.mean_gap),
        largest_gap: percent(account.largest_gap),
        short: percent(fairness::short_part(account)),
        longest: account.longest.as_ref().map(|stretch| point(stretch.length_ms)),
        usable: percent(fairness::usable_part(account)),
        evictions: format!("{:.1}", fairness::a_day(account.evictions, record)),
        holds: account.holds(),
    };
    fairness::accounts(record).map(row).collect()
}

#[derive(Serialize)]
struct WidthRow {
    widths: String,
    jobs: usize,
    pending: usize,
    /// Mean, p50, p99 and largest wait; empty if nothing of this width ended.
    waits: Vec<String>,
    bar: String,
}

fn widths(rows: &[WidthWaits]) -> Vec<WidthRow> {
    let longest = rows.iter().map(|row| row.mean_ms).max().unwrap_or(0);
    let waits = |row: &WidthWaits| [row.mean_ms, row.p50_ms, row.p99_ms, row.max_ms].map(point).to_vec();
    rows.iter()
        .map(|row| WidthRow {
            widths: row.widths.clone(),
            jobs: row.jobs,
            pending: row.pending,
            waits: if row.counted == 0 { Vec::new() } else { waits(row) },
            bar: format!("{:.1}", 100.0 * ratio(row.mean_ms, longest)),
        })
        .collect()
}

#[derive(Serialize)]
struct StuckRow<'a> {
    job: &'a str,
    queue: &'a str,
    width: u32,
    since: String,
    code: &'a str,
    text: &'a str,
}

impl<'a> StuckRow<'a> {
    fn of(record: &'a Record, job: &'a JobRecord) -> Option<Self> {
        let (code, text, since_ms) = job.waiting.as_ref()?;
        let since = point(*since_ms);
        Some(Self { job: &job.name, queue: queue_name(record, job), width: job.width, since, code, text })
    }
}

/// A span with the milliseconds to sort by; -1 for what never happened.
#[derive(Serialize)]
struct Moment {
    ms: i64,
    text: String,
}

impl Moment {
    fn of(ms: Option<i64>) -> Self {
        Self { ms: ms.unwrap_or(-1), text: ms.map_or_else(|| "–".to_owned(), point) }
    }
}

#[derive(Serialize)]
struct JobRow<'a> {
    name: &'a str,
    class: String,
    queue: &'a str,
    width: u32,
    pods: u32,
    cpu: String,
    gpu: String,
    submitted: Moment,
    waited: Moment,
    ran: Moment,
    finished: Moment,
    state: &'static str,
    evictions: u32,
    nodes: String,
}

impl<'a> JobRow<'a> {
    fn of(record: &'a Record, palette: &Palette, job: &'a JobRecord) -> Self {
        let milli = |amount: i64| super::svg::trimmed(ratio(amount, 1000), 2);
        let waited_until = job.started_ms.unwrap_or(record.end_ms);
        let ran = job.started_ms.map(|from| job.finished_ms.unwrap_or(record.end_ms) - from);
        Self {
            name: &job.name,
            class: palette.class(job.queue),
            queue: queue_name(record, job),
            width: job.width,
            pods: job.pods,
            cpu: milli(job.cpu_milli),
            gpu: milli(job.gpu_milli),
            submitted: Moment::of(Some(job.submitted_ms)),
            waited: Moment::of(Some(waited_until - job.submitted_ms)),
            ran: Moment::of(ran),
            finished: Moment::of(job.finished_ms),
            state: state_word(job.state),
            evictions: job.evictions,
            nodes: fold(&job.on_nodes),
        }
    }
}

fn queue_name<'a>(record: &'a Record, job: &JobRecord) -> &'a str {
    record.queues.get(job.queue).map_or("", |queue| queue.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::summary::summarize;
    use super::super::tables::all;
    use super::super::testing::{job, made_up, many_pods, many_queues, record};
    use super::*;

    fn page(record: &Record) -> String {
        to_html(record, &summarize(record, 0.0))
    }

    #[test]
    fn a_page_is_the_same_twice_and_loads_nothing() {
        let run = made_up();
        let first = page(&run);
        assert_eq!(first, page(&run));
        for load in ["http:", "https:", "<script src", "<link rel=\"stylesheet", "@import", "url(h", "src="] {
            assert!(!first.contains(load), "{load}");
        }
    }

    #[test]
    #[ignore = "writes pages to look at into the folder `KRAFLA_PAGES`"]
    fn pages_to_look_at() {
        let folder = std::path::PathBuf::from(std::env::var("KRAFLA_PAGES").expect("a folder"));
        let mut many_nodes = made_up();
        let node = many_nodes.nodes[0].clone();
        many_nodes.nodes.resize(100, node);
        for (name, run) in [
            ("afternoon", made_up()),
            ("many-queues", many_queues(24)),
            ("many-nodes", many_nodes),
            ("many-pods", many_pods(20_000)),
            ("nothing", Record::default()),
        ] {
            let summary = summarize(&run, 0.1);
            std::fs::write(folder.join(format!("{name}.html")), to_html(&run, &summary)).expect("writable");
            std::fs::write(folder.join(format!("{name}.txt")), all(&run, &summary, 100)).expect("writable");
        }
    }

    #[test]
    fn names_cannot_break_out() {
        let evil = "\"><img src=x onerror=alert(1)></title><script>";
        let mut run = made_up();
        run.title = evil.to_owned();
        run.notes.push(evil.to_owned());
        run.problems.push(evil.to_owned());
        run.nodes[0].name = evil.to_owned();
        run.queues[0].name = evil.to_owned();
        for job in &mut run.jobs {
            job.name = evil.to_owned();
            job.on_nodes = vec![evil.to_owned()];
            if let Some((code, text, _)) = &mut job.waiting {
                (*code, *text) = (evil.to_owned(), evil.to_owned());
            }
        }
        if let Some(longest) = run.queues[2].fairness.as_mut().and_then(|account| account.longest.as_mut()) {
            (longest.job, longest.code, longest.text) = (evil.to_owned(), evil.to_owned(), evil.to_owned());
        }
        run.samples[0].waiting.push((evil.to_owned(), 1));
        for span in &mut run.spans {
            span.pod = evil.to_owned();
        }
        let text = page(&run);
        assert!(!text.contains("<img") && text.contains("&lt;img"));
        assert_eq!(text.matches("<script>").count(), 1, "the page's own");
    }

    #[test]
    fn pages_of_odd_runs_render() {
        let jobs_only = record(vec![job("a", 1).times(0, None, None).waits("X", "y", 0)]);
        let many_nodes = {
            let mut run = made_up();
            let node = run.nodes[0].clone();
            run.nodes.resize(100, node);
            run
        };
        for (name, run, want) in [
            ("nothing", Record::default(), "0 of 0 jobs ended"),
            ("jobs without samples", jobs_only, "One job still waits"),
            ("many nodes", many_nodes, "100 nodes, too many for a row each"),
        ] {
            assert!(page(&run).contains(want), "{name}");
        }
    }

    #[test]
    fn twenty_thousand_pods_fit_two_megabytes() {
        let run = many_pods(20_000);
        let size = page(&run).len();
        assert!(size < 2_200_000, "{size}");
    }
}
