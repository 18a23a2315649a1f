//! Random choices from one seed: the same seed, the same cluster.

/// See the module.
pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Yes in so many cases of a hundred.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.u32(0..100) < percent
    }

    /// A number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        self.0.i64(least..=most)
    }

    /// A place in a list of `length`, which is not empty.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.0.usize(0..length)
    }

    /// One of them.
    pub(crate) fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.index(of.len())]
    }

    /// Some of them, at least `least`, each at most once, in their order.
    pub(crate) fn some<'a>(&mut self, of: &[&'a str], least: usize) -> Vec<&'a str> {
        let mut left: Vec<&str> = of.to_vec();
        let wanted = least + self.index(of.len() - least + 1);
        while left.len() > wanted {
            let out = self.index(left.len());
            left.remove(out);
        }
        left
    }
}
