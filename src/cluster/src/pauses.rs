//! Pauses between tries: each twice as long as the one before, up to a longest.

use std::time::Duration;

use kube::runtime::utils::Backoff;

/// The pauses of one series of tries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pauses {
    first: Duration,
    longest: Duration,
    n: u32,
}

impl Pauses {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, n: 0 }
    }

    /// The next pause.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.first.saturating_mul(1 << self.n.min(10)).min(self.longest);
        self.n = self.n.saturating_add(1);
        pause
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.pause())
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.n = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let ms = Duration::from_millis;
        let mut pauses = Pauses::new(ms(100), ms(350));
        assert_eq!(
            [pauses.pause(), pauses.pause(), pauses.pause(), pauses.pause()],
            [ms(100), ms(200), ms(350), ms(350)]
        );
        pauses.reset();
        assert_eq!(pauses.next(), Some(ms(100)));
    }
}
