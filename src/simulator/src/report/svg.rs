//! The little of SVG that the report draws. No colours here: classes, which the page's style sheet fills for light and dark.

use std::fmt::Write as _;

use minijinja::HtmlEscape;
use serde::Serialize;

use super::stats::number;
use super::ticks;

/// Width of every plot in its own units. The page scales it.
pub(super) const WIDTH: f64 = 1100.0;

/// A plot with what has to be said beside it.
#[derive(Serialize)]
pub(super) struct Chart {
    /// The SVG element.
    pub(super) svg: String,
    /// What the colours mean.
    pub(super) legend: Vec<Key>,
    /// A sentence on what is not shown; empty if all is.
    pub(super) note: String,
}

/// An entry of a legend.
#[derive(Serialize)]
pub(super) struct Key {
    /// Class of the patch of colour.
    pub(super) class: String,
    /// What it stands for.
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(class: impl Into<String>, name: impl Into<String>) -> Self {
        Self { class: class.into(), name: name.into() }
    }
}

/// A plot over time: where its axes lie, and what has been drawn.
pub(super) struct Plot {
    /// Left edge of the drawing area.
    pub(super) left: f64,
    /// Upper edge of the drawing area.
    pub(super) top: f64,
    /// Height of the drawing area.
    pub(super) height: f64,
    end_ms: i64,
    max: f64,
    body: String,
}

impl Plot {
    const RIGHT: f64 = 14.0;
    const BELOW: f64 = 24.0;

    /// An empty plot from 0 to `end_ms` and from 0 to `max`.
    pub(super) fn new(left: f64, height: f64, end_ms: i64, max: f64) -> Self {
        Self { left, top: 8.0, height, end_ms: end_ms.max(1), max, body: String::new() }
    }

    /// Where a time lies.
    pub(super) fn x(&self, at_ms: i64) -> f64 {
        self.left + (WIDTH - self.left - Self::RIGHT) * number(at_ms.clamp(0, self.end_ms)) / number(self.end_ms)
    }

    /// Where an amount lies.
    pub(super) fn y(&self, amount: f64) -> f64 {
        self.top + self.height * (1.0 - (amount / self.max).clamp(0.0, 1.0))
    }

    /// Appends an element.
    pub(super) fn push(&mut self, element: &str) {
        self.body += element;
    }

    /// The ground of a row, as wide as the run.
    pub(super) fn row(&self, y: f64, height: f64) -> String {
        let (x, width) = (px(self.left), px(self.x(self.end_ms) - self.left));
        format!("<rect class=row x={x} y={} width={width} height={} />", px(y), px(height))
    }

    /// Appends text, escaped.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.body, "<text class={class} x={} y={}>{}</text>", px(x), px(y), HtmlEscape(text));
    }

    /// The grid of times with its labels under the plot.
    pub(super) fn time_axis(&mut self) {
        let bottom = self.top + self.height;
        let mut lines = String::new();
        for (at_ms, label) in ticks::time(self.end_ms, 12) {
            let x = self.x(at_ms);
            lines += &format!("M{} {}v{}", px(x), px(self.top), px(self.height + 4.0));
            // A label at the right edge would stick out.
            let class = if x > WIDTH - 24.0 { "te" } else { "tm" };
            let x = if class == "te" { WIDTH - 1.0 } else { x };
            self.text(class, x, bottom + 18.0, &label);
        }
        self.push(&format!("<path class=grid d=\"{lines}\"/>"));
    }

    /// The grid of amounts with its labels to the left.
    pub(super) fn amount_axis(&mut self, marks: &[f64], unit: &str) {
        let mut lines = String::new();
        for &mark in marks {
            let y = self.y(mark);
            lines += &format!("M{} {}H{}", px(self.left), px(y), px(WIDTH - Self::RIGHT));
            let label = format!("{}{unit}", trimmed(mark, 2));
            self.text("te", self.left - 6.0, y + 4.0, &label);
        }
        self.push(&format!("<path class=grid d=\"{lines}\"/>"));
    }

    /// The path of a stepped line through columns that begin at `starts_ms`, to the end of the run.
    pub(super) fn steps(&self, starts_ms: &[i64], values: &[f64]) -> String {
        let mut path = String::new();
        let mut last = String::new();
        for (&start_ms, &value) in starts_ms.iter().zip(values) {
            let (x, y) = (px(self.x(start_ms)), px(self.y(value)));
            if path.is_empty() {
                path = format!("M{x} {y}");
            } else if y != last {
                path += &format!("H{x}V{y}");
            }
            last = y;
        }
        if !path.is_empty() {
            path += &format!("H{}", px(self.x(self.end_ms)));
        }
        path
    }

    /// The area between two stepped lines.
    pub(super) fn area(&self, starts_ms: &[i64], lower: &[f64], upper: &[f64]) -> String {
        let mut path = self.steps(starts_ms, upper);
        let ends = starts_ms.iter().skip(1).copied().chain([self.end_ms]);
        let back: Vec<(i64, i64, f64)> =
            starts_ms.iter().zip(ends).zip(lower).map(|((&from, to), &value)| (from, to, value)).collect();
        let mut last = String::new();
        for (from_ms, to_ms, value) in back.into_iter().rev() {
            let y = px(self.y(value));
            if last.is_empty() {
                path += &format!("V{y}");
            } else if y != last {
                path += &format!("H{}V{y}", px(self.x(to_ms)));
            }
            if from_ms == starts_ms[0] {
                path += &format!("H{}", px(self.x(from_ms)));
            }
            last = y;
        }
        path.push('z');
        path
    }

    /// The SVG element, described by `label` for those who cannot see it.
    pub(super) fn finish(self, label: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"{}\">{}</svg>",
            px(WIDTH),
            px(self.top + self.height + Self::BELOW),
            HtmlEscape(label),
            self.body
        )
    }
}

/// A coordinate with one decimal, which is a tenth of a pixel.
pub(super) fn px(value: f64) -> String {
    trimmed(value, 1)
}

/// A number without the zeros at its end.
pub(super) fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, want) in [(0.0, "0"), (-0.01, "0"), (10.0, "10"), (1.25, "1.2"), (1.26, "1.3"), (100.04, "100")] {
            assert_eq!(px(value), want);
        }
    }

    #[test]
    fn steps_and_areas_skip_what_does_not_change() {
        // 1100 = left + 1000 + the margin to the right.
        let plot = Plot::new(1100.0 - Plot::RIGHT - 1000.0, 100.0, 1000, 1.0);
        assert_eq!(plot.steps(&[0, 100, 200, 300], &[0.0, 0.0, 1.0, 1.0]), "M86 108H286V8H1086");
        assert_eq!(plot.steps(&[], &[]), "");
        let area = plot.area(&[0, 500], &[0.0, 0.5], &[1.0, 1.0]);
        assert_eq!(area, "M86 8H1086V58H586V108H86z");
    }
}
