//! How do queues fare against their dues, in numbers and words that table, JSON and page share?

use minijinja::HtmlEscape;

use super::names::{clip, point};
use super::palette::{COLOURS, Palette};
use super::stats::{number, ratio};
use super::svg::{Chart, Key, Plot};
use super::ticks;
use crate::fairness::{QueueFairness, Stretch};
use crate::record::{QueueRecord, Record};

const DAY_MS: i64 = 24 * 3_600_000;
/// Room for the labels of amounts.
const LEFT: f64 = 48.0;
const HEIGHT: f64 = 150.0;
/// Words of a reason that fit into a line.
const MAX_REASON: usize = 200;

/// The queues that are due something, with their accounts.
pub(super) fn accounts(record: &Record) -> impl Iterator<Item = (usize, &QueueRecord, &QueueFairness)> {
    record.queues.iter().enumerate().filter_map(|(i, queue)| Some((i, queue, queue.fairness.as_ref()?)))
}

/// Whether each queue had its due whenever it asked for it; `None` if no queue is due anything.
pub(super) fn sharing_incentive(record: &Record) -> Option<bool> {
    accounts(record).map(|(_, _, account)| account.holds()).reduce(|all, one| all && one)
}

/// Evictions for each day of the run.
pub(super) fn a_day(evictions: u64, record: &Record) -> f64 {
    if record.end_ms == 0 {
        return 0.0;
    }
    number(i64::try_from(evictions).unwrap_or(i64::MAX)) * number(DAY_MS) / number(record.end_ms)
}

/// The part of the time in which it waited that a queue was short.
pub(super) fn short_part(account: &QueueFairness) -> f64 {
    ratio(account.short_ms, account.waited_ms)
}

/// The part of the time in which it waited that some job of a queue would have fitted into its gap.
pub(super) fn usable_part(account: &QueueFairness) -> f64 {
    ratio(account.usable_ms, account.waited_ms)
}

/// The verdict in a sentence, with what was counted.
pub(super) fn verdict(record: &Record) -> String {
    let short: Vec<&str> =
        accounts(record).filter(|(_, _, account)| !account.holds()).map(|(_, queue, _)| queue.name.as_str()).collect();
    let of = accounts(record).count();
    match short.len() {
        0 => format!(
            "Sharing incentive holds for all {of} queues: none lacked more than one waiting job of what it was due and asked for, once others had made way."
        ),
        n => format!("Sharing incentive does not hold for {n} of {of} queues: {}.", short.join(", ")),
    }
}

/// Why queues had gaps, and the longest stretches: a sentence for each queue that had any.
pub(super) fn explanations(record: &Record) -> Vec<String> {
    let with_gap = accounts(record).filter(|(_, _, account)| !account.reasons.is_empty());
    with_gap
        .map(|(_, queue, account)| {
            let parts: Vec<String> = account
                .reasons
                .iter()
                .filter(|(_, part)| *part >= 0.005)
                .map(|(code, part)| format!("{code} {:.0} %", part * 100.0))
                .collect();
            let longest = account.longest.as_ref().map_or_else(String::new, |stretch| told(stretch, account));
            format!("{}: gap by reason: {}{longest}", queue.name, parts.join(", "))
        })
        .collect()
}

fn told(stretch: &Stretch, account: &QueueFairness) -> String {
    format!(
        "; short {} times, longest {} from {} with up to {:.1} %, when {} waited: {}",
        account.short_stretches,
        point(stretch.length_ms),
        point(stretch.from_ms),
        stretch.largest_gap * 100.0,
        stretch.job,
        clip(&stretch.text, MAX_REASON),
    )
}

/// Each queue's mean gap over time. `None` if there are no dues, or never a gap.
pub(super) fn gaps(record: &Record) -> Option<Chart> {
    let trend = record.trend.as_ref()?;
    let palette = Palette::of(record);
    let starts_ms: Vec<i64> = (0..).zip(trend.queues.first()?).map(|(k, _)| k * trend.column_ms).collect();
    let gaps = |i: usize| -> Vec<f64> { trend.queues[i].iter().map(|means| 100.0 * means.gap).collect() };
    let lines: Vec<(usize, Vec<f64>)> = palette.plain.iter().map(|&i| (i, gaps(i))).collect();
    let largest = lines.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let marks = ticks::amounts(largest);
    let mut plot = Plot::new(LEFT, HEIGHT, record.end_ms, marks[marks.len() - 1]);
    plot.amount_axis(&marks, "%");
    plot.time_axis();
    let mut legend = Vec::new();
    for (i, values) in lines.iter().filter(|(_, values)| values.iter().any(|value| *value > 0.0)) {
        let (colour, name) = (palette.colour(*i), &record.queues[*i].name);
        let path = plot.steps(&starts_ms, values);
        plot.push(&format!("<path class=\"line l{colour}\" d=\"{path}\"><title>{}</title></path>", HtmlEscape(name)));
        legend.push(Key::new(format!("c{colour}"), name));
    }
    let left_out = record.queues.len() - lines.len();
    let note = match left_out {
        0 => String::new(),
        n => format!("The {COLOURS} queues with the largest shares; {n} more are in the table."),
    };
    Some(Chart { svg: plot.finish("What each queue lacked of its due over time"), legend, note })
}

#[cfg(test)]
mod tests {
    use super::super::html::to_html;
    use super::super::json::to_json;
    use super::super::summary::summarize;
    use super::super::tables;
    use super::super::testing::{job, made_up, record};
    use super::*;

    #[test]
    fn who_lacks_something_is_named_with_numbers_and_reasons() {
        let run = made_up();
        let want = "\
What each queue lacked of its due while it waited

queue      due  waited  mean gap  largest   short  longest  usable  evicted/day
────────────────────────────────────────────────────────────────────────────────
vision  33.3 %  10m00s     0.0 %    0.0 %   0.0 %        -   0.0 %         12.0
batch   16.7 %  60m00s     6.0 %   12.5 %  50.0 %   25m00s  25.0 %          0.0
Sharing incentive does not hold for 1 of 2 queues: batch.
";
        assert_eq!(tables::fairness(&run, 100), want);
        assert_eq!(
            explanations(&run),
            [
                "batch: gap by reason: NotEnoughResources 90 %, QueueOverused 10 %; short 2 times, longest 25m00s from 20m00s \
                 with up to 10.0 %, when llm-07 waited: 0 of 4 members can be placed"
            ]
        );
    }

    #[test]
    fn page_and_json_say_the_same() {
        let run = made_up();
        let summary = summarize(&run, 0.0);
        let page = to_html(&run, &summary);
        assert!(page.contains("Sharing incentive does not hold for 1 of 2 queues: batch."));
        assert!(page.contains("What each queue lacked of its due over time"));
        let json: serde_json::Value = serde_json::from_str(&to_json(&run, &summary, None)).expect("JSON");
        assert_eq!(json["sharingIncentive"], false);
        let batch = &json["queues"][2]["fairness"];
        assert_eq!((&batch["meanGap"], &batch["shortPart"]), (&0.06.into(), &0.5.into()));
        assert_eq!(batch["gapByReason"][0]["code"], "NotEnoughResources");
        assert_eq!(
            (&json["trend"]["columnSeconds"], &json["trend"]["queues"][2]["gap"][7]),
            (&60.0.into(), &0.1.into())
        );
        assert_eq!(json["queues"][0]["fairness"], serde_json::Value::Null);
    }

    #[test]
    fn without_dues_there_is_nothing_to_say() {
        let run = record(vec![job("a", 1)]);
        assert_eq!((tables::fairness(&run, 100), sharing_incentive(&run)), (String::new(), None));
        assert!(gaps(&run).is_none() && explanations(&run).is_empty());
    }
}
