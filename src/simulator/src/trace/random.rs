//! Seeded draws that depend on nothing but their key.
//!
//! Each draw has a stream of its own, named by seed, item and column. So one more job, or one more derived column,
//! leaves all other draws as they were.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA '14): one addition and a mix, and any start is good.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number in the whole range of `u64`.
pub(crate) fn draw(seed: u64, item: &str, column: &str) -> u64 {
    let mut state = mix(seed);
    // The length goes in first, so that no part can be taken for the start of the next.
    for part in [item, column] {
        state = mix(state ^ u64::try_from(part.len()).unwrap_or(u64::MAX));
        for byte in part.bytes() {
            state = mix(state ^ u64::from(byte));
        }
    }
    state
}

/// The index that a draw falls on when each has a probability proportional to its weight. The weights are not all 0.
pub(crate) fn pick(draw: u64, weights: impl Iterator<Item = u64> + Clone) -> usize {
    let total: u128 = weights.clone().map(u128::from).sum();
    let mut left = (u128::from(draw) * total) >> 64;
    for (index, weight) in weights.enumerate() {
        let weight = u128::from(weight);
        if left < weight {
            return index;
        }
        left -= weight;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_each_part_of_its_key() {
        let draws = [draw(0, "a", "b"), draw(1, "a", "b"), draw(0, "ab", ""), draw(0, "a", "c"), draw(0, "", "ab")];
        for (at, one) in draws.iter().enumerate() {
            assert!(!draws[at + 1..].contains(one));
        }
        assert_eq!(draw(0, "a", "b"), draws[0]);
    }

    #[test]
    fn picks_follow_the_weights() {
        let mut counts = [0; 3];
        for item in 0..10_000 {
            counts[pick(draw(7, &item.to_string(), "test"), [70, 0, 30].into_iter())] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((6_800..7_200).contains(&counts[0]), "{counts:?}");
        assert_eq!((pick(0, [1, 1].into_iter()), pick(u64::MAX, [1, 1].into_iter())), (0, 1));
    }
}
