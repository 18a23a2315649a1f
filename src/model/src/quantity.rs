//! Kubernetes quantities, read exactly.
//!
//! The grammar is that of `resource.Quantity`: an optional sign, digits with an optional point, and at most one suffix:
//! `n u m k M G T P E`, `Ki Mi Gi Ti Pi Ei`, or an exponent `e3`/`E3`. The value is rounded up to the unit asked for,
//! as Kubernetes does; no float is involved.

use thiserror::Error;

/// The largest amount that is kept, in the smallest unit. Larger ones are read as this one, so that sums over a million
/// objects stay inside an `i64`. In bytes it is 8 PiB.
pub const MAX_AMOUNT: i64 = 1 << 53;

/// How many of a resource's smallest unit make one of its written units: 1000 for milli-CPU, 1 for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Amounts are kept in whole units: bytes, pods.
    One,
    /// Amounts are kept in thousandths: CPU, extended resources.
    Milli,
}

/// Why a text is not a quantity. The text is named by whoever reports it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// Nothing there.
    #[error("an empty quantity; write a number such as 500m, 2 or 16Gi")]
    Empty,
    /// Below zero.
    #[error("a negative quantity; amounts of a resource are zero or more")]
    Negative,
    /// No digit where the number should be.
    #[error("no number before `{0}`; write digits first, such as 16Gi")]
    NoDigits(String),
    /// A suffix that Kubernetes does not know.
    #[error("unknown suffix `{found}`{}; use one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3", .nearest.map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default())]
    Suffix {
        /// What was written.
        found: String,
        /// The valid suffix that it probably stands for.
        nearest: Option<&'static str>,
    },
    /// More digits than any quantity has.
    #[error("more than 60 digits")]
    TooLong,
}

/// Reads `text` as an amount in `unit`, rounded up, at most [`MAX_AMOUNT`].
pub fn parse(text: &str, unit: Unit) -> Result<i64, QuantityError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(QuantityError::Empty);
    }
    let (negative, body) = match trimmed.as_bytes()[0] {
        b'-' => (true, &trimmed[1..]),
        b'+' => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let end = body.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(body.len());
    let (number, suffix) = body.split_at(end);
    if number.len() > 60 {
        return Err(QuantityError::TooLong);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(QuantityError::NoDigits(body.to_owned()));
    }
    let scale = scale_of(suffix)?;
    let unit_exponent = match unit {
        Unit::One => 0,
        Unit::Milli => 3,
    };
    let amount = scaled(whole, fraction, scale, unit_exponent);
    if negative && amount > 0 {
        return Err(QuantityError::Negative);
    }
    Ok(amount)
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Two(u32),
}

fn scale_of(suffix: &str) -> Result<Scale, QuantityError> {
    Ok(match suffix {
        "" => Scale::Ten(0),
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Two(10),
        "Mi" => Scale::Two(20),
        "Gi" => Scale::Two(30),
        "Ti" => Scale::Two(40),
        "Pi" => Scale::Two(50),
        "Ei" => Scale::Two(60),
        _ => return exponent(suffix),
    })
}

fn exponent(suffix: &str) -> Result<Scale, QuantityError> {
    let unknown = || QuantityError::Suffix { found: suffix.to_owned(), nearest: nearest_suffix(suffix) };
    let digits = suffix.strip_prefix(['e', 'E']).ok_or_else(unknown)?;
    let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if unsigned.is_empty() || unsigned.len() > 3 || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Err(unknown());
    }
    let value: i32 = unsigned.parse().map_err(|_| unknown())?;
    Ok(Scale::Ten(if digits.starts_with('-') { -value } else { value }))
}

fn nearest_suffix(found: &str) -> Option<&'static str> {
    Some(match found.to_ascii_lowercase().as_str() {
        "kb" | "kib" | "ki" => "Ki",
        "mb" | "mib" | "mi" => "Mi",
        "g" | "gb" | "gib" | "gi" => "Gi",
        "t" | "tb" | "tib" | "ti" => "Ti",
        "p" | "pb" | "pib" | "pi" => "Pi",
        "core" | "cores" | "cpu" | "cpus" => "",
        _ => return None,
    })
    .filter(|near| !near.is_empty())
}

/// `whole.fraction * scale * 10^unit_exponent`, rounded up, capped.
fn scaled(whole: &str, fraction: &str, scale: Scale, unit_exponent: i32) -> i64 {
    // Trailing zeros of the fraction carry nothing; what is left has at most 60 digits.
    let fraction = fraction.trim_end_matches('0');
    let mut digits = Decimal::default();
    for byte in whole.bytes().chain(fraction.bytes()) {
        digits.push(byte - b'0');
    }
    let mut exponent = unit_exponent - i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    match scale {
        Scale::Ten(power) => exponent += power,
        Scale::Two(power) => digits.double(power),
    }
    digits.shift(exponent)
}

/// A non-negative decimal number of any length, least digit first. Quantities are short, so plain is fast enough.
#[derive(Default)]
struct Decimal(Vec<u8>);

impl Decimal {
    fn push(&mut self, digit: u8) {
        self.0.insert(0, digit);
    }

    fn double(&mut self, times: u32) {
        for _ in 0..times {
            let mut carry = 0;
            for digit in &mut self.0 {
                let value = *digit * 2 + carry;
                *digit = value % 10;
                carry = value / 10;
            }
            if carry > 0 {
                self.0.push(carry);
            }
        }
    }

    /// The number times ten to `exponent`, rounded up, at most [`MAX_AMOUNT`].
    fn shift(mut self, exponent: i32) -> i64 {
        if self.0.iter().all(|&digit| digit == 0) {
            return 0;
        }
        let mut round_up = false;
        if exponent < 0 {
            let dropped = usize::try_from(-exponent).unwrap_or(usize::MAX).min(self.0.len());
            round_up = self.0.drain(..dropped).any(|digit| digit != 0);
        }
        let mut amount: i64 = 0;
        let zeros = usize::try_from(exponent.max(0)).unwrap_or(0).min(64);
        for digit in self.0.iter().rev().copied().chain(std::iter::repeat_n(0, zeros)) {
            amount = amount.saturating_mul(10).saturating_add(i64::from(digit));
        }
        amount.saturating_add(i64::from(round_up)).min(MAX_AMOUNT)
    }
}

/// An amount as Kubernetes reads it: milli amounts as `500m`, `1.5` or `2`, bytes with the largest exact binary suffix.
pub fn format(amount: i64, unit: Unit) -> String {
    match unit {
        Unit::Milli if amount % 1000 == 0 => (amount / 1000).to_string(),
        Unit::Milli if amount < 1000 => format!("{amount}m"),
        Unit::Milli => format!("{}.{:03}", amount / 1000, amount % 1000).trim_end_matches('0').to_owned(),
        Unit::One => {
            for (power, suffix) in [(50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")] {
                if amount != 0 && amount % (1 << power) == 0 {
                    return format!("{}{suffix}", amount >> power);
                }
            }
            amount.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_form_that_kubernetes_accepts() {
        for (text, milli) in [
            ("1", 1_000),
            ("+1", 1_000),
            ("0", 0),
            ("-0", 0),
            ("500m", 500),
            ("0.5", 500),
            (".5", 500),
            ("5.", 5_000),
            ("1.0005", 1_001), // rounded up
            ("1u", 1),
            ("1n", 1),
            ("0.1n", 1),
            ("1500u", 2),
            ("1e3", 1_000_000),
            ("1E3", 1_000_000),
            ("1e-3", 1),
            ("1E+2", 100_000),
            ("1k", 1_000_000),
            ("0.001k", 1_000),
            ("1Ki", 1_024_000),
            ("0.5Ki", 512_000),
            ("007", 7_000),
            (" 2 ", 2_000),
            ("1E", MAX_AMOUNT),
            ("99999999999999999999999999", MAX_AMOUNT),
            ("1e200", MAX_AMOUNT),
            ("1e-200", 1),
        ] {
            assert_eq!(parse(text, Unit::Milli), Ok(milli), "{text}");
        }
        for (text, bytes) in [
            ("16Gi", 16 << 30),
            ("1.5Gi", 3 << 29),
            ("100m", 1),
            ("128974848", 128_974_848),
            ("129e6", 129_000_000),
            ("1P", 1_000_000_000_000_000),
        ] {
            assert_eq!(parse(text, Unit::One), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn the_rest_is_refused_with_what_to_do() {
        for (text, part) in [
            ("", "empty"),
            ("-1", "negative"),
            ("-1m", "negative"),
            ("Gi", "no number before `Gi`"),
            (".", "no number"),
            ("1.2.3", "no number"),
            ("16GB", "did you mean `Gi`?"),
            ("16gi", "did you mean `Gi`?"),
            ("2 cores", "unknown suffix"),
            ("1e", "unknown suffix `e`"),
            ("1e9999", "unknown suffix"),
            ("0x10", "unknown suffix `x10`"),
            ("1_000", "unknown suffix `_000`"),
            ("--1", "no number"),
            ("١", "no number"),
        ] {
            let message = parse(text, Unit::Milli).expect_err(text).to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(amount in 0..=MAX_AMOUNT, milli in any::<bool>()) {
            let unit = if milli { Unit::Milli } else { Unit::One };
            prop_assert_eq!(parse(&format(amount, unit), unit), Ok(amount));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse(&text, Unit::Milli);
            let _ = parse(&text, Unit::One);
        }
    }
}
