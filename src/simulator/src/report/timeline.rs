//! Who held which node when: a row a node, a bar a pod.

use std::fmt::Write as _;

use minijinja::HtmlEscape;

use super::lanes::{Item, Piece, fill};
use super::names::clip;
use super::names::point;
use super::palette::Palette;
use super::stats::count;
use super::svg::{Chart, Key, Plot, px};
use crate::record::{NodeRecord, Record, Span};

/// With more rows than this each would be thinner than a line of text.
pub(super) const MAX_NODES: usize = 60;
/// Above this many bars, they get no gaps and no labels, which would hide them.
const DENSE: usize = 3_000;
/// Pixels of a letter on a bar, on average and a little more.
const LETTER: f64 = 5.9;
/// The thinnest pod, in thousandths of its node: one that asks for nearly nothing can still be seen.
const THINNEST: i64 = 40;

/// The timeline of the nodes. `None` if the record has no spans or too many nodes.
pub(super) fn timeline(record: &Record) -> Option<Chart> {
    let n = record.nodes.len();
    if record.spans.is_empty() || n == 0 || n > MAX_NODES {
        return None;
    }
    let longest = record.nodes.iter().map(|node| node.name.chars().count()).max().unwrap_or(0).min(24);
    let row_height = (520.0 / count(n)).clamp(15.0, 62.0);
    let mut plot = Plot::new(count(longest) * 7.0 + 16.0, row_height * count(n), record.end_ms, 1.0);
    plot.time_axis();

    let mut bars: Vec<String> = vec![String::new(); record.queues.len().max(1)];
    let mut labels = bars.clone();
    let mut ends = String::new();
    for (row, node) in record.nodes.iter().enumerate() {
        let top = plot.top + row_height * count(row);
        let bar = (top + 2.0, row_height - 4.0);
        plot.text("te", plot.left - 8.0, top + row_height / 2.0 + 4.0, &clip(&node.name, 24));
        plot.push(&plot.row(bar.0, bar.1));
        for (span, shapes) in placed(record, row, node, bar) {
            let queue = record.jobs.get(span.job).map_or(0, |job| job.queue).min(bars.len() - 1);
            bars[queue] += &draw(&plot, record, span, &shapes);
            if record.spans.len() <= DENSE {
                labels[queue] += &label(&plot, record, span, &shapes);
            }
            if span.evicted {
                let x = px(plot.x(span.to_ms) - 1.0);
                ends.extend(shapes.iter().map(|&(y, h)| format!("M{x} {}v{}", px(y), px(h))));
            }
        }
    }
    let dense = if record.spans.len() > DENSE { "" } else { " class=gaps" };
    let palette = Palette::of(record);
    plot.push(&stripes(&palette));
    for (queue, bars) in bars.iter().enumerate().filter(|(_, bars)| !bars.is_empty()) {
        plot.push(&format!("<g{dense}><g class={}>{bars}</g></g>", palette.class(queue)));
    }
    for (queue, labels) in labels.iter().enumerate().filter(|(_, labels)| !labels.is_empty()) {
        plot.push(&format!("<g class=\"on o{}\">{labels}</g>", palette.colour(queue)));
    }
    let mut legend = palette.legend(record);
    if !ends.is_empty() {
        plot.push(&format!("<path class=evicted d=\"{ends}\"/>"));
        legend.push(Key::new("evict", "evicted"));
    }
    let svg = plot.finish("Which pods ran on which node over time");
    Some(Chart { svg, legend, note: String::new() })
}

/// A vertical extent: from, and how tall.
type Extent = (f64, f64);

/// The spans of a node with the extents that they are drawn in.
fn placed<'a>(record: &'a Record, row: usize, node: &NodeRecord, bar: Extent) -> Vec<(&'a Span, Vec<Extent>)> {
    let spans: Vec<&Span> = record.spans.iter().filter(|span| span.node == row).collect();
    let items: Vec<Item> =
        spans.iter().map(|span| Item { from_ms: span.from_ms, to_ms: span.to_ms, size: part_of(span, node) }).collect();
    let lanes = fill(&items);
    let scale = bar.1 / f64::from(lanes.height);
    let extent = |piece: &Piece| (bar.0 + f64::from(piece.at) * scale, f64::from(piece.size) * scale);
    spans.into_iter().zip(lanes.pieces.iter().map(|pieces| pieces.iter().map(extent).collect())).collect()
}

/// What a pod takes of its node, in thousandths of the resource of which it takes most.
fn part_of(span: &Span, node: &NodeRecord) -> u32 {
    let part = |amount: i64, all: i64| if all > 0 { amount.saturating_mul(1000) / all } else { 0 };
    let most = part(span.cpu_milli, node.cpu_milli).max(part(span.gpu_milli, node.gpus.saturating_mul(1000)));
    u32::try_from(most.clamp(THINNEST, 1000)).unwrap_or(1000)
}

/// A bar. Paths and short titles, as there can be twenty thousand of them.
fn draw(plot: &Plot, record: &Record, span: &Span, shapes: &[Extent]) -> String {
    let x = plot.x(span.from_ms);
    // A short pod is a hair, but it is there.
    let width = px((plot.x(span.to_ms) - x).max(0.6));
    let mut path = String::from("<path d=\"");
    for (y, height) in shapes {
        // Writing to a string cannot fail.
        let _ = write!(path, "M{} {}h{width}v{}h-{width}z", px(x), px(*y), px(*height));
    }
    let job = record.jobs.get(span.job).map_or("", |job| job.name.as_str());
    let of_job = if span.pod.starts_with(job) { String::new() } else { format!(" of {job}") };
    let evicted = if span.evicted { ", evicted" } else { "" };
    let title = format!("{}{of_job}\n{} - {}{evicted}", span.pod, point(span.from_ms), point(span.to_ms));
    let _ = write!(path, "\"><title>{}</title></path>", HtmlEscape(&title));
    path
}

/// The name of the job on the bar, if the bar is large enough.
fn label(plot: &Plot, record: &Record, span: &Span, shapes: &[Extent]) -> String {
    let Some(job) = record.jobs.get(span.job) else { return String::new() };
    let x = plot.x(span.from_ms);
    let width = plot.x(span.to_ms) - x;
    let tallest = shapes.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a });
    let Some((y, height)) = tallest.filter(|(_, height)| *height >= 10.5) else { return String::new() };
    if count(job.name.chars().count()) * LETTER + 6.0 > width {
        return String::new();
    }
    format!("<text x={} y={}>{}</text>", px(x + 4.0), px(y + height / 2.0 + 3.5), HtmlEscape(&job.name))
}

/// The striped fills for queues beyond the palette.
fn stripes(palette: &Palette) -> String {
    let n = palette.n_striped();
    let pattern = |i| {
        format!(
            "<pattern id=p{i} width=8 height=8 patternUnits=userSpaceOnUse patternTransform=rotate(45)>\
             <rect class=c{i} width=8 height=8 /><path class=stripe d=\"M0 0v8\"/></pattern>"
        )
    };
    if n == 0 { String::new() } else { format!("<defs>{}</defs>", (0..n).map(pattern).collect::<String>()) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::made_up;
    use super::*;

    #[test]
    fn there_is_a_bar_for_every_pod() {
        let run = made_up();
        let chart = timeline(&run).expect("spans");
        assert_eq!(chart.svg.matches("<title>").count(), run.spans.len());
        assert_eq!(chart.legend.len(), run.queues.len() + 1, "queues and the mark of evictions");
    }

    #[test]
    fn too_many_nodes_or_no_spans_give_none() {
        let mut run = made_up();
        let node = run.nodes[0].clone();
        run.nodes.resize(MAX_NODES + 1, node);
        assert!(timeline(&run).is_none());
        assert!(timeline(&Record { spans: Vec::new(), ..made_up() }).is_none());
    }

    #[test]
    fn a_pod_takes_the_part_of_its_scarcest_resource() {
        let run = made_up();
        let (node, span) = (&run.nodes[0], &run.spans[0]);
        for (cpu_milli, gpu_milli, want) in
            [(96_000, 0, 1000), (48_000, 2_000, 500), (1, 4_000, 500), (1, 0, 40), (0, 99_000, 1000)]
        {
            assert_eq!(part_of(&Span { cpu_milli, gpu_milli, ..span.clone() }, node), want);
        }
    }
}
