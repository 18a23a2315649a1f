//! The plots over the samples: shares, waiting pods, utilisation, and the strip that stands in for the nodes of a large
//! cluster.

use minijinja::HtmlEscape;

use super::names::words;
use super::palette::{COLOURS, Palette};
use super::series::Columns;
use super::svg::{Chart, Key, Plot, px};
use super::ticks;
use crate::record::{Record, Sample};

/// Room for the labels of amounts.
const LEFT: f64 = 48.0;
const HEIGHT: f64 = 210.0;
/// Shades of the heat strip.
const SHADES: usize = 16;
/// Reasons and resources begin in the middle of the palette, so that they are not taken for the first queues.
const FIRST_REASON: usize = 4;
const GPU_COLOUR: usize = 6;
const CPU_COLOUR: usize = 4;

/// Each queue's share of the cluster over time, with what it was due. `None` without samples or queues.
pub(super) fn shares(record: &Record) -> Option<Chart> {
    let columns = Columns::of(record)?;
    let palette = Palette::of(record);
    let shown = &palette.plain;
    if shown.is_empty() {
        return None;
    }
    let lines: Vec<(usize, Vec<f64>, Option<Vec<f64>>)> = shown
        .iter()
        .map(|&i| {
            let held = columns.values(|sample| 100.0 * sample.queues.get(i).map_or(0.0, |queue| queue.0));
            let is_due = record.samples.iter().any(|sample| due(sample, i).is_some());
            let due = is_due.then(|| columns.values(|sample| 100.0 * due(sample, i).unwrap_or(0.0)));
            (i, held, due)
        })
        .collect();
    let all = lines.iter().flat_map(|(_, held, due)| held.iter().chain(due.iter().flatten()));
    let marks = ticks::amounts(all.copied().fold(1.0, f64::max));
    let mut plot = Plot::new(LEFT, HEIGHT, record.end_ms, marks[marks.len() - 1]);
    plot.amount_axis(&marks, "%");
    plot.time_axis();
    let mut legend = Vec::new();
    for (i, held, due) in &lines {
        let colour = palette.colour(*i);
        let name = &record.queues[*i].name;
        if let Some(due) = due {
            let path = plot.steps(&columns.starts_ms, due);
            plot.push(&format!(
                "<path class=\"line due l{colour}\" d=\"{path}\"><title>{}: due</title></path>",
                HtmlEscape(name)
            ));
        }
        let path = plot.steps(&columns.starts_ms, held);
        plot.push(&format!("<path class=\"line l{colour}\" d=\"{path}\"><title>{}</title></path>", HtmlEscape(name)));
        legend.push(Key::new(format!("c{colour}"), name));
    }
    if lines.iter().any(|(_, _, due)| due.is_some()) {
        legend.push(Key::new("dash", "dashed: what the queue was due"));
    }
    let left_out = record.queues.len() - shown.len();
    let note = match left_out {
        0 => String::new(),
        n => format!("The {COLOURS} queues with the largest shares; {n} more are in the table."),
    };
    Some(Chart { svg: plot.finish("Share of the cluster that each queue held over time"), legend, note })
}

fn due(sample: &Sample, queue: usize) -> Option<f64> {
    sample.queues.get(queue)?.1
}

/// Pods that wait over time, by reason. `None` if none ever waits.
pub(super) fn waiting(record: &Record) -> Option<Chart> {
    let columns = Columns::of(record)?;
    let mut codes: Vec<&str> =
        record.samples.iter().flat_map(|sample| sample.waiting.iter().map(|(code, _)| code.as_str())).collect();
    codes.sort_unstable();
    codes.dedup();
    let count = |sample: &Sample, code: &str| -> f64 {
        sample.waiting.iter().find(|(other, _)| other == code).map_or(0.0, |(_, pods)| f64::from(*pods))
    };
    let mut layers: Vec<(String, Vec<f64>)> =
        codes.iter().map(|code| (words(code), columns.values(|sample| count(sample, code)))).collect();
    // The most frequent reason lies at the bottom, where it is easiest to read; few colours, so rare ones go together.
    layers.sort_by(|a, b| b.1.iter().sum::<f64>().total_cmp(&a.1.iter().sum()));
    if layers.len() > COLOURS {
        let rest = layers.split_off(COLOURS - 1);
        let sum = rest.into_iter().map(|(_, values)| values).reduce(|a, b| added(&a, &b)).unwrap_or_default();
        layers.push(("other reasons".to_owned(), sum));
    }
    let whole = layers.iter().map(|(_, values)| values.clone()).reduce(|a, b| added(&a, &b))?;
    let max = whole.iter().copied().fold(0.0, f64::max);
    if max <= 0.0 {
        return None;
    }
    // Pods are whole: no marks between them.
    let marks = ticks::amounts(max.max(4.0));
    let mut plot = Plot::new(LEFT, HEIGHT, record.end_ms, marks[marks.len() - 1]);
    plot.amount_axis(&marks, "");
    plot.time_axis();
    let mut lower = vec![0.0; whole.len()];
    let mut legend = Vec::new();
    for (i, (name, values)) in layers.iter().enumerate() {
        let colour = (FIRST_REASON + i) % COLOURS;
        let upper = added(&lower, values);
        let path = plot.area(&columns.starts_ms, &lower, &upper);
        plot.push(&format!("<path class=\"c{colour} area\" d=\"{path}\"><title>{}</title></path>", HtmlEscape(name)));
        legend.push(Key::new(format!("c{colour}"), name));
        lower = upper;
    }
    Some(Chart { svg: plot.finish("Pods that waited over time, by reason"), legend, note: String::new() })
}

fn added(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// CPU and GPU in use over time. `None` without samples.
pub(super) fn utilisation(record: &Record) -> Option<Chart> {
    let columns = Columns::of(record)?;
    let marks = [0.0, 25.0, 50.0, 75.0, 100.0];
    let mut plot = Plot::new(LEFT, HEIGHT, record.end_ms, 100.0);
    plot.amount_axis(&marks, "%");
    plot.time_axis();
    let mut legend = Vec::new();
    for (name, value, colour) in resources(record) {
        let values = columns.values(|sample| 100.0 * value(sample));
        let zero = vec![0.0; values.len()];
        let area = plot.area(&columns.starts_ms, &zero, &values);
        let line = plot.steps(&columns.starts_ms, &values);
        plot.push(&format!("<path class=\"c{colour} faint\" d=\"{area}\"/>"));
        plot.push(&format!("<path class=\"line l{colour}\" d=\"{line}\"><title>{name}</title></path>"));
        let mean = 100.0 * columns.mean(value);
        legend.push(Key::new(format!("c{colour}"), format!("{name}, {mean:.0} % on average")));
    }
    Some(Chart { svg: plot.finish("CPU and GPU in use over time"), legend, note: String::new() })
}

/// What is used, on average over the run: name and fraction; the scarcest kind first.
pub(super) fn mean_use(record: &Record) -> Vec<(&'static str, f64)> {
    let Some(columns) = Columns::of(record) else { return Vec::new() };
    resources(record).into_iter().map(|(name, value, _)| (name, columns.mean(value))).collect()
}

type Value = fn(&Sample) -> f64;

/// Name, value and colour; GPU only if the cluster has some.
fn resources(record: &Record) -> Vec<(&'static str, Value, usize)> {
    let mut resources: Vec<(&'static str, Value, usize)> = vec![("CPU", |sample| sample.cpu_used, CPU_COLOUR)];
    if record.nodes.iter().any(|node| node.gpus > 0) {
        resources.insert(0, ("GPU", |sample| sample.gpu_used, GPU_COLOUR));
    }
    resources
}

/// A strip for each resource and each of the largest queues, darker where more is in use. `None` without samples.
pub(super) fn heat(record: &Record) -> Option<Chart> {
    let columns = Columns::of(record)?;
    let mut rows: Vec<(String, Vec<f64>)> =
        resources(record).into_iter().map(|(name, value, _)| (name.to_owned(), columns.values(value))).collect();
    rows.extend(Palette::of(record).plain.into_iter().map(|i| {
        let held = columns.values(|sample| sample.queues.get(i).map_or(0.0, |queue| queue.0));
        (super::names::clip(&record.queues[i].name, 18), held)
    }));
    let row_height = 22.0;
    let height = row_height * super::stats::count(rows.len());
    let mut plot = Plot::new(130.0, height, record.end_ms, 1.0);
    plot.time_axis();
    for (row, (name, values)) in rows.iter().enumerate() {
        let y = plot.top + row_height * super::stats::count(row);
        plot.text("te", plot.left - 8.0, y + 15.0, name);
        plot.push(&plot.row(y, row_height - 2.0));
        for (shade, path) in shades(&plot, &columns, values, y, row_height - 2.0).iter().enumerate().skip(1) {
            if !path.is_empty() {
                let opacity = px(super::stats::count(shade * 100 / SHADES));
                plot.push(&format!("<path class=c0 fill-opacity={opacity}% d=\"{path}\"/>"));
            }
        }
    }
    let legend = vec![Key::new("ramp", "nothing to everything in use")];
    Some(Chart { svg: plot.finish("Use of the cluster over time"), legend, note: String::new() })
}

/// One path a shade, over all columns of that shade.
fn shades(plot: &Plot, columns: &Columns<'_>, values: &[f64], y: f64, height: f64) -> Vec<String> {
    let mut paths = vec![String::new(); SHADES + 1];
    let shade_of = |value: f64| (1..=SHADES).take_while(|&s| super::stats::count(s) - 0.5 <= value * 16.0).count();
    let shades: Vec<usize> = values.iter().map(|&value| shade_of(value)).collect();
    let mut from = 0;
    for run in shades.chunk_by(|a, b| a == b) {
        let to = from + run.len();
        let x = plot.x(columns.starts_ms[from]);
        let until = columns.starts_ms.get(to).map_or_else(|| plot.x(i64::MAX), |&start_ms| plot.x(start_ms));
        let (w, h) = (px(until - x), px(height));
        paths[run[0]] += &format!("M{} {}h{w}v{h}h-{w}z", px(x), px(y));
        from = to;
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::super::testing::{made_up, many_queues};
    use super::*;

    #[test]
    fn without_samples_there_is_nothing_to_plot() {
        let run = Record::default();
        assert!(shares(&run).is_none() && waiting(&run).is_none() && utilisation(&run).is_none());
        assert!(heat(&run).is_none() && mean_use(&run).is_empty());
    }

    #[test]
    fn reasons_beyond_the_palette_go_together() {
        let mut run = made_up();
        for sample in &mut run.samples {
            sample.waiting = (0..25).map(|i| (format!("Code{i:02}"), 25 - i)).collect();
        }
        let legend: Vec<String> = waiting(&run).expect("pods wait").legend.into_iter().map(|key| key.name).collect();
        assert_eq!(legend.len(), COLOURS);
        assert_eq!((legend[0].as_str(), legend[COLOURS - 1].as_str()), ("code00", "other reasons"));
    }

    #[test]
    fn many_queues_show_the_largest() {
        let chart = shares(&many_queues(14)).expect("samples");
        assert_eq!(chart.note, "The 10 queues with the largest shares; 4 more are in the table.");
        assert_eq!(chart.legend.len(), COLOURS);
    }
}
