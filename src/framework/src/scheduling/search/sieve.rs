//! The best node where filters look further than at single nodes, and no score does: nodes are asked from the highest total
//! down, and only those that could still win.
//!
//! Totals hold for the nodes that pass if these have the same extremes that scores are normalised by as all that fit.
//! Cost: a look at each block, and a question for each node that is refused above the best, or in vain below it while no
//! other is known to pass.

use krafla_model::NodeId;

use super::standings::Standings;
use super::totals::{BLOCK, Basis, Part, Totals, UNSCORED};
use super::{Found, Query};

/// What was found.
pub(super) enum Sieved {
    /// The best node.
    Node(Found),
    /// Scores of those that pass may be normalised by others than the extremes of all that fit.
    OtherExtremes,
}

/// A total and its place in tie order.
type Ranked = (f64, u32);

/// Whether a total at a place goes before another.
fn beats((total, place): Ranked, other: Ranked) -> bool {
    total > other.0 || (total == other.0 && place < other.1)
}

impl Totals {
    /// The best node that passes; `None` where the plain search has to answer: none passes, or one fails.
    pub(super) fn best_that_passes(
        &mut self,
        basis: Basis<'_>,
        standings: &Standings,
        passes: impl Fn(NodeId) -> Option<bool>,
    ) -> Option<Sieved> {
        if standings.n(self.scored) == 0 {
            return None;
        }
        let passes = |place: u32| passes(basis.nodes.id(place));
        let (best, beaten) = self.descend(&passes)?;
        let other = match beaten {
            Some(beaten) => Some(beaten),
            None => self.another(standings, best, &passes)?,
        };
        let (node, room) = (basis.nodes.id(best.1), self.scored.room());
        let Some(other) = other else {
            // The plain search does not score the only node that fits.
            return Some(Sieved::Node(Found::Node { node, room, score: 0.0 }));
        };
        self.second = other;
        if !self.extremes_pass(basis, standings, [best.1, other], &passes)? {
            return Some(Sieved::OtherExtremes);
        }
        Some(Sieved::Node(Found::Node { node, room, score: best.0 }))
    }

    /// The best that passes, and one that does and was beaten by it, if such a one was met. `None` if none passes, or one
    /// fails.
    fn descend(&self, passes: &impl Fn(u32) -> Option<bool>) -> Option<(Ranked, Option<u32>)> {
        let mut best: Option<Ranked> = None;
        let mut beaten = None;
        let first = self.best_block();
        let blocks = std::iter::once(first).chain((0..self.highest.len()).filter(|block| *block != first));
        for block in blocks {
            let begin = u32::try_from(block * BLOCK).ok()?;
            let highest = self.highest[block];
            if highest == UNSCORED || best.is_some_and(|best| !beats((highest, begin), best)) {
                continue;
            }
            for (place, &total) in (begin..).zip(self.totals[block * BLOCK..].iter().take(BLOCK)) {
                let may_win = total != UNSCORED && best.is_none_or(|best| beats((total, place), best));
                if may_win && passes(place)? {
                    beaten = best.map(|(_, place)| place).or(beaten);
                    best = Some((total, place));
                }
            }
        }
        best.map(|best| (best, beaten))
    }

    /// Another that passes than the best. Those that go before it do not.
    #[allow(clippy::option_option, reason = "a failure, or nothing, or what was found")]
    fn another(
        &self,
        standings: &Standings,
        best: Ranked,
        passes: &impl Fn(u32) -> Option<bool>,
    ) -> Option<Option<u32>> {
        let is_open = |place: u32| {
            let total = self.totals.get(place as usize).copied().unwrap_or(UNSCORED);
            total != UNSCORED && place != best.1 && !beats((total, place), best)
        };
        if is_open(self.second) && passes(self.second)? {
            return Some(Some(self.second));
        }
        for place in standings.places(self.scored).filter(|place| is_open(*place)) {
            if passes(place)? {
                return Some(Some(place));
            }
        }
        Some(None)
    }

    /// Whether a node with the least and one with the greatest score pass, of each plugin whose scores are normalised and
    /// differ. `pass`: some that are known to.
    fn extremes_pass(
        &self,
        basis: Basis<'_>,
        standings: &Standings,
        pass: [u32; 2],
        passes: &impl Fn(u32) -> Option<bool>,
    ) -> Option<bool> {
        let Query { profile, .. } = basis.query;
        for part in &self.parts {
            let Part::Column { column, tally } = part else { continue };
            let column = &basis.shared.columns[*column];
            if !profile.entries[column.entry].plugin.normalizes() {
                continue;
            }
            let (least, most) = tally.extremes?;
            for extreme in [least, most] {
                let has_it = |place: &u32| column.raw[*place as usize] == extreme;
                if pass.iter().any(has_it) {
                    continue;
                }
                let mut found = false;
                for place in standings.places(self.scored).filter(has_it) {
                    if passes(place)? {
                        found = true;
                        break;
                    }
                }
                if !found {
                    return Some(false);
                }
            }
        }
        Some(true)
    }
}
