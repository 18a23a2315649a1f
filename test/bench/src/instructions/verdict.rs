//! What a count says beside the one that was written down.

/// Percent by which a count may be above the one that was written.
pub(super) const ALLOWED: u64 = 3;

/// What there is to say of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it was.
    Same,
    /// It takes more than is allowed.
    Worse,
    /// It takes so much less that this may be written down.
    Better,
    /// Nothing was written down.
    New,
}

impl Verdict {
    /// Compares a count with the one that was written.
    pub(super) fn of(count: u64, written: Option<u64>) -> Self {
        let Some(written) = written else { return Self::New };
        let (count, written) = (u128::from(count) * 100, u128::from(written));
        match () {
            () if count > written * u128::from(100 + ALLOWED) => Self::Worse,
            () if count < written * u128::from(100 - ALLOWED) => Self::Better,
            () => Self::Same,
        }
    }

    /// How the table says it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Same => "",
            Self::Worse => "MORE",
            Self::Better => "less",
            Self::New => "NEW",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_percent_are_allowed_either_way() {
        for (count, wanted) in [
            (970, Verdict::Same),
            (1_030, Verdict::Same),
            (1_031, Verdict::Worse),
            (969, Verdict::Better),
            (0, Verdict::Better),
            (u64::MAX, Verdict::Worse),
        ] {
            assert_eq!(Verdict::of(count, Some(1_000)), wanted, "{count}");
        }
        assert_eq!(Verdict::of(5, None), Verdict::New);
    }
}
