//! The tables of a run, for a terminal: plain text without colour, at most as wide as asked.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Row, Table, TableStyle};

use super::fairness::{a_day, accounts, explanations, short_part, usable_part, verdict};
use super::names::{clip, fold, point, span};
use super::queues::queue_jobs;
use super::summary::Summary;
use super::waits::waits_by_width;
use crate::record::{JobRecord, JobState, Record};

/// Rows of the tables of jobs: a screenful, above which JSON or the HTML page serves better.
const MAX_ROWS: usize = 40;
/// Names longer than this are clipped, so that eight columns fit 100 characters.
const MAX_NAME: usize = 28;
/// What stands where there is nothing.
const NONE: &str = "-";

/// All tables, one under the other. Tables with nothing to say are left out.
pub fn all(record: &Record, summary: &Summary, width: u16) -> String {
    let parts = [
        headline(record, summary, width),
        jobs(record, width),
        queues(record, width),
        fairness(record, width),
        list("Gaps and their reasons", &explanations(record), width),
        waits(record, summary, width),
        waiting(record, width),
        list("Notes", &record.notes, width),
        list("Problems", &record.problems, width),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// The title and the summary.
pub fn headline(record: &Record, summary: &Summary, width: u16) -> String {
    let counted = summary.finished - summary.warmup_jobs;
    let wait = |seconds| if counted == 0 { NONE.to_owned() } else { span(seconds) };
    let slowdown = if counted == 0 { NONE.to_owned() } else { format!("{:.2}", summary.mean_bounded_slowdown) };
    let makespan = if summary.finished == 0 { NONE.to_owned() } else { span(summary.makespan_seconds) };

    let mut table = table(width, &[("", L), ("mean", R), ("p50", R), ("p99", R), ("max", R)]);
    table.add_row(cells([
        "wait".to_owned(),
        wait(summary.mean_wait_seconds),
        wait(summary.p50_wait_seconds),
        wait(summary.p99_wait_seconds),
        wait(summary.max_wait_seconds),
    ]));
    let completion = [wait(summary.mean_jct_seconds), String::new(), wait(summary.p99_jct_seconds), String::new()];
    table.add_row(cells(["completion".to_owned()].into_iter().chain(completion)));
    table.add_row(cells(["bounded slowdown".to_owned(), slowdown, String::new(), String::new(), String::new()]));

    let failed = if summary.failed == 0 { String::new() } else { format!(" ({} of them badly)", summary.failed) };
    let running = match record.n_running() {
        0 => String::new(),
        n => format!("{n} running, "),
    };
    let warmup = match summary.warmup_jobs {
        0 => String::new(),
        n => format!("; the first {n} to finish are left out of the averages"),
    };
    let lost = match summary.evictions {
        0 => String::new(),
        _ => format!(", {:.1} GPU-hours lost to restarts", summary.lost_gpu_hours),
    };
    let lines = [
        record.title.clone(),
        format!(
            "{} of {} jobs ended{failed}, {running}{} still waiting{warmup}",
            summary.finished, summary.jobs, summary.pending
        ),
        format!("virtual time {}, makespan {makespan}", point(record.end_ms)),
        format!("{} cycles, {} decisions, {} evictions{lost}", summary.cycles, summary.decisions, summary.evictions),
    ];
    let lines: Vec<String> = lines.iter().map(|line| clip(line, usize::from(width))).collect();
    format!("{}\n\n{}", lines.join("\n"), finish("", &table, ""))
}

/// Who ran where and when: the first jobs by submission, then those further down that wait, which are what one looks for.
pub fn jobs(record: &Record, width: u16) -> String {
    if record.jobs.is_empty() {
        return String::new();
    }
    let columns = [
        ("job", L),
        ("queue", L),
        ("gang/pods", R),
        ("submitted", R),
        ("started", R),
        ("waited", R),
        ("ended", R),
        ("nodes", L),
    ];
    let mut table = table(width, &columns);
    for job in shown(&record.jobs) {
        let started = job.started_ms.map_or_else(|| NONE.to_owned(), point);
        let waited_until = job.started_ms.unwrap_or(record.end_ms);
        let ended = match (job.state, job.finished_ms) {
            (JobState::Pending, _) => "waits".to_owned(),
            (JobState::Running, _) => "runs".to_owned(),
            (JobState::Finished, Some(at)) => point(at),
            (JobState::Failed, Some(at)) => format!("failed {}", point(at)),
            (JobState::Finished, None) => "ended".to_owned(),
            (JobState::Failed, None) => "failed".to_owned(),
        };
        table.add_row(cells([
            clip(&job.name, MAX_NAME),
            clip(queue_name(record, job), MAX_NAME),
            format!("{}/{}", job.width, job.pods),
            point(job.submitted_ms),
            started,
            point(waited_until - job.submitted_ms),
            ended,
            clip(&fold(&job.on_nodes), MAX_NAME),
        ]));
    }
    finish("Jobs", &table, &more(record.jobs.len()))
}

/// What each queue had of the cluster, against what it was due.
pub fn queues(record: &Record, width: u16) -> String {
    if record.queues.is_empty() {
        return String::new();
    }
    let columns = [("queue", L), ("weight", R), ("share", R), ("due", R), ("jobs", R), ("ended", R), ("mean wait", R)];
    let mut table = table(width, &columns);
    for (queue, jobs) in record.queues.iter().zip(queue_jobs(record)) {
        table.add_row(cells([
            clip(&queue.name, MAX_NAME),
            queue.weight.to_string(),
            percent(queue.mean_share),
            queue.mean_due.map_or_else(|| NONE.to_owned(), percent),
            jobs.jobs.to_string(),
            jobs.finished.to_string(),
            if jobs.finished == 0 { NONE.to_owned() } else { point(jobs.mean_wait_ms) },
        ]));
    }
    finish("Queues, averaged over the run", &table, "")
}

/// How far each queue was from what it was due, and the verdict.
pub fn fairness(record: &Record, width: u16) -> String {
    if accounts(record).next().is_none() {
        return String::new();
    }
    let columns = [
        ("queue", L),
        ("due", R),
        ("waited", R),
        ("mean gap", R),
        ("largest", R),
        ("short", R),
        ("longest", R),
        ("usable", R),
        ("evicted/day", R),
    ];
    let mut table = table(width, &columns);
    for (_, queue, account) in accounts(record) {
        table.add_row(cells([
            clip(&queue.name, MAX_NAME),
            queue.mean_due.map_or_else(|| NONE.to_owned(), percent),
            point(account.waited_ms),
            percent(account.mean_gap),
            percent(account.largest_gap),
            percent(short_part(account)),
            account.longest.as_ref().map_or_else(|| NONE.to_owned(), |stretch| point(stretch.length_ms)),
            percent(usable_part(account)),
            format!("{:.1}", a_day(account.evictions, record)),
        ]));
    }
    finish("What each queue lacked of its due while it waited", &table, &format!("{}\n", verdict(record)))
}

/// The waits by width of gang.
pub fn waits(record: &Record, summary: &Summary, width: u16) -> String {
    let rows = waits_by_width(record, summary);
    if rows.is_empty() {
        return String::new();
    }
    let columns = [("gang", R), ("jobs", R), ("mean", R), ("p50", R), ("p99", R), ("max", R), ("still wait", R)];
    let mut table = table(width, &columns);
    for row in rows {
        let span = |ms| if row.counted == 0 { NONE.to_owned() } else { point(ms) };
        table.add_row(cells([
            row.widths.clone(),
            row.jobs.to_string(),
            span(row.mean_ms),
            span(row.p50_ms),
            span(row.p99_ms),
            span(row.max_ms),
            row.pending.to_string(),
        ]));
    }
    finish("Waits by width of gang", &table, "")
}

/// What still waits, and why.
pub fn waiting(record: &Record, width: u16) -> String {
    let waiting: Vec<_> = record.jobs.iter().filter_map(|job| Some((job, job.waiting.as_ref()?))).collect();
    if waiting.is_empty() {
        return String::new();
    }
    let mut table = table(width, &[("job", L), ("queue", L), ("since", R), ("reason", L)]);
    for (job, (code, text, since_ms)) in waiting.iter().take(MAX_ROWS) {
        table.add_row(cells([
            clip(&job.name, MAX_NAME),
            clip(queue_name(record, job), MAX_NAME),
            point(*since_ms),
            clip(&format!("{code}: {text}"), 400),
        ]));
    }
    finish("Still waiting", &table, &more(waiting.len()))
}

/// Sentences, one under the other.
fn list(title: &str, sentences: &[String], width: u16) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let mut table = table(width, &[]);
    for sentence in sentences {
        table.add_row(cells(["-".to_owned(), clip(sentence, 400)]));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    finish(title, &table, "")
}

/// The jobs to list, in order of submission.
fn shown(jobs: &[JobRecord]) -> impl Iterator<Item = &JobRecord> {
    let first = MAX_ROWS.min(jobs.len());
    // Beyond the first, those that wait get at most half a screen more.
    let late = jobs[first..].iter().filter(|job| job.state == JobState::Pending).take(MAX_ROWS / 2);
    let n_late = late.clone().count();
    jobs[..if jobs.len() > MAX_ROWS { first - n_late } else { first }].iter().chain(late)
}

fn more(total: usize) -> String {
    if total > MAX_ROWS { format!("... and {} more\n", total - MAX_ROWS) } else { String::new() }
}

fn queue_name<'a>(record: &'a Record, job: &JobRecord) -> &'a str {
    record.queues.get(job.queue).map_or(NONE, |queue| queue.name.as_str())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

use CellAlignment::{Left as L, Right as R};

/// A table with a line under its header and nothing else drawn.
pub(crate) fn table(width: u16, columns: &[(&str, CellAlignment)]) -> Table {
    let line = LineStyle::none().fill('─').junction('─');
    let mut table = Table::new();
    table
        .load_style(TableStyle::new().header_separator(line))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    if !columns.is_empty() {
        table.set_header(columns.iter().map(|(name, _)| Cell::new(*name)));
    }
    for (column, (_, alignment)) in table.column_iter_mut().zip(columns) {
        column.set_cell_alignment(*alignment);
        column.set_padding((0, 1));
    }
    table
}

pub(crate) fn cells(texts: impl IntoIterator<Item = String>) -> Row {
    Row::from(texts.into_iter().map(Cell::new_owned).collect::<Vec<_>>())
}

pub(crate) fn finish(title: &str, table: &Table, foot: &str) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    let title = if title.is_empty() { String::new() } else { format!("{title}\n\n") };
    format!("{title}{}{foot}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::super::summary::summarize;
    use super::super::testing::{job, made_up, record};
    use super::*;

    #[test]
    fn a_small_run_reads_well() {
        let mut run = record(vec![
            job("a", 2).times(0, Some(10), Some(130)).on(&["gpu-0", "gpu-1", "gpu-2"]),
            job("b\u{7}", 4).times(60, None, None).waits("NotEnoughResources", "0 of 4 members can be placed", 60),
        ]);
        run.title = "two gangs".to_owned();
        let summary = summarize(&run, 0.0);
        let text = all(&run, &summary, 100);
        let want = "\
two gangs
1 of 2 jobs ended, 1 still waiting
virtual time 2m10s, makespan 2m10s
0 cycles, 0 decisions, 0 evictions

                   mean  p50    p99  max
─────────────────────────────────────────
wait                10s  10s    10s  10s
completion        2m10s       2m10s
bounded slowdown   1.08

Jobs

job  queue  gang/pods  submitted  started  waited  ended  nodes
────────────────────────────────────────────────────────────────────
a    main         2/2         0s      10s     10s  2m10s  gpu-[0-2]
b?   main         4/4        60s        -     70s  waits

Queues, averaged over the run

queue  weight   share  due  jobs  ended  mean wait
───────────────────────────────────────────────────
main        1  50.0 %    -     2      1        10s

Waits by width of gang

gang  jobs  mean  p50  p99  max  still wait
────────────────────────────────────────────
 2-3     1   10s  10s  10s  10s           0
 4-7     1     -    -    -    -           1

Still waiting

job  queue  since  reason
────────────────────────────────────────────────────────────────────
b?   main     60s  NotEnoughResources: 0 of 4 members can be placed
";
        assert_eq!(text, want);
    }

    #[test]
    fn tables_keep_to_the_width() {
        let run = made_up();
        let summary = summarize(&run, 0.0);
        for width in [72, 100, 140] {
            let text = all(&run, &summary, width);
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(usize::from(width)), "{widest:?} of {width}\n{text}");
        }
    }

    #[test]
    fn long_lists_end_with_a_count_and_keep_what_waits() {
        let mut list: Vec<_> = (0..60).map(|i| job(&format!("j{i}"), 1).times(i, Some(i), Some(i + 1))).collect();
        list.push(job("late", 1).times(99, None, None).waits("X", "why", 99));
        let text = jobs(&record(list), 100);
        assert_eq!(text.lines().count(), 2 + 2 + MAX_ROWS + 1);
        assert!(text.contains("late") && text.contains("j38") && !text.contains("j39"), "{text}");
        assert!(text.ends_with("... and 21 more\n"), "{text}");
    }
}
