//! Which colour stands for what, the same in every plot and table of the page.
//!
//! Ten colours that people with any kind of colour vision can tell apart (Okabe and Ito's without black and yellow, which
//! vanish on one of the two backgrounds, and four of Paul Tol's). The style sheet has them for light and for dark.

use super::svg::Key;
use crate::record::Record;

/// How many colours there are.
pub(super) const COLOURS: usize = 10;

/// The colours of a run's queues.
pub(super) struct Palette {
    /// For each queue, its place among the colours; beyond [`COLOURS`] it shares one.
    places: Vec<usize>,
    /// The queues with a plain colour of their own, in name order.
    pub(super) plain: Vec<usize>,
}

impl Palette {
    /// The queues with the largest shares get the plain colours, in name order; the others follow.
    pub(super) fn of(record: &Record) -> Self {
        let mut order: Vec<usize> = (0..record.queues.len()).collect();
        order.sort_by(|&a, &b| record.queues[b].mean_share.total_cmp(&record.queues[a].mean_share));
        let (plain, rest) = order.split_at_mut(COLOURS.min(record.queues.len()));
        plain.sort_unstable();
        rest.sort_unstable();
        let plain = plain.to_vec();
        let mut places = vec![0; record.queues.len()];
        for (place, &queue) in order.iter().enumerate() {
            places[queue] = place;
        }
        Self { places, plain }
    }

    /// The number of a queue's colour, 0 to 9.
    pub(super) fn colour(&self, queue: usize) -> usize {
        self.places.get(queue).map_or(0, |place| place % COLOURS)
    }

    /// The class that fills with a queue's colour: `c0` to `c9`, and with stripes `s0` to `s9` for those without a plain
    /// one.
    pub(super) fn class(&self, queue: usize) -> String {
        let striped = self.places.get(queue).is_some_and(|&place| place >= COLOURS);
        format!("{}{}", if striped { 's' } else { 'c' }, self.colour(queue))
    }

    /// How many striped fills are in use.
    pub(super) fn n_striped(&self) -> usize {
        self.places.len().saturating_sub(COLOURS).min(COLOURS)
    }

    /// A legend of all queues, those with plain colours first.
    pub(super) fn legend(&self, record: &Record) -> Vec<Key> {
        let striped = (0..self.places.len()).filter(|&queue| self.places[queue] >= COLOURS);
        let queues = self.plain.iter().copied().chain(striped);
        queues.map(|queue| Key::new(self.class(queue), &record.queues[queue].name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::many_queues;
    use super::*;

    #[test]
    fn large_queues_have_plain_colours_and_the_rest_stripes() {
        // Queue i of 24 has a share that grows with i.
        let run = many_queues(24);
        let palette = Palette::of(&run);
        assert_eq!(palette.plain, (14..24).collect::<Vec<_>>());
        let classes: Vec<String> = [14, 23, 0, 9, 10].into_iter().map(|queue| palette.class(queue)).collect();
        assert_eq!(classes, ["c0", "c9", "s0", "s9", "s0"]);
        let legend = palette.legend(&run);
        assert_eq!((legend.len(), legend[0].name.as_str(), legend[10].name.as_str()), (24, "q14", "q00"));
    }

    #[test]
    fn few_queues_go_by_name() {
        let run = many_queues(3);
        let palette = Palette::of(&run);
        assert_eq!(
            (palette.plain.as_slice(), palette.class(2).as_str(), palette.n_striped()),
            ([0, 1, 2].as_slice(), "c2", 0)
        );
    }
}
