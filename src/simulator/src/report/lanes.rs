//! Where in the row of a node each of its pods is drawn: side by side, as tall as the part of the node that it takes.
//!
//! What a pod is drawn on says nothing about which device it got: a place is kept from its start to its end, the lowest
//! one that is free. If no single gap is tall enough, a pod is drawn in several pieces.

use std::collections::BTreeSet;

/// Something that takes a part of a row for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// From when.
    pub(super) from_ms: i64,
    /// Until when.
    pub(super) to_ms: i64,
    /// How much of the row, in thousandths; at least 1.
    pub(super) size: u32,
}

/// A piece of a row: from its top, and how tall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Thousandths from the top.
    pub(super) at: u32,
    /// How tall, in thousandths.
    pub(super) size: u32,
}

/// The row filled.
pub(super) struct Row {
    /// How tall the row has to be for all to fit: 1000, or more if a node is used twice over.
    pub(super) height: u32,
    /// The pieces of each item.
    pub(super) pieces: Vec<Vec<Piece>>,
}

/// Fills a row. Cost: each item looks through the gaps, which are about as many as the items that run at the time.
pub(super) fn fill(items: &[Item]) -> Row {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (items[i].from_ms, i));
    let height = peak(items).max(1000);
    let mut gaps = vec![Piece { at: 0, size: height }];
    let mut pieces: Vec<Vec<Piece>> = vec![Vec::new(); items.len()];
    let mut running = BTreeSet::new();
    for i in order {
        let item = items[i];
        while let Some(&(to_ms, ended)) = running.first()
            && to_ms <= item.from_ms
        {
            running.pop_first();
            for &piece in &pieces[ended] {
                give(&mut gaps, piece);
            }
        }
        pieces[i] = take(&mut gaps, item.size);
        running.insert((end(&item), i));
    }
    Row { height, pieces }
}

/// The most that is taken at one time.
fn peak(items: &[Item]) -> u32 {
    // At the same time, what ends comes before what begins.
    let mut changes: Vec<(i64, bool, u32)> =
        items.iter().flat_map(|item| [(item.from_ms, true, item.size), (end(item), false, item.size)]).collect();
    changes.sort_unstable();
    let (mut now, mut peak) = (0u32, 0);
    for (_, begins, size) in changes {
        now = if begins { now.saturating_add(size) } else { now.saturating_sub(size) };
        peak = peak.max(now);
    }
    peak
}

/// What takes no time is shown for an instant.
fn end(item: &Item) -> i64 {
    item.to_ms.max(item.from_ms + 1)
}

/// Takes the first gap that is tall enough, or as many from the top as it needs.
fn take(gaps: &mut Vec<Piece>, size: u32) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut left = size;
    let mut next = gaps.iter().position(|gap| gap.size >= size).unwrap_or(0);
    while left > 0
        && let Some(gap) = gaps.get_mut(next)
    {
        let part = gap.size.min(left);
        pieces.push(Piece { at: gap.at, size: part });
        left -= part;
        gap.at += part;
        gap.size -= part;
        if gap.size == 0 {
            gaps.remove(next);
        } else {
            next += 1;
        }
    }
    pieces
}

/// Puts a piece back between the gaps, which are ordered and never touch.
fn give(gaps: &mut Vec<Piece>, piece: Piece) {
    let next = gaps.partition_point(|gap| gap.at < piece.at);
    gaps.insert(next, piece);
    for i in [next, next.wrapping_sub(1)] {
        if let (Some(&upper), Some(&lower)) = (gaps.get(i), gaps.get(i.wrapping_add(1)))
            && upper.at + upper.size == lower.at
        {
            gaps[i].size += lower.size;
            gaps.remove(i + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(items: &[(i64, i64, u32)]) -> (u32, Vec<Vec<(u32, u32)>>) {
        let items: Vec<Item> = items.iter().map(|&(from_ms, to_ms, size)| Item { from_ms, to_ms, size }).collect();
        let row = fill(&items);
        (row.height, row.pieces.iter().map(|pieces| pieces.iter().map(|p| (p.at, p.size)).collect()).collect())
    }

    #[test]
    fn pods_lie_side_by_side() {
        for (name, items, height, want) in [
            ("one after the other", vec![(0, 5, 500), (5, 9, 500)], 1000, vec![vec![(0, 500)], vec![(0, 500)]]),
            ("together", vec![(0, 5, 500), (0, 9, 250)], 1000, vec![vec![(0, 500)], vec![(500, 250)]]),
            ("overbooked, the row grows", vec![(0, 5, 900), (1, 9, 300)], 1200, vec![vec![(0, 900)], vec![(900, 300)]]),
            (
                "a gap is used again, a larger pod is cut",
                vec![(0, 2, 250), (0, 9, 250), (0, 2, 250), (0, 9, 250), (3, 9, 500)],
                1000,
                vec![vec![(0, 250)], vec![(250, 250)], vec![(500, 250)], vec![(750, 250)], vec![(0, 250), (500, 250)]],
            ),
            (
                "gaps grow together again",
                vec![(0, 2, 250), (0, 3, 250), (0, 2, 250), (0, 9, 250), (4, 9, 750)],
                1000,
                vec![vec![(0, 250)], vec![(250, 250)], vec![(500, 250)], vec![(750, 250)], vec![(0, 750)]],
            ),
            ("no time at all", vec![(3, 3, 600), (3, 4, 600)], 1200, vec![vec![(0, 600)], vec![(600, 600)]]),
        ] {
            assert_eq!(rows(&items), (height, want), "{name}");
        }
    }

    #[test]
    fn nothing_overlaps_and_everything_is_drawn_whole() {
        let mut dice = super::super::testing::Dice(3);
        let mut size = |limit| u32::try_from(1 + dice.below(limit)).expect("small");
        let items: Vec<Item> =
            (0..300i64).map(|i| Item { from_ms: i / 3, to_ms: i / 3 + i64::from(size(20)), size: size(400) }).collect();
        let row = fill(&items);
        for (i, (a, in_a)) in items.iter().zip(&row.pieces).enumerate() {
            assert_eq!(in_a.iter().map(|p| p.size).sum::<u32>(), a.size);
            assert!(in_a.iter().all(|p| p.at + p.size <= row.height));
            for (b, in_b) in items.iter().zip(&row.pieces).skip(i + 1).filter(|(b, _)| b.from_ms < a.to_ms) {
                let apart = |p: &Piece, q: &Piece| p.at + p.size <= q.at || q.at + q.size <= p.at;
                assert!(in_a.iter().all(|p| in_b.iter().all(|q| apart(p, q))), "{a:?} {b:?}");
            }
        }
    }
}
