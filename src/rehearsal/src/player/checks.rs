//! Whether the cluster is as the scenario expects it.

use std::time::Duration;

use krafla_model::Time;
use krafla_simulator::scenario::{AFTER_LAST_EVENT_MS, Checked, Expected, When};
use tokio::time::Instant;

use super::{LOOK_EVERY, Player, QUIET_END, UNSETTLED, millis};

impl Player<'_> {
    /// Checks expectations until they hold, or patience is over; then says what is amiss.
    pub(super) async fn check(&mut self, due: &[&Expected], patience: Duration) {
        let due: Vec<Expected> = due.iter().filter_map(|expected| expected.outer()).collect();
        self.verdict.checks += due.len() as u64;
        let until = Instant::now() + patience;
        let mut left = due;
        loop {
            let amiss: Vec<(Expected, Vec<String>)> = left
                .into_iter()
                .filter_map(|expected| {
                    let wrong = self.amiss(&expected);
                    (!wrong.is_empty()).then_some((expected, wrong))
                })
                .collect();
            if amiss.is_empty() {
                return;
            }
            if Instant::now() >= until {
                let now = self.now();
                for (expected, wrong) in amiss {
                    wrong.into_iter().for_each(|wrong| self.miss(format!("at {now}, {expected}: {wrong}")));
                }
                return;
            }
            left = amiss.into_iter().map(|(expected, _)| expected).collect();
            self.wait_until(Instant::now() + LOOK_EVERY).await;
        }
    }

    fn amiss(&self, expected: &Expected) -> Vec<String> {
        match expected.check(&*self.eyes.seen()) {
            Ok(Checked::Misses(misses)) => misses,
            Ok(Checked::Missing(missing)) => vec![missing],
            Err(why) => vec![why],
        }
    }

    /// The end: when nothing more is to be expected, at the latest when the file says.
    pub(super) async fn last_checks(&mut self) {
        let last: Vec<Expected> = self
            .story
            .expectations()
            .iter()
            .filter(|expected| expected.when() == When::End)
            .filter_map(Expected::outer)
            .collect();
        if last.is_empty() && self.standing.is_empty() {
            return;
        }
        let end = self.plan.until.unwrap_or(self.story.last_moment(&self.plan) + AFTER_LAST_EVENT_MS);
        let end = self.start + millis(end.0);
        loop {
            let holds = last.iter().all(|expected| self.amiss(expected).is_empty());
            let nothing_comes = self.later.is_empty() && !self.eyes.seen().something_ends_before(end.into_std());
            if Instant::now() >= end || (holds && nothing_comes && self.is_quiet(QUIET_END)) {
                break;
            }
            self.wait_until(Instant::now() + LOOK_EVERY).await;
        }
        let last: Vec<&Expected> = last.iter().collect();
        self.check(&last, self.rules.patience).await;
        for standing in std::mem::take(&mut self.standing) {
            if let Some(missing) = standing.unseen {
                let why = if missing.is_empty() {
                    "its time never came".to_owned()
                } else {
                    format!("{missing}, and never was")
                };
                self.miss(format!("{}: {why}", standing.expected));
            }
        }
    }

    pub(super) fn look_at_standing(&mut self, now: Time) {
        let mut misses = Vec::new();
        for standing in self.standing.iter_mut().filter(|standing| standing.from <= now && !standing.said) {
            let checked = standing.expected.check(&*self.eyes.seen());
            let wrong = match checked {
                Ok(Checked::Missing(missing)) => {
                    if standing.unseen.is_some() {
                        standing.unseen = Some(missing);
                    }
                    standing.broken_since = None;
                    continue;
                }
                Ok(Checked::Misses(misses)) => misses,
                Err(why) => vec![why],
            };
            self.verdict.checks += u64::from(standing.unseen.is_some());
            standing.unseen = None;
            if wrong.is_empty() {
                standing.broken_since = None;
            } else if standing.broken_since.get_or_insert_with(Instant::now).elapsed() >= UNSETTLED {
                standing.said = true;
                let for_long = UNSETTLED.as_secs();
                misses.extend(
                    wrong.iter().map(|wrong| format!("at {now}, {}: {wrong}, for {for_long}s", standing.expected)),
                );
            }
        }
        misses.into_iter().for_each(|miss| self.miss(miss));
    }
}
