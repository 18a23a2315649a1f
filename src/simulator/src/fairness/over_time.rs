//! How did shares, dues and gaps move over the run?
//!
//! Exact means over equal columns of time. Columns start narrow and are joined in pairs as the run gets longer, so that
//! there are never more than a plot can show.

use std::collections::BTreeMap;

use krafla_model::Name;
use serde::Serialize;

use super::gap::Moment;
use super::millis;

/// Columns at most: two pixels each.
const MOST_COLUMNS: i64 = 500;
/// The narrowest column, in milliseconds.
const NARROWEST_MS: i64 = 1_000;

/// A queue in one column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Means {
    /// Its mean dominant share.
    pub held: f64,
    /// What it was due on average.
    pub due: f64,
    /// Its mean gap.
    pub gap: f64,
}

/// All queues over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trend {
    /// How long a column is; the first begins at 0, and the last may be cut by the end of the run.
    pub column_ms: i64,
    /// For each queue of the record its means, column by column.
    pub queues: Vec<Vec<Means>>,
}

/// Sums over time, in shares times milliseconds.
#[derive(Default)]
pub(super) struct OverTime {
    column_ms: i64,
    end_ms: i64,
    sums: BTreeMap<Name, Vec<Means>>,
}

impl OverTime {
    /// Takes up how a queue stood from one moment to another.
    pub(super) fn add(&mut self, moment: &Moment, from_ms: i64, to_ms: i64) {
        self.column_ms = self.column_ms.max(NARROWEST_MS);
        while to_ms > self.column_ms * MOST_COLUMNS {
            self.widen();
        }
        self.end_ms = self.end_ms.max(to_ms);
        let columns = self.sums.entry(moment.queue.clone()).or_default();
        let mut at = from_ms;
        while at < to_ms {
            let column = usize::try_from(at / self.column_ms).unwrap_or(0);
            let until = to_ms.min((at / self.column_ms + 1) * self.column_ms);
            if columns.len() <= column {
                columns.resize(column + 1, Means::default());
            }
            let (sum, dt) = (&mut columns[column], millis(until - at));
            sum.held += moment.held * dt;
            sum.due += moment.due * dt;
            sum.gap += moment.gap * dt;
            at = until;
        }
    }

    fn widen(&mut self) {
        self.column_ms *= 2;
        for columns in self.sums.values_mut() {
            let joined = columns.chunks(2).map(|pair| {
                pair.iter().fold(Means::default(), |sum, one| Means {
                    held: sum.held + one.held,
                    due: sum.due + one.due,
                    gap: sum.gap + one.gap,
                })
            });
            *columns = joined.collect();
        }
    }

    /// The means of these queues; `None` if none was ever due anything.
    pub(super) fn finish(mut self, queues: &[Name]) -> Option<Trend> {
        if self.sums.is_empty() {
            return None;
        }
        let n = usize::try_from((self.end_ms + self.column_ms - 1) / self.column_ms).unwrap_or(0);
        let means = |mut sums: Vec<Means>| {
            sums.resize(n, Means::default());
            let mut from_ms = 0;
            for sum in &mut sums {
                let dt = millis(self.column_ms.min(self.end_ms - from_ms));
                *sum = Means { held: sum.held / dt, due: sum.due / dt, gap: sum.gap / dt };
                from_ms += self.column_ms;
            }
            sums
        };
        let queues = queues.iter().map(|name| means(self.sums.remove(name).unwrap_or_default())).collect();
        Some(Trend { column_ms: self.column_ms, queues })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(queue: &str, held: f64, gap: f64) -> Moment {
        Moment {
            queue: queue.into(),
            held,
            due: 0.5,
            waits: gap > 0.0,
            gap,
            is_short: false,
            is_usable: false,
            reasons: BTreeMap::new(),
            oldest: None,
        }
    }

    #[test]
    fn columns_join_and_keep_their_means() {
        let mut over_time = OverTime::default();
        // On for the even seconds, off for the odd: a half in any column of whole pairs.
        for second in 0..4_000 {
            let on = f64::from(u8::from(second % 2 == 0));
            over_time.add(&moment("a", on, on / 2.0), second * 1_000, (second + 1) * 1_000);
        }
        let trend = over_time.finish(&["a".into(), "b".into()]).expect("due something");
        assert_eq!((trend.column_ms, trend.queues[0].len(), trend.queues[1].len()), (8_000, 500, 500));
        assert!(trend.queues[0].iter().all(|means| *means == Means { held: 0.5, due: 0.5, gap: 0.25 }));
        assert_eq!(trend.queues[1][0], Means::default());
    }

    #[test]
    fn a_moment_is_spread_over_its_columns_and_the_last_may_be_short() {
        let mut over_time = OverTime::default();
        over_time.add(&moment("a", 1.0, 0.0), 500, 2_500);
        let trend = over_time.finish(&["a".into()]).expect("due something");
        assert_eq!(trend.queues[0].iter().map(|means| means.held).collect::<Vec<_>>(), [0.5, 1.0, 1.0]);
    }
}
