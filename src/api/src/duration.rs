//! Durations as they are written in annotations and scenarios: `90s`, `1.5s`, `200ms`, `2m`, `1h30m`.
//!
//! The grammar is Go's, without the sign. The value is exact and rounded up to whole milliseconds.

/// Reads a duration, in milliseconds. The message says what to write instead.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let refuse = |why: &str| {
        Err(format!("`{}` is not a duration: {why}; write one such as 90s, 1.5s, 200ms or 1h30m", shown(text)))
    };
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(0);
    }
    if rest.starts_with('-') {
        return refuse("it is negative");
    }
    if rest.is_empty() {
        return refuse("it is empty");
    }
    // Picoseconds: exact for nine decimals of a millisecond.
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let Some(unit_ps) = picoseconds(unit) else {
            return refuse(if unit.is_empty() { "it has no unit" } else { "its units are h, m, s, ms, us and ns" });
        };
        let Some(part) = scaled(number, unit_ps) else {
            return refuse("it has no readable number");
        };
        total = total.saturating_add(part);
        rest = tail;
    }
    match i64::try_from((total + 999_999_999) / 1_000_000_000) {
        Ok(ms) if ms <= MAX_MS => Ok(ms),
        _ => refuse("it is longer than a thousand years"),
    }
}

/// A thousand years. Sums of durations stay inside an `i64`.
const MAX_MS: i64 = 1_000 * 366 * 86_400_000;

fn picoseconds(unit: &str) -> Option<i128> {
    Some(match unit {
        "h" => 3_600_000_000_000_000,
        "m" => 60_000_000_000_000,
        "s" => 1_000_000_000_000,
        "ms" => 1_000_000_000,
        "us" | "µs" | "μs" => 1_000_000,
        "ns" => 1_000,
        _ => return None,
    })
}

fn scaled(number: &str, unit_ps: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || whole.len() > 15 {
        return None;
    }
    let mut sum = unit_ps * digits(whole)?;
    // Beyond twelve decimals nothing is left even of an hour's milliseconds.
    let fraction = fraction.get(..12).unwrap_or(fraction);
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    sum += (unit_ps * digits(fraction)? + scale - 1) / scale;
    Some(sum)
}

fn digits(text: &str) -> Option<i128> {
    if text.is_empty() { Some(0) } else { text.parse().ok() }
}

/// At most forty characters of what a user wrote, for a message.
pub(crate) fn shown(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(39).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_of_scenarios_and_of_go() {
        for (text, ms) in [
            ("0", 0),
            ("0s", 0),
            ("10s", 10_000),
            ("1.5s", 1_500),
            ("200ms", 200),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("1h0m0.5s", 3_600_500),
            (".5s", 500),
            ("1ns", 1), // rounded up
            ("1500us", 2),
            ("1500µs", 2),
            (" 3s ", 3_000),
        ] {
            assert_eq!(parse_duration(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn the_rest_is_refused_with_what_to_write() {
        for (text, part) in [
            ("", "empty"),
            ("-1s", "negative"),
            ("10", "no unit"),
            ("10d", "units are"),
            ("s", "no readable number"),
            ("1.2.3s", "no readable number"),
            ("99999999h", "thousand years"),
            ("9999999999999999999h", "no readable number"),
        ] {
            let message = parse_duration(text).expect_err(text);
            assert!(message.contains(part) && message.contains("90s"), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn what_the_model_prints_is_read_again(ms in 0_i64..1_000_000) {
            let text = krafla_model::time::format_ms(ms);
            let read = parse_duration(&text).expect("a duration");
            // From two minutes on the model prints whole seconds, from two hours on whole minutes.
            prop_assert!((read - ms).abs() < if ms < 60_000 { 1 } else { 1_000 }, "{text}");
        }
    }
}
