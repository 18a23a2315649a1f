//! Names and spans of time, shortened for people.

use std::fmt::Write as _;

use krafla_model::time::format_ms;

/// Names of nodes with their numbers folded: `gpu-0 gpu-1 gpu-2 gpu-5 login` becomes `gpu-[0-2,5] login`.
///
/// Numbers fold when the text around them and their number of padded digits agree.
pub(super) fn fold(names: &[String]) -> String {
    let mut groups: Vec<(Shape<'_>, Vec<u64>)> = Vec::new();
    for name in names {
        let (shape, number) = Shape::of(name);
        match groups.iter_mut().find(|(other, _)| *other == shape) {
            Some((_, numbers)) => numbers.extend(number),
            None => groups.push((shape, number.into_iter().collect())),
        }
    }
    let folded: Vec<String> = groups.into_iter().map(|(shape, numbers)| shape.render(numbers)).collect();
    folded.join(" ")
}

/// A name without its last number.
#[derive(PartialEq, Eq)]
struct Shape<'a> {
    before: &'a str,
    after: &'a str,
    /// Digits of a number that is padded with zeros, 0 of one that is not.
    padded: usize,
}

impl<'a> Shape<'a> {
    fn of(name: &'a str) -> (Self, Option<u64>) {
        let whole = (Self { before: name, after: "", padded: 0 }, None);
        let Some(last) = name.rfind(|c: char| c.is_ascii_digit()) else { return whole };
        let (head, after) = name.split_at(last + 1);
        let before = head.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &head[before.len()..];
        // A number of more than 19 digits is somebody's id; it stays as it is.
        let Ok(number) = digits.parse() else { return whole };
        let padded = if digits.starts_with('0') && digits.len() > 1 { digits.len() } else { 0 };
        (Self { before, after, padded }, Some(number))
    }

    fn render(&self, mut numbers: Vec<u64>) -> String {
        numbers.sort_unstable();
        numbers.dedup();
        let Self { before, after, padded } = *self;
        match numbers.as_slice() {
            [] => before.to_owned(),
            [one] => format!("{before}{one:0padded$}{after}"),
            many => format!("{before}[{}]{after}", ranges(many, padded)),
        }
    }
}

/// `0-2,5`, of ascending numbers.
fn ranges(numbers: &[u64], padded: usize) -> String {
    let mut text = String::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { "," };
        let (first, last) = (run[0], run[run.len() - 1]);
        // Writing to a string cannot fail.
        let _ = match run.len() {
            1 => write!(text, "{comma}{first:0padded$}"),
            2 => write!(text, "{comma}{first:0padded$},{last:0padded$}"),
            _ => write!(text, "{comma}{first:0padded$}-{last:0padded$}"),
        };
    }
    text
}

/// At most `max` characters, the last of them `…` if some are missing. Control characters, with which a name could play
/// tricks on a terminal, become `?`.
pub(super) fn clip(text: &str, max: usize) -> String {
    let mut clean: String = text.chars().take(max).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(max).is_some() {
        clean.pop();
        clean.push('…');
    }
    clean
}

/// A code of a reason as words: `NotEnoughResources` becomes `not enough resources`.
pub(super) fn words(code: &str) -> String {
    let mut text = String::new();
    let mut was_lower = false;
    for c in code.chars() {
        if c.is_uppercase() && was_lower {
            text.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        text.extend(c.to_lowercase());
    }
    text
}

/// A time or a span without its milliseconds, which mean nothing above ten seconds.
pub(super) fn point(ms: i64) -> String {
    format_ms(if ms >= 10_000 { ms - ms % 1000 } else { ms })
}

/// A span in seconds, as [`point`].
#[allow(clippy::cast_possible_truncation, reason = "a span of virtual time in milliseconds was an i64 before")]
pub(super) fn span(seconds: f64) -> String {
    point((seconds * 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fold() {
        for (names, want) in [
            ("", ""),
            ("gpu-3", "gpu-3"),
            ("gpu-0 gpu-1 gpu-2 gpu-3", "gpu-[0-3]"),
            ("gpu-0 gpu-1", "gpu-[0,1]"),
            ("gpu-10 gpu-2 gpu-3 gpu-4", "gpu-[2-4,10]"),
            ("gpu-0 login gpu-1 gpu-2 gpu-7", "gpu-[0-2,7] login"),
            ("n001 n002 n003", "n[001-003]"),
            ("n01 n1", "n01 n1"),
            ("a1.zone b1.zone a2.zone", "a[1,2].zone b1.zone"),
            ("x-99999999999999999999999", "x-99999999999999999999999"),
        ] {
            let list: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
            assert_eq!(fold(&list), want);
        }
    }

    #[test]
    fn clipped_text_is_safe_and_short() {
        for (text, max, want) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("a\u{1b}[31mb", 20, "a?[31mb"), ("äöü", 2, "ä…"), ("", 2, "")]
        {
            assert_eq!(clip(text, max), want);
        }
    }

    #[test]
    fn codes_become_words() {
        for (code, want) in [("NotEnoughResources", "not enough resources"), ("", ""), ("x", "x")] {
            assert_eq!(words(code), want);
        }
    }
}
