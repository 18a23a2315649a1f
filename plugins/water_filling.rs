//! Max-min fair division of one resource by weight, between a floor and a ceiling for each: bounded water-filling.

/// One claim on the resource, in its smallest unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its part relative to the others'.
    pub weight: u32,
    /// What it gets in any case.
    pub floor: i64,
    /// What it can use at most; at least the floor.
    pub ceiling: i64,
}

/// Divides `total` among `claims`: each gets `weight * level`, but at least its floor and at most its ceiling, with the
/// highest level that the total allows. Floors are granted even where they exceed the total.
///
/// Exact: what whole units leave over goes to the claims in their order, one unit each. Cost: n log n.
pub fn divide(total: i64, claims: &[Claim]) -> Vec<i64> {
    let at = |claim: &Claim, num: i128, den: i128| -> i64 {
        let share = i128::from(claim.weight) * num / den;
        i64::try_from(share).unwrap_or(i64::MAX).clamp(claim.floor, claim.ceiling.max(claim.floor))
    };
    // The level is a fraction num/den. Between two break points the sum is linear in it; find the segment.
    let mut breaks: Vec<(i64, u32)> = claims
        .iter()
        .filter(|claim| claim.weight > 0)
        .flat_map(|claim| [(claim.floor, claim.weight), (claim.ceiling.max(claim.floor), claim.weight)])
        .collect();
    let smaller =
        |a: &(i64, u32), b: &(i64, u32)| (i128::from(a.0) * i128::from(b.1)).cmp(&(i128::from(b.0) * i128::from(a.1)));
    breaks.sort_by(smaller);
    breaks.dedup_by(|a, b| smaller(a, b).is_eq());
    // Compared without division: cutting each part to whole units would make a level look affordable that is not.
    let affords = |&(amount, weight): &(i64, u32)| {
        let (num, den) = (i128::from(amount), i128::from(weight));
        let exact = |claim: &Claim| {
            let (floor, ceiling) = (i128::from(claim.floor) * den, i128::from(claim.ceiling.max(claim.floor)) * den);
            (i128::from(claim.weight) * num).clamp(floor, ceiling)
        };
        claims.iter().map(exact).sum::<i128>() <= i128::from(total) * den
    };
    let affordable = breaks.partition_point(affords);
    let mut parts: Vec<i64> = match affordable.checked_sub(1) {
        None => claims.iter().map(|claim| claim.floor).collect(),
        Some(last) => {
            let (amount, weight) = breaks[last];
            claims.iter().map(|claim| at(claim, i128::from(amount), i128::from(weight))).collect()
        }
    };
    if affordable == breaks.len() || affordable == 0 {
        return parts;
    }
    // Within the segment the claims that still rise share what is left by weight.
    let (low, high) = (breaks[affordable - 1], breaks[affordable]);
    let rising: Vec<usize> = (0..claims.len())
        .filter(|&i| {
            let claim = &claims[i];
            let below_low = !smaller(&low, &(claim.floor, claim.weight)).is_lt();
            let above_high = !smaller(&high, &(claim.ceiling.max(claim.floor), claim.weight)).is_gt();
            claim.weight > 0 && below_low && above_high
        })
        .collect();
    let weights: i128 = rising.iter().map(|&i| i128::from(claims[i].weight)).sum();
    if weights == 0 {
        return parts;
    }
    // Total of the rising claims, so that their common level is rest / weights.
    let fixed: i128 = (0..claims.len()).filter(|i| !rising.contains(i)).map(|i| i128::from(parts[i])).sum();
    let rest = i128::from(total) - fixed;
    for &i in &rising {
        parts[i] = at(&claims[i], rest, weights);
    }
    let mut left = rest - rising.iter().map(|&i| i128::from(parts[i])).sum::<i128>();
    for &i in &rising {
        if left > 0 && parts[i] < claims[i].ceiling {
            parts[i] += 1;
            left -= 1;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(weight: u32, floor: i64, ceiling: i64) -> Claim {
        Claim { weight, floor, ceiling }
    }

    #[test]
    fn divides_as_the_worked_examples_say() {
        for (total, claims, want) in [
            (12_000, vec![claim(1, 0, 2_000), claim(1, 0, 10_000), claim(2, 0, 10_000)], vec![2_000, 3_334, 6_666]),
            (10_000, vec![claim(1, 4_000, 4_000), claim(1, 0, 6_000)], vec![4_000, 6_000]),
            (10, vec![claim(0, 0, 10), claim(1, 0, 5)], vec![0, 5]),
            (10, vec![claim(0, 3, 10), claim(0, 0, 10)], vec![3, 0]),
            (10, vec![claim(1, 8, 9), claim(1, 8, 9)], vec![8, 8]),
            (10, vec![claim(1, 0, 10), claim(1, 0, 10), claim(1, 0, 10)], vec![4, 3, 3]),
            // In whole units the level of the first floor looks affordable, and is not.
            (20, vec![claim(3, 7, 8), claim(4, 0, 10), claim(2, 0, 5)], vec![7, 9, 4]),
            (10, vec![claim(2, 0, 10), claim(1, 0, 10)], vec![7, 3]),
            (10, vec![claim(1, 0, 3), claim(1, 0, 3)], vec![3, 3]), // what nobody asks for is left
            (9, vec![claim(1, 4, 9), claim(1, 0, 9), claim(1, 0, 9)], vec![4, 3, 2]), // a floor above the level
            (2, vec![claim(1, 0, 9), claim(1, 0, 9), claim(1, 0, 9)], vec![1, 1, 0]), // fewer units than claims
            (1_i64 << 53, vec![claim(u32::MAX, 0, i64::MAX), claim(u32::MAX, 0, i64::MAX)], vec![1 << 52, 1 << 52]),
            (0, vec![claim(1, 0, 10)], vec![0]),
            (10, vec![], vec![]),
        ] {
            assert_eq!(divide(total, &claims), want, "{total} among {claims:?}");
        }
    }

    fn claims() -> impl Strategy<Value = Vec<Claim>> {
        let one = (0_u32..5, 0_i64..20, 0_i64..100).prop_map(|(w, floor, more)| claim(w, floor, floor + more));
        proptest::collection::vec(one, 0..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn nobody_can_get_more_without_another_of_no_larger_level_getting_less(total in 0_i64..200, claims in claims()) {
            let parts = divide(total, &claims);
            let floors: i64 = claims.iter().map(|c| c.floor).sum();
            prop_assert!(parts.iter().sum::<i64>() <= total.max(floors));
            for (part, c) in parts.iter().zip(&claims) {
                prop_assert!(*part >= c.floor && *part <= c.ceiling);
            }
            // Work conserving: something is left only if everyone with a weight is full.
            let full = parts.iter().zip(&claims).all(|(part, c)| c.weight == 0 || *part == c.ceiling);
            prop_assert!(full || parts.iter().sum::<i64>() >= total.min(total.max(floors)) || floors >= total, "{:?}", parts);
            // Max-min: who is above their floor is at most one unit above the level of any who is below their ceiling.
            for (a, ca) in parts.iter().zip(&claims) {
                for (b, cb) in parts.iter().zip(&claims) {
                    if ca.weight > 0 && cb.weight > 0 && *a > ca.floor && *b < cb.ceiling {
                        prop_assert!((*a - 1) * i64::from(cb.weight) <= (*b + 1) * i64::from(ca.weight), "{:?}", parts);
                    }
                }
            }
        }
    }
}
