//! Semantic versions, by the rules of semver.org 2.0.0.

use std::cmp::Ordering;
use std::fmt;

/// A version. Build metadata counts for nothing in comparisons.
#[derive(Clone, Debug)]
pub struct Semver {
    pub(crate) numbers: [u64; 3],
    pre: Vec<Part>,
    text: String,
}

/// Part of a pre-release: numbers come before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Semver {
    /// Reads a version such as `1.2.3`, `1.2.3-rc.1+build`; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
        let mut parts = core.split('.');
        let mut number = || parts.next().and_then(number);
        let numbers = [number()?, number()?, number()?];
        if parts.next().is_some() {
            return None;
        }
        let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if build.is_some_and(|build| !build.split('.').all(word)) {
            return None;
        }
        let mut read = Vec::new();
        for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
            if !word(part) {
                return None;
            }
            read.push(if part.bytes().all(|b| b.is_ascii_digit()) {
                Part::Number(number_of(part)?)
            } else {
                Part::Text(part.to_owned())
            });
        }
        Some(Self { numbers, pre: read, text: text.to_owned() })
    }
}

fn number(text: &str) -> Option<u64> {
    number_of(text)
}

/// A number without leading zeros.
fn number_of(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        // A version without a pre-release is newer than those before it.
        let released = self.pre.is_empty().cmp(&other.pre.is_empty());
        self.numbers.cmp(&other.numbers).then(released).then_with(|| self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Semver {}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
