//! Points in time and spans, in whole milliseconds. The core never reads a clock: it is told.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since the epoch of whoever feeds the engine (Unix time live, zero in a simulation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// Later than every other point.
    pub const NEVER: Self = Self(i64::MAX);

    /// This point, `ms` milliseconds later; saturating.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this point; negative when it is not earlier.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<i64> for Time {
    type Output = Self;

    fn add(self, ms: i64) -> Self {
        self.plus_ms(ms)
    }
}

impl Sub for Time {
    type Output = i64;

    fn sub(self, earlier: Self) -> i64 {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format_ms(self.0))
    }
}

/// A span as people read it: `200ms`, `1.5s`, `90s`, `2h05m`, `3d04h`.
pub fn format_ms(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    let (s, m, h, d) = (ms / 1000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match () {
        () if !ms.is_multiple_of(1000) && ms < 1000 => format!("{sign}{ms}ms"),
        () if !ms.is_multiple_of(1000) && s < 60 => {
            let text = format!("{}.{:03}", s, ms % 1000);
            format!("{sign}{}s", text.trim_end_matches('0'))
        }
        () if s < 120 => format!("{sign}{s}s"),
        () if m < 120 => format!("{sign}{m}m{:02}s", s % 60),
        () if h < 48 => format!("{sign}{h}h{:02}m", m % 60),
        () => format!("{sign}{d}d{:02}h", h % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        for (ms, text) in [
            (0, "0s"),
            (200, "200ms"),
            (1_500, "1.5s"),
            (60_000, "60s"),
            (125_000, "2m05s"),
            (7_500_000, "2h05m"),
            (273_600_000, "3d04h"),
            (-1_000, "-1s"),
        ] {
            assert_eq!(format_ms(ms), text);
        }
    }
}
