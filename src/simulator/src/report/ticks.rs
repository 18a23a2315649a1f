//! Round places for the marks of an axis.

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Spans between marks that people count in.
const TIME_STEPS: [i64; 28] = [
    1,
    10,
    100,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    28 * DAY,
    91 * DAY,
    182 * DAY,
    364 * DAY,
];

/// Marks from 0 to `end_ms`, at most `most` after the first, with their labels.
pub(super) fn time(end_ms: i64, most: i64) -> Vec<(i64, String)> {
    let fits = |step: &i64| end_ms / step <= most;
    let years = (1..).map(|n| n * 364 * DAY);
    // At most 8,000 rounds: i64 milliseconds hold 292 million years, but a run that long does not end either.
    let step = TIME_STEPS.into_iter().chain(years.take(8_000)).find(fits).unwrap_or(end_ms.max(1));
    (0..=end_ms / step).map(|k| (k * step, time_label(k * step))).collect()
}

/// The two largest units of a point in time, without zeros: `0`, `90 ms`, `1h30m`, `2d`.
fn time_label(ms: i64) -> String {
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1, "ms")];
    let Some(first) = units.iter().position(|(unit, _)| ms >= *unit) else { return "0".to_owned() };
    let mut rest = ms;
    let mut label = String::new();
    for (unit, name) in &units[first..units.len().min(first + 2)] {
        if rest / unit > 0 {
            label += &format!("{}{name}", rest / unit);
        }
        rest %= unit;
    }
    label
}

/// Marks for amounts from 0 to at least `max`, four or five of them, in steps of 1, 2 or 5 and zeros.
pub(super) fn amounts(max: f64) -> Vec<f64> {
    let target = if max.is_finite() && max > 0.0 { max } else { 1.0 };
    let mut step = 1.0;
    while step * 4.0 < target {
        step *= 10.0;
    }
    while step > target {
        step /= 10.0;
    }
    // `step` is now a power of ten that is not above the target and not below a fortieth of it.
    let round = [step / 10.0, step / 5.0, step / 2.0, step, step * 2.0, step * 5.0];
    let step = round.into_iter().find(|step| step * 5.0 >= target).unwrap_or(step * 10.0);
    let marks = (0..=5).map(|k| f64::from(k) * step);
    let mut marks: Vec<f64> = marks.take_while(|mark| mark - step < target - step * 1e-9).collect();
    if marks.len() < 2 {
        marks.push(step);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_marked_at_round_places() {
        for (end_ms, want) in [
            (0, "0"),
            (5, "0 1ms 2ms 3ms 4ms 5ms"),
            (90 * SECOND, "0 10s 20s 30s 40s 50s 1m 1m10s 1m20s 1m30s"),
            (4 * HOUR, "0 30m 1h 1h30m 2h 2h30m 3h 3h30m 4h"),
            (3 * DAY, "0 12h 1d 1d12h 2d 2d12h 3d"),
            (340 * DAY, "0 91d 182d 273d"),
            (20_000 * DAY, "0 2184d 4368d 6552d 8736d 10920d 13104d 15288d 17472d 19656d"),
        ] {
            let labels: Vec<String> = time(end_ms, 9).into_iter().map(|(_, label)| label).collect();
            assert_eq!(labels.join(" "), want, "{end_ms}");
        }
    }

    #[test]
    fn amounts_are_marked_in_round_steps() {
        for (max, want) in [
            (0.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (1.0, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
            (3.0, vec![0.0, 1.0, 2.0, 3.0]),
            (7.0, vec![0.0, 2.0, 4.0, 6.0, 8.0]),
            (41.0, vec![0.0, 10.0, 20.0, 30.0, 40.0, 50.0]),
            (1000.0, vec![0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]),
            (f64::NAN, vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ] {
            let got: Vec<String> = amounts(max).iter().map(|mark| format!("{mark:.4}")).collect();
            let want: Vec<String> = want.iter().map(|mark| format!("{mark:.4}")).collect();
            assert_eq!(got, want, "{max}");
        }
    }
}
