//! Who is asked at a point, and in which order: kube-scheduler's rules of merging and expansion.

/// A plugin that a set enables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) name: String,
    /// As written; 0 if it is not.
    pub(super) weight: i64,
}

/// What a file says at one point, or at `multiPoint`.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    /// Each at most once.
    pub(super) enabled: Vec<Chosen>,
    /// Names, or `*` for all.
    pub(super) disabled: Vec<String>,
}

impl Choice {
    fn has(&self, name: &str) -> bool {
        self.enabled.iter().any(|chosen| chosen.name == name)
    }

    fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|disabled| disabled == name || disabled == "*")
    }
}

/// `multiPoint`: the defaults that are not disabled, each replaced in its place by what the file says of it; then the
/// others of the file, in their order.
pub(super) fn multi_point(defaults: &[Chosen], choice: &Choice) -> Vec<Chosen> {
    let said = |name: &str| choice.enabled.iter().find(|chosen| chosen.name == name).cloned();
    let kept = defaults.iter().filter(|default| !choice.disables(&default.name));
    let mut merged: Vec<Chosen> = kept.map(|default| said(&default.name).unwrap_or_else(|| default.clone())).collect();
    for chosen in &choice.enabled {
        if !merged.iter().any(|known| known.name == chosen.name) {
            merged.push(chosen.clone());
        }
    }
    merged
}

/// One point: first the plugins that it enables and `multiPoint` has too, in the order of the point; then those that only
/// `multiPoint` has, without the ones disabled here; then those that only the point has. `multi` has just the plugins
/// that take part in the point.
pub(super) fn point(multi: &[Chosen], choice: &Choice) -> Vec<Chosen> {
    let overrides =
        |chosen: &&Chosen| !choice.disables(&chosen.name) && multi.iter().any(|expanded| expanded.name == chosen.name);
    let expanded = multi.iter().filter(|chosen| !choice.disables(&chosen.name) && !choice.has(&chosen.name));
    let (first, last): (Vec<&Chosen>, Vec<&Chosen>) = choice.enabled.iter().partition(overrides);
    first.into_iter().chain(expanded).chain(last).cloned().collect()
}
