//! Windows of the day, as the plugin `tdm` takes them: `22:00-06:00`.

use krafla_model::Time;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// A window that comes back every day, in whole seconds from midnight, both ends included. One that ends before or at
/// its start goes on until the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyWindow {
    start: i64,
    end: i64,
}

impl DailyWindow {
    /// Reads `HH:MM-HH:MM`. An hour may have one digit.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (start, end) = text.split_once('-')?;
        Some(Self { start: clock(start.trim())?, end: clock(end.trim())? })
    }

    /// Whether the window is open at `now`, where clocks are `offset_ms` ahead of UTC.
    #[must_use]
    pub fn is_open(&self, now: Time, offset_ms: i64) -> bool {
        let second = now.plus_ms(offset_ms).0.div_euclid(1_000).rem_euclid(DAY);
        if self.start < self.end {
            (self.start..=self.end).contains(&second)
        } else {
            second >= self.start || second <= self.end
        }
    }

    /// When it opens or closes next after `now`; [`Time::NEVER`] if it is always open.
    #[must_use]
    pub fn next_change(&self, now: Time, offset_ms: i64) -> Time {
        let open = self.is_open(now, offset_ms);
        let second = now.plus_ms(offset_ms).0.div_euclid(1_000);
        let midnight = second - second.rem_euclid(DAY);
        let changes = [self.start, self.end + 1].map(|at| {
            let today = midnight + at;
            // The second after 23:59:59 belongs to tomorrow, so that yesterday's end may be today's first change.
            let next = [today - DAY, today, today + DAY].into_iter().find(|at| *at > second).unwrap_or(today + DAY);
            Time(next * 1_000 - offset_ms)
        });
        let changes = changes.into_iter().filter(|at| self.is_open(*at, offset_ms) != open);
        changes.min().unwrap_or(Time::NEVER)
    }
}

impl std::fmt::Display for DailyWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, to] = [self.start, self.end].map(|at| (at / 3_600, at % 3_600 / 60));
        write!(f, "{:02}:{:02}-{:02}:{:02}", from.0, from.1, to.0, to.1)
    }
}

/// `HH:MM` in seconds from midnight.
fn clock(text: &str) -> Option<i64> {
    let (hour, minute) = text.split_once(':')?;
    let digits = |text: &str, least: usize| {
        let sound = (least..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| sound)
    };
    let (hour, minute) = (digits(hour, 1)?, digits(minute, 2)?);
    (hour < 24 && minute < 60).then_some(hour * 3_600 + minute * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const MINUTE: i64 = 60_000;

    #[test]
    fn minutes_have_two_digits_and_days_24_hours() {
        for text in ["00:00-01:00", "23:59-23:59", "1:00-0:00", " 22:00 - 06:00 "] {
            assert!(DailyWindow::parse(text).is_some(), "{text}");
        }
        for text in ["00:00_01:00", "1:0-0:0", "24:00-01:00", "10:60-11:00", "10-11", "+1:00-2:00", "", "-"] {
            assert_eq!(DailyWindow::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_window_over_midnight_is_open_on_both_sides_of_it() {
        for (window, at, open) in [
            ("08:00-18:00", 7 * HOUR + 59 * MINUTE, false),
            ("08:00-18:00", 8 * HOUR, true),
            ("08:00-18:00", 18 * HOUR, true),
            ("08:00-18:00", 18 * HOUR + 999, true), // 18:00:00, in whole seconds
            ("08:00-18:00", 18 * HOUR + 1_000, false),
            ("22:00-06:00", 23 * HOUR, true),
            ("22:00-06:00", 24 * HOUR + 30 * MINUTE, true), // Volcano: closed until 22:00
            ("22:00-06:00", 30 * HOUR, true),
            ("22:00-06:00", 31 * HOUR, false),
            ("23:59-23:59", 0, true),
            ("23:59-23:59", 12 * HOUR, true),
            ("00:00-01:00", 24 * HOUR, true),
            ("22:00-00:00", 24 * HOUR, true),
            ("22:00-00:00", 24 * HOUR + 1_000, false),
        ] {
            let window = DailyWindow::parse(window).expect(window);
            assert_eq!(window.is_open(Time(at), 0), open, "{window:?} at {at}");
        }
    }

    #[test]
    fn it_knows_when_it_changes() {
        for (window, now, next) in [
            ("08:00-18:00", 0, 8 * HOUR),
            ("08:00-18:00", 8 * HOUR, 18 * HOUR + 1_000),
            ("08:00-18:00", 20 * HOUR, 32 * HOUR),
            ("22:00-06:00", 0, 6 * HOUR + 1_000),
            ("22:00-06:00", 6 * HOUR + 1_000, 22 * HOUR),
            ("22:00-06:00", 23 * HOUR, 30 * HOUR + 1_000),
            ("00:00-23:59", 24 * HOUR - 30_000, 24 * HOUR),
        ] {
            let parsed = DailyWindow::parse(window).expect(window);
            assert_eq!(parsed.next_change(Time(now), 0), Time(next), "{window} from {now}");
        }
        assert_eq!(DailyWindow::parse("23:59-23:59").map(|window| window.next_change(Time(5), 0)), Some(Time::NEVER));
    }

    #[test]
    fn clocks_may_be_ahead_of_utc() {
        let window = DailyWindow::parse("08:00-18:00").expect("a window");
        assert!(window.is_open(Time(7 * HOUR), 2 * HOUR));
        assert!(!window.is_open(Time(7 * HOUR), -2 * HOUR));
        assert_eq!(window.next_change(Time(0), 2 * HOUR), Time(6 * HOUR));
        assert_eq!(window.next_change(Time(0), -2 * HOUR), Time(10 * HOUR));
    }
}
